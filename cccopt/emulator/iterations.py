"""Which iteration of which watched loop each lane is in, from events that a layer above puts into the code.

An *iteration* is a row of a table: its loop, its thread, its number (from 0 at each entry of the loop), and the
iteration of the watched loop around it. A *meeting ground* is a set of iterations that may be under way at once:
in an outermost loop, those of all lanes of a warp that entered it together; in an inner loop, those of one lane since
it entered. Row 0 means "in no watched loop".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from cccopt.emulator.groups import LaneGroup
from cccopt.emulator.semantics import Array

NOWHERE = 0


class EventKind(Enum):
    """What happens to a lane that reaches a statement."""

    ENTER = "enter"
    """It enters the loop."""
    ITERATE = "iterate"
    """It begins the loop's next iteration."""
    LEAVE = "leave"
    """It has left the loop."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event of lanes at a loop; ``loop`` is any number by which the watcher distinguishes loops."""

    kind: EventKind
    loop: int


@dataclass
class _Run:
    """One loop, for each lane: whether it is inside, the iteration around it, meeting ground, entries, iterations."""

    active: Array
    outer: Array
    ground: Array
    entries: Array
    count: Array


class Iterations:
    """The iterations of one launch of ``lanes`` lanes; ``now`` is the row of the table that each lane is in."""

    def __init__(self, lanes: int) -> None:
        self.now = np.zeros(lanes, np.int32)
        self._lanes = lanes
        self._runs: dict[int, _Run] = {}
        self._grounds = 0
        self._rows = 1
        self._table = {
            name: np.zeros(1024, np.int32)
            for name in ("outer", "loop", "ground", "lane", "number", "entry", "depth")
        }
        self._table["loop"][NOWHERE] = self._table["depth"][NOWHERE] = -1

    def column(self, name: str) -> Array:
        """``outer`` (a row), ``loop``, ``ground``, ``lane``, ``number``, ``entry`` (both from 0) or ``depth`` (0 for
        an outermost loop) of every row of the table.
        """
        return self._table[name][: self._rows]

    def happen(self, event: Event, group: LaneGroup) -> None:
        """Records that ``event`` happens to the lanes of ``group``."""
        doing = {
            EventKind.ENTER: self._enter,
            EventKind.ITERATE: self._iterate,
            EventKind.LEAVE: self._leave,
        }
        doing[event.kind](event.loop, group.ix)

    def _enter(self, loop: int, lanes: Array) -> None:
        run = self._run(loop)
        outer = self.now[lanes]
        # A lane that left without an event enters again.
        again = self._table["loop"][outer] == loop
        outer = np.where(again, self._table["outer"][outer], outer)
        alone = np.where(outer == NOWHERE, lanes >> 5, self._lanes + lanes)
        _, which = np.unique(alone, return_inverse=True)
        run.ground[lanes] = self._grounds + which
        self._grounds += int(which.max()) + 1
        run.outer[lanes] = self.now[lanes] = outer
        run.entries[lanes] += 1
        run.count[lanes] = 0
        run.active[lanes] = True

    def _iterate(self, loop: int, lanes: Array) -> None:
        run = self._run(loop)
        if not run.active[lanes].all():
            self._enter(loop, lanes[~run.active[lanes]])
        outer = run.outer[lanes]
        rows = self._new(lanes.size)
        new = slice(self._rows - lanes.size, self._rows)
        for name, values in (
            ("outer", outer),
            ("loop", loop),
            ("ground", run.ground[lanes]),
            ("lane", lanes),
            ("number", run.count[lanes]),
            ("entry", run.entries[lanes] - 1),
            ("depth", self._table["depth"][outer] + 1),
        ):
            self._table[name][new] = values
        run.count[lanes] += 1
        self.now[lanes] = rows

    def _leave(self, loop: int, lanes: Array) -> None:
        run = self._run(loop)
        inside = lanes[run.active[lanes]]
        self.now[inside] = run.outer[inside]
        run.active[inside] = False

    def _run(self, loop: int) -> _Run:
        if loop not in self._runs:
            columns = [np.zeros(self._lanes, np.int32) for _ in range(4)]
            self._runs[loop] = _Run(np.zeros(self._lanes, bool), *columns)
        return self._runs[loop]

    def _new(self, count: int) -> Array:
        """Adds ``count`` rows and returns their indices."""
        size = self._table["loop"].size
        while self._rows + count > size:
            size *= 2
        if size > self._table["loop"].size:
            for name, old in self._table.items():
                self._table[name] = np.zeros(size, np.int32)
                self._table[name][: old.size] = old
        self._rows += count
        return np.arange(self._rows - count, self._rows, dtype=np.int32)
