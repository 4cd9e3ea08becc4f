"""Paths whose tasks would have nothing to do: collecting them can only cost time.

        if (x > 4) { y = x * 3; }          nothing reads y: the compiler leaves an empty path, or none

An empty path may still have a task, if code after the join moves into the tasks of all its neighbors
(`cccopt.ccc.legality.sunk_code`).
"""

from __future__ import annotations

from collections.abc import Mapping

from cccopt.analysis.effects import is_pure, needs, writes
from cccopt.ccc.function.graph import Branch, targets
from cccopt.ccc.function.view import View
from cccopt.ccc.legality.region_analysis import RegionAnalysis
from cccopt.ccc.regions.paths import Path

GONE = "the compiler removed its code or moved it elsewhere, so collecting could only cost time"
"""What became of the code of a path of which nothing is left."""


def empty_tasks(analysis: RegionAnalysis) -> Mapping[int, str]:
    """The paths without an effect, by their indices in `Region.all_paths`, and what became of their code."""
    return {
        key: _why(analysis.view, path)
        for key, path in enumerate(analysis.region.all_paths())
        if not analysis.sunk[path.begin].moved and _does_nothing(analysis.view, path)
    }


def _why(view: View, path: Path) -> str:
    """What the compiler made of a path, as the code at its end shows."""
    code = [instruction for _, instruction in view.instructions([path.end])]
    if any(i.base == "selp" and not needs(i).isdisjoint(_conditions(view, path)) for i in code):
        return (
            "the compiler turned its assignments into selects (`selp`), which all lanes run without a branch"
        )
    if {i.base for i in code} - {"bra"} == {"mov"}:
        return "all that is left of its code is register copies (`mov`) after its end: a push would cost more"
    return GONE


def _conditions(view: View, path: Path) -> frozenset[str]:
    """The predicates that decide which lanes reach a path."""
    ends = (view.graph.nodes[name].end for name in view.sources[path.begin])
    return frozenset(end.guard.register.name for end in ends if isinstance(end, Branch))


def _does_nothing(view: View, path: Path) -> bool:
    """Whether the path only computes values that nothing reads. A loop may not end, which counts as an effect."""
    end = view.block_of_name.get(path.end)
    if path.is_loop or end is None or path.nodes & view.headers:
        return False
    leads_to = {target for name in path.nodes for target in targets(view.graph.nodes[name].end)}
    read = view.liveness.live_in[end]
    return leads_to.isdisjoint(view.traps) and all(
        instruction.base == "bra" or (is_pure(instruction) and read.isdisjoint(writes(instruction)))
        for _, instruction in view.instructions(path.nodes)
    )
