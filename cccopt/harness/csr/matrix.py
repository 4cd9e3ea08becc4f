"""Sparse matrices in compressed sparse row form (CSR), which also represent the graphs of the benchmarks.

Row r holds the non-zeros ``offsets[r]`` to ``offsets[r + 1] - 1``; in a graph, it holds the edges that leave vertex r.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cccopt.diagnostic import CccError, error
from cccopt.harness.libraries import library

Ints: TypeAlias = NDArray[np.int32]
Floats: TypeAlias = NDArray[np.float32]

LIMIT = 2**31
"""Rows, columns and non-zeros stay below it: the kernels count in 32 bits."""

_STEPS = 2**16  # values are multiples of 1 / _STEPS


def scipy_module(name: str) -> Any:
    """``scipy.NAME``. Raises `CccError` (CCC092) without scipy."""
    return library(f"scipy.{name}", "work on sparse matrices", "bench")


@dataclass(frozen=True, slots=True, eq=False)
class Csr:
    """A matrix of ``rows`` x ``columns``; ``values`` is None if only the pattern is known.

    Within a row, ``indices`` may be in any order, and a column may occur more than once. ``x`` is the vector to
    multiply with, for inputs that define one. Arrays may be read-only.
    """

    rows: int
    columns: int
    offsets: Ints
    indices: Ints
    values: Floats | None = None
    x: Floats | None = None

    def __post_init__(self) -> None:
        """Check shapes and types; `check` does what needs a look at every entry."""
        _require(self.offsets, np.int32, self.rows + 1, "offsets")
        _require(self.indices, np.int32, int(self.offsets[-1]), "indices")
        if self.values is not None:
            _require(self.values, np.float32, len(self.indices), "values")
        if self.x is not None:
            _require(self.x, np.float32, self.columns, "x")

    @property
    def nnz(self) -> int:
        """The number of non-zeros, or edges."""
        return len(self.indices)

    @property
    def degrees(self) -> Ints:
        """Non-zeros of each row."""
        return np.diff(self.offsets)

    def check(self) -> Csr:
        """Return this matrix. Raises ValueError if offsets do not rise from 0, or if an index is not a column."""
        if self.offsets[0] != 0 or bool(np.any(self.degrees < 0)):
            raise ValueError("offsets do not rise from 0")
        if self.nnz and not 0 <= self.indices.min() <= self.indices.max() < self.columns:
            raise ValueError(f"an index is not within the {self.columns} columns")
        return self

    def transpose(self) -> Csr:
        """The transpose, by scipy: rows are sorted, repeated entries stay separate, and ``x`` is left out."""
        # scipy needs values even if there are none: a byte each is the least.
        data = np.ones(self.nnz, np.int8) if self.values is None else self.values
        shape = (self.rows, self.columns)
        matrix = scipy_module("sparse").csr_array((data, self.indices, self.offsets), shape=shape).tocsc()
        return Csr(
            rows=self.columns,
            columns=self.rows,
            offsets=np.asarray(matrix.indptr, np.int32),
            indices=np.asarray(matrix.indices, np.int32),
            values=None if self.values is None else matrix.data,
        )

    def completed(self, seed: int) -> Csr:
        """This matrix with values and ``x``: what is missing is drawn from ``seed``, multiples of 2**-16 in (0, 1].

        Such numbers are exact in float, and none is 0, so they also serve as lengths of edges.
        """
        drawn = np.random.Generator(np.random.PCG64([seed, self.nnz]))
        values = _uniform(drawn, self.nnz) if self.values is None else self.values
        x = _uniform(drawn, self.columns) if self.x is None else self.x
        return replace(self, values=values, x=x)


def from_degrees(
    degrees: NDArray[np.integer[Any]], columns: int, indices: Ints, **rest: Floats | None
) -> Csr:
    """The matrix whose rows, of lengths ``degrees``, hold ``indices`` in order. Raises what `offsets_of` raises."""
    return Csr(len(degrees), columns, offsets_of(degrees), indices, **rest)


def offsets_of(degrees: NDArray[np.integer[Any]]) -> Ints:
    """The row offsets of rows of these lengths. Raises `CccError` (CCC101) for 2**31 non-zeros or more."""
    offsets = np.zeros(len(degrees) + 1, np.int64)
    np.cumsum(degrees, out=offsets[1:])
    require_32_bits("non-zeros", int(offsets[-1]))
    return offsets.astype(np.int32)


def from_edges(vertices: int, tails: NDArray[Any], heads: NDArray[Any], values: Floats | None = None) -> Csr:
    """The graph with these edges, sorted by tail and head; an edge that is given twice is there twice."""
    require_32_bits("vertices", vertices)
    require_32_bits("edges", len(tails))
    keys = (tails.astype(np.int64) << 32) | heads.astype(np.int64)
    if values is None:
        keys.sort()
    else:
        order = np.argsort(keys, kind="stable")
        keys, values = keys[order], values[order]
    degrees = np.bincount(keys >> 32, minlength=vertices)
    return from_degrees(degrees, vertices, low_half(keys), values=values)


def low_half(keys: NDArray[np.int64]) -> Ints:
    """The lower 32 bits of each key."""
    return (keys & 0xFFFFFFFF).astype(np.int32)


def require_32_bits(what: str, count: int) -> None:
    """Raise `CccError` (CCC101) for a ``count`` of ``what`` that the kernels cannot number."""
    if count < LIMIT:
        return
    raise CccError(
        error(
            "CCC101",
            f"too many {what}: {count}",
            why="the workloads number rows, columns and non-zeros in 32 bits: there may be at most"
            " 2,147,483,647 of each",
            help="use a part of it",
        )
    )


def _uniform(drawn: np.random.Generator, count: int) -> Floats:
    floats: Floats = drawn.integers(1, _STEPS + 1, count, np.uint32).astype(np.float32)
    floats /= _STEPS
    return floats


def _require(array: NDArray[Any], dtype: type, length: int, name: str) -> None:
    if array.dtype != dtype or array.shape != (length,):
        raise ValueError(
            f"{name}: {array.shape} of {array.dtype} in place of ({length},) of {np.dtype(dtype)}"
        )
