"""Triangle counting: the forms of tc.cu, and the number by scipy."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cccopt.harness.csr import inputs as csr_inputs
from cccopt.harness.csr.matrix import Csr, from_edges
from cccopt.harness.csr.workload import arrays, launch, owners, sparse, square, wrong_numbers
from cccopt.harness.workload import Inputs, Launch, State

FORMS = ("plain", "cte")
POLICY_FORMS = ("cte",)
RESULTS = ("triangles",)


def oriented(graph: Csr) -> Csr:
    """Each pair of neighbors once, the edge from the one with fewer neighbors to the one with more; no loops."""
    tails, heads = owners(graph.offsets).astype(np.int64), graph.indices.astype(np.int64)
    low, high = np.minimum(tails, heads), np.maximum(tails, heads)
    pairs = np.unique((low << 32 | high)[low != high])
    low, high = pairs >> 32, pairs & 0xFFFFFFFF
    degrees = np.bincount(low, minlength=graph.rows) + np.bincount(high, minlength=graph.rows)
    swaps = degrees[high] < degrees[low]
    return from_edges(graph.rows, np.where(swaps, high, low), np.where(swaps, low, high))


def inputs(name: str, size: str, seed: int) -> Inputs:
    """The graph ``name``, oriented, with the vertex that each edge leaves."""
    graph = oriented(square(csr_inputs.load(name, size, seed)))
    return {
        "offsets": graph.offsets,
        "neighbors": graph.indices,
        "tails": owners(graph.offsets),
        "triangles": np.zeros(1, np.uint64),
    }


def launches(state: State, form: str) -> Generator[Launch, None, None]:
    """One launch, a thread an edge."""
    offsets, neighbors, tails, triangles = arrays(state, "offsets", "neighbors", "tails", "triangles")
    kernel = "tc_intersect" if form == "cte" else "tc_plain"
    edges = len(neighbors)
    yield launch(kernel, edges, np.int32(edges), offsets, neighbors, tails, triangles, label="edges")


def reference(inputs: Mapping[str, Any]) -> Mapping[str, NDArray[Any]]:
    """The number by scipy: the paths of two edges whose ends an edge joins."""
    offsets, neighbors = arrays(inputs, "offsets", "neighbors")
    edges = sparse(offsets, neighbors, np.ones(len(neighbors), np.int64), len(offsets) - 1)
    return {"triangles": np.array([(edges @ edges).multiply(edges).sum()], np.uint64)}


def check(result: Mapping[str, Any], expected: Mapping[str, NDArray[Any]]) -> str:
    """The numbers must be equal."""
    return wrong_numbers("triangles", result["triangles"], expected["triangles"])


def edges(inputs: Mapping[str, Any]) -> int:
    """The oriented edges, each once."""
    (neighbors,) = arrays(inputs, "neighbors")
    return len(neighbors)
