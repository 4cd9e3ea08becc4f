"""Record what iterations of watched loops do to memory: every access of a launch.

A `Program` takes a `Record` that names the statements at which iterations begin and end. It then runs with events in
its code and each access wrapped; programs without a record have neither.

Loads, stores and atomics on global, shared and local memory are recorded for lanes that are in an iteration. Loads that
promise to read memory that is never written (``ld.global.nc``, constants, parameters) are not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cccopt.emulator.access import MemoryAccess
from cccopt.emulator.groups import LaneGroup
from cccopt.emulator.iterations import NOWHERE, Event, Iterations
from cccopt.emulator.layout import SPACE_OF_WINDOW, WINDOW_BITS, WINDOWS
from cccopt.emulator.machine import Machine
from cccopt.emulator.memory_instruction import MemoryInstruction
from cccopt.emulator.semantics import Array

SPACES = ("global", "shared", "local")
LOAD, STORE, ATOMIC_LOAD, ATOMIC_STORE = "load", "store", "atomic load", "atomic store"
_FULL = 1 << 12
"""The number of accesses that are collected before they are joined."""

LOCAL_BITS = 32
"""The bits of an address in a thread's local memory; those above are the lane's number."""

_ATOMIC = frozenset({"relaxed", "acquire", "release", "acq_rel", "mmio"})
"""Words of loads and stores that are atomic: those of `cuda::atomic_ref`. C's `volatile` is not one of them."""


@dataclass(frozen=True, slots=True)
class AccessSite:
    """An instruction that accesses memory.

    ``action`` is `LOAD`, `STORE`, `ATOMIC_LOAD`, `ATOMIC_STORE` or an atomic operation (``add``); ``size`` is the
    size of an element in bytes.
    """

    instruction: MemoryInstruction
    action: str
    size: int


@dataclass
class Rows:
    """Accesses in the order in which they were made: ``address`` (in its space, over all blocks and
    threads), ``iteration`` (a row of the table), ``site`` (a number) and ``value`` (bits; the operand's for an atomic).
    """

    address: Array
    iteration: Array
    site: Array
    value: Array

    def where(self, chosen: Array) -> Rows:
        """The chosen accesses, by a mask or by their indices."""
        return Rows(self.address[chosen], self.iteration[chosen], self.site[chosen], self.value[chosen])


def _together(parts: Sequence[Rows]) -> Rows:
    if not parts:
        empty = np.zeros(0, np.int64)
        return Rows(empty, empty.astype(np.int32), empty.astype(np.int32), empty.astype(np.uint64))
    return Rows(*(np.concatenate([getattr(p, n) for p in parts]) for n in Rows.__dataclass_fields__))


