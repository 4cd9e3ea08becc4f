"""Shortest paths from one vertex: what sssp.cu runs, and the answer by scipy."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cccopt.harness.csr import inputs as csr_inputs
from cccopt.harness.csr.matrix import scipy_module
from cccopt.harness.csr.workload import (
    SEARCHED,
    arrays,
    busiest,
    edge_parallel_threads,
    first_pieces,
    launch,
    lengths,
    owners,
    reached,
    sparse,
    square,
    wrong_numbers,
)
from cccopt.harness.workload import Inputs, Launch, State

INPUTS = SEARCHED
FORMS = ("tasks", "edge_parallel", "virtual_split", "virtual_split_strided")
RESULTS = ("distances", "updated", "nearer", "changed")

# A length more does not wrap.
UNREACHED = np.uint32(0x7FFFFFFF)


def inputs(name: str, size: str, seed: int) -> Inputs:
    """The graph ``name`` with its lengths, and a search that begins at the busiest vertex."""
    graph = square(csr_inputs.load(name, size, seed))
    weights = lengths(graph, seed)
    incoming = replace(graph, values=weights.astype(np.float32)).transpose()
    assert incoming.values is not None
    source = busiest(graph.offsets)
    distances = np.full(graph.rows, UNREACHED, np.uint32)
    distances[source] = 0
    nearer = np.zeros(graph.rows, np.int32)
    nearer[source] = 1
    return {
        "source": source,
        "offsets": graph.offsets,
        "neighbours": graph.indices,
        "lengths": weights,
        "in_offsets": incoming.offsets,
        "sources": incoming.indices,
        "in_lengths": incoming.values.astype(np.uint32),
        "owners": owners(incoming.offsets),
        "first": first_pieces(incoming.offsets),
        "distances": distances,
        "updated": distances.copy(),
        "nearer": nearer,
        "changed": np.zeros(1, np.int32),
    }


def launches(state: State, form: str) -> Generator[Launch, None, None]:
    """Two launches a round, until a round brings no vertex nearer."""
    distances, updated, nearer, changed = arrays(state, "distances", "updated", "nearer", "changed")
    in_offsets, owner, first = arrays(state, "in_offsets", "owners", "first")
    pulled = (*arrays(state, "sources", "in_lengths"), distances, updated)
    pushed = (nearer, distances, *arrays(state, "offsets", "neighbours", "lengths"), updated)
    vertices, edges, count = np.int32(len(distances)), np.int32(len(owner)), len(distances)
    split = ("sssp_virtual_split", int(first[-1]), (vertices, in_offsets, first, *pulled))
    kernel, threads, arguments = {
        "tasks": ("sssp_relax", count, (vertices, *pushed)),
        "edge_parallel": ("sssp_edge_parallel", edge_parallel_threads(len(owner)), (edges, owner, *pulled)),
        "virtual_split": split,
        "virtual_split_strided": split,
    }[form]
    number = 0
    changed[0] = 1
    while changed[0] and number < count:  # a wrong kernel ends, too
        yield launch(kernel, threads, *arguments, label=f"round {number} relax")
        changed[0] = 0
        moved = (vertices, updated, nearer, distances, changed)
        yield launch("sssp_update", count, *moved, host=("changed",), label=f"round {number} update")
        number += 1


def reference(inputs: Mapping[str, Any]) -> Mapping[str, NDArray[Any]]:
    """The distances by scipy."""
    offsets, neighbours, lengths = arrays(inputs, "offsets", "neighbours", "lengths")
    edges = sparse(offsets, neighbours, lengths.astype(np.float64), len(offsets) - 1)
    found = scipy_module("sparse.csgraph").dijkstra(edges, indices=inputs["source"])
    return {"distances": np.where(np.isinf(found), UNREACHED, found).astype(np.uint32)}


def check(result: Mapping[str, Any], expected: Mapping[str, NDArray[Any]]) -> str:
    """Distances are integers: they must be equal."""
    return wrong_numbers("distances", result["distances"], expected["distances"])


def least_bytes(inputs: Mapping[str, Any]) -> int:
    """The edges of every vertex that is reached, its offset and its distance, each once."""
    offsets, neighbours = arrays(inputs, "offsets", "neighbours")
    vertices = reached(offsets, neighbours, inputs["source"])
    return 8 * (int(np.diff(offsets)[vertices].sum()) + len(vertices))
