"""Frontiers (cte/frontier.cuh) on the emulator: what is appended is there, or is told."""

from __future__ import annotations

import numpy as np
import pytest

from cccopt.emulator import Program
from tests.cte.compiling import ptx_for_all_workers
from tests.cte.frontiers import NAMES, ORDERS, filled, held, room, words_of
from tests.cte.support import assert_equal, atomics

pytestmark = pytest.mark.nvcc


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return Program(ptx_for_all_workers("frontier", tmp_path_factory, "-DQUEUES"))


def test_a_warp_takes_one_atomic_operation(program: Program) -> None:
    given = np.arange(128, dtype=np.int32)
    to = room(128, np.int32)
    profile = program.launch("push_int", 2, 64, (128, given, np.ones(128, np.uint8), *to))
    assert (held(to), atomics(program, profile)) == (given.tolist(), 4)
    to = room(128, np.int32)
    wanted = (given % 5 == 0).astype(np.uint8)
    profile = program.launch("keep_wanted_int", 2, 96, (*filled(given, np.int32), wanted, np.int32(0), *to))
    assert (held(to), atomics(program, profile)) == (given[::5].tolist(), 4)


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("shuffle", ORDERS)
def test_lanes_append_from_loops_that_diverge(program: Program, kind: str, shuffle: int | None) -> None:
    dtype, name = NAMES[kind]
    wanted = np.random.default_rng(9).integers(0, 4, 333).astype(np.uint8)
    given = np.arange(333).astype(dtype) + dtype(name)
    expected = sorted(np.repeat(given, wanted).tolist())
    to = room(len(expected), dtype)
    program.launch(f"push_{kind}", 3, 64, (333, given, wanted, *to), shuffle=shuffle)
    assert held(to) == expected
    for capacity in (0, 1, len(expected) - 1):
        items, size, _ = short = room(capacity, dtype)
        program.launch(f"push_{kind}", 3, 64, (333, given, wanted, *short), shuffle=shuffle)
        assert size[0] == len(expected)
        assert set(items[:capacity].tolist()) <= set(expected)


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("count", [0, 1, 31, 97, 300])
def test_a_filter_keeps_what_it_is_told_to(program: Program, kind: str, count: int) -> None:
    dtype, name = NAMES[kind]
    wanted = np.random.default_rng(10).integers(0, 2, 300).astype(np.uint8)
    given = np.random.default_rng(count).integers(0, 300, count).astype(dtype) + dtype(name)
    there = filled(given, dtype)
    expected = sorted(given[wanted[(given - dtype(name)).astype(int)] != 0].tolist())
    for shuffle in ORDERS:
        to = room(len(expected), dtype)
        program.launch(f"keep_wanted_{kind}", 2, 96, (*there, wanted, dtype(name), *to), shuffle=shuffle)
        assert held(to) == expected


@pytest.mark.parametrize("kind", NAMES)
def test_what_overflowed_a_queue_is_not_read_from_it(program: Program, kind: str) -> None:
    dtype, name = NAMES[kind]
    items = np.arange(50).astype(dtype) + dtype(name)
    there = (items, np.full(1, 5000, np.uint64), np.uint64(50))
    to = room(20, dtype)
    program.launch(f"keep_wanted_{kind}", 2, 96, (*there, np.ones(50, np.uint8), dtype(name), *to))
    assert to[1][0] == 50
    assert set(to[0].tolist()) <= set(items.tolist())


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("shuffle", ORDERS)
def test_duplicates_go_all_by_a_bitmap_and_most_by_a_history(
    program: Program, kind: str, shuffle: int | None
) -> None:
    dtype, name = NAMES[kind]
    given = np.random.default_rng(12).integers(0, 90, 700).astype(dtype) + dtype(name)
    each = np.unique(given).tolist()
    there, once, few = filled(given, dtype), room(len(each), dtype), room(700, dtype)
    words = np.zeros(3, np.uint32)
    program.launch(f"keep_first_{kind}", 2, 96, (*there, words, dtype(name), *once), shuffle=shuffle)
    assert held(once) == each
    assert_equal(words, words_of(np.isin(np.arange(96) + name, each)))
    program.launch(f"keep_new_{kind}", 2, 96, (*there, *few), shuffle=shuffle)
    kept = held(few)
    # Nothing is lost; of a vertex that is there some eight times, not many stay.
    assert np.unique(kept).tolist() == each
    assert len(kept) < 700 * 0.75


def test_lanes_that_ask_a_history_for_one_vertex_at_once_get_one_no(program: Program) -> None:
    to = room(96, np.int32)
    program.launch("keep_new_int", 1, 96, (*filled(np.full(96, 5), np.int32), *to))
    assert held(to) == [5]


@pytest.mark.parametrize("shuffle", ORDERS)
def test_a_bitmap_tells_one_of_all_that_add_a_vertex(program: Program, shuffle: int | None) -> None:
    given = np.random.default_rng(13).integers(0, 200, 300).astype(np.uint32)
    words, was_new = np.zeros(7, np.uint32), np.zeros(300, np.uint8)
    program.launch("bits", 5, 64, (300, given, words, was_new, 0), shuffle=shuffle)
    first = np.bincount(given[was_new != 0], minlength=200)
    assert first.tolist() == (np.bincount(given, minlength=200) > 0).astype(int).tolist()
    program.launch("bits", 1, 64, (60, given, words, was_new, 1), shuffle=shuffle)
    assert was_new[:60].all()
    left = np.isin(np.arange(224), given) & ~np.isin(np.arange(224), given[:60])
    assert_equal(words, words_of(left))


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("shuffle", ORDERS)
def test_near_vertices_are_told_from_far_ones(program: Program, kind: str, shuffle: int | None) -> None:
    dtype, name = NAMES[kind]
    priorities = np.random.default_rng(14).integers(0, 30, 250).astype(np.float32)
    vertices = np.arange(250).astype(dtype) + dtype(name)
    near, far = room(250, dtype), room(250, dtype)
    arguments = (250, vertices, priorities, np.float32(10), *near, *far)
    program.launch(f"push_near_far_{kind}", 4, 64, arguments, shuffle=shuffle)
    assert held(near) == vertices[priorities < 10].tolist()
    assert held(far) == vertices[priorities >= 10].tolist()
    # Since then, some have come near.
    nearer = np.maximum(priorities - 5, 0)
    pile, next_near, next_far = far, room(250, dtype), room(100, dtype)
    arguments = (*pile, nearer, dtype(name), np.float32(10), np.float32(20), *next_near, *next_far)
    program.launch(f"sort_pile_{kind}", 2, 96, arguments, shuffle=shuffle)
    was_far = priorities >= 10
    assert held(next_near) == vertices[was_far & (nearer >= 10) & (nearer < 20)].tolist()
    assert held(next_far) == vertices[was_far & (nearer >= 20)].tolist()
