"""Candidates tried: the real passes run on each sensible selection of what could be annotated in a kernel.

Trials work on PTX in which every candidate is marked (`cccopt.source.candidates`), with a loop over blocks in each
kernel that can have one. A *trial* keeps the markers of its selection and turns them into what the pragmas would be.
One loop (``for``) or the loop over blocks (``grid``) becomes the marked one, and loops inside it become ``while``, or
``for variable`` where all inner iterations may be independent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice

from cccopt.advising.selections import Nest, Selection
from cccopt.advising.sums import sums_of
from cccopt.advising.waiting_loops import refused_as_waiting
from cccopt.ccc.function.annotations import is_annotation, without_annotations
from cccopt.ccc.function.view import view_of
from cccopt.ccc.outcome.choices import Form, Mode, Outcome
from cccopt.ccc.outcome.report import RegionReport
from cccopt.ccc.profitability.elapsed import Elapsed
from cccopt.ccc.profitability.profile import RegionProfile, RunProfile
from cccopt.ccc.profitability.region_counts import measure
from cccopt.clauses import Kind
from cccopt.diagnostic import CccError, Diagnostic, Severity
from cccopt.passes.pipeline import Options, Result, run
from cccopt.profiling.candidate_counts import CandidateCounts, issues_of
from cccopt.ptx import isa
from cccopt.ptx.ir import (
    Function,
    Instruction,
    Marker,
    Module,
    Statement,
)
from cccopt.ptx.scopes import with_unique_names

MOST, MOST_IN_LANE = 24, 8
"""The most trials of a kernel, and of one in a compilation that tries only the in-lane form: each runs the passes."""

MOST_SUMS = 4
"""The most sums of a loop that are tried: a clause has to name all their variables."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of a selection in a ``kernel``: ``reports`` if all of it is rewritten, else ``refused`` says why not.
    ``share`` is the marked loop's share of the kernel's issue slots. ``sure`` says whether `auto` rewrites all of it
    without a profile. ``profile`` is what a run counted for the regions, by their numbers.
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
        """How many times faster the marked loop is predicted to be; None if that is unknown or it stays as it is."""
        return self.loop.cost.gain if self.loop is not None and self.loop.cost is not None else None

    @property
    def gain_of_kernel(self) -> float | None:
        """The same for the whole kernel."""
        return None if self.gain is None else 1 / (1 - self.share + self.share / self.gain)


@dataclass(frozen=True, slots=True)
class KernelRun:
    """What a run counted at a kernel's candidates, the issue slots and cycles that the GPU offered while the kernel
    ran, and the number of launches (0 if unknown).
    """

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
    """The trials of a kernel of ``module``, in which candidates are marked and loops over blocks have been made.
    ``run`` is a run of this module. With ``only_in_lane``, lanes keep their own iterations in all trials. ``like``, if
    given, is the only selection that is tried.
    """
    alone = _alone(module, kernel)
    view = view_of(alone, next(f for f in alone.functions() if f.name == kernel and f.body))
    nest = Nest(view, {} if run is None else _slots(view.function, run.counts))
    alone = _named(alone, nest)
    if like is not None:
        yield _tried(alone, kernel, like, nest, run)
        return
    every = nest.in_lane_selections() if only_in_lane else nest.selections()
    for selection in islice(every, MOST_IN_LANE if only_in_lane else MOST):
        trial = _tried(alone, kernel, selection, nest, run)
        yield trial
        for summing in _with_sums(trial, nest):
            with_sums = _tried(alone, kernel, summing, nest, run)
            if is_expanded(with_sums) or (summing.over_iterations and _moves_tasks(with_sums)):
                yield with_sums


def _with_sums(trial: Trial, nest: Nest) -> Iterator[Selection]:
    """The selection of a trial with sums, if these may let more of it be rewritten. A clause must name its sums:
    without their names there is nothing to try.
    """
    selection = trial.selection
    found = []
    if trial.loop is not None and not is_expanded(trial) and selection.has(Kind.FOR_VARIABLE):
        found.append(
            replace(selection, sums=len(sums_of(selection.kinds, selection.outer, nest.annotations)))
        )
    if not selection.in_lane and selection.kinds[0][1] is Kind.FOR and not _moves_tasks(trial):
        named = sums_of(selection.kinds, selection.outer, nest.annotations, over_iterations=True)
        found.append(replace(selection, sums=len(named), over_iterations=True))
    yield from (summing for summing in found if 0 < summing.sums <= MOST_SUMS)


