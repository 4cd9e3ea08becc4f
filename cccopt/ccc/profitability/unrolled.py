"""Marked inner loops that nvcc would have unrolled: `auto` does not know whether collecting them is faster than that.

for (int i = 0; i < 25; i++)           unmarked: 25 tests with constants, each `%` a multiplication
  if (n % primes[i] == 0) return;      marked: a loop with a load and a division, which the mark keeps rolled
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cccopt.ccc.function.view import View
from cccopt.ccc.regions.paths import Path

MOST = 2048
"""If a loop's number of iterations is known, nvcc 13.0 is taken to unroll it up to this many instructions in all of its
iterations together.
"""


def unrolled_loops(view: View, paths: Iterable[Path]) -> Mapping[int, int]:
    """The indices of those ``paths`` that nvcc is taken to unroll, each with its constant number of inner iterations,
    an upper bound: there may be other exits.
    """
    found: dict[int, int] = {}
    for key, path in enumerate(paths):
        header = view.block_of_name[path.begin]
        loop = next((each for each in view.loops if each.header == header), None)
        trips = view.costs.trip_count(loop) if path.is_loop and loop is not None else None
        size = sum(1 for _ in view.instructions(path.nodes))
        if trips is not None and trips * size <= MOST:
            found[key] = trips
    return found


def why(trips: int) -> str:
    """Why `auto` leaves such a loop alone."""
    return (
        f"nvcc knows that the loop runs at most {trips} inner iterations, and unrolls it if it is not marked; how much"
        " that saves is not known"
    )
