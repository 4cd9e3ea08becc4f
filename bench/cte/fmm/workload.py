"""Points in an octree and the U-lists of its leaves: what fmm.cu runs, and the answer by numpy."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cccopt.harness.csr.matrix import scipy_module
from cccopt.harness.csr.workload import arrays, launch, rounding, wrong_sums
from cccopt.harness.workload import Inputs, Launch, State

# How points are distributed, and how many a leaf may hold.
_KINDS = {f"{shape}_q{most}": (shape, most) for shape in ("equal", "clustered") for most in (5, 10)}
INPUTS = tuple(_KINDS)
FORMS = ("tasks",)
RESULTS = ("potentials",)

# Odd, so that the last warp is not full.
_POINTS = {"small": 1_501, "full": 2_000_003}

BITS = 21
"""Of a coordinate in a Morton code; leaves of the finest level, with sides of 2^-21, may hold any number of points."""


@dataclass(frozen=True, slots=True)
class Octree:
    """The leaves that hold points, in Morton order: their points are those from ``first[k]`` to ``first[k + 1]``."""

    first: NDArray[np.int64]
    level: NDArray[np.int64]
    corner: NDArray[np.int64]
    """(leaves, 3): the coordinates of the lowest corner, in units of 2^-21."""


def inputs(name: str, size: str, seed: int) -> Inputs:
    """The points in Morton order with their charges, each point's leaf, and the leaves' U-lists as CSR of points."""
    shape, most = _KINDS[name]
    points, tree = octree(positions(shape, _POINTS[size], seed), most)
    offsets, sources = u_lists(tree)
    charges = np.random.default_rng((seed, 1)).random(len(points), np.float32)
    return {
        "points": np.column_stack([points, charges]),
        "leaves": np.repeat(np.arange(len(tree.level), dtype=np.int32), np.diff(tree.first)),
        "offsets": offsets,
        "sources": sources,
        "potentials": np.full(len(points), np.nan, np.float32),
    }


def positions(shape: str, count: int, seed: int) -> NDArray[np.float32]:
    """Points in the unit cube: ``equal`` everywhere, or ``clustered`` as stars are (H. C. Plummer, MNRAS 71, 1911).

    The cluster ends at 20 times its radius, where 99.6 % of all its stars are inside.
    """
    random = np.random.default_rng(seed)
    if shape == "equal":
        return random.random((count, 3), np.float32)
    end = 20.0
    share = random.random(count) * (1 + end**-2) ** -1.5
    radius = (np.maximum(share, 1e-12) ** (-2 / 3) - 1) ** -0.5
    directions = random.standard_normal((count, 3))
    directions *= (radius / np.linalg.norm(directions, axis=1))[:, None]
    return (0.5 + directions / (2.01 * end)).astype(np.float32)


def octree(points: NDArray[np.float32], most: int) -> tuple[NDArray[np.float32], Octree]:
    """The points in Morton order, and the leaves: the largest cells with at most ``most`` points."""
    places = (points * np.float64(1 << BITS)).astype(np.int64)
    codes = _interleaved([_spread(places[:, axis]) for axis in range(3)])
    order = np.argsort(codes)
    points, places, codes = points[order], places[order], codes[order]
    level = np.full(len(codes), -1)
    for depth in range(BITS + 1):
        begins = _begins(codes >> 3 * (BITS - depth))
        counts = np.diff(begins, append=len(codes))
        fits = np.repeat((counts <= most) | (depth == BITS), counts)
        level[fits & (level < 0)] = depth
        if fits.all():
            break
    below = BITS - level
    first = _begins(codes >> 3 * below << 3 * below)
    corner = (places >> below[:, None] << below[:, None])[first]
    return points, Octree(np.append(first, len(points)), level[first], corner)


def u_lists(tree: Octree) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The points of the leaves that touch each leaf, and of the leaf itself: offsets and indices, in Morton order."""
    near = _touching(tree)
    near.sort_indices()
    counts = np.diff(tree.first)[near.indices]
    sources = _ranges(tree.first[near.indices], counts)
    return np.append(0, np.cumsum(counts))[near.indptr].astype(np.int32), sources.astype(np.int32)


