"""Where iterations that may be under way at once meet in memory, and whether their order can be told from it.

All that iterations of one meeting ground (`iterations`) do to one piece of memory, some bytes that are always accessed
whole, is a *crowd*. The first of these that holds for a crowd is what it comes to:

    two iterations leave different values by plain stores                          conflict   store, store
    one stores, another does an atomic operation that is no exchange               conflict   store, atomic
    one loads, another stores, unless all stores there are flags                   conflict   load, store
    one loads, another does an atomic `add`, `inc`, `dec` or `xor`                 conflict   load, atomic
    none of these, but one stores or does an atomic, and another is there          meeting
    all do the same commutative atomic                                             nothing

A store is a *flag* if the instruction stores one and the same value in all iterations of the launch, and the crowd's
other stores store that value as well: a load finds the flag or does not, and neither order of the stores matters.
Exchanges are ``exch``, ``cas`` and atomic loads and stores: code that uses them looks at what it gets.

What an iteration itself overwrites does not count, unless another one loads. In a thread's local memory only
loads of what another iteration has stored count: where each iteration stores before it loads, the compiler has merely
given their arrays one place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from cccopt.emulator.iterations import NOWHERE, Iterations
from cccopt.emulator.memory import GlobalMemory
from cccopt.emulator.record import (
    ATOMIC_LOAD,
    ATOMIC_STORE,
    LOAD,
    LOCAL_BITS,
    SPACES,
    STORE,
    AccessSite,
    Record,
    Rows,
)
from cccopt.emulator.semantics import Array

CONFLICTS = 4
"""The first this many `KINDS` are conflicts."""

KINDS = (
    "two iterations store different values",
    "one iteration stores where another does an atomic operation",
    "one iteration loads what another stores",
    "one iteration loads what another updates by an atomic operation",
    "one iteration stores what another exchanges",
    "iterations store the same value",
    "one iteration loads a flag that another stores",
    "one iteration loads a bound that another moves, or what another exchanges",
    "iterations do different atomic operations, or exchange",
    "iterations store different values before the last one, and no other iteration loads them",
)

_SPAN = 1 << 20
"""Units of memory for which a table is always small enough."""

_EXCHANGES = frozenset({"exch", "cas", ATOMIC_STORE})
_BOUNDS = frozenset({"min", "max", "and", "or"})


@dataclass(frozen=True, slots=True)
class IterationStep:
    """An iteration by its place in the nest: its loop, its number and its entry of the loop, both from 0."""

    loop: int
    number: int
    entry: int


@dataclass(frozen=True, slots=True)
class Touch:
    """An access: the instruction (function and index of its statement), what it does (``load``, ``store``, or an atomic
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
    """Two instructions at which iterations of ``loop`` meet: an example, and at how many places (``places``, counted
    anew for each meeting ground) they do. ``kind`` is a place in `KINDS`; ``first`` came before ``second``.

    The example is at ``offset`` bytes into an allocation (``array``) of global memory, or into the shared memory of
    block ``owner`` or the local memory of thread ``owner``; ``size`` bytes.
    """

    kind: int
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

    @property
    def conflict(self) -> bool:
        """Whether the order of iterations can be told."""
        return self.kind < CONFLICTS


def meetings(record: Record) -> tuple[Meeting, ...]:
    """The meetings of a launch that has ended, conflicts first, those at more places ahead of others."""
    found = [m for space in SPACES for m in _in_space(record, space)]
    return tuple(sorted(found, key=lambda m: (not m.conflict, -m.places)))


def _in_space(record: Record, space: str) -> Iterator[Meeting]:
    rows = record.rows(space)
    stores = np.array([site.action not in (LOAD, ATOMIC_LOAD) for site in record.sites], bool)
    if not rows.address.size or not stores[rows.site].any():
        return
    flags = _flags(record.sites, rows)
    for chosen in (
        _allocations(record.machine.memory.allocations, rows) if space == "global" else (slice(None),)
    ):
        part = rows.where(chosen)
        size = min(record.sites[site].size for site in np.flatnonzero(np.bincount(part.site)))
        part = _cut(record.sites, part, size)
        # Most memory is only read.
        written = part.address[stores[part.site]]
        if not written.size:
            continue
        part = part.where(_touched(part.address, written, size))
        for depth in range(int(record.iterations.column("depth").max()) + 1):
            yield from _Crowds(record, part, flags, space, size, depth).meetings()


def _allocations(memory: GlobalMemory, rows: Rows) -> Iterator[Array]:
    """The places of the accesses to each allocation."""
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
    """For each site whether it is a store of one and the same value."""
    found = np.zeros(len(sites), bool)
    for number in np.flatnonzero(np.bincount(rows.site)):
        values = rows.value[rows.site == number]
        found[number] = sites[number].action == STORE and bool((values == values[0]).all())
    return found


class _Crowds:
    """The crowds in one space whose meeting grounds are those of loops at ``depth`` (0: outermost)."""

    def __init__(self, record: Record, rows: Rows, flags: Array, space: str, size: int, depth: int) -> None:
        self.record, self.space, self.size = record, space, size
        iterations = record.iterations
        at_depth = _ancestors(iterations, depth)
        token = at_depth[rows.iteration]
        if (token == NOWHERE).any():
            rows, token = rows.where(token != NOWHERE), token[token != NOWHERE]
        order = _order(rows.address // size, iterations.column("ground"), token)
        ground, address, token = iterations.column("ground")[token[order]], rows.address[order], token[order]
        new = np.append(True, (ground[1:] != ground[:-1]) | (address[1:] != address[:-1]))[: order.size]
        starts = np.flatnonzero(new)
        stops = np.append(starts, order.size)[1:]
        several = token[starts] != token[stops - 1]
        keep = np.repeat(several, stops - starts)
        self.rows = rows.where(order[keep])
        self.time = order[keep]
        self.token = token[keep]
        sizes = (stops - starts)[several]
        self.stops = np.cumsum(sizes)
        self.starts = self.stops - sizes
        self.crowd = np.repeat(np.arange(sizes.size), sizes)
        self._flags = flags
        self._actions = np.array([site.action for site in record.sites])

    def meetings(self) -> Iterator[Meeting]:
        """One for each kind and pair of instructions."""
        if not self.starts.size:
            return
        kind, one, other = self._judge()
        found = np.flatnonzero(kind >= 0)
        if not found.size:
            return
        kind, one, other = kind[found], one[found], other[found]
        swap = self.time[one] > self.time[other]
        one, other = np.where(swap, other, one), np.where(swap, one, other)
        sites = np.sort(np.stack([self.rows.site[one], self.rows.site[other]]), axis=0)
        loops = self.record.iterations.column("loop")[self.token[one]]
        keys = np.stack([kind, loops, *sites])
        _, examples, counts = np.unique(keys, axis=1, return_index=True, return_counts=True)
        for example, count in zip(examples.tolist(), counts.tolist(), strict=True):
            pair = int(one[example]), int(other[example])
            yield self._meeting(int(kind[example]), int(loops[example]), *pair, count)

    # --- judging crowds ----------------------------------------------------------------------------------------

    def _judge(self) -> tuple[Array, Array, Array]:
        """For each crowd its place in `KINDS` (-1: none) and the places of two accesses that are an example."""
        action = self._actions[self.rows.site]
        local = self.space == "local"
        load, store = action == LOAD, action == STORE
        exchange = np.isin(action, list(_EXCHANGES))
        bound = np.isin(action, list(_BOUNDS))
        polling = action == ATOMIC_LOAD
        atomic = ~load & ~store & ~polling
        update = atomic & ~exchange & ~bound
        if local:
            load &= self._first_of_iteration()
        last = self._last_store(store)
        flags = self._all(~store | self._flags[self.rows.site]) & self._same(store)
        no_pair = self._none, self._none
        stored = no_pair if local else self._apart(last)
        steps = no_pair if local else self._differing(store)
        none = np.zeros(self.starts.size, bool)
        rules: Iterable[tuple[Array | None, tuple[Array, Array]]] = (
            (None, stored),
            (None, self._pair(store, atomic & ~exchange)),
            (~flags, self._pair(load, store)),
            (None, self._pair(load, update)),
            (None, self._pair(store, exchange | polling)),
            (none if local else self._same(store), self._pair(store, store)),
            (flags, self._pair(load, store)),
            (None, self._pair(load, bound | exchange)),
            (self._any(exchange) | ~self._same_action(atomic), self._pair(atomic, atomic | polling)),
            (None, steps),
        )
        kind = np.full(self.starts.size, -1)
        one, other = self._none.copy(), self._none.copy()
        for number, (condition, (a, b)) in enumerate(rules):
            now = (kind < 0) & (a >= 0)
            if condition is not None:
                now &= condition
            kind[now], one[now], other[now] = number, a[now], b[now]
        return kind, one, other

    @property
    def _none(self) -> Array:
        return np.full(self.starts.size, -1)

    def _ends(self, chosen: Array) -> tuple[Array, Array]:
        """The first and the last chosen access of each crowd, which are of its first and last iteration; -1: none."""
        places = np.flatnonzero(chosen)
        if not places.size:
            return self._none, self._none
        low = np.searchsorted(places, self.starts)
        high = np.searchsorted(places, self.stops)
        some = low < high
        first = np.where(some, places[np.minimum(low, places.size - 1)], -1)
        return first, np.where(some, places[high - 1], -1)

    def _pair(self, chosen: Array, others: Array) -> tuple[Array, Array]:
        """Of each crowd one of ``chosen`` and one of ``others``, of different iterations; -1: there are none."""
        first, last = self._ends(chosen)
        first_other, last_other = self._ends(others)
        both = (first >= 0) & (first_other >= 0)
        outward = both & (self.token[first] != self.token[last_other])
        inward = both & ~outward & (self.token[last] != self.token[first_other])
        one = np.where(outward, first, np.where(inward, last, -1))
        return one, np.where(outward, last_other, np.where(inward, first_other, -1))

    def _differing(self, chosen: Array) -> tuple[Array, Array]:
        """Of each crowd two chosen accesses of different iterations, if the chosen ones differ in values."""
        one, other = self._pair(chosen, chosen)
        differ = (one >= 0) & ~self._same(chosen)
        return np.where(differ, one, -1), np.where(differ, other, -1)

    def _apart(self, chosen: Array) -> tuple[Array, Array]:
        """Of each crowd two of the chosen accesses that differ in values; an iteration has at most one chosen."""
        places = np.flatnonzero(chosen)
        order = places[np.lexsort((self.rows.value[places], self.crowd[places]))]
        crowds = self.crowd[order]
        low = np.searchsorted(crowds, np.arange(self.starts.size))
        high = np.searchsorted(crowds, np.arange(self.starts.size), side="right")
        some = np.flatnonzero(low < high)
        smallest, largest = order[low[some]], order[high[some] - 1]
        differ = self.rows.value[smallest] != self.rows.value[largest]
        one, other = self._none, self._none
        one[some[differ]], other[some[differ]] = smallest[differ], largest[differ]
        return one, other

    def _last_store(self, store: Array) -> Array:
        """The last store of each iteration to each piece of memory."""
        places = np.flatnonzero(store)
        last = np.zeros(store.size, bool)
        if places.size:
            crowd, token = self.crowd[places], self.token[places]
            ends = np.append((crowd[1:] != crowd[:-1]) | (token[1:] != token[:-1]), True)
            last[places[ends]] = True
        return last

    def _first_of_iteration(self) -> Array:
        """Whether an access is the first of its iteration to its piece of memory, or all before it are loads."""
        store = self._actions[self.rows.site] == STORE
        before = np.cumsum(store) - store
        new = np.ones(store.size, bool)
        new[1:] = (self.token[1:] != self.token[:-1]) | (self.crowd[1:] != self.crowd[:-1])
        start = np.flatnonzero(new)
        at_start = np.repeat(before[start], np.diff(np.append(start, store.size)))
        exposed: Array = before == at_start
        return exposed

    def _all(self, holds: Array) -> Array:
        return np.logical_and.reduceat(holds, self.starts)

    def _any(self, holds: Array) -> Array:
        return np.logical_or.reduceat(holds, self.starts)

    def _same(self, chosen: Array) -> Array:
        """Whether the chosen accesses of each crowd have one value."""
        first, _ = self._ends(chosen)
        return self._all(~chosen | (self.rows.value == self.rows.value[first][self.crowd]))

    def _same_action(self, chosen: Array) -> Array:
        first, _ = self._ends(chosen)
        action = self._actions[self.rows.site]
        return self._all(~chosen | (action == action[first][self.crowd]))

    # --- examples ----------------------------------------------------------------------------------------------

    def _meeting(self, kind: int, loop: int, one: int, other: int, places: int) -> Meeting:
        address = int(self.rows.address[one])
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

    def _touch(self, place: int) -> Touch:
        site = self.record.sites[int(self.rows.site[place])]
        item = site.instruction.item
        iterations = self.record.iterations
        row = int(self.rows.iteration[place])
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
            int(self.rows.value[place]),
        )


def _order(unit: Array, ground: Array, token: Array) -> Array:
    """The order by unit of memory, then by the ground of an iteration, then by iteration; else as it was."""
    if not unit.size:
        return unit
    # One number for all three sorts several times as fast.
    by_ground = np.argsort(ground, kind="stable")
    rank = np.empty(ground.size, np.int64)
    rank[by_ground] = np.arange(ground.size)
    low = int(unit.min())
    if (int(unit.max()) - low + 1) * ground.size >= 1 << 63:
        return np.lexsort((rank[token], unit))
    return np.argsort((unit - low) * ground.size + rank[token], kind="stable")


def _ancestors(iterations: Iterations, depth: int) -> Array:
    """For each iteration the one at ``depth`` that it is part of, or is; `NOWHERE` if there is none."""
    depths, outer = iterations.column("depth"), iterations.column("outer")
    found = np.arange(depths.size)
    for _ in range(int(depths.max()) - depth):
        found = np.where(depths[found] > depth, outer[found], found)
    return np.where(depths[found] == depth, found, NOWHERE)
