"""Context compression: values that cheap arithmetic rebuilds from others are rebuilt after the pop (DESIGN 4.1).

        cvt.s64.s32 %rd2, %r22;     P reads %rd2 (8 bytes): %r22 (4 bytes) is collected in its place,
        @%p2 bra    J;              and each task begins with the conversion

The choice is a minimum cut. Nodes are values (a register with the definitions that reach a point); a value stands
behind the operands that its one cheap definition computes it from. Cutting a value means collecting it and costs its
bytes, leaving it behind the cut means rebuilding it and costs its issue slots. Only a value that its register still
holds where the path begins can be collected. Khorasani 2016, 4.1.3 (the thesis looks at direct operands only).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import networkx as nx

from cccopt.analysis import effects
from cccopt.analysis.reaching import ENTRY
from cccopt.ccc.function.view import View
from cccopt.ccc.plan.context import LiveIn, Placement, decide
from cccopt.ccc.plan.sinking import is_computation, sinking
from cccopt.ccc.regions.marked_loops import Path, Region
from cccopt.ptx import isa
from cccopt.ptx.ir import Instruction, Marker
from cccopt.ptx.isa import width

CHEAP = 4.0
"""Issue slots of one operation up to which it may be part of a rebuild."""

STORE_A_BYTE, LOAD_A_BYTE = 1.0, 1.0
"""What a byte of context costs in issue slots: four bytes are stored in four, loaded and moved in about four."""

DEEPEST = 6
"""Operations in a row that a rebuild may take, those aside that no lane then runs ahead of the branch."""

MOST_STEPS = 64
"""Operations of which a path's context may be rebuilt, in all."""

TAKEN = 0.9
"""What a value costs in tasks if it is not computed ahead of the branch: a little less, for not all lanes take it."""

HOISTED = "hoisted"
"""The attribute of a begin marker that names the registers whose loads were moved ahead of the path."""

Key = tuple[str, frozenset[int], bool]
"""A value: its register, the definitions that reach it, and whether the register holds it where the path begins."""


@dataclass(frozen=True, slots=True)
class Step:
    """One statement of a rebuild: what it computes, and the value that each register it reads stands for."""

    statement: int
    result: Key
    operands: tuple[tuple[str, Key], ...]


@dataclass(frozen=True, slots=True)
class Outer:
    """A path around another one: its statements, the registers that its tasks have from the beginning, and those that
    it, or a path around it, writes.
    """

    statements: frozenset[int]
    registers: frozenset[str]
    written: frozenset[str]


@dataclass(frozen=True, slots=True)
class Compressed:
    """Live-ins with their final decisions, registers collected for what they rebuild, and the rebuild in order.

    ``shared`` are values among the steps' operands that need no slot, as live-ins that are left out or rebuilt ahead.
    """

    live_ins: tuple[LiveIn, ...]
    steps: tuple[Step, ...] = ()
    shared: tuple[tuple[Key, LiveIn], ...] = ()


def compress(
    view: View,
    region: Region,
    path: Path,
    live_ins: Sequence[LiveIn],
    outer: Outer | None = None,
) -> Compressed:
    """The cheapest choice of what to collect for ``live_ins``; ``outer`` is the path around ``path``, if there is one.

    Of what a variable loop writes, only such values are rebuilt as its header always finds computed alike.
    """
    (found,) = compress_together(view, region, ((path, live_ins),), outer)
    return found


def compress_together(
    view: View,
    region: Region,
    paths: Sequence[tuple[Path, Sequence[LiveIn]]],
    outer: Outer | None = None,
    *,
    one_stack: bool = True,
    tail: frozenset[int] = frozenset(),
) -> tuple[Compressed, ...]:
    """The cheapest choice for n paths that exclude each other: a value that k of them rebuild costs k / n of its slots.

    On ``one_stack`` an iteration stores a value once, on stacks of their own once for each of the k paths. Nothing but
    their tasks runs the statements ``tail``.
    """
    found = _Compression(view, region, paths, outer, one_stack, tail).choose()
    return tuple(_told(view, path, choice) for (path, _), choice in zip(paths, found, strict=True))


def _told(view: View, path: Path, choice: Compressed) -> Compressed:
    """The choice with a word on what was loaded ahead of the path (`cccopt.passes.hoist_loads`)."""
    block = view.cfg.blocks[view.block_of_name[path.begin]]
    markers = (s for i in block.statements() if isinstance(s := view.body[i], Marker))
    hoisted = {n for m in markers for n in dict(m.attributes).get(HOISTED, "").split(",")}
    return replace(
        choice,
        live_ins=tuple(
            replace(i, reason=f"loaded ahead of the path{_lanes(path)}")
            if i.name in hoisted and i.decision == Placement.COLLECTED
            else i
            for i in choice.live_ins
        ),
    )