def _moves_tasks(trial: Trial) -> bool:
    """Whether tasks move to other lanes."""
    return trial.loop is not None and trial.loop.form is not Form.IN_LANE


def is_chosen(module: Module, kernel: str, counted: KernelRun, selection: Selection) -> bool:
    """Whether `auto` rewrites all of a selection with the counts of a run as its profile. In the carried form, it
    leaves a selection alone if one of its paths gains nothing, however large the overall gain.
    """
    alone = _alone(module, kernel)
    nest = Nest(view_of(alone, next(f for f in alone.functions() if f.name == kernel and f.body)), {})
    marked = _marked(alone, kernel, selection, nest)
    profile, _ = _profile(marked, kernel, counted)
    return _is_done(marked, selection, Options(Mode.AUTO, profile=profile))


def _alone(module: Module, kernel: str) -> Module:
    """The module without other kernels, and with marks only in this one."""
    own = (i for i in module.items if not isinstance(i, Function) or i.kind != "entry" or i.name == kernel)
    made = (without_annotations(i) if isinstance(i, Function) and i.name != kernel else i for i in own)
    return Module(tuple(made))


def _named(module: Module, nest: Nest) -> Module:
    """The module with unique names, which the passes would otherwise make anew in each trial: markers do not matter for
    that. As it is if it does not verify; each trial says so.
    """
    try:
        return with_unique_names(module) if nest.verified else module
    except CccError:
        return module


def _tried(module: Module, kernel: str, selection: Selection, nest: Nest, counted: KernelRun | None) -> Trial:
    marked = _marked(module, kernel, selection, nest)
    profile, share = (None, 1.0) if counted is None else _profile(marked, kernel, counted)
    try:
        if selection.in_lane and nest.verified and (waits := refused_as_waiting(marked, kernel)):
            return Trial(kernel, selection, refused=waits)
        result = run(marked, Options(Mode.ALWAYS, profile=profile))
    except CccError as problem:
        return Trial(kernel, selection, refused=problem.diagnostics)
    if selection.regions <= _rewritten(result):
        sure = (
            profile is None
            and _has_expanded(result.regions)
            and _is_done(marked, selection, Options(Mode.AUTO))
        )
        known = {} if profile is None else profile.functions.get(kernel, {})
        return Trial(kernel, selection, result.regions, share=share, sure=sure, profile=known)
    said = tuple(d for d in result.remarks if d.severity is not Severity.ERROR)
    return Trial(kernel, selection, refused=said)


def _rewritten(result: Result) -> frozenset[int]:
    return frozenset(report.region for report in result.regions if report.outcome is Outcome.REWRITTEN)


def _has_expanded(reports: Iterable[RegionReport]) -> bool:
    return any(report.form is Form.EXPANDED for report in reports)


def _is_done(marked: Module, selection: Selection, options: Options) -> bool:
    """Whether all of a selection that can be rewritten is rewritten with these options."""
    return selection.regions <= _rewritten(run(marked, options))


def _profile(marked: Module, kernel: str, counted: KernelRun) -> tuple[RunProfile, float]:
    """The profile of the regions of ``marked``, and their share of the kernel's issue slots."""
    function = next(f for f in marked.functions() if f.name == kernel)
    issues = issues_of(function, counted.counts)
    profile = measure(marked, issues, times={kernel: counted.time}, launches={kernel: counted.launches})
    total = sum(_slots(function, counted.counts).values())
    marked_slots = sum(region.issued for region in profile.functions.get(kernel, {}).values())
    return profile, min(marked_slots / total, 1.0) if total else 0.0


def _slots(function: Function, counts: CandidateCounts) -> dict[int, float]:
    """The issue slots of each instruction of a function, by statement."""
    body = function.body or ()
    return {
        index: isa.facts(s).slots * count.warps
        for (_, index), count in issues_of(function, counts).items()
        if isinstance(s := body[index], Instruction)
    }


def _marked(module: Module, kernel: str, selection: Selection, nest: Nest) -> Module:
    """The module with only the markers of a selection in the kernel, which say its kinds."""
    items = (
        _with(item, selection, nest) if isinstance(item, Function) and item.name == kernel else item
        for item in module.items
    )
    return Module(tuple(items))


def _with(function: Function, selection: Selection, nest: Nest) -> Function:
    """The function with only the markers of a selection, which say its kinds."""
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


def is_expanded(trial: Trial) -> bool:
    """Whether some loop of tasks is expanded, which only independent inner iterations allow."""
    return _has_expanded(trial.reports)
