"""What a rewrite needs to know of one region, decided before anything is moved: contexts, stacks, names, form."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cccopt.analysis import effects
from cccopt.ccc.function.code import op
from cccopt.ccc.function.view import View
from cccopt.ccc.legality.counted_loops import CountedLoop, counted_loop, may_expand
from cccopt.ccc.legality.exclusive import exclusive_paths
from cccopt.ccc.legality.reductions import Reduction
from cccopt.ccc.legality.sunk_code import Tails
from cccopt.ccc.plan.block_size import block_threads, check_size, whole_warps
from cccopt.ccc.plan.compression import Compressed, Key, Outer, compress, compress_together
from cccopt.ccc.plan.context import LiveIn, decide, live_ins
from cccopt.ccc.plan.form import is_split
from cccopt.ccc.plan.partials import Partial, Slots, slots
from cccopt.ccc.plan.remarks import reordered, stack_remarks
from cccopt.ccc.plan.stack import SLOTS, Layout, StackCode, Value, layout
from cccopt.ccc.regions.hammocks import Hammock
from cccopt.ccc.regions.marked_loops import Path, Region
from cccopt.diagnostic import Diagnostic
from cccopt.ptx import isa
from cccopt.ptx.ir import Body, Instruction, Operand, Register, SpecialRegister
from cccopt.ptx.special import SPECIAL_TYPES

SORTED_BYTES = 49152
"""Bytes of a block's stacks up to which exclusive paths are sorted: there each path needs more slots."""

PAIRED = 3 * SLOTS - 2
"""Slots of a warp for two exclusive paths."""


@dataclass(frozen=True)
class PathPlan:
    """One path: its context and stack, the names of its tasks' registers, and what runs behind it.

    ``tail`` are the statements that run with the task instead of behind the join, those of ``hammocks`` among them;
    ``took`` the flags that keep the lane itself from running them. ``recomputed`` are those that a lane runs again
    for itself at the join. ``unpacking`` rebuilds, at the beginning of a task, what its compressed context leaves out.

    ``partials`` are the task's parts of reductions, ``updates`` the statements of the tail that update them,
    ``owner`` the address of the slots of the lane that made the task; a loop's tasks begin with ``resets``.

    The trips of a ``counted`` loop are expanded over the warp (`cccopt.ccc.codegen.expansion`): its stack is the layout
    of a context only.
    """

    path: Path
    number: int
    live_ins: tuple[LiveIn, ...]
    stack: StackCode
    top: Register
    uses: Mapping[str, Operand]
    definitions: Mapping[str, Register]
    tail: tuple[int, ...]
    hammocks: tuple[Hammock, ...]
    took: tuple[Register, ...]
    recomputed: tuple[int, ...]
    temporaries: Mapping[str, Register]
    unpacking: tuple[Instruction, ...]
    children: tuple[PathPlan, ...] = ()
    partials: tuple[Partial, ...] = ()
    counted: CountedLoop | None = None
    sums: tuple[Partial, ...] = ()
    resets: tuple[Instruction, ...] = ()
    updates: Mapping[int, Instruction] = field(default_factory=dict)
    owner: Register | None = None

    @property
    def chunk(self) -> int:
        """Trips of a loop between two votes. A path inside needs the whole warp in each trip."""
        return 1 if self.children else self.path.annotation.chunk

    def phase(self, what: str) -> str:
        """The name of a phase of this path in labels: ``push_1``."""
        return f"{what}_{self.number}"

    def task(self, name: str) -> Register:
        """The register of the running task that stands for ``name``."""
        register = self.uses[name]
        assert isinstance(register, Register)
        return register

    def rewrite(self, instruction: Instruction) -> Instruction:
        """The instruction on the registers of the running task."""
        return isa.rename(instruction, self.uses, self.definitions)

    def own(self, body: Body) -> list[Instruction]:
        """What the lane computes again, on its own registers but for intermediate results, which nothing behind reads.
        A register with both a value from before the path and an intermediate one changes its name where it is written.
        """
        code: list[Instruction] = []
        names: dict[str, Register] = {}
        for index in self.recomputed:
            instruction = body[index]
            assert isinstance(instruction, Instruction)
            code.append(isa.rename(instruction, names, self.temporaries))
            names.update({n: r for n, r in self.temporaries.items() if n in effects.writes(instruction)})
        return code


