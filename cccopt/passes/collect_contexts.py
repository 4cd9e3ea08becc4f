"""The pass that rewrites each marked region of each function, inner loops first (`cccopt.ccc.rewrite` does one region).

Safety: ASSUMES independent iterations (the pragma's word). Declines nothing yet: `auto` is `always`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cccopt.ccc import refusal
from cccopt.ccc.annotations import is_annotation
from cccopt.ccc.calls import called, static_shared_bytes
from cccopt.ccc.graph import Graph, reachable, to_body
from cccopt.ccc.legality import check, check_known
from cccopt.ccc.plan import SHARED_BYTES, PathPlan, Plan, make_plan
from cccopt.ccc.refusal import Refusal, refuse
from cccopt.ccc.regions import Region, find, housed
from cccopt.ccc.report import ContextEntry, RegionReport
from cccopt.ccc.rewrite import rewrite
from cccopt.ccc.tails import tails
from cccopt.ccc.view import View, view
from cccopt.diagnostic import Diagnostic, Severity
from cccopt.passes.options import Options
from cccopt.ptx.ir import Directive, Function, Item, Module

Outcome = tuple[Function, tuple[Diagnostic, ...], tuple[RegionReport, ...]]


def run(module: Module, options: Options) -> tuple[Module, tuple[Diagnostic, ...], tuple[RegionReport, ...]]:
    """Rewrite all marked regions of ``module``. Raises Refusal, or with ``keep_going`` leaves the function."""
    items: list[Item] = []
    remarks: list[Diagnostic] = []
    reports: list[RegionReport] = []
    views = [view(module, f) for f in module.functions() if any(is_annotation(s) for s in f.body or ())]
    at_home = frozenset(region for seen in views for region in housed(seen))
    for item in module.items:
        marked = isinstance(item, Function) and any(is_annotation(s) for s in item.body or ())
        if isinstance(item, Function) and marked and options.mode != "off":
            try:
                item, said, made = _function(module, item, options, at_home)
            except Refusal as problem:
                if not options.keep_going:
                    raise
                said = tuple(replace(d, severity=Severity.WARNING) for d in problem.diagnostics)
                made = ()
            remarks += said
            reports += made
        items.append(item)
    if reports and options.mode == "auto":
        remarks.append(
            refusal.remark(
                "CCC050",
                "`auto` rewrites whatever is legal for now, as `always` does",
                None,
                "there is no test yet of whether a rewrite pays",
                "say `--ccc=always` to mean it, or leave a pragma out where `cccopt bench` shows a loss",
            )
        )
    # Where something is rewritten, the marks of what is not go as well: nothing finds work here a second time.
    made_module = Module(tuple(_unmarked(item) for item in items) if reports else module.items)
    _check_kernels(made_module, reports)
    return made_module, tuple(remarks), tuple(reports)


def _unmarked(item: Item) -> Item:
    if not isinstance(item, Function) or item.body is None:
        return item
    return replace(item, body=tuple(s for s in item.body if not is_annotation(s)))


def _check_kernels(module: Module, reports: Sequence[RegionReport]) -> None:
    """A kernel holds the stacks of all functions that it may call, besides its own."""
    rewritten = {report.kernel: report for report in reversed(reports) if report.shared_bytes}
    for function in module.functions():
        stacks = called(module, [function.name]) & rewritten.keys() - {function.name}
        needed = static_shared_bytes(module, function) if function.kind == "entry" and stacks else 0
        if needed > SHARED_BYTES:
            place = rewritten[min(stacks)].place
            raise refuse(refusal.STACK, place, f"{needed:,}", f"{SHARED_BYTES:,}")


def _function(module: Module, function: Function, options: Options, at_home: frozenset[int]) -> Outcome:
    remarks: list[Diagnostic] = []
    reports: list[RegionReport] = []
    original = function
    while True:
        seen = view(module, function)
        found = find(seen, frozenset(report.region for report in reports), at_home)
        if function is original:
            remarks += found.remarks
        if not found.regions:
            break
        function, made, said = _region(seen, found.regions[0], options)
        reports += made
        remarks += said
        # A rewritten region has lost its markers, so that the rest is found anew in the new body.
        if not any(is_annotation(s) for s in function.body or ()):
            break
    if not reports:
        return original, tuple(remarks), ()
    return function, tuple(remarks), tuple(reports)


def _region(
    seen: View, region: Region, options: Options
) -> tuple[Function, tuple[RegionReport, ...], tuple[Diagnostic, ...]]:
    check_known(seen, region)
    moved = tails(seen, region)
    check(seen, region, moved)
    plan = make_plan(seen, region, moved, options.form)
    graph = rewrite(seen, plan)
    body = to_body(graph, seen.names)
    function = replace(
        seen.function,
        body=(*seen.names.declarations(), *body),
        directives=(*seen.function.directives, *_block_limit(seen, plan)),
    )
    return function, _reports(seen, plan, graph), plan.remarks


def _block_limit(seen: View, plan: Plan) -> tuple[Directive, ...]:
    """`block(...)` sized the stacks: a launch with a larger block must fail."""
    known = any(d.name in (".maxntid", ".reqntid") for d in seen.function.directives)
    if known or plan.region.annotation.block is None or seen.function.kind != "entry":
        return ()
    return (Directive(".maxntid", tuple(str(size) for size in plan.region.annotation.block)),)


def _reports(seen: View, plan: Plan, graph: Graph) -> tuple[RegionReport, ...]:
    form = "split" if plan.split else "idle lanes"
    region = plan.region.annotation
    number = str(region.region)
    labels = _labels(graph, ("original", "whole"), number)
    assert len(labels) == 2, "the rewritten function lost one version of its loop"
    loop = RegionReport(
        seen.function.name,
        region.region,
        region.pragma,
        region.place,
        "rewritten",
        form,
        shared_bytes=plan.stack_bytes,
        threads=plan.threads,
        labels=labels,
        name=region.name,
    )
    return (loop, *(_path_report(seen, plan, path, graph, form) for path in plan.all_paths()))


def _path_report(seen: View, plan: Plan, path: PathPlan, graph: Graph, form: str) -> RegionReport:
    annotation = path.path.annotation
    return RegionReport(
        seen.function.name,
        annotation.region,
        annotation.pragma,
        annotation.place,
        "rewritten",
        form,
        tuple(ContextEntry(i.name, i.type, i.decision, i.reason) for i in path.live_ins),
        path.stack.layout.context_bytes,
        path.stack.layout.bytes,
        plan.threads,
        _labels(graph, ("push", "store", "take", "trip", "drain"), str(path.number)),
        annotation.name,
    )


def _labels(graph: Graph, phases: tuple[str, ...], number: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    alive = reachable(graph.nodes, [graph.entry])
    kept = [node for node in graph.nodes.values() if node.name in alive]
    found = ((p, tuple(n.name for n in kept if n.phase == f"{p}_{number}")) for p in phases)
    return tuple((phase, names) for phase, names in found if names)
