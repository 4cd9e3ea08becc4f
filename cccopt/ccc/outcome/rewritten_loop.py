"""What a rewrite says about a loop that it has made, for the check of the output (`cccopt.ccc.output_check`)."""

from __future__ import annotations

from dataclasses import dataclass

from cccopt.ccc.outcome.stack_pool import StackPool
from cccopt.text import Place


@dataclass(frozen=True, slots=True)
class TaskStack:
    """Bytes ``start`` to ``stop`` (half-open) of a block's stacks, or of a warp's entry of the pool, and the register
    that counts the tasks in them: one number per warp or, with ``sorted_paths``, one per path, with that of path b in
    lane b.
    """

    start: int
    stop: int
    counter: str
    sorted_paths: int = 0


@dataclass(frozen=True, slots=True)
class RewrittenLoop:
    """What a rewrite passes on about one marked loop. ``entry`` is the label of its entry, ``symbol`` the variable in
    shared memory that holds its stacks, ``owned_bytes`` the bytes of it that are the owners' slots of reductions.
    ``owners`` are the registers that hold addresses of such slots, ``windows`` the labels of expanded windows. ``pool``
    holds the stacks if they are in global memory; ``lanes`` is the register with the mask of the lanes that run it
    (empty for a full warp).
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
