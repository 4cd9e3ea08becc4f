"""Waves from sources in boxes at many observers: what emies.cu runs, and the answer by numpy in double precision."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cccopt.harness.workload import Inputs, Launch, State, Zeros

# name: (boxes along an edge, sources a box on average, grid, observers). Odd numbers of observers, so that the last
# trips are partial.
_SIZES = {
    "small": (4, 16, 2, 871),
    "demo": (4, 24, 4, 2001),
    "full": (8, 64, 1056, 4_000_001),
}
SIZES = tuple(_SIZES)
RESULTS = ("fields",)

# In edges of a box: how near the centre of a near box is, and the half-waves in an edge.
NEAR, HALF_WAVES = 1.5, 0.5

SOFT = 1e-4

# A term is right to 3e-6 of its size: rsqrt.approx.f32 is off by 2^-22.9 at most, which moves a wave of up to 7
# half-waves by that part of its phase, and sincospif by 1 ulp. The rounding of sums in any order is of that size too.
# What counts is the error against the size of all fields, for one of them may happen to be small.
ERROR = 1e-5

# The columns of a box: centre and total charge, dipole moment and nothing, then as integers first source and count.
_CENTRE, _CHARGE, _DIPOLE, _FIRST, _COUNT, _COLUMNS = slice(0, 3), 3, slice(4, 7), 8, 9, 12


def inputs(size: str, seed: int) -> Inputs:
    """Room for boxes, sources, observers and their fields; `setup` makes them from ``seed``."""
    return waves(*_SIZES[size], seed)


def waves(side: int, average: int, grid: int, observers: int, seed: int) -> Inputs:
    """Inputs of any size; the numbers are those of a size (see above)."""
    coordinates = {axis: Zeros(observers, np.float32) for axis in "xyz"}
    return {
        "seed": seed,
        "side": side,
        "average": average,
        "grid": grid,
        "boxes": Zeros((side**3, _COLUMNS), np.float32),
        "sources": Zeros((side**3 * (average + average // 8), 4), np.float32),
        **coordinates,
        "fields": Zeros((observers, 2), np.float32),
    }


def setup(state: State) -> Generator[Launch, None, None]:
    """The boxes with their sources, then the observers."""
    grid, side, seed = (int(state["grid"]), 1, 1), np.int32(state["side"]), np.uint32(state["seed"])
    arguments = (side, np.int32(state["average"]), seed, state["boxes"], state["sources"])
    yield Launch("make_boxes", grid, (256, 1, 1), arguments)
    x, y, z = (_array(state, axis) for axis in "xyz")
    yield Launch("make_observers", grid, (256, 1, 1), (np.int32(len(x)), side, seed, x, y, z))


def launches(state: State) -> Generator[Launch, None, None]:
    """All observers in one launch."""
    numbers = (np.int32(len(_array(state, "x"))), np.int32(len(_array(state, "boxes"))))
    arrays = (state[name] for name in ("x", "y", "z", "boxes", "sources", "fields"))
    arguments = (*numbers, *arrays)
    yield Launch("emies", (int(state["grid"]), 1, 1), (256, 1, 1), arguments)


def _array(state: Mapping[str, Any], name: str) -> NDArray[Any]:
    array = state[name]
    assert isinstance(array, np.ndarray)
    return array


def near_field(observers: NDArray[np.float64], sources: NDArray[Any]) -> NDArray[np.complex128]:
    """What (S, 4) ``sources`` (x, y, z, charge) make at (P, 3) ``observers``, one by one."""
    offsets = observers[:, None] - sources[:, :3]
    r = np.sqrt((offsets**2).sum(axis=2) + SOFT)
    return np.asarray((np.exp(1j * np.pi * HALF_WAVES * r) / r) @ sources[:, 3])


def far_field(observers: NDArray[np.float64], box: NDArray[Any]) -> NDArray[np.complex128]:
    """What a box makes at (P, 3) ``observers``: the gradient of the wave from its centre along its dipole moment."""
    offsets = observers - box[_CENTRE]
    r = np.linalg.norm(offsets, axis=1)
    wave = np.exp(1j * np.pi * HALF_WAVES * r) / r
    slope = wave * (1j * np.pi * HALF_WAVES - 1 / r)
    return np.asarray(box[_CHARGE] * wave - slope * (offsets @ box[_DIPOLE]) / r)


def reference(inputs: Mapping[str, Any]) -> Mapping[str, NDArray[Any]]:
    """The fields by numpy, box by box.

    Which boxes are near is decided on exact coordinates. Single precision may decide otherwise for observers within
    1e-5 of the limit (a few of a million): they are ``undecided``.
    """
    observers = np.stack([_array(inputs, axis) for axis in "xyz"], axis=1).astype(np.float64)
    sources, boxes = _array(inputs, "sources"), _array(inputs, "boxes")
    ranges = boxes.view(np.int32)[:, _FIRST : _COUNT + 1]
    limit = NEAR**2
    fields = np.zeros(len(observers), np.complex128)
    undecided = np.zeros(len(observers), bool)
    for box, (first, count) in zip(boxes, ranges, strict=True):
        d2 = ((observers - box[_CENTRE]) ** 2).sum(axis=1)
        near = d2 < limit
        undecided |= np.abs(d2 - limit) < 1e-5
        fields[near] += near_field(observers[near], sources[first : first + count].astype(np.float64))
        fields[~near] += far_field(observers[~near], box.astype(np.float64))
    return {"fields": np.stack([fields.real, fields.imag], axis=1), "undecided": undecided}


def check(result: Mapping[str, Any], expected: Mapping[str, NDArray[Any]]) -> str:
    """Within `ERROR` of what is expected, relative to the root mean square of all fields."""
    fields, right = result["fields"].astype(np.float64), expected["fields"].astype(np.float64)
    size = float(np.sqrt((right**2).sum(axis=1).mean()))
    off = np.abs(fields - right).max(axis=1) / size
    wrong = np.flatnonzero(~(off <= ERROR) & ~expected.get("undecided", np.zeros(len(right), bool)))
    if not wrong.size:
        return ""
    o = int(wrong[0])
    return (
        f"{wrong.size} wrong fields; fields[{o}] is {result['fields'][o]}, not {right[o]} (size {size:.3g})"
    )


def summary(boxes: int, fields: NDArray[np.float64]) -> str:
    """The line that emies.cu prints for these fields."""
    return f"observers {len(fields)} boxes {boxes} mean square {(fields**2).sum() / len(fields):.4g}\n"
