"""Photons in layered tissue, at three absorptions: what walk.cu runs, and the answer by numpy in double."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cccopt.harness.workload import Inputs, Launch, State, Zeros

# name: (photons, grid). Odd numbers, so that the last trip is not for all lanes.
_SIZES = {"small": (1_501, 2), "demo": (30_011, 8), "full": (1 << 25, 1056)}
SIZES = tuple(_SIZES)

# The kernels by their absorption: the longer a photon lives, the more steps stand between two votes.
_KERNELS = {0.02: "walk_16", 0.1: "walk_4", 0.3: "walk_1"}
ABSORPTIONS = tuple(_KERNELS)

# What the PTX ISA grants sin.approx and cos.approx in [-2 pi, 2 pi] (absolute), and lg2.approx between 0.5 and 2
# (absolute) and elsewhere (relative).
_SINE, _LOGARITHM = 2.0**-20.5, 2.0**-22
_ROUNDING = 2.0**-24

_TOLERANCE = "tolerance of "


def _moments(absorption: float) -> str:
    return f"moments {absorption}"


RESULTS = tuple(_moments(absorption) for absorption in ABSORPTIONS)


def inputs(size: str, seed: int) -> Inputs:
    """A place for the result of each photon. Photons are known by their numbers: ``seed`` changes nothing."""
    photons, grid = _SIZES[size]
    return {"grid": grid, "photons": photons, **{name: Zeros(photons, np.float32) for name in RESULTS}}


def launches(state: State) -> Generator[Launch, None, None]:
    """One launch for every absorption; the launches do not depend on one another."""
    grid, photons = (int(state["grid"]), 1, 1), np.int32(state["photons"])
    for absorption, kernel in _KERNELS.items():
        arguments = (photons, np.float32(absorption), state[_moments(absorption)])
        yield Launch(kernel, grid, (256, 1, 1), arguments, label=f"absorption {absorption}")


def reference(inputs: Mapping[str, Any]) -> Mapping[str, NDArray[Any]]:
    """The moments in double, and for each how far a GPU's may be from it."""
    expected: dict[str, NDArray[Any]] = {}
    for absorption in ABSORPTIONS:
        name = _moments(absorption)
        expected[name], expected[_TOLERANCE + name] = walk(int(inputs["photons"]), absorption)
    return expected


def walk(photons: int, absorption: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The moment of each photon, and a bound on the error of the kernel's.

    Random numbers are integers and exact, so every photon takes the steps that it takes on a GPU. The bound is
    a running one, of first order: each step adds what its approximations and roundings may be wrong by.
    """
    random = hash32(np.arange(1, photons + 1, dtype=np.uint32))
    across, depth, weight = np.zeros(photons), np.zeros(photons), np.ones(photons)
    off_across, off_depth, off_weight = np.zeros(photons), np.zeros(photons), np.zeros(photons)
    alive = np.arange(photons)
    while alive.size:
        state = random[alive]
        state, first = _uniform(state)
        state, second = _uniform(state)
        state, third = _uniform(state)
        random[alive] = state
        distance = -np.log((first + np.float32(1e-7)).astype(np.float64))
        turn = (second * np.float32(6.2831853)).astype(np.float64)
        off_distance = np.log(2) * _LOGARITHM + distance * (_LOGARITHM + 2 * _ROUNDING)
        off = off_distance + distance * _SINE
        across[alive] += distance * np.cos(turn)
        off_across[alive] += off + _ROUNDING * np.abs(across[alive])
        depth[alive] = np.abs(depth[alive] + distance * np.sin(turn))
        off_depth[alive] += off + _ROUNDING * depth[alive]
        kept = 0.995 - 0.01 * np.clip(depth[alive] * 0.25 - 1, 0, 1)
        weight[alive] *= kept
        # Relative: the depth's error where the layers meet, the constants, and the roundings of two products.
        off_weight[alive] += 0.0025 * off_depth[alive] / kept + 4 * _ROUNDING
        alive = alive[third > np.float32(absorption)]
    square = across**2 + depth**2
    off_square = 2 * (np.abs(across) * off_across + depth * off_depth) + off_across**2 + off_depth**2
    moment = weight * square
    return moment, weight * off_square + moment * (off_weight + 4 * _ROUNDING)


def check(result: Mapping[str, Any], expected: Mapping[str, NDArray[Any]]) -> str:
    """Against numpy, within the error that the PTX ISA grants; one GPU's builds must agree in every bit.

    The kernels leave no freedom in how to round, so builds that run on one machine have no reason to differ.
    """
    for name in RESULTS:
        found, right = np.asarray(result[name]), expected[name]
        tolerance = expected.get(_TOLERANCE + name, np.float64(0))
        wrong = np.flatnonzero(~(np.abs(found - right) <= tolerance))
        if wrong.size:
            i = int(wrong[0])
            return f"{wrong.size} wrong {name}; photon {i} has {found[i]!r}, not {right[i]!r}"
    return ""


def hash32(x: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The hash of walk.cu, from which a photon's random numbers begin."""
    x = x ^ (x >> np.uint32(16))
    x = x * np.uint32(0x7FEB352D)
    x = x ^ (x >> np.uint32(15))
    x = x * np.uint32(0x846CA68B)
    return x ^ (x >> np.uint32(16))


def _uniform(random: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
    """The generator's next state, and the number in [0, 1) that it stands for: a multiple of 2^-24, exact."""
    random = random ^ (random << np.uint32(13))
    random = random ^ (random >> np.uint32(17))
    random = random ^ (random << np.uint32(5))
    return random, (random >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)
