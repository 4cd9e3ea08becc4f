"""Frontiers as the kernels of tests/cte/cuda/frontier.cu take them: queues and bitmaps."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Queue: TypeAlias = tuple[NDArray[Any], NDArray[np.uint64], np.uint64]
"""Items, size and capacity."""

ORDERS = (None, 5)
"""Seeds for the order of lanes."""

NAMES: dict[str, tuple[Any, int]] = {
    "int": (np.int32, 0),
    "long": (np.int64, 2**33),
    "unsigned": (np.uint32, 2**31),
}
"""Types of queues, and what the first vertex is called."""


def room(capacity: int, dtype: Any) -> Queue:
    """An empty queue. The emulator faults where somebody writes past its end."""
    return np.full(max(capacity, 1), -1).astype(dtype), np.zeros(1, np.uint64), np.uint64(capacity)


def filled(items: Any, dtype: Any) -> Queue:
    """A queue with ``items``."""
    there = np.array(items, dtype)
    return (
        (there if there.size else np.zeros(1, dtype)),
        np.full(1, there.size, np.uint64),
        np.uint64(there.size),
    )


def held(queue: Queue) -> list[int]:
    items, size, capacity = queue
    assert size[0] <= capacity
    return sorted(items[: int(size[0])].tolist())


def words_of(members: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """A bitmap of them."""
    padded = np.pad(members, (0, -members.size % 32))
    return np.packbits(padded, bitorder="little").view(np.uint32)


def levels_by_hand(offsets: NDArray[Any], neighbors: NDArray[Any], source: int) -> list[list[int]]:
    """The frontiers, one after the other."""
    seen, found = {source}, [[source]]
    while found[-1]:
        reached = {int(u) for v in found[-1] for u in neighbors[offsets[v] : offsets[v + 1]]} - seen
        seen |= reached
        found.append(sorted(reached))
    return found[:-1]
