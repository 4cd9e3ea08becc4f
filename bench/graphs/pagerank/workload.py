"""PageRank: the forms of pagerank.cu, and the ranks by scipy."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cccopt.harness.csr import inputs as csr_inputs
from cccopt.harness.csr.workload import array, arrays, launch, page_ranks, square, wrong_sums
from cccopt.harness.graphs.traversal import annotated, both_ways
from cccopt.harness.workload import Inputs, Launch, State, Zeros

FORMS = ("plain", "ccc", "pull", "program", "push")
POLICY_FORMS = ("pull", "program", "push")
RESULTS = ("ranks",)
SCRATCH = ("given", "gives")
FULL_REFERENCE = True

DAMPING = 0.85
ITERATIONS = 5


def inputs(name: str, size: str, seed: int) -> Inputs:
    """The graph ``name`` and its transpose, and equal ranks."""
    graph = square(csr_inputs.load(name, size, seed))
    return {
        "out_degrees": graph.degrees,
        **both_ways(graph),
        "ranks": np.full(graph.rows, 1 / graph.rows, np.float32),
        "given": Zeros(graph.rows, np.float32),
        "gives": Zeros(graph.rows, np.float32),
    }


def launches(state: State, form: str) -> Generator[Launch, None, None]:
    """Two launches an iteration, or with ``program`` one, and one before the first."""
    out_degrees, ranks, given, gives = arrays(state, "out_degrees", "ranks", "given", "gives")
    count = len(ranks)
    vertices, rest = np.int32(count), np.float32((1 - DAMPING) / count)
    pulled = (vertices, rest, *arrays(state, "in_offsets", "sources"), given, ranks)
    pushed = (vertices, *arrays(state, "offsets", "neighbors"), given, ranks)
    for number in range(ITERATIONS):
        label = f"iteration {number}"
        if form != "program" or number == 0:
            yield launch("pagerank_give", count, vertices, rest, out_degrees, ranks, given, label=label)
        if form == "program":
            graph = arrays(state, "in_offsets", "sources")
            what = (vertices, rest, *graph, out_degrees, given, gives, ranks)
            yield launch("pagerank_program", count, *what, label=label)
            given, gives = gives, given
        elif form == "push":
            yield launch("pagerank_push", count, *pushed, label=label)
        elif form == "pull":
            yield launch("pagerank_pull", count, *pulled, label=label)
        else:
            yield annotated(form, "pagerank_plain", count, *pulled, label=label)


def reference(inputs: Mapping[str, Any]) -> Mapping[str, NDArray[Any]]:
    """The ranks by scipy, and how far each may be off."""
    given = arrays(inputs, "out_degrees", "in_offsets", "sources", "ranks")
    return page_ranks(*given, DAMPING, ITERATIONS)


def check(result: Mapping[str, Any], expected: Mapping[str, NDArray[Any]]) -> str:
    """Sums in any order, of what may be off itself."""
    return wrong_sums("ranks", result["ranks"], expected["ranks"], expected["slack"])


def edges(inputs: Mapping[str, Any]) -> int:
    """All edges, once an iteration."""
    return ITERATIONS * len(array(inputs, "sources"))
