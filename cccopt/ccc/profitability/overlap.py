"""How long issue, memory traffic and waiting take together, and what a measured time says of each.

Instructions are issued while others wait for memory or for results, so that a time is about the largest of the three.
If a loop's time is known, each part is scaled so that together they take that time: what code issues and memory
delivers is an upper bound, since machine code has fewer instructions than PTX and caches deliver most sectors, and
what they do not explain is time in which warps wait.

        elapsed   issued   memory          of 100 slots, 30 have an instruction, memory needs 50, and in the others
           100       30       50           (and most of these, too) all warps wait

Why they wait shows in the cycles that all resident warps have in that time, against those for which the latencies of
the code have them wait if loads come from memory:

* about as many: warps depend on one another's or their own results. Waiting shrinks with the runs of the code.
* fewer: caches deliver the loads, so that they cost less memory traffic, too.
* many more (`FEW`): most warps have ended, and a few slow ones run on, each with a lane that has far more to do than
  others. Only the inner iterations of an expanded loop are shared by lanes; all other forms leave that time as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from cccopt.ccc.outcome.report import PredictedTime
from cccopt.ccc.profitability.elapsed import Elapsed

OVERLAP = 6
"""How well issue and memory traffic overlap: 1 is not at all, infinity a time that is the larger of the two.
`samples/bfs` on a graph of 2^22 vertices and 2^25 edges, where both take as long before, gained 1.12 on an H200, and
1.11 by this number.
"""

MOST = 0.95
"""The largest share of a measured time that issue alone, or memory alone, is taken to need."""

FEW = 30.0
"""How many times the cycles for which warps wait by their code they have to be resident for their kernel's time to be
that of a few slow ones. By the profiles of `bench.verdict` on an H100, it is 0.2 to 8 in 24 kernels used for fitting,
and 732 in another.
"""

ADDED_WAITING = 3.0
"""Cycles that a warp which is alone takes for each issue slot of what CCC adds, fitted to the samples on an H100
(`bench.verdict`).
"""

EARLY = 0.08
"""The share of a load's latency after which the first-level cache delivers it: 33 cycles of 400
(`cccopt.analysis.latency`).
"""

CACHED = 2 / 3
"""What a sector costs at least, of one that comes from the second-level cache or from memory: the first-level cache
delivers that of one lane's access in a clock, in which the schedulers have four slots.
"""


def together(*parts: float) -> float:
    """The time of parts that overlap."""
    largest = max(parts)
    if largest <= 0:
        return 0.0
    return float(largest * sum((part / largest) ** OVERLAP for part in parts) ** (1 / OVERLAP))


@dataclass(frozen=True, slots=True)
class Needs:
    """What code needs: issue slots of its own and of what is added to it, those that pass for its memory traffic, and
    the cycles that a warp which runs alone takes for its own code (`cccopt.analysis.latency`).
    """

    code: float
    added: float
    memory: float
    waiting: float

    def __truediv__(self, number: float) -> Needs:
        return Needs(self.code / number, self.added / number, self.memory / number, self.waiting / number)


@dataclass(frozen=True, slots=True)
class Scales:
    """Factors by which what code needs becomes issue slots that pass, and the slots that pass for ``few`` slow warps.
    Of the cycles that the code has a warp wait, ``share`` pass if loads return earlier than from memory: what CCC adds
    waits for no load, and takes all of its own. Without a measured time, it is not known how far the waits of warps
    overlap, and waiting counts as nothing.
    """

    issue: float = 1.0
    memory: float = 1.0
    waiting: float = 0.0
    few: float = 0.0
    share: float = 1.0

    def time(self, needs: Needs, *, expanded: bool = False) -> PredictedTime:
        """The time of what needs so much, with an inner loop that is ``expanded`` or without."""
        code, added = needs.code * self.issue, needs.added * self.issue
        memory = needs.memory * self.memory
        waiting = (needs.waiting + needs.added * ADDED_WAITING / self.share) * self.waiting
        if self.few and not expanded:
            waiting = self.few
        return PredictedTime(code, added, memory, waiting, together(code + added, memory, waiting))


def scales(elapsed: Elapsed, needs: Needs) -> Scales:
    """The factors by which a loop that needs so much takes the time that it took."""
    if elapsed.slots <= 0 or needs.waiting <= 0:
        return Scales()
    resident = elapsed.cycles / needs.waiting
    share = min(max(resident, EARLY), 1.0) if resident else 1.0
    memory = needs.memory * max(share, CACHED)
    shares = [min(part / elapsed.slots, MOST) for part in (needs.code, memory)]
    shares.append(max(1 - sum(share * share for share in shares), 0.0) ** 0.5)
    issue, traffic, waiting = (share * elapsed.slots / together(*shares) for share in shares)
    return Scales(
        issue / needs.code if needs.code else 1.0,
        traffic / needs.memory if needs.memory else 1.0,
        waiting / needs.waiting,
        waiting if resident > FEW else 0.0,
        share,
    )
