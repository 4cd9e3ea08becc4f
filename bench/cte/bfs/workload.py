"""Breadth-first search: what bfs.cu runs, and the answer by scipy."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cccopt.harness.csr import inputs as csr_inputs
from cccopt.harness.csr.matrix import scipy_module
from cccopt.harness.csr.workload import (
    SEARCHED,
    arrays,
    busiest,
    launch,
    reached,
    sparse,
    square,
    wrong_numbers,
)
from cccopt.harness.workload import Inputs, Launch, State

INPUTS = SEARCHED
FORMS = ("tasks",)
RESULTS = ("levels", "changed")


def inputs(name: str, size: str, seed: int) -> Inputs:
    """The graph ``name`` and levels that are -1, but 0 where the search begins: at the busiest vertex."""
    graph = square(csr_inputs.load(name, size, seed))
    levels = np.full(graph.rows, -1, np.int32)
    source = busiest(graph.offsets)
    levels[source] = 0
    return {
        "source": source,
        "offsets": graph.offsets,
        "neighbours": graph.indices,
        "levels": levels,
        "changed": np.zeros(1, np.int32),
    }


def launches(state: State, form: str) -> Generator[Launch, None, None]:
    """One launch a level, until a launch reaches no vertex."""
    offsets, neighbours, levels, changed = arrays(state, "offsets", "neighbours", "levels", "changed")
    vertices, current = len(levels), 0
    changed[0] = 1
    while changed[0] and current < vertices:  # a wrong kernel ends, too
        changed[0] = 0
        arguments = (np.int32(vertices), np.int32(current), offsets, neighbours, levels, changed)
        yield launch("bfs", vertices, *arguments, host=("changed",), label=f"level {current}")
        current += 1


def reference(inputs: Mapping[str, Any]) -> Mapping[str, NDArray[Any]]:
    """The levels by scipy."""
    offsets, neighbours = arrays(inputs, "offsets", "neighbours")
    edges = sparse(offsets, neighbours, np.ones(len(neighbours)), len(offsets) - 1)
    find = scipy_module("sparse.csgraph").dijkstra
    hops = find(edges, indices=inputs["source"], unweighted=True)
    return {"levels": np.where(np.isinf(hops), -1, hops).astype(np.int32)}


def check(result: Mapping[str, Any], expected: Mapping[str, NDArray[Any]]) -> str:
    """Levels are integers: they must be equal."""
    return wrong_numbers("levels", result["levels"], expected["levels"])


def least_bytes(inputs: Mapping[str, Any]) -> int:
    """The neighbours, offset and level of every vertex that is reached, each once."""
    offsets, neighbours = arrays(inputs, "offsets", "neighbours")
    vertices = reached(offsets, neighbours, inputs["source"])
    return 4 * (int(np.diff(offsets)[vertices].sum()) + 2 * len(vertices))
