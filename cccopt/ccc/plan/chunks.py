"""How many inner iterations lanes run between two visits to a dispatcher, if the pragma leaves that open.

A visit costs the same however short an inner iteration is, so several short ones run at a time: as many as take
`IN_LANE` or `MOVING` issue slots together. More of them would be cheaper still, but lanes that have ended their loop
wait for the rest of the chunk. If all lanes run the same known number of inner iterations, that is the chunk.

A profile says how many inner iterations, n, of s slots each a task has on average. With a chunk of u, its lane takes
part in n / u visits of `VISIT` slots, and waits for (u - 1) / 2 inner iterations at its end. Their sum is least if u is
the square root of 2 n `VISIT` / s. If that is less than without a profile, tasks are short and mostly end within a
chunk, which then ends early: the chunk stays as it is.
"""

from __future__ import annotations

from collections.abc import Collection
from math import ceil, log2, sqrt

from cccopt.ccc.function.annotations import Annotation
from cccopt.ccc.function.view import View

IN_LANE = 128.0
"""Issue slots of the inner iterations between two visits in the in-lane form: about five times those of a visit."""

MOVING = 256.0
"""The same if tasks move to other lanes: a vote that refills lanes takes about twice as long."""

VISIT = 50.0
"""Issue slots of a vote that refills lanes (`cccopt.ccc.profitability.model`), with a context of a few words."""

MOST = 32
"""The most inner iterations of a chunk, unless their number is known."""


def chunk_of(
    view: View,
    annotation: Annotation,
    begin: str,
    code: Collection[str],
    slots: float,
    mean: float | None = None,
) -> int:
    """The inner iterations of a chunk of the loop with header ``begin``: what the clause says, or what is best if a
    task has ``mean`` of them, or as many as take ``slots`` (infinite: `MOST`). ``code`` is the nodes of an inner
    iteration that lanes run before they may wait again.
    """
    if annotation.chunk is not None:
        return annotation.chunk
    header = view.block_of_name[begin]
    costs = view.costs
    (loop,) = (loop for loop in view.loops if loop.header == header)
    trips = costs.trip_count(loop) if len(loop.exits) == 1 else None
    if trips is not None:
        return max(trips, 1)
    blocks = view.blocks_of(code)
    one = costs.of_blocks(blocks, blocks, header)
    wanted = min(max(slots / max(one, 1.0), 1.0), MOST)
    best = 1.0 if mean is None else min(sqrt(2 * mean * VISIT / max(one, 1.0)), MOST)
    return 1 << max(ceil(log2(wanted)), round(log2(max(best, 1.0))))
