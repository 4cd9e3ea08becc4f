"""Counted loops whose inner iterations are tasks: how many a lane has left, and what each reads, given only its number.

    LOOP: ld.global.u32 %r5, [%rd1];        header registers: %rd1 begins with a and grows by 4,
          ...                                                 %r1 begins with b and grows by 1
          add.s64 %rd1, %rd1, 4;            inner iteration t reads %rd1 = a + 4 t; nothing but the test reads %r1
          add.s32 %r1, %r1, 1;
          setp.ne.s32 %p1, %r1, 0;          after the first one -b - 1 are left
          @%p1 bra LOOP;

Basic induction variables: Aho, Lam, Sethi, Ullman, "Compilers", 2nd ed., 9.1.2 and 9.6. All arithmetic is that of the
machine, modulo 2^32 or 2^64, so the count is right whenever the loop ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from cccopt.analysis import effects
from cccopt.analysis.cost import integer
from cccopt.analysis.reaching import ENTRY
from cccopt.ccc.function.graph import Branch, Node, condition, targets
from cccopt.ccc.function.view import View
from cccopt.ccc.legality.inner_iterations import in_order
from cccopt.ccc.regions.induction import Induction
from cccopt.ccc.regions.paths import Path
from cccopt.clauses import Kind
from cccopt.ptx import isa
from cccopt.ptx.ir import Guard, Instruction, Literal, Operand, Register, Statement

_OPPOSITE = {"eq": "ne", "ne": "eq", "lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}
_SWAPPED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


@dataclass(frozen=True, slots=True)
class TripCount:
    """After an inner iteration, the lane continues while ``register`` + ``offset`` ``compare`` ``bound``, both of
    ``type``. At the end of the first one, ``register`` has its value from the beginning; it grows by ``step`` in
    each.

    ``step`` is a power of two, negated if ``compare`` is ``gt`` or ``ge``; for ``ne`` it may have either sign.
    """

    register: str
    offset: int
    step: int
    compare: str
    type: str
    bound: Register | Literal

    @property
    def registers(self) -> frozenset[str]:
        """The registers that determine the number of inner iterations."""
        return frozenset({self.register, *([self.bound.name] if isinstance(self.bound, Register) else [])})


@dataclass(frozen=True, slots=True)
class Pointer:
    """A register that is ``base`` + ``counter`` * ``size`` in each inner iteration; the opcode ``widen`` makes the
    product.
    """

    register: str
    base: str
    counter: str
    size: int
    widen: str


@dataclass(frozen=True, slots=True)
class CountedLoop:
    """A loop with one exit, at its latch, whose inner iterations a lane can begin in any order.

    ``steps`` are the bytes or counts by which registers that an inner iteration reads grow from one to the next,
    ``pointers`` the registers that follow one of these. ``reads`` are all registers, other than ``pointers``, that an
    inner iteration reads before it writes them; ``code`` are the statements that it needs, without its own test.
    """

    latch: str
    count: TripCount
    steps: Mapping[str, int]
    pointers: tuple[Pointer, ...]
    reads: frozenset[str]
    code: frozenset[int]

    @property
    def strides(self) -> Mapping[str, int]:
        """How much each register of ``steps`` and ``pointers`` grows in each inner iteration."""
        return {**self.steps, **{p.register: p.size * self.steps[p.counter] for p in self.pointers}}


def may_expand(path: Path) -> bool:
    """Whether the pragma leaves the order of a path's inner iterations open."""
    return (
        path.annotation.kind == Kind.FOR_VARIABLE and path.annotation.chunk in (None, 1) and not path.children
    )


def counted_loop(
    view: View, path: Path, carried: Iterable[str], fixed: Callable[[str], bool]
) -> CountedLoop | None:
    """The path as a counted loop, or None if it is not one.

    ``carried`` registers pass from one inner iteration to the next in any lane; ``fixed`` says which are the same in
    the whole warp for all its inner iterations.
    """
    return _CountedLoopFinder(view, path, frozenset(carried), fixed).counted()


