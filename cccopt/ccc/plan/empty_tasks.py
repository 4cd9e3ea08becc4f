"""Paths whose tasks would have nothing to do: collecting these can only cost time.

        if (x > 4) { y = x * 3; }          nothing reads y: the compiler leaves an empty path, or none

An empty path may still have a task, where code after the join moves into the tasks of all its neighbours
(`cccopt.ccc.legality.sunk_code`).
"""

from __future__ import annotations

from cccopt.analysis.effects import is_pure, writes
from cccopt.ccc.function.graph import targets
from cccopt.ccc.function.view import View
from cccopt.ccc.legality.region_analysis import RegionAnalysis
from cccopt.ccc.regions.paths import Path


def empty_tasks(analysis: RegionAnalysis) -> frozenset[int]:
    """The paths without an effect, by their indices in `Region.all_paths`."""
    return frozenset(
        key
        for key, path in enumerate(analysis.region.all_paths())
        if not analysis.sunk[path.begin].moved and _does_nothing(analysis.view, path)
    )


def _does_nothing(view: View, path: Path) -> bool:
    """Whether nothing reads what the path computes, and it does nothing else. Loops may not end: they do something."""
    end = view.block_of_name.get(path.end)
    if path.is_loop or end is None or path.nodes & view.headers:
        return False
    leads_to = {target for name in path.nodes for target in targets(view.graph.nodes[name].end)}
    read = view.liveness.live_in[end]
    return leads_to.isdisjoint(view.traps) and all(
        instruction.base == "bra" or (is_pure(instruction) and read.isdisjoint(writes(instruction)))
        for _, instruction in view.instructions(path.nodes)
    )
