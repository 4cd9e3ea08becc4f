"""Sibling paths of which a lane takes at most one in an iteration: the cases of a switch, the arms of an if-chain.

They can share one reconvergence point: the warp sorts its lanes by path, and no path needs a vote of its own
(`cccopt.ccc.codegen.sorting`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cccopt.ccc.function.graph import reachable
from cccopt.ccc.function.view import View
from cccopt.ccc.regions.marked_loops import Region
from cccopt.ccc.regions.paths import Path

if TYPE_CHECKING:
    from cccopt.ccc.legality.sunk_code import SunkCode

FEWEST = 3
"""With at least this many paths, sorting costs less than a vote for each."""

CHAIN = 4
"""Up to this many paths, successive comparisons cost less than a jump table."""

MOST = 31
"""The most paths of a group: each path has a lane of its own that counts for it, and one more lane counts the lanes
that take none.
"""


def exclusive_paths(view: View, region: Region, sunk: Mapping[str, SunkCode]) -> tuple[tuple[Path, ...], ...]:
    """Groups of the region's outer paths that end at one node, and of which none follows another.

    Loops of tasks, paths that contain others, and paths with values that the lane recomputes are in no group. All lanes
    vote where another path ends, so the paths of a group are all before that node, or all after it.
    """
    once = {n: view.graph.nodes[n] for n in region.nodes if n != region.header}
    after = {end: reachable(once, [end]) for end in dict.fromkeys(path.end for path in region.paths)}
    alike: dict[tuple[str, ...], list[Path]] = {}
    for path in region.paths:
        if not (path.is_loop or path.children or sunk[path.begin].recomputed):
            votes_before = (end for end, nodes in after.items() if path.begin in nodes)
            alike.setdefault((path.end, *votes_before), []).append(path)
    groups: list[tuple[Path, ...]] = []
    for (end, *_), together in alike.items():
        if not FEWEST <= len(together) <= MOST:
            continue
        begins = {path.begin for path in together}
        apart = begins.isdisjoint(after[end]) and all(
            begins.isdisjoint(reachable(once, [path.begin]) - {path.begin}) for path in together
        )
        if apart:
            groups.append(tuple(together))
    return tuple(groups)
