"""A kernel for the loaders, as a text without ``extern "C"``, and what it computes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

SOURCE = """\
__global__ void __launch_bounds__(128)
mix(int n, int rounds, const unsigned* __restrict__ in, unsigned* __restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    unsigned x = in[i];
#pragma ccc if
    if (x % 3 == 0) {
      for (int r = 0; r < rounds; ++r) x = x * FACTOR + 1013904223u;
      out[i] = x;
    }
  }
}
"""
"""FACTOR is for the options to define."""

DEFINES = ["-DFACTOR=1664525u"]

REFUSED = SOURCE.replace(
    "      out[i] = x;\n    }", "      out[i] = x;\n    }\n    out[i + 1] = __popc(__activemask());"
)
"""The path and the rest of its iteration store to one array (CCC036), and the rest asks for the lanes beside it."""


def c_names(source: str) -> str:
    """The text with kernels that go by their plain names, its lines where they were."""
    return 'extern "C" ' + source


def values(count: int = 100_000) -> NDArray[np.uint32]:
    """The kernel's input."""
    return np.random.default_rng(1).integers(0, 2**32, count, dtype=np.uint32)


def expected(given: NDArray[np.uint32], rounds: int) -> NDArray[np.uint32]:
    """What the kernel stores into zeros."""
    mixed: Any = given.copy()
    for _ in range(rounds):
        mixed = mixed * np.uint32(1664525) + np.uint32(1013904223)
    return np.where(given % 3 == 0, mixed, 0).astype(np.uint32)
