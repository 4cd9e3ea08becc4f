"""Candidates tried: each sensible selection of what could be annotated in a kernel, through the real passes.

What is tried is PTX in which every candidate is marked (`cccopt.source.candidates`), with a loop over blocks in each
kernel that can have one. A *trial* leaves the markers of its selection and makes of them what the pragmas would be: of
one loop the marked one (``for``), or of the loop over blocks (``grid``); of loops inside it ``while``, or ``for
variable`` where all inner iterations may be independent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice, zip_longest

from cccopt.advising.sums import sums_of
from cccopt.advising.waiting_loops import refused_as_waiting, verified
from cccopt.analysis import effects
from cccopt.analysis.loops import Loop
from cccopt.ccc.function.annotations import Annotation, is_annotation, without_annotations
from cccopt.ccc.function.view import View, view_of
from cccopt.ccc.outcome.choices import Form, Mode, Outcome
from cccopt.ccc.outcome.report import RegionReport
from cccopt.ccc.profitability.elapsed import Elapsed
from cccopt.ccc.profitability.profile import RegionProfile, RunProfile
from cccopt.ccc.profitability.region_counts import measure
from cccopt.ccc.regions.marked_loops import loops_of
from cccopt.clauses import LOOPS_OF_TASKS, Kind, MarkedShape
from cccopt.diagnostic import CccError, Diagnostic, Severity
from cccopt.passes.pipeline import Options, Result, run
from cccopt.profiling.candidate_counts import CandidateCounts, issues_of
from cccopt.ptx import isa
from cccopt.ptx.ir import (
    Function,
    Instruction,
    Marker,
    Module,
    Operand,
    Register,
    SpecialRegister,
    Statement,
)

MOST, MOST_IN_LANE = 24, 8
"""Trials of a kernel, and those of a compilation that looks for the in-lane form: each is a run of the passes."""

MOST_SUMS = 4
"""Sums of a loop that are tried: a clause has to name as many variables as there are."""

SIZES, POSITIONS = ("%nctaid", "%ntid"), ("%ctaid", "%tid", "%laneid")
"""How the special registers begin that say how many threads and blocks there are, and which one it is."""

_MOST_PATHS = 12


@dataclass(frozen=True, slots=True)
class Selection:
    """Pragmas by the numbers of their candidates; ``outer`` is that of the marked loop or kernel. So many of its
    floating-point ``sums`` may be added up in any order (``reduce(+: ...)``). ``in_lane`` is the clause `inlane`: lanes
    keep their own iterations in order, so that nothing is promised.
    """

    outer: int
    kinds: tuple[tuple[int, Kind], ...]
    sums: int = 0
    in_lane: bool = False

    def has(self, kind: Kind) -> bool:
        """Whether a pragma of this kind is in it."""
        return any(kind is each for _, each in self.kinds)

    @property
    def regions(self) -> frozenset[int]:
        """The numbers of all candidates in it."""
        return frozenset(number for number, _ in self.kinds)


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of a selection in a ``kernel``: reports where all of it is rewritten, else why it is not. ``share``
    is that of the marked loop in the issue slots of the kernel. ``sure`` says whether `auto` rewrites all of it without
    a profile. ``profile`` is what a run counted of the regions, by their numbers.
    """

    kernel: str
    selection: Selection
    reports: tuple[RegionReport, ...] = ()
    refused: tuple[Diagnostic, ...] = ()
    share: float = 1.0
    sure: bool = False
    profile: Mapping[int, RegionProfile] = field(default_factory=dict)

    @property
    def loop(self) -> RegionReport | None:
        """The report of the marked loop."""
        return next((r for r in self.reports if r.region == self.selection.outer), None)

    @property
    def gain(self) -> float | None:
        """How many times faster the marked loop was predicted to be; None where nothing tells, or it stays as it is."""
        return self.loop.cost.gain if self.loop is not None and self.loop.cost is not None else None

    @property
    def gain_of_kernel(self) -> float | None:
        """The same of the kernel, of which the loop is a part."""
        return None if self.gain is None else 1 / (1 - self.share + self.share / self.gain)


@dataclass(frozen=True, slots=True)
class KernelRun:
    """What a run counted at a kernel's candidates, what the GPU had in its time, and its launches (0: not known)."""

    counts: CandidateCounts
    time: Elapsed
    launches: int = 0


def trials(
    module: Module,
    kernel: str,
    run: KernelRun | None = None,
    *,
    only_in_lane: bool = False,
    like: Selection | None = None,
) -> Iterator[Trial]:
    """The trials of a kernel of ``module``, in which candidates are marked and loops over blocks are made. ``run``
    is one of this module. With ``only_in_lane`` lanes keep their own iterations in all of them. ``like`` is
    the only selection that is tried, where it is given.
    """
    alone = _alone(module, kernel)
    nest = Nest(view_of(alone, next(f for f in alone.functions() if f.name == kernel and f.body)))
    if like is not None:
        yield _tried(alone, kernel, like, nest, run)
        return
    every = nest.in_lane_selections() if only_in_lane else nest.selections()
    for selection in islice(every, MOST_IN_LANE if only_in_lane else MOST):
        trial = _tried(alone, kernel, selection, nest, run)
        yield trial
        if trial.loop is not None and not is_expanded(trial) and selection.has(Kind.FOR_VARIABLE):
            # A clause must name its sums: without their names there is nothing to try.
            named = len(sums_of(selection.kinds, selection.outer, nest.annotations))
            if 0 < named <= MOST_SUMS:
                with_sums = _tried(alone, kernel, replace(selection, sums=named), nest, run)
                yield from filter(is_expanded, [with_sums])


