"""The numbers behind the decision for one region: its code's static cost, and how often lanes reach each path.

With a profile, both are what was counted. Without one, lanes are assumed to take a path independently of each other,
each with probability `DEFAULT_TAKEN` (1 / n for a switch with n cases). Loops are assumed to run `DEFAULT_TRIP_COUNT`
iterations on average, or `CHUNKS` times the u of ``chunk(u)`` if that is more. The iterations of a `for` are spread
evenly between none and twice the average; a `while` ends with the same probability in each inner iteration.
`cccopt.ccc.profitability.model` states the other assumptions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from cccopt.analysis.affine import access_size
from cccopt.analysis.cost import DEFAULT_TRIP_COUNT, Costs
from cccopt.ccc.function.annotations import Annotation
from cccopt.ccc.function.view import View
from cccopt.ccc.legality.exclusive import FEWEST
from cccopt.ccc.outcome.choices import Form
from cccopt.ccc.plan.plan import PathPlan, Plan
from cccopt.ccc.plan.stack import SHARED, StackCode
from cccopt.ccc.profitability.combined_atomics import COMBINED, is_combined
from cccopt.ccc.profitability.flows import LANES, LoopFlow, PathFlow, SortedGroup, any_of, slowest
from cccopt.ccc.profitability.model import DEFAULT_TAKEN, GLOBAL_WORD, SECTOR, SUM, WORD
from cccopt.ccc.profitability.profile import RegionProfile
from cccopt.ccc.regions.marked_loops import Region
from cccopt.ccc.regions.paths import Path
from cccopt.clauses import Kind
from cccopt.ptx import isa
from cccopt.ptx.ir import Address, Instruction, Register, Vector

DEFAULT_CONTEXT = 8
"""Bytes of a context that has not been planned."""


CHUNKS = 4
"""A user who asks for a vote every u inner iterations expects several times u of them."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A region's numbers; paths go by their index in `Region.all_paths`. ``assumed`` means that no profile fits."""

    flow: LoopFlow
    assumed: bool


def estimate(
    view: View, region: Region, plan: Plan | None, measured: Mapping[int, RegionProfile] | None
) -> Estimate:
    """The numbers of a region; ``plan`` gives contexts and the loop's form, ``measured`` is its function's profile."""
    maker = _Maker(view, region, plan, view.costs)
    form = Form.SPLIT if plan is None or plan.split else Form.IDLE_LANES
    annotations = [region.annotation, *(path.annotation for path in region.all_paths())]
    fits = measured is not None and all(fits_to(measured, a) for a in annotations)
    if measured is not None and fits and measured[region.annotation.region].warps:
        return Estimate(maker.from_profile(measured, form), False)
    return Estimate(maker.assumed(form), True)


def fits_to(measured: Mapping[int, RegionProfile], annotation: Annotation) -> bool:
    """Whether a function's profile has the region of ``annotation``, with the same kind."""
    number = annotation.region
    return number in measured and measured[number].kind == annotation.kind


@dataclass(frozen=True, slots=True)
class _PathRuns:
    """How often warps and lanes run a path and what a run costs, as in `PathFlow`. Without a profile, atomic operations
    are not counted (``atomics`` is None).
    """

    entries: float
    entered: float
    warps: float
    full: float
    slots: float
    packed: float
    saved: float
    late: float = 0.0
    atomics: float | None = None
    packed_atomics: float = 0.0


