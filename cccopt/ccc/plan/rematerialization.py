"""Rematerialization: how a task can compute values again instead of taking them along.

        cvt.s64.s32 %rd2, %r22;     a task that has %r22 can compute %rd2
        @%p2 bra    J;

A value is computed again by the one cheap statement that defines it, from operands that are values in turn. A value may
be in the task's context only if its register still holds it where the path begins. Briggs, Cooper, Torczon,
"Rematerialization", PLDI 1992, do this for spilled registers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from cccopt.analysis import effects
from cccopt.analysis.reaching import ENTRY
from cccopt.ccc.function.view import View
from cccopt.ccc.plan.context import LiveIn, Placement, decide
from cccopt.ccc.plan.sinking import is_computation, sinking
from cccopt.ccc.plan.writes_between import WritesBetween
from cccopt.ccc.regions.marked_loops import Region
from cccopt.ccc.regions.paths import Path
from cccopt.ptx import isa
from cccopt.ptx.ir import Instruction

CHEAP = 4.0
"""An operation of at most this many issue slots may be computed again."""

DEEPEST = 6
"""Operations in a row that may be computed again, not counting those that no lane then runs before the branch."""

MOST_STEPS = 64
"""Operations in all that may be computed again for values of a path's context."""


@dataclass(frozen=True, slots=True)
class ReachingValue:
    """A value: its register, the definitions that reach it, and whether the register holds it where the path begins."""

    register: str
    definitions: frozenset[int]
    held: bool


@dataclass(frozen=True, slots=True)
class Step:
    """One statement that is computed again: its result, and the value of each register that it reads."""

    statement: int
    result: ReachingValue
    operands: tuple[tuple[str, ReachingValue], ...]


@dataclass(frozen=True, slots=True)
class Outer:
    """A path around another one: its statements, the registers that its tasks have from the beginning, and those that
    it, or a path around it, writes.
    """

    statements: frozenset[int]
    registers: frozenset[str]
    written: frozenset[str]


