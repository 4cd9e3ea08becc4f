"""Frontiers that know where their edges begin (cte/frontier/balanced.cuh), and what warps hold back (staging.cuh)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from cccopt.emulator import Program
from tests.cte.compiling import ptx_for_all_workers
from tests.cte.frontiers import ORDERS, filled, held, levels_by_hand, room
from tests.cte.support import HIGH, LITTLE, assert_equal, atomics, warp_with

pytestmark = pytest.mark.nvcc

# The kernels of balanced.cu: threads of a block, types of vertices and offsets, where edges and vertices begin.
GRAPHS: dict[str, tuple[int, Any, Any, int, int]] = {
    "int": (96, np.int32, np.int32, 0, 0),
    "fine": (32, np.int32, np.int32, 0, 0),
    "long": (64, np.int64, np.int64, HIGH, 2**33),
    "mixed": (256, np.int32, np.int64, HIGH, 0),
    "unsigned": (64, np.uint32, np.uint32, 2**31 + 7, 2**31),
}
# Warps of short tasks, with a giant and with none; the last one has three vertices.
DEGREES = np.r_[LITTLE[:32], warp_with({31: 701}), np.zeros(32, int), np.arange(32) % 7, 3, 0, 40]
VERTICES = DEGREES.size
ENDS = np.cumsum(DEGREES)
EDGES = int(ENDS[-1])
NEIGHBORS = np.random.default_rng(2).integers(0, VERTICES, EDGES)
OWNERS = np.repeat(np.arange(VERTICES), DEGREES)


class Scanned(NamedTuple):
    """A queue as the kernels take it."""

    items: NDArray[Any]
    begins: NDArray[np.uint32]
    counts: NDArray[np.uint64]
    capacity: np.uint32

    @property
    def vertices(self) -> int:
        return int(self.counts[0]) & 0xFFFFFFFF

    @property
    def edges(self) -> int:
        return int(self.counts[0]) >> 32


def empty(capacity: int, dtype: Any) -> Scanned:
    """The emulator faults where somebody writes past its end."""
    places = max(capacity, 1)
    items, begins = np.full(places, -1).astype(dtype), np.zeros(places, np.uint32)
    return Scanned(items, begins, np.zeros(2, np.uint64), np.uint32(capacity))


def with_vertices(vertices: NDArray[Any], dtype: Any, name: int) -> Scanned:
    """A queue with ``vertices``, those with edges."""
    there = vertices[DEGREES[vertices] > 0]
    queue = empty(there.size, dtype)
    queue.items[: there.size] = np.array([int(v) + name for v in there], dtype)
    ends = np.cumsum(DEGREES[there])
    queue.begins[: there.size] = ends - DEGREES[there]
    queue.counts[0] = there.size | (int(ends[-1]) << 32 if there.size else 0)
    return queue


def assert_scanned(queue: Scanned, name: int, expected: NDArray[Any], degrees: NDArray[Any]) -> None:
    """It holds the ``expected`` vertices that have edges, in any order, with where the edges of each begin."""
    expected = expected[degrees[expected] > 0]
    assert (queue.vertices, queue.edges, int(queue.counts[1])) == (expected.size, degrees[expected].sum(), 0)
    items = queue.items[: expected.size].astype(np.int64) - name
    assert_equal(np.sort(items), np.sort(expected))
    assert_equal(queue.begins[: expected.size].astype(np.int64), np.cumsum(degrees[items]) - degrees[items])


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return Program(ptx_for_all_workers("balanced", tmp_path_factory))


def advance(
    program: Program,
    kind: str,
    frontier: NDArray[Any],
    blocks: int,
    shuffle: int | None,
    capacity: int = EDGES,
) -> Scanned:
    """Runs and checks a step; gives the queue of the neighbors."""
    threads, vertex, offset, base, name = GRAPHS[kind]
    marks = np.arange(VERTICES, dtype=np.int32) * 3 % 100
    visits, told = np.zeros(EDGES, np.uint32), np.full(EDGES, -2, np.int32)
    sources = np.zeros(EDGES, vertex)
    times = np.bincount(frontier, minlength=VERTICES)[OWNERS] if frontier.size else np.zeros(EDGES, int)
    offsets = np.array([base + int(end) for end in (0, *ENDS)], offset)
    neighbors = np.array([int(v) + name for v in NEIGHBORS], vertex)
    there, to = with_vertices(frontier, vertex, name), empty(capacity, vertex)
    graph = (offsets, neighbors, offset(base), vertex(name))
    arguments = (*graph, *there, marks, visits, sources, told, *to)
    program.launch(f"advance_{kind}", blocks, threads, arguments, shuffle=shuffle)
    assert_equal(visits, times.astype(np.uint32))
    assert_equal(sources[times > 0], np.array([int(v) + name for v in OWNERS[times > 0]], vertex))
    assert_equal(told, np.where(times > 0, marks[OWNERS], -2))
    if capacity >= EDGES:
        assert_scanned(to, name, np.repeat(NEIGHBORS, times), DEGREES)
    return to


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("blocks", [1, 2, 7])
def test_every_edge_of_the_vertices_is_visited_once(program: Program, kind: str, blocks: int) -> None:
    frontier = np.random.default_rng(4).permutation(VERTICES)[: VERTICES // 2 + 35]
    for shuffle in ORDERS[: 1 + (blocks == 2)]:
        advance(program, kind, frontier, blocks, shuffle)


@pytest.mark.parametrize("blocks", [1, 40])
def test_frontiers_of_no_one_and_all_vertices(program: Program, blocks: int) -> None:
    for frontier in ((), (63,), (0, 40, 33), range(VERTICES), (63, 63, 2)):
        advance(program, "int", np.array(frontier, int), blocks, None, capacity=2 * EDGES)
        advance(program, "long", np.array(frontier, int), blocks, 3, capacity=2 * EDGES)


@pytest.mark.parametrize(("blocks", "most"), [(1, 384), (2, 256), (9, 64), (40, 32)])
def test_the_warps_of_a_grid_share_the_edges_of_one_vertex(program: Program, blocks: int, most: int) -> None:
    """Of its 701 edges, each warp gets at most ``most``: parts of 4 edges a lane, or fewer, in turn."""
    warps = np.full(EDGES, -1, np.int32)
    there = with_vertices(np.array([63]), np.int32, 0)
    arguments = (np.array((0, *ENDS), np.int32), NEIGHBORS.astype(np.int32), *there, warps)
    program.launch("warps_of_edges", blocks, 64, arguments)
    assert_equal(warps >= 0, OWNERS == 63)
    assert np.bincount(warps[OWNERS == 63]).max() == most


@pytest.mark.parametrize("shuffle", ORDERS)
def test_what_does_not_fit_is_told_and_goes_no_further(program: Program, shuffle: int | None) -> None:
    to = advance(program, "int", np.arange(VERTICES), 3, shuffle, 100)
    appended = NEIGHBORS[DEGREES[NEIGHBORS] > 0]
    assert to.vertices == appended.size
    assert to.counts[1] == appended.size - 100
    left = np.bincount(appended, minlength=VERTICES) - np.bincount(to.items, minlength=VERTICES)
    assert left.min() >= 0
    threads, vertex, offset, _, _ = GRAPHS["int"]
    visits, following = np.zeros(EDGES, np.uint32), empty(10, vertex)
    found = (visits, np.zeros(EDGES, vertex), np.zeros(EDGES, np.int32))
    graph = (np.array((0, *ENDS), offset), NEIGHBORS.astype(vertex), offset(0), vertex(0))
    arguments = (*graph, *to, np.zeros(VERTICES, np.int32), *found, *following)
    program.launch("advance_int", 2, threads, arguments)
    assert not visits.any()
    assert not following.counts.any()


@pytest.mark.parametrize("together", [0, 1])
@pytest.mark.parametrize(
    ("degrees", "is_lost"),
    [
        ([2**32 - 3, 1, 1, 0], False),
        ([2**32 - 1], False),
        ([2**32 - 3, 1, 1, 1], True),
        ([2**32], True),
        ([2**32 + 5, 1], True),
        ([2**40], True),
        ([2**40, 1, 1], True),
        ([2**31] * 2, True),
        ([2**31] * 6, True),
        ([2**32 - 1] * 70, True),
    ],
)
def test_more_edges_than_are_counted_are_told(
    program: Program, together: int, degrees: list[int], is_lost: bool
) -> None:
    offsets = np.cumsum([0, *degrees]).astype(np.int64)
    given = np.arange(len(degrees), dtype=np.int64)
    to = empty(100, np.int64)
    arguments = (offsets, given.size, given, np.ones(given.size, np.uint8), together, *to)
    program.launch("append", 2, 64, arguments)
    assert bool(to.counts[1]) == is_lost
    if max(degrees) >= 2**32:
        # It is not counted with the others.
        assert (to.vertices, to.edges) == (len(degrees) - 1, sum(degrees) - max(degrees))
    if not is_lost:
        assert_scanned(to, 0, given, np.array(degrees, np.int64))


@pytest.mark.parametrize("together", [0, 1])
@pytest.mark.parametrize("shuffle", ORDERS)
def test_some_lanes_append(program: Program, together: int, shuffle: int | None) -> None:
    generator = np.random.default_rng(3)
    degrees = generator.integers(0, 4, 200)
    offsets = np.cumsum([0, *degrees]).astype(np.int64)
    given, wanted = (
        generator.permutation(200).astype(np.int64),
        generator.integers(0, 2, 200).astype(np.uint8),
    )
    to = empty(200, np.int64)
    profile = program.launch("append", 4, 64, (offsets, 200, given, wanted, together, *to), shuffle=shuffle)
    assert_scanned(to, 0, given[wanted != 0], degrees)
    if together:
        assert atomics(program, profile) == 7


@pytest.mark.parametrize("shuffle", ORDERS)
@pytest.mark.parametrize("times", [0, 1, 5])
def test_a_warp_holds_back_what_it_appends(program: Program, times: int, shuffle: int | None) -> None:
    expected = np.repeat(np.arange(128), times + np.arange(128) % 2)
    to = room(expected.size, np.int32)
    profile = program.launch("stage", 2, 64, (times, *to), shuffle=shuffle)
    assert held(to) == expected.tolist()
    if times == 0:
        # Half of the lanes append once.
        assert atomics(program, profile) == 4
    elif times == 1 and shuffle is None:
        # The other half append twice, and find all places taken.
        assert atomics(program, profile) == 8


@pytest.mark.parametrize("shuffle", ORDERS)
def test_near_vertices_are_scanned(program: Program, shuffle: int | None) -> None:
    generator = np.random.default_rng(5)
    degrees, priorities = generator.integers(0, 5, 250), generator.integers(0, 30, 250).astype(np.int32)
    offsets = np.cumsum([0, *degrees]).astype(np.int32)
    every = np.arange(250)
    for kernel, given in (("push_near_far", (250,)), ("sort_pile", filled(every, np.int32)[:2])):
        near, far = empty(250, np.int32), room(250, np.int32)
        arguments = (offsets, *given, priorities, np.int32(10), *near, *far)
        program.launch(kernel, 4 if kernel == "push_near_far" else 2, 64 + 32 * (len(given) - 1), arguments)
        assert_scanned(near, 0, every[priorities < 10], degrees)
        assert held(far) == every[priorities >= 10].tolist()


@pytest.mark.parametrize(
    ("most", "steps_allowed", "capacity"),
    [(2000, 99, 600), (50, 99, 600), (2000, 3, 600), (2000, 0, 600), (2000, 99, 40)],
)
def test_a_block_runs_levels_until_their_edges_are_too_many(
    program: Program, most: int, steps_allowed: int, capacity: int
) -> None:
    generator = np.random.default_rng(15)
    degrees = generator.integers(0, 5, 600)
    degrees[5] = 3
    offsets = np.cumsum([0, *degrees]).astype(np.int32)
    neighbors = generator.integers(0, 600, int(offsets[-1])).astype(np.int32)
    frontiers = levels_by_hand(offsets, neighbors, 5)
    kept = [[v for v in frontier if degrees[v]] for frontier in frontiers] + [[]]
    edges = [int(degrees[frontier].sum()) for frontier in kept]
    assert max(edges) > 90
    expected = next(
        n
        for n, frontier in enumerate(kept)
        if not frontier or edges[n] > most or len(frontier) > capacity or n == steps_allowed
    )
    levels = np.full(600, -1, np.int32)
    levels[5] = 0
    first, second = empty(capacity, np.int32), empty(capacity, np.int32)
    first.items[0], first.counts[0] = 5, 1 | 3 << 32
    done = np.full(1, -1, np.int32)
    arguments = (offsets, neighbors, levels, *first[:3], *second, np.uint64(most), steps_allowed, done)
    program.launch("bfs_of_block", 1, 96, arguments, shuffle=2)
    assert done[0] == expected
    now, other = (first, second) if expected % 2 == 0 else (second, first)
    assert not other.counts[0]
    assert (now.vertices, now.edges) == (len(kept[expected]), edges[expected])
    assert bool(now.counts[1]) == (len(kept[expected]) > capacity)
    for depth, frontier in enumerate(frontiers[: expected + 1]):
        assert np.flatnonzero(levels == depth).tolist() == frontier
