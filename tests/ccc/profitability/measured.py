"""What CCC gained on an H200 at full size, 2026-11-20: what `cccopt.ccc.profitability.model` is held against."""

from __future__ import annotations

from cccopt.ccc.profitability.model import SAFE_GAIN

LANES = (1, 4, 8, 16, 24, 31)

_SPEEDUPS = {
    1: (0.836, 0.790, 0.800, 0.800, 0.756, 0.677),
    5: (0.825, 0.831, 0.801, 0.772, 0.722, 0.655),
    20: (1.419, 1.523, 1.376, 1.131, 0.951, 0.839),
    80: (3.007, 3.033, 2.321, 1.555, 1.166, 0.955),
    320: (7.498, 5.402, 3.303, 1.849, 1.280, 1.009),
}

SENSITIVITY = tuple(
    (length, lanes, speedup)
    for length, speedups in _SPEEDUPS.items()
    for lanes, speedup in zip(LANES, speedups, strict=True)
)
"""Multiply-adds in the path of `samples/sensitivity`, lanes of 32 that take it, speedup over plain nvcc by `always`."""

BAR = 0.97


def reaches_the_bar(collected: bool, speedup: float) -> bool:
    """Whether what `auto` chose is as fast as the better of both, but for 3 %, or for a gain that predictions are not
    exact enough for.
    """
    return speedup >= BAR if collected else speedup < SAFE_GAIN / BAR
