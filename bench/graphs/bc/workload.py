"""Betweenness for the shortest paths from one vertex: the forms of bc.cu, and the dependencies by scipy."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cccopt.harness.csr import inputs as csr_inputs
from cccopt.harness.csr.matrix import scipy_module
from cccopt.harness.csr.workload import array, arrays, busiest, launch, sparse, square, wrong_sums
from cccopt.harness.graphs.traversal import (
    annotated,
    balanced,
    edges_reached,
    empty_mask,
    mask_of,
    queue_of,
    scanned_count,
    scanned_sizes,
)
from cccopt.harness.workload import Inputs, Launch, State, Zeros

# Without a road network: at size full there are more paths across one than a double counts.
INPUTS = ("rmat", "delaunay", "power_law", "erdos_renyi")
FORMS = ("plain", "ccc", "status", "mask", "queue", "balanced")
POLICY_FORMS = ("status", "mask", "queue")
RESULTS = ("paths", "dependencies")
COUNTED = ("begins", "now_counts", "next_counts")
SCRATCH = ("levels", "changed", "mask_0", "mask_1", "mask_2", "order", "now_size", "next_size", *COUNTED)

OFF = 1e-9
"""How far a number may be off, as a part of it: sums of doubles that are not negative, level by level, in any order."""


def inputs(name: str, size: str, seed: int) -> Inputs:
    """The graph ``name``; the paths begin at the busiest vertex."""
    graph = square(csr_inputs.load(name, size, seed))
    vertices = graph.rows
    return {
        "offsets": graph.offsets,
        "neighbors": graph.indices,
        "dependencies": Zeros(vertices, np.float64),
        "changed": np.ones(1, np.int32),
        "mask_1": empty_mask(vertices),
        "mask_2": empty_mask(vertices),
        "next_size": np.zeros(1, np.uint64),
        "begins": Zeros(vertices, np.uint32),
        "next_counts": np.zeros(2, np.uint64),
        **begin(graph.offsets, busiest(graph.offsets)),
    }


def begin(offsets: NDArray[np.int32], source: int) -> Inputs:
    """What the paths from ``source`` begin with."""
    vertices = len(offsets) - 1
    levels, paths = np.full(vertices, -1, np.int32), np.zeros(vertices)
    levels[source], paths[source] = 0, 1
    order, length = queue_of(source, vertices)
    return {
        "source": source,
        "levels": levels,
        "paths": paths,
        "order": order,
        "now_size": length,
        "mask_0": mask_of(source, vertices),
        "now_counts": scanned_count(source, offsets),
    }


def launches(state: State, form: str) -> Generator[Launch, None, None]:
    """A launch a level forward, until one reaches no vertex, then a launch a level back."""
    if form == "queue":
        yield from _queued(state)
    elif form == "balanced":
        yield from _balanced(state)
    else:
        yield from _tested(state, form)


def _tested(state: State, form: str) -> Iterator[Launch]:
    """Every vertex tests whether it is in the level. No masks are left for the way back: there, the form ``mask`` does
    as ``status`` does.
    """
    changed, levels, paths, dependencies = arrays(state, "changed", "levels", "paths", "dependencies")
    count, graph = len(levels), arrays(state, "offsets", "neighbors")
    tested = {"status": ("status", "status"), "mask": ("mask", "status")}
    forward, backward = tested.get(form, ("plain", "plain"))
    make = launch if form in tested else partial(annotated, form)
    masks, depth = arrays(state, "mask_0", "mask_1", "mask_2"), 0
    while changed[0] and depth < count:  # a wrong kernel ends, too
        changed[0] = 0
        level = (np.int32(count), np.int32(depth), *graph, levels, paths)
        turned = tuple(masks[(depth + turn) % 3] for turn in range(3)) if form == "mask" else ()
        how: dict[str, Any] = {"host": ("changed",), "label": f"level {depth}"}
        yield make(f"bc_forward_{forward}", count, *level, *turned, changed, **how)
        depth += 1
    # The last launch reached no vertex: no shortest path goes on from the level before.
    for back in range(depth - 2, -1, -1):
        level = (np.int32(count), np.int32(back), *graph, levels, paths)
        yield make(f"bc_backward_{backward}", count, *level, dependencies, label=f"back to {back}")


def _queued(state: State) -> Iterator[Launch]:
    """The vertices of all levels are in one queue."""
    levels, paths, dependencies, order = arrays(state, "levels", "paths", "dependencies", "order")
    now, following = arrays(state, "now_size", "next_size")
    graph, vertices = arrays(state, "offsets", "neighbors"), len(levels)
    room = np.uint64(vertices)
    sizes = ("now_size", "next_size")
    frontiers, first = [int(now[0])], 0
    # A wrong kernel ends, too, and within the queue.
    while frontiers[-1] and first + frontiers[-1] <= vertices:
        depth = len(frontiers) - 1
        now[0], following[0] = frontiers[-1], 0
        level = (np.int32(depth), *graph, levels, paths, order, np.uint64(first), now, following, room)
        yield launch("bc_forward_queue", frontiers[-1], *level, host=sizes, label=f"level {depth}")
        first += frontiers[-1]
        frontiers.append(int(following[0]))
    for back in range(len(frontiers) - 3, -1, -1):
        first, now[0] = sum(frontiers[:back]), frontiers[back]
        level = (np.int32(back), *graph, levels, paths, dependencies, order, np.uint64(first), now, room)
        yield launch("bc_backward_queue", frontiers[back], *level, host=sizes, label=f"back to {back}")


def _balanced(state: State) -> Iterator[Launch]:
    """All levels are in one queue that knows where the edges of its vertices begin."""
    levels, paths, dependencies, order = arrays(state, "levels", "paths", "dependencies", "order")
    begins, *counts = arrays(state, *COUNTED)
    now, following = counts
    queue, graph = (order, begins), arrays(state, "offsets", "neighbors")
    vertices, first = np.uint64(len(levels)), 0
    frontiers = [int(now[0])]
    while scanned_sizes(now)[0]:
        depth, (size, edges) = len(frontiers) - 1, scanned_sizes(now)
        following[:] = 0
        level = (np.int32(depth), *graph, levels, paths, *queue, np.uint64(first), now, following, vertices)
        host = (COUNTED[1 + (depth + 1) % 2],)
        yield balanced("bc_forward_balanced", edges, *level, host=host, label=f"level {depth}")
        first += size
        if first + scanned_sizes(following)[0] > len(levels):  # a wrong kernel ends, too
            return
        frontiers.append(int(following[0]))
        now, following = following, now
    now = counts[0]
    for back in range(len(frontiers) - 2, -1, -1):
        now[0] = frontiers[back]
        size, edges = scanned_sizes(now)
        first -= size
        level = (np.int32(back), *graph, levels, paths, dependencies, *queue, np.uint64(first), now, vertices)
        yield balanced("bc_backward_balanced", edges, *level, host=(COUNTED[1],), label=f"back to {back}")


def reference(inputs: Mapping[str, Any]) -> Mapping[str, NDArray[Any]]:
    """The paths and dependencies by scipy: a product with the matrix of edges for each level."""
    offsets, neighbors = arrays(inputs, "offsets", "neighbors")
    edges = sparse(offsets, neighbors, np.ones(len(neighbors)), len(offsets) - 1)
    levels = scipy_module("sparse.csgraph").dijkstra(edges, indices=inputs["source"], unweighted=True)
    paths, dependencies = array(inputs, "paths").copy(), np.zeros(len(levels))
    deepest = int(levels[np.isfinite(levels)].max())
    for depth in range(deepest):
        paths += np.where(levels == depth + 1, edges.T @ np.where(levels == depth, paths, 0), 0)
    part = np.divide(1.0, paths, out=np.zeros(len(levels)), where=paths > 0)
    for depth in range(deepest - 1, -1, -1):
        shares = edges @ np.where(levels == depth + 1, part * (1 + dependencies), 0)
        with np.errstate(invalid="ignore"):  # `check` says so where paths are too many to be counted
            dependencies += np.where(levels == depth, paths * shares, 0)
    return {"paths": paths, "dependencies": dependencies}


def check(result: Mapping[str, Any], expected: Mapping[str, NDArray[Any]]) -> str:
    """Sums in any order, if doubles hold them."""
    uncounted = int((~np.isfinite(expected["paths"])).sum())
    if uncounted:
        return f"to {uncounted} vertices there are more shortest paths than a double counts"
    said = (wrong_sums(name, result[name], expected[name], OFF * expected[name]) for name in RESULTS)
    return next(filter(None, said), "")


def edges(inputs: Mapping[str, Any]) -> int:
    """The edges that leave the vertices that are reached, once forward and once backward."""
    return 2 * edges_reached(*arrays(inputs, "offsets", "neighbors"), inputs["source"])
