"""What to annotate in a file: the best trial of each kernel, ranked by the time that it is predicted to save.

With counts of a run (`--ccc-candidates` with `--ccc-instrument` or `cccopt emulate`) gains are predicted as `auto`
predicts them. Without a run, gains are predicted only for the loops for which `auto` needs no profile
(`cccopt.ccc.profitability.unprofiled`); nothing is predicted for the others.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TypeGuard

from cccopt.advising.engagement import engagement
from cccopt.advising.garbage import seldom_collected
from cccopt.advising.independence import judgement_of
from cccopt.advising.pragmas import (
    PROMISES,
    SUMS,
    Pragma,
    can_be_written,
    common_block,
    pragmas_of,
    with_bounds,
)
from cccopt.advising.preferences import alternatives, best_chosen, pays, surest
from cccopt.advising.recursions import refused_recursion
from cccopt.advising.selections import Selection
from cccopt.advising.trials import KernelRun, Trial, is_chosen, trials
from cccopt.ccc.function.annotations import Annotation, annotations_of, begins_annotation
from cccopt.ccc.function.calls import called
from cccopt.ccc.function.view import view_of
from cccopt.ccc.legality.independence import Judgement, State
from cccopt.ccc.profitability.elapsed import Elapsed
from cccopt.ccc.profitability.model import LEAST_GAIN, USUAL_ERROR
from cccopt.clauses import LOOPS_OF_TASKS, Kind, MarkedShape
from cccopt.diagnostic import Diagnostic
from cccopt.driver import marked_ptx
from cccopt.passes.counting.bounds import is_bounded
from cccopt.passes.pipeline import prepared
from cccopt.profiling.elapsed import elapsed_on
from cccopt.profiling.names import shown
from cccopt.profiling.run_file import RunFile
from cccopt.ptx.ir import Function, Item, Marker, Module
from cccopt.ptx.parser import parse
from cccopt.workers.each import each


@dataclass(frozen=True, slots=True)
class Advice:
    """The advice on a kernel: the ``best`` of the trials that were ``tried``, and its ``pragmas``.

    ``unit`` is the source that was compiled. ``gain`` is the kernel's predicted gain, None if it is unknown; ``pays``
    says whether `auto` rewrites it then. ``time_ns`` is the kernel's time in the run. A kernel without ``best`` has
    only refusals. ``judgements`` are those of the ``pragmas`` that promise independent iterations. ``engagement`` is a
    call to CTE that could equally well replace the inner loop; empty unless one certainly could. With counts of a run,
    ``alternatives`` are other annotations of the kernel that are worth measuring.
    """

    unit: str
    kernel: str
    shown: str
    best: Trial | None
    pragmas: tuple[Pragma, ...]
    gain: float | None
    pays: bool
    time_ns: int | None
    tried: tuple[Trial, ...]
    judgements: tuple[tuple[Pragma, Judgement], ...] = ()
    engagement: str = ""
    alternatives: tuple[Advice, ...] = ()

    @property
    def may_pay(self) -> bool:
        """Whether it is predicted to gain, but `auto` rewrites it only if a gain was measured."""
        return not self.pays and (self.gain or 0) >= LEAST_GAIN

    @property
    def gains_enough(self) -> bool:
        """Whether the predicted gain is large enough for `auto`, which may leave part of it alone nevertheless."""
        return self.gain is not None and self.best is not None and pays(self.best)

    @property
    def gain_range(self) -> tuple[float, float] | None:
        """The gains within `USUAL_ERROR` of the predicted one, if that is predicted from the counts of a run."""
        counted = self.best is not None and bool(self.best.profile)
        return (self.gain / USUAL_ERROR, self.gain * USUAL_ERROR) if self.gain and counted else None

    @property
    def contradicted(self) -> bool:
        """Whether the code breaks a promise that its pragmas make."""
        return any(judgement.state is State.CONTRADICTED for _, judgement in self.judgements)

    @property
    def saved_ns(self) -> float | None:
        """The time that is predicted to be saved."""
        known = self.time_ns is not None and self.gain is not None
        return self.time_ns * (1 - 1 / self.gain) if known else None  # type: ignore[operator]

    @property
    def refusals(self) -> tuple[Diagnostic, ...]:
        """Why selections cannot be rewritten, each reason once."""
        return tuple(dict.fromkeys(d for trial in self.tried for d in trial.refused))


_LARGE = 1000
"""With fewer statements in all kernels of a file, starting processes takes longer than the trials."""


def advise_on_source(
    source: str | os.PathLike[str],
    *,
    arch: str = "sm_90",
    nvcc_options: Sequence[str] = (),
    apart: bool = False,
) -> tuple[Advice, ...]:
    """The advice on each kernel of a CUDA file that could be annotated, from the code alone. With ``apart``, kernels of
    large files are tried side by side, in processes of their own.

    Raises CccError with nvcc's own messages (CCC085).
    """
    text = marked_ptx(source, arch=arch, nvcc_options=(*nvcc_options, "-lineinfo"), candidates=True)
    module, unit = _without_others(parse(text)), os.fspath(source)
    made = prepared(module)
    without_loop = [f.name for f in made.functions() if _is_kernel(f) and not _has_candidates(f)]
    refused = [trial for name in without_loop if (trial := refused_recursion(module, name)) is not None]
    advised = _advise(unit, made, {}, {}, apart=apart)
    return (*advised, *(_advice(unit, t.kernel, (t,), {}, None, None) for t in refused))


def _without_others(module: Module) -> Module:
    """The module without the kernels that have nothing to annotate, such as those of libraries. A kernel that calls a
    marked function stays, because the function may be inlined.
    """
    marked = {f.name for f in module.functions() if not _is_kernel(f) and annotations_of(f.body or ())}

    def stays(item: Item) -> bool:
        if not _is_kernel(item) or _has_candidates(item):
            return True
        return bool(marked) and not marked.isdisjoint(called(module, [item.name]))

    return Module(tuple(filter(stays, module.items)))


def _is_kernel(item: Item) -> TypeGuard[Function]:
    return isinstance(item, Function) and item.kind == "entry"


def _has_candidates(kernel: Function) -> bool:
    """Whether something in a kernel could be annotated, not just the kernel itself."""
    return len({s.region for s in kernel.body or () if isinstance(s, Marker) and begins_annotation(s)}) > 1


def advise_on_run(run: RunFile, *, only_in_lane: bool = False, apart: bool = False) -> tuple[Advice, ...]:
    """Advice on each kernel of a program that was built with candidates marked: from the counts of a run, or from the
    code alone for kernels that did not run. ``only_in_lane`` restricts it to what needs no promise, ``apart`` is as for
    `advise_on_source`.

    Raises ValueError if the run is damaged.
    """
    times = {f.name: f.time_ns for f in run.functions if f.kernel}
    launches = {f.name: f.launches or 0 for f in run.functions if f.kernel}
    blocks = {f.name: f.block for f in run.functions if f.kernel and f.block}
    elapsed = _elapsed(run)
    return tuple(
        advice
        for unit in run.candidates
        for advice in _advise(
            unit.unit,
            parse(unit.ptx),
            {
                c.name: KernelRun(c, elapsed.get(c.name, Elapsed()), launches.get(c.name, 0))
                for c in unit.functions
            },
            times,
            only_in_lane,
            blocks,
            apart=apart,
        )
    )


def _elapsed(run: RunFile) -> dict[str, Elapsed]:
    """The issue slots and cycles that the GPU had while each kernel ran, from one timed run on one GPU; they are
    unknown for kernels with the same name.
    """
    if len(run.hardware) != 1 or run.runs != 1:
        return {}
    (on,) = run.hardware
    named = Counter(f.name for f in run.functions if f.kernel)
    return {
        f.name: elapsed_on(on, f.time_ns, f.launches, f.launched)
        for f in run.functions
        if f.kernel and named[f.name] == 1 and f.time_ns and f.launches and f.launched
    }


def _advise(
    unit: str,
    module: Module,
    runs: Mapping[str, KernelRun],
    times: Mapping[str, int | None],
    only_in_lane: bool = False,
    blocks: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
    *,
    apart: bool = False,
) -> tuple[Advice, ...]:
    said = _blocks(module, blocks)
    module = with_bounds(module, said)
    alike: dict[tuple[int, ...], list[str]] = {}
    size = 0
    for function in module.functions():
        if _is_kernel(function) and _has_candidates(function):
            alike.setdefault(tuple(annotations_of(function.body or ())), []).append(function.name)
            size += len(function.body or ())
    work = [
        _Alike(
            unit,
            _with_kernels(module, names),
            {name: runs[name] for name in names if name in runs},
            {name: times.get(name) for name in names},
            {name: said.get(name, ()) for name in names},
            only_in_lane,
        )
        for names in alike.values()
    ]
    found = each(_advise_alike, [(one,) for one in work], apart=apart and size >= _LARGE)
    by_name = {advice.kernel: advice for advices in found for advice in advices}
    return tuple(by_name[f.name] for f in module.functions() if f.name in by_name and f.body is not None)


@dataclass(frozen=True, slots=True)
class _Alike:
    """The kernels of a ``module``, which have the same annotations, with what is known about each."""

    unit: str
    module: Module
    runs: Mapping[str, KernelRun]
    times: Mapping[str, int | None]
    blocks: Mapping[str, tuple[int, ...]]
    only_in_lane: bool


def _with_kernels(module: Module, names: Collection[str]) -> Module:
    """The module without kernels other than these."""
    return Module(tuple(i for i in module.items if not _is_kernel(i) or i.name in names))


def _advise_alike(alike: _Alike) -> tuple[Advice, ...]:
    """Advice on kernels with the same annotations, which are of one template: only what is best for one is tried for
    the others.
    """
    with seldom_collected():
        return tuple(_each_advice(alike))


def _each_advice(alike: _Alike) -> Iterator[Advice]:
    module, runs, only_in_lane = alike.module, alike.runs, alike.only_in_lane
    best: Selection | None = None
    for function in module.functions():
        if not _is_kernel(function) or function.body is None:
            continue
        annotations = annotations_of(function.body)
        name = function.name
        like = best if name not in runs else None
        tried = () if like is None else tuple(trials(module, name, like=like, only_in_lane=only_in_lane))
        if not any(trial.loop is not None for trial in tried):
            tried = tuple(trials(module, name, runs.get(name), only_in_lane=only_in_lane))
        source = _source(alike.unit, annotations)
        chosen = partial(is_chosen, module, name, runs[name]) if name in runs else None
        advice = _advice(source, name, tried, annotations, chosen, alike.times[name], alike.blocks[name])
        if best is None and advice.best is not None:
            best = advice.best.selection
        yield advice if only_in_lane else _judged(advice, module, function)


def _blocks(module: Module, blocks: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """The largest blocks with which kernels without bounds were launched. Kernels of one template, which have the same
    annotations, get a block as large as all of them need.
    """
    alike: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for function in module.functions():
        if _is_kernel(function) and _has_candidates(function) and not is_bounded(function):
            alike[tuple(annotations_of(function.body or ()))].append(function.name)
    known = ((names, common_block([blocks.get(name, ()) for name in names])) for names in alike.values())
    return {name: block for names, block in known if block for name in names}


def _judged(advice: Advice, module: Module, function: Function) -> Advice:
    """The advice with what is known about its promises, and with the call of CTE that would do equally well."""
    others = tuple(_judged(other, module, function) for other in advice.alternatives)
    advice = replace(advice, alternatives=others)
    loops = [p for p in advice.pragmas if p.kind in PROMISES or p.kind in LOOPS_OF_TASKS]
    if not loops or loops[0].in_lane:
        return advice
    view = view_of(module, function)
    judgements: dict[tuple[Pragma, Judgement], None] = {}
    tasks: dict[Pragma, State] = {}
    for annotation in view.annotations.values():
        pragma = next((p for p in loops if _is_of(p, annotation)), None)
        if pragma is not None and pragma.kind in PROMISES:
            judgements[pragma, judgement_of(view, annotation, pragma.kind)] = None
        if pragma is not None and pragma.kind in LOOPS_OF_TASKS:
            tasks[pragma] = judgement_of(view, annotation, Kind.FOR_VARIABLE).state
    call = engagement(loops[0].place, loops[1].place) if [*tasks.values()] == [State.PROVEN] else ""
    return replace(advice, judgements=tuple(judgements), engagement=call)


def _is_of(pragma: Pragma, annotation: Annotation) -> bool:
    """Whether a candidate is a loop and this is its pragma."""
    grid = annotation.kind is Kind.GRID
    return (
        annotation.event == MarkedShape.LOOP
        and annotation.place == pragma.place
        and grid == (pragma.kind is Kind.GRID)
    )


def _source(unit: str, annotations: Mapping[int, Annotation]) -> str:
    """The source of a unit. The emulator runs PTX, whose annotations say where the kernel comes from."""
    if not unit.endswith(".ptx"):
        return unit
    return next((a.place.file for a in annotations.values() if a.place is not None), unit)


def _advice(
    unit: str,
    kernel: str,
    tried: tuple[Trial, ...],
    annotations: Mapping[int, Annotation],
    chosen: Callable[[Selection], bool] | None,
    time_ns: int | None,
    block: tuple[int, ...] = (),
) -> Advice:
    accepted = [trial for trial in tried if trial.loop is not None and can_be_written(trial, annotations)]
    best, is_best_chosen = surest(accepted) if chosen is None else best_chosen(accepted, chosen)
    others = alternatives(accepted, best) if chosen is not None and best is not None else []

    def of(trial: Trial | None, does_pay: bool) -> Advice:
        known = trial is not None and (chosen is not None or trial.sure)
        return Advice(
            unit,
            kernel,
            shown(kernel),
            trial,
            () if trial is None else tuple(pragmas_of(trial, annotations, block)),
            trial.gain_of_kernel if trial is not None and known else None,
            does_pay,
            time_ns,
            tried,
        )

    return replace(of(best, is_best_chosen), alternatives=tuple(of(trial, False) for trial in others))


def promises_of(advice: Advice) -> Sequence[tuple[Pragma, str]]:
    """What the user vouches for by writing the pragmas."""
    made = [(p, PROMISES[p.kind]) for p in advice.pragmas if p.kind in PROMISES and not p.in_lane]
    return [*made, *((p, SUMS) for p in advice.pragmas if p.sums)]


def ranked(found: Iterable[Advice]) -> list[Advice]:
    """What pays first, then what may pay, each by the time saved, then by the gain."""
    return sorted(
        found, key=lambda a: (not a.pays, not a.may_pay, -(a.saved_ns or 0), -(a.gain or 0), a.shown)
    )
