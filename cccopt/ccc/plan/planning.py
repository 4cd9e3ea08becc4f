"""What a rewrite needs to know about one region, decided before anything is moved: contexts, stacks, names, form."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from cccopt.analysis import effects
from cccopt.ccc.function.code import op
from cccopt.ccc.function.view import View
from cccopt.ccc.legality.counted_loops import CountedLoop, counted_loop, may_expand
from cccopt.ccc.legality.reductions import Reduction
from cccopt.ccc.legality.region_analysis import RegionAnalysis
from cccopt.ccc.legality.rules import check, check_deferred
from cccopt.ccc.legality.sunk_code import SunkCode
from cccopt.ccc.outcome.choices import Form
from cccopt.ccc.plan.block_size import block_threads, check_size, whole_warps
from cccopt.ccc.plan.chunks import MOVING, chunk_of
from cccopt.ccc.plan.compression import Compressed, compress, compress_together
from cccopt.ccc.plan.context import LiveIn, Placement, decide, live_ins, rebuilt
from cccopt.ccc.plan.form import is_split
from cccopt.ccc.plan.partials import Partial, slots
from cccopt.ccc.plan.plan import (
    CodeAfter,
    PartialResults,
    PathPlan,
    Plan,
    Sorting,
    TaskContext,
    TaskRegisters,
    sorted_slots,
)
from cccopt.ccc.plan.remarks import pool_remarks, reordered, stack_remarks
from cccopt.ccc.plan.rematerialization import Outer, ReachingValue
from cccopt.ccc.plan.stack import GLOBAL, SLOTS, Layout, StackCode, StateSpace, Value, layout
from cccopt.ccc.plan.stack_room import ANY_MEMORY, StackOptions, StackRoom, first_that_fits
from cccopt.ccc.regions.paths import Path
from cccopt.ptx import isa
from cccopt.ptx.ir import Instruction, Operand, Register
from cccopt.ptx.special import SPECIAL_TYPES

SORTED_BYTES = 49152
"""Exclusive paths are sorted if a block's stacks then take at most this many bytes: sorted paths need more slots."""


def make_plan(analysis: RegionAnalysis, form: Form = Form.AUTO, options: StackOptions = ANY_MEMORY) -> Plan:
    """The plan for a region that `cccopt.ccc.legality.rules` accepts. ``form`` is forced unless ``auto``.

    Raises Refusal if the stack's size or a context cannot be handled.
    """
    return first_that_fits(options, lambda space: _plan_in(space, analysis, form, options))


def _plan_in(space: StateSpace, analysis: RegionAnalysis, form: Form, options: StackOptions) -> Plan:
    """The plan with stacks in ``space``."""
    view, region, sunk = analysis.view, analysis.region, analysis.sunk.values()
    threads, remarks = block_threads(view.function, region)
    groups = analysis.exclusive
    # Contexts that are smaller than is worthwhile by itself may allow the lanes to be sorted.
    for one_stack, tight in ((True, False), (True, True), (False, True)):
        planner = _Planner(analysis, threads, space, one_stack=one_stack, tight=tight)
        paths = tuple(planner.path(path) for path in region.paths)
        sorted_groups = groups if one_stack else ()
        sortings = tuple(planner.sorting([p for p in paths if p.path in group]) for group in sorted_groups)
        if not groups or space is GLOBAL or planner.bytes <= SORTED_BYTES:
            break
    shared = planner.room.shared_bytes(planner.bytes)
    check_size(view, region, shared, planner.room.slots.bytes)
    sizes = {word.size for layout in planner.layouts for word in layout.words}
    claim = planner.room.claim(planner.bytes, options, region.annotation.place)
    return Plan(
        region=region,
        paths=paths,
        sortings=sortings,
        split=is_split(view, region) if form == Form.AUTO else form == Form.SPLIT,
        stack_name=view.names.label(f"stack_{region.annotation.region}"),
        stack_bytes=shared,
        claim=claim,
        bases={size: planner.bases[size] for size in sorted(sizes, reverse=True)},
        lane=view.names.register("b32"),
        lanes_before=view.names.register("b32"),
        rebuilt=tuple(planner.rebuilt),
        skipped=planner.skipped(),
        dropped=frozenset(index for code in sunk for index in code.dropped),
        threads=threads,
        slots=planner.slots,
        remarks=(
            *(remarks if shared else ()),
            *stack_remarks(view, region, shared),
            *pool_remarks(region, claim),
            *reordered(region, (*planner.sums, *(r for code in sunk for r in code.sums))),
        ),
    )


