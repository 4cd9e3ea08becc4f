"""The pass that rewrites each marked loop of each function, inner ones first (each by `cccopt.ccc.codegen.rewrite`).

Safety: ASSUMES independent iterations, as the pragma says. Under `auto` it declines what is not expected to pay off
(`cccopt.ccc.profitability.decision`): a declined path stays in its loop, and a loop without other paths stays as it
was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cccopt.ccc.codegen.carried import rewrite_carried
from cccopt.ccc.codegen.rewrite import rewrite
from cccopt.ccc.function.annotations import is_annotation, without_annotations
from cccopt.ccc.function.calls import called, static_shared_bytes
from cccopt.ccc.function.graph import Graph
from cccopt.ccc.function.linearize import to_body
from cccopt.ccc.function.view import View, view_of
from cccopt.ccc.legality.region_analysis import RegionAnalysis
from cccopt.ccc.legality.rules import check
from cccopt.ccc.outcome import refusal
from cccopt.ccc.outcome.choices import Form, Mode, Outcome, StackMemory
from cccopt.ccc.outcome.refusal import Refusal, refuse
from cccopt.ccc.outcome.report import RegionReport
from cccopt.ccc.plan.block_size import SHARED_BYTES, block_limit, block_threads
from cccopt.ccc.plan.empty_tasks import empty_tasks
from cccopt.ccc.plan.plan import Plan
from cccopt.ccc.plan.planning import legal_plan, make_plan
from cccopt.ccc.plan.pool import check_pools, with_pools
from cccopt.ccc.plan.stack_room import StackOptions
from cccopt.ccc.profitability.carried_estimate import estimate_carried
from cccopt.ccc.profitability.decision import (
    Decision,
    decide,
    mode_of,
    pruned,
    room_for_stacks,
)
from cccopt.ccc.profitability.decision import remarks as remarks_of
from cccopt.ccc.profitability.estimate import estimate
from cccopt.ccc.profitability.model import SAFE_GAIN
from cccopt.ccc.profitability.unrolled import unrolled_loops
from cccopt.ccc.regions.marked_loops import Region, annotations_in_loops, find, related
from cccopt.diagnostic import Diagnostic
from cccopt.passes import carried_form, in_lane_form
from cccopt.passes.measured import measured, trips
from cccopt.passes.options import Options
from cccopt.passes.profile_fit import misfits
from cccopt.passes.refused import left
from cccopt.passes.region_reports import detached_reports, left_alone, loop_report
from cccopt.passes.result import PassResult
from cccopt.ptx.ir import Function, Item, Module

_Rewritten = tuple[Function, tuple[Diagnostic, ...], tuple[RegionReport, ...]]


def run(module: Module, options: Options) -> PassResult:
    """Rewrite all marked regions of ``module``. Functions with refused regions stay as they were
    (`cccopt.passes.refused`).
    """
    items: list[Item] = []
    remarks: list[Diagnostic] = []
    reports: list[RegionReport] = []
    marked = (f for f in module.functions() if any(is_annotation(s) for s in f.body or ()))
    views = {f.name: view_of(module, f) for f in marked}
    in_loops = frozenset(region for view in views.values() for region in annotations_in_loops(view))
    for item in module.items:
        own = options.of(item.name) if isinstance(item, Function) else options
        if isinstance(item, Function) and item.body and item.name in views and own.mode != Mode.OFF:
            try:
                item, said, made = _function(item, views[item.name], own, in_loops)
            except Refusal as problem:
                said = left(problem, own)
                made = ()
            remarks += said
            reports += made
        items.append(item)
    if options.profile is not None and options.mode != Mode.OFF and views:
        remarks += misfits(options.profile, tuple(views.values()))
    # If anything is rewritten, all other markers go too, so that no pass finds work here a second time.
    made_module = module
    if any(map(_is_rewritten, reports)):
        made_module = Module(tuple(without_annotations(i) if isinstance(i, Function) else i for i in items))
    _check_kernels(made_module, reports)
    pools = {r.code.pool: r.place for r in reports if r.code is not None and r.code.pool is not None}
    try:
        check_pools(pools, next(reversed(pools.values()), None))
    except Refusal:
        # Each loop by itself had room: without global memory, another form may fit some of them.
        if options.stacks is not StackMemory.AUTO:
            raise
        return run(module, replace(options, stacks=StackMemory.SHARED))
    return PassResult(with_pools(made_module, pools), tuple(remarks), tuple(reports))


def _check_kernels(module: Module, reports: Sequence[RegionReport]) -> None:
    """Raise Refusal if a kernel's own stacks and those of all functions that it may call do not fit."""
    rewritten = {report.kernel: report for report in reversed(reports) if report.shared_bytes}
    for function in module.functions():
        stacks = called(module, [function.name]) & rewritten.keys() - {function.name}
        needed = static_shared_bytes(module, function) if function.kind == "entry" and stacks else 0
        if needed > SHARED_BYTES:
            place = rewritten[min(stacks)].place
            raise refuse(refusal.STACK, place, f"{needed:,}", f"{SHARED_BYTES:,}")


