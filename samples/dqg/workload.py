"""Becke's quadrature weights: what dqg.cu runs, and the answer by numpy, all pairs of a point at once."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cccopt.harness.workload import Inputs, Launch, State, Zeros

# name: (atoms along an edge of the molecule, the longest list of atoms, blocks a grid of points, grids, points a grid).
# Odd numbers of points, so that the last trips are partial.
_SIZES = {
    "small": (3, 12, 1, 2, 1499),
    "demo": (4, 20, 1, 2, 2999),
    "full": (10, 80, 8, 132, 29_899),
}
SIZES = tuple(_SIZES)
RESULTS = ("weights",)

CORE = 0.003

# Every factor of a claim lies in [0, 1] and is off by less than 1e-14: r and R are off by 2 ulp, r/R is at most 6 here,
# dp/dmu at most 1.5 for each of three turns. What a compiler fuses changes such errors; 80 factors make less than this.
ERROR = 1e-12


def inputs(size: str, seed: int) -> Inputs:
    """Room for the lists of atoms, the points and their weights; `setup` makes them from ``seed``."""
    return grids_of(*_SIZES[size], seed)


def grids_of(side: int, most: int, blocks: int, grids: int, points: int, seed: int) -> Inputs:
    """Inputs of any size; the numbers are those of a size (see above)."""
    coordinates = {axis: Zeros((grids, points), np.float64) for axis in "xyz"}
    return {
        "seed": seed,
        "side": side,
        "blocks": blocks,
        "lists": Zeros((grids, 3, most), np.float64),
        **coordinates,
        "counts": Zeros((grids, points), np.int32),
        "weights": Zeros((grids, points), np.float64),
    }


def setup(state: State) -> Generator[Launch, None, None]:
    """The lists of the nearest atoms, then the points."""
    lists, counts = _array(state, "lists"), _array(state, "counts")
    (grids, _, most), points = lists.shape, counts.shape[1]
    seed = np.uint32(state["seed"])
    yield Launch(
        "make_lists", (grids, 1, 1), (256, 1, 1), (np.int32(state["side"]), seed, np.int32(most), lists)
    )
    arguments = (np.int32(points), np.int32(most), seed, lists, *(state[axis] for axis in "xyz"), counts)
    yield Launch("make_points", (int(state["blocks"]), grids, 1), (256, 1, 1), arguments)


def launches(state: State) -> Generator[Launch, None, None]:
    """All grids in one launch."""
    lists, counts = _array(state, "lists"), _array(state, "counts")
    (grids, _, most), points = lists.shape, counts.shape[1]
    arrays = (lists, *(state[axis] for axis in "xyz"), counts, state["weights"])
    arguments = (np.int32(points), np.int32(most), *arrays)
    yield Launch("becke", (int(state["blocks"]), grids, 1), (256, 1, 1), arguments)


def _array(state: Mapping[str, Any], name: str) -> NDArray[Any]:
    array = state[name]
    assert isinstance(array, np.ndarray)
    return array


def shares(points: NDArray[np.float64], atoms: NDArray[np.float64]) -> NDArray[np.float64]:
    """What share of each of (P, 3) ``points`` belongs to each of (N, 3) ``atoms``, as (P, N): rows sum to 1."""
    r = np.linalg.norm(points[:, None] - atoms, axis=-1)
    separations = np.linalg.norm(atoms[:, None] - atoms, axis=-1)
    np.fill_diagonal(separations, 1)
    mu = (r[:, :, None] - r[:, None, :]) / separations
    for _ in range(3):
        mu = 1.5 * mu - 0.5 * mu**3
    factors = 0.5 * (1 - mu)
    itself = np.arange(len(atoms))
    factors[:, itself, itself] = 1
    claims = factors.prod(axis=2)
    return claims / claims.sum(axis=1, keepdims=True)


def reference(inputs: Mapping[str, Any]) -> Mapping[str, NDArray[Any]]:
    """The weights by numpy, for all points with lists of one length together."""
    counts = _array(inputs, "counts")
    weights = np.empty(counts.shape)
    for grid, atoms in enumerate(_array(inputs, "lists").transpose(0, 2, 1)):
        points = np.stack([_array(inputs, axis)[grid] for axis in "xyz"], axis=1)
        for count in np.unique(counts[grid]):
            here = counts[grid] == count
            weights[grid, here] = shares(points[here], atoms[:count])[:, 0]
        core = CORE * np.linalg.norm(atoms[1] - atoms[0])
        weights[grid, np.linalg.norm(points - atoms[0], axis=1) < core] = 1
    return {"weights": weights, "error": np.array([ERROR])}


def check(result: Mapping[str, Any], expected: Mapping[str, NDArray[Any]]) -> str:
    """Within `ERROR` of numpy's weights; equal to another build's, for all builds round alike (dqg.cuh)."""
    weights, right = result["weights"], expected["weights"]
    error = float(expected["error"][0]) if "error" in expected else 0.0
    wrong = np.argwhere(~(np.abs(weights - right) <= error))
    if not len(wrong):
        return ""
    grid, point = (int(i) for i in wrong[0])
    value = f"weights[{grid}, {point}] is {weights[grid, point]:.17g}, not {right[grid, point]:.17g}"
    return f"{len(wrong)} wrong weights; {value}"


def summary(weights: NDArray[np.float64]) -> str:
    """The line that dqg.cu prints for these weights."""
    sum_in_order = np.cumsum(weights.ravel())[-1]
    return f"points {weights.size} sum of weights {sum_in_order:.9g} over half {np.count_nonzero(weights > 0.5)}\n"
