"""Shortest paths from one vertex: the forms of sssp.cu, and the distances by scipy."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cccopt.harness.csr import inputs as csr_inputs
from cccopt.harness.csr.matrix import scipy_module
from cccopt.harness.csr.workload import arrays, busiest, launch, lengths, sparse, square, wrong_numbers
from cccopt.harness.graphs.traversal import (
    SCANNED,
    annotated,
    balanced,
    both_scanned,
    edges_reached,
    empty_mask,
    empty_queue,
    grouped,
    mask_of,
    queue_of,
    room_of,
    scanned_queues,
    scanned_sizes,
)
from cccopt.harness.workload import Inputs, Launch, State, Zeros

FORMS = ("plain", "ccc", "status", "mask", "program", "grouped", "queue", "balanced", "near_far")
POLICY_FORMS = ("status", "mask", "program", "grouped", "queue")
RESULTS = ("distances",)
SCRATCH = (
    *("changed", "nearer", "mask_0", "mask_1", "mask_2", "queued", "piled"),
    *("group_0", "group_1", "woken_0", "woken_1"),
    *SCANNED,
    *("queue_0", "size_0", "queue_1", "size_1", "far_0", "far_size_0", "far_1", "far_size_1"),
)
LAUNCHES_VARY = True

GROUP = 32
"""Vertices of a group in the form ``grouped``: those of a warp."""

UNREACHED = np.uint32(0x7FFFFFFF)
"""Any length, which has 31 bits, can be added to it in 32. What is as far away or farther counts as not reached."""


def inputs(name: str, size: str, seed: int) -> Inputs:
    """The graph ``name`` with its lengths; the search begins at the busiest vertex."""
    graph = square(csr_inputs.load(name, size, seed))
    weights = lengths(graph, seed)
    # As floats they are exact: they come from floats, or are 64 at most.
    incoming = replace(graph, values=weights.astype(np.float32)).transpose()
    vertices = graph.rows
    groups = grouped(graph, GROUP)
    return {
        # How much farther a phase of near/far goes: what a warp's edges bring on average (Davidson et al., 2014).
        "delta": max(1, round(32 * float(weights.mean()) * vertices / graph.nnz)) if graph.nnz else 1,
        # By this bound all vertices are near.
        "farthest": min(int(UNREACHED), vertices * int(weights.max(initial=1))),
        "offsets": graph.offsets,
        "neighbors": graph.indices,
        "lengths": weights,
        "in_offsets": incoming.offsets,
        "sources": incoming.indices,
        "in_lengths": np.asarray(incoming.values).astype(np.uint32),
        "group_offsets": groups.offsets,
        "group_neighbors": groups.indices,
        "group_1": empty_mask(groups.rows),
        "woken_0": empty_mask(groups.rows),
        "woken_1": empty_mask(groups.rows),
        "changed": np.ones(1, np.int32),
        "mask_1": empty_mask(vertices),
        "mask_2": empty_mask(vertices),
        "queued": Zeros(vertices, np.int32),
        "piled": Zeros(vertices, np.int32),
        **empty_queue("queue_1", "size_1", vertices),
        **empty_queue("far_0", "far_size_0", vertices),
        **empty_queue("far_1", "far_size_1", vertices),
        **begin(graph.offsets, busiest(graph.offsets)),
    }


def begin(offsets: NDArray[np.int32], source: int) -> Inputs:
    """What a search from ``source`` begins with."""
    vertices = len(offsets) - 1
    distances, nearer = np.full(vertices, UNREACHED, np.uint32), np.zeros(vertices, np.int32)
    distances[source], nearer[source] = 0, 1
    queue, length = queue_of(source, vertices)
    return {
        "source": source,
        "distances": distances,
        "nearer": nearer,
        "mask_0": mask_of(source, vertices),
        "group_0": mask_of(source // GROUP, -(-vertices // GROUP)),
        "queue_0": queue,
        "size_0": length,
        **scanned_queues(source, offsets),
    }


def launches(state: State, form: str) -> Generator[Launch, None, None]:
    """Round after round, until one brings no vertex nearer."""
    if form == "near_far":
        yield from _near_far(state)
    elif form == "queue":
        yield from _queued(state)
    elif form == "balanced":
        yield from _balanced(state)
    elif form == "program":
        yield from _pulled(state)
    elif form == "grouped":
        yield from _grouped(state)
    else:
        yield from _tested(state, form)


def _tested(state: State, form: str) -> Iterator[Launch]:
    """Every vertex tests whether it has come nearer."""
    distances, nearer, changed = arrays(state, "distances", "nearer", "changed")
    graph, masks = _graph(state), arrays(state, "mask_0", "mask_1", "mask_2")
    count = len(distances)
    vertices = np.int32(count)
    for number in range(1, count + 1):  # a wrong kernel ends, too
        if not changed[0]:
            return
        changed[0] = 0
        how: dict[str, Any] = {"host": ("changed",), "label": f"round {number}"}
        tested = (vertices, np.int32(number), *graph, distances, nearer, changed)
        if form == "mask":
            turned = tuple(masks[(number - 1 + turn) % 3] for turn in range(3))
            yield launch("sssp_mask", count, vertices, *graph, distances, *turned, changed, **how)
        elif form == "status":
            yield launch("sssp_status", count, *tested, **how)
        else:
            yield annotated(form, "sssp_plain", count, *tested, **how)


def _queued(state: State) -> Iterator[Launch]:
    distances, queued = arrays(state, "distances", "queued")
    graph, queues = _graph(state), _queues(state, "queue", "size")
    capacity = room_of(queues[0][0])
    for number in range(1, len(distances) + 1):
        (now, size), (then, next_size) = queues[1 - number % 2], queues[number % 2]
        if not size[0]:
            return
        frontier, next_size[0] = int(size[0]), 0
        step = (np.int32(number), *graph, distances, queued, now, size, then, next_size, capacity)
        yield launch("sssp_push", frontier, *step, host=(f"size_{number % 2}",), label=f"round {number}")


def _balanced(state: State) -> Iterator[Launch]:
    distances, queued = arrays(state, "distances", "queued")
    graph, queues = _graph(state), both_scanned(state)
    capacity = np.uint32(len(distances))
    for number in range(1, len(distances) + 1):
        now, then = queues[1 - number % 2], queues[number % 2]
        frontier, edges = scanned_sizes(now[-1])
        if not frontier:
            return
        then[-1][:] = 0
        step = (np.int32(number), *graph, distances, queued, *now, *then, capacity)
        yield balanced("sssp_balance", edges, *step, host=(f"counts_{number % 2}",), label=f"round {number}")


def _pulled(state: State) -> Iterator[Launch]:
    """Two launches a round: vertices that have come nearer wake others, which then look for a shorter path."""
    distances, *masks = arrays(state, "distances", "mask_1", "mask_2")
    incoming, queues = arrays(state, "in_offsets", "sources", "in_lengths"), _queues(state, "queue", "size")
    capacity, vertices = room_of(queues[0][0]), np.int32(len(distances))
    for number in range(1, len(distances) + 1):
        (now, size), (then, next_size) = queues[1 - number % 2], queues[number % 2]
        if not size[0]:
            return
        frontier, next_size[0], label = int(size[0]), 0, f"round {number}"
        awake, spent = masks[1 - number % 2], masks[number % 2]
        woken = (*arrays(state, "offsets", "neighbors"), now, size, capacity, awake)
        yield launch("sssp_wake", frontier, *woken, label=label)
        step = (vertices, *incoming, distances, awake, spent, then, next_size, capacity)
        yield launch("sssp_program", len(distances), *step, host=(f"size_{number % 2}",), label=label)


def _grouped(state: State) -> Iterator[Launch]:
    """Two launches a round, as in `_pulled`, but by groups of vertices."""
    distances, changed, *graph = arrays(state, "distances", "changed", "group_offsets", "group_neighbors")
    incoming, masks = (
        arrays(state, "in_offsets", "sources", "in_lengths"),
        arrays(state, "group_0", "group_1"),
    )
    woken = arrays(state, "woken_0", "woken_1")
    vertices, groups = len(distances), len(graph[0]) - 1
    for number in range(vertices):  # a wrong kernel ends, too
        if not changed[0]:
            return
        changed[0], label = 0, f"round {number}"
        (now, then), (awake, spent) = ((pair[number % 2], pair[(number + 1) % 2]) for pair in (masks, woken))
        yield launch("sssp_wake_groups", groups, np.int32(groups), *graph, now, awake, spent, label=label)
        step = (np.int32(vertices), *incoming, distances, awake, now, then, changed)
        yield launch("sssp_program_groups", vertices, *step, host=("changed",), label=label)


def _near_far(state: State) -> Iterator[Launch]:
    """Rounds of near vertices; when none is left, the next phase takes those that are near by a farther bound."""
    distances, queued, piled, offsets = arrays(state, "distances", "queued", "piled", "offsets")
    graph, queues, piles = _graph(state), both_scanned(state), _queues(state, "far", "far_size")
    delta, farthest = (int(np.asarray(state[name])) for name in ("delta", "farthest"))
    capacity, room = np.uint32(len(distances)), room_of(piles[0][0])
    number, phase, bound = 1, 1, min(delta, farthest)
    while number <= len(distances):  # as many rounds as vertices are enough: a wrong kernel ends, too
        now, then = queues[1 - number % 2], queues[number % 2]
        pile, later = piles[1 - phase % 2], piles[phase % 2]
        frontier, edges = scanned_sizes(now[-1])
        if frontier:
            then[-1][:] = 0
            given = (np.int32(number), np.int32(phase), np.uint32(bound), *graph, distances, queued, piled)
            to = (*now, *then, capacity, *later, room)
            host = (f"counts_{number % 2}", f"far_size_{phase % 2}")
            yield balanced("sssp_near", edges, *given, *to, host=host, label=f"round {number}")
            number += 1
        elif later[1][0] and bound < farthest:
            phase, settled, bound = phase + 1, bound, min(bound + delta, farthest)
            # The pile of the phase before is sorted into the queue and the other pile.
            pile, later = later, pile
            now[-1][:], later[1][0] = 0, 0
            given = (np.int32(phase), np.uint32(settled), np.uint32(bound), offsets, distances, piled)
            to = (*now, capacity, *pile, *later, room)
            host = (f"counts_{1 - number % 2}", f"far_size_{phase % 2}")
            yield launch("sssp_split", int(pile[1][0]), *given, *to, host=host, label=f"phase {phase}")
        else:
            return


def _graph(state: State) -> tuple[Any, ...]:
    return arrays(state, "offsets", "neighbors", "lengths")


def _queues(state: State, items: str, size: str) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    return arrays(state, f"{items}_0", f"{size}_0"), arrays(state, f"{items}_1", f"{size}_1")


def reference(inputs: Mapping[str, Any]) -> Mapping[str, NDArray[Any]]:
    """The distances by scipy."""
    offsets, neighbors, lengths = arrays(inputs, "offsets", "neighbors", "lengths")
    edges = sparse(offsets, neighbors, lengths.astype(np.float64), len(offsets) - 1)
    found = scipy_module("sparse.csgraph").dijkstra(edges, indices=inputs["source"])
    return {"distances": np.minimum(found, UNREACHED).astype(np.uint32)}


def check(result: Mapping[str, Any], expected: Mapping[str, NDArray[Any]]) -> str:
    """Distances are integers: they must be equal."""
    return wrong_numbers("distances", result["distances"], expected["distances"])


def edges(inputs: Mapping[str, Any]) -> int:
    """The edges that leave the vertices that are reached, each once."""
    return edges_reached(*arrays(inputs, "offsets", "neighbors"), inputs["source"])
