"""One marked loop in the carried form: its facts, and the rules that it must keep (`cccopt.ccc.legality.carrying`).

Order inside an iteration is kept, so no rule asks for it. What is left: iterations of one thread must not share memory
(`cccopt.ccc.legality.thread_memory`), local memory must not live across a point, no code that tokens run may depend on
its lane or on the lanes beside it, and no lane may wait for what a token does that waits itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from cccopt.ccc.legality.carrying import Carrying
from cccopt.ccc.legality.region_analysis import RegionAnalysis
from cccopt.ccc.legality.sunk_code import SunkCode
from cccopt.ccc.outcome import refusal
from cccopt.ccc.outcome.refusal import refuse
from cccopt.ccc.regions.paths import Path


@dataclass(frozen=True)
class CarriedRegion(RegionAnalysis):
    """A region whose ``paths`` are the segments of its points (`carried_region`)."""

    @cached_property
    def carrying(self) -> Carrying:
        """What waits at the points, and what runs from there."""
        return Carrying(self.view, self.region, self.reductions)

    @cached_property
    def changes_lanes(self) -> bool:
        """Whether a token may change lanes more than once."""
        points = self.region.points
        return len(points) > 1 or any(self.carrying.comes_back(point) for point in points)

    def run_once(self, path: Path) -> frozenset[int]:
        """The statements that a token runs in one lane, and that no lane runs other than as a token."""
        if self.changes_lanes:
            return frozenset()
        view = self.view
        begin = view.block_of_name[path.begin]
        blocks = (b for b in view.blocks_of(path.nodes) if view.dominators.dominates(begin, b))
        return frozenset(i for b in blocks for i in view.cfg.blocks[b].statements())

    @cached_property
    def sunk(self) -> Mapping[str, SunkCode]:
        """Nothing sinks: what follows a path is part of the token."""
        return {path.begin: SunkCode() for path in self.region.paths}

    @cached_property
    def exclusive(self) -> tuple[tuple[Path, ...], ...]:
        """Each point has a stack of its own."""
        return ()


def carried_region(analysis: RegionAnalysis) -> CarriedRegion:
    """The region of ``analysis`` in the carried form. Raises Refusal where a path begins with the iteration."""
    view, region = analysis.view, analysis.region
    for point in region.points:
        if point.begin == region.header:
            raise refuse(refusal.OTHER_ENTRY, point.annotation.place)
    carrying = Carrying(view, region, analysis.reductions)
    paths = tuple(
        Path(point.annotation, point.begin, carrying.segment(point), region.header) for point in region.points
    )
    return CarriedRegion(view, replace(region, paths=paths), analysis.expand)
