"""PageRank: what pagerank.cu runs, and the answer by scipy."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cccopt.harness.csr import inputs as csr_inputs
from cccopt.harness.csr.generators import GENERATORS
from cccopt.harness.csr.workload import (
    BLOCK,
    array,
    arrays,
    carries,
    counters,
    edge_parallel_threads,
    finish_threads,
    launch,
    merge_path_blocks,
    owners,
    page_ranks,
    partition,
    pieces,
    square,
    wrong_sums,
)
from cccopt.harness.workload import Inputs, Launch, State, Zeros

INPUTS = tuple(GENERATORS)
FORMS = ("tasks", "merge_path", "defer_long", "edge_parallel")
RESULTS = ("ranks",)
SCRATCH = ("given", "carries", "pieces", "counters")
FULL_REFERENCE = True

DAMPING = 0.85
ITERATIONS = 5


def inputs(name: str, size: str, seed: int) -> Inputs:
    """The graph ``name`` as lists of the vertices that edges come from, and equal ranks."""
    graph = square(csr_inputs.load(name, size, seed))
    incoming = graph.transpose()
    return {
        "out_degrees": graph.degrees,
        "offsets": incoming.offsets,
        "sources": incoming.indices,
        "owners": owners(incoming.offsets),
        "ranks": np.full(graph.rows, 1 / graph.rows, np.float32),
        "given": Zeros(graph.rows, np.float32),
        "carries": carries(incoming.offsets, np.float32),
        "partition": partition(incoming.offsets),
        "pieces": pieces(incoming.offsets),
        "counters": counters(),
    }


def launches(state: State, form: str) -> Generator[Launch, None, None]:
    """Two launches an iteration, and of other forms a third one: see those of the workload ``spmv``."""
    out_degrees, offsets, sources = arrays(state, "out_degrees", "offsets", "sources")
    owner, ranks, given, carried = arrays(state, "owners", "ranks", "given", "carries")
    divided, *left = arrays(state, "partition", "pieces", "counters")
    count, edges, blocks = len(ranks), len(sources), merge_path_blocks(offsets)
    vertices, rest = np.int32(count), np.float32((1 - DAMPING) / count)
    pulled = (vertices, rest, offsets, sources, given, ranks)
    steps = {
        "tasks": [("pagerank", count, pulled)],
        "merge_path": [
            ("pagerank_merge_path", blocks * BLOCK, (*pulled, carried, divided)),
            ("pagerank_fix_up", blocks, (np.int32(blocks), rest, offsets, ranks, carried)),
        ],
        "defer_long": [
            ("pagerank_defer_long", count, (*pulled, *left)),
            ("pagerank_finish", finish_threads(edges), (sources, given, ranks, *left)),
        ],
        "edge_parallel": [
            ("pagerank_begin", count, (vertices, rest, ranks)),
            (
                "pagerank_edge_parallel",
                edge_parallel_threads(edges),
                (np.int32(edges), owner, sources, given, ranks),
            ),
        ],
    }
    give = ("pagerank_give", count, (vertices, out_degrees, ranks, given))
    for number in range(ITERATIONS):
        for kernel, threads, arguments in (give, *steps[form]):
            yield launch(kernel, threads, *arguments, label=f"iteration {number}")


def reference(inputs: Mapping[str, Any]) -> Mapping[str, NDArray[Any]]:
    """The ranks by scipy, and how far each may be off."""
    given = arrays(inputs, "out_degrees", "offsets", "sources", "ranks")
    return page_ranks(*given, DAMPING, ITERATIONS)


def check(result: Mapping[str, Any], expected: Mapping[str, NDArray[Any]]) -> str:
    """Sums in any order, of what may be off itself."""
    return wrong_sums("ranks", result["ranks"], expected["ranks"], expected["slack"])


def least_bytes(inputs: Mapping[str, Any]) -> int:
    """An iteration: every edge's source; a vertex' degree, offset, rank (read and written) and what it gives (same)."""
    return 4 * ITERATIONS * (len(array(inputs, "sources")) + 6 * len(array(inputs, "ranks")))
