"""Which iteration lanes are in, event by event."""

from __future__ import annotations

import numpy as np

from cccopt.emulator.groups import LaneGroup
from cccopt.emulator.iterations import NOWHERE, Event, EventKind, Iterations

ENTER, ITERATE, LEAVE = EventKind.ENTER, EventKind.ITERATE, EventKind.LEAVE


def happen(found: Iterations, *events: tuple[EventKind, int], lanes: tuple[int, ...] = (0, 1, 32)) -> None:
    group = LaneGroup(np.array(lanes), 1, np.zeros(64, np.int64))
    for kind, loop in events:
        found.happen(Event(kind, loop), group)


def columns(found: Iterations, *names: str) -> list[tuple[int, ...]]:
    """Some columns of the rows that lanes 0, 1 and 32 are in."""
    rows = found.now[[0, 1, 32]]
    return [tuple(int(found.column(name)[row]) for name in names) for row in rows]


def test_lanes_begin_nowhere() -> None:
    found = Iterations(64)
    happen(found, (ENTER, 7))
    assert set(found.now.tolist()) == {NOWHERE}
    assert columns(found, "loop", "depth") == [(-1, -1)] * 3


def test_iterations_are_numbered_at_each_entry() -> None:
    found = Iterations(64)
    happen(found, (ENTER, 7), (ITERATE, 7), (ITERATE, 7))
    assert columns(found, "loop", "lane", "number", "entry", "depth") == [
        (7, lane, 1, 0, 0) for lane in (0, 1, 32)
    ]
    happen(found, (LEAVE, 7), (ENTER, 7), (ITERATE, 7), lanes=(1,))
    assert columns(found, "number", "entry") == [(1, 0), (0, 1), (1, 0)]


def test_a_warp_that_enters_together_has_one_ground() -> None:
    found = Iterations(64)
    happen(found, (ENTER, 7), (ITERATE, 7))
    (a,), (b,), (c,) = columns(found, "ground")
    assert a == b != c
    happen(found, (ENTER, 7), (ITERATE, 7))
    assert {ground for (ground,) in columns(found, "ground")} & {a, c} == set()


def test_inside_a_loop_each_lane_has_a_ground_of_its_own() -> None:
    found = Iterations(64)
    happen(found, (ENTER, 7), (ITERATE, 7))
    around = found.now[[0, 1, 32]].tolist()
    happen(found, (ENTER, 8), (ITERATE, 8))
    assert len(set(columns(found, "ground"))) == 3
    assert [row[0] for row in columns(found, "outer")] == around
    happen(found, (ITERATE, 8), (LEAVE, 8))
    assert found.now[[0, 1, 32]].tolist() == around


def test_an_iteration_without_an_entry_enters() -> None:
    found = Iterations(64)
    happen(found, (ITERATE, 7))
    (first,), _, _ = columns(found, "ground")
    happen(found, (LEAVE, 7), (ITERATE, 7))
    assert columns(found, "number", "entry") == [(0, 1)] * 3
    assert (first,) not in columns(found, "ground")


def test_leaving_a_loop_twice_leaves_no_other() -> None:
    found = Iterations(64)
    happen(found, (ENTER, 7), (ITERATE, 7), (LEAVE, 7), (ENTER, 8), (ITERATE, 8), (LEAVE, 7))
    assert columns(found, "loop") == [(8,)] * 3


def test_the_table_grows() -> None:
    found = Iterations(64)
    happen(found, (ENTER, 7), *[(ITERATE, 7)] * 1000)
    assert columns(found, "number") == [(999,)] * 3
    assert found.column("number").size == 3001
