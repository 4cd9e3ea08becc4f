"""Three inputs from fixed random streams: a C++ program that uses ``std::mt19937`` makes the same ones, bit for bit.

The degrees of all three come from one stream, ``std::mt19937(7)``, one input after the other; the rest of each input
comes from a stream of its own, ``std::mt19937(1)``. `numpy.random.RandomState` starts and draws as that engine does.

* `power_law_probe`: row lengths as in a graph of web pages, 1 to 20,000; three quarters of the columns are uniform, the
  others cluster at low numbers.
* `delaunay_probe`: rows of 3 to 11 with columns near the diagonal.
* `rajat_probe`: rows of 4 or 5 with columns even nearer to it, as in the matrix of a circuit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cccopt.harness.csr.matrix import Csr, Ints, offsets_of

Draws: TypeAlias = NDArray[np.uint32]

FULL_ROWS = (9_800_000, 16_700_000, 4_690_000)
"""Rows of the three inputs at full size."""

SMALL_ROWS = (3_001, 3_001, 3_001)

_PIECE = 1 << 23  # draws that are held at a time


def power_law_probe(rows: tuple[int, int, int]) -> Csr:
    """The first of the three inputs, which have these numbers of ``rows``."""
    u = (_degree_stream().draw(rows[0]) + 0.5) / 2.0**32
    # At full size, no result is so near a whole number that the last bit of the power matters.
    degrees = np.minimum(20000.0, 1.9 / u**0.62).astype(np.int32)
    return _filled(degrees, None)


def delaunay_probe(rows: tuple[int, int, int]) -> Csr:
    """The second of the three inputs, which have these numbers of ``rows``."""
    stream = _degree_stream()
    stream.skip(rows[0])
    degrees = np.empty(rows[1], np.int32)
    for first, last in _pieces(rows[1], 3):
        draws = stream.draw(3 * (last - first)).reshape(-1, 3)
        degrees[first:last] = 3 + (draws[:, 0] & 3) + (draws[:, 1] & 3) + draws[:, 2] % 3
    return _filled(degrees, 2000)


def rajat_probe(rows: tuple[int, int, int]) -> Csr:
    """The third of the three inputs, which have these numbers of ``rows``."""
    stream = _degree_stream()
    stream.skip(rows[0] + 3 * rows[1])
    return _filled((4 + stream.draw(rows[2]) % 2).astype(np.int32), 400)


class Mt19937:
    """The stream of ``std::mt19937(seed)``."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = np.random.RandomState(seed)

    def draw(self, count: int) -> Draws:
        """The next ``count`` numbers."""
        return self._state.randint(0, 2**32, count, np.uint32)

    def skip(self, count: int) -> None:
        """Skip ``count`` numbers."""
        for first, last in _pieces(count, 1):
            self.draw(last - first)


def _degree_stream() -> Mt19937:
    return Mt19937(7)


def _filled(degrees: Ints, locality: int | None) -> Csr:
    """Columns, values and ``x`` for rows of these lengths.

    A row takes one draw for its ``x`` and then, for each non-zero, two for the column (one if it is within ``locality``
    around the diagonal) and one for the value.
    """
    rows, offsets = len(degrees), offsets_of(degrees)
    indices = np.empty(offsets[-1], np.int32)
    values = np.empty(offsets[-1], np.float32)
    x = np.empty(rows, np.float32)
    stream = Mt19937(1)
    draws_each = 3 if locality is None else 2
    # Row r begins at draw r + draws_each * offsets[r].
    begins = np.arange(rows + 1, dtype=np.int64) + draws_each * offsets.astype(np.int64)
    first = 0
    while first < rows:
        last = max(first + 1, int(np.searchsorted(begins, begins[first] + _PIECE, "right")) - 1)
        draws = stream.draw(int(begins[last] - begins[first]))
        of_rows = begins[first:last] - begins[first]
        x[first:last] = _sixteen_bits(draws[of_rows])
        of_entries = np.ones(len(draws), np.bool_)
        of_entries[of_rows] = False
        entries = draws[of_entries].reshape(-1, draws_each)
        here = slice(offsets[first], offsets[last])
        if locality is None:
            indices[here] = _crowded(entries, rows)
        else:
            row = np.repeat(np.arange(first, last), degrees[first:last])
            near = row + entries[:, 0] % np.uint32(locality) - locality // 2
            indices[here] = np.clip(near, 0, rows - 1)
        values[here] = _sixteen_bits(entries[:, -1])
        first = last
    return Csr(rows, rows, offsets, indices, values, x)


def _crowded(entries: Draws, columns: int) -> NDArray[np.int64]:
    """A column for each entry: a uniform one, or for a quarter of them the fourth power of a uniform number."""
    uniform = entries[:, 1] % np.uint32(columns)
    share = (entries[:, 1] & np.uint32(0xFFFFFF)) / 2.0**24
    # 24 bits squared are exact, so this is the nearest number to the fourth power.
    square = share * share
    crowded = columns * (square * square)
    found: NDArray[np.int64] = np.where(entries[:, 0] & 3, uniform, crowded.astype(np.int64))
    return found


def _sixteen_bits(draws: Draws) -> NDArray[np.float32]:
    floats: NDArray[np.float32] = (draws & np.uint32(0xFFFF)).astype(np.float32)
    floats /= 2**16
    return floats


def _pieces(count: int, each: int) -> Iterator[tuple[int, int]]:
    """Ranges that cover ``count`` items of ``each`` draws."""
    step = _PIECE // each
    return ((first, min(first + step, count)) for first in range(0, count, step))
