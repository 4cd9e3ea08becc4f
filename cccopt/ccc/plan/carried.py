"""What a rewrite in the carried form needs to know about one region: what waits at each point, and how many may.

A warp serves a point when 32 of its lanes hold a token that waits there or find one on the stack. It serves later
points first, so tokens leave the loop before others arrive where they wait. Tokens that lanes hold at other points are
pushed meanwhile, and no lane begins an iteration until fewer than 32 tokens wait at each point. So the stack of a point
needs

    32 slots            if it is the only one: its tokens are pushed where there are fewer than 32 of them in all
    63                  if no other point is on a cycle with it: up to 31 wait when a round begins, 32 more come from
                        lanes or from one earlier point, and none comes while 32 of them wait
    31 n + 32           if n points are on one cycle (a marked inner loop and a path in it): 31 wait at each when a
                        round begins, in which lanes bring 32 more

The last number bounds the tokens of all n points together, so two stacks fill one array from both of its ends if that
takes less space.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from cccopt.analysis import effects
from cccopt.ccc.function.view import View
from cccopt.ccc.legality.carried_region import CarriedRegion
from cccopt.ccc.legality.carrying import Advance
from cccopt.ccc.legality.local_context import LocalWord
from cccopt.ccc.legality.reductions import Reduction
from cccopt.ccc.plan.block_size import block_threads, check_size, whole_warps
from cccopt.ccc.plan.chunks import MOVING, chunk_of
from cccopt.ccc.plan.context import LiveIn, Placement, decide, identities, rebuilt
from cccopt.ccc.plan.form import is_split
from cccopt.ccc.plan.local_words import local_live_ins, local_value
from cccopt.ccc.plan.partials import Partial, Slots, slots
from cccopt.ccc.plan.pool import Claim
from cccopt.ccc.plan.remarks import pool_remarks, reordered, stack_remarks
from cccopt.ccc.plan.stack import SLOTS, Layout, StackCode, StateSpace, Value, layout
from cccopt.ccc.plan.stack_room import ANY_MEMORY, StackOptions, StackRoom, first_that_fits
from cccopt.ccc.regions.marked_loops import Region
from cccopt.ccc.regions.paths import Path
from cccopt.ccc.regions.points import Point, marked_code
from cccopt.diagnostic import Diagnostic
from cccopt.ptx import isa
from cccopt.ptx.ir import Guard, Instruction, Operand, Register


@dataclass(frozen=True)
class PointPlan:
    """One point: ``path`` is its segment; ``flag`` says in each lane whether the token that it holds is there; ``top``
    counts the tokens on the stack. The context holds ``values``. If an earlier point has the same stack, this one fills
    it ``from_end``. In an inner loop, a token runs the nodes ``loop`` before it reaches another point, ``chunk`` times
    between two visits to the dispatcher; for a path, there are none.
    """

    path: Path
    number: int
    live_ins: tuple[LiveIn, ...]
    stack: StackCode
    values: tuple[Value, ...]
    from_end: bool
    top: Register
    flag: Guard
    advance: Advance
    loop: frozenset[str]
    chunk: int

    @property
    def registers(self) -> tuple[Value, ...]:
        """The values of the context that wait in registers of a lane before they are pushed."""
        return tuple(value for value in self.values if value.address is None)

    @property
    def context_bytes(self) -> int:
        """Bytes of one context."""
        return sum(word.size for _, word in self.stack.words())

    def phase(self, what: str) -> str:
        """The name of a phase of this point in labels: ``push_1``."""
        return f"{what}_{self.number}"


@dataclass(frozen=True)
class CarriedPlan:
    """One region in the carried form: its points in the order in which an iteration reaches them.

    Tokens run on registers of their own: ``uses`` and ``definitions`` map names of the program to them. ``code`` is the
    statements that tokens run. ``least`` is how many tokens a point must have to be served: 32, and 1 at the end. With
    ``split``, the loop ends with the first lane that has no iteration left, and the original one goes on. Local
    variables with words that wait are aligned to ``alignments``, by name. ``stack_bytes`` is what the stacks and the
    owners' slots take of shared memory; with a ``claim``, the stacks are in global memory.
    """

    region: Region
    points: tuple[PointPlan, ...]
    code: frozenset[int]
    uses: Mapping[str, Operand]
    definitions: Mapping[str, Register]
    split: bool
    slots_per_warp: int
    stack_name: str
    stack_bytes: int
    claim: Claim | None
    bases: Mapping[int, Register]
    lane: Register
    lanes_before: Register
    least: Register
    rebuilt: tuple[Instruction, ...]
    threads: int
    slots: Slots
    partials: tuple[Partial, ...]
    alignments: Mapping[str, int]
    remarks: tuple[Diagnostic, ...]

    @property
    def owner(self) -> Register | None:
        """The register of a token with the address of its owner's slots."""
        found = self.uses.get(self.slots.address.name)
        return found if isinstance(found, Register) else None

    def token(self, name: str) -> Register:
        """The register of the token that stands for ``name``."""
        register = self.uses[name]
        assert isinstance(register, Register)
        return register

    def rewrite(self, instruction: Instruction) -> Instruction:
        """The instruction on the registers of the token."""
        return isa.rename(instruction, self.uses, self.definitions)


