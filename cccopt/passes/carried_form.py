"""Rewrites one marked loop in the carried form, if a path alone cannot be deferred (`cccopt.ccc.legality.carrying`).

Safety: ASSUMES independent iterations, as the pragma says; order inside an iteration is kept.
"""

from __future__ import annotations

from dataclasses import replace

from cccopt.ccc.function.calls import static_shared_bytes
from cccopt.ccc.function.graph import Graph
from cccopt.ccc.function.view import View
from cccopt.ccc.legality.carried_region import CarriedRegion, carried_region
from cccopt.ccc.legality.region_analysis import RegionAnalysis
from cccopt.ccc.legality.remedies import REMOVAL
from cccopt.ccc.legality.rules import check_carried
from cccopt.ccc.outcome import refusal
from cccopt.ccc.outcome.choices import Form, Outcome
from cccopt.ccc.outcome.refusal import Refusal
from cccopt.ccc.outcome.report import ContextEntry, Cost, RegionReport
from cccopt.ccc.outcome.rewritten_loop import RewrittenLoop, TaskStack
from cccopt.ccc.plan.carried import CarriedPlan, make_carried_plan
from cccopt.ccc.plan.empty_tasks import GONE
from cccopt.ccc.plan.stack_room import StackOptions
from cccopt.ccc.profitability.decision import NOTHING, resident_threads
from cccopt.ccc.regions.marked_loops import Region
from cccopt.ccc.regions.paths import Path
from cccopt.diagnostic import Diagnostic
from cccopt.passes.labels import entry_of, labels_of
from cccopt.passes.refused import with_next

UNMEASURED = (
    "no profile shows how often lanes take the loop's paths, and without one the carried form may lose more than it"
    " gains"
)
"""Why `auto` leaves a loop as it is if it could be rewritten only in this form."""


def all_or_none(path: Path) -> str:
    """Why `auto` leaves a loop as it is if this one of its paths gains nothing."""
    annotation = path.annotation
    where = "" if annotation.place is None else f" at line {annotation.place.position.line}"
    return (
        "the rest of an iteration can wait at all marked paths or at none, and nothing is gained at the"
        f" `{annotation.kind}`{where}"
    )


def carried(
    analysis: RegionAnalysis, cause: Refusal | None, stacks: StackOptions
) -> tuple[CarriedRegion, CarriedPlan]:
    """The region in the carried form, and its plan. If this form is not legal either, raises the Refusal ``cause`` with
    the second reason added; without ``cause``, the second Refusal.
    """
    try:
        region = carried_region(analysis)
        check_carried(region)
        return region, make_carried_plan(region, stacks)
    except Refusal as second:
        raise second if cause is None else _both(cause, second) from second


_OUT = "out of the path"


def _both(cause: Refusal, second: Refusal) -> Refusal:
    if {r.diagnostics[0].code for r in (cause, second)} == {refusal.LOCAL.code, refusal.LOCAL_TOKEN.code}:
        return second
    first, *others = second.diagnostics
    help = first.help.replace(_OUT, f"{_OUT} and out of the code that follows it in its iteration")
    second = Refusal(replace(first, message=_of_token(first.message), help=help), *others)
    return with_next(cause, second, "carried form, in which the rest of the iteration waits with the path,")


def _of_token(message: str) -> str:
    """What is said of a marked path, said of the rest of its iteration."""
    if message == refusal.MEMORY.message:
        return "a task and the code that decides whether the loop ends may touch the same memory"
    path = "the marked path "
    if message.startswith(path) and not message.startswith(f"{path}and "):
        return f"the marked path, or what follows it in its iteration, {message.removeprefix(path)}"
    return message


def remarks(region: Region, cause: Refusal | None) -> tuple[Diagnostic, ...]:
    """Why a path alone could not be a task."""
    if cause is None:
        return ()
    first = cause.diagnostics[0]
    return (
        refusal.remark(
            "CCC028",
            "each task of this loop is the rest of an iteration",
            region.annotation.place,
            f"a path cannot be deferred by itself: {first.message} ({first.code})",
            to_defer(cause),
            first.notes,
        ),
    )


def to_defer(cause: Refusal) -> str:
    """What would let a path be deferred alone, which ``cause`` does not; empty if nothing is known to."""
    help = cause.diagnostics[0].help.removesuffix(REMOVAL).removesuffix("; or ")
    return f"to defer the path by itself, {help}" if help else ""


def left_out(
    view: View, region: Region, carried: CarriedRegion
) -> tuple[tuple[Diagnostic, ...], tuple[RegionReport, ...]]:
    """What is said of the marked code of ``region`` of which the compiler has left nothing, and what became of it."""
    kept = {point.annotation.region for point in carried.region.points}
    gone = {p.annotation.region: p.annotation for p in region.points if p.annotation.region not in kept}
    said = tuple(refusal.remark("CCC054", NOTHING, a.place, GONE) for a in gone.values())
    name = view.function.name
    made = (
        RegionReport(name, a.region, a.pragma, a.place, Outcome.DECLINED, name=a.name) for a in gone.values()
    )
    return said, tuple(made)


def reports(
    view: View, plan: CarriedPlan, graph: Graph, loop: RegionReport, costs: tuple[Cost, ...]
) -> tuple[RegionReport, ...]:
    """What became of the loop, whose report so far is ``loop``, and of its points with their ``costs``."""
    region = plan.region
    labels = labels_of(graph, ("original", "whole"), str(region.annotation.region))
    assert len(labels) == 2, "the rewritten function lost one version of its loop"
    own = static_shared_bytes(view.module, view.function)
    made = replace(
        loop,
        outcome=Outcome.REWRITTEN,
        form=Form.CARRIED,
        shared_bytes=plan.stack_bytes,
        global_bytes=0 if plan.claim is None else plan.claim.pool.entry_bytes,
        threads=plan.threads,
        labels=labels,
        resident=resident_threads(plan.stack_bytes + own, plan.threads),
        code=_code(plan, graph),
    )
    found = [made]
    for point, cost in zip(plan.points, costs, strict=True):
        annotation = point.path.annotation
        found.append(
            RegionReport(
                view.function.name,
                annotation.region,
                annotation.pragma,
                annotation.place,
                Outcome.REWRITTEN,
                Form.CARRIED,
                tuple(ContextEntry(i.name, i.type, i.decision, i.reason) for i in point.live_ins),
                point.context_bytes,
                point.stack.shared_bytes,
                point.stack.global_bytes,
                plan.threads,
                labels_of(graph, ("push", "take"), str(point.number)),
                annotation.name,
                cost,
            )
        )
    return tuple(found)


def _code(plan: CarriedPlan, graph: Graph) -> RewrittenLoop:
    annotation = plan.region.annotation
    owners = [plan.slots.address.name, *([plan.owner.name] if plan.owner is not None else [])]
    layouts = [(p.stack.layout, p.top.name) for p in plan.points]
    return RewrittenLoop(
        annotation.region,
        annotation.place,
        entry_of(graph, str(annotation.region)),
        plan.stack_name,
        plan.slots.bytes,
        frozenset(owners),
        tuple(TaskStack(w.start, w.start + w.bytes, name) for w, name in layouts),
        frozenset(),
        None if plan.claim is None else plan.claim.pool,
    )
