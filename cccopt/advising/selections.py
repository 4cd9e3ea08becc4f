"""The selections of a kernel's candidates that are worth a trial, by how the candidates are nested."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import zip_longest

from cccopt.advising.waiting_loops import verified
from cccopt.analysis import effects
from cccopt.analysis.loops import Loop
from cccopt.ccc.function.annotations import Annotation
from cccopt.ccc.function.view import View
from cccopt.ccc.regions.marked_loops import loops_of
from cccopt.clauses import Kind, MarkedShape
from cccopt.ptx import isa
from cccopt.ptx.ir import Instruction, Operand, Register, SpecialRegister

_SIZES, _POSITIONS = ("%nctaid", "%ntid"), ("%ctaid", "%tid", "%laneid")
"""The prefixes of the special registers that hold the numbers of threads and blocks, and of those that hold the index
of this thread or block.
"""

_MOST_PATHS = 12

_LITTLE = 0.04
"""A loop over tasks with at most this part of its kernel's issue slots is not tried: nothing in it can gain 5 %."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Pragmas by the numbers of their candidates; ``outer`` is that of the marked loop or kernel. ``sums`` is how many
    of its sums may be added up in any order (``reduce(+: ...)``): floating-point sums of inner loops or, with
    ``over_iterations``, all sums of the marked loop. ``in_lane`` is the clause `inlane`: lanes keep their own
    iterations in order, so nothing is promised.
    """

    outer: int
    kinds: tuple[tuple[int, Kind], ...]
    sums: int = 0
    in_lane: bool = False
    over_iterations: bool = False

    def has(self, kind: Kind) -> bool:
        """Whether it has a pragma of this kind."""
        return any(kind is each for _, each in self.kinds)

    @property
    def regions(self) -> frozenset[int]:
        """The numbers of all candidates in it."""
        return frozenset(number for number, _ in self.kinds)


@dataclass(frozen=True)
class Nest:
    """How the candidates of a function are nested. ``issued`` holds its issue slots in a run, by statement; it is empty
    without a run.
    """

    view: View
    issued: Mapping[int, float] = field(default_factory=dict)

    @cached_property
    def verified(self) -> bool:
        """The result of `verified`: one call is enough for all selections."""
        return verified(self.view.module)

    @cached_property
    def annotations(self) -> Mapping[int, Annotation]:
        """The candidates by number."""
        return self.view.annotations

    @cached_property
    def loops(self) -> Mapping[int, tuple[Loop, ...]]:
        """The copies of each candidate that is a loop; loops of which nothing is left are absent."""
        found = {n: tuple(loops_of(self.view, a)) for n, a in self.annotations.items() if _is_loop(a)}
        return {number: copies for number, copies in found.items() if copies}

    @cached_property
    def blocks(self) -> Mapping[int, frozenset[int]]:
        """Where the copies of each candidate begin: the headers of loops, the first blocks of other paths."""
        begins = {n: frozenset(loop.header for loop in copies) for n, copies in self.loops.items()}
        paths = (n for n, a in self.annotations.items() if not _is_loop(a))
        return begins | {
            n: frozenset(self.view.cfg.block_of(i) for i in self.view.markers("if.begin", n)) for n in paths
        }

    def inside(self, loop: int) -> frozenset[int]:
        """The candidates with a copy in the loop with this number."""
        return frozenset(
            number
            for number, begins in self.blocks.items()
            if number != loop
            for copy in self.loops[loop]
            if begins & copy.blocks - {copy.header}
        )

    def loops_around(self, number: int, outer: int) -> frozenset[int]:
        """The loops inside ``outer`` that contain a candidate."""
        return frozenset(n for n in self.inside(outer) & self.loops.keys() if number in self.inside(n))

    def loops_under(self, path: int, outer: int) -> frozenset[int]:
        """The loops inside ``outer`` that the beginning of a path dominates."""
        dominates = self.view.dominators.dominates
        return frozenset(
            n
            for n in self.inside(outer) & self.loops.keys()
            if n != path and all(any(dominates(a, b) for a in self.blocks[path]) for b in self.blocks[n])
        )

    @cached_property
    def shares(self) -> Mapping[int, float]:
        """The part of the issued slots that each candidate has, including what is marked in it; 1 without a run."""
        total = sum(self.issued.values())
        if not total:
            return dict.fromkeys(self.blocks, 1.0)
        slots = [sum(self.issued.get(i, 0.0) for i in b.statements()) for b in self.view.cfg.blocks]
        return {number: sum(slots[block] for block in self._code(number)) / total for number in self.blocks}

    def _code(self, number: int) -> frozenset[int]:
        """The blocks of a candidate's copies; for a path, those that its beginning dominates."""
        if number in self.loops:
            return frozenset[int]().union(*(copy.blocks for copy in self.loops[number]))
        dominates = self.view.dominators.dominates
        every = range(len(self.view.cfg.blocks))
        return frozenset(b for b in every if any(dominates(begin, b) for begin in self.blocks[number]))

    @cached_property
    def _sizes(self) -> frozenset[str]:
        """The registers that depend on the number of threads or blocks, but not on which thread it is."""
        return self._computed_from(_SIZES) - self._computed_from(_POSITIONS)

    def _computed_from(self, special: tuple[str, ...]) -> frozenset[str]:
        """The registers that depend on special registers with these prefixes."""
        body = [s for s in self.view.body if isinstance(s, Instruction)]
        reading = (s for s in body if any(name.startswith(special) for name in effects.special_registers(s)))
        return _dependent(body, (register.name for s in reading for register in isa.definitions(s)))

    def strides_over_threads(self, number: int) -> bool:
        """Whether a loop's stride is a number of threads (of a block or the grid), as in a loop over tasks."""
        inner = [loop for copies in self.loops.values() for loop in copies]
        return any(
            self._is_stride(instruction, copy)
            for copy in self.loops[number]
            for block in copy.blocks.difference(*(i.blocks for i in inner if i.blocks < copy.blocks))
            for index in self.view.cfg.blocks[block].statements()
            if isinstance(instruction := self.view.body[index], Instruction)
        )

    def _is_stride(self, instruction: Instruction, loop: Loop) -> bool:
        """Whether it adds a number of threads, in a sum or a multiply-add (``i += gridDim.x * blockDim.x``), to what it
        computed in the iteration before.
        """
        operands = instruction.operands[1:]
        sizes = [_is_size(operand, self._sizes) for operand in operands]
        match isa.facts(instruction).arithmetic:
            case isa.Arithmetic.SUM if any(sizes):
                grown = self._grown(instruction, loop)
                return any(
                    size and not _is_in(stride, grown) and _is_in(other, grown)
                    for size, stride, other in zip(sizes, operands, reversed(operands), strict=True)
                )
            case isa.Arithmetic.PRODUCT_SUM if sizes[:2] == [True, True]:
                return _is_in(operands[2], self._grown(instruction, loop))
            case _:
                return False

    def _grown(self, instruction: Instruction, loop: Loop) -> frozenset[str]:
        """The registers that a loop computes from what an instruction in it writes, without what it loads."""
        indices = (i for block in loop.blocks for i in self.view.cfg.blocks[block].statements())
        code = (s for i in indices if isinstance(s := self.view.body[i], Instruction))
        computing = [s for s in code if isa.facts(s).memory is isa.Memory.NONE]
        return _dependent(computing, (register.name for register in isa.definitions(instruction)))

    def outers(self) -> Iterator[int]:
        """The loops over tasks: those that stride over threads, if there are any; else the loop over blocks, and the
        outermost loops in it, in which each lane has its own iterations.
        """
        outermost = list(self._outermost())
        over_tasks = [
            n
            for n, a in self.annotations.items()
            if n in self.loops and a.kind is not Kind.GRID and self.strides_over_threads(n)
        ]
        if not over_tasks:
            yield from (n for n in self.loops if self.annotations[n].kind is Kind.GRID)
        yield from (n for n in over_tasks or outermost if self.shares[n] > _LITTLE)

    def _outermost(self) -> Iterator[int]:
        candidates = {copy.header for copies in self.loops.values() for copy in copies}
        over_blocks = {
            copy.header
            for n, copies in self.loops.items()
            if self.annotations[n].kind is Kind.GRID
            for copy in copies
        }
        for number, copies in self.loops.items():
            if self.annotations[number].kind is Kind.GRID:
                continue
            around = {
                loop.header
                for copy in copies
                for loop in self.view.loops
                if copy.blocks < loop.blocks and loop.header in candidates - over_blocks
            }
            if not around:
                yield number

    def selections(self) -> Iterator[Selection]:
        """The sensible selections of all loops over tasks, alternately, so that no loop takes all trials."""
        by_turns = zip_longest(*(dict.fromkeys(self._selections_of(outer)) for outer in self.outers()))
        yield from (selection for turn in by_turns for selection in turn if selection is not None)

    def _selections_of(self, outer: int) -> Iterator[Selection]:
        """The selections in a loop: all branches, all loops, both, everything, and each path alone or with its loops. A
        ``switch`` is selected as a whole.
        """
        for regions in self._paths(outer):
            groups = {self.annotations[n].group for n in regions} - {0}
            regions |= {n for n in self.inside(outer) if self.annotations[n].group in groups}
            loops = frozenset[int]().union(*(self.loops_around(n, outer) for n in regions))
            yield from self._kinds(outer, regions | loops)

    def in_lane_selections(self) -> Iterator[Selection]:
        """The selections whose loops can keep each lane's iterations in order, with the clause that asks for that."""
        found = (
            replace(selection, in_lane=True)
            for selection in self.selections()
            if selection.kinds[0][1] is Kind.FOR and not selection.has(Kind.FOR_VARIABLE)
        )
        yield from dict.fromkeys(found)

    def _paths(self, outer: int) -> Iterator[frozenset[int]]:
        paths = sorted(self.inside(outer))
        branches = frozenset(n for n in paths if n not in self.loops and not self.loops_around(n, outer))
        outermost = frozenset(n for n in paths if n in self.loops and not self.loops_around(n, outer))
        for choice in (branches, outermost, branches | outermost, frozenset(paths)):
            if choice:
                yield choice
        hottest = sorted(paths, key=lambda n: (-self.shares[n], n))[:_MOST_PATHS]
        loops = {path: self.loops_under(path, outer) for path in hottest if path not in self.loops}
        for path in hottest:
            yield frozenset({path})
            if under := loops.get(path):
                yield under | {path}
        # Last, since there may be too many selections to try all of them.
        for path, under in loops.items():
            yield frozenset(n for n in under if not self.loops_around(n, outer) & under) | {path}

    def _kinds(self, outer: int, regions: frozenset[int]) -> Iterator[Selection]:
        kind = self.annotations[outer].kind
        first = (outer, Kind.GRID if kind is Kind.GRID else Kind.FOR)
        inner = sorted(regions - {outer})
        own = kind is not Kind.GRID and not self.strides_over_threads(outer)
        yield Selection(outer, (first, *((n, self.annotations[n].kind) for n in inner)), in_lane=own)
        if own:
            return
        leaves = [n for n in inner if n in self.loops and not self.inside(n) & regions]
        if leaves:
            kinds = dict.fromkeys(leaves, Kind.FOR_VARIABLE)
            yield Selection(outer, (first, *((n, kinds.get(n, self.annotations[n].kind)) for n in inner)))


def _is_loop(annotation: Annotation) -> bool:
    return annotation.event == MarkedShape.LOOP


def _dependent(code: Iterable[Instruction], registers: Iterable[str]) -> frozenset[str]:
    """The ``registers``, and all that the ``code`` computes from them."""
    results: dict[str, set[str]] = {}
    for s in code:
        written = {register.name for register in isa.definitions(s)}
        for name in effects.reads(s):
            results.setdefault(name, set()).update(written)
    work, found = list(registers), set[str]()
    while work:
        name = work.pop()
        if name not in found:
            found.add(name)
            work += results.get(name, ())
    return frozenset(found)


def _is_in(operand: Operand, registers: Collection[str]) -> bool:
    return isinstance(operand, Register) and operand.name in registers


def _is_size(operand: Operand, registers: Collection[str]) -> bool:
    if isinstance(operand, SpecialRegister):
        return operand.name.startswith(_SIZES)
    return isinstance(operand, Register) and operand.name in registers
