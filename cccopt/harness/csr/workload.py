"""What the benchmark workloads over CSR inputs share: their launches, their graphs, and what "same" means for sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cccopt.diagnostic import CccError, error
from cccopt.harness.csr.generators import GENERATORS
from cccopt.harness.csr.matrix import LIMIT, Csr, scipy_module
from cccopt.harness.workload import Array, Launch, Zeros

BLOCK = 256
"""Threads per block: ``BLOCK`` in the workloads' sources."""

SEARCHED = tuple(name for name in GENERATORS if name not in ("delaunay_probe", "rajat_probe", "banded"))
"""The generated graphs that searches run on. In the others, all edges lead to nearby vertices: a search takes tens of
thousands of levels, each of them a launch, and nearly all of them find a handful of vertices.
"""

TILE = 5 * BLOCK
"""How many tasks and fine tasks a block of the form `cte::kernel::merge_path` takes in the workloads' sources."""

EDGES = 8 * BLOCK
"""How many fine tasks a block of the form `cte::kernel::edge_parallel` takes."""

SPLIT = 8
"""The most fine tasks of a virtual task in the workloads' sources: K of the form `cte::kernel::virtual_split`."""

MOST = 512
"""With more than this many fine tasks left, `cte::kernel::defer_long` leaves the rest of a task to its second kernel,
in pieces of this size (in the workloads' sources).
"""

FINISHING = 528
"""The most blocks of that kernel: four for each of an H200's 132 multiprocessors."""

RELATIVE = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-12}
"""How far a short sum may be off, as a fraction of the sum of its terms' absolute values."""


