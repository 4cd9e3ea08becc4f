"""The pieces of traversals (cte/frontier.cuh) on the emulator: every edge is visited once, nothing is lost silently."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cccopt.emulator import Profile, Program
from tests.cte.compiling import ptx_of_kernels
from tests.cte.sequences import SEQUENCE
from tests.cte.support import HIGH, LITTLE, assert_equal, warp_with

pytestmark = pytest.mark.nvcc

POLICIES = ("thread_warp_block", "automatic")
SEARCHES = ("warp", "thread_warp_block")
ORDERS = (None, 5)

# The kernels of frontier.cu: threads of a block, types of vertices and offsets, where edges begin.
GRAPHS: dict[str, tuple[int, Any, Any, int]] = {
    "int": (96, np.int32, np.int32, 0),
    "long": (64, np.int64, np.int64, HIGH),
    "mixed": (32, np.int32, np.int64, HIGH),
    "unsigned": (256, np.uint32, np.uint32, 2**31 + 7),
}
# Types of queues, and what the first vertex is called.
NAMES: dict[str, tuple[Any, int]] = {
    "int": (np.int32, 0),
    "long": (np.int64, 2**33),
    "unsigned": (np.uint32, 2**31),
}

# Warps of short tasks, with a giant and with none; the last one has three vertices.
DEGREES = np.r_[LITTLE[:32], warp_with({31: 301}), np.zeros(32, int), np.arange(32) % 7, 3, 0, 40]
VERTICES = DEGREES.size
ENDS = np.cumsum(DEGREES)
EDGES = int(ENDS[-1])
NEIGHBORS = np.random.default_rng(2).integers(0, VERTICES, EDGES)
OWNERS = np.repeat(np.arange(VERTICES), DEGREES)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    @cache
    def program(option: str) -> Program:
        return Program(ptx_of_kernels("frontier", tmp_path_factory.mktemp("ptx"), option), option)

    return program


def steps(programs: Any, policy: str) -> Program:
    program: Program = programs(f"-DPOLICY=cte::{policy}")
    return program


def graph(kind: str) -> tuple[NDArray[Any], NDArray[Any], Any]:
    """Offsets, neighbors and the number of the first edge, as a kernel takes them."""
    _, vertex, offset, base = GRAPHS[kind]
    offsets = np.array([base + int(end) for end in (0, *ENDS)], offset)
    return offsets, NEIGHBORS.astype(vertex), offset(base)


def room(capacity: int, dtype: Any) -> tuple[NDArray[Any], NDArray[np.uint64], np.uint64]:
    """An empty queue. The emulator faults where somebody writes past its end."""
    return np.full(max(capacity, 1), -1).astype(dtype), np.zeros(1, np.uint64), np.uint64(capacity)


def filled(items: Any, dtype: Any) -> tuple[NDArray[Any], NDArray[np.uint64], np.uint64]:
    """A queue with ``items``."""
    there = np.array(items, dtype)
    return (
        (there if there.size else np.zeros(1, dtype)),
        np.full(1, there.size, np.uint64),
        np.uint64(there.size),
    )


def held(queue: tuple[NDArray[Any], NDArray[np.uint64], np.uint64]) -> list[int]:
    items, size, capacity = queue
    assert size[0] <= capacity
    return sorted(items[: int(size[0])].tolist())


# --- advance ------------------------------------------------------------------------------------------------------


def advance(
    program: Program,
    kind: str,
    frontier: NDArray[Any],
    blocks: int,
    shuffle: int | None,
    capacity: int | None = None,
) -> tuple[NDArray[Any], NDArray[np.uint64], np.uint64]:
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


def words_of(members: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """A bitmap of them."""
    padded = np.pad(members, (0, -members.size % 32))
    return np.packbits(padded, bitorder="little").view(np.uint32)


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


# --- queues -------------------------------------------------------------------------------------------------------


def queues(programs: Any) -> Program:
    program: Program = programs("-DQUEUES")
    return program


def atomics(program: Program, profile: Profile) -> int:
    """How often warps asked global memory for an atomic operation."""
    function = next(f for f in program.module.items if getattr(f, "name", "") == profile.kernel)
    found = 0
    for (_, statement), count in profile.by_access.items():
        found += count.requests * str(function.body[statement].opcode).startswith("atom")
    return found


def test_a_warp_takes_one_atomic_operation(programs: Any) -> None:
    program, given = queues(programs), np.arange(128, dtype=np.int32)
    to = room(128, np.int32)
    profile = program.launch("push_int", 2, 64, (128, given, np.ones(128, np.uint8), *to))
    assert (held(to), atomics(program, profile)) == (given.tolist(), 4)
    to = room(128, np.int32)
    wanted = (given % 5 == 0).astype(np.uint8)
    profile = program.launch("keep_wanted_int", 2, 96, (*filled(given, np.int32), wanted, np.int32(0), *to))
    assert (held(to), atomics(program, profile)) == (given[::5].tolist(), 4)


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("shuffle", ORDERS)
def test_lanes_append_from_loops_that_diverge(programs: Any, kind: str, shuffle: int | None) -> None:
    dtype, name = NAMES[kind]
    wanted = np.random.default_rng(9).integers(0, 4, 333).astype(np.uint8)
    given = np.arange(333).astype(dtype) + dtype(name)
    expected = sorted(np.repeat(given, wanted).tolist())
    to = room(len(expected), dtype)
    queues(programs).launch(f"push_{kind}", 3, 64, (333, given, wanted, *to), shuffle=shuffle)
    assert held(to) == expected
    for capacity in (0, 1, len(expected) - 1):
        items, size, _ = short = room(capacity, dtype)
        queues(programs).launch(f"push_{kind}", 3, 64, (333, given, wanted, *short), shuffle=shuffle)
        assert size[0] == len(expected)
        assert set(items[:capacity].tolist()) <= set(expected)


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("count", [0, 1, 31, 97, 300])
def test_a_filter_keeps_what_it_is_told_to(programs: Any, kind: str, count: int) -> None:
    dtype, name = NAMES[kind]
    wanted = np.random.default_rng(10).integers(0, 2, 300).astype(np.uint8)
    given = np.random.default_rng(count).integers(0, 300, count).astype(dtype) + dtype(name)
    there = filled(given, dtype)
    expected = sorted(given[wanted[(given - dtype(name)).astype(int)] != 0].tolist())
    for shuffle in ORDERS:
        to = room(len(expected), dtype)
        queues(programs).launch(
            f"keep_wanted_{kind}", 2, 96, (*there, wanted, dtype(name), *to), shuffle=shuffle
        )
        assert held(to) == expected


@pytest.mark.parametrize("kind", NAMES)
def test_what_overflowed_a_queue_is_not_read_from_it(programs: Any, kind: str) -> None:
    dtype, name = NAMES[kind]
    items = np.arange(50).astype(dtype) + dtype(name)
    there = (items, np.full(1, 5000, np.uint64), np.uint64(50))
    to = room(20, dtype)
    queues(programs).launch(f"keep_wanted_{kind}", 2, 96, (*there, np.ones(50, np.uint8), dtype(name), *to))
    assert to[1][0] == 50
    assert set(to[0].tolist()) <= set(items.tolist())


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("shuffle", ORDERS)
def test_duplicates_go_all_by_a_bitmap_and_most_by_a_history(
    programs: Any, kind: str, shuffle: int | None
) -> None:
    dtype, name = NAMES[kind]
    given = np.random.default_rng(12).integers(0, 90, 700).astype(dtype) + dtype(name)
    each = np.unique(given).tolist()
    there, once, few = filled(given, dtype), room(len(each), dtype), room(700, dtype)
    words = np.zeros(3, np.uint32)
    program = queues(programs)
    program.launch(f"keep_first_{kind}", 2, 96, (*there, words, dtype(name), *once), shuffle=shuffle)
    assert held(once) == each
    assert_equal(words, words_of(np.isin(np.arange(96) + name, each)))
    program.launch(f"keep_new_{kind}", 2, 96, (*there, *few), shuffle=shuffle)
    kept = held(few)
    # Nothing is lost; of a vertex that is there some eight times, not many stay.
    assert np.unique(kept).tolist() == each
    assert len(kept) < 700 * 0.75


def test_lanes_that_ask_a_history_for_one_vertex_at_once_get_one_no(programs: Any) -> None:
    to = room(96, np.int32)
    queues(programs).launch("keep_new_int", 1, 96, (*filled(np.full(96, 5), np.int32), *to))
    assert held(to) == [5]


@pytest.mark.parametrize("shuffle", ORDERS)
def test_a_bitmap_tells_one_of_all_that_add_a_vertex(programs: Any, shuffle: int | None) -> None:
    given = np.random.default_rng(13).integers(0, 200, 300).astype(np.uint32)
    words, was_new = np.zeros(7, np.uint32), np.zeros(300, np.uint8)
    queues(programs).launch("bits", 5, 64, (300, given, words, was_new, 0), shuffle=shuffle)
    first = np.bincount(given[was_new != 0], minlength=200)
    assert first.tolist() == (np.bincount(given, minlength=200) > 0).astype(int).tolist()
    queues(programs).launch("bits", 1, 64, (60, given, words, was_new, 1), shuffle=shuffle)
    assert was_new[:60].all()
    left = np.isin(np.arange(224), given) & ~np.isin(np.arange(224), given[:60])
    assert_equal(words, words_of(left))


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("shuffle", ORDERS)
def test_near_vertices_are_told_from_far_ones(programs: Any, kind: str, shuffle: int | None) -> None:
    dtype, name = NAMES[kind]
    priorities = np.random.default_rng(14).integers(0, 30, 250).astype(np.float32)
    vertices = np.arange(250).astype(dtype) + dtype(name)
    near, far = room(250, dtype), room(250, dtype)
    arguments = (250, vertices, priorities, np.float32(10), *near, *far)
    queues(programs).launch(f"push_near_far_{kind}", 4, 64, arguments, shuffle=shuffle)
    assert held(near) == vertices[priorities < 10].tolist()
    assert held(far) == vertices[priorities >= 10].tolist()
    # Since then, some have come near.
    nearer = np.maximum(priorities - 5, 0)
    pile, next_near, next_far = far, room(250, dtype), room(100, dtype)
    arguments = (*pile, nearer, dtype(name), np.float32(10), np.float32(20), *next_near, *next_far)
    queues(programs).launch(f"sort_pile_{kind}", 2, 96, arguments, shuffle=shuffle)
    was_far = priorities >= 10
    assert held(next_near) == vertices[was_far & (nearer >= 10) & (nearer < 20)].tolist()
    assert held(next_far) == vertices[was_far & (nearer >= 20)].tolist()


# --- a block's own levels -----------------------------------------------------------------------------------------


def levels_by_hand(offsets: NDArray[Any], neighbors: NDArray[Any], source: int) -> list[list[int]]:
    """The frontiers, one after the other."""
    seen, found = {source}, [[source]]
    while found[-1]:
        reached = {int(u) for v in found[-1] for u in neighbors[offsets[v] : offsets[v + 1]]} - seen
        seen |= reached
        found.append(sorted(reached))
    return found[:-1]


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