def make_carried_plan(carried: CarriedRegion, options: StackOptions = ANY_MEMORY) -> CarriedPlan:
    """The plan for a region that `cccopt.ccc.legality.carried_region` accepts.

    Raises Refusal if the stacks' size or a context cannot be handled.
    """
    return first_that_fits(options, lambda space: _CarriedPlanner(carried, space).plan(options))


@dataclass(frozen=True)
class _Array:
    """A stack of the points ``begins``; a second point fills it from its end."""

    begins: tuple[str, ...]
    values: tuple[Value, ...]
    slots: int


def _room(arrays: Sequence[_Array]) -> int:
    """Bytes that the arrays of a warp take; all have equally many slots."""
    most = max(array.slots for array in arrays)
    return most * sum(layout(array.values, SLOTS, 0).context_bytes for array in arrays)


class _CarriedPlanner:
    """Makes the plan of one region."""

    def __init__(self, carried: CarriedRegion, space: StateSpace) -> None:
        self.carried = carried
        self.view: View = carried.view
        self.region = carried.region
        self.carrying = carried.carrying
        self.threads, self.block_remarks = block_threads(self.view.function, self.region)
        self.rebuilt: list[Instruction] = []
        self.slots = slots(self.carrying.reductions, whole_warps(self.threads), self.view.names)
        self.room = StackRoom.of(self.view, space, self.threads, self.slots)

    def plan(self, options: StackOptions) -> CarriedPlan:
        view, names = self.view, self.view.names
        uses: dict[str, Operand] = {}
        definitions = {name: names.register(view.types[name]) for name in sorted(self._written)}
        uses.update(definitions)
        partials = tuple(self._partial(r, definitions) for r in self.carrying.reductions)
        for live in self._placements.values():
            if live.decision == Placement.REBUILT:
                code, uses[live.name] = rebuilt(view, live)
                self.rebuilt += code
            elif live.decision == Placement.COLLECTED and live.name not in uses:
                uses[live.name] = names.register(live.type)
        arrays = self._arrays()
        per_warp = max(array.slots for array in arrays)
        end = self.room.start
        layouts: dict[str, Layout] = {}
        for array in arrays:
            one = layout(array.values, per_warp * self.room.warps, end)
            layouts.update(dict.fromkeys(array.begins, one))
            end += (one.bytes + 7) // 8 * 8
        shared, claim = (
            self.room.shared_bytes(end),
            self.room.claim(end, options, self.region.annotation.place),
        )
        check_size(view, self.region, shared, self.room.slots.bytes)
        sizes = sorted({word.size for one in layouts.values() for word in one.words}, reverse=True)
        bases = self.room.bases(sizes)
        points = self._points(arrays, layouts, bases)
        return CarriedPlan(
            region=self.region,
            points=points,
            code=self.carrying.code,
            uses=uses,
            definitions=definitions,
            split=is_split(view, self.region),
            slots_per_warp=per_warp,
            stack_name=names.label(f"stack_{self.region.annotation.region}"),
            stack_bytes=shared,
            claim=claim,
            bases=bases,
            lane=names.register("b32"),
            lanes_before=names.register("b32"),
            least=names.register("b32"),
            rebuilt=tuple(self.rebuilt),
            threads=self.threads,
            slots=self.slots,
            partials=partials,
            alignments=self._alignments(),
            remarks=(
                *(self.block_remarks if shared else ()),
                *stack_remarks(view, self.region, shared),
                *pool_remarks(self.region, claim),
                *reordered(self.region, self.carrying.reductions),
            ),
        )

    def _alignments(self) -> Mapping[str, int]:
        """The size in bytes of the largest word that waits, for each local variable."""
        found: dict[str, int] = {}
        for path in self.region.paths:
            for word in self._local_words(path):
                found[word.variable] = max(word.size, found.get(word.variable, 0))
        return found

    @cached_property
    def _written(self) -> frozenset[str]:
        """The registers that tokens write."""
        return frozenset(name for i in self.carrying.code for name in effects.writes(self.view.body[i]))

    @cached_property
    def _placements(self) -> Mapping[str, LiveIn]:
        """What becomes of each register that tokens read: the same at all points, because tokens hand it on."""
        view = self.view
        found: dict[str, list[LiveIn]] = {}
        updated = {r.register for r in self.carrying.reductions}
        for path, point in zip(self.region.paths, self.region.points, strict=True):
            begin = view.cfg.blocks[view.block_of_name[path.begin]].start
            for name in sorted(self.carrying.needs(point) - updated):
                live = decide(view, self.region, path, begin, name, name in self._written)
                found.setdefault(name, []).append(live)
            for live in self._identities[path.begin]:
                found.setdefault(live.name, []).append(live)
        chosen: dict[str, LiveIn] = {}
        for name, lives in found.items():
            same = all((x.decision, x.slice) == (lives[0].decision, lives[0].slice) for x in lives)
            collected = next((x for x in lives if x.decision == Placement.COLLECTED), None)
            if same:
                chosen[name] = lives[0]
            else:
                reason = "not the same at all points" if collected is None else collected.reason
                chosen[name] = LiveIn(name, lives[0].type, Placement.COLLECTED, reason)
        for r in self.carrying.reductions:
            owned = "each task gives its part to its owner's slot in shared memory"
            how = "whichever lane runs the task keeps its contribution" if r.any_lane else owned
            placement = Placement.REDUCED if r.any_lane else Placement.COLLECTED
            reason = f"updated by `{r.operator.sign}`: {how}"
            chosen[r.register] = LiveIn(r.register, view.types[r.register], placement, reason)
        if self.slots.offsets:
            reason = "the address of the reduction slots of the task's owner"
            name = self.slots.address.name
            chosen[name] = LiveIn(name, "b32", Placement.COLLECTED, reason)
        return chosen

    @cached_property
    def _identities(self) -> Mapping[str, Sequence[LiveIn]]:
        """What tokens read of the thread's identity from each point onwards, by the first node of the point."""
        return {
            point.begin: identities(self.view, self.carrying.rest_code(point)) for point in self.region.points
        }

    @cached_property
    def _live_ins(self) -> Mapping[str, tuple[LiveIn, ...]]:
        """The live-ins of each point, by its first node."""
        found: dict[str, tuple[LiveIn, ...]] = {}
        for point in self.region.points:
            names = {*self.carrying.needs(point), *(live.name for live in self._identities[point.begin])}
            if self.slots.offsets:
                names.add(self.slots.address.name)
            found[point.begin] = tuple(self._placements[name] for name in sorted(names))
        return found

    def _points(
        self, arrays: Sequence[_Array], layouts: Mapping[str, Layout], bases: Mapping[int, Register]
    ) -> tuple[PointPlan, ...]:
        """The points with their stacks; ``layouts`` go by the first node of the point."""
        names, points = self.view.names, list[PointPlan]()
        for path, point in zip(self.region.paths, self.region.points, strict=True):
            words = layouts[path.begin]
            at = {size: base for size, base in bases.items() if size in {w.size for w in words.words}}
            points.append(
                PointPlan(
                    path=path,
                    number=len(points) + 1,
                    live_ins=(*self._live_ins[path.begin], *local_live_ins(self._local_words(path))),
                    stack=StackCode(
                        words, self.room.space, at, names, frozenset(v.name for v in self._values(path))
                    ),
                    values=self._values(path),
                    from_end=any(path.begin in array.begins[1:] for array in arrays),
                    top=names.register("b32"),
                    flag=Guard(names.register("pred")),
                    advance=self.carrying.advance(point),
                    loop=self._loop(point),
                    chunk=self._chunk(point),
                )
            )
        return tuple(points)

    def _loop(self, point: Point) -> frozenset[str]:
        """The nodes of an inner iteration that a token runs before it reaches another point."""
        if not point.annotation.variable:
            return frozenset()
        return self.carrying.segment(point) & marked_code(self.view, point, self.region.nodes)

    def _chunk(self, point: Point) -> int:
        loop = self._loop(point)
        return chunk_of(self.view, point.annotation, point.begin, loop, MOVING) if loop else 1

    def _values(self, path: Path) -> tuple[Value, ...]:
        """What the context of a point holds."""
        lives = (x for x in self._live_ins[path.begin] if x.decision == Placement.COLLECTED)
        return (*(Value(x.name, x.type) for x in lives), *map(local_value, self._local_words(path)))

    def _local_words(self, path: Path) -> tuple[LocalWord, ...]:
        """The words of local memory that the context of a point holds."""
        point = next(p for p in self.region.points if p.begin == path.begin)
        return self.carried.local.words(point)

    def _arrays(self) -> Sequence[_Array]:
        """The stacks: one per point or one for two points, whichever takes less space."""
        paths = self.region.paths
        alone = [_Array((p.begin,), self._values(p), self._most([p])) for p in paths]
        pairs = [paths[i : i + 2] for i in range(0, len(paths), 2)]
        shared = [
            _Array(
                tuple(p.begin for p in pair),
                tuple(dict.fromkeys(value for p in pair for value in self._values(p))),
                self._most(pair),
            )
            for pair in pairs
        ]
        return min((alone, shared), key=_room)

    def _most(self, paths: Sequence[Path]) -> int:
        """How many tokens may wait at some points together."""
        if len(self.region.points) == 1:
            return SLOTS
        points = [p for p in self.region.points if any(p.begin == path.begin for path in paths)]
        on_cycle = {point.begin: self.carrying.together(point) for point in points}
        one_cycle = len(points) > 1 and points[1].begin in self.carrying.rest(points[0])
        one_cycle = one_cycle and points[0].begin in self.carrying.rest(points[1])
        each = [2 * SLOTS - 1 if n == 1 else (SLOTS - 1) * n + SLOTS for n in on_cycle.values()]
        return min(max(each) if one_cycle else sum(each), (SLOTS - 1) * len(self.region.points) + SLOTS)

    def _partial(self, reduction: Reduction, definitions: dict[str, Register]) -> Partial:
        """What one token, or all tokens of a lane, add, in the register that replaces the accumulator."""
        register = definitions[reduction.register]
        return Partial(reduction, register, self.slots.offset(reduction))


def partials_of(plan: CarriedPlan, *, owned: bool) -> Iterable[Partial]:
    """The partial results that go to owners' slots if ``owned``, else those of which any lane keeps its share."""
    return (p for p in plan.partials if (p.offset is not None) == owned)