def _ranges(first: NDArray[np.integer], lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """The numbers of ranges that begin at ``first``, one range after the other."""
    return np.arange(lengths.sum()) + np.repeat(first - (np.cumsum(lengths) - lengths), lengths)


def _touching(tree: Octree) -> Any:
    """Which leaves touch, as a CSR matrix. Of two, the smaller finds the other, in a cell of its own size beside it."""
    leaves, shift = len(tree.level), 3 * (BITS - tree.level)
    beside = [
        [_spread_inside(tree.corner[:, axis] + by * (1 << BITS - tree.level)) for by in (-1, 0, 1)]
        for axis in range(3)
    ]
    starts = _interleaved([same for _, same, _ in beside])
    pairs = [(np.arange(leaves), np.arange(leaves))]
    for cell in product(*beside):
        codes = _interleaved(cell)
        # The last leaf that begins there or before is the only one that can hold the cell.
        last = np.searchsorted(starts, codes, "right") - 1
        holds = (starts[last] >> shift[last] == codes >> shift[last]) & (tree.level[last] <= tree.level)
        smaller = np.flatnonzero(holds)
        pairs.append((smaller, last[smaller]))
    one, other = (np.concatenate(leaf).astype(np.int32) for leaf in zip(*pairs, strict=True))
    touch = np.ones(len(one), bool)
    found = scipy_module("sparse").coo_array((touch, (one, other)), shape=(leaves, leaves)).tocsr()
    return (found + found.T).tocsr()


def _begins(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where runs of equal numbers begin."""
    return np.flatnonzero(np.append(True, cells[1:] != cells[:-1]))


def _spread_inside(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """`_spread`, and -1 outside the cube: what is interleaved with it is negative, and no leaf's code."""
    return np.where((places >= 0) & (places < 1 << BITS), _spread(places & (1 << BITS) - 1), -1)


def _spread(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """The bits of coordinates, each three places from the next."""
    for shift, mask in (
        (32, 0x1F00000000FFFF),
        (16, 0x1F0000FF0000FF),
        (8, 0x100F00F00F00F00F),
        (4, 0x10C30C30C30C30C3),
        (2, 0x1249249249249249),
    ):
        places = (places | places << shift) & mask
    return places


def _interleaved(spread: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The Morton codes of coordinates whose bits are spread."""
    x, y, z = spread
    return x | y << 1 | z << 2


def launches(state: State, form: str) -> Generator[Launch, None, None]:
    """One launch."""
    points, leaves, offsets, sources, potentials = arrays(
        state, "points", "leaves", "offsets", "sources", "potentials"
    )
    yield launch("fmm", len(points), np.int32(len(points)), points, leaves, offsets, sources, potentials)


def reference(inputs: Mapping[str, Any]) -> Mapping[str, NDArray[Any]]:
    """The potentials in double precision."""
    points, leaves, offsets, sources = arrays(inputs, "points", "leaves", "offsets", "sources")
    lengths = np.diff(offsets)[leaves]
    near = points[sources[_ranges(offsets[leaves], lengths)]].astype(np.float64)
    distance = np.linalg.norm(near[:, :3] - np.repeat(points[:, :3], lengths, axis=0), axis=1)
    added = np.divide(near[:, 3], distance, out=np.zeros(len(near)), where=distance > 0)
    return {"potentials": np.add.reduceat(added, np.cumsum(lengths) - lengths)}


def check(result: Mapping[str, Any], expected: Mapping[str, NDArray[Any]]) -> str:
    """Sums in any order, held against themselves: no charge is negative."""
    right, terms = expected["potentials"], np.diff(result["offsets"])[result["leaves"]]
    return wrong_sums("potentials", result["potentials"], right, rounding(terms, np.float32) * right)


def least_bytes(inputs: Mapping[str, Any]) -> int:
    """Every point with its leaf and its result, every leaf's range and list, once."""
    points, offsets, sources = arrays(inputs, "points", "offsets", "sources")
    return len(points) * (16 + 4 + 4) + (len(offsets) + len(sources)) * 4
