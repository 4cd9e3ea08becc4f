"""Sibling paths of which a lane comes to one at most in an iteration: the cases of a switch, the arms of an if-chain.

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
"""Paths from which on sorting costs less than as many votes."""

CHAIN = 4
"""Paths up to which comparisons, one after the other, cost less than a jump table."""

MOST = 31
"""Each path is counted by a lane of its own, and the lanes that come to none by one more."""


def exclusive_paths(view: View, region: Region, sunk: Mapping[str, SunkCode]) -> tuple[tuple[Path, ...], ...]:
    """Groups of the region's outer paths that end at one node, none of them after another one.

    Loops of tasks, paths with others inside, and those of which a lane computes something again for
    itself, are in no group. Where another path ends, all lanes vote before any goes on: paths of a group are all
    before that node, or all after it.
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
