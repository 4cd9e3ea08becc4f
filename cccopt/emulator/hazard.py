"""Hazard mode: detect accesses of two lanes to shared memory that nothing orders.

For each piece of shared memory (4 bytes, or 1 once a shorter access is seen), the last writer and the readers since
then are kept with the times of their accesses. Time advances at barriers. Two accesses of different lanes are ordered
if a block barrier, or a `bar.warp.sync` in which both took part, is between them; votes and shuffles order nothing (PTX
ISA chapter 8). Unordered accesses of which at least one is a write are an error, unless both are strong (atomic,
volatile, relaxed, acquire, release) or the second writes the same value. Order that warps establish with flags or
locks in shared memory is not seen.
"""

from __future__ import annotations

import numpy as np

from cccopt.emulator.errors import HAZARD
from cccopt.emulator.groups import LANE_BITS, LaneGroup
from cccopt.emulator.memory_instruction import AccessKind, MemoryInstruction
from cccopt.emulator.places import Places
from cccopt.emulator.semantics import Array
from cccopt.emulator.shape import Shape

_NOBODY, _MANY = -1, -2


class _Shadow:
    """The last writer or reader of each unit of shared memory: lane, warp (-1: several), time, access."""

    def __init__(self, units: int) -> None:
        self.lane = np.full(units, _NOBODY, np.int32)
        self.warp = np.full(units, _NOBODY, np.int32)
        self.time = np.zeros(units, np.int32)
        self.access = np.zeros(units, np.int32)

    def repeated(self, times: int) -> _Shadow:
        new = _Shadow(0)
        for name in ("lane", "warp", "time", "access"):
            setattr(new, name, np.repeat(getattr(self, name), times))
        return new


