"""Loops over blocks (`cccopt.passes.grid_loop`), before each iteration of which a warp's lanes wait for one another.

Without the loop, each block's warps begin with all their lanes. With it, an iteration may leave them in several groups,
which would then be counted as several warps. All lanes of a warp reach each iteration: none ends before the loop.
"""

from __future__ import annotations

from collections.abc import Iterator

from cccopt.ccc.function.code import FULL_WARP, op
from cccopt.clauses import Kind
from cccopt.passes.counting.flow import Flow
from cccopt.ptx.ir import Marker, Statement


def lanes_together(flow: Flow) -> Iterator[tuple[int, Statement]]:
    """The code that makes lanes wait, by the statement that it precedes."""
    markers = [(index, s) for index, s in enumerate(flow.body) if isinstance(s, Marker)]
    looped = {
        s.region for _, s in markers if s.event == "for.begin" and ("kind", Kind.GRID.value) in s.attributes
    }
    for index, marker in markers:
        if marker.event == "body.begin" and marker.region in looped:
            yield flow.head(flow.first[flow.cfg.block_of(index)]), op("bar.warp.sync", FULL_WARP)
