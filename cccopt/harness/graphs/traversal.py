"""What the algorithms of ``bench/graphs`` share: launches over all vertices, frontiers, and the edges that count."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from cccopt.harness.csr.workload import launch, reached
from cccopt.harness.graphs.workload import CCC
from cccopt.harness.workload import Array, Launch, Zeros

TRIPS = 16
"""How many vertices a lane takes in the form `CCC`, which collects tasks over the iterations of a loop."""


def annotated(
    form: str,
    kernel: str,
    vertices: int,
    *arguments: Array | np.generic,
    host: tuple[str, ...] = (),
    label: str = "",
) -> Launch:
    """A launch of a kernel that `CCC` rewrites, with a loop over all ``vertices``: otherwise it has one trip."""
    threads = -(-vertices // TRIPS) if form == CCC else vertices
    return launch(kernel, threads, *arguments, host=host, label=label)


def words_for(vertices: int) -> int:
    """How many words a bitmap of so many vertices takes."""
    return -(-vertices // 32)


def empty_mask(vertices: int) -> Zeros:
    """A bitmap without a vertex."""
    return Zeros(words_for(vertices), np.uint32)


def mask_of(vertex: int, vertices: int) -> NDArray[np.uint32]:
    """A bitmap with one ``vertex``."""
    words = np.zeros(words_for(vertices), np.uint32)
    words[vertex // 32] = 1 << vertex % 32
    return words


def empty_queue(items: str, size: str, capacity: int) -> Mapping[str, Array | Zeros]:
    """A queue without a vertex: the arrays of its items and of its size by these names."""
    return {items: Zeros(capacity, np.int32), size: np.zeros(1, np.uint64)}


def queue_of(vertex: int, capacity: int) -> tuple[NDArray[np.int32], NDArray[np.uint64]]:
    """The items and the size of a queue with one ``vertex``."""
    items = np.zeros(capacity, np.int32)
    items[0] = vertex
    return items, np.ones(1, np.uint64)


def room_of(items: Array) -> np.generic:
    """The capacity of a queue with this array, as kernels take it."""
    capacity: np.generic = np.uint64(len(items))
    return capacity


def edges_reached(offsets: Array, neighbors: Array, source: int) -> int:
    """The number of edges that leave the vertices that paths from ``source`` lead to."""
    return int(np.diff(offsets)[reached(offsets, neighbors, source)].sum())
