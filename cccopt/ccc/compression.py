"""Context compression: values that cheap arithmetic rebuilds from others are rebuilt after the pop (DESIGN 4.1).

        cvt.s64.s32 %rd2, %r22;     P reads %rd2 (8 bytes): %r22 (4 bytes) is collected in its place,
        @%p2 bra    J;              and each task begins with the conversion

The choice is a minimum cut. Nodes are values (a register with the definitions that reach a point); a value stands
behind the operands that its one cheap definition computes it from. Cutting a value means collecting it and costs its
bytes, leaving it behind the cut means rebuilding it and costs its issue slots. Only a value that its register still
holds where the path begins can be collected. Khorasani 2016, 4.1.3 (the thesis looks at direct operands only).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import networkx as nx

from cccopt.analysis import effects
from cccopt.analysis.reaching import ENTRY
from cccopt.ccc.context import LiveIn, decide
from cccopt.ccc.regions import Path, Region
from cccopt.ccc.view import View
from cccopt.ptx import isa
from cccopt.ptx.ir import Instruction
from cccopt.ptx.isa import Control, Memory, width

CHEAP = 4.0
"""Issue slots of one operation up to which it may be part of a rebuild."""

SLOTS_A_BYTE = 2.0
"""What a byte of context costs: the store, the load and the move of four bytes take about eight issue slots."""

DEEPEST = 6
"""Operations in a row that a rebuild may take."""

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
    return _Compression(view, region, path, live_ins, outer).choose(tuple(live_ins))


class _Compression:
    def __init__(
        self, view: View, region: Region, path: Path, live_ins: Sequence[LiveIn], outer: Outer | None
    ) -> None:
        self.view = view
        self.region = region
        self.path = path
        self.outer = outer
        self.live = {live.name for live in live_ins}
        own = (effects.writes(view.body[i]) for i in view.statements(path.nodes))
        self.fixed = {name for names in own for name in names} if path.is_loop else set()
        self.begin = view.cfg.blocks[view.block_of_name[path.begin]].start
        others = (p for p in region.all_paths() if not path.nodes <= p.nodes)
        self.elsewhere = {index for other in others for index in view.statements(other.nodes)}
        self.graph = nx.DiGraph()
        self.steps: dict[Key, Step] = {}
        self.shared: dict[Key, LiveIn] = {}
        self._onward, self._back = self._iteration()
        self._ways: dict[int, set[int]] = {}
        self._names: dict[int, set[str]] = {}

    def choose(self, live_ins: tuple[LiveIn, ...]) -> Compressed:
        wanted = [i for i in live_ins if i.decision == "collected" and i.name in self.view.types]
        keys = {i.name: self._key(self.begin, i.name) for i in wanted}
        for key in keys.values():
            self._add(key, 0)
            self.graph.add_edge((key, "out"), "sink")
        if not self.steps:
            return Compressed(live_ins)
        _, (source, _) = nx.minimum_cut(self.graph, "source", "sink")
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
            LiveIn(n, self.view.types[n], "collected", "what others are rebuilt from")
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
        return replace(live, decision="recomputed", reason=f"each task computes it again from {sources}")

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

    def _add(self, key: Key, depth: int) -> None:
        """Adds a value to the graph, with all that it can be rebuilt from."""
        if (key, "in") in self.graph:
            return
        name, _, current = key
        if current and self._readable(name):
            bits = 8 if self.view.types[name] == "pred" else width(self.view.types[name])
            self.graph.add_edge((key, "in"), (key, "out"), capacity=bits / 8 * SLOTS_A_BYTE)
        else:
            self.graph.add_edge((key, "in"), (key, "out"))
        step = self._step(key) if depth < DEEPEST else None
        if step is None:
            self.graph.add_edge("source", (key, "in"))
            return
        self.steps[key] = step
        instruction = self.view.body[step.statement]
        assert isinstance(instruction, Instruction)
        self.graph.add_edge("source", (key, "in"), capacity=isa.facts(instruction).slots)
        for _, operand in step.operands:
            if operand not in self.shared:
                self._add(operand, depth + 1)
                self.graph.add_edge((operand, "out"), (key, "in"))

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

    def _step(self, key: Key) -> Step | None:
        """The cheap statement that computes a value, or None."""
        if len(key[1]) != 1:
            return self._common_step(key)
        (index,) = key[1]
        if key[0] in self.fixed or not self._in_loop(index):
            return None
        statement = self.view.body[index]
        if not isinstance(statement, Instruction) or not _cheap(statement):
            return None
        operands: list[tuple[str, Key]] = []
        for name in sorted(effects.needs(statement)):
            operand = self._key(index, name)
            if name in self.fixed:
                return None
            if operand[2] and operand not in self.shared:
                changed = self.outer is not None and name in self.outer.written
                live = decide(self.view, self.region, self.path, self.begin, name, changed)
                if live.decision == "rebuilt" or (live.decision == "left out" and self._readable(name)):
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
        if not isinstance(statement, Instruction) or not _cheap(statement):
            return None
        needs = sorted(effects.needs(statement))
        alike = (
            isinstance(other := self.view.body[d], Instruction)
            and (other.opcode, other.operands, other.guard)
            == (statement.opcode, statement.operands, statement.guard)
            and not {*needs} & self._written_since(d, definitions)
            for d in definitions
        )
        if name in needs or not all(alike):
            return None
        operands = tuple((n, (n, self.view.reaching.reaching(self.begin, n), True)) for n in needs)
        return Step(index, key, operands)

    def _in_loop(self, index: int) -> bool:
        return index != ENTRY and self.view.cfg.block_of(index) in self.view.blocks_of(self.region.nodes)

    def _written_since(self, statement: int, definitions: frozenset[int]) -> set[str]:
        """The registers that may be written on a way from behind ``statement`` to the path's next beginning that passes
        none of ``definitions``, of which it is one.
        """
        block, end = self.view.cfg.block_of(statement), self.view.cfg.block_of(self.begin)
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
        """The value of a register at a statement."""
        definitions = self.view.reaching.reaching(statement, name)
        same = definitions == self.view.reaching.reaching(self.begin, name)
        return name, definitions, same and not self._written_between(statement, name)

    def _written_between(self, statement: int, name: str) -> bool:
        """Whether a register may be written on a way from ``statement`` to the path, within one iteration."""
        if statement == self.begin:
            return False
        block = self.view.cfg.block_of(statement)
        own = range(statement, self.view.cfg.blocks[block].stop)
        return any(name in effects.writes(self.view.body[i]) for i in own) or any(
            name in self._written_in(b) for b in self._between(block)
        )

    def _written_in(self, block: int) -> set[str]:
        if block not in self._names:
            writes = (effects.writes(self.view.body[i]) for i in self.view.cfg.blocks[block].statements())
            self._names[block] = set().union(*writes)
        return self._names[block]

    def _between(self, block: int) -> set[int]:
        """The blocks on the ways from ``block`` to the path's beginning, within one iteration, without ``block``
        unless it is in an inner cycle.
        """
        if block not in self._ways:
            end = self.view.cfg.block_of(self.begin)
            before = _reached(self._back, end)
            self._ways[block] = (_reached(self._onward, block) & before) - {end}
        return self._ways[block]

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


def _cheap(instruction: Instruction) -> bool:
    facts = isa.facts(instruction)
    plain = facts.known and facts.pure and facts.memory is Memory.NONE and facts.control is Control.NEXT
    specials = effects.special_registers(instruction)
    single = len(isa.definitions(instruction)) == 1
    return (
        plain
        and single
        and not specials
        and facts.slots <= CHEAP
        and not isa.is_conditional_write(instruction)
    )