@dataclass(frozen=True)
class Sorting:
    """Exclusive paths that share a site (`cccopt.ccc.codegen.sorting`), by number.

    ``stack`` has one layout for all paths, which share its slots by two. Lane b holds in ``waiting`` how
    many tasks path b has.
    """

    paths: tuple[PathPlan, ...]
    stack: StackCode
    waiting: Register

    @property
    def bits(self) -> int:
        """Bits of a path's number, or of that of the lanes that come to none."""
        return len(self.paths).bit_length()

    @property
    def bases(self) -> Mapping[int, tuple[Register, int]]:
        """For each word size the register with the warp's base address, and its bytes a warp."""
        return {size: (base, sorted_slots(len(self.paths)) * size) for size, base in self.stack.bases.items()}


def sorted_slots(paths: int) -> int:
    """Slots that a warp needs for exclusive paths, of which up to 31 tasks wait each while 32 more come in all.

    Two paths fill one array from both of its ends.
    """
    return paths // 2 * PAIRED + paths % 2 * (2 * SLOTS - 1)


@dataclass(frozen=True)
class Plan:
    """One region: its paths (outer ones first in `all_paths`) and the registers that the whole warp shares.

    ``bases`` maps a word size to the register with the warp's base address in the stacks of paths that are not in
    ``sortings``.
    """

    region: Region
    paths: tuple[PathPlan, ...]
    sortings: tuple[Sorting, ...]
    split: bool
    stack_name: str
    stack_bytes: int
    bases: Mapping[int, Register]
    lane: Register
    lanes_before: Register
    rebuilt: tuple[Instruction, ...]
    skipped: Mapping[int, Register]
    dropped: frozenset[int]
    threads: int
    slots: Slots
    remarks: tuple[Diagnostic, ...] = field(default=())

    def sorting(self, path: PathPlan) -> Sorting | None:
        """The group that the path shares a site with."""
        return next((s for s in self.sortings if any(path is p for p in s.paths)), None)

    def has_stack(self, path: PathPlan) -> bool:
        """Whether tasks of the path wait on a stack of their own."""
        return path.counted is None and self.sorting(path) is None

    @property
    def partials(self) -> tuple[Partial, ...]:
        """The parts of reductions that tasks of all paths have."""
        return tuple(dict.fromkeys(partial for path in self.all_paths() for partial in path.partials))

    def all_paths(self) -> tuple[PathPlan, ...]:
        """All paths, each ahead of those inside it."""
        found: list[PathPlan] = []
        work = list(self.paths)
        while work:
            path = work.pop(0)
            found.append(path)
            work = [*path.children, *work]
        return tuple(found)


def own(name: str) -> Operand:
    """The lane's own value of a register or special register."""
    return SpecialRegister(name) if name in SPECIAL_TYPES else Register(name)


def make_plan(
    view: View, region: Region, moved: Mapping[str, Tails], form: str = "auto", *, expand: bool = True
) -> Plan:
    """The plan for a region whose `tails` are ``moved`` and that `legality.check` accepts. ``form`` is ``split``,
    ``idle lanes`` or ``auto``; ``expand`` allows to expand counted loops.

    Raises Refusal where the stack's size or a context cannot be handled.
    """
    threads, remarks = block_threads(view.function, region)
    groups = exclusive_paths(view, region, moved)
    # What makes contexts smaller than it pays for may let the lanes be sorted.
    for one_stack, tight in ((True, False), (True, True), (False, True)):
        maker = _Maker(view, region, moved, threads, groups, one_stack=one_stack, tight=tight, expand=expand)
        paths = tuple(maker.path(path) for path in region.paths)
        sorted_groups = groups if one_stack else ()
        sortings = tuple(maker.sorting([p for p in paths if p.path in group]) for group in sorted_groups)
        if not groups or maker.bytes <= SORTED_BYTES:
            break
    check_size(view, region, maker.bytes)
    sizes = {word.size for layout in maker.layouts for word in layout.words}
    return Plan(
        region=region,
        paths=paths,
        sortings=sortings,
        split=is_split(view, region) if form == "auto" else form == "split",
        stack_name=view.names.label(f"stack_{region.annotation.region}"),
        stack_bytes=maker.bytes,
        bases={size: maker.bases[size] for size in sorted(sizes, reverse=True)},
        lane=view.names.register("b32"),
        lanes_before=view.names.register("b32"),
        rebuilt=tuple(maker.rebuilt),
        skipped=maker.skipped(),
        dropped=frozenset(index for tail in moved.values() for index in tail.dropped),
        threads=threads,
        slots=maker.slots,
        remarks=(
            *(remarks if maker.bytes else ()),
            *stack_remarks(view, region, maker.bytes),
            *reordered(region, (*maker.sums, *(r for tail in moved.values() for r in tail.sums))),
        ),
    )


