"""Crowds: what the iterations of one meeting ground (`iterations`) do to one piece of memory.

A piece of memory is a run of bytes that are always accessed together. A crowd is kept if several iterations access
the piece. Questions about crowds are answered for all at once, by arrays with one element per crowd; the index of an
access is -1 if a crowd has none.
"""

from __future__ import annotations

import numpy as np

from cccopt.emulator.iterations import NOWHERE, Iterations
from cccopt.emulator.record import Rows
from cccopt.emulator.semantics import Array


class Crowds:
    """The crowds among ``rows``, accesses of ``size`` bytes each, whose meeting grounds are those of loops at ``depth``
    (0: outermost).

    Accesses are sorted by crowd and then by iteration; ``time`` is each one's index among ``rows``, ``token`` its
    iteration at ``depth``, ``crowd`` the number of its crowd. A crowd has the accesses from ``starts`` to ``stops``.
    """

    def __init__(self, iterations: Iterations, rows: Rows, size: int, depth: int) -> None:
        at_depth = _ancestors(iterations, depth)
        token = at_depth[rows.iteration]
        if (token == NOWHERE).any():
            rows, token = rows.where(token != NOWHERE), token[token != NOWHERE]
        grounds = iterations.column("ground")
        order = _order(rows.address // size, grounds, token)
        ground, address, token = grounds[token[order]], rows.address[order], token[order]
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

    def nowhere(self) -> Array:
        """An array of -1 (no index), one per crowd."""
        return np.full(self.starts.size, -1)

    def _ends(self, chosen: Array) -> tuple[Array, Array]:
        """The first and last chosen access of each crowd, from the first and last iteration with one; -1 if none."""
        indices = np.flatnonzero(chosen)
        if not indices.size:
            return self.nowhere(), self.nowhere()
        low = np.searchsorted(indices, self.starts)
        high = np.searchsorted(indices, self.stops)
        some = low < high
        first = np.where(some, indices[np.minimum(low, indices.size - 1)], -1)
        return first, np.where(some, indices[high - 1], -1)

    def pair(self, chosen: Array, others: Array) -> tuple[Array, Array]:
        """For each crowd, one of ``chosen`` and one of ``others`` from different iterations; -1 if there are none."""
        first, last = self._ends(chosen)
        first_other, last_other = self._ends(others)
        both = (first >= 0) & (first_other >= 0)
        outward = both & (self.token[first] != self.token[last_other])
        inward = both & ~outward & (self.token[last] != self.token[first_other])
        one = np.where(outward, first, np.where(inward, last, -1))
        return one, np.where(outward, last_other, np.where(inward, first_other, -1))

    def differing(self, chosen: Array) -> tuple[Array, Array]:
        """For each crowd, two chosen accesses with different values; an iteration has at most one chosen access."""
        indices = np.flatnonzero(chosen)
        order = indices[np.lexsort((self.rows.value[indices], self.crowd[indices]))]
        crowds = self.crowd[order]
        low = np.searchsorted(crowds, np.arange(self.starts.size))
        high = np.searchsorted(crowds, np.arange(self.starts.size), side="right")
        some = np.flatnonzero(low < high)
        smallest, largest = order[low[some]], order[high[some] - 1]
        differ = self.rows.value[smallest] != self.rows.value[largest]
        one, other = self.nowhere(), self.nowhere()
        one[some[differ]], other[some[differ]] = smallest[differ], largest[differ]
        return one, other

    def last_of_iteration(self, chosen: Array) -> Array:
        """The last chosen access of each iteration to each piece of memory."""
        indices = np.flatnonzero(chosen)
        last = np.zeros(chosen.size, bool)
        if indices.size:
            crowd, token = self.crowd[indices], self.token[indices]
            ends = np.append((crowd[1:] != crowd[:-1]) | (token[1:] != token[:-1]), True)
            last[indices[ends]] = True
        return last

    def exposed(self, store: Array) -> Array:
        """For each access, whether its iteration has not stored to the piece of memory before."""
        before = np.cumsum(store) - store
        new = np.ones(store.size, bool)
        new[1:] = (self.token[1:] != self.token[:-1]) | (self.crowd[1:] != self.crowd[:-1])
        start = np.flatnonzero(new)
        at_start = np.repeat(before[start], np.diff(np.append(start, store.size)))
        exposed: Array = before == at_start
        return exposed

    def all(self, holds: Array) -> Array:
        """For each crowd, whether ``holds`` is true of all its accesses."""
        return np.logical_and.reduceat(holds, self.starts)

    def any(self, holds: Array) -> Array:
        """For each crowd, whether ``holds`` is true of some access."""
        return np.logical_or.reduceat(holds, self.starts)

    def same(self, chosen: Array, what: Array) -> Array:
        """For each crowd, whether ``what`` (one element per access) is the same for all its chosen accesses."""
        first, _ = self._ends(chosen)
        return self.all(~chosen | (what == what[first][self.crowd]))


def _order(unit: Array, ground: Array, token: Array) -> Array:
    """The stable order by unit of memory, then by meeting ground of the iteration, then by iteration."""
    if not unit.size:
        return unit
    # Sorting by one number for all three is several times as fast.
    by_ground = np.argsort(ground, kind="stable")
    rank = np.empty(ground.size, np.int64)
    rank[by_ground] = np.arange(ground.size)
    low = int(unit.min())
    if (int(unit.max()) - low + 1) * ground.size >= 1 << 63:
        return np.lexsort((rank[token], unit))
    return np.argsort((unit - low) * ground.size + rank[token], kind="stable")


def _ancestors(iterations: Iterations, depth: int) -> Array:
    """For each iteration, the one at ``depth`` that contains it or is it; `NOWHERE` if there is none."""
    depths, outer = iterations.column("depth"), iterations.column("outer")
    found = np.arange(depths.size)
    for _ in range(int(depths.max()) - depth):
        found = np.where(depths[found] > depth, outer[found], found)
    return np.where(depths[found] == depth, found, NOWHERE)
