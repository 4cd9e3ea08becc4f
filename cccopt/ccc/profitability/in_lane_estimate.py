"""What the in-lane form gains, in issue slots for one entry of the marked loop by a warp.

Full warps would run the lanes' inner iterations in ``lanes / 32`` iterations. Without the rewrite, the warp runs
``warps`` of them: in each iteration of the marked loop, as many as its slowest lane. If one loop runs the inner
iterations of m iterations of the marked one, the warp waits only for the lane that is slowest over all m, so its excess
inner iterations shrink with the square root of m. A path at which lanes wait for `WAIT` of them runs for that many at a
time. What is marked in such a path runs as often as before: a lane that leaves it comes back only when its next
iteration takes the path. If it is always the same lanes that reach a point, only these are packed.

If the marked loop is not flattened, lanes begin their iterations and leave their inner loops together, as before.

This costs votes in each round. It also costs the marked loop's own code after each round in which lanes end their inner
loop, repeated until the last of them reaches the loop again. Accesses to memory that lanes made together become
separate ones in different iterations. A lane that makes more iterations of the marked loop than the others makes the
last ones alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt

from cccopt.analysis import effects
from cccopt.analysis.invariance import LoopInvariance
from cccopt.ccc.function.annotations import Annotation
from cccopt.ccc.function.view import View
from cccopt.ccc.outcome.report import Cost, PredictedTime
from cccopt.ccc.plan.in_lane import WAIT, InLanePlan, LanePoint
from cccopt.ccc.profitability.combined_atomics import COMBINED
from cccopt.ccc.profitability.estimate import cycles_per_slot, fits_to
from cccopt.ccc.profitability.flows import LANES, any_of
from cccopt.ccc.profitability.model import AN_INSTRUCTION, SECTOR
from cccopt.ccc.profitability.overlap import Needs, scales
from cccopt.ccc.profitability.profile import RegionProfile
from cccopt.ccc.regions.points import Point, marked_code
from cccopt.ptx import isa
from cccopt.ptx.isa import Memory

VOTE = 4 * AN_INSTRUCTION
"""The dispatcher's test of one point: a comparison, a ballot, a test, a branch."""

VISIT = 4 * AN_INSTRUCTION
"""What lanes run in addition: setting the state, the jump to the dispatcher, the branch to the point."""


_MOST, _FEW = 1000.0, 0.01
"""Bounds of a sum: iterations beyond the first number, and those rarer than the second, do not count."""

_LEVEL = 1.02
"""All lanes count as equal if the slowest runs at most this many times the average number of inner iterations."""


@dataclass(frozen=True, slots=True)
class InLaneEstimate:
    """The numbers of the marked loop, and of all its points except the first."""

    loop: Cost
    points: tuple[Cost, ...]


@dataclass(frozen=True, slots=True)
class _Rounds:
    """A point in one entry of the loop: the warp's runs of it ``before`` and ``after``, and ``full``, the runs if all
    lanes that come there came together. A run costs ``slots`` before and, by a fuller warp, ``fuller`` afterwards. A
    warp running alone takes ``waiting`` cycles for each slot. Lanes that reach an inner loop make ``taken``
    iterations of it. A ``share`` of a lane's iterations reaches the point; lanes that never come there make the
    ``others`` iterations first. ``atomics`` are the slots that pass in a run for atomic operations that ptxas combines.
    """

    slots: float
    fuller: float
    taken: float
    full: float
    before: float
    after: float
    waiting: float
    share: float
    others: float
    atomics: float

    @property
    def level(self) -> bool:
        """Whether all lanes run the point equally often in each iteration, so none gets ahead."""
        return self.share == 1.0 and self.before <= _LEVEL * self.full


def _begun_after(point: LanePoint, rounds: _Rounds) -> float:
    """The iterations that the warp begins after the runs of an inner loop in which lanes end it, until the last of
    these lanes has reached the loop again. Each lane has the same chance of that in each iteration.
    """
    one_of = max(rounds.taken / point.chunk, 1.0)
    lanes = max(LANES / one_of / any_of(1 / one_of), 1.0)
    begun, absent = 0.0, 1.0  # the chance that a lane has not reached the loop yet
    while begun < _MOST and (some := any_of(absent, lanes)) > _FEW:
        begun += some
        absent *= 1 - rounds.share
    return rounds.others + rounds.after / point.chunk * any_of(1 / one_of) * begun


