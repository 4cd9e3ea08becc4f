"""What collecting gains, in issue slots: pure arithmetic on a few numbers of each path (DESIGN 4.2, 5.7).

All numbers are per *warp iteration*: one iteration of the marked loop by one warp. Some of its 32 lanes take a path.
``warps`` is the share of warp iterations in which any lane does, and ``full`` the number of full warps that all those
lanes would make:

    before:  own code + cost of the path x warps           k = 4 lanes of 32: warps = 0.99
    after:   own code + overhead + cost of the path x full                     full = 0.125

The tasks of a loop run in rounds: ``warps`` are inner iterations of a warp, as many as its slowest lane runs, and
``full`` are the inner iterations of all lanes divided by 32. The predicted time of a kernel is never below the time of
its memory traffic, as far as the measured time, if there is one, allows (`cccopt.ccc.profitability.overlap`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from cccopt.ccc.legality.exclusive import CHAIN
from cccopt.ccc.outcome.choices import Form
from cccopt.ccc.outcome.report import PredictedTime
from cccopt.ccc.profitability.flows import LANES, LoopFlow, PathFlow, SortedGroup, any_of, longest
from cccopt.ccc.profitability.overlap import Needs, scales

AN_INSTRUCTION = 2.4
"""Issue slots of one instruction that CCC adds: mostly integer instructions and votes, of two slots or more
(`ptx.isa_table`).
"""

WORD = 4.0
"""Issue slots of a warp iteration for every four bytes of context, which are stored or loaded (`ptx.isa_table`,
"memory").
"""

GLOBAL_WORD = 3 * WORD
"""The same for stacks in global memory: L1 takes as long as shared memory, but each store also goes on to L2, in four
sectors per warp.
"""

SECTOR = 6.0
"""Issue slots that pass while 32 bytes come from memory. An H200 issues 132 x 4 slots at 1.9 GHz and reads 4.8 TB/s,
which makes 6.7; some of the sectors come from its second-level cache.
"""

LEAST_GAIN = 1.05
"""A gain below this does not count: the estimate is off by more (`OVERHEADS`), and the rewritten code takes more
registers. On an H200 (2026-11-20), `samples/sssp`, for which 1.03 is predicted, ran at 0.89.
"""

USUAL_ERROR = 1.25
"""About three quarters of the measured gains are within this factor of the predicted ones (`bench.verdict`)."""

SAFE_GAIN = 1.25
"""The least predicted gain at which `auto` rewrites any loop according to a profile. Among the kernels used for fitting
that it rewrote at gains of 1.05 or more (on an H100, `bench.verdict`), the largest gain predicted for one that lost was
1.10, the smallest for one that won 1.44 (docs/decisions/0031-a-margin-for-predictions.md).
"""

IN_LANE_GAIN = 1.65
"""The same for the in-lane form. Lanes in different iterations make accesses separately that they made together, which
costs more than is predicted: `knn`, one of the kernels used for fitting, ran at 1.35 on an H200 although 3.3 is
predicted (docs/decisions/0044-a-wider-margin-in-lane.md).
"""

DEFAULT_TAKEN = 0.25
"""The share of lanes that take a path about which nothing is known."""


@dataclass(frozen=True, slots=True)
class Overhead:
    """What a form of the loop adds: to a warp iteration, to a vote in which no lane wants the path, to a vote that
    pushes or pops, and to such a vote for a loop of tasks.
    """

    iteration: float
    unwanted: float
    wanted: float
    loop_vote: float


OVERHEADS: Mapping[str, Overhead] = {
    # Fitted to 30 points of `samples/sensitivity` on an H200 (2026-11-20): predicted gains are right within 10 %
    # there. Loops of tasks and the nine more instructions of the idle-lanes form are from DESIGN 4.2. Each path has
    # its own votes.
    Form.SPLIT: Overhead(0.0, 6 * AN_INSTRUCTION, 11 * AN_INSTRUCTION, 15 * AN_INSTRUCTION),
    Form.IDLE_LANES: Overhead(
        9 * AN_INSTRUCTION, 6 * AN_INSTRUCTION, 11 * AN_INSTRUCTION, 15 * AN_INSTRUCTION
    ),
    # The same 30 points in the carried form, split (2026-11-23): 0.4 to 5.3, while the split form has 0.7 to 7.9.
    Form.CARRIED: Overhead(12 * AN_INSTRUCTION, 8 * AN_INSTRUCTION, 22 * AN_INSTRUCTION, 26 * AN_INSTRUCTION),
}

AGREE, JUMP = 8.0, 6.0
"""Slots of a warp iteration for a group of sorted paths (`cccopt.ccc.codegen.sorting`) if all lanes have the same
number, and how many more a jump table takes than a comparison.
"""

SORT, SORT_BIT = 24.0, 6.0
"""Further slots of a warp iteration in which the lanes' numbers differ, and how many more for each bit of a number."""

