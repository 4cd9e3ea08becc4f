"""The judging of crowds, array by array, against the definition spelled out access by access."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from cccopt.emulator.groups import LaneGroup
from cccopt.emulator.iterations import Event, EventKind, Iterations
from cccopt.emulator.judging import MeetingKind
from cccopt.emulator.meetings import meetings
from cccopt.emulator.record import LOAD, STORE, AccessSite, Record, Rows

ACTIONS = (LOAD, STORE, STORE, "add", "max", "exch", "atomic load", "atomic store")
UPDATES, BOUNDS, EXCHANGES = {"add"}, {"max"}, {"exch", "atomic store"}


@dataclass(frozen=True)
class One:
    """An access: its iteration, its place, its site, its value."""

    iteration: int
    place: int
    site: int
    value: int


def kind_of(crowd: list[One], flags: dict[int, bool]) -> MeetingKind | None:
    """What a crowd comes to, by the table in `cccopt.emulator.judging`."""

    def are(*actions: str) -> list[One]:
        return [a for a in crowd if ACTIONS[a.site] in actions]

    def meet(some: list[One], others: list[One]) -> bool:
        return any(a.iteration != b.iteration for a in some for b in others)

    loads, stores = are(LOAD), are(STORE)
    atomics = [a for a in crowd if a not in loads and a not in stores and ACTIONS[a.site] != "atomic load"]
    updates, bounds, exchanges = are(*UPDATES), are(*BOUNDS), are(*EXCHANGES)
    left = {a.iteration: a.value for a in stores}
    same = len({a.value for a in stores}) <= 1
    is_flag = same and all(flags[a.site] for a in stores)
    mixed = bool(exchanges) or len({ACTIONS[a.site] for a in atomics}) > 1
    rules = (
        len(set(left.values())) > 1,
        meet(stores, updates + bounds),
        meet(loads, stores) and not is_flag,
        meet(loads, updates),
        meet(stores, exchanges + are("atomic load")),
        meet(stores, stores) and same,
        meet(loads, stores),
        meet(loads, bounds + exchanges),
        meet(atomics, atomics + are("atomic load")) and mixed,
        meet(stores, stores) and not same,
    )
    return next((kind for kind, holds in zip(MeetingKind, rules, strict=True) if holds), None)


def recorded(accesses: list[One], iterations: Iterations) -> Record:
    """The record of a launch that made ``accesses`` to shared memory, four bytes each."""
    instruction = SimpleNamespace(opcode="st.shared.u32")
    item = SimpleNamespace(function="k", statement=0, instruction=instruction)
    columns = (
        np.array([getattr(a, name) for a in accesses]) for name in ("place", "iteration", "site", "value")
    )
    place, iteration, site, value = columns
    rows = Rows(4 * place, iteration.astype(np.int32), site.astype(np.int32), value.astype(np.uint32))
    empty = Rows(*(np.zeros(0, np.int64) for _ in range(4)))
    machine = SimpleNamespace(
        memory=SimpleNamespace(shared_stride=1 << 20),
        kernel=SimpleNamespace(shared_variable=lambda offset: ("s", offset)),
    )
    found = SimpleNamespace(
        sites=[AccessSite(cast(Any, SimpleNamespace(item=item)), action, 4) for action in ACTIONS],
        iterations=iterations,
        machine=machine,
        rows=lambda space: rows if space == "shared" else empty,
    )
    return cast(Record, found)


def drawn(seed: int) -> tuple[list[One], Iterations]:
    """Iterations of two warps, and accesses of each in the order in which they run."""
    draw = np.random.default_rng(seed)
    iterations = Iterations(64)
    every = LaneGroup(np.arange(64), 2, np.zeros(64, np.int64))
    iterations.happen(Event(EventKind.ENTER, 1), every)
    few = draw.choice(8, size=int(draw.integers(1, 4)), replace=False)
    found: list[One] = []
    for _ in range(3):
        iterations.happen(Event(EventKind.ITERATE, 1), every)
        for lane in (0, 1, 2, 40, 41):
            for site in draw.choice(few, size=int(draw.integers(0, 3))).tolist():
                value = 7 if site == 1 else int(draw.integers(0, 2))
                found.append(One(int(iterations.now[lane]), int(draw.integers(0, 6)), site, value))
    return found, iterations


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_crowds_come_to_what_the_definition_says(first: int) -> None:
    for seed in range(first, first + 50):
        accesses, iterations = drawn(seed)
        if not accesses:
            continue
        flags = {
            site: len({a.value for a in accesses if a.site == site}) == 1
            for site in {a.site for a in accesses}
        }
        expected: Counter[MeetingKind | None] = Counter()

        grounds = iterations.column("ground")
        key = {one: (one.place, int(grounds[one.iteration])) for one in accesses}.__getitem__
        for _, crowd in groupby(sorted(accesses, key=key), key):
            expected[kind_of(list(crowd), flags)] += 1
        del expected[None]
        found: Counter[MeetingKind | None] = Counter()
        for meeting in meetings(recorded(accesses, iterations)):
            found[meeting.kind] += meeting.places
            iterations_of = meeting.first.steps, meeting.second.steps
            assert iterations_of[0] != iterations_of[1] or meeting.first.lane != meeting.second.lane
        assert found == expected, seed


def test_all_kinds_are_drawn() -> None:
    found = {m.kind for seed in range(200) if (d := drawn(seed))[0] for m in meetings(recorded(*d))}
    assert found == set(MeetingKind)