def estimate_in_lane(
    view: View, plan: InLanePlan, measured: Mapping[int, RegionProfile] | None
) -> InLaneEstimate | None:
    """The numbers of a region according to ``measured``, its function's profile. None if no profile fits: it is not
    known how many lanes reach a point together.
    """
    annotations = [annotation for _, annotation in plan.marked()]
    fits = measured is not None and all(fits_to(measured, a) for a in annotations)
    if measured is None or not fits or not measured[plan.region.annotation.region].entries:
        return None
    return _Maker(view, plan, measured).estimate()


@dataclass(frozen=True)
class _Maker:
    """Computes numbers from a profile in which the loop has run."""

    view: View
    plan: InLanePlan
    measured: Mapping[int, RegionProfile]

    def estimate(self) -> InLaneEstimate:
        """All numbers of the region."""
        loop = self.measured[self.plan.region.annotation.region]
        entries = loop.entries
        iterations = loop.warps / entries
        rounds = [self._rounds(p, a, iterations) for p, a in self.plan.marked()[1:]]
        own = loop.issued / loop.warps if loop.warps else 0.0
        meeting = [(p, r) for p, r in self._pairs(rounds) if p not in self.plan.in_place]
        begun = iterations
        if self.plan.flattened:
            # Lanes that end an inner loop begin iterations while others wait, until all reach the loop again.
            ends = [_begun_after(p, r) for p, r in meeting if p.loop and r.taken and not r.level]
            begun = max([iterations, *ends])
            late = any(point.least > 1 for point in self.plan.points)
            begun = min(begun * (4 / 3 if late else 1.0), loop.lanes / entries)
        served = begun + sum(r.after / p.chunk for p, r in meeting)
        votes = served * (VISIT + len(self.plan.points) * VOTE)
        sectors = loop.sectors / entries
        apart = max(sectors, self._accesses() * loop.lanes / entries) if self.plan.flattened else sectors
        before, after = self._times(
            self._needs(own, iterations, [(r, r.before, r.slots) for r in rounds], 0.0, sectors),
            self._needs(own, begun, [(r, r.after, r.fuller) for r in rounds], votes, apart),
        )
        gain = before.total / max(after.total, 1.0 / max(iterations, 1.0))
        costs = tuple(Cost(r.slots, r.taken, gain, None, False) for r in rounds)
        return InLaneEstimate(Cost(own, 1.0, gain, None, False, before, after), costs)

    def _needs(
        self,
        own: float,
        begun: float,
        runs: Sequence[tuple[_Rounds, float, float]],
        votes: float,
        sectors: float,
    ) -> Needs:
        """What an entry of the loop needs if it begins ``begun`` iterations of ``own`` slots each; ``runs`` gives for
        each point how often it is run, and the slots of a run.
        """
        loop = self.measured[self.plan.region.annotation.region]
        code = [(begun * own, self._waiting), *((often * slots, r.waiting) for r, often, slots in runs)]
        waiting = sum(slots * cycles for slots, cycles in code)
        atomics = begun * loop.atomics / max(loop.warps, 1) * COMBINED
        atomics += sum(often * r.atomics for r, often, _ in runs)
        return Needs(sum(slots for slots, _ in code), votes, sectors * SECTOR, waiting, atomics)

    def _times(self, before: Needs, after: Needs) -> tuple[PredictedTime, PredictedTime]:
        """The times of an iteration by a warp, from what an entry of the loop needs."""
        loop = self.measured[self.plan.region.annotation.region]
        iterations = max(loop.warps / loop.entries, 1.0)
        scaled = scales(loop.time / (loop.entries * iterations), before / iterations)
        # Kernels used for fitting are predicted no better with waiting that stays, unless few slow warps are left.
        scaled = replace(scaled, own=1.0 if scaled.own else 0.0)
        return scaled.time(before / iterations), scaled.time(after / iterations)

    @cached_property
    def _codes(self) -> Mapping[str, frozenset[str]]:
        """The code of each point except the first, by its first node, with what is marked in it."""
        nodes = self.plan.region.nodes
        return {p.begin: marked_code(self.view, Point(a, p.begin), nodes) for p, a in self.plan.marked()[1:]}

    @cached_property
    def _waiting(self) -> float:
        """The cycles that a warp running alone takes for each slot of the marked loop's own code."""
        region = self.plan.region
        own = region.nodes.difference(*self._codes.values())
        return cycles_per_slot(self.view, own, region.nodes, region.header)

    def _waiting_at(self, point: LanePoint) -> float:
        """The same for a point's code, without what is marked in it."""
        code = self._codes[point.begin]
        own = code.difference(*(inner for inner in self._codes.values() if inner < code))
        return cycles_per_slot(self.view, own, code, point.begin if point.loop else None)

    def _pairs(self, rounds: Collection[_Rounds]) -> list[tuple[LanePoint, _Rounds]]:
        return [(p, r) for (p, _), r in zip(self.plan.marked()[1:], rounds, strict=True)]

    def _rounds(self, point: LanePoint, annotation: Annotation, iterations: float) -> _Rounds:
        loop = self.measured[self.plan.region.annotation.region]
        of = self.measured[annotation.region]
        slots = of.issued / of.warps if of.warps else 0.0
        atomics = of.atomics / of.warps * COMBINED if of.warps else 0.0
        before, (full, share, others) = of.warps / loop.entries, self._packed(point, of)
        waiting = self._waiting_at(point)
        met = not self._in_path(point)
        if not point.loop or point in self.plan.in_place:
            # As many lanes run it as come together now, or as wait for each other; the last run has fewer.
            waits = met and point not in self.plan.in_place
            after = min(before, max(full, full * LANES / WAIT) + 0.5) if waits else before
            taken = of.lanes / loop.lanes if loop.lanes else 0.0
            return _Rounds(slots, slots, taken, full, before, after, waiting, share, others, atomics)
        flat = met and self.plan.flattened
        after = full + (before - full) / sqrt(max(iterations, 1.0)) if flat else before
        # On average, a lane needs half of its last chunk.
        after += full * of.entered / max(of.lanes, 1) * (point.chunk - 1) / 2
        fuller = max(of.packed * LANES / of.lanes, slots) if flat and of.lanes else slots
        taken = of.lanes / of.entered if of.entered else 0.0
        return _Rounds(slots, fuller, taken, full, before, after, waiting, share, others, atomics)

    def _packed(self, point: LanePoint, of: RegionProfile) -> tuple[float, float, float]:
        """The runs of a point in an entry of the marked loop if all lanes that ever reach it came together, the share
        of these lanes' iterations that reaches it, and the iterations of lanes that never do.
        """
        loop = self.measured[self.plan.region.annotation.region]
        around = self.measured[self._loop_around(point)]
        if not (of.entered and loop.lanes and around.lanes):
            return of.lanes / LANES / loop.entries, 1.0, 0.0
        # The lane that runs the most iterations runs as many as the warp does now, and the others end earlier.
        iterations = loop.warps / loop.entries
        full = iterations * of.lanes / loop.lanes
        if self._has_lanes_of_its_own(point):
            return full / min(of.entered / around.lanes, 1.0), 1.0, iterations
        return full, min(of.entered / loop.lanes, 1.0), 0.0

    def _has_lanes_of_its_own(self, point: LanePoint) -> bool:
        """Whether a branch that goes the same way in each iteration decides which lanes reach a point: then these
        come each time, and the others never fill its warps.
        """
        view, invariance = self.view, self._invariance
        branches = view.uniformity.divergent_control(view.block_of_name[point.begin]) & invariance.blocks
        ends = [view.cfg.blocks[b].statements()[-1] for b in branches if len(view.cfg.successors[b]) > 1]
        return any(all(invariance.holds(end, name) for name in effects.reads(view.body[end])) for end in ends)

    @cached_property
    def _invariance(self) -> LoopInvariance:
        blocks = self.view.blocks_of(self.plan.region.nodes)
        return LoopInvariance(self.view.function, self.view.reaching, blocks)

    def _loop_around(self, point: LanePoint) -> int:
        """The number of the innermost marked loop around a point."""
        code = self._codes[point.begin]
        loops = [(p, a) for p, a in self.plan.marked()[1:] if p.loop and code < self._codes[p.begin]]
        least = min(loops, key=lambda loop: len(self._codes[loop[0].begin]), default=None)
        return (self.plan.region.annotation if least is None else least[1]).region

    def _in_path(self, point: LanePoint) -> bool:
        """Whether a point is in a path at which lanes wait: lanes that leave it come back when their next iteration
        takes the path, and until then no lane takes their place.
        """
        code = self._codes[point.begin]
        return any(code < self._codes[p.begin] for p, _ in self.plan.marked()[1:] if self._is_waited_for(p))

    def _is_waited_for(self, point: LanePoint) -> bool:
        return not point.loop and point not in self.plan.in_place

    def _accesses(self) -> int:
        """The accesses to global memory in an iteration, not counting paths and inner loops."""
        own = self.plan.region.nodes.difference(*self._codes.values())
        facts = (isa.facts(i) for _, i in self.view.instructions(own))
        return sum(f.memory is not Memory.NONE and f.space in ("global", "generic") for f in facts)
