"""Memory instructions: one `MemoryAccess` each, with its bounds and alignment checks and its counters.

Addresses are uint64, one per active lane. A check that passes costs nothing: the address relative to the
allocation is rotated right by the logarithm of the size. A misaligned address becomes an index beyond the end of the
array, and so does one that lies outside the allocation, which numpy refuses.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cccopt.emulator import atomics
from cccopt.emulator.errors import MISALIGNED, OUT_OF_BOUNDS, UNWRITTEN
from cccopt.emulator.groups import LaneGroup
from cccopt.emulator.launch_memory import LaunchMemory
from cccopt.emulator.layout import SPACE_OF_WINDOW, WINDOW_BITS, WINDOWS
from cccopt.emulator.memory import Allocation
from cccopt.emulator.memory_instruction import AccessKind, MemoryInstruction
from cccopt.emulator.semantics import Array

_NOWHERE = Allocation(0, 0, "")
_WINDOW_SHIFT = np.uint64(WINDOW_BITS)
_SECTOR_SHIFT = np.asarray(5, np.uint64)
_POSITIVE = np.asarray(0x7FFFFFFFFFFFFFFF, np.uint64)


class MemoryAccess:
    """A memory instruction that runs in one launch after another.

    ``accesses`` counts accesses of warps, ``sectors`` the 32-byte sectors that they touched in global memory,
    ``conflicts`` the extra passes over the banks of shared memory.
    """

    def __init__(self, instruction: MemoryInstruction) -> None:
        self.instruction = instruction
        # Copied to fields because every execution reads them.
        self.space = instruction.space
        self.dtype = instruction.dtype
        self.count = instruction.count
        self.size = instruction.size
        self.accesses = 0
        self.sectors = 0
        self.conflicts = 0
        self._shift = np.asarray(self.size.bit_length() - 1, np.uint64)
        self._rotate = np.asarray((65 - self.size.bit_length()) % 64, np.uint64)
        self._buffer = _NOWHERE
        self._base = np.asarray(0, np.uint64)
        self._words: Array = np.zeros(0, np.uint8)
        self._parts: dict[str, MemoryAccess] = {}
        self._memory: LaunchMemory

    def attach(self, memory: LaunchMemory) -> None:
        """Prepares the access for a launch."""
        self._memory = memory
        self.accesses = self.sectors = self.conflicts = 0
        self._parts = {}
        self._use(_NOWHERE)

    def _use(self, buffer: Allocation) -> None:
        self._buffer = buffer
        self._base = np.asarray(buffer.base, np.uint64)
        self._words = buffer.words(int(self.dtype.itemsize), self.count)

    # --- the three kinds, whatever the space ------------------------------------------------------------------

    def load(self, address: Array, group: LaneGroup) -> Array:
        """The values at ``address``: shape (lanes,), or (lanes, count) for a vector."""
        if self.space == "global":
            index = self._index(address)
            try:
                values = self._words[index]
            except IndexError:
                return self._scattered(address, group, None)
            self._count(address, group)
            return np.asarray(values)
        if self.space == "generic":
            space = _one_space(address)
            if space is None:
                return self._scattered(address, group, None)
            return self._part(space).load(address - np.uint64(WINDOWS[space]), group)
        words, index = self._local(address, group, None)
        return np.asarray(words[index])

    def store(self, address: Array, values: Array, group: LaneGroup) -> None:
        """Stores ``values`` (shaped as `load` returns them) at ``address``; the last lane at an address wins."""
        if self.space == "global":
            index = self._index(address)
            try:
                self._words[index] = values
            except IndexError:
                self._scattered(address, group, values)
                return
            self._count(address, group)
        elif self.space == "generic":
            space = _one_space(address)
            if space is None:
                self._scattered(address, group, values)
            else:
                self._part(space).store(address - np.uint64(WINDOWS[space]), values, group)
        else:
            words, index = self._local(address, group, values)
            words[index] = values

    def atomic(
        self,
        operation: str,
        want_old: bool,
        address: Array,
        group: LaneGroup,
        b: Array,
        c: Array | None = None,
    ) -> Any:
        """Performs an atomic operation lane by lane; returns the old values, typed, if they are wanted."""
        space = _one_space(address) if self.space == "generic" else None
        if space is not None:
            part = self._part(space)
            return part.atomic(operation, want_old, address - np.uint64(WINDOWS[space]), group, b, c)
        if self.space in ("global", "generic"):
            index = self._index(address)
            if not (index.view(np.uint64) < self._words.shape[0]).all():
                return self._scattered_atomic(operation, want_old, address, group, b, c)
            self._count(address, group)
            words = self._words
        else:
            words, index = self._local(address, group, None)
        return atomics.apply(operation, words.view(b.dtype), index, b, c, want_old)

    def _scattered_atomic(
        self, operation: str, want_old: bool, address: Array, group: LaneGroup, b: Array, c: Array | None
    ) -> Any:
        result = np.zeros(address.size, b.dtype)

        def apply(access: MemoryAccess, inner: Array, lanes: Array) -> None:
            third = None if c is None else c[lanes]
            old = access.atomic(operation, want_old, inner, group.part(lanes), b[lanes], third)
            if old is not None:
                result[lanes] = old

        windows, others = self._by_space(address)
        for part, inner, lanes in windows:
            apply(part, inner, lanes)
        if others.size:
            home = self if self.space == "global" else self._part("global")
            counted = home.accesses, home.sectors
            for buffer, where in self._located(address[others], group.part(others)):
                home._use(buffer)
                apply(home, address[others[where]], others[where])
            # Lanes that run together make one access, in however many allocations they are.
            home.accesses, home.sectors = counted
            home._count(address[others], group.part(others))
        return result if want_old else None

    # --- global and generic -----------------------------------------------------------------------------------

    def _index(self, address: Array) -> Array:
        # As a signed number, a bad index is far beyond either end. numpy is slow with unsigned indices.
        offset = address - self._base
        if self.size == 1:
            return (offset & _POSITIVE).view(np.int64)
        index = offset << self._rotate
        offset >>= self._shift
        index |= offset
        return index.view(np.int64)

    def _scattered(self, address: Array, group: LaneGroup, values: Array | None) -> Array:
        """An access whose lanes are in a different allocation than those of the last access, or in several."""
        shape = (address.size,) if self.count == 1 else (address.size, self.count)
        result = np.empty(shape, self.dtype)
        windows, selected = self._by_space(address)
        for part, inner, lanes in windows:
            if values is None:
                result[lanes] = part.load(inner, group.part(lanes))
            else:
                part.store(inner, values[lanes], group.part(lanes))
        for buffer, where in self._located(address[selected], group.part(selected)) if selected.size else ():
            lanes = selected[where]
            self._use(buffer)
            index = self._index(address[lanes])
            if values is None:
                result[lanes] = self._words[index]
            else:
                self._words[index] = values[lanes]
        if selected.size:
            self._count(address[selected], group.part(selected))
        return result

    def _by_space(self, address: Array) -> tuple[list[tuple[MemoryAccess, Array, Array]], Array]:
        """The lanes whose generic addresses lie in the window of another space, with that space's access and their
        addresses in it; and the lanes in global memory.
        """
        if self.space != "generic":
            return [], np.arange(address.size)
        windows = address >> _WINDOW_SHIFT
        found: list[tuple[MemoryAccess, Array, Array]] = []
        others = np.ones(address.size, bool)
        for window in np.unique(windows):
            space = SPACE_OF_WINDOW.get(int(window))
            if space is not None:
                lanes = np.flatnonzero(windows == window)
                others[lanes] = False
                found.append((self._part(space), address[lanes] - np.uint64(WINDOWS[space]), lanes))
        return found, np.flatnonzero(others)

    def _part(self, space: str) -> MemoryAccess:
        """This access in another space."""
        if space not in self._parts:
            part = MemoryAccess(replace(self.instruction, space=space))
            part.attach(self._memory)
            self._parts[space] = part
        return self._parts[space]

    def parts(self) -> tuple[MemoryAccess, ...]:
        """This access and its copies for other spaces, which generic addresses need; their counters count together."""
        return (self, *self._parts.values())

    def _located(self, address: Array, group: LaneGroup) -> list[tuple[Allocation, Array]]:
        """The allocations that the lanes touch, each with its lanes. Raises EmulatorError for a bad address."""
        memory = self._memory.allocations
        found: list[tuple[Allocation, Array]] = []
        left = np.arange(address.size)
        while left.size:
            first = int(address[left[0]])
            buffer = memory.find(first)
            if buffer is None:
                raise self._outside(first, int(group.ix[left[0]]), memory.describe(first))
            offset = address[left] - np.uint64(buffer.base)
            here = offset < max(buffer.data.size, 1)
            lanes = left[here]
            ends = offset[here] + np.uint64(self.size)
            if (offset[here] & np.uint64(self.size - 1)).any():
                bad = int(np.flatnonzero(offset[here] & np.uint64(self.size - 1))[0])
                raise self._misaligned(int(address[lanes[bad]]), int(group.ix[lanes[bad]]))
            if (ends > buffer.data.size).any():
                bad = int(np.flatnonzero(ends > buffer.data.size)[0])
                why = f"`{buffer.name}` ends after {buffer.data.size} bytes"
                raise self._outside(int(address[lanes[bad]]), int(group.ix[lanes[bad]]), why)
            found.append((buffer, lanes))
            left = left[~here]
        return found

    def _count(self, address: Array, group: LaneGroup) -> None:
        """Counts warps and 32-byte sectors."""
        self.accesses += group.nf
        if group.n == group.nf:
            self.sectors += group.n
            return
        key = address >> _SECTOR_SHIFT
        if group.nf > 1:
            key |= group.high_labels()
        key.sort()
        self.sectors += int(np.count_nonzero(key[1:] != key[:-1])) + 1

    # --- spaces of a block, a thread or the kernel -------------------------------------------------------------

    def _local(self, address: Array, group: LaneGroup, values: Array | None) -> tuple[Array, Array]:
        """The words and the index of an access to shared, local, constant or parameter memory."""
        limit, data, stride = self._memory.space(self.space)
        size = np.uint64(self.size)
        outside = (address >= np.uint64(limit)) | (address + size > np.uint64(limit))
        if outside.any():
            bad = int(np.flatnonzero(outside)[0])
            why = f"the {self.space} memory of this launch has {limit} bytes"
            raise self._outside(int(address[bad]), int(group.ix[bad]), why)
        if (address & (size - np.uint64(1))).any():
            bad = int(np.flatnonzero(address & (size - np.uint64(1)))[0])
            raise self._misaligned(int(address[bad]), int(group.ix[bad]))
        flat = address.astype(np.int64)
        if self.space == "shared":
            flat = flat + self._memory.shape.block_of(group.ix) * stride
            self._check_shared(flat, group, values)
        elif self.space == "local":
            flat = flat + group.ix * stride
        words = data.view(self.dtype)
        index = flat >> (self.size.bit_length() - 1)
        return (words if self.count == 1 else words.reshape(-1, self.count)), index

    def _check_shared(self, flat: Array, group: LaneGroup, values: Array | None) -> None:
        unwritten, hazards = self._memory.unwritten, self._memory.hazards
        self.accesses += group.nf
        if group.n > group.nf:
            self.conflicts += bank_conflicts(flat, self.size, group)
        if unwritten is not None:
            spread = flat[:, None] + np.arange(self.size)
            if self.instruction.kind is not AccessKind.LOAD:
                unwritten[spread] = False
            elif unwritten[spread].any():
                bad = int(np.flatnonzero(unwritten[spread].any(axis=1))[0])
                raise self._problem(
                    UNWRITTEN,
                    "a read of shared memory that was never written",
                    int(flat[bad]),
                    int(group.ix[bad]),
                    "",
                )
        if hazards is not None:
            hazards.check(self.instruction, flat, group, values)

    def _outside(self, address: int, lane: int, why: str) -> Exception:
        return self._problem(
            OUT_OF_BOUNDS, f"{self.instruction.kind.value} out of bounds", address, lane, why
        )

    def _misaligned(self, address: int, lane: int) -> Exception:
        return self._problem(
            MISALIGNED,
            f"misaligned {self.instruction.kind.value}",
            address,
            lane,
            f"the address is not a multiple of the access's {self.size} bytes",
        )

    def _problem(self, code: str, what: str, address: int, lane: int, why: str) -> Exception:
        thread = self._memory.shape.thread_name(lane)
        message = f"{what}: {self.size} bytes at {self.space} address {address:#x}, {thread}"
        return self._memory.places.error(code, message, self.instruction.item, why=why)


def _one_space(address: Array) -> str | None:
    """The space that all of these generic addresses lie in, or None."""
    windows = address >> _WINDOW_SHIFT
    if (windows != windows[0]).any():
        return None
    return SPACE_OF_WINDOW.get(int(windows[0]), "global")


def bank_conflicts(flat: Array, size: int, group: LaneGroup) -> int:
    """The extra passes that the banks of shared memory (32 banks of 4 bytes) need, summed over all warps."""
    words = np.unique(np.stack([group.dense_labels(), flat >> 2]), axis=1)
    loads = np.bincount(words[0] * 32 + (words[1] & 31), minlength=32 * group.nf).reshape(-1, 32)
    return int(np.maximum(loads.max(axis=1) - max(size // 4, 1), 0).sum())
