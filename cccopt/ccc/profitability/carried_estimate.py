"""The numbers behind a decision for a region in the carried form.

Before the rewrite, a warp runs the marked path for the lanes that take it, and the rest of the iteration once for all
lanes. Afterwards, full warps run both for the lanes that take the path, and the other lanes still run the rest for
themselves. A run by a full warp (`PathFlow.packed`) therefore costs the whole segment; for a loop, it costs an inner
iteration, plus the code after the loop in each round in which any lane leaves it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cccopt.ccc.legality.carried_region import CarriedRegion
from cccopt.ccc.outcome.choices import Form
from cccopt.ccc.plan.carried import CarriedPlan, PointPlan
from cccopt.ccc.profitability.combined_atomics import COMBINED, is_combined
from cccopt.ccc.profitability.estimate import Estimate, begun_together, context_slots, estimate
from cccopt.ccc.profitability.flows import PathFlow, any_of
from cccopt.ccc.profitability.profile import RegionProfile
from cccopt.ccc.regions.marked_loops import Region
from cccopt.ccc.regions.paths import Path


def estimate_carried(
    carried: CarriedRegion, plan: CarriedPlan, measured: Mapping[int, RegionProfile] | None
) -> Estimate:
    """The numbers of a region; ``measured`` is its function's profile."""
    paths = tuple(_marked(carried, path) for path in carried.region.paths)
    alone: Region = replace(carried.region, paths=paths)
    found = estimate(carried.view, alone, None, measured)
    flows = tuple(
        _with_rest(carried, point, path, flow, found.assumed)
        for point, path, flow in zip(plan.points, paths, found.flow.paths, strict=True)
    )
    begun = 1.0
    if measured is not None and plan.split and not found.assumed:
        begun = begun_together(measured[carried.region.annotation.region])
    return replace(found, flow=replace(found.flow, form=Form.CARRIED, paths=flows, begun=begun))


def _marked(carried: CarriedRegion, path: Path) -> Path:
    """``path`` with only its marked code: the loop, or the blocks that are reached only through the path's entry."""
    view = carried.view
    begin = view.block_of_name[path.begin]
    if path.is_loop:
        loop = view.innermost(begin)
        assert loop is not None
        return replace(path, nodes=view.names_of(loop.blocks))
    inside = (b for b in view.blocks_of(path.nodes) if view.dominators.dominates(begin, b))
    return replace(path, nodes=view.names_of(inside))


def _with_rest(
    carried: CarriedRegion, point: PointPlan, marked: Path, flow: PathFlow, assumed: bool
) -> PathFlow:
    view = carried.view
    costs = view.costs
    rest = view.blocks_of(point.path.nodes - marked.nodes)
    segment = view.blocks_of(point.path.nodes)
    after = costs.of_blocks(rest, segment)
    ended = any_of(flow.entered / flow.full) if flow.is_loop and flow.full else 1.0
    advance = sum(costs.of_statement(index) for index in point.advance.kept)
    context = context_slots(point.stack) + advance
    waiting = flow.packed_waiting + after * costs.cycles_per_slot(rest, segment) * ended
    indices = (i for b in rest for i in view.cfg.blocks[b].statements())
    atomics = COMBINED * sum(is_combined(view, i) for i in indices) if not assumed else 0.0
    return replace(
        flow,
        packed=flow.packed + after * ended,
        packed_waiting=waiting,
        packed_atomics=flow.packed_atomics + atomics * ended,
        context=context,
        chunk=point.chunk,
    )
