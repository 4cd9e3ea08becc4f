"""Lanes that wait: at block barriers, and at warp collectives until all lanes of their member mask arrive.

A warp collective needs all lanes of its mask that have not exited, at any instruction with the same opcode and the
same mask (PTX ISA 9.7.14, "the same qualifiers and same membermask value"). A fragment continues when the collectives
of all its lanes are done; meanwhile its siblings run. A block barrier is complete when all threads of the block that
have not exited, or as many as it specifies, have arrived (PTX ISA 9.7.13.1).
"""

from __future__ import annotations

import numpy as np

from cccopt.emulator import collectives
from cccopt.emulator.errors import DEADLOCK, UNSUPPORTED
from cccopt.emulator.groups import LANE_BITS, LaneGroup
from cccopt.emulator.literals import literal
from cccopt.emulator.machine import Machine
from cccopt.emulator.pieces import Decoded, Modified, Modifier, OperandList, Piece, PieceEnd, Slot
from cccopt.emulator.semantics import PRED, Array, Type, UnsupportedError
from cccopt.ptx import isa
from cccopt.ptx.ir import Literal, SpecialRegister, Wildcard
from cccopt.ptx.isa import Role

_U4: Type = np.dtype("u4")
_FULL = np.uint32(0xFFFFFFFF)
_RUNNING, _DONE = -1, -2