def legal_plan(analysis: RegionAnalysis, form: Form = Form.AUTO, options: StackOptions = ANY_MEMORY) -> Plan:
    """The plan for a region about which nothing is known yet. Raises Refusal."""
    check(analysis)
    return make_plan(analysis, form, options)


class _Planner:
    """Makes the plans of a region's paths one by one: numbers them and lays out their stacks."""

    def __init__(
        self, analysis: RegionAnalysis, threads: int, space: StateSpace, *, one_stack: bool, tight: bool
    ) -> None:
        view = analysis.view
        self.analysis = analysis
        self.view = view
        self.region = analysis.region
        self.expand = analysis.expand
        self.trips = analysis.trips
        self.sunk = analysis.sunk
        groups = analysis.exclusive
        self.grouped = {path.begin for group in groups for path in group} if one_stack else set()
        self._compressed = {
            path.begin: compressed
            for group in groups
            for path, compressed in zip(group, self._together(group, tight), strict=True)
        }
        self.layouts: list[Layout] = []
        self.rebuilt: list[Instruction] = []
        self._shared: dict[tuple[str, tuple[int, ...]], Register] = {}
        self._number = 0
        # Lanes that took any of several paths skip the statements that the sunk code of these paths has in common.
        users: dict[int, frozenset[str]] = {}
        for begin, sunk in self.sunk.items():
            for index in sorted({*sunk.skipped} - sunk.dropped):
                users[index] = users.get(index, frozenset()) | {begin}
        self._flags = {group: view.names.register("pred") for group in dict.fromkeys(users.values())}
        self._users = users
        self.sums = tuple(dict.fromkeys(r for code in self.sunk.values() for r in code.reductions))
        self.slots = slots(self.sums, whole_warps(threads), view.names)
        self.room = StackRoom.of(view, space, threads, self.slots)
        self.bytes = self.room.start
        self.bases = self.room.bases((8, 4))
        self._kept = {r: view.names.register(view.types[r.register]) for r in self.sums if r.any_lane}

    def skipped(self) -> Mapping[int, Register]:
        """For each statement that tasks run instead of their lanes, the flag of the lanes that skip it."""
        return {index: self._flags[group] for index, group in self._users.items()}

    def path(self, path: Path, outer: Outer | None = None) -> PathPlan:
        """The plan of ``path``, which is inside the path ``outer``."""
        view, names = self.view, self.view.names
        self._number += 1
        number = self._number
        sunk = self.sunk[path.begin]
        around = frozenset[str]() if outer is None else outer.written
        written = self._written((*view.statements(path.nodes), *sunk.moved))
        compressed = self._compressed.get(path.begin)
        if compressed is None:
            compressed = compress(view, self.region, path, self._live_ins(path, around), outer)
        partials = tuple(self._partial(r) for r in sunk.reductions)
        sums = tuple(Partial(r, names.register(view.types[r.register]), None) for r in sunk.sums)
        counted = self._counted(path, sunk, around | written)
        if counted is None:
            check_deferred(self.analysis, path)
        live = (*compressed.live_ins, *self._reduced(path, partials), *_summed(view, sunk))
        if counted is not None:
            live = _without_counters(live, counted, compressed)
        registers = self._registers(path, live, written, (*partials, *sums))
        stack, top = self._stack(path, live, counted), names.register("b32")
        resets = tuple(p.reset for p in partials if p.offset is not None)
        restore = (
            *(() if counted is None else self._pointers(path, counted, registers.uses)),
            *self._steps(compressed, registers.uses),
            *(() if path.is_loop else resets),
        )
        owner = registers.uses.get(self.slots.address.name)
        inner = Outer(
            frozenset(view.statements(path.nodes)),
            frozenset(live.name for live in compressed.live_ins),
            around | written,
        )
        return PathPlan(
            path=path,
            number=number,
            stack=stack,
            top=top,
            context=TaskContext(live, restore),
            registers=registers,
            after=self._after(path, sunk, partials, registers),
            results=PartialResults(
                partials,
                sums,
                owner if isinstance(owner, Register) else None,
                resets if path.is_loop else (),
            ),
            counted=counted,
            meets_rest=counted is not None and self.analysis.order.clash(path) is not None,
            chunk=1 if counted is not None else self._chunk(path),
            children=tuple(self.path(child, inner) for child in path.children),
        )

    def _chunk(self, path: Path) -> int:
        """The chunk of a path: 1 if there are paths inside it, which need the whole warp in each inner iteration."""
        if not path.is_loop or path.children:
            return 1
        trips = self.trips.get(path.annotation.region)
        return chunk_of(self.view, path.annotation, path.begin, path.nodes, MOVING, trips)

    def _written(self, statements: Iterable[int]) -> frozenset[str]:
        return frozenset(name for index in statements for name in effects.writes(self.view.body[index]))

    def _registers(
        self, path: Path, live: Sequence[LiveIn], written: Collection[str], parts: Iterable[Partial]
    ) -> TaskRegisters:
        """The registers of a task whose path, with what sinks into it, writes ``written``."""
        view, register = self.view, self.view.names.register
        definitions = {name: register(view.types[name]) for name in sorted(written)}
        inside = set(view.statements(path.nodes))
        for part in parts:
            if inside & part.reduction.updates.keys():
                definitions[part.reduction.register] = part.register
        uses: dict[str, Operand] = dict(definitions)
        uses.update({v.name: register(v.type) for v in _collected(live) if v.name not in written})
        uses.update({i.name: self._rebuild(i) for i in live if i.decision == Placement.REBUILT})
        again = [i for i in live if i.decision == Placement.RECOMPUTED and i.name not in written]
        uses.update({i.name: register(i.type) for i in again})
        return TaskRegisters(uses, definitions)

    def _stack(self, path: Path, live: Iterable[LiveIn], counted: CountedLoop | None) -> StackCode:
        """The stack of a path, with its offset in memory unless it shares one; for a counted loop the layout of a
        context.
        """
        words = layout(_collected(live), self.room.warps * SLOTS if counted is None else 0, self.bytes)
        if path.begin not in self.grouped and counted is None:
            self._allocate(words)
            self.layouts.append(words)
        sizes = {word.size for word in words.words}
        bases = {size: base for size, base in self.bases.items() if size in sizes}
        return StackCode(words, self.room.space, bases, self.view.names)

    def _after(
        self, path: Path, sunk: SunkCode, partials: Iterable[Partial], registers: TaskRegisters
    ) -> CodeAfter:
        """What becomes of the code after a path."""
        again = self._written(sunk.recomputed) - sunk.kept
        return CodeAfter(
            sunk=sunk.moved,
            hammocks=sunk.hammocks,
            updates={i: self._update(i, p) for p in partials for i in sunk.moved if i in p.reduction.updates},
            skip_flags=tuple(flag for group, flag in self._flags.items() if path.begin in group),
            recomputed=sunk.recomputed,
            temporaries={name: registers.definitions[name] for name in again},
        )

    def _counted(self, path: Path, sunk: SunkCode, written: Collection[str]) -> CountedLoop | None:
        """The path as a counted loop whose inner iterations may run in any order, or None."""
        if not self.expand or not may_expand(path):
            return None
        if sunk.moved or sunk.recomputed or any(not r.any_lane for r in sunk.reductions):
            return None
        return counted_loop(
            self.view,
            path,
            [r.register for r in (*sunk.reductions, *sunk.sums)],
            lambda name: (
                self._same(path, name, name in written).decision in (Placement.LEFT_OUT, Placement.REBUILT)
            ),
        )

    def _same(self, path: Path, name: str, written: bool) -> LiveIn:
        begin = self.view.cfg.blocks[self.view.block_of_name[path.begin]].start
        return decide(self.view, self.region, path, begin, name, written)

    def _pointers(self, path: Path, counted: CountedLoop, uses: Mapping[str, Operand]) -> list[Instruction]:
        """The code that computes the pointers of an inner iteration from its counter."""
        code: list[Instruction] = []
        for pointer in counted.pointers:
            base = self._same(path, pointer.base, written=False)
            start = self._rebuild(base) if base.decision == Placement.REBUILT else Register(base.name)
            product, target = self.view.names.register("b64"), uses[pointer.register]
            code.append(op(pointer.widen, product, uses[pointer.counter], pointer.size))
            code.append(op("add.s64", target, start, product))
        return code

    def _together(self, group: Sequence[Path], tight: bool) -> tuple[Compressed, ...]:
        """The contexts of exclusive paths, which share their slots; if ``tight``, smaller contexts at a higher cost."""
        found = [(path, self._live_ins(path)) for path in group]
        sunk = self.sunk[group[0].begin].dropped
        return compress_together(self.view, self.region, found, one_stack=not tight, sunk=sunk)

    def sorting(self, paths: Sequence[PathPlan]) -> Sorting:
        """What the join of exclusive paths needs, with its stacks laid out."""
        register = self.view.names.register
        values = dict.fromkeys(value for path in paths for value in path.stack.layout.values())
        words = layout(values, sorted_slots(len(paths)) * self.room.warps, self.bytes)
        self._allocate(words)
        sizes = sorted({word.size for word in words.words}, reverse=True)
        return Sorting(
            tuple(paths),
            StackCode(words, self.room.space, self.room.bases(sizes), self.view.names),
            register("b32"),
        )

    def _allocate(self, words: Layout) -> None:
        self.bytes += (words.bytes + 7) // 8 * 8

    def _live_ins(self, path: Path, around: frozenset[str] = frozenset()) -> tuple[LiveIn, ...]:
        sunk = self.sunk[path.begin]
        return live_ins(self.view, self.region, path, sunk.moved, around, (*sunk.reductions, *sunk.sums))

    def _partial(self, reduction: Reduction) -> Partial:
        """A task's part of a reduction; all paths share the part that a lane keeps."""
        kept = self._kept.get(reduction)
        register = self.view.names.register(self.view.types[reduction.register]) if kept is None else kept
        return Partial(reduction, register, self.slots.offset(reduction))

    def _reduced(self, path: Path, partials: Iterable[Partial]) -> list[LiveIn]:
        """The reductions that tasks of a path update, and the address of their owner's slots if the tasks need it."""
        found: list[LiveIn] = []
        for partial in partials:
            r = partial.reduction
            how = (
                "whichever lane runs the task keeps its contribution, because all contributions end up in one result"
                if partial.offset is None
                else "each task gives its part to its owner's slot in shared memory"
            )
            reason = f"updated by `{r.operator.sign}`: {how}"
            found.append(LiveIn(r.register, self.view.types[r.register], Placement.REDUCED, reason))
        if any(not r.any_lane for p in path.tree() for r in self.sunk[p.begin].reductions):
            reason = "the address of the reduction slots of the task's owner"
            found.append(LiveIn(self.slots.address.name, "b32", Placement.COLLECTED, reason))
        return found

    def _update(self, index: int, partial: Partial) -> Instruction:
        """A statement that updates a reduction, rewritten to update a task's part of it."""
        statement = self.view.body[index]
        assert isinstance(statement, Instruction)
        written, read = partial.reduction.updates[index]
        return isa.rename(statement, {read: partial.register}, {written: partial.register})

    def _steps(self, compressed: Compressed, uses: Mapping[str, Operand]) -> tuple[Instruction, ...]:
        """The code that rebuilds what is not collected, on the registers of the task."""
        made: dict[ReachingValue, Operand] = {}
        for key, live in compressed.shared:
            made[key] = self._rebuild(live) if live.decision == Placement.REBUILT else Register(live.name)
        recomputed = {live.name for live in compressed.live_ins if live.decision == Placement.RECOMPUTED}
        code: list[Instruction] = []
        for step in compressed.steps:
            statement = self.view.body[step.statement]
            assert isinstance(statement, Instruction)
            name = step.result.register
            wanted = step.result.held and name in recomputed
            target = uses[name] if wanted else self.view.names.register(self.view.types[name])
            assert isinstance(target, Register)
            sources = {name: made.get(key, uses.get(name, Register(name))) for name, key in step.operands}
            code.append(isa.rename(statement, sources, {name: target}))
            made[step.result] = target
        return tuple(code)

    def _rebuild(self, live: LiveIn) -> Register:
        """The register in which the whole warp keeps an invariant value, computed before the loop."""
        key = (live.name, live.slice)
        if key not in self._shared:
            code, self._shared[key] = rebuilt(self.view, live)
            self.rebuilt += code
        return self._shared[key]


