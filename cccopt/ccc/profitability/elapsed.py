"""The issue slots and warp cycles that a GPU offered in a measured time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Elapsed:
    """Issue ``slots``, and ``cycles`` of all warps that the GPU ran at once. Both are 0 if the time is not known."""

    slots: float = 0.0
    cycles: float = 0.0

    def __add__(self, other: Elapsed) -> Elapsed:
        return Elapsed(self.slots + other.slots, self.cycles + other.cycles)

    def __mul__(self, part: float) -> Elapsed:
        return Elapsed(self.slots * part, self.cycles * part)

    def __truediv__(self, number: float) -> Elapsed:
        return Elapsed(self.slots / number, self.cycles / number)
