"""Counts of a sample of the warps: how many warps they stand for, and how exact their sums are.

The warps of a sample are in random groups. The error of the total sum follows from how far the groups' sums differ:
K. M. Wolter, "Introduction to Variance Estimation", 2nd ed., 2007, ch. 2.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cccopt.student import student


@dataclass(frozen=True, slots=True)
class Sample:
    """The warps that were counted, if not all: they stand for ``warps`` warps, and ``squares`` is the sum of the
    squares of how many each of them stands for.
    """

    warps: int
    squares: int

    @property
    def left_out(self) -> float:
        """The share of the warps that were not counted, 0 to 1."""
        return 1 - self.warps / self.squares if self.squares else 0.0

    def __add__(self, other: Sample) -> Sample:
        return Sample(self.warps + other.warps, self.squares + other.squares)

    def error(self, pairs: Iterable[tuple[int, int]], part: int, whole: int) -> float | None:
        """Half the width of the 95 % confidence interval of the ratio ``part`` / ``whole``, from ``pairs``, the parts
        and wholes of random groups. None if fewer than two groups have a nonzero whole.
        """
        some = [(p, w) for p, w in pairs if w]
        if len(some) < 2 or not whole:
            return None
        distances = [p - w * part / whole for p, w in some]
        mean = sum(distances) / len(distances)
        squares = sum((d - mean) ** 2 for d in distances) * len(some) / (len(some) - 1)
        return student(len(some) - 1) * math.sqrt(self.left_out * squares) / whole


def together(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    """Add two lists of group sums, element by element; if one list is longer, its extra elements wrap around and are
    added from the beginning of the shorter one.
    """
    most, fewest = (a, b) if len(a) >= len(b) else (b, a)
    if not fewest:
        return tuple(most)
    # Random groups combined at random are random groups.
    total = list(fewest)
    for i, n in enumerate(most):
        total[i % len(fewest)] += n
    return tuple(total)