@dataclass(frozen=True, slots=True)
class _Maker:
    view: View
    region: Region
    plan: Plan | None
    costs: Costs

    @property
    def _own(self) -> frozenset[str]:
        """The code of the marked loop without that of its paths."""
        return self.region.nodes.difference(*(path.nodes for path in self.region.paths))

    def from_profile(self, measured: Mapping[int, RegionProfile], form: str) -> LoopFlow:
        """The flow according to a profile in which the loop has run."""
        loop = measured[self.region.annotation.region]
        copies = Counter(path.annotation.region for path in self.region.all_paths())
        found: list[PathFlow] = []
        for key, path in enumerate(self.region.all_paths()):
            of = measured[path.annotation.region]
            iterations = loop.warps * copies[path.annotation.region]
            full = of.lanes / LANES
            static = self._slots(path)
            found.append(
                self._flow(
                    key,
                    path,
                    _PathRuns(
                        entries=of.entries / iterations,
                        entered=of.entered / LANES / iterations,
                        warps=of.warps / iterations,
                        full=full / iterations,
                        slots=of.issued / of.warps if of.warps else static,
                        packed=of.packed / full if full else static,
                        saved=self._coalesced(path) * full / iterations * SECTOR,
                        late=_late(of, path, loop) / copies[path.annotation.region],
                        atomics=of.atomics / of.warps * COMBINED if of.warps else 0.0,
                        packed_atomics=of.packed_atomics / full * COMBINED if full else 0.0,
                    ),
                )
            )
        return LoopFlow(
            loop.issued / loop.warps,
            loop.sectors * SECTOR / loop.warps,
            form,
            tuple(found),
            self._groups(),
            loop.time / loop.warps,
            loop.issued
            / loop.warps
            * cycles_per_slot(self.view, self._own, self.region.nodes, self.region.header),
            begun_together(loop) if self.plan is not None and self.plan.split else 1.0,
            self._spared(self.costs.of_statement),
            loop.atomics / loop.warps * COMBINED,
            self._spared(self._atomics),
        )

    def assumed(self, form: str) -> LoopFlow:
        """The flow that is assumed without a profile."""
        blocks = self.view.blocks_of(self.region.nodes)
        header = self.view.block_of_name[self.region.header]
        sectors = self._sectors(self._own)
        found: list[PathFlow] = []
        for key, path in enumerate(self.region.all_paths()):
            parent = self._parent(path)
            around = found[parent] if parent is not None else None
            warps, full = (around.warps, around.full) if around is not None else (1.0, 1.0)
            lanes = LANES * full / warps if warps else 0.0
            if path.is_loop:
                entries, entered = warps, full
                mean = max(DEFAULT_TRIP_COUNT, CHUNKS * (path.annotation.chunk or 1))
                warps, full = warps * max(_longest(path, mean, lanes), mean), full * mean
            else:
                share = self._share(path)
                warps, full = warps * any_of(share, lanes), full * share
                entries, entered = warps, full
            slots = self._slots(path)
            # A profile would see each lane read an array of its own.
            apart = self._coalesced(path)
            sectors += full * (self._sectors(_own(path)) + max(apart, 0.0))
            runs = _PathRuns(entries, entered, warps, full, slots, slots, full * apart * SECTOR)
            found.append(self._flow(key, path, runs))
        slots = self.costs.of_blocks(self.view.blocks_of(self._own), blocks, header)
        return LoopFlow(
            slots,
            sectors * SECTOR,
            form,
            tuple(found),
            self._groups(),
            spared=self._spared(self.costs.of_statement),
        )

    def _flow(self, key: int, path: Path, runs: _PathRuns) -> PathFlow:
        """The flow of a path from its runs and, if it has a plan, from what the plan says about its tasks."""
        planned = self._planned(path)
        context = DEFAULT_CONTEXT / 4 * WORD
        extra = 0.0
        expanded = planned is not None and planned.counted is not None
        if planned is not None:
            again = sum(self.costs.of_statement(i) for i in planned.after.recomputed)
            context = context_slots(planned.stack) + again
            extra = sum(isa.facts(i).slots for i in planned.context.restore) + SUM * len(planned.results.sums)
        cycles = cycles_per_slot(self.view, _own(path), path.nodes, path.begin if path.is_loop else None)
        return PathFlow(
            key,
            self._parent(path),
            runs.entries,
            runs.entered,
            runs.warps,
            runs.full,
            runs.slots,
            runs.packed,
            context,
            extra,
            path.is_loop,
            (path.annotation.chunk or 1) if planned is None else planned.chunk,
            expanded,
            runs.saved,
            runs.late,
            runs.slots * cycles,
            runs.packed * cycles,
            self._tail(planned, self.costs.of_statement),
            runs.atomics or 0.0,
            runs.packed_atomics,
            0.0 if runs.atomics is None else self._tail(planned, self._atomics),
        )

    def _atomics(self, index: int) -> float:
        """The slots that pass for a statement if it is a combined atomic operation."""
        return COMBINED * is_combined(self.view, index)

    def _tail(self, planned: PathPlan | None, cost: Callable[[int], float]) -> float:
        """The ``cost`` of the code after a path that runs with its tasks."""
        if planned is None or planned.counted is not None:
            return 0.0
        return sum(cost(index) for index in planned.after.sunk)

    def _spared(self, cost: Callable[[int], float]) -> Mapping[frozenset[int], float]:
        """What `LoopFlow.spared` says: such code follows the paths with whose tasks it runs. ``cost`` is that of a
        statement.
        """
        found: dict[frozenset[int], float] = {}
        if self.plan is not None:
            keys = {path.begin: key for key, path in enumerate(self.region.all_paths())}
            sunk = {keys[path.path.begin]: frozenset(path.after.sunk) for path in self.plan.all_paths()}
            for index in self.plan.dropped:
                followed = frozenset(key for key, code in sunk.items() if index in code)
                found[followed] = found.get(followed, 0.0) + cost(index)
        return found

    def _coalesced(self, path: Path) -> float:
        """How many fewer sectors an inner iteration of a full warp touches once the loop is expanded. Now each lane
        mostly reads an array of its own; then all lanes read one array after the other. Negative if lanes read adjacent
        places now.
        """
        planned = self._planned(path)
        if planned is None or planned.counted is None:
            return 0.0
        view, after = self.view, planned.counted.strides
        saved = 0
        for index, instruction in view.instructions(path.nodes):
            for base in (o.base for o in instruction.operands if isinstance(o, Address)):
                if isa.facts(instruction).space in ("global", "generic") and isinstance(base, Register):
                    now = view.lane_strides.of_access(index)
                    apart = LANES if now is None else max(abs(now), access_size(instruction))
                    saved += min(apart, LANES) - min(abs(after.get(base.name, apart)), LANES)
        return saved

    def _groups(self) -> tuple[SortedGroup, ...]:
        """The paths that the plan sorts."""
        if self.plan is None:
            return ()
        keys = {path.begin: key for key, path in enumerate(self.region.all_paths())}
        return tuple(
            SortedGroup(
                frozenset(keys[path.path.begin] for path in sorting.paths),
                FEWEST,
                context_slots(sorting.stack),
                sorting.stack.shared_bytes,
            )
            for sorting in self.plan.sortings
        )

    def _planned(self, path: Path) -> PathPlan | None:
        if self.plan is None:
            return None
        return next((p for p in self.plan.all_paths() if p.path.begin == path.begin), None)

    def _parent(self, path: Path) -> int | None:
        """The index of the innermost path around ``path``."""
        paths = self.region.all_paths()
        around = (key for key, other in enumerate(paths) if any(c is path for c in other.children))
        return next(around, None)

    def _share(self, path: Path) -> float:
        group = path.annotation.group
        cases = {
            p.annotation.region for p in self.region.all_paths() if group and p.annotation.group == group
        }
        return 1 / len(cases) if len(cases) > 1 else DEFAULT_TAKEN

    def _slots(self, path: Path) -> float:
        """The static cost of a run of the path's own code; for a loop, of one inner iteration."""
        one_iteration_of = self.view.block_of_name[path.begin] if path.is_loop else None
        return self.costs.of_blocks(
            self.view.blocks_of(_own(path)), self.view.blocks_of(path.nodes), one_iteration_of
        )

    def _sectors(self, nodes: Collection[str]) -> float:
        """The fewest sectors of global memory that one run of ``nodes`` by a full warp touches: neighboring lanes touch
        neighboring elements, or all lanes the same one.
        """
        total = 0.0
        for index, instruction in self.view.instructions(nodes):
            facts = isa.facts(instruction)
            if facts.memory is not isa.Memory.NONE and facts.space in ("global", "generic"):
                total += 1 if self._is_uniform(index, instruction) else _bytes(instruction)
        return total

    def _is_uniform(self, index: int, instruction: Instruction) -> bool:
        bases = [o.base for o in instruction.operands if isinstance(o, Address)]
        return all(
            self.view.uniformity.is_uniform_use(index, base.name)
            for base in bases
            if isinstance(base, Register)
        )


