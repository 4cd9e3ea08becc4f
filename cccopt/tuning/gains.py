"""How much faster a build is: ratios of runs that took turns, and their interval."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from cccopt.student import student


@dataclass(frozen=True, slots=True)
class Gain:
    """The time of the plain build divided by that of another, and the ends of its 95 % confidence interval."""

    gain: float
    low: float
    high: float

    @property
    def is_gain(self) -> bool:
        """Whether all of the interval is above 1."""
        return self.low > 1

    @property
    def is_loss(self) -> bool:
        """Whether all of the interval is below 1."""
        return self.high < 1


def gain_of(plain: Sequence[float], other: Sequence[float]) -> Gain:
    """The gain over rounds, each of which ran both: the mean of the ratios' logarithms, with Student's t.

    Raises ValueError for fewer than two rounds.
    """
    if len(plain) < 2:
        raise ValueError(f"{len(plain)} rounds say nothing about how much times vary")
    logs = [math.log(a / b) for a, b in zip(plain, other, strict=True)]
    mean = statistics.fmean(logs)
    width = student(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return Gain(math.exp(mean), math.exp(mean - width), math.exp(mean + width))
