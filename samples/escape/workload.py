"""Escape times at the edge of the Mandelbrot set: what escape.cu runs, and the answer by numpy."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cccopt.emulator.semantics.rounding import fma32
from cccopt.harness.workload import Inputs, Launch, State, Zeros

# name: (width, height, largest number of steps, grid).
_SIZES = {"small": (61, 43, 700, 2), "demo": (129, 97, 2000, 4), "full": (4096, 4096, 4000, 1056)}
SIZES = tuple(_SIZES)
RESULTS = ("steps",)

# The window: its corner and its width, in single precision as in escape.cu.
_LEFT, _TOP, _ACROSS = np.float32(-0.7436), np.float32(0.1318), np.float32(2e-4)


def inputs(size: str, seed: int) -> Inputs:
    """A window of that size. Nothing is random: ``seed`` changes nothing here."""
    width, height, limit, grid = _SIZES[size]
    return window(width, height, limit, grid)


def window(width: int, height: int, limit: int, grid: int) -> Inputs:
    """The window in ``width`` x ``height`` pixels, with at most ``limit`` steps for each."""
    steps = Zeros(width * height, np.int32)
    return {"width": width, "height": height, "limit": limit, "grid": grid, "steps": steps}


def launches(state: State) -> Generator[Launch, None, None]:
    """The whole window in one launch."""
    width, height, limit = (np.int32(state[name]) for name in ("width", "height", "limit"))
    arguments = (width, height, _LEFT, _TOP, _ACROSS / np.float32(width), limit, state["steps"])
    yield Launch("escape", (int(state["grid"]), 1, 1), (256, 1, 1), arguments)


def _fma(a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> NDArray[Any]:
    return fma32(a, b, c, "rn")


def reference(inputs: Mapping[str, Any]) -> Mapping[str, NDArray[Any]]:
    """The steps of all orbits, one step at a time for those that have not escaped."""
    width, height, limit = (int(inputs[name]) for name in ("width", "height", "limit"))
    pitch = _ACROSS / np.float32(width)
    row, column = np.divmod(np.arange(width * height), width)
    cx = _fma(column.astype(np.float32), pitch, _LEFT)
    cy = _fma(row.astype(np.float32), pitch, _TOP)
    steps = np.full(width * height, limit, np.int32)
    alive = np.arange(width * height)
    x, y = np.zeros_like(cx), np.zeros_like(cy)
    for step in range(limit):
        stays = _fma(x, x, y * y) < 4
        steps[alive[~stays]] = step
        alive, x, y, cx, cy = (array[stays] for array in (alive, x, y, cx, cy))
        x, y = _fma(x, x, _fma(-y, y, cx)), _fma(x + x, y, cy)
    return {"steps": steps}


def check(result: Mapping[str, Any], expected: Mapping[str, NDArray[Any]]) -> str:
    """Every operation of an orbit is fixed, so the numbers of steps must be equal."""
    wrong = np.flatnonzero(result["steps"] != expected["steps"])
    if not wrong.size:
        return ""
    i = int(wrong[0])
    return f"{wrong.size} wrong pixels; steps[{i}] is {result['steps'][i]}, not {expected['steps'][i]}"


def _hash32(x: NDArray[np.uint32]) -> NDArray[Any]:
    x = x ^ x >> np.uint32(16)
    x = x * np.uint32(0x7FEB352D)
    x = x ^ x >> np.uint32(15)
    x = x * np.uint32(0x846CA68B)
    return np.asarray(x ^ x >> np.uint32(16))


def summary(limit: int, steps: NDArray[np.int32]) -> str:
    """The line that escape.cu prints for these steps."""
    bits = _hash32(np.arange(len(steps), dtype=np.uint32) ^ _hash32(steps.astype(np.uint32)))
    checksum = int(bits.sum(dtype=np.uint64)) & 0xFFFFFFFF
    stayed = np.count_nonzero(steps == limit)
    return f"pixels {len(steps)} steps {steps.sum(dtype=np.int64)} stayed {stayed} checksum {checksum:08x}\n"