def launch(
    kernel: str, threads: int, *arguments: Array | np.generic, host: tuple[str, ...] = (), label: str = ""
) -> Launch:
    """A launch with at least ``threads`` threads, in blocks of `BLOCK`."""
    return Launch(kernel, (max(1, -(-threads // BLOCK)), 1, 1), (BLOCK, 1, 1), arguments, host, label)


def merge_path_blocks(offsets: Array) -> int:
    """How many blocks `cte::kernel::merge_path` needs for the tasks with these ``offsets``."""
    return max(1, -(-(len(offsets) - 1 + int(offsets[-1])) // TILE))


def carries(offsets: Array, dtype: DTypeLike) -> Zeros:
    """Room for what the blocks of `cte::kernel::merge_path` leave: two values and two 32-bit numbers each."""
    return Zeros(merge_path_blocks(offsets) * (2 * np.dtype(dtype).itemsize + 8), np.uint8)


def partition(offsets: Array) -> NDArray[np.int32]:
    """For each block of `cte::kernel::merge_path`, how many tasks end before it; last, the number of all tasks. As
    `divide` writes them.

    Prepared once for a matrix, like cuSPARSE's preprocessing: neither is timed.
    """
    tasks = len(offsets) - 1
    ends = offsets[1:] + np.arange(tasks, dtype=np.int64)
    begins = np.minimum(np.arange(merge_path_blocks(offsets) + 1) * TILE, tasks + int(offsets[-1]))
    return np.searchsorted(ends, begins).astype(np.int32)


def _pieces(fine: int) -> int:
    return fine // MOST * 2 + 1


def pieces(offsets: Array) -> Zeros:
    """Room for the pieces that `cte::kernel::defer_long` leaves to its second kernel: three 32-bit numbers each."""
    return Zeros(3 * _pieces(int(offsets[-1])), np.int32)


def counters() -> Zeros:
    """Room for the two counters of `cte::kernel::pieces`."""
    return Zeros(2, np.int32)


def finish_threads(fine: int) -> int:
    """How many threads take the pieces: a warp for each piece, but at most `FINISHING` blocks."""
    return min(FINISHING * BLOCK, _pieces(fine) * 32)


def edge_parallel_threads(fine: int) -> int:
    """How many threads `cte::kernel::edge_parallel` needs to take all fine tasks at once."""
    return -(-fine // EDGES) * BLOCK


def first_pieces(offsets: Array) -> NDArray[np.int32]:
    """The first virtual task of each task, and their number, for `cte::kernel::virtual_split`."""
    first = np.zeros(len(offsets), np.int32)
    np.cumsum(-(-np.diff(offsets) // SPLIT), out=first[1:])
    return first


def array(state: Mapping[str, Any], name: str) -> Array:
    """The array ``name`` of a state."""
    found = state[name]
    assert isinstance(found, np.ndarray)
    return found


def arrays(state: Mapping[str, Any], *names: str) -> tuple[Array, ...]:
    """The arrays called ``names``, in that order, for instance as a kernel's arguments."""
    return tuple(array(state, name) for name in names)


def sparse(offsets: Array, indices: Array, values: Array, columns: int) -> Any:
    """The matrix as a sparse array of scipy."""
    shape = (len(offsets) - 1, columns)
    return scipy_module("sparse").csr_array((values, indices, offsets), shape=shape)


def square(graph: Csr) -> Csr:
    """The graph as a square matrix: no edges leave an added row, and none lead to an added column.

    Raises `CccError` (CCC101) for a graph without vertices: a search has nowhere to begin.
    """
    vertices = max(graph.rows, graph.columns)
    if not vertices:
        raise CccError(error("CCC101", "the graph has no vertices", help="use a graph that has some"))
    offsets = np.pad(graph.offsets, (0, vertices - graph.rows), "edge")
    return replace(graph, rows=vertices, columns=vertices, offsets=offsets, x=None)


def owners(offsets: NDArray[np.int32]) -> NDArray[np.int32]:
    """The row of each entry."""
    return np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets))


def busiest(offsets: NDArray[np.int32]) -> int:
    """The row with the most entries (the first of several), where searches begin."""
    return int(np.argmax(np.diff(offsets)))


def lengths(graph: Csr, seed: int) -> NDArray[np.uint32]:
    """The lengths of a graph's edges: its values if all are whole numbers of at least 1, else random ones from 1 to 64.

    Raises `CccError` (CCC101) for a length of `LIMIT` or more. With smaller ones, a distance below `LIMIT` plus a
    length fits in 32 bits.
    """
    values = graph.values
    if values is not None and bool(np.all((values >= 1) & (values == np.trunc(values)))):
        longest = int(values.max(initial=1))
        if longest >= LIMIT:
            raise CccError(
                error(
                    "CCC101",
                    f"an edge is too long: {longest}",
                    why=f"the workloads add lengths in 32 bits: they must be less than {LIMIT}",
                    help="scale the lengths down",
                )
            )
        return values.astype(np.uint32)
    return np.random.default_rng(seed).integers(1, 65, graph.nnz, dtype=np.uint32)


def reached(offsets: Array, neighbours: Array, source: int) -> Array:
    """The vertices that can be reached from ``source``, including itself."""
    edges = sparse(offsets, neighbours, np.ones(len(neighbours), np.int8), len(offsets) - 1)
    order = scipy_module("sparse.csgraph").breadth_first_order(edges, source, return_predecessors=False)
    return np.asarray(order)


def page_ranks(
    out_degrees: Array, offsets: Array, sources: Array, ranks: Array, damping: float, iterations: int
) -> dict[str, Array]:
    """PageRank by scipy in double precision, starting from single-precision ``ranks``, along the edges that lead to
    each vertex. Gives the ``ranks`` and, as ``slack``, how far each may be off: through its edges and through its own
    sum.
    """
    vertices = len(out_degrees)
    edges = sparse(offsets, sources, np.ones(len(sources)), vertices)
    part = np.divide(damping, out_degrees, out=np.zeros(vertices), where=out_degrees > 0)
    own = rounding(np.diff(offsets) + 1, np.float32)
    found, slack = ranks.astype(np.float64), np.zeros(vertices)
    for _ in range(iterations):
        found = (1 - damping) / vertices + edges @ (part * found)
        slack = edges @ (part * slack) + own * found
    return {"ranks": found, "slack": slack}


def rounding(terms: Array | int, dtype: DTypeLike) -> Array:
    """How far a sum of ``terms`` terms in any order may be off, as a fraction of the sum of their absolute values.

    For short sums, `RELATIVE`. For long ones, ``terms`` units of rounding (N. Higham, Accuracy and Stability of
    Numerical Algorithms, 2002, 4.2). A float sum of millions of terms, one after the other, can be off by several
    percent, since equal small terms are all rounded in the same direction.
    """
    kind = np.dtype(dtype)
    return np.maximum(RELATIVE[kind], np.multiply(terms, float(np.finfo(kind).eps) / 2))


def wrong_sums(name: str, found: Array, expected: Array, slack: Array) -> str:
    """What is wrong with numbers that may be off by ``slack``; "" if nothing is."""
    return _wrong(name, found, expected, ~(np.abs(found.astype(np.float64) - expected) <= slack))


def wrong_numbers(name: str, found: Array, expected: Array) -> str:
    """What is wrong with numbers that must be equal; "" if nothing is."""
    return _wrong(name, found, expected, found != expected)


def _wrong(name: str, found: Array, expected: Array, wrong: Array) -> str:
    places = np.flatnonzero(wrong)
    if not places.size:
        return ""
    first = int(places[0])
    return f"{places.size} wrong {name}; {name}[{first}] is {found[first]}, not {expected[first]}"
