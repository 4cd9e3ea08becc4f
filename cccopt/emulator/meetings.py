"""The meetings of a launch: where iterations that may be under way at once access the same memory.

`judging` gives the verdicts on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cccopt.emulator.crowds import Crowds
from cccopt.emulator.iterations import NOWHERE
from cccopt.emulator.judging import MeetingKind, judged
from cccopt.emulator.memory import GlobalMemory
from cccopt.emulator.record import ATOMIC_LOAD, LOAD, LOCAL_BITS, SPACES, STORE, AccessSite, Record, Rows
from cccopt.emulator.semantics import Array

_SPAN = 1 << 20
"""The number of memory units for which a table is always small enough."""


@dataclass(frozen=True, slots=True)
class IterationStep:
    """An iteration as its position in the nest: its loop, its number and its entry of the loop, both from 0."""

    loop: int
    number: int
    entry: int


@dataclass(frozen=True, slots=True)
class Touch:
    """An access: its instruction (function and index of its statement), its action (``load``, ``store``, or an atomic
    operation), the lane, its iterations from the outermost loop inwards, and the bits of the value.
    """

    function: str
    statement: int
    action: str
    opcode: str
    lane: int
    steps: tuple[IterationStep, ...]
    value: int


@dataclass(frozen=True, slots=True)
class Meeting:
    """Two instructions at which iterations of ``loop`` meet: an example, and the number of places where they
    meet (``places``, counted per meeting ground). ``first`` came before ``second``.

    The example: ``size`` bytes at ``offset`` in an allocation (``array``) of global memory, in a variable (``array``)
    of the shared memory of block ``owner``, or in the local memory of thread ``owner``.
    """

    kind: MeetingKind
    loop: int
    first: Touch
    second: Touch
    space: str
    array: str
    base: int
    offset: int
    owner: int
    size: int
    places: int


def meetings(record: Record) -> tuple[Meeting, ...]:
    """The meetings of a finished launch: conflicts first, then those at more places."""
    found = [m for space in SPACES for m in _in_space(record, space)]
    return tuple(sorted(found, key=lambda m: (not m.kind.conflict, -m.places)))


def _in_space(record: Record, space: str) -> Iterator[Meeting]:
    rows = record.rows(space)
    stores = np.array([site.action not in (LOAD, ATOMIC_LOAD) for site in record.sites], bool)
    if not rows.address.size or not stores[rows.site].any():
        return
    flags = _flags(record.sites, rows)
    allocations = record.machine.memory.allocations if space == "global" else None
    for chosen in (slice(None),) if allocations is None else _by_allocation(allocations, rows):
        part = rows.where(chosen)
        size = min(record.sites[site].size for site in np.flatnonzero(np.bincount(part.site)))
        part = _cut(record.sites, part, size)
        # Most memory is only read.
        written = part.address[stores[part.site]]
        if not written.size:
            continue
        part = part.where(_touched(part.address, written, size))
        for depth in range(int(record.iterations.column("depth").max()) + 1):
            yield from _CrowdsOfSpace(
                record, Crowds(record.iterations, part, size, depth), space, size
            ).meetings(flags)


def _by_allocation(memory: GlobalMemory, rows: Rows) -> Iterator[Array]:
    """The indices of the accesses to each allocation."""
    bases = np.array(memory.bases, np.int64)
    which = np.searchsorted(bases, rows.address, side="right")
    for number in np.flatnonzero(np.bincount(which)):
        yield np.flatnonzero(which == number)


def _touched(addresses: Array, written: Array, size: int) -> Array:
    """Which of the addresses, all multiples of ``size``, are among those that are written."""
    low = int(addresses.min())
    span = (int(addresses.max()) - low) // size + 1
    if span > 4 * addresses.size + _SPAN:
        return np.isin(addresses, written)
    found = np.zeros(span, bool)
    found[(written - low) // size] = True
    touched: Array = found[(addresses - low) // size]
    return touched


def _cut(sites: list[AccessSite], rows: Rows, size: int) -> Rows:
    """The same accesses in pieces of ``size`` bytes."""
    pieces = np.array([max(site.size // size, 1) for site in sites])[rows.site]
    if (pieces == 1).all():
        return rows
    which = np.repeat(np.arange(pieces.size), pieces)
    part = np.arange(which.size) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    cut = rows.where(which)
    mask = np.uint64((1 << 8 * size) - 1)
    value = cut.value.astype(np.uint64) >> (part * 8 * size).astype(np.uint64) & mask
    return Rows(cut.address + part * size, cut.iteration, cut.site, value)


def _flags(sites: list[AccessSite], rows: Rows) -> Array:
    """For each site, whether it is a store that always stores the same value."""
    found = np.zeros(len(sites), bool)
    for number in np.flatnonzero(np.bincount(rows.site)):
        values = rows.value[rows.site == number]
        found[number] = sites[number].action == STORE and bool((values == values[0]).all())
    return found


@dataclass(frozen=True)
class _CrowdsOfSpace:
    """Crowds in one space, in pieces of ``size`` bytes."""

    record: Record
    crowds: Crowds
    space: str
    size: int

    def meetings(self, flags: Array) -> Iterator[Meeting]:
        """One meeting for each kind, loop and pair of instructions."""
        crowds = self.crowds
        if not crowds.starts.size:
            return
        number = crowds.rows.site
        actions = np.array([site.action for site in self.record.sites])
        verdicts = judged(crowds, actions[number], flags[number], local=self.space == "local")
        if not verdicts.one.size:
            return
        swap = crowds.time[verdicts.one] > crowds.time[verdicts.other]
        one = np.where(swap, verdicts.other, verdicts.one)
        other = np.where(swap, verdicts.one, verdicts.other)
        sites = np.sort(np.stack([number[one], number[other]]), axis=0)
        loops = self.record.iterations.column("loop")[crowds.token[one]]
        keys = np.stack([verdicts.number, loops, *sites])
        _, examples, counts = np.unique(keys, axis=1, return_index=True, return_counts=True)
        for example, count in zip(examples.tolist(), counts.tolist(), strict=True):
            first, second = int(one[example]), int(other[example])
            yield self._meeting(verdicts.kind(example), int(loops[example]), first, second, count)

    def _meeting(self, kind: MeetingKind, loop: int, one: int, other: int, places: int) -> Meeting:
        address = int(self.crowds.rows.address[one])
        array, base, owner = "", 0, 0
        machine = self.record.machine
        if self.space == "global":
            buffer = machine.memory.allocations.at(address)
            array, base, offset = buffer.name, buffer.base, address - buffer.base
        elif self.space == "shared":
            owner, offset = divmod(address, machine.memory.shared_stride)
            array, offset = machine.kernel.shared_variable(offset)
        else:
            owner, offset = divmod(address, 1 << LOCAL_BITS)
        touches = self._touch(one), self._touch(other)
        return Meeting(kind, loop, *touches, self.space, array, base, offset, owner, self.size, places)

    def _touch(self, access: int) -> Touch:
        site = self.record.sites[int(self.crowds.rows.site[access])]
        item = site.instruction.item
        iterations = self.record.iterations
        row = int(self.crowds.rows.iteration[access])
        lane = int(iterations.column("lane")[row])
        steps: list[IterationStep] = []
        while row != NOWHERE:
            steps.append(
                IterationStep(*(int(iterations.column(name)[row]) for name in ("loop", "number", "entry")))
            )
            row = int(iterations.column("outer")[row])
        return Touch(
            item.function,
            item.statement,
            site.action,
            item.instruction.opcode,
            lane,
            tuple(reversed(steps)),
            int(self.crowds.rows.value[access]),
        )
