"""Whether the order of iterations is visible in what they do to memory.

The verdict on a crowd (`crowds`) is the first of these that holds:

    two iterations leave different values by plain stores                          conflict   store, store
    one stores, another does an atomic operation that is not an exchange           conflict   store, atomic
    one loads, another stores, unless all stores there are flags                   conflict   load, store
    one loads, another does an atomic `add`, `inc`, `dec` or `xor`                 conflict   load, atomic
    all do the same commutative atomic                                             nothing
    none of these, but one stores or does an atomic, and another is there          meeting

A store is a *flag* if the instruction stores the same value in all iterations of the launch, and the other stores of
the crowd also store that value: a load finds the flag or does not, and the order of the stores does not matter.
Exchanges are ``exch``, ``cas`` and atomic loads and stores: code that uses them checks what it gets.

A store that its own iteration overwrites does not count, unless another iteration loads. In a thread's local memory,
only loads of what another iteration has stored count: if each iteration stores before it loads, the compiler has merely
given their arrays one address.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from cccopt.emulator.crowds import Crowds
from cccopt.emulator.record import ATOMIC_LOAD, ATOMIC_STORE, LOAD, STORE
from cccopt.emulator.semantics import Array

_EXCHANGES = ("exch", "cas", ATOMIC_STORE)
_BOUNDS = ("min", "max", "and", "or")


class MeetingKind(Enum):
    """How iterations meet, in words; if several hold, the first applies."""

    STORES_DIFFER = "two iterations store different values"
    STORE_ATOMIC = "one iteration stores where another performs an atomic operation"
    LOAD_STORE = "one iteration loads what another stores"
    LOAD_UPDATE = "one iteration loads what another updates by an atomic operation"
    STORE_EXCHANGE = (
        "one iteration stores to a location that another accesses with an atomic exchange, load or store"
    )
    STORES_AGREE = "iterations store the same value"
    LOAD_FLAG = "one iteration loads a flag that another stores"
    LOAD_BOUND = "one iteration loads a value that another updates with an atomic `min`, `max`, `and`, `or` or exchange"
    ATOMICS_DIFFER = "iterations perform different atomic operations, or atomic exchanges"
    STORES_OVERWRITTEN = (
        "iterations store different values, but the last value that each stores is the same, and no other iteration"
        " loads an earlier one"
    )

    @property
    def conflict(self) -> bool:
        """Whether the order of the iterations is visible."""
        return self in _CONFLICTS


_CONFLICTS = (
    MeetingKind.STORES_DIFFER,
    MeetingKind.STORE_ATOMIC,
    MeetingKind.LOAD_STORE,
    MeetingKind.LOAD_UPDATE,
)
_KINDS = tuple(MeetingKind)


@dataclass(frozen=True)
class Verdicts:
    """The crowds with a verdict: the number of its `kind`, and the indices of two accesses as an example."""

    number: Array
    one: Array
    other: Array

    def kind(self, index: int) -> MeetingKind:
        """The verdict on the crowd ``index``."""
        return _KINDS[int(self.number[index])]


def judged(crowds: Crowds, action: Array, flag: Array, *, local: bool) -> Verdicts:
    """The verdicts on ``crowds``. ``action`` says what each access does, ``flag`` whether its instruction always stores
    the same value, ``local`` whether the memory is local to a thread.
    """
    load, store = action == LOAD, action == STORE
    exchange = np.isin(action, _EXCHANGES)
    bound = np.isin(action, _BOUNDS)
    polling = action == ATOMIC_LOAD
    atomic = ~load & ~store & ~polling
    update = atomic & ~exchange & ~bound
    value = crowds.rows.value
    agree = crowds.same(store, value)
    flags = crowds.all(~store | flag) & agree
    mixed = crowds.any(exchange) | ~crowds.same(atomic, action)
    if local:
        load &= crowds.exposed(store)
    pair = crowds.pair
    loaded, stored = pair(load, store), pair(store, store)
    rules = {
        MeetingKind.STORE_ATOMIC: pair(store, atomic & ~exchange),
        MeetingKind.LOAD_STORE: _where(~flags, loaded),
        MeetingKind.LOAD_UPDATE: pair(load, update),
        MeetingKind.STORE_EXCHANGE: pair(store, exchange | polling),
        MeetingKind.LOAD_FLAG: _where(flags, loaded),
        MeetingKind.LOAD_BOUND: pair(load, bound | exchange),
        MeetingKind.ATOMICS_DIFFER: _where(mixed, pair(atomic, atomic | polling)),
    }
    if not local:
        rules |= {
            MeetingKind.STORES_DIFFER: crowds.differing(crowds.last_of_iteration(store)),
            MeetingKind.STORES_AGREE: _where(agree, stored),
            MeetingKind.STORES_OVERWRITTEN: _where(~agree, stored),
        }
    number = np.full(crowds.starts.size, -1)
    one, other = crowds.nowhere(), crowds.nowhere()
    for index, kind in enumerate(_KINDS):
        if kind in rules:
            first, second = rules[kind]
            now = (number < 0) & (first >= 0)
            number[now], one[now], other[now] = index, first[now], second[now]
    found = np.flatnonzero(number >= 0)
    return Verdicts(number[found], one[found], other[found])


def _where(holds: Array, pair: tuple[Array, Array]) -> tuple[Array, Array]:
    return np.where(holds, pair[0], -1), np.where(holds, pair[1], -1)
