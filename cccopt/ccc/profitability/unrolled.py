"""Marked inner loops that nvcc would have unrolled: `auto` cannot tell what collecting them gains over that.

for (int i = 0; i < 25; i++)           unmarked: 25 tests with constants, each `%` a multiplication
  if (n % primes[i] == 0) return;      marked: a loop with a load and a division, which the mark keeps rolled
"""

from __future__ import annotations

from collections.abc import Mapping

from cccopt.ccc.legality.region_analysis import RegionAnalysis

MOST = 2048
"""Instructions in all inner iterations together up to which nvcc 13.0 is taken to unroll a loop of a known number of
them.
"""


def unrolled_loops(analysis: RegionAnalysis) -> Mapping[int, str]:
    """The marked inner loops with a constant number of inner iterations, by their indices in `Region.all_paths`, and
    what is lost by the mark.
    """
    view = analysis.view
    found: dict[int, str] = {}
    for key, path in enumerate(analysis.region.all_paths()):
        header = view.block_of_name[path.begin]
        loop = next((each for each in view.loops if each.header == header), None)
        trips = view.costs.trip_count(loop) if path.is_loop and loop is not None else None
        size = sum(1 for _ in view.instructions(path.nodes))
        if trips is not None and trips * size <= MOST:
            found[key] = (
                f"it makes at most {trips} inner iterations, a number that nvcc knows, and by which nvcc unrolls it"
                " where it is not marked; what that saves is not known"
            )
    return found
