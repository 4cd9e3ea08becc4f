"""Connected components: the forms of cc.cu, and the components by scipy."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cccopt.harness.csr import inputs as csr_inputs
from cccopt.harness.csr.matrix import scipy_module
from cccopt.harness.csr.workload import arrays, launch, sparse, square, wrong_numbers
from cccopt.harness.graphs.traversal import annotated, both_ways
from cccopt.harness.workload import Array, Inputs, Launch, State

FORMS = ("plain", "ccc", "cte", "union", "sampled")
POLICY_FORMS = ("cte", "union", "sampled")
RESULTS = ("labels",)
SCRATCH = ("changed", "most_frequent")
FULL_REFERENCE = True
LAUNCHES_VARY = True

SAMPLED_EDGES = 2
"""How many edges of each vertex the form ``sampled`` looks at first, as its authors do."""
SAMPLED_VERTICES = 1024
"""How many vertices say then which component most are in: the threads of the block that counts them."""


def inputs(name: str, size: str, seed: int) -> Inputs:
    """The graph ``name`` and its transpose; every vertex is a component of its own."""
    graph = square(csr_inputs.load(name, size, seed))
    return {
        **both_ways(graph),
        "labels": np.arange(graph.rows, dtype=np.int32),
        "changed": np.ones(1, np.int32),
        "most_frequent": np.zeros(1, np.int32),
    }


def launches(state: State, form: str) -> Generator[Launch, None, None]:
    """All edges, once or until none joins two components."""
    if form == "union":
        yield from _united(state)
    elif form == "sampled":
        yield from _sampled(state)
    else:
        yield from _hooked(state, form)


def _hooked(state: State, form: str) -> Iterator[Launch]:
    """Two launches a round, until no edge joins two components."""
    offsets, neighbors, labels, changed = arrays(state, "offsets", "neighbors", "labels", "changed")
    count = len(labels)
    vertices = np.int32(count)
    hooked = (vertices, offsets, neighbors, labels, changed)
    for number in range(count):  # a wrong kernel ends, too
        if not changed[0]:
            return
        changed[0] = 0
        label = f"round {number}"
        if form == "cte":
            yield launch("cc_hook", count, *hooked, host=("changed",), label=label)
        else:
            yield annotated(form, "cc_hook_plain", count, *hooked, host=("changed",), label=label)
        yield _compressed(labels, label)


def _united(state: State) -> Iterator[Launch]:
    """Each edge once."""
    *graph, labels = arrays(state, "offsets", "neighbors", "labels")
    yield launch("cc_union", len(labels), np.int32(len(labels)), *graph, labels, label="all edges")
    yield _compressed(labels, "all edges")


def _sampled(state: State) -> Iterator[Launch]:
    """Some edges of each vertex, then all edges, both ways, of those that are not in the largest component by then."""
    *graph, labels, most_frequent = arrays(state, "offsets", "neighbors", "labels", "most_frequent")
    count = len(labels)
    vertices = np.int32(count)
    for place in range(SAMPLED_EDGES):
        label = f"edges {place}"
        yield launch("cc_union_one", count, vertices, np.int32(place), *graph, labels, label=label)
        yield _compressed(labels, label)
    shape = (1, 1, 1), (SAMPLED_VERTICES, 1, 1)
    yield Launch("cc_most_frequent", *shape, (vertices, labels, most_frequent), label="largest")
    for way in (graph, arrays(state, "in_offsets", "sources")):
        yield launch("cc_union_others", count, vertices, *way, most_frequent, labels, label="other edges")
    yield _compressed(labels, "other edges")


def _compressed(labels: Array, label: str) -> Launch:
    return launch("cc_compress", len(labels), np.int32(len(labels)), labels, label=label)


def reference(inputs: Mapping[str, Any]) -> Mapping[str, NDArray[Any]]:
    """The smallest vertex of each vertex' component, by scipy."""
    offsets, neighbors = arrays(inputs, "offsets", "neighbors")
    edges = sparse(offsets, neighbors, np.ones(len(neighbors), np.int8), len(offsets) - 1)
    find = scipy_module("sparse.csgraph").connected_components
    _, component = find(edges, directed=True, connection="weak")
    _, first = np.unique(component, return_index=True)
    return {"labels": first[component].astype(np.int32)}


def check(result: Mapping[str, Any], expected: Mapping[str, NDArray[Any]]) -> str:
    """Labels are integers: they must be equal."""
    return wrong_numbers("labels", result["labels"], expected["labels"])


def edges(inputs: Mapping[str, Any]) -> int:
    """All edges, each once."""
    (neighbors,) = arrays(inputs, "neighbors")
    return len(neighbors)
