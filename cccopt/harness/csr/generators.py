"""Generated inputs of the benchmarks: each by its name, in two sizes, from a seed.

``small`` has some 2,000 to 4,000 rows and 10,000 to 30,000 non-zeros, except for `mostly_empty`; ``full`` is for a GPU
with tens of gigabytes. Unless a generator says otherwise, columns are uniform over all rows. Rows are sorted, and a
column that was drawn twice is there twice; the three ``..._probe`` keep the order in which columns were drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cccopt.harness.csr import meshes, probe
from cccopt.harness.csr.matrix import Csr, from_degrees, from_edges, low_half, offsets_of
from cccopt.harness.workload import FULL

Make: TypeAlias = Callable[[str, int], Csr]

SIZES = ("small", FULL)

VERSION = 1
"""Raise it with every change to what a generator makes: kept inputs of other versions are not used."""

_PIECE = 1 << 20  # edges that are drawn at a time: they fit in a cache


def random(seed: int) -> np.random.Generator:
    """The source of random numbers for ``seed``."""
    return np.random.Generator(np.random.PCG64(seed))


def rmat(size: str, seed: int) -> Csr:
    """Recursive matrix (D. Chakrabarti, Y. Zhan, C. Faloutsos, R-MAT, 2004) with Graph500's probabilities.

    They are .57, .19, .19 and .05. Vertices are renumbered at random, as in Graph500, so that long rows are scattered;
    edges drawn twice and edges from a vertex to itself stay.
    """
    scale, edges = (20, 2**24) if size == FULL else (11, 20_001)
    drawn = random(seed)
    ends = [_rmat_ends(drawn, scale, min(_PIECE, edges - first)) for first in range(0, edges, _PIECE)]
    names = drawn.permutation(2**scale)
    tails, heads = (names[np.concatenate(side)] for side in zip(*ends, strict=True))
    return from_edges(2**scale, tails, heads)


def erdos_renyi(size: str, seed: int) -> Csr:
    """All edges are equally likely, with 8 per row on average (P. Erdos, A. Renyi, 1959; the limit of many rows)."""
    rows = 4_000_000 if size == FULL else 2_503
    drawn = random(seed)
    return _random_columns(drawn.poisson(8, rows), drawn)


def power_law(size: str, seed: int) -> Csr:
    """Rows of length k with a probability proportional to k**-2.1; rows longer than the cap are cut to it."""
    rows, cap = (4_000_000, 100_000) if size == FULL else (3_501, 2_000)
    drawn = random(seed)
    return _random_columns(np.minimum(drawn.zipf(2.1, rows), cap), drawn)


def log_normal(size: str, seed: int) -> Csr:
    """Rows with log-normal lengths (deviation 1), 12 non-zeros on average."""
    rows = 4_000_000 if size == FULL else 2_003
    drawn = random(seed)
    lengths = np.rint(drawn.lognormal(np.log(12) - 0.5, 1, rows)).astype(np.int64)
    return _random_columns(np.minimum(lengths, rows), drawn)


def one_giant(size: str, seed: int) -> Csr:
    """Rows of 2 non-zeros and, in the middle, one with 8 times as many as there are such rows (``small``: 4 times)."""
    rows, giant = (1_000_000, 8_000_000) if size == FULL else (2_000, 8_000)
    lengths = np.full(rows + 1, 2)
    lengths[rows // 2] = giant
    return _random_columns(lengths, random(seed))


def mostly_empty(size: str, seed: int) -> Csr:
    """One row in 10,000, drawn at random, holds 1,000 non-zeros; the others are empty."""
    rows = 16_000_000 if size == FULL else 100_000
    drawn = random(seed)
    lengths = np.zeros(rows, np.int64)
    lengths[drawn.choice(rows, rows // 10_000, replace=False)] = 1_000
    return _random_columns(lengths, drawn)


def _mesh(
    make: Callable[[int, np.random.Generator], Csr], full: int, small: int, size: str, seed: int
) -> Csr:
    return make(full if size == FULL else small, random(seed))


def _probe(make: Callable[[tuple[int, int, int]], Csr], size: str, seed: int) -> Csr:
    return make(probe.FULL_ROWS if size == FULL else probe.SMALL_ROWS)


GENERATORS: Mapping[str, Make] = MappingProxyType(
    {
        "power_law_probe": partial(_probe, probe.power_law_probe),
        "delaunay_probe": partial(_probe, probe.delaunay_probe),
        "rajat_probe": partial(_probe, probe.rajat_probe),
        "rmat": rmat,
        "erdos_renyi": erdos_renyi,
        "delaunay": partial(_mesh, meshes.delaunay, 1_000_000, 3_001),
        "road": partial(_mesh, meshes.road, 2_000, 55),
        "banded": partial(_mesh, meshes.banded, 4_000_000, 2_501),
        "power_law": power_law,
        "log_normal": log_normal,
        "one_giant": one_giant,
        "mostly_empty": mostly_empty,
    }
)
"""Name -> function of size (one of `SIZES`) and seed (not negative)."""

SEEDLESS = frozenset({"power_law_probe", "delaunay_probe", "rajat_probe", "banded"})
"""The inputs that are the same for every seed."""


def _random_columns(lengths: NDArray[np.int64], drawn: np.random.Generator) -> Csr:
    """Rows of these lengths, whose columns are sorted and uniform over as many as there are rows."""
    rows = len(lengths)
    keys = drawn.integers(rows, size=int(offsets_of(lengths)[-1]))
    keys |= np.repeat(np.arange(rows, dtype=np.int64) << 32, lengths)
    keys.sort()
    return from_degrees(lengths, rows, low_half(keys))


def _rmat_ends(drawn: np.random.Generator, scale: int, edges: int) -> tuple[NDArray[Any], NDArray[Any]]:
    tails = np.zeros(edges, np.int32)
    heads = np.zeros(edges, np.int32)
    for _ in range(scale):
        part = drawn.random(edges, np.float32)
        low = part >= 0.57 + 0.19
        tails = 2 * tails + low
        heads = 2 * heads + (np.where(low, part - 0.19, part) >= np.where(low, 0.57 + 0.19, 0.57))
    return tails, heads
