"""Counts of a sample of the warps: how many warps they stand for, and how exact their sums are.

The warps of a sample are in random groups. How far the groups' sums differ tells the error of the sum of all: K. M.
Wolter, "Introduction to Variance Estimation", 2nd ed., 2007, ch. 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cccopt.student import student

LANES = 32


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

    def error(self, groups: Sequence[int], warps: int, lanes: int) -> float | None:
        """Half the width of the interval that holds the efficiency ``lanes`` / (32 x ``warps``) at 95 %, from the warps
        and lanes of random groups. None where fewer than two groups have any.
        """
        pairs = [(w, n) for w, n in zip(groups[::2], groups[1::2], strict=True) if w]
        if len(pairs) < 2 or not warps:
            return None
        distances = [n - w * lanes / warps for w, n in pairs]
        mean = sum(distances) / len(distances)
        squares = sum((d - mean) ** 2 for d in distances) * len(pairs) / (len(pairs) - 1)
        return student(len(pairs) - 1) * math.sqrt(self.left_out * squares) / (LANES * warps)


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