def _function(function: Function, view: View, options: Options, in_loops: frozenset[int]) -> _Rewritten:
    """The function, which has this ``view``, with its regions rewritten. With ``keep_going`` raises Refusal; without
    it, goes on with the next region and returns an error for each refused one.
    """
    remarks: list[Diagnostic] = []
    reports: list[RegionReport] = []
    refused = frozenset[int]()
    original, module = function, view.module
    while True:
        try:
            done = refused.union(report.region for report in reports)
            found = find(view, done, in_loops, with_unfit=True)
            if function is original:
                remarks += found.remarks
            if not found.regions:
                break
            function, said, made = _region(function, view, found.regions[0], options)
        except Refusal as problem:
            gone = related(view, problem.diagnostics[0].place)
            if options.keep_going:
                raise
            if not gone:
                return original, (*remarks, *problem.diagnostics), ()
            said, made, refused = problem.diagnostics, (), refused | gone
            function = without_annotations(function, gone)
        reports += made
        remarks += said
        # The region is done and its markers are gone; the others are found anew in the new body.
        if not any(is_annotation(s) for s in function.body or ()):
            break
        view = view_of(module, function)
    if not any(map(_is_rewritten, reports)):
        return original, tuple(remarks), tuple(reports)
    return function, tuple(remarks), tuple(reports)


def _is_rewritten(report: RegionReport) -> bool:
    return report.outcome is Outcome.REWRITTEN


def _region(function: Function, view: View, region: Region, options: Options) -> _Rewritten:
    """The function with ``region`` rewritten, or with only its markers removed if that would not pay off."""
    if region.annotation.alone:
        return in_lane_form.alone(view, region)
    analysis = RegionAnalysis(view, region, options.expand, trips(view.module, function, region, options))
    if options.form == Form.IN_LANE or (options.form == Form.AUTO and region.annotation.in_lane):
        return in_lane_form.rewritten(view, region, function, options, None)
    try:
        if region.unfit is not None:
            raise region.unfit
        check(analysis)
        plan = _plan(analysis, options)
    except Refusal as problem:
        if options.form in (Form.SPLIT, Form.IDLE_LANES):
            raise
        if options.form == Form.CARRIED:
            return _carried(analysis, function, options, problem)
        return _whole_iterations(analysis, function, options, problem)
    if options.form == Form.CARRIED:
        return _carried(analysis, function, options, None)
    decision = _decided(analysis, function, plan, options)
    if plan is None and not decision.chosen and options.stacks is StackMemory.AUTO:
        plan = _plan(analysis, replace(options, stacks=StackMemory.GLOBAL))
        decision = _decided(analysis, function, plan, options)
    said = remarks_of(region, decision, options.mode)
    everything = frozenset(range(len(region.all_paths())))
    if plan is None or decision.chosen != everything:
        found = _smaller(analysis, function, decision, options) if decision.chosen else None
        if decision.chosen and found is None:
            decision = replace(
                decision,
                chosen=frozenset(),
                limited="the paths that pay off cannot be collected while the others stay in the loop",
            )
            said = remarks_of(region, decision, options.mode)
        if found is None:
            reports = (loop_report(view, region, decision), *left_alone(view, region, decision, everything))
            return without_annotations(function, {report.region for report in reports}), said, reports
        view, plan = found
    graph = rewrite(view, plan)
    function = _function_of(view, plan.region, graph)
    reports = detached_reports(view, plan, graph, region, decision)
    return function, (*plan.remarks, *said), (*reports, *left_alone(view, region, decision, everything))


