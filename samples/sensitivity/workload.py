"""A path of N multiply-adds taken by k of 32 lanes: what sensitivity.cu runs, and the answer by numpy."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cccopt.harness.workload import Inputs, Launch, State, Zeros

CELLS = 1 << 20

# name: (log2 of the iterations, grid, pairs of N and k).
_SIZES: dict[str, tuple[int, int, tuple[tuple[int, int], ...]]] = {
    "small": (12, 1, ((80, 4), (5, 16))),
    "demo": (17, 8, ((80, 4), (5, 16))),
    "sweep": (16, 4, tuple((n, k) for n in (1, 5, 20, 80, 320) for k in (1, 4, 8, 16, 24, 31))),
    "full": (28, 1056, tuple((n, k) for n in (1, 5, 20, 80, 320) for k in (1, 4, 8, 16, 24, 31))),
}
SIZES = tuple(_SIZES)


def hash32(x: NDArray[np.uint32]) -> NDArray[Any]:
    """The hash of sensitivity.cu, which decides whether an iteration takes the path."""
    x = x.astype(np.uint32)
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x7FEB352D)
    x ^= x >> np.uint32(15)
    x *= np.uint32(0x846CA68B)
    x ^= x >> np.uint32(16)
    return x


def _cells(n: int, k: int) -> str:
    return f"cells N={n} k={k}"


def _pairs(inputs: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    return ((int(n), int(k)) for n, k in inputs["pairs"])


def inputs(size: str, seed: int) -> Inputs:
    """Zeroed cells for every pair of N and k. Nothing is random: ``seed`` changes nothing here."""
    log2_iterations, grid, pairs = _SIZES[size]
    cells = {_cells(n, k): Zeros(CELLS, np.float32) for n, k in pairs}
    return {"iterations": 1 << log2_iterations, "grid": grid, "pairs": np.array(pairs), **cells}


def launches(state: State) -> Generator[Launch, None, None]:
    """One launch for every pair; the launches do not depend on one another."""
    grid, iterations = (int(state["grid"]), 1, 1), int(state["iterations"])
    for n, k in _pairs(state):
        arguments = (np.uint32(iterations), np.uint32(k), state[_cells(n, k)])
        yield Launch(f"path_{n}", grid, (256, 1, 1), arguments, label=f"N={n} k={k}")


def reference(inputs: Inputs) -> Mapping[str, NDArray[Any]]:
    """The cells by numpy.

    x * 1.0001f + 0.5f is exact in double for the numbers that occur (x >= 0 of at most 24 significant bits,
    the product 0 or at least 0.5), so that one rounding to float makes it the fused operation.
    """
    lowest = np.full(CELLS, 32, np.uint32)
    for start in range(0, int(inputs["iterations"]), CELLS):
        stop = min(start + CELLS, int(inputs["iterations"]))
        draws = hash32(np.arange(start, stop, dtype=np.uint32)) & np.uint32(31)
        np.minimum(lowest[: stop - start], draws, out=lowest[: stop - start])
    factor, addend = np.float64(np.float32(1.0001)), np.float64(0.5)
    values: dict[int, NDArray[np.float32]] = {}
    x = np.arange(CELLS).astype(np.float32)
    lengths = {n for n, _ in _pairs(inputs)}
    for step in range(1, max(lengths) + 1):
        x = (x.astype(np.float64) * factor + addend).astype(np.float32)
        if step in lengths:
            values[step] = x
    return {_cells(n, k): np.where(lowest < k, values[n], np.float32(0)) for n, k in _pairs(inputs)}


def check(result: Mapping[str, Any], expected: Mapping[str, NDArray[Any]]) -> str:
    """The order of the iterations changes no rounding: every bit must be the same."""
    for name, cells in expected.items():
        if not name.startswith("cells"):
            continue
        wrong = np.flatnonzero(result[name].view(np.uint32) != cells.view(np.uint32))
        if wrong.size:
            i = int(wrong[0])
            return f"{wrong.size} wrong {name}; cell {i} is {result[name][i]!r}, not {cells[i]!r}"
    return ""


def summary(n: int, k: int, cells: NDArray[np.float32]) -> str:
    """The line that sensitivity.cu prints for these cells."""
    bits = hash32(np.arange(CELLS, dtype=np.uint32) ^ hash32(cells.view(np.uint32)))
    return f"path_{n} k {k} checksum {int(bits.sum(dtype=np.uint64)) & 0xFFFFFFFF:08x}\n"
