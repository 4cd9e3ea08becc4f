"""Breadth-first search on a seeded R-MAT graph: what bfs.cu runs, and the answer by numpy.

The graphs are those of the sample ``sssp`` too: see `graph_inputs` and `make_graph`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cccopt.harness.workload import Inputs, Launch, State, Zeros

# Where 32 random bits send an edge: to the top left, the top, all but the bottom right, in parts of 2^32.
# With those of Graph500, a graph of LiveJournal's size has a vertex of some 125,000 neighbours, which one lane
# visits while the GPU waits; LiveJournal's busiest has 20,293, and with the others it is some 7,000.
GRAPH500 = (2448131358, 3264175144, 4080218931)  # 0.57, 0.76, 0.95
LESS_SKEWED = (1932735283, 2877628088, 3822520893)  # 0.45, 0.67, 0.89


class Rmat(NamedTuple):
    """An R-MAT graph: the fields of its namesake in graph.cuh, in their order."""

    scale: int
    vertices: int
    edges: int
    seed: int
    top_left: int
    top: int
    bottom_left: int


def graph500(scale: int, edge_factor: int, seed: int) -> Rmat:
    """2^scale vertices, so many times more edges, and the probabilities of Graph500."""
    return Rmat(scale, 1 << scale, edge_factor << scale, seed, *GRAPH500)


def livejournal(seed: int) -> Rmat:
    """As many vertices and edges as the social network LiveJournal has (SNAP's soc-LiveJournal1)."""
    return Rmat(23, 4_847_571, 68_993_773, seed, *LESS_SKEWED)


SIZES = ("small", "demo", "full")
# Blocks. A lane makes vertices / (256 * grid) trips.
GRIDS = {"small": 1, "demo": 16, "full": 1056}
RESULTS = ("levels", "changed")


def hash32(x: NDArray[np.uint32]) -> NDArray[Any]:
    """A permutation of the 32-bit numbers that mixes them well; the same as in graph.cuh."""
    x = x.astype(np.uint32)
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x7FEB352D)
    x ^= x >> np.uint32(15)
    x *= np.uint32(0x846CA68B)
    x ^= x >> np.uint32(16)
    return x


def _hash(x: int) -> int:
    return int(hash32(np.array([x & 0xFFFFFFFF], np.uint32))[0])