def _whole_iterations(
    analysis: RegionAnalysis, function: Function, options: Options, cause: Refusal
) -> _Rewritten:
    """The function with a region whose paths, because of ``cause``, cannot be deferred alone: rests of iterations move
    to other lanes, or lanes wait, whichever is expected to be faster.
    """
    view, region = analysis.view, analysis.region
    modes = {point.annotation.mode or region.annotation.mode or options.mode for point in region.points}
    chosen = None
    if options.profile is None and Mode.ALWAYS in modes:
        chosen = in_lane_form.preferred(view, region, function, options, None)
    try:
        done = _carried(analysis, function, options, cause)
    except Refusal as both:
        return in_lane_form.rewritten(view, region, function, options, both, chosen)
    if chosen is not None:
        return in_lane_form.rewritten(view, region, function, options, cause, chosen, by_cost=True)
    cost = done[2][0].cost
    if cost is None or cost.assumed:
        return done
    chosen = in_lane_form.preferred(view, region, function, options, cost.gain)
    if chosen is None:
        return done
    waiting = in_lane_form.rewritten(view, region, function, options, cause, chosen, by_cost=True)
    if in_lane_form.is_idle(chosen):
        return done if cost.gain >= SAFE_GAIN else waiting
    # The in-lane form may be better by cost, and yet `auto` may not be sure that it gains.
    return done if _is_rewritten(done[2][0]) and not _is_rewritten(waiting[2][0]) else waiting


def _carried(
    analysis: RegionAnalysis, function: Function, options: Options, cause: Refusal | None
) -> _Rewritten:
    """The function with a region in the carried form, because of ``cause`` or because the user asks for it."""
    region, plan = carried_form.carried(analysis, cause, options.stack_options)
    view = region.view
    gone, alone = carried_form.left_out(view, analysis.region, region)
    numbers = estimate_carried(region, plan, measured(view.module, function, region.region, options))
    stacks = {key: point.stack.shared_bytes for key, point in enumerate(plan.points)}
    own = static_shared_bytes(view.module, view.function)
    room = min(room_for_stacks(plan.threads), SHARED_BYTES) - own
    decision = decide(region.region, numbers, options.mode, stacks, room)
    everything = frozenset(range(len(plan.points)))
    if any(mode_of(region.region, path, options.mode) == Mode.ALWAYS for path in region.region.paths):
        decision = replace(decision, chosen=everything)
    elif numbers.assumed:
        decision = replace(decision, chosen=frozenset(), limited=carried_form.UNMEASURED)
    if decision.chosen != everything:
        if decision.chosen and not decision.limited:
            worst = min(everything - decision.chosen, key=lambda key: decision.costs[key].gain)
            why = carried_form.all_or_none(region.region.all_paths()[worst])
            decision = replace(decision, limited=why)
        decision = replace(decision, chosen=frozenset())
        reports = (
            loop_report(view, region.region, decision),
            *left_alone(view, region.region, decision, everything),
            *alone,
        )
        said = (*remarks_of(region.region, decision, options.mode), *gone)
        return without_annotations(function, {r.region for r in reports}), said, reports
    graph = rewrite_carried(view, plan)
    function = _function_of(view, region.region, graph)
    loop = loop_report(view, region.region, decision)
    made = carried_form.reports(view, plan, graph, loop, decision.costs)
    said = (*carried_form.remarks(region.region, cause), *plan.remarks)
    said = (*said, *remarks_of(region.region, decision, options.mode), *gone)
    return function, said, (*made, *alone)


