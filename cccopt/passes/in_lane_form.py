"""Rewrites one marked loop in the in-lane form, in which no task moves to another lane (`cccopt.ccc.plan.in_lane`).

Safety: EXACT, except for what depends on the order in which lanes run (`cccopt.ccc.legality.in_lane`).
"""

from __future__ import annotations

from dataclasses import replace

from cccopt.ccc.codegen.in_lane import rewrite_in_lane
from cccopt.ccc.function.annotations import Annotation, without_annotations
from cccopt.ccc.function.graph import Graph
from cccopt.ccc.function.linearize import to_body
from cccopt.ccc.function.origins import Note
from cccopt.ccc.function.view import View
from cccopt.ccc.legality.in_lane import check_in_lane
from cccopt.ccc.outcome import refusal
from cccopt.ccc.outcome.choices import Form, Mode, Outcome
from cccopt.ccc.outcome.refusal import Refusal
from cccopt.ccc.outcome.report import Cost, RegionReport
from cccopt.ccc.outcome.rewritten_loop import RewrittenLoop
from cccopt.ccc.plan.in_lane import InLanePlan, make_in_lane_plan
from cccopt.ccc.profitability.decision import HOW, TOO_LITTLE_IN_LANE
from cccopt.ccc.profitability.in_lane_estimate import InLaneEstimate, estimate_in_lane
from cccopt.ccc.profitability.model import IN_LANE_GAIN, SAFE_GAIN
from cccopt.ccc.regions.marked_loops import Region
from cccopt.clauses import Kind
from cccopt.diagnostic import Diagnostic
from cccopt.passes.carried_form import to_defer
from cccopt.passes.labels import labels_of
from cccopt.passes.measured import measured
from cccopt.passes.options import Options
from cccopt.passes.refused import with_next
from cccopt.ptx.ir import Function

LONG = 400.0
"""With at least this many issue slots between two votes, tasks may move to other lanes. On an H100, lanes that wait
were faster on 24 of 33 kernels of other people's programs (docs/decisions/0023-lanes-wait-where-little-is-run.md).
"""

MANY = 8
"""The most points whose tasks move: the stacks of more points exceed shared memory, and ptxas takes a long time for
their code.
"""

NAME = "in-lane form, in which lanes wait for each other,"

_Rewritten = tuple[Function, tuple[Diagnostic, ...], tuple[RegionReport, ...]]


def preferred(
    view: View, region: Region, function: Function, options: Options, moved: float | None
) -> InLanePlan | None:
    """The plan of a loop whose tasks can only be the remainders of its iterations, if this form is legal and expected
    to be faster. It is expected to be if the warp runs fewer than `LONG` slots between two votes, or if there are more
    than `MANY` points. With a profile, which predicts the gain ``moved`` for the other form, the faster form is taken
    instead, provided that it gains at least `SAFE_GAIN` and is at least `SAFE_GAIN` times as fast as the other.
    """
    try:
        plan, numbers = _planned(view, region, function, options)
        faster = plan.visit < LONG or len(plan.marked()) - 1 > MANY
        if numbers is not None and moved is not None:
            less, more = sorted((numbers.loop.gain, moved))
            if more >= SAFE_GAIN and more >= less * SAFE_GAIN:
                faster = numbers.loop.gain > moved
        if faster:
            check_in_lane(view, region)
    except Refusal:
        return None
    return plan if faster else None


def _planned(
    view: View, region: Region, function: Function, options: Options, *, asked: bool = False
) -> tuple[InLanePlan, InLaneEstimate | None]:
    """The plan of a region: flattened if the user has ``asked`` for this form; else by cost, unless a profile shows
    that the other one is much faster. Raises Refusal as `make_in_lane_plan` does.
    """
    plan = make_in_lane_plan(view, region, flattened=asked or None)
    numbers = _numbers(view, plan, function, options)
    if asked or numbers is None:
        return plan, numbers
    others = [make_in_lane_plan(view, region, flattened=each) for each in (True, False)]
    known = [(p, n) for p in others if (n := _numbers(view, p, function, options)) is not None]
    best = max(known, key=lambda pair: pair[1].loop.gain, default=(plan, numbers))
    return best if best[1].loop.gain > SAFE_GAIN * max(numbers.loop.gain, 1.0) else (plan, numbers)


def _numbers(view: View, plan: InLanePlan, function: Function, options: Options) -> InLaneEstimate | None:
    return estimate_in_lane(view, plan, measured(view.module, function, plan.region, options))