class Rematerialization:
    """The values from which tasks of ``paths``, which exclude each other, may compute again what they read.

    ``live`` are the paths' live-ins; only their tasks run the statements ``sunk``. `reach` fills ``steps`` and
    ``shared``, the operands that tasks have without a slot, because they are live-ins left out or rebuilt before the
    loop.
    """

    def __init__(
        self,
        view: View,
        region: Region,
        paths: Sequence[Path],
        live: Collection[str],
        outer: Outer | None,
        sunk: frozenset[int],
    ) -> None:
        self.view = view
        self.region = region
        self.path = paths[0]
        self.live = live
        self.outer = outer
        own = (effects.writes(view.body[i]) for i in view.statements(self.path.nodes))
        self.fixed = {name for names in own for name in names} if self.path.is_loop else set()
        self.begins = [view.cfg.blocks[view.block_of_name[path.begin]].start for path in paths]
        self.begin = self.begins[0]
        others = (p for p in region.all_paths() if not all(path.nodes <= p.nodes for path in paths))
        self.elsewhere = {index for other in others for index in view.statements(other.nodes)}
        self.sinking = sinking(view, region, [*paths], sunk)
        self.writes = WritesBetween(view, region, self.path)
        self.steps: dict[ReachingValue, Step] = {}
        self.shared: dict[ReachingValue, LiveIn] = {}

    def reach(self, wanted: Sequence[ReachingValue]) -> list[ReachingValue]:
        """All values from which those ``wanted`` can be computed again, including these; records the steps."""
        depth: dict[ReachingValue, int] = dict.fromkeys(wanted, 0)
        work = deque(depth)
        values: dict[ReachingValue, None] = {}
        while work:
            value = work.popleft()
            if value in values:
                continue
            values[value] = None
            affordable = len(self.steps) < MOST_STEPS * len(self.begins)
            step = self._step(value, depth[value]) if affordable else None
            if step is None:
                continue
            self.steps[value] = step
            sinks = self.sinks(step)
            for _, operand in step.operands:
                if operand in self.shared:
                    continue
                far = depth[value] + (0 if sinks else 1)
                if far < depth.get(operand, far + 1):
                    depth[operand] = far
                    work.appendleft(operand) if sinks else work.append(operand)
        return list(values)

    def sources(self, values: Iterable[ReachingValue]) -> set[ReachingValue]:
        """The values and all that steps compute them from."""
        found: set[ReachingValue] = set()
        work = list(values)
        while work:
            value = work.pop()
            if value not in found:
                found.add(value)
                step = self.steps.get(value)
                work += [] if step is None else [v for _, v in step.operands if v not in self.shared]
        return found

    def sinks(self, step: Step) -> bool:
        """Whether lanes no longer compute the step before the branch if tasks do."""
        return self._sinks(step.statement)

    def is_readable(self, name: str) -> bool:
        """Whether the lane that makes the task has the register's value. A task of the outer path has few of them, and
        the tasks of another path compute elsewhere what that path computes.
        """
        if name in self.live:
            return True
        definitions = self.view.reaching.reaching(self.begin, name)
        if definitions & self.elsewhere:
            return False
        return self.outer is None or name in self.outer.registers or definitions <= self.outer.statements

    def _sinks(self, statement: int) -> bool:
        return self.sinking is not None and self.sinking.holds(statement)

    def _step(self, value: ReachingValue, depth: int) -> Step | None:
        """The step that computes a value, or None if its statement is too expensive or too many steps already follow
        it; an operation that sinks may be both.
        """
        if len(value.definitions) != 1:
            return self._common_step(value) if depth < DEEPEST else None
        (index,) = value.definitions
        if value.register in self.fixed or not self._in_loop(index):
            return None
        statement = self._computation(index)
        if statement is None:
            return None
        if not self._sinks(index) and (depth >= DEEPEST or isa.facts(statement).slots > CHEAP):
            return None
        operands: list[tuple[str, ReachingValue]] = []
        for name in sorted(effects.needs(statement)):
            operand = self._value(index, name)
            if name in self.fixed:
                return None
            if operand.held and operand not in self.shared:
                self._share(operand)
            operands.append((name, operand))
        return Step(index, value, tuple(operands))

    def _share(self, operand: ReachingValue) -> None:
        """Records an operand if tasks have it without a slot."""
        name = operand.register
        changed = self.outer is not None and name in self.outer.written
        live = decide(self.view, self.region, self.path, self.begin, name, changed)
        left_out = live.decision == Placement.LEFT_OUT and self.is_readable(name)
        if live.decision == Placement.REBUILT or left_out:
            self.shared[operand] = live

    def _common_step(self, value: ReachingValue) -> Step | None:
        """The cheap statement that computes a value where the path begins, whichever definition reaches it: all of them
        are identical, and what they read has not changed since. A loop's header has such values.

            shr.u64 %rd2, %rd1, 32;     before the loop, and again at its latch after a new %rd1
        """
        name, definitions = value.register, value.definitions
        if not value.held or not all(self._in_loop(d) for d in definitions):
            return None
        index = min(definitions)
        statement = self._computation(index)
        if statement is None or isa.facts(statement).slots > CHEAP:
            return None
        needs = sorted(effects.needs(statement))
        if any(len({self.view.reaching.reaching(b, n) for b in self.begins}) > 1 for n in (name, *needs)):
            return None
        alike = (
            isinstance(other := self.view.body[d], Instruction)
            and (other.opcode, other.operands, other.guard)
            == (statement.opcode, statement.operands, statement.guard)
            and not {*needs} & self.writes.written_since(d, definitions, begin)
            for begin in self.begins
            for d in definitions
        )
        if name in needs or not all(alike):
            return None
        operands = ((n, self.view.reaching.reaching(self.begin, n)) for n in needs)
        return Step(index, value, tuple((n, ReachingValue(n, found, True)) for n, found in operands))

    def _computation(self, index: int) -> Instruction | None:
        statement = self.view.body[index]
        return statement if isinstance(statement, Instruction) and is_computation(statement) else None

    def _in_loop(self, index: int) -> bool:
        return index != ENTRY and self.view.cfg.block_of(index) in self.view.blocks_of(self.region.nodes)

    def _value(self, statement: int, name: str) -> ReachingValue:
        """The value of a register at a statement, and whether the register still holds it where all paths begin."""
        definitions = self.view.reaching.reaching(statement, name)
        held = (
            definitions == self.view.reaching.reaching(begin, name)
            and not self.writes.may_write(name, statement, begin)
            for begin in self.begins
        )
        return ReachingValue(name, definitions, all(held))