def _function_of(view: View, region: Region, graph: Graph) -> Function:
    """The function with its new body, limited to the block size that its stacks are made for."""
    body = (*view.names.declarations(), *to_body(graph, view.names))
    directives = (*view.function.directives, *block_limit(view, region))
    return replace(view.function, body=body, directives=directives)


def _plan(analysis: RegionAnalysis, options: Options) -> Plan | None:
    """The plan with all paths; None if their stacks do not fit and some paths may be left alone: paths that fit into
    shared memory then come before stacks in global memory.
    """
    region = analysis.region
    some = any(mode_of(region, path, options.mode) == Mode.AUTO for path in region.all_paths())
    annotations = (region.annotation, *(p.annotation for p in region.all_paths()))
    fewer = some or any(a.collect is not None for a in annotations)
    try:
        return make_plan(analysis, options.form, _shared_first(options) if fewer else options.stack_options)
    except Refusal as problem:
        if problem.diagnostics[0].code != refusal.STACK.code or not fewer:
            raise
        return None


def _shared_first(options: Options) -> StackOptions:
    """Options for stacks in shared memory unless the user chose a memory."""
    if options.stacks is StackMemory.AUTO:
        return replace(options.stack_options, memory=StackMemory.SHARED)
    return options.stack_options


def _decided(analysis: RegionAnalysis, function: Function, plan: Plan | None, options: Options) -> Decision:
    view, region = analysis.view, analysis.region
    threads, _ = block_threads(function, region)
    numbers = estimate(view, region, plan, measured(view.module, function, region, options))
    if plan is None:
        paths = range(len(region.all_paths()))
        # Plans take names: those of trial plans come from a view of their own.
        spare = view_of(view.module, function)
        alone = (replace(analysis, view=spare, region=pruned(region, [key])) for key in paths)
        stacks = {key: _stack_bytes(one, options) for key, one in enumerate(alone)}
    else:
        stacks = {key: path.stack.shared_bytes for key, path in enumerate(plan.all_paths())}
    own = static_shared_bytes(view.module, function)
    room = min(room_for_stacks(threads), SHARED_BYTES) - own
    unrolled = unrolled_loops(view, region.all_paths())
    return decide(region, numbers, options.mode, stacks, room, empty_tasks(analysis), unrolled)


def _stack_bytes(analysis: RegionAnalysis, options: Options) -> int:
    """The bytes of a region's stacks; more than a block has if they do not fit."""
    try:
        return make_plan(analysis, options.form, _shared_first(options)).stack_bytes
    except Refusal:
        return SHARED_BYTES + 1


def _smaller(
    analysis: RegionAnalysis, function: Function, decision: Decision, options: Options
) -> tuple[View, Plan] | None:
    """A view and a plan of the function's region with only the chosen paths; None if `auto` must leave it.

    The other paths are part of the iteration now, so the chosen ones have to be legal beside them.
    """
    region = analysis.region
    view = view_of(analysis.view.module, function)
    (same,) = (r for r in find(view, frozenset(view.annotations)).regions if r.header == region.header)
    smaller = replace(analysis, view=view, region=pruned(same, decision.chosen))
    try:
        return view, legal_plan(smaller, options.form, options.stack_options)
    except Refusal:
        if any(mode_of(region, path, options.mode) == Mode.ALWAYS for path in region.all_paths()):
            raise
        return None