ASKED = 4.5
"""Slots that such a group takes to test whether 32 tasks wait for a path."""

APART = 2 * AN_INSTRUCTION
"""Slots of a path that is not collected although others of its group are sorted: its lanes jump there and wait for the
others.
"""

ROUND = 13 * AN_INSTRUCTION
"""A vote between the inner iterations of a loop of tasks, and what leads to the next task, which is run even if no lane
takes one: ballot, counts, tests, branches, flags, the address of the task's words.
"""

SKIPPED = 0.25
"""The cost of a load that no lane makes, relative to one that lanes make: it is issued nevertheless."""


EXPAND = 45 * AN_INSTRUCTION
"""Slots that it takes to lay the inner iterations of all lanes side by side (`cccopt.ccc.codegen.expansion`), mostly
for a prefix sum.
"""

WINDOW = 15 * AN_INSTRUCTION
"""Slots that it takes to find the owners of the next 32 inner iterations, not counting the words of their contexts."""


SUM = 24 * AN_INSTRUCTION
"""Slots that it takes to combine, for each lane, what such 32 inner iterations add to one variable."""


def time(loop: LoopFlow, chosen: Collection[int]) -> float:
    """The slots that pass in a warp iteration when the ``chosen`` paths are collected: about the largest of those that
    are issued, those that memory takes and those in which warps wait.
    """
    return parts(loop, chosen).total


def parts(loop: LoopFlow, chosen: Collection[int]) -> PredictedTime:
    """The parts of `time`."""
    scaled = scales(loop.elapsed, _needs(loop, ()))
    expanded = any(path.expanded and path.key in chosen for path in loop.paths)
    return scaled.time(_needs(loop, chosen), expanded=expanded)


def gain(loop: LoopFlow, chosen: Collection[int], over: Collection[int] = ()) -> float:
    """How many times faster the loop is with the ``chosen`` paths collected than with those in ``over``."""
    return time(loop, over) / time(loop, chosen) if chosen != over and time(loop, chosen) > 0 else 1.0


def slots(loop: LoopFlow, chosen: Collection[int]) -> float:
    """The issue slots of a warp iteration when the ``chosen`` paths are collected."""
    needs = _needs(loop, chosen)
    return needs.code + needs.added


def _needs(loop: LoopFlow, chosen: Collection[int]) -> Needs:
    """What a warp iteration needs when the ``chosen`` paths are collected."""
    form = OVERHEADS[loop.form]
    whole = _whole(loop, chosen)
    code, waiting = loop.own * whole.warps, loop.waiting * whole.warps
    added = form.iteration * whole.warps if chosen else 0.0
    moved = -whole.warps * _of_subsets(loop.spared, chosen)
    atomics = whole.warps * (loop.atomics - _of_subsets(loop.spared_atomics, chosen))
    runs: dict[int, _Runs] = {}
    diverged: dict[int, float] = {}
    take: dict[int, float] = {}
    for group in loop.groups:
        ours = group.collected(chosen)
        differ = group.diverged([path for path in loop.paths if path.key in ours])
        diverged |= dict.fromkeys(ours, differ)
        take |= dict.fromkeys(ours, group.take(chosen))
    for path in loop.paths:
        around = runs[path.parent] if path.parent is not None else whole
        now = runs[path.key] = _runs(path, around, path.key in chosen, loop)
        code += now.packed * path.packed + (now.warps - now.packed) * path.slots
        waiting += now.packed * path.packed_waiting + (now.warps - now.packed) * path.waiting
        atomics += now.packed * path.packed_atomics + (now.warps - now.packed) * path.atomics
        if path.key in chosen:
            moved += _ends(path, now) * path.tail
            atomics += _ends(path, now) * path.tail_atomics
        if path.key in diverged:
            added += now.warps * (diverged[path.key] * (take[path.key] + path.context / 2) + path.extra)
        elif path.key in chosen:
            added += _overhead(path, around, now, loop, form)
    added += sum(_sorting(group, chosen, runs, diverged) for group in loop.groups)
    code += moved
    waiting += moved * (loop.waiting / loop.own if loop.own else 0.0)
    memory = max(loop.memory - sum(path.saved for path in loop.paths if path.key in chosen), 0.0)
    return Needs(code, added, memory, waiting, max(atomics, 0.0))


