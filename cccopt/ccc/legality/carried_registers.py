"""Which loop, if any, carries from one iteration to the next a register that a statement reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from cccopt.analysis import effects
from cccopt.analysis.loops import Loop
from cccopt.analysis.reaching import ENTRY
from cccopt.ccc.function.view import View
from cccopt.ccc.regions.marked_loops import loops_of
from cccopt.clauses import Kind
from cccopt.ptx.ir import Instruction, Marker, SpecialRegister


@dataclass(frozen=True)
class CarriedRegisters:
    """The registers that the loops of one function carry. Statements are given by index."""

    view: View

    def carrying(self, use: int, name: str, definitions: frozenset[int]) -> Loop | None:
        """The innermost loop at whose header the register holds what ``use`` reads, if that loop writes it."""
        for loop in self.around(use):
            begin = self.view.cfg.blocks[loop.header].start
            inside = [d for d in definitions if d != ENTRY and self.view.cfg.block_of(d) in loop.blocks]
            if inside and definitions == self.view.reaching.reaching(begin, name):
                return None if any(self._comes_first(d, use, loop) for d in inside) else loop
        return None

    def _comes_first(self, definition: int, use: int, loop: Loop) -> bool:
        """Whether control may reach a use from a definition within one iteration."""
        a, b = self.view.cfg.block_of(definition), self.view.cfg.block_of(use)
        if a == b and definition < use:
            return True
        work = [s for s in self.view.cfg.successors[a] if s != loop.header]
        seen: set[int] = set()
        while work:
            block = work.pop()
            if block in seen or block not in loop.blocks:
                continue
            seen.add(block)
            work += [s for s in self.view.cfg.successors[block] if s != loop.header]
        return b in seen

    def block_index(self, loop: Loop, name: str) -> str:
        """The axis whose block index a register holds in a loop over blocks; empty if there is none."""
        if loop.header not in self._over_blocks:
            return ""
        begin = self.view.cfg.blocks[loop.header].start
        found = {
            source.name
            for d in self.view.reaching.reaching(begin, name)
            if d != ENTRY and d not in self.inside(loop)
            if isinstance(s := self.view.body[d], Instruction)
            for source in s.operands[1:]
            if isinstance(source, SpecialRegister)
        }
        axes = {n.removeprefix("%ctaid.") for n in found if n.startswith("%ctaid.")}
        return axes.pop() if len(axes) == len(found) == 1 else ""

    @cached_property
    def _over_blocks(self) -> frozenset[int]:
        """The headers of loops over blocks."""
        marked = (a for a in self.view.annotations.values() if a.kind == Kind.GRID)
        return frozenset(loop.header for a in marked for loop in loops_of(self.view, a))

    def reads_block_index(self, name: str) -> bool:
        """Whether the program itself, not code of a pass, reads the block index ``name`` in a loop over blocks."""
        names = {
            register
            for loop in self.view.loops
            if loop.header in self._over_blocks
            for register in self.view.types
            if self.block_index(loop, register) == name.removeprefix("%ctaid.")
        }
        ours = False
        for statement in self.view.body:
            if isinstance(statement, Marker) and statement.event.startswith("overhead."):
                ours = statement.event == "overhead.begin"
            if not ours and names & effects.reads(statement):
                return True
        return False

    def around(self, statement: int) -> Sequence[Loop]:
        """The loops around a statement, innermost first."""
        return self._around[self.view.cfg.block_of(statement)]

    @cached_property
    def _around(self) -> Sequence[Sequence[Loop]]:
        """The loops around each block, innermost first."""
        found: list[list[Loop]] = [[] for _ in self.view.cfg.blocks]
        for loop in sorted(self.view.loops, key=lambda x: -x.depth):
            for block in loop.blocks:
                found[block].append(loop)
        return found

    def inside(self, loop: Loop) -> frozenset[int]:
        if loop not in self._inside:
            blocks = self.view.cfg.blocks
            self._inside[loop] = frozenset(i for b in loop.blocks for i in blocks[b].statements())
        return self._inside[loop]

    @cached_property
    def _inside(self) -> dict[Loop, frozenset[int]]:
        """The statements of the loops queried so far."""
        return {}

    def innermost_of(self, definitions: frozenset[int]) -> Loop | None:
        return self.view.innermost(self.view.cfg.block_of(min(definitions)))