class Waiting:
    """The lanes of a launch that wait, and where."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        lanes = machine.lanes
        self._count = 0
        self._piece = np.full(lanes, _RUNNING, np.int64)  # where a lane waits
        self._key = np.full(
            lanes, _RUNNING, np.int64
        )  # the opcode at which it waits; _DONE once it has its result
        self._mask = np.zeros(lanes, np.uint32)
        self._barrier = np.full(lanes, _RUNNING, np.int64)
        self._wanted = np.zeros(lanes, np.int64)
        self._vote = np.zeros(lanes, bool)
        self._arrived: dict[tuple[int, int], int] = {}
        self._keys: dict[str, int] = {}

    # --- arriving ----------------------------------------------------------------------------------------------

    def arrive(self, piece: Piece, group: LaneGroup) -> bool:
        """``group`` arrives at a collective or barrier; True if it has done it and continues at once."""
        if piece.end is PieceEnd.BARRIER:
            return self._at_barrier(piece, group)
        assert piece.ending is not None
        mask = self.member_mask(piece.ending, group.ix)
        if group.n == 32 * group.nf and (mask == _FULL).all():
            self._together(piece, group)
            return True
        self._park(piece, group)
        self._key[group.ix] = self._keys.setdefault(_same(piece.ending), len(self._keys))
        self._mask[group.ix] = mask
        if group.n == 1 and self._is_awaited(int(group.ix[0]), int(mask[0])):
            return False
        self._review_warps(np.unique(group.ix >> 5))
        return False

    def _is_awaited(self, lane: int, mask: int) -> bool:
        """Whether some lane of ``mask`` in the warp of ``lane`` has yet to arrive at a collective. This is usual in a
        shuffled order, in which lanes arrive one by one.
        """
        warp = slice(lane & ~31, (lane & ~31) + 32)
        absent = (self._key[warp] < 0) & self.machine.alive[warp]
        return bool((absent & ((LANE_BITS & mask) != 0)).any())

    def _together(self, piece: Piece, group: LaneGroup) -> None:
        """A collective of whole warps."""
        self.machine.count(piece.index, group)
        rows = group.ix.reshape(-1, 32)
        everybody = np.full(rows.shape, _FULL)
        self._execute([(piece, np.ones(rows.shape, bool))], rows, everybody)

    def _park(self, piece: Piece, group: LaneGroup) -> None:
        self._piece[group.ix] = piece.index
        self._count += group.n

    def member_mask(self, item: Decoded, lanes: Array) -> Array:
        """The member masks of a collective."""
        return self.fetch(item, item.operands[-1], lanes, _U4)

    # --- collectives -------------------------------------------------------------------------------------------

    def _review_warps(self, warps: Array) -> None:
        """Performs the complete collectives of ``warps``, and releases fragments whose lanes all have their results."""
        rows = warps[:, None] * 32 + np.arange(32)
        key, mask = self._key[rows], self._mask[rows]
        waits = key >= 0
        alive = (self.machine.alive[rows] * LANE_BITS).sum(axis=1).astype(np.uint32)[:, None]
        members = mask & alive
        waiting = (waits * LANE_BITS).sum(axis=1).astype(np.uint32)[:, None]
        if not (waits & ((members & ~waiting) == 0)).any():
            # No collective has all its lanes: a lane has arrived alone, as most do in a shuffled order.
            return
        same = (
            (key[:, :, None] == key[:, None, :]) & (mask[:, :, None] == mask[:, None, :]) & waits[:, None, :]
        )
        there = (same * LANE_BITS).sum(axis=2).astype(np.uint32)
        ready = waits & ((members & ~there) == 0) & ((members & LANE_BITS) != 0)
        if ready.any():
            numbers = np.unique(self._piece[rows][ready])
            parts = [
                (self.machine.pieces[int(number)], ready & (self._piece[rows] == number))
                for number in numbers
            ]
            self._execute(parts, rows, np.where(ready, members, np.uint32(0)))
            self._key[rows[ready]] = _DONE
        done = rows[self._key[rows] == _DONE]
        if done.size:
            self._let_go(done)

    def _let_go(self, done: Array) -> None:
        """Resumes the fragments whose lanes all have their results."""
        labels = self.machine.lab[done]
        warps = np.unique(done >> 5)
        rows = (warps[:, None] * 32 + np.arange(32)).reshape(-1)
        parked = rows[self._key[rows] >= 0]
        free = done[~np.isin(labels, self.machine.lab[parked])]
        if free.size:
            for piece, group in self._released(free):
                self.machine.count(piece.index, group)
                self.machine.scheduler.push(piece.following, group)

    def _released(self, lanes: Array) -> list[tuple[Piece, LaneGroup]]:
        """Takes lanes off the waiting list; returns their fragments by the piece at which they waited."""
        pieces, labels = self._piece[lanes], self.machine.lab[lanes]
        order = np.lexsort((lanes, labels, pieces))
        lanes, pieces, labels = lanes[order], pieces[order], labels[order]
        found: list[tuple[Piece, LaneGroup]] = []
        for number in np.unique(pieces):
            here = pieces == number
            fragments = np.unique(labels[here]).size
            found.append(
                (self.machine.pieces[int(number)], LaneGroup(lanes[here], fragments, self.machine.lab))
            )
        self._piece[lanes] = _RUNNING
        self._key[lanes] = _RUNNING
        self._barrier[lanes] = _RUNNING
        self._count -= lanes.size
        return found

    def _execute(self, parts: list[tuple[Piece, Array]], rows: Array, members: Array) -> None:
        """Performs one collective per opcode for the lanes that each part selects in ``rows`` (warps, 32).

        ``members[w, l]`` are the lanes that take part with lane ``l``.
        """
        kinds: dict[str, list[tuple[Piece, Array]]] = {}
        for piece, chosen in parts:
            assert piece.ending is not None
            kinds.setdefault(_same(piece.ending), []).append((piece, chosen))
        for same in kinds.values():
            self._one_opcode(same, rows, members)

    def _one_opcode(self, parts: list[tuple[Piece, Array]], rows: Array, members: Array) -> None:
        item = parts[0][0].ending
        assert item is not None
        if Role.DEF not in isa.facts(item.instruction).roles:
            if self.machine.memory.hazards is not None:
                taking = np.logical_or.reduce([chosen for _, chosen in parts])
                self.machine.memory.hazards.warp_barrier(rows, np.where(taking, members, np.uint32(0)))
            return
        try:
            operation = collectives.operation(item.parts)
        except UnsupportedError as problem:
            raise self.machine.places.error(UNSUPPORTED, str(problem), item) from None
        inputs = [np.zeros(rows.shape, t) for t in operation.inputs]
        taking = np.zeros(rows.shape, bool)
        for piece, chosen in parts:
            assert piece.ending is not None
            sources = piece.ending.operands[1:-1]
            for values, source in zip(inputs, sources, strict=True):
                values[chosen] = self.fetch(piece.ending, source, rows[chosen], values.dtype)
            taking |= chosen
        results = operation.function(np.where(taking, members, np.uint32(0)), *inputs)
        for piece, chosen in parts:
            assert piece.ending is not None
            self.put(piece.ending, piece.ending.operands[0], rows[chosen], [r[chosen] for r in results])

    def active_mask(self, piece: Piece, group: LaneGroup) -> None:
        """Performs ``activemask``: the lanes of each fragment."""
        assert piece.ending is not None
        bits = LANE_BITS[group.ix & 31]
        sums = np.bitwise_or.reduceat(bits, group.heads())
        self.put(piece.ending, piece.ending.operands[0], group.ix, [np.repeat(sums, group.counts())])

    # --- block barriers ----------------------------------------------------------------------------------------

    def _at_barrier(self, piece: Piece, group: LaneGroup) -> bool:
        item = piece.ending
        assert item is not None
        form = collectives.barrier_form(item.parts)
        if form is None:
            raise self.machine.places.error(
                UNSUPPORTED, f"`{item.instruction.opcode}` is not supported", item
            )
        action, _ = form
        operands = list(item.operands[1:] if action == "red" else item.operands)
        if action == "red":
            self._vote[group.ix] = self.fetch(item, operands.pop(), group.ix, PRED)
        which = (
            self.fetch(item, operands[0], group.ix, _U4).astype(np.int64)
            if operands
            else np.zeros(group.n, np.int64)
        )
        count = (
            self.fetch(item, operands[1], group.ix, _U4).astype(np.int64)
            if len(operands) > 1
            else np.zeros(group.n, np.int64)
        )
        self._wanted[group.ix] = count
        blocks = self.machine.shape.block_of(group.ix)
        if action == "arrive":
            for block, number in {(int(b), int(w)) for b, w in zip(blocks, which, strict=True)}:
                there = int(((blocks == block) & (which == number)).sum())
                self._arrived[block, number] = self._arrived.get((block, number), 0) + there
            self.machine.count(piece.index, group)
        else:
            self._park(piece, group)
            self._barrier[group.ix] = which
        for block in np.unique(blocks).tolist():
            self._review_block(block)
        return action == "arrive"

    def _review_block(self, block: int) -> None:
        start = block * self.machine.shape.lanes_per_block
        lanes = np.arange(start, start + self.machine.shape.lanes_per_block)
        for number in np.unique(self._barrier[lanes]).tolist():
            if number == _RUNNING:
                continue
            there = self._barrier[lanes] == number
            wanted = int(self._wanted[lanes[there]].max())
            arrived = self._arrived.get((block, number), 0)
            if wanted:
                # A warp of fewer than 32 threads counts as a whole one.
                by_warp = there.reshape(-1, 32).sum(axis=1)
                alive = self.machine.alive[lanes].reshape(-1, 32).sum(axis=1)
                come = int(np.where((by_warp == alive) & (by_warp > 0), 32, by_warp).sum()) + arrived
                complete = come >= wanted
            else:
                complete = int(there.sum()) + arrived >= int(self.machine.live_in_block[block])
            if complete:
                self._arrived.pop((block, number), None)
                self._pass(block, lanes[there])

    def _pass(self, block: int, lanes: Array) -> None:
        if self.machine.memory.hazards is not None:
            self.machine.memory.hazards.block_barrier(block)
        votes = self._vote[lanes].copy()
        for piece, group in self._released(lanes):
            self.machine.count(piece.index, group)
            assert piece.ending is not None
            form = collectives.barrier_form(piece.ending.parts)
            if form is not None and form[0] == "red":
                result = collectives.barrier_result(form[1], votes)
                self.put(piece.ending, piece.ending.operands[0], group.ix, [np.full(group.n, result)])
            self.machine.scheduler.push(piece.following, group)

    # --- exits and deadlocks -----------------------------------------------------------------------------------

    def review(self) -> None:
        """Reviews all waiting lanes after lanes have exited."""
        if not self._count:
            return
        parked = np.flatnonzero(self._key >= 0)
        if parked.size:
            self._review_warps(np.unique(parked >> 5))
        at_barrier = np.flatnonzero(self._barrier != _RUNNING)
        for block in np.unique(self.machine.shape.block_of(at_barrier)).tolist():
            self._review_block(block)

    def waits(self) -> Array:
        """For each lane, whether it waits at a barrier or collective."""
        return np.asarray(self._piece != _RUNNING)

    def deadlock(self) -> Exception:
        """The error for a machine in which nothing can run."""
        machine = self.machine
        found: list[tuple[str, Decoded]] = []
        for number in np.unique(self._piece[self._piece != _RUNNING]).tolist():
            lanes = np.flatnonzero(self._piece == number)
            item = machine.pieces[number].ending
            assert item is not None
            first = machine.shape.thread_name(int(lanes[0]))
            text = f"lanes waiting at `{item.instruction.opcode}`: {lanes.size}, the first of them {first}"
            if self._key[lanes[0]] >= 0:
                text += f", member mask {int(self._mask[lanes[0]]):#010x}"
            found.append((text, item))
        waiting = int((self._piece != _RUNNING).sum())
        held = machine.live - waiting
        why = f"lanes waiting for these at the reconvergence point of a branch: {held}" if held > 0 else ""
        return machine.places.error(
            DEADLOCK,
            f"deadlock: every lane that has not exited is waiting ({machine.live} in all)",
            found[0][1] if found else None,
            why=why,
            others=tuple(found),
            help="a barrier or collective must be reached by all lanes that it names",
        )

    # --- operands outside of pieces' code ------------------------------------------------------------------------

    def fetch(self, item: Decoded, operand: object, lanes: Array, dtype: Type) -> Array:
        """The values of an operand in the register file."""
        if isinstance(operand, Slot):
            values = self.machine.registers[operand.index][self.machine.rows(item.function, lanes)]
            return values if values.dtype == dtype else values.view(dtype)
        if isinstance(operand, Literal):
            return np.full(lanes.shape, literal(operand.spelling, dtype), dtype)
        if isinstance(operand, SpecialRegister) and operand.name in self.machine.specials:
            return self.machine.specials[operand.name][lanes].view(dtype)
        if isinstance(operand, Modified) and operand.modifier is Modifier.NOT:
            return ~self.fetch(item, operand.operand, lanes, dtype)
        raise self.machine.places.error(
            UNSUPPORTED, f"`{item.instruction.opcode}`: this kind of operand is not supported", item
        )

    def put(self, item: Decoded, operand: object, lanes: Array, results: list[Array]) -> None:
        """Writes results to a destination, or to the two of ``d|p``."""
        targets = operand.elements if isinstance(operand, OperandList) else (operand,)
        rows = self.machine.rows(item.function, lanes)
        for target, result in zip(targets, results, strict=False):
            if isinstance(target, Wildcard):
                continue
            assert isinstance(target, Slot)
            register = self.machine.registers[target.index]
            register[rows] = result if result.dtype == register.dtype else result.view(register.dtype)


def _same(item: Decoded) -> str:
    """What lanes must have in common to perform a collective together."""
    return item.instruction.opcode.replace("barrier.", "bar.")