def _lanes(path: Path) -> str:
    return " as `hoist` asks" if path.annotation.hoist else ": coalesced"


class _Compression:
    def __init__(
        self,
        view: View,
        region: Region,
        paths: Sequence[tuple[Path, Sequence[LiveIn]]],
        outer: Outer | None,
        one_stack: bool,
        tail: frozenset[int],
    ) -> None:
        self.view = view
        self.region = region
        self.live_ins = [tuple(live_ins) for _, live_ins in paths]
        self.path = paths[0][0]
        self.outer = outer
        self.one_stack = one_stack
        self.live = {live.name for found in self.live_ins for live in found}
        own = (effects.writes(view.body[i]) for i in view.statements(self.path.nodes))
        self.fixed = {name for names in own for name in names} if self.path.is_loop else set()
        self.begins = [view.cfg.blocks[view.block_of_name[path.begin]].start for path, _ in paths]
        self.begin = self.begins[0]
        others = (p for p in region.all_paths() if not all(path.nodes <= p.nodes for path, _ in paths))
        self.elsewhere = {index for other in others for index in view.statements(other.nodes)}
        self.sinking = sinking(view, region, [path for path, _ in paths], tail)
        self.steps: dict[Key, Step] = {}
        self.shared: dict[Key, LiveIn] = {}
        self._ways: dict[tuple[int, int], set[int]] = {}
        self._names: dict[int, set[str]] = {}

    def choose(self) -> tuple[Compressed, ...]:
        wanted = [
            {
                i.name: (i.name, self.view.reaching.reaching(begin, i.name), True)
                for i in live_ins
                if i.decision == Placement.COLLECTED and i.name in self.view.types
            }
            for begin, live_ins in zip(self.begins, self.live_ins, strict=True)
        ]
        reached = self._reach([key for keys in wanted for key in keys.values()])
        if not self.steps:
            return tuple(Compressed(live_ins) for live_ins in self.live_ins)
        _, (source, _) = nx.minimum_cut(self._graph(reached, wanted), "source", "sink")
        return tuple(
            self._chosen(live_ins, keys, source) for live_ins, keys in zip(self.live_ins, wanted, strict=True)
        )

    def _chosen(self, live_ins: tuple[LiveIn, ...], keys: dict[str, Key], source: set[object]) -> Compressed:
        rebuilt: dict[Key, Step] = {}
        collected: dict[Key, None] = {}
        for key in keys.values():
            self._settle(key, source, rebuilt, collected)
        if not rebuilt:
            return Compressed(live_ins)
        names = {key[0] for key in collected}
        out = [self._decided(i, keys, rebuilt) for i in live_ins]
        known = {i.name for i in live_ins}
        extra = (
            LiveIn(n, self.view.types[n], Placement.COLLECTED, "what others are rebuilt from")
            for n in sorted(names - known)
        )
        shared = tuple(
            (k, self.shared[k]) for s in rebuilt.values() for _, k in s.operands if k in self.shared
        )
        return Compressed((*out, *extra), tuple(rebuilt.values()), shared)

    def _decided(self, live: LiveIn, keys: dict[str, Key], rebuilt: dict[Key, Step]) -> LiveIn:
        key = keys.get(live.name)
        if key not in rebuilt:
            return live
        sources = ", ".join(f"`{name}`" for name, _ in rebuilt[key].operands) or "constants"
        return replace(
            live, decision=Placement.RECOMPUTED, reason=f"each task computes it again from {sources}"
        )

    def _settle(
        self, key: Key, source: set[object], rebuilt: dict[Key, Step], collected: dict[Key, None]
    ) -> None:
        """Collects or rebuilds a value, operands first."""
        if key in self.shared or key in rebuilt or key in collected:
            return
        if (key, "in") in source:
            collected[key] = None
            return
        for _, operand in self.steps[key].operands:
            self._settle(operand, source, rebuilt, collected)
        rebuilt[key] = self.steps[key]

    def _reach(self, wanted: Sequence[Key]) -> list[Key]:
        """All values that those wanted can be rebuilt from, themselves included; the steps that do it are noted."""
        depth: dict[Key, int] = dict.fromkeys(wanted, 0)
        work = deque(depth)
        settled: dict[Key, None] = {}
        while work:
            key = work.popleft()
            if key in settled:
                continue
            settled[key] = None
            step = self._step(key, depth[key]) if len(self.steps) < MOST_STEPS * len(self.begins) else None
            if step is None:
                continue
            self.steps[key] = step
            sinks = self._sinks(step)
            for _, operand in step.operands:
                if operand in self.shared:
                    continue
                far = depth[key] + (0 if sinks else 1)
                if far < depth.get(operand, far + 1):
                    depth[operand] = far
                    work.appendleft(operand) if sinks else work.append(operand)
        return list(settled)

    def _graph(self, reached: Sequence[Key], wanted: Sequence[Mapping[str, Key]]) -> nx.DiGraph:
        """The values with what it costs to collect them, to rebuild them, and to compute them ahead of the branch.

        Prices are integers, so that equal ones are.
        """
        graph = nx.DiGraph()
        users = [self._ancestors(keys.values()) for keys in wanted]
        for key in reached:
            name, _, current = key
            count = sum(key in found for found in users)
            share = count / len(users)
            if current and self._readable(name):
                bits = 8 if self.view.types[name] == "pred" else width(self.view.types[name])
                slots = bits / 8 * ((1 if self.one_stack else count) * STORE_A_BYTE + share * LOAD_A_BYTE)
                graph.add_edge((key, "in"), (key, "out"), capacity=_price(slots))
            else:
                graph.add_edge((key, "in"), (key, "out"))
            step = self.steps.get(key)
            if step is None:
                graph.add_edge("source", (key, "in"))
                continue
            instruction = self.view.body[step.statement]
            assert isinstance(instruction, Instruction)
            slots = isa.facts(instruction).slots
            if self._sinks(step):
                graph.add_edge((key, "in"), "sink", capacity=_price(slots))
                share *= TAKEN
            graph.add_edge("source", (key, "in"), capacity=_price(slots * share))
            for _, operand in step.operands:
                if operand not in self.shared:
                    graph.add_edge((operand, "out"), (key, "in"))
        for keys in wanted:
            for key in keys.values():
                graph.add_edge((key, "out"), "sink")
        return graph

    def _ancestors(self, keys: Iterable[Key]) -> set[Key]:
        found: set[Key] = set()
        work = list(keys)
        while work:
            key = work.pop()
            if key not in found:
                found.add(key)
                step = self.steps.get(key)
                work += [] if step is None else [k for _, k in step.operands if k not in self.shared]
        return found

    def _sinks(self, step: Step) -> bool:
        return self.sinking is not None and self.sinking.holds(step.statement)

    def _readable(self, name: str) -> bool:
        """Whether the lane that makes the task has the register's value: a task of the outer path has few of them, and
        what another path computes its tasks compute elsewhere.
        """
        if name in self.live:
            return True
        definitions = self.view.reaching.reaching(self.begin, name)
        if definitions & self.elsewhere:
            return False
        return self.outer is None or name in self.outer.registers or definitions <= self.outer.statements

    def _step(self, key: Key, depth: int) -> Step | None:
        """The statement that computes a value, or None if it is dear or too many of them lie before; not if no lane
        computes it ahead of the branch then.
        """
        if len(key[1]) != 1:
            return self._common_step(key) if depth < DEEPEST else None
        (index,) = key[1]
        if key[0] in self.fixed or not self._in_loop(index):
            return None
        statement = self.view.body[index]
        if not isinstance(statement, Instruction) or not is_computation(statement):
            return None
        sinks = self.sinking is not None and self.sinking.holds(index)
        if not sinks and (depth >= DEEPEST or isa.facts(statement).slots > CHEAP):
            return None
        operands: list[tuple[str, Key]] = []
        for name in sorted(effects.needs(statement)):
            operand = self._key(index, name)
            if name in self.fixed:
                return None
            if operand[2] and operand not in self.shared:
                changed = self.outer is not None and name in self.outer.written
                live = decide(self.view, self.region, self.path, self.begin, name, changed)
                if live.decision == Placement.REBUILT or (
                    live.decision == Placement.LEFT_OUT and self._readable(name)
                ):
                    self.shared[operand] = live
            operands.append((name, operand))
        return Step(index, key, tuple(operands))

    def _common_step(self, key: Key) -> Step | None:
        """The cheap statement that computes a value where the path begins, whichever way was taken there: all that
        reach it are alike, and what they read has not changed since. A loop's header knows such values.

            shr.u64 %rd2, %rd1, 32;     ahead of the loop, and again at its latch behind a new %rd1
        """
        name, definitions, current = key
        if not current or not all(self._in_loop(d) for d in definitions):
            return None
        index = min(definitions)
        statement = self.view.body[index]
        if not isinstance(statement, Instruction) or not is_computation(statement):
            return None
        if isa.facts(statement).slots > CHEAP:
            return None
        needs = sorted(effects.needs(statement))
        if any(len({self.view.reaching.reaching(b, n) for b in self.begins}) > 1 for n in (name, *needs)):
            return None
        alike = (
            isinstance(other := self.view.body[d], Instruction)
            and (other.opcode, other.operands, other.guard)
            == (statement.opcode, statement.operands, statement.guard)
            and not {*needs} & self._written_since(d, definitions, begin)
            for begin in self.begins
            for d in definitions
        )
        if name in needs or not all(alike):
            return None
        operands = tuple((n, (n, self.view.reaching.reaching(self.begin, n), True)) for n in needs)
        return Step(index, key, operands)

    def _in_loop(self, index: int) -> bool:
        return index != ENTRY and self.view.cfg.block_of(index) in self.view.blocks_of(self.region.nodes)

    def _written_since(self, statement: int, definitions: frozenset[int], begin: int) -> set[str]:
        """The registers that may be written on a way from behind ``statement`` to the next beginning of a path, at
        ``begin``, that passes none of ``definitions``, of which it is one.
        """
        block, end = self.view.cfg.block_of(statement), self.view.cfg.block_of(begin)
        rest = range(statement + 1, self.view.cfg.blocks[block].stop)
        stops = {end, *map(self.view.cfg.block_of, definitions)}
        free = self.view.blocks_of(self.region.nodes) - stops
        onward = {b: self.view.cfg.successors[b] for b in {block, *free}}
        back = {b: self.view.cfg.predecessors[b] for b in {end, *free}}
        between = _reached(onward, block) & _reached(back, end) & free
        found: set[str] = set()
        found.update(*(effects.writes(self.view.body[i]) for i in rest))
        return found.union(*map(self._written_in, between))

    def _key(self, statement: int, name: str) -> Key:
        """The value of a register at a statement, which its register holds where all of the paths begin, or not."""
        definitions = self.view.reaching.reaching(statement, name)
        holds = (
            definitions == self.view.reaching.reaching(begin, name)
            and not self._written_between(statement, begin, name)
            for begin in self.begins
        )
        return name, definitions, all(holds)

    def _written_between(self, statement: int, begin: int, name: str) -> bool:
        """Whether a register may be written on a way from ``statement`` to ``begin``, within one iteration."""
        if statement == begin:
            return False
        block = self.view.cfg.block_of(statement)
        own = range(statement, self.view.cfg.blocks[block].stop)
        return any(name in effects.writes(self.view.body[i]) for i in own) or any(
            name in self._written_in(b) for b in self._between(block, self.view.cfg.block_of(begin))
        )

    def _written_in(self, block: int) -> set[str]:
        if block not in self._names:
            writes = (effects.writes(self.view.body[i]) for i in self.view.cfg.blocks[block].statements())
            self._names[block] = set().union(*writes)
        return self._names[block]

    def _between(self, block: int, end: int) -> set[int]:
        """The blocks on the ways from ``block`` to ``end``, where a path begins, within one iteration, without
        ``block`` unless it is in an inner cycle.
        """
        if (block, end) not in self._ways:
            onward, back = self._iteration
            self._ways[block, end] = (_reached(onward, block) & _reached(back, end)) - {end}
        return self._ways[block, end]

    @cached_property
    def _iteration(self) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
        """For each block of the loop those that come next in the same iteration, and those that it comes next to."""
        inside = self.view.blocks_of(self.region.nodes)
        around = self.region.loops_around(self.path)
        again = {
            (source, self.view.block_of_name[header])
            for header, nodes in around.items()
            for source in self.view.blocks_of(nodes)
        }
        onward = {
            b: [t for t in self.view.cfg.successors[b] if t in inside and (b, t) not in again] for b in inside
        }
        back: dict[int, list[int]] = {b: [] for b in inside}
        for block, following in onward.items():
            for target in following:
                back[target].append(block)
        return onward, back


def _reached(step: Mapping[int, Sequence[int]], block: int) -> set[int]:
    """The blocks that one or more steps from ``block`` lead to."""
    found: set[int] = set()
    work = list(step.get(block, ()))
    while work:
        target = work.pop()
        if target not in found:
            found.add(target)
            work += step.get(target, ())
    return found


def _price(slots: float) -> int:
    return round(slots * 1000)
