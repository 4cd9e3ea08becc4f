"""The inverse error function of many numbers, in two distributions: what iefa.cu runs, and the answer by `math.erf`."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cccopt.harness.workload import Inputs, Launch, State, Zeros

# name: (values, grid). An odd number of values, so that the last trip is a partial one.
_SIZES = {"small": (9973, 2), "demo": (99_991, 16), "full": (100_000_000, 1056)}
SIZES = tuple(_SIZES)

DISTRIBUTIONS = ("uniform", "equal")
RESULTS = tuple(f"digest {name}" for name in DISTRIBUTIONS)
SCRATCH = tuple(f"y {name}" for name in DISTRIBUTIONS)

# Giles' polynomials are right to about one unit in the last place (2.2e-16); twenty roundings, those of log and of
# the reference come on top.
TOLERANCE = 2e-15


def inputs(size: str, seed: int) -> Inputs:
    """Room for the numbers and their results; the device makes the numbers."""
    n, grid = _SIZES[size]
    arrays = {f"{axis} {name}": Zeros(n, np.float64) for axis in "xy" for name in DISTRIBUTIONS}
    digests = {name: Zeros(1, np.uint64) for name in RESULTS}
    return {"values": n, "grid": grid, "seed": seed, **arrays, **digests}


def setup(state: State) -> Generator[Launch, None, None]:
    """Fills the numbers of both distributions."""
    n, seed = np.uint32(state["values"]), np.uint32(state["seed"])
    for k, name in enumerate(DISTRIBUTIONS):
        arguments = (n, seed, np.int32(k), state[f"x {name}"])
        yield Launch("make_values", (int(state["grid"]), 1, 1), (256, 1, 1), arguments, label=f"make {name}")


def launches(state: State) -> Generator[Launch, None, None]:
    """One launch a distribution, and one for the digest of its results; the former do not depend on each other."""
    n, grid, block = np.uint32(state["values"]), (int(state["grid"]), 1, 1), (256, 1, 1)
    for name in DISTRIBUTIONS:
        yield Launch("iefa", grid, block, (n, state[f"x {name}"], state[f"y {name}"]), label=name)
        yield Launch("digest", grid, block, (n, state[f"y {name}"], state[f"digest {name}"]), timed=False)


def values(n: int, seed: int, equally_likely: bool) -> NDArray[np.float64]:
    """The numbers that `make_values` of iefa.cu makes, but for the last bit of exp."""
    h = np.arange(n, dtype=np.uint32) * np.uint32(2654435761)
    h += np.uint32((seed - 1) * 0x9E3779B9 & 0xFFFFFFFF)
    h ^= h >> np.uint32(13)
    h *= np.uint32(0x5BD1E995)
    h ^= h >> np.uint32(15)
    u = (h + 0.5) / 2.0**32
    if not equally_likely:
        return 2 * u - 1
    w = np.choose(h % 3, (u * 6.2, 6.3 + u * 9.6, 16.1 + u * 10))
    return np.asarray(np.sqrt(1 - np.exp(-w)))


def erfinv(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The root of erf(y) = x by Halley's iteration from S. Winitzki's formula, which is right to 2e-3.

    Far out 1 - erf(y) is what tells numbers apart, and 1 - x is exact there.
    """
    a = np.abs(x)
    log, alpha = np.log1p(-a * a), 0.147
    t = 2 / (math.pi * alpha) + log / 2
    y = np.sqrt(np.sqrt(t * t - log / alpha) - t)
    erf, erfc = (np.vectorize(f, otypes=[np.float64]) for f in (math.erf, math.erfc))
    for _ in range(3):
        excess = np.where(a < 0.5, erf(y) - a, (1 - a) - erfc(y))
        step = excess * math.sqrt(math.pi) / 2 * np.exp(y * y)
        y = y - step / (1 + y * step)
    return np.copysign(y, x)


def reference(inputs: Mapping[str, Any]) -> Mapping[str, NDArray[Any]]:
    """The inverse error function of the numbers, by another way than the kernel's polynomials."""
    return {f"erfinv {name}": erfinv(inputs[f"x {name}"]) for name in DISTRIBUTIONS}


def check(result: Mapping[str, Any], expected: Mapping[str, NDArray[Any]]) -> str:
    """Against the reference within `TOLERANCE`; against another build bit by bit, for every rounding is fixed: equal
    results have equal digests.
    """
    for name in DISTRIBUTIONS:
        if f"erfinv {name}" not in expected:
            ours, theirs = (int(one[f"digest {name}"][0]) for one in (result, expected))
            if ours != theirs:
                return f"wrong results, {name}: their digest is {ours:#x}, not {theirs:#x}"
            continue
        found, right = result[f"y {name}"], expected[f"erfinv {name}"]
        wrong = np.flatnonzero(~(np.abs(found - right) <= TOLERANCE * np.abs(right)))
        if wrong.size:
            i = int(wrong[0])
            return f"{wrong.size} wrong results, {name}; y[{i}] is {found[i]!r}, not {right[i]!r}"
    return ""


def summary(n: int, results: Mapping[str, NDArray[np.float64]]) -> str:
    """The text that iefa.cu prints for these results (``uniform`` and ``equal``)."""
    lines = []
    for name in DISTRIBUTIONS:
        y = np.abs(results[name])
        lines.append(f"{name} values {n} mean {y.sum() / n:.9f} largest {y.max():.9f}\n")
    return "".join(lines)
