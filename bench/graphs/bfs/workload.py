"""Breadth-first search: the forms of bfs.cu, and the levels by scipy."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cccopt.harness.csr import inputs as csr_inputs
from cccopt.harness.csr.matrix import scipy_module
from cccopt.harness.csr.workload import arrays, busiest, launch, sparse, square, wrong_numbers
from cccopt.harness.graphs.traversal import (
    SCANNED,
    annotated,
    balanced,
    both_scanned,
    both_ways,
    edges_reached,
    empty_mask,
    empty_queue,
    mask_of,
    queue_of,
    room_of,
    scanned_queues,
    scanned_sizes,
)
from cccopt.harness.workload import Inputs, Launch, State, Zeros

FORMS = (
    *("plain", "ccc", "status", "mask"),
    *("queue", "staged", "filter", "block"),
    *("balanced", "pull", "switch", "adaptive"),
)
POLICY_FORMS = ("status", "mask", "queue", "staged", "filter", "block")
RESULTS = ("levels",)
SCRATCH = (
    *("changed", "steps", "mask_0", "mask_1", "mask_2", "seen"),
    *("queue_0", "size_0", "queue_1", "size_1", "found", "found_size"),
    *SCANNED,
)

LARGE_BLOCK = 1024
SMALL_FRONTIER = 2 * LARGE_BLOCK
"""Frontiers of at most so many vertices are one block's in the form ``block``."""
FEW_EDGES = 8 * LARGE_BLOCK
"""Frontiers with at most so many edges are one block's in the form ``adaptive``."""

ALPHA, BETA = 14, 24
"""When to pull and when to push again (S. Beamer, K. Asanovic, D. Patterson, Direction-optimizing breadth-first search,
2012), but by numbers of vertices, as Gunrock does, of those with edges. Only a frontier that has grown is pulled: near
the end of a graph of many levels, few vertices are left, and both conditions would hold in turn.
"""


def inputs(name: str, size: str, seed: int) -> Inputs:
    """The graph ``name`` and its transpose; the search begins at the busiest vertex."""
    graph = square(csr_inputs.load(name, size, seed))
    vertices = graph.rows
    return {
        **both_ways(graph),
        "changed": np.ones(1, np.int32),
        "steps": np.zeros(1, np.int32),
        "mask_1": empty_mask(vertices),
        "mask_2": empty_mask(vertices),
        "seen": empty_mask(vertices),
        **empty_queue("queue_1", "size_1", vertices),
        # A level's vertices, once for each edge that leads to them.
        "found": Zeros(graph.nnz + 1, np.int32),
        "found_size": np.zeros(1, np.uint64),
        **begin(graph.offsets, busiest(graph.offsets)),
    }


def begin(offsets: NDArray[np.int32], source: int) -> Inputs:
    """What a search from ``source`` begins with."""
    vertices = len(offsets) - 1
    levels = np.full(vertices, -1, np.int32)
    levels[source] = 0
    queue, length = queue_of(source, vertices)
    return {
        "source": source,
        "levels": levels,
        "mask_0": mask_of(source, vertices),
        "queue_0": queue,
        "size_0": length,
        **scanned_queues(source, offsets),
    }


def launches(state: State, form: str) -> Generator[Launch, None, None]:
    """Level after level, until one reaches no vertex."""
    if form in ("plain", "ccc", "status", "mask"):
        yield from _tested(state, form)
    elif form == "filter":
        yield from _filtered(state)
    elif form in ("queue", "staged", "block"):
        yield from _queued(state, form)
    else:
        yield from _scanned(state, form)


def _tested(state: State, form: str) -> Iterator[Launch]:
    """Every vertex tests whether it is in the level."""
    levels, changed, *graph = arrays(state, "levels", "changed", "offsets", "neighbors")
    masks = arrays(state, "mask_0", "mask_1", "mask_2")
    vertices = len(levels)
    for depth in range(vertices):  # a wrong kernel ends, too
        if not changed[0]:
            return
        changed[0] = 0
        level, label = (np.int32(vertices), np.int32(depth), *graph, levels), f"level {depth}"
        if form == "mask":
            turned = tuple(masks[(depth + turn) % 3] for turn in range(3))
            yield launch("bfs_mask", vertices, *level, *turned, changed, host=("changed",), label=label)
        elif form == "status":
            yield launch("bfs_status", vertices, *level, changed, host=("changed",), label=label)
        else:
            yield annotated(form, "bfs_plain", vertices, *level, changed, host=("changed",), label=label)


