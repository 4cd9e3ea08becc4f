"""What a rewrite says of a loop that it has made, for the check of the output (`cccopt.ccc.output_check`)."""

from __future__ import annotations

from dataclasses import dataclass

from cccopt.ccc.outcome.stack_pool import StackPool
from cccopt.text import Place


@dataclass(frozen=True, slots=True)
class TaskStack:
    """Bytes ``start`` to ``stop`` (half-open) of a block's stacks, or of a warp's entry of the pool, and the register
    that counts the tasks in them: one number a warp, or with ``sorted_paths`` one a path, that of path b in lane b.
    """

    start: int
    stop: int
    counter: str
    sorted_paths: int = 0


@dataclass(frozen=True, slots=True)
class RewrittenLoop:
    """What a rewrite hands over of one marked loop: the label of its entry, the variable in shared memory that holds
    its stacks, the bytes of it that are the owners' slots of reductions, the registers that hold addresses of such
    slots, the labels of expanded windows, the pool that holds the stacks if they are in global memory, and the register
    with the mask of the lanes that run it (a full warp, if empty).
    """

    region: int
    place: Place | None
    entry: str
    symbol: str
    owned_bytes: int
    owners: frozenset[str]
    stacks: tuple[TaskStack, ...]
    windows: frozenset[str]
    pool: StackPool | None = None
    lanes: str = ""