def rewritten(
    view: View,
    region: Region,
    function: Function,
    options: Options,
    cause: Refusal | None,
    chosen: InLanePlan | None = None,
    *,
    by_cost: bool = False,
) -> _Rewritten:
    """The function with a region in the in-lane form, because of ``cause`` or because the user asks for it; under
    `auto` with only its markers removed if that is not expected to pay off. ``chosen`` is its plan if there is one
    already (`preferred`); ``by_cost``: remainders of iterations could move to other lanes, but that is not expected to
    be faster.
    """
    plan = _legal_plan(view, region, function, options, cause) if chosen is None else chosen
    numbers = _numbers(view, plan, function, options)
    if is_idle(plan):
        return _left(view, plan, numbers, function, _why_idle(plan, cause, by_cost=by_cost))
    asked = any(_mode(plan, annotation, options) == Mode.ALWAYS for _, annotation in plan.marked()[1:])
    if not asked and (numbers is None or numbers.loop.gain < IN_LANE_GAIN):
        return _left(view, plan, numbers, function, _why_declined(plan, numbers, cause, by_cost=by_cost))
    graph = rewrite_in_lane(view, plan)
    said = _remarks(plan, cause, by_cost=by_cost)
    return _function_of(view, graph), said, _reports(view, plan, graph, numbers)


def alone(view: View, region: Region) -> _Rewritten:
    """The function with a loop in this form in which all code that the source marks runs in place, without markers.
    Raises Refusal if that is not legal.
    """
    check_in_lane(view, region)
    plan = make_in_lane_plan(view, region, flattened=False)
    graph = rewrite_in_lane(view, plan)
    return _function_of(view, graph), (), _reports(view, plan, graph, None)


def _function_of(view: View, graph: Graph) -> Function:
    return replace(view.function, body=(*view.names.declarations(), *to_body(graph, view.names)))


def _mode(plan: InLanePlan, annotation: Annotation, options: Options) -> Mode:
    """``auto`` or ``always`` for one point: a clause overrides the option, the point's own clause that of its loop."""
    return annotation.mode or plan.region.annotation.mode or options.mode


def _legal_plan(
    view: View, region: Region, function: Function, options: Options, cause: Refusal | None
) -> InLanePlan:
    """The plan of a region; without a ``cause``, the user has asked for this form. If it is not legal either, raises
    the Refusal ``cause`` with the last reason added; without ``cause``, the last Refusal.
    """
    try:
        check_in_lane(view, region)
        return _planned(view, region, function, options, asked=cause is None)[0]
    except Refusal as last:
        raise last if cause is None else with_next(cause, last, NAME) from last


def is_idle(plan: InLanePlan) -> bool:
    """Whether lanes wait nowhere in a loop over blocks. In other loops they begin iterations together, which may be a
    gain; in this one, each lane of a plain warp has one iteration, and they begin it together.
    """
    inner = [point for point, _ in plan.marked()[1:]]
    return plan.region.annotation.kind == Kind.GRID and all(point in plan.in_place for point in inner)


def _left(
    view: View, plan: InLanePlan, numbers: InLaneEstimate | None, function: Function, why: Diagnostic
) -> _Rewritten:
    """The function with only the loop's markers removed."""
    reports = _declined(view, plan, numbers)
    return without_annotations(function, {report.region for report in reports}), (why,), reports


_ANYWAY = "add `inlane` to the kernel's pragma to have lanes wait anyway"


def _why_idle(plan: InLanePlan, cause: Refusal | None, *, by_cost: bool) -> Diagnostic:
    """Why a loop in which no lane would wait stays as it is."""
    reason = "waiting in the marked code would save less than votes cost"
    return refusal.remark(
        "CCC054",
        "this kernel stays as it is: no marked path costs enough for lanes to wait at it",
        plan.region.annotation.place,
        "; ".join(filter(None, (_why_here(cause, by_cost=by_cost), reason))),
        "; ".join(filter(None, (_ANYWAY, _to_defer(cause, by_cost=by_cost)))),
        _notes(cause),
    )


def _to_defer(cause: Refusal | None, *, by_cost: bool) -> str:
    """What would let a path be deferred alone, where the rest of each iteration could be."""
    return to_defer(cause) if cause is not None and by_cost else ""


def _why_here(cause: Refusal | None, *, by_cost: bool) -> str:
    """Why no task moves to another lane; empty if the user asks for that."""
    if cause is None:
        return ""
    first = cause.diagnostics[0]
    if by_cost:
        return (
            f"a path cannot be deferred by itself: {first.message} ({first.code}); the rest of each iteration"
            " could move to another lane (`--ccc-form=carried`), but letting lanes wait is expected to be faster"
        )
    return f"tasks cannot move to other lanes: {first.message} ({first.code}); {first.why}"


