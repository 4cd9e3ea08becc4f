"""The lanes of a warp in lockstep: sweeps over the pieces in program order, each step for all fragments at a piece.

In one sweep every fragment that can run takes at least one step, so none starves and a spin loop lets the others
continue. Lanes may wait at a reconvergence point for lanes that spin on what only the waiting lanes can do (a lock
taken in the loop and released after it). The waiting lanes are resumed if no register of a running lane has changed
over many sweeps. Pieces run in reverse postorder: both sides of a branch have run by the time the sweep reaches the
piece where they reconverge.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np

from cccopt.emulator.errors import OUT_OF_BOUNDS
from cccopt.emulator.groups import LaneGroup, merged
from cccopt.emulator.machine import Machine
from cccopt.emulator.pieces import NO_PIECE, Piece, PieceEnd
from cccopt.emulator.semantics import Array
from cccopt.emulator.waiting import Waiting

# Every step compares with these, and looking up a member in its class takes long.
_NEXT, _BRANCH = PieceEnd.NEXT, PieceEnd.BRANCH
_COLLECTIVE, _BARRIER, _ACTIVEMASK = PieceEnd.COLLECTIVE, PieceEnd.BARRIER, PieceEnd.ACTIVEMASK

_PATIENCE = 256
"""The number of sweeps between two checks whether all running lanes are spinning; a power of two."""


class LockStep:
    """Runs a machine to its end."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        machine.scheduler = self
        self.waiting = Waiting(machine)
        self._standing: list[list[LaneGroup]] = [[] for _ in machine.pieces]
        self._now: list[int] = []
        self._next: list[int] = []
        self._at = -1
        self._short = [_is_short(piece, machine.pieces) for piece in machine.pieces]
        self._joins = {piece.join for piece in machine.pieces if not self._short[piece.index]}
        self._sweeps = 0
        self._seen: list[bytes] = []

    def push(self, piece: int, group: LaneGroup) -> None:
        """``group`` is at ``piece`` and runs in this sweep if the sweep still gets there, else in the next."""
        standing = self._standing[piece]
        standing.append(group)
        if len(standing) == 1:
            if piece > self._at:
                heappush(self._now, piece)
            else:
                self._next.append(piece)

    def run(self) -> None:
        """Runs until all lanes have ended; raises EmulatorError for a deadlock or a faulty kernel."""
        machine = self.machine
        lanes = np.flatnonzero(machine.alive)
        self.push(
            machine.kernel.entry, LaneGroup(lanes, machine.shape.blocks * machine.shape.warps, machine.lab)
        )
        with np.errstate(all="ignore"):
            while True:
                while self._now:
                    self._at = heappop(self._now)
                    groups = self._standing[self._at]
                    self._standing[self._at] = []
                    self._run(self._at, merged(groups))
                self._at = -1
                if self._next:
                    self._now, self._next = self._next, []
                    heapify(self._now)
                    self._sweeps += 1
                    if not self._sweeps & (_PATIENCE - 1):
                        self._look_for_spinning()
                elif not machine.live:
                    return
                else:
                    raise self.waiting.deadlock()

    def _run(self, number: int, group: LaneGroup) -> None:
        """Runs ``group`` from a piece onwards, as long as nothing else could join it."""
        machine = self.machine
        pieces, functions, tallies = machine.pieces, machine.functions, machine.tallies
        while True:
            if number in self._joins:
                arrived = machine.threads.arrive(number, group)
                if arrived is None:
                    return
                group = arrived
            piece = pieces[number]
            end = piece.end
            if end is _COLLECTIVE or end is _BARRIER:
                if not self.waiting.arrive(piece, group):
                    return
                following = piece.following
            else:
                machine.count(number, group)
                function = functions[number]
                result: Array = None if function is None else function(group)
                if end is _NEXT:
                    following = piece.following
                elif end is _BRANCH:
                    taken = int(np.count_nonzero(result))
                    tallies[number].count_branch(group, result, taken)
                    if taken == 0:
                        following = piece.following
                    elif taken == group.n:
                        following = piece.target
                    elif self._short[number]:
                        tallies[number].parted += self._sides(piece, group, result)
                        following = piece.join
                    else:
                        yes, no, parted = machine.threads.part(group, result, piece.join)
                        tallies[number].parted += parted
                        self.push(piece.target, yes)
                        self.push(piece.following, no)
                        return
                else:
                    self._leave(piece, group, result)
                    if end is not _ACTIVEMASK:
                        return
                    following = piece.following
            if self._standing[following] or not self._may_follow(following):
                self.push(following, group)
                return
            number = following

    def _sides(self, piece: Piece, group: LaneGroup, taken: Array) -> int:
        """Runs the short sides of a branch one after the other; returns how many fragments diverged.

        The lanes reconverge at once, so no token is needed.
        """
        machine = self.machine
        for number, lanes in ((piece.target, taken), (piece.following, ~taken)):
            if number != piece.join:
                side = group.part(lanes.nonzero()[0])
                machine.count(number, side)
                function = machine.functions[number]
                if function is not None:
                    function(side)
        if group.nf == 1:
            return 1
        by_fragment = np.add.reduceat(taken, group.heads(), dtype=np.int64)
        return int(np.count_nonzero((by_fragment > 0) & (by_fragment < group.counts())))

    def _may_follow(self, following: int) -> bool:
        """Whether no piece comes between the one being run and ``following`` in the order of the sweeps."""
        now = self._now
        if following > self._at:
            if now and now[0] < following:
                return False
            self._at = following
            return True
        if now or self._next or not (self._sweeps + 1) & (_PATIENCE - 1):
            return False
        self._sweeps += 1
        self._at = following
        return True

    def _look_for_spinning(self) -> None:
        """Resumes lanes that wait at reconvergence points if nothing changes for those that they wait for."""
        machine = self.machine
        running = np.zeros(machine.lanes, bool)
        seen: list[bytes] = []
        for number in self._now:
            for group in self._standing[number]:
                running[group.ix] = True
                seen.append(group.ix.tobytes())
                rows = machine.rows(machine.pieces[number].function, group.ix)
                seen += [machine.registers[slot][rows].tobytes() for slot in machine.kernel.code.exposed]
        if seen == self._seen:
            held = machine.alive & ~running & ~self.waiting.waits()
            for piece, fragments in machine.threads.resume(held.nonzero()[0]):
                self.push(piece, fragments)
        self._seen = seen

    def _leave(self, piece: Piece, group: LaneGroup, result: Array | None) -> None:
        """Handles ends of a piece that are neither a plain branch nor a wait."""
        machine = self.machine
        if piece.end is PieceEnd.INDEXED:
            assert result is not None
            self._indexed(piece, group, result)
        elif piece.end is PieceEnd.CALL:
            machine.call(piece, group)
        elif piece.end is PieceEnd.RETURN and machine.threads.inside_call(group):
            machine.returned(group)
        elif piece.end in (PieceEnd.RETURN, PieceEnd.EXIT):
            machine.exit(group)
            self.waiting.review()
        elif piece.end is PieceEnd.ACTIVEMASK:
            self.waiting.active_mask(piece, group)
        else:
            raise machine.trap(piece, group)

    def _indexed(self, piece: Piece, group: LaneGroup, index: Array) -> None:
        machine = self.machine
        targets = checked_targets(machine, piece, group, index)
        for value in np.unique(index).tolist():
            here = index == value
            target = targets[value]
            if here.all():
                self.push(target, group)
                return
            yes, group, parted = machine.threads.part(group, here, piece.join)
            machine.tallies[piece.index].parted += parted
            self.push(target, yes)
            index = index[~here]


def _is_short(piece: Piece, pieces: tuple[Piece, ...]) -> bool:
    """Whether each side of a branch is at most one straight piece, up to where the sides meet."""
    if piece.end is not PieceEnd.BRANCH or piece.join == NO_PIECE:
        return False
    sides = [pieces[number] for number in (piece.target, piece.following) if number != piece.join]
    return all(side.end is PieceEnd.NEXT and side.following == piece.join for side in sides)


def checked_targets(machine: Machine, piece: Piece, group: LaneGroup, index: Array) -> tuple[int, ...]:
    """The targets of an indexed branch; raises EmulatorError if an index is beyond them."""
    beyond = index >= len(piece.targets)
    if beyond.any():
        thread = machine.shape.thread_name(int(group.ix[beyond][0]))
        raise machine.places.error(OUT_OF_BOUNDS, f"branch index beyond its table in {thread}", piece.ending)
    return piece.targets