class Hazards:
    """The accesses to the shared memory of all blocks of a launch."""

    def __init__(self, shape: Shape, places: Places, shared: Array, stride: int, alive: Array) -> None:
        self._shape = shape
        self._places = places
        self._shared = shared
        self._stride = stride
        self._alive = alive
        self._unit = 4
        self._time = 0
        self._writes = _Shadow(-(-shared.size // 4))
        self._reads = _Shadow(-(-shared.size // 4))
        self._warp_time = np.zeros(shape.lanes // 32, np.int32)
        self._block_time = np.zeros(shape.blocks, np.int32)
        self._pair_time: dict[int, Array] = {}
        self._accesses: list[MemoryInstruction] = []
        self._numbers: dict[int, int] = {}

    # --- barriers ----------------------------------------------------------------------------------------------

    def block_barrier(self, block: int) -> None:
        """All threads of ``block`` have passed a barrier."""
        self._time += 1
        self._block_time[block] = self._time

    def warp_barrier(self, rows: Array, members: Array) -> None:
        """Lanes have passed ``bar.warp.sync``: ``members`` (warps, 32) is each lane's mask, 0 for absent lanes."""
        self._time += 1
        warps = rows[:, 0] >> 5
        alive = (self._alive[rows] * LANE_BITS).sum(axis=1).astype(np.uint32)
        whole = (members == alive[:, None]).any(axis=1)
        self._warp_time[warps[whole]] = self._time
        for warp, sets in zip(warps[~whole].tolist(), members[~whole], strict=True):
            pairs = self._pair_time.setdefault(warp, np.zeros((32, 32), np.int32))
            for mask in np.unique(sets[sets != 0]):
                lanes = np.flatnonzero(mask & LANE_BITS)
                pairs[np.ix_(lanes, lanes)] = self._time

    # --- accesses ----------------------------------------------------------------------------------------------

    def check(self, access: MemoryInstruction, flat: Array, group: LaneGroup, values: Array | None) -> None:
        """Checks and records an access of ``group`` at byte offsets ``flat`` (over all blocks' shared memory)."""
        if access.size < self._unit:
            self._writes, self._reads = self._writes.repeated(self._unit), self._reads.repeated(self._unit)
            self._unit = 1
        per_lane = access.size // self._unit
        units = (flat // self._unit)[:, None] + np.arange(per_lane)
        lanes = np.broadcast_to(group.ix[:, None], units.shape).reshape(-1)
        units = units.reshape(-1)
        number = self._numbers.setdefault(id(access), len(self._accesses))
        if number == len(self._accesses):
            self._accesses.append(access)
        self._against(access, self._writes, units, lanes, flat, values)
        if access.kind is AccessKind.LOAD:
            self._note_read(units, lanes, number)
            return
        self._against(access, self._reads, units, lanes, flat, None)
        if access.kind is AccessKind.STORE:
            self._one_instruction(access, units, lanes, values, per_lane)
        self._note(self._writes, units, lanes, number)

    def _against(
        self,
        access: MemoryInstruction,
        shadow: _Shadow,
        units: Array,
        lanes: Array,
        flat: Array,
        values: Array | None,
    ) -> None:
        other = shadow.lane[units]
        if (other == _NOBODY).all():
            return
        suspect = (
            (other != _NOBODY)
            & (other != lanes)
            & (shadow.time[units] >= self._ordered_at(shadow, units, lanes))
        )
        if not suspect.any():
            return
        found = np.flatnonzero(suspect)
        if access.strong:
            strong = np.array([a.strong for a in self._accesses])
            found = found[~strong[shadow.access[units[found]]]]
        if values is not None and access.kind is AccessKind.STORE and found.size:
            found = found[self._changes(access, flat, values)[found // (units.size // flat.size)]]
        for row in found:
            if not self._paired(shadow, int(units[row]), int(lanes[row])):
                raise self._error(access, shadow, int(units[row]), int(lanes[row]))

    def _ordered_at(self, shadow: _Shadow, units: Array, lanes: Array) -> Array:
        """The time of the last barrier that orders each lane and the one in the shadow."""
        block = self._block_time[self._shape.block_of(lanes)]
        warps = lanes >> 5
        return np.where(shadow.warp[units] == warps, np.maximum(block, self._warp_time[warps]), block)

    def _paired(self, shadow: _Shadow, unit: int, lane: int) -> bool:
        """Whether a barrier of part of the warp orders the two accesses."""
        pairs = self._pair_time.get(lane >> 5)
        if pairs is None or shadow.warp[unit] != lane >> 5:
            return False
        row = pairs[lane & 31]
        other = int(shadow.lane[unit])
        last = int(row.max()) if other == _MANY else int(row[other & 31])
        return last > int(shadow.time[unit])

    def _changes(self, access: MemoryInstruction, flat: Array, values: Array) -> Array:
        words = self._shared.view(access.dtype)
        index = flat // access.dtype.itemsize
        if access.count == 1:
            return words[index] != values
        return (words[index[:, None] + np.arange(access.count)] != values).any(axis=1)

    def _one_instruction(
        self, access: MemoryInstruction, units: Array, lanes: Array, values: Array | None, per_lane: int
    ) -> None:
        """Raises if two lanes write different values to one address in the same instruction."""
        if lanes.size <= per_lane:
            return
        ordered = np.sort(units)
        if not (ordered[1:] == ordered[:-1]).any():
            return
        assert values is not None
        owner = np.arange(units.size) // per_lane
        last = dict(zip(units.tolist(), owner.tolist(), strict=True))
        for unit, mine in zip(units.tolist(), owner.tolist(), strict=True):
            if last[unit] != mine and (values[last[unit]] != values[mine]).any():
                raise self._report(
                    access, unit, int(lanes[mine * per_lane]), int(lanes[last[unit] * per_lane]), None
                )

    def _note(self, shadow: _Shadow, units: Array, lanes: Array, number: int) -> None:
        shadow.lane[units] = lanes
        shadow.warp[units] = lanes >> 5
        shadow.time[units] = self._time
        shadow.access[units] = number

    def _note_read(self, units: Array, lanes: Array, number: int) -> None:
        reads = self._reads
        old, old_warp = reads.lane[units], reads.warp[units]
        live = (
            (old != _NOBODY) & (old != lanes) & (reads.time[units] >= self._ordered_at(reads, units, lanes))
        )
        self._note(reads, units, lanes, number)
        # Several readers at once: any later writer finds one that is not itself.
        shared = reads.lane[units] != lanes
        across = units[shared & (reads.warp[units] != lanes >> 5)]
        reads.lane[units[shared | live]] = _MANY
        reads.warp[across] = _NOBODY
        reads.warp[units[live & (old_warp != lanes >> 5)]] = _NOBODY

    def _error(self, access: MemoryInstruction, shadow: _Shadow, unit: int, lane: int) -> Exception:
        return self._report(
            access, unit, lane, int(shadow.lane[unit]), self._accesses[int(shadow.access[unit])]
        )

    def _report(
        self, access: MemoryInstruction, unit: int, lane: int, other: int, earlier: MemoryInstruction | None
    ) -> Exception:
        """The error for a conflict with an ``earlier`` access; None means another lane's part of the same access."""
        address = unit * self._unit % self._stride
        earlier_lanes = "other lanes" if other == _MANY else self._shape.thread_name(other)
        if earlier is None:
            return self._places.error(
                HAZARD,
                f"hazard: {access.kind.value} at shared address {address:#x} by {self._shape.thread_name(lane)} and by"
                f" {earlier_lanes}",
                access.item,
                why="lanes store different values to one address in the same instruction",
                help="let one lane store, give each lane its own location, or use an atomic",
            )
        block, warp = "`__syncthreads()` (`bar.sync`)", "`__syncwarp()` (`bar.warp.sync`)"
        needed = warp if other != _MANY and other >> 5 == lane >> 5 else block
        unless = f"; {warp} is enough if all of these lanes are in one warp" if other == _MANY else ""
        return self._places.error(
            HAZARD,
            f"hazard: {access.kind.value} at shared address {address:#x} by {self._shape.thread_name(lane)} after an"
            f" earlier {earlier.kind.value} by {earlier_lanes}",
            access.item,
            why="no barrier orders these two accesses",
            help=f"put a {needed} between them{unless}",
            others=(("the other access", earlier.item),),
        )
