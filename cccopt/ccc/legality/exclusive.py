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
    itself, are in no group.
    """
    plain = [
        path for path in region.paths if not (path.is_loop or path.children or sunk[path.begin].recomputed)
    ]
    groups: list[tuple[Path, ...]] = []
    for end in dict.fromkeys(path.end for path in plain):
        together = tuple(path for path in plain if path.end == end)
        if not FEWEST <= len(together) <= MOST:
            continue
        once = {n: view.graph.nodes[n] for n in region.nodes if n != region.header}
        begins = {path.begin for path in together}
        apart = begins.isdisjoint(reachable(once, [end])) and all(
            begins.isdisjoint(reachable(once, [path.begin]) - {path.begin}) for path in together
        )
        if apart:
            groups.append(together)
    return tuple(groups)
