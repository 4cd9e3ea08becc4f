"""Points of quadrature grids and the molecules that they belong to: what dqg.cu runs, and the answer by numpy."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cccopt.harness.csr.workload import arrays, launch, wrong_sums
from cccopt.harness.workload import Inputs, Launch, State

# How numbers of atoms are distributed, and the largest.
_KINDS = {f"{shape}_{most}": (shape, most) for shape in ("uniform", "normal") for most in (20, 40)}
INPUTS = tuple(_KINDS)
FORMS = ("tasks",)
RESULTS = ("claims",)

# name: (molecules, points). Odd, so that the last warp is not full.
_SIZES = {"small": (101, 1_501), "full": (20_011, 10_000_019)}

CELL = 3.0
"""The edge of the cubic cells (Bohr), one for each atom, in whose middle third the atom is."""

ERROR = 1e-12
"""Absolute: every factor lies in [0, 1] and is off by some 1e-14, and there are fewer than 40."""

RELATIVE = 1e-12
"""Of two builds, which round every factor alike: 40 products in another order are off by less than 1e-14."""


def inputs(name: str, size: str, seed: int) -> Inputs:
    """The atoms, molecule by molecule, and points near atoms drawn from all molecules."""
    shape, most = _KINDS[name]
    molecules, points = _SIZES[size]
    random = np.random.default_rng(seed)
    counts = atom_counts(random, shape, most, molecules)
    offsets = np.append(0, np.cumsum(counts))
    atoms = offsets[-1]
    place = np.arange(atoms) - np.repeat(offsets[:-1], counts)
    side = np.repeat(np.ceil(np.cbrt(counts)).astype(np.int64), counts)
    cells = np.stack([place % side, place // side % side, place // side**2])
    atom_positions = CELL * (cells + 1 / 3 + random.random((3, atoms)) / 3)
    of = random.integers(molecules, size=points)
    owners = offsets[of] + random.integers(counts[of])
    point_positions = random.standard_normal((3, points))
    point_positions *= CELL / 2
    point_positions += atom_positions[:, owners]
    return {
        "points": point_positions,
        "molecules": of.astype(np.int32),
        "owners": owners.astype(np.int32),
        "atoms": atom_positions,
        "offsets": offsets.astype(np.int32),
        "claims": np.full(points, np.nan),
    }


def atom_counts(random: np.random.Generator, shape: str, most: int, molecules: int) -> NDArray[np.int64]:
    """Numbers of atoms from 1 to ``most``: ``uniform``, or the upper half of a ``normal`` distribution.

    Its standard deviation is a third of ``most``: most molecules are small, and the largest of a warp's 32 mostly has
    more than twice the mean.
    """
    if shape == "uniform":
        return random.integers(1, most + 1, molecules)
    drawn = np.abs(random.normal(0, most / 3, molecules)).astype(np.int64)
    return np.minimum(1 + drawn, most)


def launches(state: State, form: str) -> Generator[Launch, None, None]:
    """One launch."""
    points, molecules, owners, atoms, offsets, claims = arrays(
        state, "points", "molecules", "owners", "atoms", "offsets", "claims"
    )
    sizes = (np.int32(points.shape[1]), np.int32(atoms.shape[1]))
    yield launch("dqg", points.shape[1], *sizes, points, molecules, owners, atoms, offsets, claims)


def reference(inputs: Mapping[str, Any]) -> Mapping[str, NDArray[Any]]:
    """The claims by numpy, and how far a kernel's may be from them: its compiler may fuse otherwise."""
    points, molecules, owners, atoms, offsets = arrays(
        inputs, "points", "molecules", "owners", "atoms", "offsets"
    )
    lengths = np.diff(offsets)[molecules]
    begins = np.cumsum(lengths) - lengths
    atom = np.arange(lengths.sum()) + np.repeat(offsets[molecules] - begins, lengths)
    point = np.repeat(np.arange(len(owners)), lengths)
    owner = owners[point]
    itself = atom == owner
    separation = np.where(itself, 1, _distance(atoms[:, atom], atoms[:, owner]))
    mu = (
        _distance(points[:, point], atoms[:, owner]) - _distance(points[:, point], atoms[:, atom])
    ) / separation
    for _ in range(3):
        mu = 1.5 * mu - 0.5 * mu**3
    factors = np.where(itself, 1, 0.5 - 0.5 * mu)
    return {"claims": np.multiply.reduceat(factors, begins), "error": np.array([ERROR])}


def _distance(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.linalg.norm(a - b, axis=0)


def check(result: Mapping[str, Any], expected: Mapping[str, NDArray[Any]]) -> str:
    """Within `ERROR` of numpy's claims, within `RELATIVE` of another build's."""
    right = expected["claims"]
    return wrong_sums("claims", result["claims"], right, expected.get("error", RELATIVE * right))


def least_bytes(inputs: Mapping[str, Any]) -> int:
    """Every point with its molecule, its owner and its result, every atom and every molecule's range, once."""
    owners, atoms, offsets = arrays(inputs, "owners", "atoms", "offsets")
    return len(owners) * (24 + 4 + 4 + 8) + atoms.nbytes + offsets.nbytes
