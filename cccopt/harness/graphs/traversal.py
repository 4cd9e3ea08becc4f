"""What the algorithms of ``bench/graphs`` share: launches over all vertices, frontiers, and edge counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cccopt.harness.csr.matrix import Csr, from_edges
from cccopt.harness.csr.workload import arrays, launch, reached
from cccopt.harness.graphs.workload import CCC
from cccopt.harness.workload import Array, Launch, State, Zeros

TRIPS = 16
"""How many vertices a lane takes in the form `CCC`, which collects tasks over the iterations of a loop."""

EDGES_PER_LANE = 8
"""The default of ``cte::advance_balanced``."""

LANES = 1 << 16
"""Up to this many edges of a frontier get a lane each: on an H100 (2^18 lanes at once), more gained nothing."""


def both_ways(graph: Csr) -> Mapping[str, Array]:
    """The edges that leave each vertex of ``graph``, and those that lead to it."""
    incoming = graph.transpose()
    return {
        "offsets": graph.offsets,
        "neighbors": graph.indices,
        "in_offsets": incoming.offsets,
        "sources": incoming.indices,
    }


def grouped(graph: Csr, size: int) -> Csr:
    """The graph of groups of ``size`` vertices, with one edge for all that lead from one group to another."""
    tails = np.repeat(np.arange(graph.rows), graph.degrees) // size
    groups = -(-graph.rows // size)
    edges = np.unique(tails * groups + graph.indices // size)
    return from_edges(groups, edges // max(groups, 1), edges % max(groups, 1))


def annotated(
    form: str,
    kernel: str,
    vertices: int,
    *arguments: Array | np.generic,
    host: tuple[str, ...] = (),
    label: str = "",
) -> Launch:
    """A launch of a kernel that `CCC` rewrites, with a loop over all ``vertices``. In the other forms, there is a
    thread for each vertex, so the loop runs once.
    """
    threads = -(-vertices // TRIPS) if form == CCC else vertices
    return launch(kernel, threads, *arguments, host=host, label=label)


def words_for(vertices: int) -> int:
    """How many words a bitmap of ``vertices`` vertices takes."""
    return -(-vertices // 32)


def empty_mask(vertices: int) -> Zeros:
    """An empty bitmap."""
    return Zeros(words_for(vertices), np.uint32)


def mask_of(vertex: int, vertices: int) -> NDArray[np.uint32]:
    """A bitmap that holds only ``vertex``."""
    words = np.zeros(words_for(vertices), np.uint32)
    words[vertex // 32] = 1 << vertex % 32
    return words


def empty_queue(items: str, size: str, capacity: int) -> Mapping[str, Array | Zeros]:
    """An empty queue: the arrays of its items and of its size, under these names."""
    return {items: Zeros(capacity, np.int32), size: np.zeros(1, np.uint64)}


def queue_of(vertex: int, capacity: int) -> tuple[NDArray[np.int32], NDArray[np.uint64]]:
    """The items and the size of a queue that holds only ``vertex``."""
    items = np.zeros(capacity, np.int32)
    items[0] = vertex
    return items, np.ones(1, np.uint64)


def scanned_queues(vertex: int, offsets: Array) -> Mapping[str, Array | Zeros]:
    """Two of ``cte::scanned_queue``: one with ``vertex`` (the arrays ``scan_0`` of the items, ``begins_0`` of the edges
    before each, and ``counts_0``), and an empty one (``scan_1``, ``begins_1`` and ``counts_1``).
    """
    capacity = len(offsets) - 1
    items, _ = queue_of(vertex, capacity)
    return {
        "scan_0": items,
        "counts_0": scanned_count(vertex, offsets),
        "scan_1": Zeros(capacity, np.int32),
        "counts_1": np.zeros(2, np.uint64),
        "begins_0": Zeros(capacity, np.uint32),
        "begins_1": Zeros(capacity, np.uint32),
    }


def scanned_count(vertex: int, offsets: Array) -> NDArray[np.uint64]:
    """The counts of a scanned queue with one ``vertex``, or with none if it has no edges."""
    degree = int(offsets[vertex + 1] - offsets[vertex])
    return np.array([degree << 32 | (degree > 0), 0], np.uint64)


SCANNED = ("scan_0", "begins_0", "counts_0", "scan_1", "begins_1", "counts_1")
"""The arrays of `scanned_queues`."""


def both_scanned(state: State) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """The items, the edges before each, and the counts of both queues of `scanned_queues`."""
    return arrays(state, *SCANNED[:3]), arrays(state, *SCANNED[3:])


def scanned_sizes(counts: Array) -> tuple[int, int]:
    """How many vertices are in a scanned queue, and how many edges leave them."""
    count = int(counts[0])
    return count & 0xFFFFFFFF, count >> 32


def balanced(kernel: str, edges: int, *arguments: Array | np.generic, **how: Any) -> Launch:
    """A launch of a kernel with ``cte::advance_balanced``: a lane per edge, or per `EDGES_PER_LANE` edges."""
    return launch(kernel, max(min(edges, LANES), -(-edges // EDGES_PER_LANE)), *arguments, **how)


def room_of(items: Array) -> np.generic:
    """The capacity of a queue with this array, in the type that kernels take."""
    capacity: np.generic = np.uint64(len(items))
    return capacity


def edges_reached(offsets: Array, neighbors: Array, source: int) -> int:
    """The number of edges that leave the vertices that can be reached from ``source``."""
    return int(np.diff(offsets)[reached(offsets, neighbors, source)].sum())
