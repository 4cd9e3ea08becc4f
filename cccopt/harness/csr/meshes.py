"""Meshes: matrices whose rows are all short and whose columns are near the diagonal."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cccopt.harness.csr.matrix import Csr, from_degrees, from_edges, low_half, scipy_module

_BAND = 3


def delaunay(points: int, drawn: np.random.Generator) -> Csr:
    """The triangulation of random points in a square, by scipy, as a graph; points are numbered along strips.

    So neighbors have nearby numbers, as in meshes from practice.
    """
    places = drawn.random((points, 2))
    strips = np.floor(places[:, 1] * np.sqrt(points / 4))
    places = places[np.lexsort((places[:, 0], strips))]
    offsets, neighbours = scipy_module("spatial").Delaunay(places).vertex_neighbor_vertices
    degrees = np.diff(offsets)
    keys = np.repeat(np.arange(points, dtype=np.int64) << 32, degrees) | neighbours
    keys.sort()
    return from_degrees(degrees, points, low_half(keys))


def road(side: int, drawn: np.random.Generator) -> Csr:
    """A grid of ``side`` x ``side`` crossings with two-way roads: 5 % are missing, and 3 % of the diagonals exist."""
    vertex = np.arange(side * side).reshape(side, side)
    tails, heads = zip(
        _some(drawn, 0.95, vertex[:, :-1], vertex[:, 1:]),
        _some(drawn, 0.95, vertex[:-1], vertex[1:]),
        _some(drawn, 0.03, vertex[:-1, :-1], vertex[1:, 1:]),
        strict=True,
    )
    return from_edges(side * side, np.concatenate(tails + heads), np.concatenate(heads + tails))


def banded(rows: int, drawn: np.random.Generator) -> Csr:
    """The diagonal and three beside it on either side, cut at the corners; nothing is random."""
    near = np.arange(rows)[:, None] + np.arange(-_BAND, _BAND + 1)
    inside = (near >= 0) & (near < rows)
    return from_degrees(inside.sum(axis=1), rows, near[inside].astype(np.int32))


def _some(
    drawn: np.random.Generator, share: float, tails: NDArray[np.int64], heads: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A random ``share`` of the edges between ``tails`` and ``heads``."""
    there = drawn.random(tails.shape, np.float32) < share
    return tails[there], heads[there]
