"""How many inner iterations lanes run between two visits to a dispatcher, if the pragma leaves that open.

A visit costs the same however short an inner iteration is, so several short ones run at a time: as many as take
`IN_LANE` or `MOVING` issue slots together. More of them would be cheaper still, but lanes that have ended their loop
wait for the rest of the chunk. If all lanes run the same known number of inner iterations, that is the chunk.
"""

from __future__ import annotations

from collections.abc import Collection
from math import ceil, log2

from cccopt.ccc.function.annotations import Annotation
from cccopt.ccc.function.view import View

IN_LANE = 128.0
"""Issue slots of the inner iterations between two visits in the in-lane form: about five times those of a visit."""

MOVING = 256.0
"""The same if tasks move to other lanes: a vote that refills lanes takes about twice as long."""

MOST = 32
"""The most inner iterations of a chunk, unless their number is known."""


def chunk_of(view: View, annotation: Annotation, begin: str, code: Collection[str], slots: float) -> int:
    """The inner iterations of a chunk of the loop with header ``begin``: what the clause says, or as many as take
    ``slots`` (infinite: `MOST`). ``code`` is the nodes of an inner iteration that lanes run before they may wait again.
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
    return 1 << ceil(log2(wanted))
