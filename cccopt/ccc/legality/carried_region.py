"""One marked loop in the carried form: its facts, and the rules that it must obey (`cccopt.ccc.legality.carrying`).

Order inside an iteration is preserved, so no rule checks it. The other rules remain: iterations of one thread must not
share memory (`cccopt.ccc.legality.thread_memory`). Local memory that is live across a point waits with the token
(`cccopt.ccc.legality.local_context`). No code that tokens run may depend on its lane or on neighboring lanes, and no
lane may wait for something done by a token that is itself waiting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from cccopt.ccc.legality.carrying import Carrying
from cccopt.ccc.legality.local_context import LocalContext
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
        """What waits at the points, and what runs from there on."""
        return Carrying(self.view, self.region, self.reductions)

    @cached_property
    def changes_lanes(self) -> bool:
        """Whether a token may change lanes more than once."""
        points = self.region.points
        return len(points) > 1 or any(self.carrying.comes_back(point) for point in points)

    @cached_property
    def local(self) -> LocalContext:
        """The local memory that waits at the points."""
        return LocalContext(self.carrying)

    @cached_property
    def sunk(self) -> Mapping[str, SunkCode]:
        """Nothing sinks: what follows a path is part of the token."""
        return {path.begin: SunkCode() for path in self.region.paths}

    @cached_property
    def exclusive(self) -> tuple[tuple[Path, ...], ...]:
        """No paths are exclusive: each point has its own stack."""
        return ()


def carried_region(analysis: RegionAnalysis) -> CarriedRegion:
    """The region of ``analysis`` in the carried form, without points at which nothing is left to run unless that is so
    at all of them. Raises Refusal if a path begins where the iteration does.
    """
    view, region = analysis.view, analysis.region
    for point in region.points:
        if point.begin == region.header:
            raise refuse(refusal.BEGINS_ITERATION, point.annotation.place)
    carrying = Carrying(view, region, analysis.reductions)
    points = tuple(point for point in region.points if carrying.marked(point))
    if points and points != region.points:
        region = replace(region, points=points)
        carrying = Carrying(view, region, analysis.reductions)
    paths = tuple(
        Path(point.annotation, point.begin, carrying.segment(point), region.header) for point in region.points
    )
    return CarriedRegion(view, replace(region, paths=paths), analysis.expand)
