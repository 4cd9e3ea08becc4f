"""Run lanes one at a time, in an order that finds races.

In each warp, one lane runs alone until it reaches a `.sync` collective, a barrier or its end; then another lane runs,
drawn at random from a seed. In every round, a random set of warps takes one step. Long runs are cut now and then, so
that a spin loop does not block the lane that it waits for. Lanes never run together except in collectives, so the
efficiency counted here means nothing.

`activemask` says which lanes run it together, and code uses it to check whether the warp is complete. So lanes are held
there until no other lane can run; then, in each warp, the largest set that waits at one `activemask` passes with its
joint mask.
"""

from __future__ import annotations

import random

import numpy as np

from cccopt.emulator.groups import LaneGroup
from cccopt.emulator.machine import Machine
from cccopt.emulator.pieces import Piece, PieceEnd
from cccopt.emulator.schedule import checked_targets
from cccopt.emulator.semantics import Array
from cccopt.emulator.waiting import Waiting

# Every step compares with these, and looking up a member in its class takes long.
_NEXT, _BRANCH = PieceEnd.NEXT, PieceEnd.BRANCH
_WAITS = (PieceEnd.COLLECTIVE, PieceEnd.BARRIER, PieceEnd.ACTIVEMASK)

_STRETCH = 400
"""The average number of steps after which another lane of the warp gets its turn."""


class Shuffled:
    """Runs a machine to its end in an order drawn from ``seed``."""

    def __init__(self, machine: Machine, seed: int) -> None:
        self.machine = machine
        machine.scheduler = self
        self.waiting = Waiting(machine)
        self._random = random.Random(seed)
        self._at = [-1] * machine.lanes  # the piece at which a lane can run
        self._held = np.full(machine.lanes, -1, np.int64)  # the `activemask` at which it is held
        self._ready: list[list[int]] = [[] for _ in range(machine.lanes // 32)]
        self._turn = [-1] * (machine.lanes // 32)
        self._runnable: set[int] = set()
        machine.lab[:] = np.arange(machine.lanes)

    def push(self, piece: int, group: LaneGroup) -> None:
        """Each lane of ``group`` is at ``piece`` on its own."""
        self.machine.lab[group.ix] = group.ix
        for lane in group.ix.tolist():
            self._at[lane] = piece
            if lane != self._turn[lane >> 5]:
                self._ready[lane >> 5].append(lane)
            self._runnable.add(lane >> 5)

    def run(self) -> None:
        """Runs until all lanes have ended; raises EmulatorError for a deadlock or a faulty kernel."""
        machine = self.machine
        lanes = np.flatnonzero(machine.alive)
        self.push(machine.kernel.entry, LaneGroup(lanes, lanes.size, machine.lab))
        with np.errstate(all="ignore"):
            while machine.live:
                if not self._runnable and not self._release_held():
                    raise self.waiting.deadlock()
                self._round()

    def _round(self) -> None:
        """One step of the lanes whose turn it is, in a random set of warps."""
        draw = self._random
        warps = sorted(self._runnable)
        if len(warps) > 1:
            share = draw.random()
            warps = [warp for warp in warps if draw.random() < share] or [draw.choice(warps)]
        # Only a lane or two at a time: lists and dicts take a fraction of the time that such small arrays take.
        at: dict[int, list[int]] = {}
        for warp in warps:
            lane = self._whose_turn(warp)
            at.setdefault(self._at[lane], []).append(lane)
        for number in sorted(at):
            self._step(self.machine.pieces[number], at[number])

    def _whose_turn(self, warp: int) -> int:
        lane = self._turn[warp]
        if lane >= 0 and self._at[lane] >= 0:
            if self._random.random() * _STRETCH >= 1:
                return lane
            self._ready[warp].append(lane)
        ready = self._ready[warp]
        chosen = self._random.randrange(len(ready))
        ready[chosen], ready[-1] = ready[-1], ready[chosen]
        self._turn[warp] = ready.pop()
        return self._turn[warp]

    def _step(self, piece: Piece, lanes: list[int]) -> None:
        machine = self.machine
        group = LaneGroup(np.array(lanes, np.int64), len(lanes), machine.lab)
        if piece.end in _WAITS:
            self._stop(lanes)
            if piece.end is PieceEnd.ACTIVEMASK:
                self._held[group.ix] = piece.index
            elif self.waiting.arrive(piece, group):
                self.push(piece.following, group)
            return
        machine.count(piece.index, group)
        function = machine.functions[piece.index]
        result: Array = None if function is None else function(group)
        if piece.end is _NEXT:
            for lane in lanes:
                self._at[lane] = piece.following
        elif piece.end is _BRANCH:
            assert result is not None
            taken = result.tolist() if result.ndim else [bool(result)] * len(lanes)
            machine.tallies[piece.index].count_branch(group, np.array(taken), sum(taken))
            for lane, takes in zip(lanes, taken, strict=True):
                self._at[lane] = piece.target if takes else piece.following
        elif piece.end is PieceEnd.INDEXED:
            assert result is not None
            targets = checked_targets(machine, piece, group, result)
            for lane, index in zip(lanes, np.broadcast_to(result, len(lanes)).tolist(), strict=True):
                self._at[lane] = targets[index]
        else:
            self._stop(lanes)
            self._leave(piece, group)

    def _leave(self, piece: Piece, group: LaneGroup) -> None:
        machine = self.machine
        if piece.end is PieceEnd.CALL:
            machine.call(piece, group)
        elif piece.end is PieceEnd.RETURN and machine.threads.inside_call(group):
            machine.returned(group)
        elif piece.end in (PieceEnd.RETURN, PieceEnd.EXIT):
            machine.exit(group)
            self.waiting.review()
        else:
            raise machine.trap(piece, group)

    def _stop(self, lanes: list[int]) -> None:
        """These lanes cannot run for now; another lane of their warp gets its turn."""
        for lane in lanes:
            warp = lane >> 5
            self._at[lane] = self._turn[warp] = -1
            if not self._ready[warp]:
                self._runnable.discard(warp)

    def _release_held(self) -> bool:
        """Lets the largest set of lanes at one `activemask` pass in each warp; False if no lane is held."""
        held = np.flatnonzero(self._held >= 0)
        if not held.size:
            return False
        machine = self.machine
        for warp in np.unique(held >> 5).tolist():
            lanes = held[held >> 5 == warp]
            numbers, counts = np.unique(self._held[lanes], return_counts=True)
            number = int(numbers[np.argmax(counts)])
            together = lanes[self._held[lanes] == number]
            self._held[together] = -1
            machine.lab[together] = together[0]
            group = LaneGroup(together, 1, machine.lab)
            piece = machine.pieces[number]
            machine.count(number, group)
            self.waiting.active_mask(piece, group)
            self.push(piece.following, group)
        return True