def _alone(module: Module, kernel: str) -> Module:
    """The module without other kernels, and with marks in this one alone."""
    own = (i for i in module.items if not isinstance(i, Function) or i.kind != "entry" or i.name == kernel)
    made = (without_annotations(i) if isinstance(i, Function) and i.name != kernel else i for i in own)
    return Module(tuple(made))


def _tried(module: Module, kernel: str, selection: Selection, nest: Nest, counted: KernelRun | None) -> Trial:
    marked = Module(
        tuple(
            _with(item, selection, nest) if isinstance(item, Function) and item.name == kernel else item
            for item in module.items
        )
    )
    profile, share = (None, 1.0) if counted is None else _profile(marked, kernel, counted)
    try:
        if selection.in_lane and nest.verified and (waits := refused_as_waiting(marked, kernel)):
            return Trial(kernel, selection, refused=waits)
        result = run(marked, Options(Mode.ALWAYS, profile=profile))
    except CccError as problem:
        return Trial(kernel, selection, refused=problem.diagnostics)
    if selection.regions <= _rewritten(result):
        sure = profile is None and _may_be_sure(result, selection) and _is_done(marked, selection, Mode.AUTO)
        known = {} if profile is None else profile.functions.get(kernel, {})
        return Trial(kernel, selection, result.regions, share=share, sure=sure, profile=known)
    said = tuple(d for d in result.remarks if d.severity is not Severity.ERROR)
    return Trial(kernel, selection, refused=said)


def _rewritten(result: Result) -> frozenset[int]:
    return frozenset(report.region for report in result.regions if report.outcome is Outcome.REWRITTEN)


def _may_be_sure(result: Result, selection: Selection) -> bool:
    """Whether it has what `auto` rewrites without a profile: an expanded loop, or a branch and a loop of tasks."""
    kinds = {kind for _, kind in selection.kinds[1:]}
    branch_and_loop = bool(kinds & LOOPS_OF_TASKS) and bool(kinds - LOOPS_OF_TASKS)
    return branch_and_loop or any(report.form is Form.EXPANDED for report in result.regions)


def _is_done(marked: Module, selection: Selection, mode: Mode) -> bool:
    """Whether all of a selection, which can be rewritten, is rewritten in another mode."""
    return selection.regions <= _rewritten(run(marked, Options(mode)))


def _profile(marked: Module, kernel: str, counted: KernelRun) -> tuple[RunProfile, float]:
    """The profile of the regions of ``marked``, and their share in the issue slots of the kernel."""
    function = next(f for f in marked.functions() if f.name == kernel)
    issues = issues_of(function, counted.counts)
    profile = measure(marked, issues, times={kernel: counted.time}, launches={kernel: counted.launches})
    body = function.body or ()
    total = sum(
        isa.facts(s).slots * count.warps
        for (_, index), count in issues.items()
        if isinstance(s := body[index], Instruction)
    )
    marked_slots = sum(region.issued for region in profile.functions.get(kernel, {}).values())
    return profile, min(marked_slots / total, 1.0) if total else 0.0


def _with(function: Function, selection: Selection, nest: Nest) -> Function:
    """The function with the markers of a selection alone, which say its kinds."""
    kinds = dict(selection.kinds)
    body = (_said(s, selection, nest) for s in function.body or () if _is_in(s, kinds))
    return replace(function, body=tuple(body))


def _is_in(statement: Statement, kinds: Collection[int]) -> bool:
    return not (is_annotation(statement) and isinstance(statement, Marker) and statement.region not in kinds)


def _said(statement: Statement, selection: Selection, nest: Nest) -> Statement:
    """A begin marker of a loop with the attributes that its pragma in the selection would have."""
    if not isinstance(statement, Marker) or statement.event != "for.begin":
        return statement
    kind = dict(selection.kinds).get(statement.region)
    if kind is None:
        return statement
    kept = ("file",) if kind is nest.annotations[statement.region].kind else ("kind", "file")
    others = tuple((key, value) for key, value in statement.attributes if key not in kept)
    file = tuple((key, value) for key, value in statement.attributes if key == "file")
    said = (("variable", ""),) if kind is Kind.FOR_VARIABLE else ()
    named = ",".join(["+:sum"] * selection.sums)  # their number counts, not their names
    sums = (("reduce", named),) if named and statement.region == selection.outer else ()
    stays = (("inlane", ""),) if selection.in_lane and statement.region == selection.outer else ()
    return replace(statement, attributes=(*others, *said, *sums, *stays, *file))


