"""Task sizes that grow with the lane, linearly or as its square: what line_quad.cu runs, and the answer by numpy."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cccopt.harness.csr.workload import arrays, launch, wrong_numbers
from cccopt.harness.workload import Inputs, Launch, State

_LANES = np.arange(32)
_TASK_SIZES = {"line": 4 * _LANES, "quad": _LANES**2 // 8}
INPUTS = tuple(_TASK_SIZES)
FORMS = ("tasks",)
RESULTS = ("sums",)

# Coarse tasks: odd, so that the last warp is not full. At full size, `line` has 1984 * 10^6 fine tasks, nearly 2^31.
_TASKS = {"small": 589, "full": 32_000_000 - 3}

FMAS = 20
"""Multiply-adds of the map, and of the reduction: ``FMAS`` in line_quad.cu."""


def inputs(name: str, size: str, seed: int) -> Inputs:
    """Where the lanes' fine tasks begin among a warp's, and how many a warp has. ``seed`` changes nothing."""
    pattern = np.append(0, np.cumsum(_TASK_SIZES[name]))
    return {"pattern": pattern.astype(np.int32), "sums": np.full(_TASKS[size], np.nan, np.float32)}


def launches(state: State, form: str) -> Generator[Launch, None, None]:
    """One launch."""
    pattern, sums = arrays(state, "pattern", "sums")
    one, zero = np.float32(1), np.float32(0)
    yield launch("line_quad", len(sums), np.int32(len(sums)), one, zero, pattern, sums)


def reference(inputs: Mapping[str, Any]) -> Mapping[str, NDArray[Any]]:
    """The sums, exact: fine task i of coarse task t adds `_digit(i)` and `FMAS` times t mod 8."""
    pattern, sums = arrays(inputs, "pattern", "sums")
    task = np.arange(len(sums))
    begins = task // 32 * int(pattern[32]) + pattern[task % 32]
    ends = begins + np.diff(pattern)[task % 32]
    right = _below(ends) - _below(begins) + (ends - begins) * FMAS * (task % 8)
    return {"sums": right.astype(np.float32)}


def _digit(index: NDArray[np.int64]) -> NDArray[np.int64]:
    """What the map makes of an index: all of 0 to 15 in each 16 of them, in an order of their own."""
    return (index ^ index >> 4) & 15


# Of a beginning of 16 indices: row k of those that are 16 * k modulo 256.
_OF_SOME = np.cumsum(np.pad(_digit(np.arange(256)).reshape(16, 16), ((0, 0), (1, 0))), axis=1)


def _below(index: NDArray[np.int64]) -> NDArray[np.int64]:
    """The sum of the digits of all indices below ``index``."""
    whole, rest = index // 16, index % 16
    return whole * 120 + _OF_SOME[whole % 16, rest]


def check(result: Mapping[str, Any], expected: Mapping[str, NDArray[Any]]) -> str:
    """Equal: all numbers on the way are whole and below 2^24."""
    return wrong_numbers("sums", result["sums"], expected["sums"])


def least_bytes(inputs: Mapping[str, Any]) -> int:
    """The results: nothing else touches memory."""
    (sums,) = arrays(inputs, "sums")
    return sums.nbytes