def _shuffled(v: NDArray[np.uint32], scale: int, seed: int) -> NDArray[np.uint32]:
    mask = np.uint32((1 << scale) - 1)
    for turn in range(3):
        v = (v * np.uint32(_hash(seed + turn) | 1) + np.uint32(_hash(~seed + turn))) & mask
        v = v ^ (v >> np.uint32((scale + 1) // 2))
    return v


def _vertices(v: NDArray[np.uint32], graph: Rmat) -> NDArray[np.uint32]:
    numbers = _shuffled(v, graph.scale, graph.seed).astype(np.uint64)
    return (numbers * np.uint64(graph.vertices) >> np.uint64(graph.scale)).astype(np.uint32)


def rmat(graph: Rmat) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """The graph as (row offsets, neighbours, weights); duplicates and loops are kept."""
    e = np.arange(graph.edges, dtype=np.uint32)
    key = hash32(e + np.uint32(_hash(graph.seed)))
    u = np.zeros(graph.edges, np.uint32)
    v = np.zeros(graph.edges, np.uint32)
    for level in range(graph.scale):
        random = hash32(key + np.uint32(level * 0x9E3779B9 & 0xFFFFFFFF))
        down = random >= graph.top
        right = np.where(down, random >= graph.bottom_left, random >= graph.top_left)
        u = (u << np.uint32(1)) | down
        v = (v << np.uint32(1)) | right
    u, v = _vertices(u, graph), _vertices(v, graph)
    row = np.zeros(graph.vertices + 1, np.int32)
    np.cumsum(np.bincount(u, minlength=graph.vertices), out=row[1:])
    order = np.argsort(u, kind="stable")
    weights = 1 + hash32(~e ^ np.uint32(_hash(graph.seed))) % 64
    return row, v[order].astype(np.int32), weights[order].astype(np.int32)


def graph_inputs(graph: Rmat, *, weighted: bool, made_here: bool) -> Inputs:
    """The graph as CSR, made here or by `make_graph`."""
    if made_here:
        arrays = dict(zip(("row", "neighbours", "weights"), rmat(graph), strict=True))
        return {name: array for name, array in arrays.items() if weighted or name != "weights"}
    entries = {"neighbours": Zeros(graph.edges, np.int32)}
    if weighted:
        entries["weights"] = Zeros(graph.edges, np.int32)
    return {
        "graph": np.array(graph, np.uint32),
        "row": Zeros(graph.vertices + 1, np.int32),
        "next": Zeros(graph.vertices, np.int32),
        **entries,
    }


def make_graph(
    state: State, lists: tuple[str, ...], begin: Callable[[int], None], begun: tuple[str, ...]
) -> Generator[Launch, None, None]:
    """Launches that make what `graph_inputs` left to them: counts, then ``lists``, with the edges in any order.

    The offsets are summed up on the host. ``begin`` is told where the search begins and writes the arrays
    ``begun``.
    """
    if "graph" not in state:
        return
    grid = (int(state["grid"]), 1, 1)
    graph, row, following = array(state, "graph"), array(state, "row"), array(state, "next")
    yield Launch("rmat_count", grid, (256, 1, 1), (graph, row), host=("row",))
    np.cumsum(row, out=row)
    following[:] = row[:-1]
    begin(ordinary(row))
    arguments = (graph, following, *(array(state, name) for name in lists))
    yield Launch("rmat_scatter", grid, (256, 1, 1), arguments, host=("row", "next", *begun))


def busiest(row: NDArray[np.int32]) -> int:
    """The vertex with the most neighbours, the first of them: where a search in a small graph begins."""
    return int(np.argmax(np.diff(row)))


def ordinary(row: NDArray[np.int32]) -> int:
    """The first vertex with as many neighbours as the average: where a search in a large graph begins.

    A launch that does nothing but visit the neighbours of the busiest vertex would take one lane milliseconds.
    """
    degrees = np.diff(row)
    return int(np.argmax(degrees >= degrees.mean()))


def inputs(size: str, seed: int) -> Inputs:
    """A search in a graph of that size."""
    if size == "full":
        return search(livejournal(seed), GRIDS[size], made_here=False)
    return search(graph500({"small": 12, "demo": 17}[size], 8, seed), GRIDS[size])


def search(graph: Rmat, grid: int, *, made_here: bool = True) -> Inputs:
    """The graph as CSR, and levels that are -1, but 0 where the search begins."""
    made = graph_inputs(graph, weighted=False, made_here=made_here)
    levels = np.full(graph.vertices, -1, np.int32)
    if made_here:
        levels[busiest(array(made, "row"))] = 0
    return {"grid": grid, **made, "levels": levels, "changed": np.zeros(1, np.int32)}


def setup(state: State) -> Generator[Launch, None, None]:
    """The graph, where it is not made on the host, and the level of the vertex where the search begins."""

    def begin(source: int) -> None:
        array(state, "levels")[source] = 0

    yield from make_graph(state, ("neighbours",), begin, ("levels",))


def launches(state: State) -> Generator[Launch, None, None]:
    """One launch a level, until a launch reaches nobody."""
    levels, row, neighbours, changed = (array(state, k) for k in ("levels", "row", "neighbours", "changed"))
    grid = (int(state["grid"]), 1, 1)
    changed[0] = 1
    current = 0
    while changed[0]:
        changed[0] = 0
        arguments = (np.int32(len(levels)), np.int32(current), levels, row, neighbours, changed)
        yield Launch("bfs", grid, (256, 1, 1), arguments, host=("changed",), label=f"level {current}")
        current += 1


def array(state: Mapping[str, Any], name: str) -> NDArray[np.int32]:
    """The array ``name`` of a state."""
    found = state[name]
    assert isinstance(found, np.ndarray)
    return found


def reference(inputs: Mapping[str, Any]) -> Mapping[str, NDArray[Any]]:
    """The levels by numpy, one frontier at a time."""
    row, neighbours = array(inputs, "row"), array(inputs, "neighbours")
    levels = array(inputs, "levels").copy()
    frontier = np.flatnonzero(levels == 0)
    current = 0
    while frontier.size:
        degrees = row[frontier + 1] - row[frontier]
        # An entry of the concatenated lists stands at the start of its list plus its rank in the list.
        ranks = np.arange(degrees.sum()) - np.repeat(np.cumsum(degrees) - degrees, degrees)
        reached = neighbours[np.repeat(row[frontier], degrees) + ranks]
        frontier = np.unique(reached[levels[reached] < 0])
        current += 1
        levels[frontier] = current
    return {"levels": levels}


def check(result: Mapping[str, Any], expected: Mapping[str, NDArray[Any]]) -> str:
    """Levels are integers: they must be equal."""
    wrong = np.flatnonzero(result["levels"] != expected["levels"])
    if not wrong.size:
        return ""
    v = int(wrong[0])
    return f"{wrong.size} wrong levels; levels[{v}] is {result['levels'][v]}, not {expected['levels'][v]}"


def summary(inputs: Mapping[str, Any], levels: NDArray[np.int32]) -> str:
    """The text that bfs.cu prints for these inputs and the levels that were found."""
    edges, source = len(array(inputs, "neighbours")), int(np.argmax(array(inputs, "levels")))
    vertices = np.arange(len(levels), dtype=np.uint32)
    checksum = int(hash32(vertices ^ hash32(levels.astype(np.uint32))).sum(dtype=np.uint64)) & 0xFFFFFFFF
    lines = [f"vertices {len(levels)} edges {edges} source {source} checksum {checksum:08x}"]
    histogram = np.bincount(levels[levels >= 0])
    return "\n".join(lines + [f"level {level}: {count}" for level, count in enumerate(histogram)]) + "\n"
