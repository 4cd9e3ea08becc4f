"""Shortest paths in the R-MAT graphs of the sample ``bfs``: what sssp.cu runs, and the answer by numpy."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from cccopt.harness.workload import Inputs, Launch, State, load

# The workload `bfs`, as a module: it has more functions than a workload must have.
_bfs = cast(Any, load("bfs").workload)

UNREACHED = np.int32(0x7FFFFFFF)
SIZES = ("small", "demo", "full")
GRIDS = {"small": 2, "demo": 16, "full": 1056}
RESULTS = ("mask", "costs", "updating", "changed")


def inputs(size: str, seed: int) -> Inputs:
    """A search in a graph of that size."""
    if size == "full":
        return search(_bfs.livejournal(seed), GRIDS[size], made_here=False)
    return search(_bfs.graph500({"small": 11, "demo": 15}[size], 8, seed), GRIDS[size])


def search(graph: Any, grid: int, *, made_here: bool = True) -> Inputs:
    """The graph as CSR with weights, and where the search begins."""
    made = _bfs.graph_inputs(graph, weighted=True, made_here=made_here)
    state = {
        "grid": grid,
        **made,
        "mask": np.zeros(graph.vertices, np.int32),
        "costs": np.full(graph.vertices, UNREACHED, np.int32),
        "updating": np.full(graph.vertices, UNREACHED, np.int32),
        "changed": np.zeros(1, np.int32),
    }
    if made_here:
        _begin(state, _bfs.busiest(made["row"]))
    return state


def _begin(state: Mapping[str, Any], source: int) -> None:
    state["mask"][source] = 1
    state["costs"][source] = state["updating"][source] = 0


def setup(state: State) -> Generator[Launch, None, None]:
    """The graph, where it is not made on the host, and the search's first vertex."""
    begun = ("mask", "costs", "updating")
    lists = ("neighbours", "weights")
    yield from _bfs.make_graph(state, lists, lambda source: _begin(state, source), begun)


def launches(state: State) -> Generator[Launch, None, None]:
    """Two launches a round, until a round lowers no cost."""
    names = ("mask", "costs", "updating", "row", "neighbours", "weights", "changed")
    mask, costs, updating, row, neighbours, weights, changed = (_bfs.array(state, name) for name in names)
    grid, block, vertices = (int(state["grid"]), 1, 1), (256, 1, 1), np.int32(len(costs))
    changed[0] = 1
    number = 0
    while changed[0]:
        relaxed = (vertices, mask, costs, updating, row, neighbours, weights)
        yield Launch("sssp_relax", grid, block, relaxed, label=f"round {number} relax")
        changed[0] = 0
        updated = (vertices, mask, costs, updating, changed)
        yield Launch("sssp_update", grid, block, updated, host=("changed",), label=f"round {number} update")
        number += 1


def reference(inputs: Mapping[str, Any]) -> Mapping[str, NDArray[Any]]:
    """The costs by numpy: all edges of the vertices whose cost was lowered, round by round."""
    row, neighbours, weights = (_bfs.array(inputs, name) for name in ("row", "neighbours", "weights"))
    costs = inputs["costs"].astype(np.int64)
    lowered = np.flatnonzero(costs == 0)
    source = np.repeat(np.arange(len(costs)), np.diff(row))
    while lowered.size:
        among = np.zeros(len(costs), bool)
        among[lowered] = True
        edges = np.flatnonzero(among[source])
        before = costs.copy()
        np.minimum.at(costs, neighbours[edges], before[source[edges]] + weights[edges])
        lowered = np.flatnonzero(costs < before)
    return {"costs": costs.astype(np.int32)}


def check(result: Mapping[str, Any], expected: Mapping[str, NDArray[Any]]) -> str:
    """Costs are integers: they must be equal."""
    wrong = np.flatnonzero(result["costs"] != expected["costs"])
    if not wrong.size:
        return ""
    v = int(wrong[0])
    return f"{wrong.size} wrong costs; costs[{v}] is {result['costs'][v]}, not {expected['costs'][v]}"


def summary(inputs: Mapping[str, Any], costs: NDArray[np.int32], rounds: int) -> str:
    """The text that sssp.cu prints for these inputs and the costs that were found."""
    vertices = np.arange(len(costs), dtype=np.uint32)
    hashes = _bfs.hash32(vertices ^ _bfs.hash32(costs.astype(np.uint32)))
    checksum = int(hashes.sum(dtype=np.uint64)) & 0xFFFFFFFF
    reached = costs[costs != UNREACHED]
    source, edges = int(np.argmax(inputs["mask"])), len(inputs["neighbours"])
    return (
        f"vertices {len(costs)} edges {edges} source {source} checksum {checksum:08x}\n"
        f"rounds {rounds} reached {reached.size} farthest {reached.max()}\n"
    )