def _of_subsets(slots: Mapping[frozenset[int], float], chosen: Collection[int]) -> float:
    """The sum of ``slots`` whose keys are all chosen."""
    return sum(each for keys, each in slots.items() if keys.issubset(chosen))


def break_even(loop: LoopFlow, path: PathFlow, chosen: Collection[int] = ()) -> float | None:
    """The slots of one run of the path at which collecting it in addition to ``chosen`` begins to pay off, counting
    instructions alone (`time` counts memory traffic, too); None if it never does, because no lanes idle in it.
    """
    others = frozenset(chosen) - {path.key}
    more = slots(loop, others | {path.key}) - slots(loop, others)
    around = _around(path, loop, others)
    before, after = _runs(path, around, False, loop), _runs(path, around, True, loop)
    full = path.packed / path.slots if path.slots else 1.0
    saved = _runs_of(before, full) - _runs_of(after, full)
    # Both are linear in the cost of the path: the rest of the difference is overhead.
    return max(more + saved * path.slots, 0.0) / saved if saved > 1e-9 else None


def _runs_of(runs: _Runs, full: float) -> float:
    """What all ``runs`` cost, in units of a run as warps come now; a run by a full warp costs ``full`` units."""
    return runs.packed * full + runs.warps - runs.packed


def worth(path: PathFlow) -> float:
    """What decides among paths if not all can be collected: the cost of a run, times the runs that full warps save."""
    return path.slots * max(path.warps - path.full, 0.0)


@dataclass(frozen=True, slots=True)
class Limit:
    """At most ``most`` of the paths ``keys`` may be collected."""

    keys: frozenset[int]
    most: int


def choose(loop: LoopFlow, kept: Collection[int] = (), limits: Sequence[Limit] = ()) -> frozenset[int]:
    """The paths to collect. All are chosen at first. While more are chosen than a limit allows, the path of least
    `worth` among the limit's paths is dropped, even one in ``kept``. Then, as long as the loop gets no slower, the path
    or group of sorted paths whose removal leaves the loop fastest is dropped; paths in ``kept`` stay. What is inside a
    loop of tasks is dropped with it. None are chosen if none are ``kept`` and the rest together gain too little.
    """
    chosen = frozenset(path.key for path in loop.paths)
    worths = {path.key: worth(path) for path in loop.paths}
    while (over := next((x for x in limits if len(chosen & x.keys) > x.most), None)) is not None:
        ways = _without_one(loop, chosen, chosen - over.keys, forced=True)
        chosen = min(ways, key=lambda way: sum(worths[key] for key in chosen - way))
    while ways := _without_one(loop, chosen, kept):
        best = min(ways, key=lambda way: time(loop, way))
        if time(loop, best) > time(loop, chosen):
            break
        chosen = best
    return chosen if kept or gain(loop, chosen) >= LEAST_GAIN else frozenset()


def _without_one(
    loop: LoopFlow, chosen: frozenset[int], kept: Collection[int], forced: bool = False
) -> Sequence[frozenset[int]]:
    """All ways to take one path, or one group of sorted paths, from ``chosen``. A loop takes what is inside it along,
    and goes only if none of that is ``kept``; if ``forced``, only the path itself must not be ``kept``.
    """
    found = []
    for path in loop.paths:
        gone = _inside(loop, path) if path.is_loop else frozenset({path.key})
        held = {path.key} if forced else gone
        if path.key in chosen and held.isdisjoint(kept):
            found.append(chosen - gone)
    # If a group does not pay off, one path less may cost even more.
    groups_chosen = () if forced else (group.collected(chosen) for group in loop.groups)
    return [
        *found,
        *(
            chosen - (sorted_paths - frozenset(kept))
            for sorted_paths in groups_chosen
            if sorted_paths.difference(kept)
        ),
    ]


def _inside(loop: LoopFlow, path: PathFlow) -> frozenset[int]:
    found = {path.key}
    for inner in loop.paths:
        if inner.parent in found:
            found.add(inner.key)
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class _Runs:
    """Runs of a path: how many warps make, how many full warps their lanes would make, whether full warps run it, and
    the runs ``left`` when the marked loop ends, whose warps are no fuller than now.
    """

    warps: float
    full: float
    full_warps: bool
    left: float = 0.0

    @property
    def packed(self) -> float:
        """The runs by full warps."""
        return self.warps - self.left if self.full_warps else 0.0