class _CountedLoopFinder(Induction):
    def __init__(self, view: View, path: Path, carried: frozenset[str], fixed: Callable[[str], bool]) -> None:
        super().__init__(view, path)
        self.path = path
        self.carried = carried
        self.fixed = fixed

    def counted(self) -> CountedLoop | None:
        latch = self._latch()
        if latch is None:
            return None
        name, node = latch
        assert isinstance(node.end, Branch)
        branch = self.view.cfg.blocks[self.view.block_of_name[name]].stop - 1
        count = self._count(branch, node.end)
        if count is None:
            return None
        if in_order(self.view, self.path):
            return None
        needed = self._needed(branch)
        reads = {
            r for i in needed for r in effects.needs(self.view.body[i]) if self.unchanged_since_header(i, r)
        }
        steps: dict[str, int] = {}
        for register in sorted(reads & self.written - self.carried):
            step = self.step(register)
            if step is None:
                return None
            steps[register] = step
        pointers = tuple(p for r, step in steps.items() if (p := self._pointer(r, step, count)) is not None)
        if pointers:
            gone = {pointer.register for pointer in pointers}
            steps = {r: step for r, step in steps.items() if r not in gone} | {count.register: count.step}
            reads = reads - gone | {count.register}
        return CountedLoop(name, count, steps, pointers, frozenset(reads), frozenset(needed))

    def _pointer(self, register: str, step: int, count: TripCount) -> Pointer | None:
        """The register as an address computed from the loop's counter, if the counter does not wrap around."""
        sign = count.type[0]
        made = self._first_value(register)
        if isa.width(count.type) != 32 or sign not in "su" or count.compare == "ne" or made is None:
            return None
        if count.offset != 0 and not (count.offset == count.step and self._guarded(count)):
            return None
        index, addition = made
        if addition.base != "add" or isa.width(addition.parts[-1]) != 64:
            return None
        for base, offset in (addition.operands[1:], addition.operands[:0:-1]):
            product = self._single(index, offset)
            if product is None or not isinstance(base, Register) or not self._lasts(index, base.name):
                continue
            where, multiply = product
            if multiply.opcode != f"mul.wide.{sign}32" or multiply.operands[1] != Register(count.register):
                continue
            size = integer(multiply.operands[2])
            if (
                size is not None
                and size * count.step == step
                and self._lasts(where, count.register, counts=True)
            ):
                return Pointer(register, base.name, count.register, size, multiply.opcode)
        return None

    def _first_value(self, register: str) -> tuple[int, Instruction] | None:
        """The one statement before the loop that gives a register its first value."""
        first = self.view.cfg.blocks[self.header].start
        outside = self.view.reaching.reaching(first, register) - self.statements
        return self._statement(outside)

    def _single(self, use: int, operand: Operand) -> tuple[int, Instruction] | None:
        """The one statement whose result ``use`` reads."""
        if not isinstance(operand, Register):
            return None
        return self._statement(self.view.reaching.reaching(use, operand.name))

    def _statement(self, definitions: Iterable[int]) -> tuple[int, Instruction] | None:
        found = [*definitions]
        statement = self.view.body[found[0]] if len(found) == 1 and ENTRY not in found else None
        if not isinstance(statement, Instruction) or isa.is_conditional_write(statement):
            return None
        return found[0], statement

    def _lasts(self, use: int, register: str, *, counts: bool = False) -> bool:
        """Whether ``use`` reads what a register holds at the loop's header or, if it ``counts`` inner iterations,
        before the first one.
        """
        first = self.view.cfg.blocks[self.header].start
        held = self.view.reaching.reaching(first, register)
        if counts:
            held -= self.statements
        elif not self.fixed(register):
            return False
        return held == self.view.reaching.reaching(use, register)

    def _latch(self) -> tuple[str, Node] | None:
        """The one node whose branch leads both out of the loop and back to its header."""
        nodes = {name: self.view.graph.nodes[name] for name in self.path.nodes}
        outside = nodes.keys() | self.view.traps
        leaving = [n for n, node in nodes.items() if any(t not in outside for t in targets(node.end))]
        again = [n for n, node in nodes.items() if self.path.begin in targets(node.end)]
        if leaving != again or len(leaving) != 1:
            return None
        node = nodes[leaving[0]]
        return (leaving[0], node) if isinstance(node.end, Branch) and self.once(leaving[0]) else None

    def _count(self, branch: int, end: Branch) -> TripCount | None:
        going = condition(end, self.path.begin)
        test = self.definition(branch, going.register.name)
        compared = None if test is None else self._compared(test, going)
        if test is None or compared is None:
            return None
        compare, type, left, right = compared
        value = self.from_header(test, left)
        if value is None:
            compare, left, right = _SWAPPED[compare], right, left
            value = self.from_header(test, left)
        if value is None or not self._is_fixed(right):
            return None
        register, offset = value
        step = self.step(register)
        if step is None or isa.width(self.view.types[register]) != isa.width(type):
            return None
        towards = {"ne": True, "lt": step > 0, "le": step > 0, "gt": step < 0, "ge": step < 0}
        # With different step sizes, a counter may wrap around more than once before it meets the bound.
        if abs(step).bit_count() != 1 or not towards.get(compare, False):
            return None
        assert isinstance(right, Register | Literal)
        return TripCount(register, offset, step, compare, type, right)

    def _compared(self, test: int, going: Guard) -> tuple[str, str, Operand, Operand] | None:
        """The comparison by the statement ``test`` that holds if lanes continue: its order, type and operands."""
        statement = self.view.body[test]
        if not isinstance(statement, Instruction) or statement.base != "setp":
            return None
        if len(statement.parts) != 3 or len(statement.operands) != 3:
            return None
        compare, type = statement.parts[1:]
        if type not in ("s32", "u32", "b32", "s64", "u64", "b64"):
            return None
        if compare in _UNSIGNED:
            compare, type = _UNSIGNED[compare], "u" + type[1:]
        target, left, right = statement.operands
        # The second predicate of a pair holds the opposite.
        if compare not in _OPPOSITE or target != going.register:
            return None
        return _OPPOSITE[compare] if going.negated else compare, type, left, right

    def _guarded(self, count: TripCount) -> bool:
        """Whether lanes enter the loop only if its counter and bound pass the test made after each inner iteration."""
        view = self.view
        for block in view.dominators.chain(self.header):
            end = view.graph.nodes[view.name(block)].end
            if block in self.blocks or not isinstance(end, Branch):
                continue
            for target in set(targets(end)) & view.block_of_name.keys():
                led = view.block_of_name[target]
                ways = [b for b in view.cfg.predecessors[led] if b not in self.blocks]
                if ways != [block] or not view.dominators.dominates(led, self.header):
                    continue
                going = condition(end, target)
                test = self._single(view.cfg.blocks[block].stop - 1, going.register)
                if test is not None and self._same_test(test[0], going, count):
                    return True
        return False

    def _same_test(self, test: int, going: Guard, count: TripCount) -> bool:
        compared = self._compared(test, going)
        if compared is None:
            return False
        compare, type, left, right = compared
        if left != Register(count.register):
            compare, left, right = _SWAPPED[compare], right, left
        if (compare, type, left, right) != (count.compare, count.type, Register(count.register), count.bound):
            return False
        same = not isinstance(right, Register) or self._reads_as_header(test, right.name)
        return same and self._lasts(test, count.register, counts=True)

    def _reads_as_header(self, use: int, register: str) -> bool:
        held = self.view.reaching.reaching(self.view.cfg.blocks[self.header].start, register)
        return held == self.view.reaching.reaching(use, register)

    def _is_fixed(self, operand: Operand) -> bool:
        """Whether an operand of the test is the same in each inner iteration of a lane."""
        if isinstance(operand, Register):
            return operand.name not in self.written
        return isinstance(operand, Literal) and integer(operand) is not None

    def _needed(self, branch: int) -> set[int]:
        """The statements of an inner iteration except those that only count: the next one's registers come from its
        number.
        """
        body, reaching = self.view.body, self.view.reaching
        work = [i for i in self.statements - {branch} if self._acts(body[i])]
        found: set[int] = set()
        while work:
            index = work.pop()
            if index in found:
                continue
            found.add(index)
            for name in effects.needs(body[index]):
                if (
                    not (name in self.written and self.unchanged_since_header(index, name))
                    or name in self.carried
                ):
                    work += reaching.reaching(index, name) & self.statements
        return found

    def _acts(self, statement: Statement) -> bool:
        """Whether a statement does more than compute a register that only the inner iteration may read."""
        if not isinstance(statement, Instruction):
            return False
        names = effects.writes(statement)
        return not isa.facts(statement).pure or not names or not self.carried.isdisjoint(names)