@dataclass
class Record:
    """The record of one program's launches, one at a time.

    ``events`` holds the events before a statement, by function and index of the statement. ``ended`` is called
    with the record when a launch has ended; it can use ``machine``, ``iterations``, `rows` and ``sites``.
    """

    events: Mapping[tuple[str, int], tuple[Event, ...]]
    ended: Callable[[Record], None]
    sites: list[AccessSite] = field(default_factory=list)
    machine: Machine = field(init=False)
    iterations: Iterations = field(init=False)
    _new: list[tuple[int, str, Array, Array, Array]] = field(default_factory=list)
    _rows: dict[str, list[Rows]] = field(default_factory=dict)

    def begin(self, machine: Machine) -> None:
        """Called when a launch begins."""
        self.machine = machine
        self.iterations = Iterations(machine.lanes)
        self._new = []
        self._rows = {space: [] for space in SPACES}

    def end(self) -> None:
        """Called when the launch has ended."""
        self._settle()
        self.ended(self)

    def happening(self, event: Event) -> Callable[[LaneGroup], None]:
        """The function that code calls where ``event`` happens."""
        return lambda group: self.iterations.happen(event, group)

    def watched(self, access: MemoryAccess) -> Watched | MemoryAccess:
        """``access``, wrapped if what it does is recorded."""
        promised = access.space not in (*SPACES, "generic") or "nc" in access.instruction.item.parts
        return access if promised else Watched(access, self)

    def rows(self, space: str) -> Rows:
        """The accesses to a space."""
        return _together(self._rows[space])

    def note(self, access: MemoryAccess, site: int, address: Array, group: LaneGroup, values: Array) -> None:
        """Records that ``group`` accessed ``address`` (uint64, one per lane); values as from `MemoryAccess.load`."""
        iteration = self.iterations.now[group.ix]
        inside = iteration != NOWHERE
        if not inside.any():
            return
        lanes = group.ix
        if not inside.all():
            address, iteration, values, lanes = (
                address[inside],
                iteration[inside],
                values[inside],
                lanes[inside],
            )
        if access.space != "generic":
            self._keep(site, access.space, address, iteration, values, lanes)
            return
        windows = address >> np.uint64(WINDOW_BITS)
        for window in np.unique(windows).tolist():
            space = SPACE_OF_WINDOW.get(window, "global")
            if space in SPACES:
                here = windows == window
                inner = address[here] - np.uint64(WINDOWS[space])
                self._keep(site, space, inner, iteration[here], values[here], lanes[here])

    def _keep(
        self, site: int, space: str, address: Array, iteration: Array, values: Array, lanes: Array
    ) -> None:
        flat = address.astype(np.int64)
        if space == "shared":
            flat += self.machine.shape.block_of(lanes) * self.machine.memory.shared_stride
        elif space == "local":
            flat += lanes << LOCAL_BITS
        if values.ndim == 2:
            count = values.shape[1]
            flat = (flat[:, None] + np.arange(count) * self.sites[site].size).reshape(-1)
            iteration, values = np.repeat(iteration, count), values.reshape(-1)
        self._new.append((site, space, flat, iteration, values))
        if len(self._new) == _FULL:
            self._settle()

    def _settle(self) -> None:
        """Joins the collected accesses."""
        for space in SPACES:
            found = [entry for entry in self._new if entry[1] == space]
            if found:
                sizes = [entry[2].size for entry in found]
                sites = np.repeat(np.array([entry[0] for entry in found], np.int32), sizes)
                address, iteration = (np.concatenate([entry[i] for entry in found]) for i in (2, 3))
                values = np.concatenate([_bits(entry[4]) for entry in found])
                self._rows[space].append(Rows(address, iteration, sites, values))
        self._new = []


def _bits(values: Array) -> Array:
    """The bits of ``values`` as unsigned numbers."""
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")


class Watched:
    """A recorded access. Its methods are those of `MemoryAccess` that code calls."""

    def __init__(self, access: MemoryAccess, record: Record) -> None:
        self._access = access
        self._record = record
        self._atomic = bool(_ATOMIC & set(access.instruction.item.parts))
        self._sites: dict[str, int] = {}

    def _site(self, action: str) -> int:
        if action not in self._sites:
            self._sites[action] = len(self._record.sites)
            self._record.sites.append(
                AccessSite(self._access.instruction, action, int(self._access.dtype.itemsize))
            )
        return self._sites[action]

    def load(self, address: Array, group: LaneGroup) -> Array:
        """`MemoryAccess.load`."""
        values = self._access.load(address, group)
        site = self._site(ATOMIC_LOAD if self._atomic else LOAD)
        self._record.note(self._access, site, address, group, values)
        return values

    def store(self, address: Array, values: Array, group: LaneGroup) -> None:
        """`MemoryAccess.store`."""
        self._access.store(address, values, group)
        site = self._site(ATOMIC_STORE if self._atomic else STORE)
        self._record.note(self._access, site, address, group, values)

    def atomic(
        self,
        operation: str,
        want_old: bool,
        address: Array,
        group: LaneGroup,
        b: Array,
        c: Array | None = None,
    ) -> Any:
        """`MemoryAccess.atomic`."""
        old = self._access.atomic(operation, want_old, address, group, b, c)
        self._record.note(self._access, self._site(operation), address, group, b)
        return old