def _collected(live: Iterable[LiveIn]) -> list[Value]:
    return [Value(i.name, i.type) for i in live if i.decision == Placement.COLLECTED]


def _summed(view: View, sunk: SunkCode) -> Iterable[LiveIn]:
    for r in sunk.sums:
        reason = f"updated by `{r.operator.sign}`: the warp combines the contributions of each lane's inner iterations"
        yield LiveIn(r.register, view.types[r.register], Placement.REDUCED, reason)


def _without_counters(
    found: Iterable[LiveIn], counted: CountedLoop, compressed: Compressed
) -> tuple[LiveIn, ...]:
    """The live-ins of an inner iteration, with registers that only count the iterations left out."""
    read = counted.reads.union(name for step in compressed.steps for name, _ in step.operands)
    made = {pointer.register: pointer for pointer in counted.pointers}
    out: list[LiveIn] = []
    for live in found:
        if live.name in made:
            reason = f"each inner iteration computes it again from `{made[live.name].counter}`"
            live = replace(live, decision=Placement.RECOMPUTED, reason=reason)
        elif (
            live.decision == Placement.COLLECTED and live.name not in read and live.name not in SPECIAL_TYPES
        ):
            live = replace(
                live, decision=Placement.LEFT_OUT, reason="it only tells how many inner iterations there are"
            )
        out.append(live)
    return tuple(out)
