"""How long issue, memory traffic and waiting take together, and what a measured time says of each.

Instructions are issued while others wait for memory or for results, so that a time is about the largest of the three.
If a loop's time is known, each part is scaled so that together they take that time: what code issues and memory
delivers is an upper bound, since machine code has fewer instructions than PTX and caches deliver most sectors, and
whatever they do not explain is time in which warps wait, because there are too few of them or because they depend on
one another's results. What waits longest shrinks with the runs of the code in which it waits.

        elapsed   issued   memory          of 100 slots, 30 have an instruction, memory needs 50, and in the others
           100       30       50           (and most of these, too) all warps wait
"""

from __future__ import annotations

from dataclasses import dataclass

from cccopt.ccc.outcome.report import PredictedTime

OVERLAP = 6
"""How well issue and memory traffic overlap: 1 is not at all, infinity a time that is the larger of the two.
`samples/bfs` on a graph of 2^22 vertices and 2^25 edges, where both take as long before, gained 1.12 on an H200, and
1.11 by this number.
"""

MOST = 0.95
"""The largest share of a measured time that issue alone, or memory alone, is taken to need."""


def together(*parts: float) -> float:
    """The time of parts that overlap."""
    largest = max(parts)
    if largest <= 0:
        return 0.0
    return float(largest * sum((part / largest) ** OVERLAP for part in parts) ** (1 / OVERLAP))


@dataclass(frozen=True, slots=True)
class Needs:
    """What code needs: issue slots of its own and of what is added to it, those that pass for its memory traffic, and
    the cycles that a warp which runs alone takes (`cccopt.analysis.latency`).
    """

    code: float
    added: float
    memory: float
    waiting: float

    def __truediv__(self, number: float) -> Needs:
        return Needs(self.code / number, self.added / number, self.memory / number, self.waiting / number)


@dataclass(frozen=True, slots=True)
class Scales:
    """Factors by which what code needs becomes issue slots that pass. Without a measured time, it is not known how far
    the waits of warps overlap, and waiting counts as nothing.
    """

    issue: float = 1.0
    memory: float = 1.0
    waiting: float = 0.0

    def time(self, needs: Needs) -> PredictedTime:
        """The time of what needs so much."""
        code, added = needs.code * self.issue, needs.added * self.issue
        memory, waiting = needs.memory * self.memory, needs.waiting * self.waiting
        return PredictedTime(code, added, memory, waiting, together(code + added, memory, waiting))


def scales(elapsed: float, needs: Needs) -> Scales:
    """The factors by which a loop that needs so much takes ``elapsed`` slots, 0 if its time is not known."""
    if elapsed <= 0 or needs.waiting <= 0:
        return Scales()
    issue, memory = min(needs.code / elapsed, MOST), min(needs.memory / elapsed, MOST)
    rest = max(1 - issue**OVERLAP - memory**OVERLAP, 0.0) ** (1 / OVERLAP)
    return Scales(
        issue * elapsed / needs.code if needs.code else 1.0,
        memory * elapsed / needs.memory if needs.memory else 1.0,
        rest * elapsed / needs.waiting,
    )
