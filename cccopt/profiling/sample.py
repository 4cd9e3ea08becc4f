"""Counts of a sample of the warps: how many warps they stand for, and how exact their sums are.

The warps of a sample are in random groups. How far the groups' sums differ tells the error of the sum of all: K. M.
Wolter, "Introduction to Variance Estimation", 2nd ed., 2007, ch. 2.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cccopt.student import student


@dataclass(frozen=True, slots=True)
class Sample:
    """Of what warps the counts are if not of all: how many warps those counted stand for, ``warps``, and the squares
    of how many each of them stands for.
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
        """Half the width of the interval that holds the ratio ``part`` / ``whole`` at 95 %, from the parts and wholes
        of random groups. None where fewer than two groups have any.
        """
        some = [(p, w) for p, w in pairs if w]
        if len(some) < 2 or not whole:
            return None
        distances = [p - w * part / whole for p, w in some]
        mean = sum(distances) / len(distances)
        squares = sum((d - mean) ** 2 for d in distances) * len(some) / (len(some) - 1)
        return student(len(some) - 1) * math.sqrt(self.left_out * squares) / whole


def together(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    """Numbers of groups added; where there are more of one, those that follow are added to the first ones again."""
    most, fewest = (a, b) if len(a) >= len(b) else (b, a)
    if not fewest:
        return tuple(most)
    # Random groups put together at random are random groups.
    total = list(fewest)
    for i, n in enumerate(most):
        total[i % len(fewest)] += n
    return tuple(total)
