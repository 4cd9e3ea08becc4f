"""Vertex programs (cte/frontier/vertex_program.cuh) on the emulator: from all frontiers, to all places."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cccopt.emulator import Program
from tests.cte.compiling import ptx_for_all_workers
from tests.cte.frontiers import NAMES, ORDERS, filled, held, room, words_of
from tests.cte.sequences import SEQUENCE
from tests.cte.support import assert_equal
from tests.cte.test_frontier import DEGREES, EDGES, ENDS, GRAPHS, NEIGHBORS, OWNERS, VERTICES, graph

pytestmark = pytest.mark.nvcc

POLICIES = ("thread_warp_block", "automatic")
KINDS = ("int", "long", "unsigned")
SHARES = (0.0, 0.3, 1.0)
CHANGES = np.random.default_rng(31).random(VERTICES) < 0.4


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    @cache
    def program(policy: str) -> Program:
        option = f"-DPROGRAM=cte::{policy}"
        return Program(ptx_for_all_workers("frontier", tmp_path_factory, option), option)

    return program


@cache
def sentences() -> NDArray[Any]:
    """What each vertex becomes: its own number, then its neighbors in order."""
    expected = []
    for v, (begin, end) in enumerate(zip((0, *ENDS), ENDS, strict=False)):
        text, power = v, 3
        for letter in NEIGHBORS[begin:end].tolist():
            text, power = (text * 31 + letter) % 2**32, power * 31 % 2**32
        expected.append((text, power, 1 + int(end) - int(begin)))
    return np.array(expected, SEQUENCE)


def run(
    program: Program,
    kernel: str,
    kind: str,
    active: NDArray[np.bool_],
    *to: Any,
    changes: NDArray[np.bool_] = CHANGES,
    shuffle: int | None = None,
) -> None:
    """Runs a step and checks that each active vertex was updated once, along all of its edges in order."""
    visits, updates = np.zeros(EDGES, np.uint32), np.zeros(VERTICES, np.uint32)
    out = np.zeros(VERTICES, SEQUENCE)
    arguments = (*graph(kind), changes.astype(np.uint8), visits, updates, out, *to)
    program.launch(f"{kernel}_{kind}", 2, GRAPHS[kind][0], arguments, shuffle=shuffle)
    assert_equal(visits, active[OWNERS].astype(np.uint32))
    assert_equal(updates, active.astype(np.uint32))
    expected = sentences().copy()
    expected[~active] = np.zeros((), SEQUENCE)
    assert_equal(out, expected, DEGREES)


def drawn(share: float) -> NDArray[np.bool_]:
    return np.random.default_rng(32).random(VERTICES) < share


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", KINDS)
def test_all_vertices_and_a_flag(programs: Any, policy: str, kind: str) -> None:
    vertex, every = GRAPHS[kind][1], np.ones(VERTICES, bool)
    last = np.arange(VERTICES) == VERTICES - 1
    for changes, shuffle in ((CHANGES, None), (last, 5), (~every, None)):
        flag = np.zeros(1, np.int32)
        run(programs(policy), "all", kind, every, vertex(VERTICES), flag, changes=changes, shuffle=shuffle)
        assert flag[0] == changes.any()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", SHARES)
def test_a_bitmap_and_another(programs: Any, policy: str, kind: str, share: float) -> None:
    active, vertex = drawn(share), GRAPHS[kind][1]
    for shuffle in ORDERS[: 1 + (share == 0.3)]:
        changed = words_of(np.zeros(VERTICES, bool))
        to = (vertex(VERTICES), words_of(active), changed)
        run(programs(policy), "masked", kind, active, *to, shuffle=shuffle)
        assert_equal(changed, words_of(active & CHANGES))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", SHARES)
def test_states_and_a_function(programs: Any, policy: str, kind: str, share: float) -> None:
    active, vertex = drawn(share), GRAPHS[kind][1]
    for shuffle in ORDERS[: 1 + (share == 0.3)]:
        told = np.zeros(VERTICES, np.uint32)
        to = (vertex(VERTICES), np.where(active, 7, 6).astype(np.uint8), told)
        run(programs(policy), "tested", kind, active, *to, shuffle=shuffle)
        assert_equal(told, (active & CHANGES).astype(np.uint32))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", SHARES)
def test_a_queue_and_another(programs: Any, policy: str, kind: str, share: float) -> None:
    active, (vertex, name) = drawn(share), NAMES[kind]
    some = np.random.default_rng(33).permutation(np.flatnonzero(active))
    for shuffle in ORDERS[: 1 + (share == 0.3)]:
        to = room(int((active & CHANGES).sum()), vertex)
        arguments = (vertex(name), *filled(some + name, vertex)[:2], *to)
        run(programs(policy), "queued", kind, active, *arguments, shuffle=shuffle)
        assert held(to) == (np.flatnonzero(active & CHANGES) + name).tolist()


def test_a_full_queue_says_how_many_have_changed(programs: Any) -> None:
    every, to = np.ones(VERTICES, bool), room(5, np.int32)
    arguments = (np.int32(0), *filled(np.arange(VERTICES), np.int32)[:2], *to)
    run(programs("automatic"), "queued", "int", every, *arguments)
    assert to[1][0] == CHANGES.sum() > 5
    assert CHANGES[to[0]].all()
