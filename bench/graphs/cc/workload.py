"""Connected components: the forms of cc.cu, and the components by scipy."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cccopt.harness.csr import inputs as csr_inputs
from cccopt.harness.csr.matrix import scipy_module
from cccopt.harness.csr.workload import arrays, launch, sparse, square, wrong_numbers
from cccopt.harness.graphs.traversal import annotated
from cccopt.harness.workload import Inputs, Launch, State

FORMS = ("plain", "ccc", "cte")
POLICY_FORMS = ("cte",)
RESULTS = ("labels",)
SCRATCH = ("changed",)
FULL_REFERENCE = True
LAUNCHES_VARY = True


def inputs(name: str, size: str, seed: int) -> Inputs:
    """The graph ``name``; every vertex is a component of its own."""
    graph = square(csr_inputs.load(name, size, seed))
    return {
        "offsets": graph.offsets,
        "neighbors": graph.indices,
        "labels": np.arange(graph.rows, dtype=np.int32),
        "changed": np.ones(1, np.int32),
    }


def launches(state: State, form: str) -> Generator[Launch, None, None]:
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
        yield launch("cc_compress", count, vertices, labels, label=label)


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
