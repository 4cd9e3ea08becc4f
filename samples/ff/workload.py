"""Fractal flame: what ff.cu runs, and by numpy in double precision which pixels each point can have lit."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cccopt.harness.workload import Inputs, Launch, State, Zeros

SIDE = 2048
VARIATIONS = 10

# name: (points, grid). Odd numbers at the small sizes, so that the last trips are partial.
_SIZES = {"small": (50_021, 2), "demo": (300_007, 8), "full": (1 << 27, 1056)}
SIZES = tuple(_SIZES)
RESULTS = ("image",)

# A coordinate c is right to ERROR * (1 + |c|). CUDA's maximum errors are 2 ulp for sinf and cosf, 3 for atan2f and
# 4 for powf; the largest sum of errors is that of `heart`: 1.5e-6 in the sine's argument (3 ulp of pi and one
# rounding, times r <= 1.42) and 3e-7 behind it. Twice that allows for what is fused or not.
ERROR = 4e-6


def hash32(x: NDArray[np.uint32]) -> NDArray[Any]:
    """A permutation of the 32-bit numbers that mixes them well; the same as in ff.cuh."""
    x = x.astype(np.uint32)
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x7FEB352D)
    x ^= x >> np.uint32(15)
    x *= np.uint32(0x846CA68B)
    x ^= x >> np.uint32(16)
    return x


def inputs(size: str, seed: int) -> Inputs:
    """A black image. The points are the hashes of their numbers: ``seed`` changes nothing here."""
    points, grid = _SIZES[size]
    return {"points": points, "grid": grid, "image": Zeros(SIDE * SIDE, np.uint32)}


def launches(state: State) -> Generator[Launch, None, None]:
    """All points in one launch."""
    yield Launch("ff", (int(state["grid"]), 1, 1), (256, 1, 1), (np.uint32(state["points"]), state["image"]))


def moved(points: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Where the variations put the points, as x and y, in double precision."""
    random = hash32(np.arange(points, dtype=np.uint32))
    x = (random & np.uint32(0xFFFF)) / 32768.0 - 1
    y = (random >> np.uint32(16)) / 32768.0 - 1
    r, angle = np.hypot(x, y) + float(np.float32(1e-6)), np.arctan2(x, y)
    m = r ** np.sin(angle)
    results = (
        (x, y),
        (np.sin(x), np.sin(y)),
        (x / r**2, y / r**2),
        (x * np.sin(r**2) - y * np.cos(r**2), x * np.cos(r**2) + y * np.sin(r**2)),
        ((x**2 - y**2) / r, 2 * x * y / r),
        (angle / np.pi, r - 1),
        (r * np.sin(angle + r), r * np.cos(angle - r)),
        (r * np.sin(angle * r), -r * np.cos(angle * r)),
        (angle / np.pi * np.sin(np.pi * r), angle / np.pi * np.cos(np.pi * r)),
        (m * np.cos(angle), m * np.sin(angle)),
    )
    which = hash32(random) % VARIATIONS
    return np.choose(which, [x for x, _ in results]), np.choose(which, [y for _, y in results])


def _pixels(coordinates: NDArray[np.float64]) -> NDArray[np.int64]:
    """The first and the last column (or row) that each coordinate can be in, as two rows."""
    error = ERROR * (1 + np.abs(coordinates))
    if error.max() * (SIDE / 4) >= 0.5:
        raise ValueError("a point is so far out that its pixel cannot be told: choose other points")
    ends = (np.stack([coordinates - error, coordinates + error]) + 2) * (SIDE / 4)
    return np.trunc(ends).astype(np.int64) & (SIDE - 1)


def reference(inputs: Mapping[str, Any]) -> Mapping[str, NDArray[Any]]:
    """Per pixel, the number of points that must (``least``) and that can (``most``) be in it.

    A point within the rounding error of a pixel's edge can be in the pixels on both sides of it.
    """
    x, y = moved(int(inputs["points"]))
    columns, rows = _pixels(x), _pixels(y)
    corners = np.unique(
        np.arange(len(x)) * (SIDE * SIDE)
        + np.stack([row * SIDE + column for row in rows for column in columns])
    )
    point, pixel = np.divmod(corners, SIDE * SIDE)
    certain = np.bincount(point)[point] == 1
    return {
        "points": np.array([len(x)]),
        "least": np.bincount(pixel[certain], minlength=SIDE * SIDE),
        "most": np.bincount(pixel, minlength=SIDE * SIDE),
    }


def check(result: Mapping[str, Any], expected: Mapping[str, NDArray[Any]]) -> str:
    """No point is lost, and every pixel counts what it may count.

    Against another build every pixel must be equal: all builds round alike, see ff.cuh. Against numpy a point within
    `ERROR` of a pixel's edge (less than 2 % of the points) may be on either side of it.
    """
    image = result["image"]
    if "image" in expected:
        least = most = expected["image"]
    else:
        least, most = expected["least"], expected["most"]
        points, drawn = int(expected["points"][0]), int(image.sum(dtype=np.int64))
        if drawn != points:
            return f"{drawn} points in the image, not {points}"
    wrong = np.flatnonzero((image < least) | (image > most))
    if not wrong.size:
        return ""
    i = int(wrong[0])
    right = str(least[i]) if least[i] == most[i] else f"{least[i]} to {most[i]}"
    return (
        f"{wrong.size} wrong pixels; row {i // SIDE} column {i % SIDE} counts {image[i]} points, not {right}"
    )


def summary(image: NDArray[np.uint32]) -> str:
    """The line that ff.cu prints for this image."""
    pixels = np.arange(SIDE * SIDE, dtype=np.uint32)
    checksum = int(hash32(pixels ^ hash32(image)).sum(dtype=np.uint64)) & 0xFFFFFFFF
    lit, brightest = np.count_nonzero(image), image.max()
    return f"points {image.sum()} pixels lit {lit} brightest {brightest} checksum {checksum:08x}\n"