def _whole(loop: LoopFlow, chosen: Collection[int]) -> _Runs:
    """The runs of the marked loop's own code."""
    return _Runs(loop.begun if chosen else 1.0, 1.0, False)


def _runs(path: PathFlow, around: _Runs, collected: bool, loop: LoopFlow) -> _Runs:
    now = _runs_now(path, around, loop)
    if not collected:
        return now
    # No task begins later than if lanes waited for one another in each iteration, as they do now.
    most = max(now.warps - path.full, 0.0)
    # A lane whose task has ended waits for the next vote; the last 32 expanded inner iterations are half as many.
    late = path.entered * (path.chunk - 1) / 2 if path.is_loop else 0.0
    late += _wanted(path, around) / 2 if path.expanded else 0.0
    left = 0.0 if path.expanded else min(path.late, most)
    return _Runs(path.full + left + min(late, most - left), path.full, True, left)


def _runs_now(path: PathFlow, around: _Runs, loop: LoopFlow) -> _Runs:
    """The runs of a path that is not collected."""
    if not around.full_warps:
        return _Runs(path.warps, path.full, False)
    # Full warps run the code around it: fewer of them, each with more lanes that may take this path.
    if not path.is_loop or not path.entered or not path.entries:
        share = path.full / around.full if around.full else 0.0
        return _Runs(around.warps * max(any_of(share), share), path.full, True)
    comes = path.entered / around.full if around.full else 0.0
    iterations = longest(
        path.full / path.entered,
        path.warps / path.entries,
        LANES * path.entered / path.entries,
        LANES * comes,
    )
    return _Runs(around.warps * any_of(comes) * iterations, path.full, True)


def _wanted(path: PathFlow, around: _Runs) -> float:
    """The warp iterations in which any lane reaches the path."""
    share = path.entered / around.full if around.full else 0.0
    return around.warps * any_of(share) if around.full_warps else min(path.entries, around.warps)


def _sorting(
    group: SortedGroup, chosen: Collection[int], runs: Mapping[int, _Runs], diverged: Mapping[int, float]
) -> float:
    """The slots of a warp iteration that sorting takes for a group, and those lost on its paths that are not collected.
    ``diverged`` is the share of warp iterations in which the lanes differ, by path.
    """
    ours = group.collected(chosen)
    if not ours:
        return 0.0
    left = sum(runs[key].warps for key in group.keys - ours if key not in chosen)
    sort = SORT + SORT_BIT * len(ours).bit_length() + group.context / 2
    few = len(ours) <= CHAIN
    sort += ASKED * len(ours) if few else 0.0
    return AGREE + (0.0 if few else JUMP) + max(diverged[key] for key in ours) * sort + left * APART


def _around(path: PathFlow, loop: LoopFlow, chosen: Collection[int]) -> _Runs:
    runs: dict[int | None, _Runs] = {None: _whole(loop, chosen)}
    for other in loop.paths:
        runs[other.key] = _runs(other, runs[other.parent], other.key in chosen, loop)
    return runs[path.parent]


def _overhead(path: PathFlow, around: _Runs, now: _Runs, loop: LoopFlow, form: Overhead) -> float:
    """The slots that the votes and the stack of a collected path take."""
    iterations = around.warps
    if not iterations:
        return 0.0
    wanted = _wanted(path, around)
    if path.expanded:
        each = WINDOW + path.context / 2 + path.extra
        return (iterations - wanted) * form.unwanted + wanted * EXPAND + now.warps * each
    vote = form.loop_vote if path.is_loop else form.wanted
    total = (iterations - wanted) * form.unwanted + wanted * (vote + path.context) + now.warps * path.extra
    if path.is_loop and path.entered > 0:
        rounds, ends = now.warps / path.chunk, _ends(path, now)
        total += rounds * (ROUND + SKIPPED * path.context) + ends * (1 - SKIPPED) * path.context
    return total


def _ends(path: PathFlow, now: _Runs) -> float:
    """How often tasks of a collected path end in a warp: after each run; for a loop, in each round between two votes in
    which any lane leaves it.
    """
    if not path.is_loop or path.expanded or not path.entered:
        return now.warps
    return now.warps / path.chunk * any_of(path.entered * path.chunk / max(path.full, path.entered))