def _notes(cause: Refusal | None) -> tuple[Note, ...]:
    """The lines to which `_why_here` refers."""
    return () if cause is None else cause.diagnostics[0].notes


def _remarks(plan: InLanePlan, cause: Refusal | None, *, by_cost: bool) -> tuple[Diagnostic, ...]:
    """Why no task moves, and which clauses and pragmas have no effect."""
    annotation = plan.region.annotation
    why = _why_here(cause, by_cost=by_cost)
    # A user who wrote `block` may not have meant this form: the clause sizes stacks, and there are none.
    clauses = {
        "block": annotation.block is not None and cause is None,
        "collect": annotation.collect is not None,
    }
    without = [f"`{clause}` has no effect in this form" for clause, given in clauses.items() if given]
    in_place = [
        f"the code marked `{a.pragma}` at line {a.place.position.line} is run in place: waiting there would save less"
        " than votes cost"
        for a in dict.fromkeys(p.annotation for p in plan.in_place)
        if a is not None and a.place is not None
    ]
    if cause is None and not without and not in_place:
        return ()
    waits = any(point not in plan.in_place for point, _ in plan.marked()[1:])
    helps = (
        "remove the clauses that have no effect" if without else "",
        "remove the pragmas of code that is run in place" if in_place and waits else "",
        _to_defer(cause, by_cost=by_cost),
    )
    help = "; ".join(filter(None, helps))
    why = "; ".join(filter(None, (why, *without, *in_place)))
    message = "each lane of this loop runs its own iterations, and waits where others can catch up"
    if not plan.flattened:
        message += "; lanes begin them together"
    return (refusal.remark("CCC028", message, annotation.place, why, help, _notes(cause)),)


def _why_declined(
    plan: InLanePlan, numbers: InLaneEstimate | None, cause: Refusal | None, *, by_cost: bool
) -> Diagnostic:
    """Why `auto` leaves the loop as it is."""
    verdict, help = "is not known to pay off", HOW
    if numbers is None:
        gain = "no profile shows how many lanes run the loop's paths together"
    else:
        gain = f"in the in-lane form, it is predicted to be {numbers.loop.gain:.2f}x as fast"
        verdict, help = "would make it slower", ""
        if numbers.loop.gain > 1:
            gain += f", but {TOO_LITTLE_IN_LANE}"
            verdict, help = "may not pay off", "add `always` to the pragma to rewrite it anyway"
    why = "; ".join(filter(None, (_why_here(cause, by_cost=by_cost), gain)))
    message = f"the marked loop stays as it is: the in-lane form, in which lanes wait, {verdict}"
    return refusal.remark("CCC050", message, plan.region.annotation.place, why, help, _notes(cause))


def _declined(view: View, plan: InLanePlan, numbers: InLaneEstimate | None) -> tuple[RegionReport, ...]:
    """The reports of a loop and its points that stay as they are."""
    costs = zip(plan.marked(), _costs(plan, numbers), strict=True)
    return tuple(_report(view, annotation, cost, Outcome.DECLINED) for (_, annotation), cost in costs)


def _costs(plan: InLanePlan, numbers: InLaneEstimate | None) -> tuple[Cost | None, ...]:
    """What the loop and its points cost, as far as that is known."""
    return (None,) * len(plan.marked()) if numbers is None else (numbers.loop, *numbers.points)


def _report(view: View, a: Annotation, cost: Cost | None, outcome: Outcome) -> RegionReport:
    return RegionReport(view.function.name, a.region, a.pragma, a.place, outcome, name=a.name, cost=cost)


def _reports(
    view: View, plan: InLanePlan, graph: Graph, numbers: InLaneEstimate | None
) -> tuple[RegionReport, ...]:
    """What became of the loop and its points."""
    region = plan.region.annotation
    labels = labels_of(graph, ("enter", "done"), str(region.region))
    (entry,) = dict(labels)["enter"]
    found: list[RegionReport] = []
    for (point, annotation), cost in zip(plan.marked(), _costs(plan, numbers), strict=True):
        report = _report(view, annotation, cost, Outcome.REWRITTEN)
        served = labels_of(graph, ("serve",), str(point.number))
        in_place = point in plan.in_place
        found.append(replace(report, form=Form.IN_LANE, labels=served, in_place=in_place))
    code = RewrittenLoop(
        region.region, region.place, entry, "", 0, frozenset(), (), frozenset(), lanes=plan.lanes.name
    )
    loop = replace(found[0], labels=(*labels, *found[0].labels), code=code)
    return (loop, *found[1:])
