"""Global memory: allocations in one flat address space, each with its own array of bytes."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from cccopt.emulator.semantics import Array
from cccopt.text import quantity

GLOBAL_START = 0x7F << 40
_GAP = 512  # bytes between two allocations that belong to neither


class Allocation:
    """An allocation: ``data`` holds its bytes, ``base`` is its address."""

    __slots__ = ("_views", "base", "data", "name")

    def __init__(self, base: int, size: int, name: str) -> None:
        self.base = base
        self.name = name
        self.data = np.zeros(size, np.uint8)
        self._views: dict[tuple[int, int], Array] = {}

    def words(self, size: int, count: int) -> Array:
        """The bytes as unsigned integers of ``size`` bytes, in rows of ``count`` if that is not 1.

        A last element that does not fit is left out: reading it is out of bounds.
        """
        key = (size, count)
        if key not in self._views:
            whole = self.data.size // (size * count) * (size * count)
            view = self.data[:whole].view(f"u{size}")
            self._views[key] = view if count == 1 else view.reshape(-1, count)
        return self._views[key]


class GlobalMemory:
    """The allocations by address. Addresses are never reused."""

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._buffers: list[Allocation] = []
        self._freed: list[tuple[int, int, str]] = []
        self._next = GLOBAL_START

    def allocate(self, size: int, name: str, alignment: int = 256) -> int:
        """The address of ``size`` new zero bytes."""
        step = max(alignment, 256)
        base = -(-self._next // step) * step
        self._next = base + size + _GAP
        self._bases.append(base)
        self._buffers.append(Allocation(base, size, name))
        return base

    @property
    def bases(self) -> tuple[int, ...]:
        """The addresses of the allocations, ascending."""
        return tuple(self._bases)

    def free(self, base: int) -> None:
        """Frees an allocation; touching it afterwards is an error."""
        position = self._bases.index(base)
        buffer = self._buffers.pop(position)
        self._bases.pop(position)
        self._freed.append((base, base + buffer.data.size, buffer.name))

    def at(self, address: int) -> Allocation:
        """The allocation that holds ``address``. Raises KeyError if there is none."""
        found = self.find(address)
        if found is None:
            raise KeyError(hex(address))
        return found

    def find(self, address: int) -> Allocation | None:
        """The allocation that holds ``address``, or None."""
        position = bisect_right(self._bases, address) - 1
        if position < 0:
            return None
        buffer = self._buffers[position]
        return buffer if address < buffer.base + max(buffer.data.size, 1) else None

    def describe(self, address: int) -> str:
        """Describes in words what is near an address that no allocation holds."""
        for base, stop, name in self._freed:
            if base <= address < stop:
                return f"it lies in `{name}`, which was freed"
        position = bisect_right(self._bases, address) - 1
        if position >= 0 and address - (self._bases[position] + self._buffers[position].data.size) < 1 << 32:
            buffer = self._buffers[position]
            past = address - buffer.base - buffer.data.size
            return (
                f"it is {quantity(past, 'byte')} past the end of `{buffer.name}` ({buffer.data.size} bytes)"
            )
        if position + 1 < len(self._bases) and self._bases[position + 1] - address < 1 << 32:
            buffer = self._buffers[position + 1]
            return f"it is {quantity(buffer.base - address, 'byte')} before `{buffer.name}` ({buffer.data.size} bytes)"
        return "no allocation is near it"
