"""Steps over graphs (cte/frontier.cuh) on the emulator: every edge is visited once, by any policy, in any order."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cccopt.emulator import Program
from tests.cte.compiling import ptx_for_all_workers
from tests.cte.frontiers import NAMES, ORDERS, Queue, filled, held, levels_by_hand, room, words_of
from tests.cte.sequences import SEQUENCE
from tests.cte.support import HIGH, LITTLE, assert_equal, warp_with

pytestmark = pytest.mark.nvcc

POLICIES = ("thread_warp_block", "automatic")
SEARCHES = ("warp", "thread_warp_block")

# The kernels of frontier.cu: threads of a block, types of vertices and offsets, where edges begin.
GRAPHS: dict[str, tuple[int, Any, Any, int]] = {
    "int": (96, np.int32, np.int32, 0),
    "long": (64, np.int64, np.int64, HIGH),
    "mixed": (32, np.int32, np.int64, HIGH),
    "unsigned": (256, np.uint32, np.uint32, 2**31 + 7),
}
# Warps of short tasks, with a giant and with none; the last one has three vertices.
DEGREES = np.r_[LITTLE[:32], warp_with({31: 301}), np.zeros(32, int), np.arange(32) % 7, 3, 0, 40]
VERTICES = DEGREES.size
ENDS = np.cumsum(DEGREES)
EDGES = int(ENDS[-1])
NEIGHBORS = np.random.default_rng(2).integers(0, VERTICES, EDGES)
OWNERS = np.repeat(np.arange(VERTICES), DEGREES)


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Any:
    @cache
    def text(option: str) -> str:
        return ptx_for_all_workers("frontier", tmp_path_factory, option)

    return text


@pytest.fixture(scope="module")
def programs(texts: Any) -> Any:
    @cache
    def program(option: str) -> Program:
        return Program(texts(option), option)

    return program


def steps(programs: Any, policy: str) -> Program:
    program: Program = programs(f"-DPOLICY=cte::{policy}")
    return program


def graph(kind: str) -> tuple[NDArray[Any], NDArray[Any], Any]:
    """Offsets, neighbors and the number of the first edge, as a kernel takes them."""
    _, vertex, offset, base = GRAPHS[kind]
    offsets = np.array([base + int(end) for end in (0, *ENDS)], offset)
    return offsets, NEIGHBORS.astype(vertex), offset(base)


# --- advance ------------------------------------------------------------------------------------------------------


def advance(
    program: Program,
    kind: str,
    frontier: NDArray[Any],
    blocks: int,
    shuffle: int | None,
    capacity: int | None = None,
) -> Queue:
    """Runs and checks a step from a queue that holds no vertex twice; gives the queue of the neighbors."""
    threads, vertex, _, _ = GRAPHS[kind]
    name = NAMES.get(kind, (vertex, 0))[1]
    marks = np.arange(VERTICES, dtype=np.int32) * 3 % 100
    visits, sources, told = (
        np.zeros(EDGES, np.uint32),
        np.full(EDGES, -1).astype(vertex),
        np.full(EDGES, -2, np.int32),
    )
    expected = np.isin(OWNERS, frontier)
    there = filled(frontier, vertex)
    to = room(int(expected.sum()) if capacity is None else capacity, vertex)
    arguments = (*graph(kind), vertex(name), *there[:2], marks, visits, sources, told, *to)
    program.launch(f"advance_{kind}", blocks, threads, arguments, shuffle=shuffle)
    assert_equal(visits, expected.astype(np.uint32))
    assert_equal(sources, np.where(expected, OWNERS, -1).astype(vertex))
    assert_equal(told, np.where(expected, marks[OWNERS], -2))
    assert to[1][0] == expected.sum()
    if capacity is None:
        assert held(to) == sorted((NEIGHBORS[expected] + name).tolist())
    return to


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", GRAPHS)
def test_a_queue_visits_every_edge_of_its_vertices_once(programs: Any, policy: str, kind: str) -> None:
    for shuffle in ORDERS[: 1 + (kind == "long")]:
        frontier = np.random.default_rng(4).permutation(VERTICES)[: VERTICES // 2 + 35]
        advance(steps(programs, policy), kind, frontier, 2, shuffle)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_frontier_may_be_empty_small_or_less_than_the_grid(programs: Any, policy: str) -> None:
    for frontier in ((), (VERTICES - 1,), (0, 40, 33)):
        advance(steps(programs, policy), "long", np.array(frontier, np.int64), 3, None)


@pytest.mark.parametrize("shuffle", ORDERS)
def test_a_full_queue_says_how_much_was_to_be_stored_and_loses_no_other(
    programs: Any, shuffle: int | None
) -> None:
    items, size, capacity = advance(steps(programs, "automatic"), "int", np.arange(VERTICES), 2, shuffle, 100)
    assert (int(size[0]), int(capacity)) == (EDGES, 100)
    left = np.bincount(NEIGHBORS, minlength=VERTICES) - np.bincount(items, minlength=VERTICES)
    assert items.min() >= 0
    assert left.min() >= 0


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_every_vertex_tests_itself(programs: Any, policy: str, kind: str, share: float) -> None:
    threads, vertex, _, _ = GRAPHS[kind]
    active = np.random.default_rng(6).random(VERTICES) < share
    for shuffle in ORDERS[: 1 + (share == 0.3)]:
        visits, sources = np.zeros(EDGES, np.uint32), np.full(EDGES, -1).astype(vertex)
        arguments = (*graph(kind), vertex(VERTICES), words_of(active), visits, sources)
        steps(programs, policy).launch(f"advance_if_{kind}", 2, threads, arguments, shuffle=shuffle)
        assert_equal(visits, active[OWNERS].astype(np.uint32))
        assert_equal(sources, np.where(active[OWNERS], OWNERS, -1).astype(vertex))


@pytest.mark.parametrize("blocks", [2**27, 2**27 + 1])
def test_a_grid_may_have_more_threads_than_there_are_numbers_of_vertices(blocks: int, texts: Any) -> None:
    """The kernel is told that its grid is larger: a step of 32 bits would be 0 or 32."""
    text: str = texts("-DPOLICY=cte::thread_warp_block")
    told = text.replace("%nctaid.x", str(blocks))
    assert told != text
    threads, vertex, _, _ = GRAPHS["mixed"]
    visits, sources = np.zeros(EDGES, np.uint32), np.full(EDGES, -1).astype(vertex)
    every = words_of(np.ones(VERTICES, bool))
    arguments = (*graph("mixed"), vertex(VERTICES), every, visits, sources)
    Program(told, "told").launch("advance_if_mixed", -(-VERTICES // threads) + 1, threads, arguments)
    assert (visits == 1).all()
    assert_equal(sources, OWNERS.astype(vertex))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", GRAPHS)
def test_neighbors_are_reduced_in_order(programs: Any, policy: str, kind: str) -> None:
    threads, vertex, _, _ = GRAPHS[kind]
    visits, out = np.zeros(EDGES, np.uint32), np.zeros(VERTICES, SEQUENCE)
    arguments = (*graph(kind), vertex(VERTICES), visits, out)
    steps(programs, policy).launch(f"reduce_{kind}", 2, threads, arguments, shuffle=7)
    assert (visits == 1).all()
    expected = []
    for begin, end in zip((0, *ENDS), ENDS, strict=False):
        text, power = 7, 3
        for letter in NEIGHBORS[begin:end].tolist():
            text, power = (text * 31 + letter) % 2**32, power * 31 % 2**32
        expected.append((text, power, 1 + int(end) - int(begin)))
    assert_equal(out, np.array(expected, SEQUENCE), DEGREES)


# --- pull ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", SEARCHES)
@pytest.mark.parametrize("kind", ["int", "long", "unsigned"])
def test_who_waits_finds_a_neighbor_and_stops_soon(programs: Any, policy: str, kind: str) -> None:
    threads, vertex, _, _ = GRAPHS[kind]
    generator = np.random.default_rng(8)
    for share, shuffle in ((0.0, None), (0.02, None), (0.02, 3), (1.0, None)):
        wanted = (generator.random(VERTICES) < share).astype(np.uint8)
        waits = (generator.random(VERTICES) < 0.5).astype(np.uint8)
        asked, found = np.zeros(EDGES, np.uint32), room(VERTICES, vertex)
        arguments = (*graph(kind), vertex(VERTICES), waits, wanted, asked, *found)
        program = programs(f"-DSEARCH=cte::{policy}")
        program.launch(f"pull_{kind}", 2, threads, arguments, shuffle=shuffle)
        has = np.zeros(VERTICES, bool)
        np.logical_or.at(has, OWNERS, wanted[NEIGHBORS] != 0)
        assert held(found) == np.flatnonzero(has & (waits != 0)).tolist()
        assert (asked <= waits[OWNERS]).all()
        assert asked[(waits[OWNERS] != 0) & ~has[OWNERS]].all()
        if share == 1.0:
            # A round of a warp, or of a block, for each vertex; without an early exit it would be every edge.
            together = threads if policy == "thread_warp_block" else 32
            assert asked.sum() <= np.minimum(DEGREES, together)[waits != 0].sum() < waits[OWNERS].sum()


# --- a block's own levels -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["automatic", "thread_warp_block"])
@pytest.mark.parametrize(
    ("most", "steps_allowed", "capacity"),
    [(1000, 99, 600), (50, 99, 600), (1000, 3, 600), (1000, 0, 600), (1000, 99, 40)],
)
def test_a_block_runs_levels_until_the_frontier_outgrows_it(
    programs: Any, policy: str, most: int, steps_allowed: int, capacity: int
) -> None:
    generator = np.random.default_rng(15)
    offsets = np.arange(601, dtype=np.int32) * 2
    neighbors = generator.integers(0, 600, 1200).astype(np.int32)
    frontiers = levels_by_hand(offsets, neighbors, 5)
    sizes = [len(frontier) for frontier in frontiers] + [0]
    assert max(sizes) > 90
    bound = min(most, capacity)
    expected = next(n for n, size in enumerate(sizes) if size == 0 or size > bound or n == steps_allowed)
    levels = np.full(600, -1, np.int32)
    levels[5] = 0
    first, second = room(capacity, np.int32), room(capacity, np.int32)
    first[0][0], first[1][0] = 5, 1
    done = np.full(1, -1, np.int32)
    arguments = (offsets, neighbors, levels, *first[:2], *second, np.uint64(most), steps_allowed, done)
    steps(programs, policy).launch("bfs_of_block", 1, 96, arguments, shuffle=2)
    assert done[0] == expected
    now, other = (first, second) if expected % 2 == 0 else (second, first)
    assert other[1][0] == 0
    assert now[1][0] == sizes[expected]
    if sizes[expected] <= capacity:
        assert held(now) == sorted(frontiers[expected] if sizes[expected] else [])
    for depth, frontier in enumerate(frontiers[: expected + 1]):
        assert np.flatnonzero(levels == depth).tolist() == frontier


# --- intersections ------------------------------------------------------------------------------------------------


def lists(kind: str) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], list[int]]:
    """Sorted lists in one array, pairs of them, and what they have in common."""
    _, vertex, offset, base = GRAPHS[kind]
    generator = np.random.default_rng(16)
    sizes = [0, 1, 15, 16, 17, 33, 100, 260]
    every = [np.sort(generator.choice(900, size, replace=False)) for size in (*sizes, *sizes)]
    every += [np.arange(64), np.arange(64) * 2, np.arange(500, 640)]
    ends = np.cumsum([one.size for one in every])
    bounds = np.stack([ends - [one.size for one in every], ends], 1) + base
    left, right = generator.integers(0, len(every), (2, 50))
    common = [np.intersect1d(every[a], every[b]).size for a, b in zip(left, right, strict=True)]
    return (
        np.concatenate(every).astype(vertex),
        bounds[left].astype(offset),
        bounds[right].astype(offset),
        common,
    )


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", GRAPHS)
def test_pairs_of_sorted_lists(programs: Any, policy: str, kind: str) -> None:
    threads, _, offset, base = GRAPHS[kind]
    elements, a, b, common = lists(kind)
    expected = np.array(common, np.uint64)
    out = np.full(len(a), 99, np.uint64)
    arguments = (offset(len(a)), elements, a, b, offset(base), out)
    steps(programs, policy).launch(f"intersect_{kind}", -(-len(a) // threads), threads, arguments, shuffle=4)
    assert_equal(out, expected)


def test_a_short_list_costs_little_beside_a_long_one(programs: Any) -> None:
    """Its elements are searched for: the long one is not read through."""
    long = np.arange(4096, dtype=np.int32) * 3
    elements = np.r_[long, np.array([3, 4, 9000], np.int32)]
    program = steps(programs, "automatic")
    costs = []
    for bounds in ([4096, 4099], [0, 4096]):
        out = np.zeros(1, np.uint64)
        arguments = (
            np.int32(1),
            elements,
            np.array([[0, 4096]], np.int32),
            np.array([bounds], np.int32),
            np.int32(0),
            out,
        )
        costs.append(program.launch("intersect_int", 1, 96, arguments).warp_instructions)
        assert out[0] == (2 if bounds[0] else 4096)
    assert 5 * costs[0] < costs[1]