def cycles_per_slot(view: View, nodes: Collection[str], inside: Collection[str], header: str | None) -> float:
    """The cycles that a warp running alone takes for each slot of ``nodes`` when ``inside`` runs once, or when the loop
    with the given ``header`` iterates once.
    """
    one_iteration_of = None if header is None else view.block_of_name[header]
    return view.costs.cycles_per_slot(view.blocks_of(nodes), view.blocks_of(inside), one_iteration_of)


def _own(path: Path) -> frozenset[str]:
    """The code of a path without that of the paths in it."""
    return path.nodes.difference(*(child.nodes for child in path.children))


def begun_together(loop: RegionProfile) -> float:
    """How many iterations the warp would run for each one that it runs now if all its lanes ran equally many and
    began them together.
    """
    return min(loop.lanes / loop.entered * loop.entries / loop.warps, 1.0) if loop.entered else 1.0


def _late(of: RegionProfile, path: Path, loop: RegionProfile) -> float:
    """The runs of a path for tasks that are left when the marked loop ends, per iteration of that loop by a warp. On
    average, half a warp of tasks is left; with a loop of tasks, each lane has one, and the slowest lane goes on
    longest.
    """
    if not of.entries or not of.entered:
        return 0.0
    longer = of.warps / of.entries - of.lanes / of.entered if path.is_loop else 0.5
    most = max(of.warps - of.lanes / LANES, 0.0)
    return min(max(longer, 0.0) * loop.entries, most) / loop.warps


def context_slots(stack: StackCode) -> float:
    """The cost of storing and loading a context, in issue slots."""
    size = sum(word.size for _, word in stack.words())
    return size / 4 * (WORD if stack.space is SHARED else GLOBAL_WORD)


def _longest(path: Path, mean: float, lanes: float) -> float:
    """The expected inner iterations of the slowest of ``lanes`` lanes that run ``mean`` on average."""
    if path.annotation.kind == Kind.FOR_VARIABLE:
        return 2 * mean * lanes / (lanes + 1)
    return mean * slowest(lanes)


def _bytes(instruction: Instruction) -> float:
    """Bytes that a lane loads or stores; the neighboring lanes of a full warp touch as many sectors."""
    bits = isa.WIDTHS.get(instruction.parts[-1], 32)
    elements = max((len(o.elements) for o in instruction.operands if isinstance(o, Vector)), default=1)
    return bits / 8 * elements
