"""How long issue, memory traffic, atomics and waiting take together, and what a measured time says about each.

Instructions are issued while others wait for memory or for results, so a time is about the largest of these. If a
loop's time is known, each part is scaled so that together they take that time. What code issues and memory delivers is
an upper bound, since machine code has fewer instructions than PTX and caches deliver most sectors. Time that these two
do not explain is time in which warps wait.

        elapsed   issued   memory          of 100 slots, issue needs 30 and memory 50; as these do not explain
           100       30       50           100, waiting takes nearly all of them

Why they wait shows in the *resident cycles*, those of all warps that the GPU runs in that time, compared with the
cycles for which the latencies of the code have warps wait if loads come from memory:

* about as many: warps wait for their own results. The fewer runs the code has, the less they wait.
* fewer: caches deliver the loads. Their sectors then cost less memory traffic, and what CCC adds, which waits for no
  load, counts for more.
* more: warps also wait for one another, which stays as it is. It is not known how much of the time that is: if nothing
  else delays them, latencies explain their share of the cycles, but delays also grow with the number of loads. The
  model takes the geometric mean of both answers.
* many more (`FEW`): most warps have ended, and a few slow ones run on, each with a lane that has far more to do than
  others. Its time stays as it is.

Only the inner iterations of an expanded loop are shared by lanes, so slow ones end earlier. There, all waiting
shrinks with the runs of the code.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace

from cccopt.ccc.outcome.report import PredictedTime
from cccopt.ccc.profitability.elapsed import Elapsed

OVERLAP = 6
"""How well issue and memory traffic overlap: 1 means not at all, infinity means that a time is the larger of the two.
`samples/bfs` on a graph of 2^22 vertices and 2^25 edges, where both take equally long before the rewrite, gained 1.12
on an H200; with this number, 1.11 is predicted.
"""

MOST = 0.95
"""The largest share of a measured time that issue alone, or memory alone, is taken to need."""

FEW = 30.0
"""If warps have more than this many times the cycles for which their code has them wait, the kernel's time is taken to
be that of a few slow warps. According to the profiles of `bench.verdict` on an H100, the factor is 0.2 to 8 in 24
kernels used for fitting, and 732 in another.
"""

ADDED_WAITING = 3.0
"""Cycles that a warp running alone takes for each issue slot of what CCC adds, fitted to the samples on an H100
(`bench.verdict`).
"""

EARLY = 0.08
"""The least share of a load's latency after which it returns: a little less than the 40 of 400 cycles that the
first-level cache takes (`cccopt.analysis.latency`). In the kernel with the smallest share, `ga`, it is 0.09.
"""

CACHED = 2 / 3
"""The least cost of a sector relative to one that comes from the second-level cache or from memory. The first-level
cache delivers one lane's sector per clock, in which the schedulers have four slots.
"""


def together(*parts: float) -> float:
    """The time of parts that overlap."""
    largest = max(parts)
    if largest <= 0:
        return 0.0
    return float(largest * sum((part / largest) ** OVERLAP for part in parts) ** (1 / OVERLAP))


def in_waves(time: PredictedTime, longer: float) -> PredictedTime:
    """The time if warps wait ``longer`` times as long, because the blocks of a launch run in more waves."""
    waiting = time.waiting * longer
    total = together(time.code + time.overhead, time.memory, waiting, time.atomics)
    return replace(time, waiting=waiting, total=total)


@dataclass(frozen=True, slots=True)
class Needs:
    """What code needs: issue slots for itself and for what is added to it, slots that pass for its memory traffic, the
    cycles that a warp running alone takes for the code itself (`cccopt.analysis.latency`), and slots that pass for its
    combined atomic operations (`combined_atomics`).
    """

    code: float
    added: float
    memory: float
    waiting: float
    atomics: float = 0.0

    def __truediv__(self, number: float) -> Needs:
        return Needs(*(part / number for part in astuple(self)))


@dataclass(frozen=True, slots=True)
class Scales:
    """Factors that turn what code needs into slots that pass. ``waited`` are the slots in which warps wait before the
    rewrite, of which the code's latencies explain the part ``own``. ``early`` is the part of a latency after which
    loads return. Without a measured time, it is not known how far the waits of warps overlap, and waiting is 0.
    """

    issue: float = 1.0
    memory: float = 1.0
    atomics: float = 1.0
    waiting: float = 0.0
    waited: float = 0.0
    own: float = 1.0
    early: float = 1.0

    def time(self, needs: Needs, *, expanded: bool = False) -> PredictedTime:
        """The time of code with these needs, whose inner loop is ``expanded`` or not."""
        code, added = needs.code * self.issue, needs.added * self.issue
        memory, atomics = needs.memory * self.memory, needs.atomics * self.atomics
        waiting = (needs.waiting + needs.added * ADDED_WAITING / self.early) * self.waiting
        if not expanded:
            waiting = waiting * self.own + self.waited * (1 - self.own)
        total = together(code + added, memory, waiting, atomics)
        return PredictedTime(code, added, memory, waiting, total, atomics)


def scales(elapsed: Elapsed, needs: Needs) -> Scales:
    """The factors with which a loop with these needs takes the time that it took."""
    if elapsed.slots <= 0 or needs.waiting <= 0:
        return Scales()
    resident = elapsed.cycles / needs.waiting
    early = min(max(resident, EARLY), 1.0) if resident else 1.0
    memory = needs.memory * max(early, CACHED)
    shares = [min(part / elapsed.slots, MOST) for part in (needs.code, memory, needs.atomics)]
    shares.append(max(1 - sum(share * share for share in shares), 0.0) ** 0.5)
    issue, traffic, atomics, waiting = (share * elapsed.slots / together(*shares) for share in shares)
    return Scales(
        issue / needs.code if needs.code else 1.0,
        traffic / needs.memory if needs.memory else 1.0,
        atomics / needs.atomics if needs.atomics else 1.0,
        waiting / needs.waiting,
        waiting,
        1.0 / max(resident, 1.0) ** 0.5 if resident <= FEW else 0.0,
        early,
    )
