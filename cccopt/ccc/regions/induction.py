"""Basic induction variables of a loop: registers that grow by the same amount in each iteration.

        LOOP: ...
              add.s32 %r2, %r1, 1;      %r1 grows by 1: its only definition in the loop, run once in each iteration,
              mov.u32 %r1, %r2;         is what it held at the header plus 1

Aho, Lam, Sethi, Ullman, "Compilers", 2nd ed., 9.1.2. All arithmetic is machine arithmetic, modulo 2^32 or 2^64.
"""

from __future__ import annotations

from cccopt.analysis import effects
from cccopt.analysis.cost import integer
from cccopt.analysis.reaching import ENTRY
from cccopt.ccc.function.view import View
from cccopt.ccc.regions.paths import Path
from cccopt.ptx import isa
from cccopt.ptx.ir import Instruction, Operand, Register
from cccopt.ptx.isa import Arithmetic

_SUMS = (Arithmetic.SUM, Arithmetic.DIFFERENCE)
_WIDENED = frozenset({"cvt.s64.s32", "cvt.u64.u32"})
_NARROWED = frozenset({"cvt.u32.u64", "cvt.s32.s64", "cvt.s32.u64", "cvt.u32.s64"})


class Induction:
    """The registers of one loop of tasks: ``statements`` are the loop's own, ``written`` the registers that they write,
    and ``writers`` the statements that write each register.
    """

    def __init__(self, view: View, path: Path) -> None:
        self.view = view
        self.header = view.block_of_name[path.begin]
        self.blocks = view.blocks_of(path.nodes)
        self.statements = frozenset(view.statements(path.nodes))
        self.writers: dict[str, list[int]] = {}
        for index in sorted(self.statements):
            for name in effects.writes(view.body[index]):
                self.writers.setdefault(name, []).append(index)
        self.written = set(self.writers)

    def once(self, name: str) -> bool:
        """Whether the node is in the loop and in no inner loop: an iteration runs it at most once."""
        loop = self.view.innermost(self.view.block_of_name[name])
        return loop is not None and loop.header == self.header

    def definition(self, use: int, register: str) -> int | None:
        """The only statement of the loop whose result ``use`` reads, on every path; None if there is none."""
        definitions = self.view.reaching.reaching(use, register)
        if len(definitions) != 1 or not definitions <= self.statements:
            return None
        (index,) = definitions
        statement = self.view.body[index]
        assert isinstance(statement, Instruction)
        return None if isa.is_conditional_write(statement) else index

    def from_header(self, use: int, operand: Operand, depth: int = 8) -> tuple[str, int] | None:
        """The register and the offset for which ``use`` reads the register's value at the header plus the offset."""
        if not isinstance(operand, Register) or operand.name not in self.written or not depth:
            return None
        if self.unchanged_since_header(use, operand.name):
            return operand.name, 0
        index = self.definition(use, operand.name)
        if index is None:
            return None
        statement = self.view.body[index]
        assert isinstance(statement, Instruction)
        kind = statement.parts[1:]
        if statement.opcode in _NARROWED:
            return self._widened(index, statement.operands[1], depth)
        if len(kind) != 1 or kind[0][1:] not in ("32", "64") or kind[0][0] not in "bsu":
            return None
        found = self.from_header(index, statement.operands[1], depth - 1)
        if found is None or statement.base == "mov":
            return found
        sums = isa.facts(statement).arithmetic
        by = integer(statement.operands[2]) if sums in _SUMS else None
        if by is None:
            return None
        register, offset = found
        return register, offset + (by if sums is Arithmetic.SUM else -by)

    def _widened(self, use: int, operand: Operand, depth: int) -> tuple[str, int] | None:
        """Like `from_header`, for the lower half of a value that was widened before: nvcc keeps counters like this."""
        index = self.definition(use, operand.name) if isinstance(operand, Register) else None
        statement = None if index is None else self.view.body[index]
        if index is None or not isinstance(statement, Instruction) or statement.opcode not in _WIDENED:
            return None
        return self.from_header(index, statement.operands[1], depth - 1)

    def unchanged_since_header(self, use: int, register: str) -> bool:
        """Whether ``use`` reads what the register held at the header, as far as the reaching definitions show."""
        definitions = self.view.reaching.reaching(use, register)
        return not definitions <= self.statements or definitions == self.view.reaching.reaching(
            self.view.cfg.blocks[self.header].start, register
        )

    def step(self, register: str) -> int | None:
        """The amount by which a register grows from one arrival at the header to the next, if it is known."""
        first = self.view.cfg.blocks[self.header].start
        inside = self.view.reaching.reaching(first, register) & self.statements
        if len(inside) != 1 or ENTRY in inside:
            return None
        (index,) = inside
        block = self.view.cfg.block_of(index)
        if not self.once(self.view.name(block)) or not self._dominates_latches(block):
            return None
        found = self._grown(index)
        # All uses in between must read the value from the header: no other statement may write the register.
        return found if self.writers[register] == [index] else None

    def _grown(self, index: int) -> int | None:
        """By how much the result of the statement exceeds the value of its register at the header."""
        statement = self.view.body[index]
        if not isinstance(statement, Instruction) or isa.is_conditional_write(statement):
            return None
        names = effects.writes(statement)
        if len(names) != 1:
            return None
        (register,) = names
        kind = statement.parts[1:]
        if len(kind) != 1 or kind[0][1:] not in ("32", "64") or kind[0][0] not in "bsu":
            return None
        found = self.from_header(index, statement.operands[1])
        by = 0 if statement.base == "mov" else None
        sums = isa.facts(statement).arithmetic
        if sums in _SUMS:
            by = integer(statement.operands[2])
        if found is None or by is None or found[0] != register:
            return None
        half = 1 << isa.width(kind[0]) - 1
        step = (found[1] + (-by if sums is Arithmetic.DIFFERENCE else by) + half) % (2 * half) - half
        # Expanded iterations multiply the step by their number in 32 bits.
        return step if step and abs(step) < 1 << 31 else None

    def _dominates_latches(self, block: int) -> bool:
        latches = (b for b in self.blocks if self.header in self.view.cfg.successors[b])
        return all(self.view.dominators.dominates(block, latch) for latch in latches)
