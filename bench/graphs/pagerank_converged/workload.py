"""PageRank until it has converged: the forms of pagerank_converged.cu, and the ranks by scipy."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cccopt.harness.csr import inputs as csr_inputs
from cccopt.harness.csr.workload import array, arrays, launch, rounding, sparse, square, wrong_sums
from cccopt.harness.graphs.traversal import (
    SCANNED,
    annotated,
    balanced,
    both_scanned,
    both_ways,
    scanned_queues,
    scanned_sizes,
)
from cccopt.harness.workload import Inputs, Launch, State, Zeros

FORMS = ("plain", "ccc", "program", "residual")
POLICY_FORMS = ("program",)
RESULTS = ("ranks",)
SCRATCH = ("given", "gives", "residuals", "changed", *SCANNED)
FULL_REFERENCE = True
LAUNCHES_VARY = True

DAMPING = 0.85
TOLERANCE = 0.01
"""How much may be left at each vertex, as a part of what a vertex has without edges."""

MOST = 500
"""Iterations or rounds after which a wrong kernel ends, too; exact ones take some dozens."""


def inputs(name: str, size: str, seed: int) -> Inputs:
    """The graph ``name`` and its transpose, and what every vertex has without edges."""
    graph = square(csr_inputs.load(name, size, seed))
    vertices = graph.rows
    return {
        "out_degrees": graph.degrees,
        **both_ways(graph),
        "ranks": np.full(vertices, (1 - DAMPING) / vertices, np.float32),
        "given": Zeros(vertices, np.float32),
        "gives": Zeros(vertices, np.float32),
        "residuals": Zeros(vertices, np.float32),
        "changed": np.zeros(1, np.int32),
        **scanned_queues(0, graph.offsets),
    }


def launches(state: State, form: str) -> Generator[Launch, None, None]:
    """Iterations until no rank changes much, or rounds until no vertex has much to pass on."""
    yield from _pushed(state) if form == "residual" else _pulled(state, form)


def _pulled(state: State, form: str) -> Iterator[Launch]:
    """Two launches an iteration, or with ``program`` one, and one before the first."""
    out_degrees, ranks, changed = arrays(state, "out_degrees", "ranks", "changed")
    graph, (given, gives) = arrays(state, "in_offsets", "sources"), arrays(state, "given", "gives")
    count = len(ranks)
    vertices, rest, tolerance = np.int32(count), *_bounds(count)
    host: dict[str, Any] = {"host": ("changed",)}
    for number in range(MOST):
        label = f"iteration {number}"
        if form != "program" or number == 0:
            yield launch("converged_give", count, vertices, out_degrees, ranks, given, label=label)
        changed[0] = 0
        if form == "program":
            what = (vertices, rest, tolerance, *graph, out_degrees, given, gives, ranks, changed)
            yield launch("converged_program", count, *what, **host, label=label)
            given, gives = gives, given
        else:
            what = (vertices, rest, tolerance, *graph, given, ranks, changed)
            yield annotated(form, "converged_plain", count, *what, **host, label=label)
        if not changed[0]:
            return


def _pushed(state: State) -> Iterator[Launch]:
    """Two launches a round, and one before the first and after the last."""
    ranks, given, residuals = arrays(state, "ranks", "given", "residuals")
    graph = arrays(state, "offsets", "neighbors")
    offsets = graph[0]
    queues = both_scanned(state)
    count = len(ranks)
    vertices, rest, tolerance = np.int32(count), *_bounds(count)
    capacity, first = np.uint32(count), queues[0]
    first[-1][:] = 0
    begun = (vertices, rest, offsets, ranks, residuals, *first, capacity)
    yield launch("converged_begin", count, *begun, host=("counts_0",), label="begin")
    for number in range(MOST):
        now, then = queues[number % 2], queues[(number + 1) % 2]
        size, edges = scanned_sizes(now[-1])
        if not size:
            break
        then[-1][:] = 0
        label, host = f"round {number}", (f"counts_{(number + 1) % 2}",)
        taken = (offsets, ranks, residuals, given, now[0], now[-1])
        yield launch("converged_take", size, *taken, label=label)
        what = (tolerance, *graph, given, residuals, *now, *then, capacity)
        yield balanced("converged_push", edges, *what, host=host, label=label)
    yield launch("converged_end", count, vertices, residuals, ranks, label="end")


def _bounds(vertices: int) -> tuple[np.float32, np.float32]:
    """What every vertex has without edges, and how much may be left at each."""
    rest = (1 - DAMPING) / vertices
    return np.float32(rest), np.float32(TOLERANCE * rest)


def reference(inputs: Mapping[str, Any]) -> Mapping[str, NDArray[Any]]:
    """The ranks by scipy, in double precision, and how far each may be off: by what is left, passed on, and by rounding
    in as many additions as a vertex has in some rounds.
    """
    out_degrees, offsets, sources = arrays(inputs, "out_degrees", "in_offsets", "sources")
    vertices = len(out_degrees)
    edges = sparse(offsets, sources, np.ones(len(sources)), vertices)
    part = np.divide(DAMPING, out_degrees, out=np.zeros(vertices), where=out_degrees > 0)
    rest = (1 - DAMPING) / vertices

    def passed_on(begin: NDArray[Any]) -> NDArray[Any]:
        found, change = begin.copy(), begin
        while change.max(initial=0) > 1e-6 * begin.max(initial=0):
            change = edges @ (part * change)
            found += change
        return found

    ranks = passed_on(np.full(vertices, rest))
    lost = rounding(8 * (np.diff(offsets) + 1), np.float32) * ranks
    return {"ranks": ranks, "slack": TOLERANCE * ranks + passed_on(lost)}


def check(result: Mapping[str, Any], expected: Mapping[str, NDArray[Any]]) -> str:
    """Each rank is off by what may be left, and by rounding."""
    return wrong_sums("ranks", result["ranks"], expected["ranks"], expected["slack"])


def edges(inputs: Mapping[str, Any]) -> int:
    """All edges, each once, however many iterations there are."""
    return len(array(inputs, "sources"))
