"""Breadth-first search on a seeded R-MAT graph: what bfs.cu runs, and the answer by numpy."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cccopt.harness.workload import Inputs, Launch, State

# name: (log2 of the vertices, edges a vertex, grid). A lane makes 2^scale / (256 * grid) trips.
_SIZES = {"small": (12, 8, 1), "demo": (17, 8, 16), "full": (22, 8, 528)}
SIZES = tuple(_SIZES)

# Where 32 random bits send an edge: 0.57, 0.76 and 0.95 of 2^32 (the probabilities of Graph500's R-MAT).
_TOP_LEFT, _TOP, _BOTTOM_LEFT = 2448131358, 3264175144, 4080218931


def hash32(x: NDArray[np.uint32]) -> NDArray[Any]:
    """A permutation of the 32-bit numbers that mixes them well; the same as in bfs.cu."""
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


def rmat(scale: int, edge_factor: int, seed: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The graph of bfs.cu as (2^scale + 1 row offsets, neighbours); duplicates and loops are kept."""
    edges = edge_factor << scale
    key = hash32(np.arange(edges, dtype=np.uint32) + np.uint32(_hash(seed)))
    u = np.zeros(edges, np.uint32)
    v = np.zeros(edges, np.uint32)
    for level in range(scale):
        random = hash32(key + np.uint32(level * 0x9E3779B9 & 0xFFFFFFFF))
        down = random >= _TOP
        right = np.where(down, random >= _BOTTOM_LEFT, random >= _TOP_LEFT)
        u = (u << np.uint32(1)) | down
        v = (v << np.uint32(1)) | right
    u, v = _shuffled(u, scale, seed), _shuffled(v, scale, seed)
    row = np.zeros((1 << scale) + 1, np.int32)
    np.cumsum(np.bincount(u, minlength=1 << scale), out=row[1:])
    return row, v[np.argsort(u, kind="stable")].astype(np.int32)


def inputs(size: str, seed: int) -> Inputs:
    """A search in a graph of that size."""
    scale, edge_factor, grid = _SIZES[size]
    return search(scale, edge_factor, grid, seed)


def search(scale: int, edge_factor: int, grid: int, seed: int) -> Inputs:
    """The graph as CSR, and levels that are 0 at the vertex with the most neighbours and -1 elsewhere."""
    row, neighbours = rmat(scale, edge_factor, seed)
    levels = np.full(1 << scale, -1, np.int32)
    levels[np.argmax(np.diff(row))] = 0
    return {
        "grid": grid,
        "row": row,
        "neighbours": neighbours,
        "levels": levels,
        "changed": np.zeros(1, np.int32),
    }


def launches(state: State) -> Generator[Launch, None, None]:
    """One launch a level, until a launch reaches nobody."""
    levels, row, neighbours, changed = (_array(state, k) for k in ("levels", "row", "neighbours", "changed"))
    grid = (int(state["grid"]), 1, 1)
    changed[0] = 1
    current = 0
    while changed[0]:
        changed[0] = 0
        arguments = (np.int32(len(levels)), np.int32(current), levels, row, neighbours, changed)
        yield Launch("bfs", grid, (256, 1, 1), arguments, host=("changed",), label=f"level {current}")
        current += 1


def _array(state: Mapping[str, Any], name: str) -> NDArray[np.int32]:
    array = state[name]
    assert isinstance(array, np.ndarray)
    return array


def reference(inputs: Inputs) -> Mapping[str, NDArray[Any]]:
    """The levels by numpy, one frontier at a time."""
    row, neighbours = _array(inputs, "row"), _array(inputs, "neighbours")
    levels = _array(inputs, "levels").copy()
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


def summary(inputs: Inputs, levels: NDArray[np.int32]) -> str:
    """The text that bfs.cu prints for these inputs and the levels that were found."""
    edges, source = len(_array(inputs, "neighbours")), int(np.argmax(_array(inputs, "levels")))
    vertices = np.arange(len(levels), dtype=np.uint32)
    checksum = int(hash32(vertices ^ hash32(levels.astype(np.uint32))).sum(dtype=np.uint64)) & 0xFFFFFFFF
    lines = [f"vertices {len(levels)} edges {edges} source {source} checksum {checksum:08x}"]
    histogram = np.bincount(levels[levels >= 0])
    return "\n".join(lines + [f"level {level}: {count}" for level, count in enumerate(histogram)]) + "\n"