class _Maker:
    """Makes the plans of a region's paths one by one: numbers them and lays out their stacks."""

    def __init__(
        self,
        view: View,
        region: Region,
        moved: Mapping[str, Tails],
        threads: int,
        groups: tuple[tuple[Path, ...], ...],
        *,
        one_stack: bool,
        tight: bool,
        expand: bool,
    ) -> None:
        self.view = view
        self.expand = expand
        self.region = region
        self.moved = moved
        self.threads = threads
        self.grouped = {path.begin for group in groups for path in group} if one_stack else set()
        self._compressed = {
            path.begin: compressed
            for group in groups
            for path, compressed in zip(group, self._together(group, tight), strict=True)
        }
        self.bytes = 0
        self.layouts: list[Layout] = []
        self.bases = {size: view.names.register("b32") for size in (8, 4)}
        self.rebuilt: list[Instruction] = []
        self._shared: dict[tuple[str, tuple[int, ...]], Register] = {}
        self._number = 0
        # Statements that several tails hold are skipped by the lanes that took any of those paths.
        users: dict[int, frozenset[str]] = {}
        for begin, tail in moved.items():
            for index in sorted({*tail.skipped} - tail.dropped):
                users[index] = users.get(index, frozenset()) | {begin}
        self._flags = {group: view.names.register("pred") for group in dict.fromkeys(users.values())}
        self._users = users
        self.sums = tuple(dict.fromkeys(r for tail in moved.values() for r in tail.reductions))
        self.slots = slots(self.sums, whole_warps(threads), view.names)
        self.bytes = self.slots.bytes
        self._kept = {r: view.names.register(view.types[r.register]) for r in self.sums if r.any_lane}

    def skipped(self) -> Mapping[int, Register]:
        """For each statement that tasks run in place of their lanes the flag of the lanes that leave it out."""
        return {index: self._flags[group] for index, group in self._users.items()}

    def path(self, path: Path, outer: Outer | None = None) -> PathPlan:
        """The plan of ``path``, which stands in the path ``outer``."""
        view, names = self.view, self.view.names
        self._number += 1
        number = self._number
        tail = self.moved[path.begin]
        around = frozenset[str]() if outer is None else outer.written
        written = {
            name
            for index in (*view.statements(path.nodes), *tail.moved)
            for name in effects.writes(view.body[index])
        }
        if path.begin in self._compressed:
            compressed = self._compressed[path.begin]
        else:
            found = self._live_ins(path, around)
            compressed = compress(view, self.region, path, found, outer)
        found = compressed.live_ins
        inner = Outer(
            frozenset(view.statements(path.nodes)), frozenset(live.name for live in found), around | written
        )
        partials = tuple(self._partial(r) for r in tail.reductions)
        found = (*found, *self._reduced(path, partials), *_summed(view, tail))
        counted = self._counted(path, tail, around | written)
        sums = tuple(Partial(r, names.register(view.types[r.register]), None) for r in tail.sums)
        if counted is not None:
            found = _without_counters(found, counted, compressed)
        collected = [Value(live.name, live.type) for live in found if live.decision == "collected"]
        definitions = {name: names.register(view.types[name]) for name in sorted(written)}
        again_written = {name for index in tail.recomputed for name in effects.writes(view.body[index])}
        inside = set(view.statements(path.nodes))
        definitions.update(
            {
                p.reduction.register: p.register
                for p in (*partials, *sums)
                if inside & p.reduction.updates.keys()
            }
        )
        uses: dict[str, Operand] = dict(definitions)
        uses.update({v.name: names.register(v.type) for v in collected if v.name not in written})
        uses.update({live.name: self._rebuild(live) for live in found if live.decision == "rebuilt"})
        again = [live for live in found if live.decision == "recomputed" and live.name not in written]
        uses.update({live.name: names.register(live.type) for live in again})
        words = layout(collected, self.threads if counted is None else 0, self.bytes)
        if path.begin not in self.grouped and counted is None:
            self._allocate(words)
            self.layouts.append(words)
        sizes = {word.size for word in words.words}
        bases = {size: base for size, base in self.bases.items() if size in sizes}
        resets = tuple(p.reset for p in partials if p.offset is not None)
        owner = uses.get(self.slots.address.name)
        return PathPlan(
            path=path,
            number=number,
            live_ins=found,
            stack=StackCode(words, bases, names),
            top=names.register("b32"),
            uses=uses,
            definitions=definitions,
            tail=tail.moved,
            hammocks=tail.hammocks,
            took=tuple(flag for group, flag in self._flags.items() if path.begin in group),
            recomputed=tail.recomputed,
            temporaries={name: definitions[name] for name in again_written - tail.kept},
            unpacking=(
                *(() if counted is None else self._pointers(path, counted, uses)),
                *self._steps(compressed, uses),
                *(() if path.is_loop else resets),
            ),
            children=tuple(self.path(child, inner) for child in path.children),
            partials=partials,
            counted=counted,
            sums=sums,
            resets=resets if path.is_loop else (),
            updates={i: self._update(i, p) for p in partials for i in tail.moved if i in p.reduction.updates},
            owner=owner if isinstance(owner, Register) else None,
        )

    def _counted(self, path: Path, tail: Tails, written: Collection[str]) -> CountedLoop | None:
        """The path as a counted loop whose trips nothing keeps in order."""
        if not self.expand or not may_expand(path):
            return None
        if tail.moved or tail.recomputed or any(not r.any_lane for r in tail.reductions):
            return None
        return counted_loop(
            self.view,
            path,
            [r.register for r in (*tail.reductions, *tail.sums)],
            lambda name: self._same(path, name, name in written).decision in ("left out", "rebuilt"),
        )

    def _same(self, path: Path, name: str, written: bool) -> LiveIn:
        begin = self.view.cfg.blocks[self.view.block_of_name[path.begin]].start
        return decide(self.view, self.region, path, begin, name, written)

    def _pointers(self, path: Path, counted: CountedLoop, uses: Mapping[str, Operand]) -> list[Instruction]:
        """The code that makes the pointers of a trip from its counter."""
        code: list[Instruction] = []
        for pointer in counted.pointers:
            base = self._same(path, pointer.base, written=False)
            start = self._rebuild(base) if base.decision == "rebuilt" else Register(base.name)
            product, target = self.view.names.register("b64"), uses[pointer.register]
            code.append(op(pointer.widen, product, uses[pointer.counter], pointer.size))
            code.append(op("add.s64", target, start, product))
        return code

    def _together(self, group: Sequence[Path], tight: bool) -> tuple[Compressed, ...]:
        """The contexts of exclusive paths, which share their slots; if ``tight``, small ones at a higher price."""
        found = [(path, self._live_ins(path)) for path in group]
        tail = self.moved[group[0].begin].dropped
        return compress_together(self.view, self.region, found, one_stack=not tight, tail=tail)

    def sorting(self, paths: Sequence[PathPlan]) -> Sorting:
        """What the site of exclusive paths needs, its stacks laid out."""
        register = self.view.names.register
        values = dict.fromkeys(value for path in paths for value in path.stack.layout.values())
        warps = whole_warps(self.threads) // SLOTS
        words = layout(values, sorted_slots(len(paths)) * warps, self.bytes)
        self._allocate(words)
        sizes = sorted({word.size for word in words.words}, reverse=True)
        return Sorting(
            tuple(paths),
            StackCode(words, {size: register("b32") for size in sizes}, self.view.names),
            register("b32"),
        )

    def _allocate(self, words: Layout) -> None:
        self.bytes += (words.bytes + 7) // 8 * 8

    def _live_ins(self, path: Path, around: frozenset[str] = frozenset()) -> tuple[LiveIn, ...]:
        tail = self.moved[path.begin]
        return live_ins(self.view, self.region, path, tail.moved, around, (*tail.reductions, *tail.sums))

    def _partial(self, reduction: Reduction) -> Partial:
        """A task's part of a reduction; all paths share that of a lane."""
        kept = self._kept.get(reduction)
        register = self.view.names.register(self.view.types[reduction.register]) if kept is None else kept
        return Partial(reduction, register, self.slots.offset(reduction))

    def _reduced(self, path: Path, partials: Iterable[Partial]) -> list[LiveIn]:
        """The reductions that tasks of a path update, and the address of their owner's slots if the tasks need it."""
        found: list[LiveIn] = []
        for partial in partials:
            r = partial.reduction
            how = (
                "any lane keeps its share, as all end in one result"
                if partial.offset is None
                else "each task gives its part to its owner's slot in shared memory"
            )
            reason = f"updated by `{r.operator.sign}`: {how}"
            found.append(LiveIn(r.register, self.view.types[r.register], "reduced", reason))
        if any(not r.any_lane for p in path.tree() for r in self.moved[p.begin].reductions):
            reason = "where the owner of the task has its slots of reductions"
            found.append(LiveIn(self.slots.address.name, "b32", "collected", reason))
        return found

    def _update(self, index: int, partial: Partial) -> Instruction:
        """A statement that updates a reduction, on a task's part of it."""
        statement = self.view.body[index]
        assert isinstance(statement, Instruction)
        written, read = partial.reduction.updates[index]
        return isa.rename(statement, {read: partial.register}, {written: partial.register})

    def _steps(self, compressed: Compressed, uses: Mapping[str, Operand]) -> tuple[Instruction, ...]:
        """The code that rebuilds what is not collected, on the registers of the task."""
        made: dict[Key, Operand] = {}
        for key, live in compressed.shared:
            made[key] = self._rebuild(live) if live.decision == "rebuilt" else Register(live.name)
        recomputed = {live.name for live in compressed.live_ins if live.decision == "recomputed"}
        code: list[Instruction] = []
        for step in compressed.steps:
            statement = self.view.body[step.statement]
            assert isinstance(statement, Instruction)
            name, _, current = step.result
            wanted = current and name in recomputed
            target = uses[name] if wanted else self.view.names.register(self.view.types[name])
            assert isinstance(target, Register)
            sources = {name: made.get(key, uses.get(name, Register(name))) for name, key in step.operands}
            code.append(isa.rename(statement, sources, {name: target}))
            made[step.result] = target
        return tuple(code)

    def _rebuild(self, live: LiveIn) -> Register:
        """The register in which the whole warp keeps an invariant value, computed ahead of the loop."""
        key = (live.name, live.slice)
        if key in self._shared:
            return self._shared[key]
        fresh: dict[str, Register] = {}
        for index in live.slice:
            statement = self.view.body[index]
            assert isinstance(statement, Instruction)
            new = {n: self.view.names.register(self.view.types[n]) for n in effects.writes(statement)}
            self.rebuilt.append(isa.rename(statement, fresh, new))
            fresh.update(new)
        self._shared[key] = fresh[live.name]
        return fresh[live.name]


def _summed(view: View, tail: Tails) -> Iterable[LiveIn]:
    for r in tail.sums:
        reason = f"updated by `{r.operator.sign}`: the warp puts the trips of each lane together"
        yield LiveIn(r.register, view.types[r.register], "reduced", reason)


def _without_counters(
    found: Iterable[LiveIn], counted: CountedLoop, compressed: Compressed
) -> tuple[LiveIn, ...]:
    """The live-ins of a trip: what only counts the trips is not among them."""
    read = counted.reads.union(name for step in compressed.steps for name, _ in step.operands)
    made = {pointer.register: pointer for pointer in counted.pointers}
    out: list[LiveIn] = []
    for live in found:
        if live.name in made:
            reason = f"each trip computes it again from `{made[live.name].counter}`"
            live = replace(live, decision="recomputed", reason=reason)
        elif live.decision == "collected" and live.name not in read and live.name not in SPECIAL_TYPES:
            live = replace(live, decision="left out", reason="it only tells how many trips there are")
        out.append(live)
    return tuple(out)