def _queued(state: State, form: str) -> Iterator[Launch]:
    """The level is in a queue."""
    levels, steps, *graph = arrays(state, "levels", "steps", "offsets", "neighbors")
    queues = arrays(state, "queue_0", "size_0"), arrays(state, "queue_1", "size_1")
    vertices, capacity, depth = len(levels), room_of(queues[0][0]), 0
    kernel = "bfs_stage" if form == "staged" else "bfs_push"
    while depth < vertices:
        (now, size), (then, next_size) = queues[depth % 2], queues[(depth + 1) % 2]
        frontier = int(size[0])
        if not frontier:
            return
        next_size[0] = 0
        step = (np.int32(depth), *graph, levels, now, size, then, next_size, capacity)
        label = f"level {depth}"
        if form != "block" or frontier > SMALL_FRONTIER:
            depth += 1
            yield launch(kernel, frontier, *step, host=(f"size_{depth % 2}",), label=label)
        else:
            host, last = ("size_0", "size_1", "steps"), (np.uint64(SMALL_FRONTIER), steps)
            yield Launch("bfs_block", (1, 1, 1), (LARGE_BLOCK, 1, 1), (*step, *last), host, label)
            if steps[0] < 1:  # a wrong kernel ends, too
                return
            depth += int(steps[0])


def _scanned(state: State, form: str) -> Iterator[Launch]:
    """The level is in a queue that knows where its vertices' edges begin; its size says from which side to go on."""
    levels, steps, *out = arrays(state, "levels", "steps", "offsets", "neighbors")
    into = arrays(state, "in_offsets", "sources", "offsets")
    queues = both_scanned(state)
    vertices, capacity = len(levels), np.uint32(len(levels))
    depth, reached, before, pulls = 0, 1, 0, form == "pull"
    while depth < vertices:
        now, then = queues[depth % 2], queues[(depth + 1) % 2]
        frontier, edges = scanned_sizes(now[-1])
        if not frontier:
            return
        then[-1][:] = 0
        level, label, done, host = np.int32(depth), f"level {depth}", 1, (f"counts_{(depth + 1) % 2}",)
        if form in ("switch", "adaptive"):
            starts = frontier > before and frontier > (vertices - reached) / ALPHA
            pulls = frontier >= vertices / BETA if pulls else starts
        step = (level, *out, levels, *now, *then, capacity)
        if pulls:
            given = (np.int32(vertices), level, *into, levels, *then, capacity)
            yield launch("bfs_pull", vertices, *given, host=host, label=label)
        elif form == "adaptive" and edges <= FEW_EDGES:
            given, shape = (*step, np.uint64(FEW_EDGES), steps), (LARGE_BLOCK, 1, 1)
            host = ("counts_0", "counts_1", "steps")
            yield Launch("bfs_block_balanced", (1, 1, 1), shape, given, host, label)
            done = int(steps[0])
            if done < 1:  # a wrong kernel ends, too
                return
        else:
            yield balanced("bfs_balance", edges, *step, host=host, label=label)
        depth += done
        reached, before = reached + scanned_sizes(queues[depth % 2][-1])[0], frontier


def _filtered(state: State) -> Iterator[Launch]:
    """Two launches a level: what is reached, as often as it is, then each once."""
    levels, *graph = arrays(state, "levels", "offsets", "neighbors")
    seen, found, found_size = arrays(state, "seen", "found", "found_size")
    queues = arrays(state, "queue_0", "size_0"), arrays(state, "queue_1", "size_1")
    capacity, room = room_of(queues[0][0]), room_of(found)
    for depth in range(len(levels)):
        (now, size), (then, next_size) = queues[depth % 2], queues[(depth + 1) % 2]
        if not size[0]:
            return
        found_size[0] = next_size[0] = 0
        frontier, label = int(size[0]), f"level {depth}"
        step = (np.int32(depth), *graph, levels, now, size, capacity, found, found_size, room)
        yield launch("bfs_mark", frontier, *step, host=("found_size",), label=label)
        kept = (seen, found, found_size, room, then, next_size, capacity)
        yield launch("bfs_unique", int(found_size[0]), *kept, host=(f"size_{(depth + 1) % 2}",), label=label)


def reference(inputs: Mapping[str, Any]) -> Mapping[str, NDArray[Any]]:
    """The levels by scipy."""
    offsets, neighbors = arrays(inputs, "offsets", "neighbors")
    edges = sparse(offsets, neighbors, np.ones(len(neighbors)), len(offsets) - 1)
    hops = scipy_module("sparse.csgraph").dijkstra(edges, indices=inputs["source"], unweighted=True)
    return {"levels": np.where(np.isinf(hops), -1, hops).astype(np.int32)}


def check(result: Mapping[str, Any], expected: Mapping[str, NDArray[Any]]) -> str:
    """Levels are integers: they must be equal."""
    return wrong_numbers("levels", result["levels"], expected["levels"])


def edges(inputs: Mapping[str, Any]) -> int:
    """The edges that leave the vertices that are reached, whichever of them a form looks at."""
    return edges_reached(*arrays(inputs, "offsets", "neighbors"), inputs["source"])
