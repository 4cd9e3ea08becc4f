"""The reports of a marked loop and of its paths: what became of each, in which form, with what context and cost."""

from __future__ import annotations

from dataclasses import replace

from cccopt.ccc.function.calls import static_shared_bytes
from cccopt.ccc.function.graph import Graph
from cccopt.ccc.function.view import View
from cccopt.ccc.outcome.choices import Form, Outcome
from cccopt.ccc.outcome.report import ContextEntry, RegionReport
from cccopt.ccc.outcome.rewritten_loop import RewrittenLoop, TaskStack
from cccopt.ccc.plan.plan import PathPlan, Plan
from cccopt.ccc.profitability.decision import Decision, resident_threads
from cccopt.ccc.regions.marked_loops import Region
from cccopt.passes.labels import entry_of, labels_of


def detached_reports(
    view: View, plan: Plan, graph: Graph, region: Region, decision: Decision
) -> tuple[RegionReport, ...]:
    """The reports of a region whose paths alone are tasks, except those of paths that stay in the loop."""
    form = Form.SPLIT if plan.split else Form.IDLE_LANES
    labels = labels_of(graph, ("original", "whole"), str(region.annotation.region))
    assert len(labels) == 2, "the rewritten function lost one version of its loop"
    loop = replace(
        loop_report(view, region, decision),
        outcome=Outcome.REWRITTEN,
        form=form,
        shared_bytes=plan.stack_bytes,
        global_bytes=0 if plan.claim is None else plan.claim.pool.entry_bytes,
        threads=plan.threads,
        labels=labels,
        resident=resident_threads(
            plan.stack_bytes + static_shared_bytes(view.module, view.function), plan.threads
        ),
        code=_code(view, plan, graph),
    )
    keys = {path.begin: key for key, path in enumerate(region.all_paths())}
    return (
        loop,
        *(_path_report(view, plan, p, graph, form, decision, keys[p.path.begin]) for p in plan.all_paths()),
    )


def _code(view: View, plan: Plan, graph: Graph) -> RewrittenLoop:
    """What the check of the output needs to know of the rewritten loop."""
    region = plan.region.annotation
    alone = [(p.stack.layout, p.top.name, 0) for p in plan.all_paths() if plan.has_stack(p)]
    shared = [(s.stack.layout, s.waiting.name, len(s.paths)) for s in plan.sortings]
    windows = (labels_of(graph, ("trip",), str(p.number)) for p in plan.all_paths() if p.counted)
    return RewrittenLoop(
        region.region,
        region.place,
        entry_of(graph, str(region.region)),
        plan.stack_name,
        plan.slots.bytes,
        frozenset(
            [
                plan.slots.address.name,
                *(p.results.owner.name for p in plan.all_paths() if p.results.owner is not None),
            ]
        ),
        tuple(TaskStack(w.start, w.start + w.bytes, name, paths) for w, name, paths in (*alone, *shared)),
        frozenset(label for found in windows for _, labels in found for label in labels),
        None if plan.claim is None else plan.claim.pool,
    )


def loop_report(view: View, region: Region, decision: Decision) -> RegionReport:
    """The report of a marked loop, as if it stayed as it is."""
    a = region.annotation
    return RegionReport(
        view.function.name, a.region, a.pragma, a.place, Outcome.DECLINED, name=a.name, cost=decision.loop
    )


def left_alone(
    view: View, region: Region, decision: Decision, everything: frozenset[int]
) -> tuple[RegionReport, ...]:
    """The reports of the paths that are left in their loop."""
    paths = [(path.annotation, decision.costs[key]) for key, path in enumerate(region.all_paths())]
    return tuple(
        RegionReport(
            view.function.name, a.region, a.pragma, a.place, Outcome.DECLINED, name=a.name, cost=cost
        )
        for key, (a, cost) in enumerate(paths)
        if key in everything - decision.chosen
    )


def _path_report(
    view: View, plan: Plan, path: PathPlan, graph: Graph, form: Form, decision: Decision, key: int
) -> RegionReport:
    annotation = path.path.annotation
    return RegionReport(
        view.function.name,
        annotation.region,
        annotation.pragma,
        annotation.place,
        Outcome.REWRITTEN,
        form if path.counted is None else Form.EXPANDED,
        tuple(ContextEntry(i.name, i.type, i.decision, i.reason) for i in path.context.live_ins),
        path.stack.layout.context_bytes,
        path.stack.shared_bytes,
        path.stack.global_bytes,
        plan.threads,
        labels_of(graph, ("push", "expand", "take", "trip", "drain"), str(path.number)),
        annotation.name,
        decision.costs[key],
        unrolled=decision.unrolled.get(key, 0),
    )
