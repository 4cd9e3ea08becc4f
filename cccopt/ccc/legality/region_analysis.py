"""The facts about one marked loop that passes need: computed once, on demand, and passed on as one object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from cccopt.ccc.function.view import View
from cccopt.ccc.legality.exclusive import exclusive_paths
from cccopt.ccc.legality.order import MemoryOrder
from cccopt.ccc.legality.reductions import Reductions, reductions
from cccopt.ccc.legality.sunk_code import SunkCode, sunk_code
from cccopt.ccc.regions.marked_loops import Region
from cccopt.ccc.regions.paths import Path


@dataclass(frozen=True)
class RegionAnalysis:
    """One marked loop in the function that contains it. If ``expand``, counted loops may be expanded over the warp.
    ``trips`` are the inner iterations of a lane on average, by region, for the loops of tasks for which they are known.
    """

    view: View
    region: Region
    expand: bool = True
    trips: Mapping[int, float] = field(default_factory=dict)

    @cached_property
    def reductions(self) -> Reductions:
        """The reductions that the loop's clause allows."""
        return reductions(self.view, self.region)

    @cached_property
    def sunk(self) -> Mapping[str, SunkCode]:
        """What becomes of the live-outs of each path, by its first node. Raises Refusal if that is unsound."""
        return sunk_code(self.view, self.region, self.reductions, expand=self.expand)

    @cached_property
    def exclusive(self) -> tuple[tuple[Path, ...], ...]:
        """Groups of paths of which a lane takes at most one in an iteration. Raises Refusal as `sunk` does."""
        return exclusive_paths(self.view, self.region, self.sunk)

    @cached_property
    def order(self) -> MemoryOrder:
        """Which accesses of an iteration may change order. Raises Refusal as `sunk` does."""
        return MemoryOrder(self.view, self.region, self.sunk)