@dataclass(frozen=True)
class Nest:
    """How the candidates of a function lie in each other."""

    view: View

    @cached_property
    def verified(self) -> bool:
        """As `verified`: once is enough for all selections."""
        return verified(self.view.module)

    @cached_property
    def annotations(self) -> Mapping[int, Annotation]:
        """The candidates by number."""
        return self.view.annotations

    @cached_property
    def loops(self) -> Mapping[int, tuple[Loop, ...]]:
        """The copies of each candidate that is a loop; those of which nothing is left are absent."""
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
        """The candidates of which some copy lies in the loop with this number."""
        return frozenset(
            number
            for number, begins in self.blocks.items()
            if number != loop
            for copy in self.loops[loop]
            if begins & copy.blocks - {copy.header}
        )

    def loops_around(self, number: int, outer: int) -> frozenset[int]:
        """The loops inside ``outer`` that hold a candidate."""
        return frozenset(n for n in self.inside(outer) & self.loops.keys() if number in self.inside(n))

    def loops_under(self, path: int, outer: int) -> frozenset[int]:
        """The loops inside ``outer`` into which lanes come through the beginning of a path alone."""
        dominates = self.view.dominators.dominates
        return frozenset(
            n
            for n in self.inside(outer) & self.loops.keys()
            if n != path and all(any(dominates(a, b) for a in self.blocks[path]) for b in self.blocks[n])
        )

    @cached_property
    def _sizes(self) -> frozenset[str]:
        """The registers that depend on the number of threads or blocks, and not on which thread it is."""
        return self._computed_from(SIZES) - self._computed_from(POSITIONS)

    def _computed_from(self, special: tuple[str, ...]) -> frozenset[str]:
        """The registers that depend on special registers whose names begin so."""
        found: set[str] = set()
        instructions = [s for s in self.view.body if isinstance(s, Instruction)]
        while True:
            more = {
                register.name
                for s in instructions
                if effects.reads(s) & found
                or any(r.startswith(special) for r in effects.special_registers(s))
                for register in isa.definitions(s)
            }
            if more <= found:
                return frozenset(found)
            found |= more

    def strides_over_threads(self, number: int) -> bool:
        """Whether a loop goes on by a number of threads, of a block or the grid: it is a loop over tasks."""
        inner = [loop for copies in self.loops.values() for loop in copies]
        return any(
            self._is_stride(instruction)
            for copy in self.loops[number]
            for block in copy.blocks.difference(*(i.blocks for i in inner if i.blocks < copy.blocks))
            for index in self.view.cfg.blocks[block].statements()
            if isinstance(instruction := self.view.body[index], Instruction)
        )

    def _is_stride(self, instruction: Instruction) -> bool:
        """Whether a number of threads is added to something: a sum, or ``i += gridDim.x * blockDim.x`` as one."""
        sizes = [_is_size(operand, self._sizes) for operand in instruction.operands[1:]]
        match isa.facts(instruction).arithmetic:
            case isa.Arithmetic.SUM:
                return any(sizes)
            case isa.Arithmetic.PRODUCT_SUM:
                return sizes[:2] == [True, True]
            case _:
                return False

    def outers(self) -> Iterator[int]:
        """The loops over tasks: those that stride over threads where there are some; else the loop over blocks, and the
        outermost loops in it, whose iterations are a lane's own.
        """
        outermost = list(self._outermost())
        over_tasks = [
            n
            for n, a in self.annotations.items()
            if n in self.loops and a.kind is not Kind.GRID and self.strides_over_threads(n)
        ]
        if not over_tasks:
            yield from (n for n in self.loops if self.annotations[n].kind is Kind.GRID)
        yield from over_tasks or outermost

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
        """The sensible ones of all loops over tasks by turns, so that none takes all trials."""
        by_turns = zip_longest(*(dict.fromkeys(self._selections_of(outer)) for outer in self.outers()))
        yield from (selection for turn in by_turns for selection in turn if selection is not None)

    def _selections_of(self, outer: int) -> Iterator[Selection]:
        """A path alone, with its loops, all branches, all loops, everything. A ``switch`` goes as a whole."""
        for regions in self._paths(outer):
            groups = {self.annotations[n].group for n in regions} - {0}
            regions |= {n for n in self.inside(outer) if self.annotations[n].group in groups}
            loops = frozenset[int]().union(*(self.loops_around(n, outer) for n in regions))
            yield from self._kinds(outer, regions | loops)

    def in_lane_selections(self) -> Iterator[Selection]:
        """Those of loops that can keep each lane's iterations in order, asked to do so."""
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
        for path in paths[:_MOST_PATHS]:
            yield frozenset({path})
            if path not in self.loops and (under := self.loops_under(path, outer)):
                yield under | {path}

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


def _is_size(operand: Operand, registers: Collection[str]) -> bool:
    if isinstance(operand, SpecialRegister):
        return operand.name.startswith(SIZES)
    return isinstance(operand, Register) and operand.name in registers


def is_expanded(trial: Trial) -> bool:
    """Whether some loop of tasks is expanded, which only independent inner iterations allow."""
    return any(report.form is Form.EXPANDED for report in trial.reports)
