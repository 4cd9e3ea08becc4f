"""Static cost: issue slots of code by throughput class, with inner loops weighted by their trip counts.

A statement costs what the instruction table says (`isa.Facts.slots`: 128 results per clock and SM are one slot); a call
also costs what its callee does. A loop counts as often as it iterates if a counter with constant start, step and bound
shows it, else `DEFAULT_TRIP_COUNT` times.

        mov.u32 %r1, 0;                          5 iterations: the block counts 5 x 7 slots
    LOOP:
        fma.rn.f32 %f1, %f1, %f2, %f3;           1 slot
        add.s32 %r1, %r1, 4;                     2
        setp.ne.s32 %p1, %r1, 20;                2
        @%p1 bra LOOP;                           2

All paths through a piece of code count: if lanes diverge, the warp runs both sides. Aho, Lam, Sethi, Ullman,
"Compilers", 2nd ed., 9.1.6 (induction variables).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import cached_property

from cccopt.analysis import cfg as control_flow
from cccopt.analysis import latency
from cccopt.analysis.cfg import ControlFlowGraph
from cccopt.analysis.comparisons import is_comparison
from cccopt.analysis.dominance import Dominance, dominators
from cccopt.analysis.loops import Loop, loops
from cccopt.analysis.reaching import ENTRY, ReachingDefinitions, reaching_definitions
from cccopt.ptx import isa
from cccopt.ptx.constants import number
from cccopt.ptx.ir import Body, Function, Instruction, Literal, Module, Operand, Register
from cccopt.ptx.isa import Arithmetic, Control

DEFAULT_TRIP_COUNT = 8
"""The trip count of a loop about which nothing is known."""

MAX_TRIP_COUNT = 1 << 16
"""A counter that has not reached its bound by then counts as unknown."""

_DEEPEST = 8

_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    **dict.fromkeys(("lt", "lo"), operator.lt),
    **dict.fromkeys(("le", "ls"), operator.le),
    **dict.fromkeys(("gt", "hi"), operator.gt),
    **dict.fromkeys(("ge", "hs"), operator.ge),
}


@dataclass(frozen=True)
class Costs:
    """The costs of one function's code, in issue slots; ``callers`` are the functions whose calls led here."""

    module: Module
    body: Body
    cfg: ControlFlowGraph
    reaching: ReachingDefinitions
    loops: tuple[Loop, ...]
    callers: frozenset[str] = frozenset()
    calls: _Calls | None = field(default=None, compare=False, repr=False)

    def of_blocks(
        self, blocks: Collection[int], inside: Collection[int], one_iteration_of: int | None = None
    ) -> float:
        """What ``blocks`` cost when the piece of code ``inside`` that they belong to runs once. The loop with header
        ``one_iteration_of`` counts as one iteration.
        """
        piece = frozenset(inside)
        return sum(self.of_block(b) * self._weight(b, piece, one_iteration_of) for b in sorted(blocks))

    def cycles_per_slot(
        self, blocks: Collection[int], inside: Collection[int], one_iteration_of: int | None = None
    ) -> float:
        """The cycles that a warp running alone takes (`cccopt.analysis.latency`) per slot of `of_blocks`; 0 for no
        code.
        """
        piece = frozenset(inside)
        slots = self.of_blocks(blocks, piece, one_iteration_of)
        cycles = sum(
            self._cycles_of_block(b) * self._weight(b, piece, one_iteration_of) for b in sorted(blocks)
        )
        return cycles / slots if slots else 0.0

    def of_block(self, block: int) -> float:
        """What one run of the block costs."""
        return sum(self.of_statement(i) for i in self.cfg.blocks[block].statements())

    def _cycles_of_block(self, block: int) -> float:
        here = self.cfg.blocks[block]
        calls = (s for i in here.statements() if isinstance(s := self.body[i], Instruction) and _is_call(s))
        return latency.of_block(self.body, here) + latency.A_SLOT * sum(map(self._callee, calls))

    def of_statement(self, index: int) -> float:
        """What one run of the statement costs, including the function that it calls."""
        statement = self.body[index]
        if not isinstance(statement, Instruction):
            return 0.0
        return isa.facts(statement).slots + (self._callee(statement) if _is_call(statement) else 0.0)

    def trip_count(self, loop: Loop) -> int | None:
        """How often the loop's body runs once it is entered; None unless that is known to be constant."""
        found = [count for a, b in loop.exits if (count := self._exit_after(loop, a, b)) is not None]
        return min(found, default=None)

    def _weight(self, block: int, inside: frozenset[int], one_iteration_of: int | None) -> float:
        around = (
            e for e in self.loops if block in e.blocks and e.blocks <= inside and e.header != one_iteration_of
        )
        weight = 1.0
        for loop in around:
            weight *= self._trip_counts.get(loop.header) or DEFAULT_TRIP_COUNT
        return weight

    @cached_property
    def _trip_counts(self) -> dict[int, int | None]:
        return {loop.header: self.trip_count(loop) for loop in self.loops}

    # --- calls ---

    def _callee(self, call: Instruction) -> float:
        name = isa.callee_of(call)
        if name is None or name in self.callers:
            return 0.0
        # Only callers that the callee may call again matter.
        key = name, self.callers & self._calls.reached(name)
        if key not in self._calls.costs:
            self._calls.costs[key] = self._of_function(name)
        return self._calls.costs[key]

    def _of_function(self, name: str) -> float:
        function = self._calls.functions.get(name)
        if function is None:
            return 0.0
        own = replace(costs(self.module, function, self.callers | {name}), calls=self._calls)
        blocks = range(len(own.cfg.blocks))
        return own.of_blocks(blocks, blocks)

    @cached_property
    def _calls(self) -> _Calls:
        return _Calls(self.module) if self.calls is None else self.calls

    # --- trip counts ---

    def _exit_after(self, loop: Loop, block: int, target: int) -> int | None:
        """The number of iterations after which the branch that ends ``block`` surely leaves the loop for ``target``."""
        branch = control_flow.ending(self.body, self.cfg.blocks[block])
        if not loop.always_runs(block, self._dominators):
            return None
        if branch is None or branch.guard is None or isa.facts(branch).control is not Control.BRANCH:
            return None
        end = self.cfg.blocks[block].stop - 1
        tests = self.reaching.reaching(end, branch.guard.register.name)
        test = next(iter(tests)) if len(tests) == 1 else ENTRY
        if test == ENTRY or self.cfg.block_of(test) not in loop.blocks:
            return None
        met = self._met(loop, test, (target != block + 1) != branch.guard.negated)
        if met is None:
            return None
        # A test before the body runs once more than the body.
        return met if block in loop.latches else max(met - 1, 0)

    def _met(self, loop: Loop, test: int, wanted: bool) -> int | None:
        """How often ``test``, a `setp` of a counter and a literal, runs until its result is ``wanted``."""
        setp = self.body[test]
        if not isinstance(setp, Instruction) or not is_comparison(setp):
            return None
        compare, bound = _COMPARISONS.get(setp.parts[1]), integer(setp.operands[2])
        counter = setp.operands[1]
        if compare is None or bound is None or not isinstance(counter, Register) or setp.guard is not None:
            return None
        line = self._line(loop, test, counter.name, _DEEPEST)
        bits = isa.WIDTHS.get(setp.parts[-1])
        if line is None or bits is None or line[1] == 0:
            return None
        start, step = line
        signed = setp.parts[-1].startswith("s")
        for passed in range(MAX_TRIP_COUNT):
            value = _wrapped(start + passed * step, bits, signed)
            if compare(value, _wrapped(bound, bits, signed)) == wanted:
                return passed + 1
        return None

    def _line(self, loop: Loop, use: int, name: str, depth: int) -> tuple[int, int] | None:
        """The value of a register at ``use`` in the first iteration, and by how much it grows in each."""
        definitions = self.reaching.reaching(use, name)
        inside = [d for d in definitions if d != ENTRY and self.cfg.block_of(d) in loop.blocks]
        if depth == 0 or len(inside) != 1:
            return None
        if len(definitions) == 1:
            moved = self._moved(inside[0])
            if moved is None:
                return None
            source, by = moved
            line = self._line(loop, inside[0], source, depth - 1)
            return None if line is None else (line[0] + by, line[1])
        starts = [self._constant(d) for d in definitions if d not in inside]
        step = self._step(inside[0], name, definitions, depth)
        if len(starts) != 1 or starts[0] is None or step is None:
            return None
        block = self.cfg.block_of(inside[0])
        return (starts[0], step) if loop.always_runs(block, self._dominators) else None

    @cached_property
    def _dominators(self) -> Dominance:
        return dominators(self.cfg)

    def _step(self, definition: int, name: str, phi: frozenset[int], depth: int) -> int | None:
        """What a chain of additions that ends at ``definition`` adds to the value that ``name`` has from ``phi``."""
        moved = self._moved(definition)
        if depth == 0 or moved is None:
            return None
        source, by = moved
        definitions = self.reaching.reaching(definition, source)
        if source == name and definitions == phi:
            return by
        if len(definitions) != 1 or ENTRY in definitions:
            return None
        rest = self._step(next(iter(definitions)), name, phi, depth - 1)
        return None if rest is None else rest + by

    def _moved(self, index: int) -> tuple[str, int] | None:
        """The register that a statement copies, and the constant that it adds to it."""
        statement = self.body[index]
        if not isinstance(statement, Instruction) or statement.guard is not None:
            return None
        sources = statement.operands[1:]
        if statement.base == "mov" and len(sources) == 1 and isinstance(sources[0], Register):
            return sources[0].name, 0
        sums = isa.facts(statement).arithmetic
        if (
            sums not in (Arithmetic.SUM, Arithmetic.DIFFERENCE)
            or len(sources) != 2
            or not isinstance(sources[0], Register)
        ):
            return None
        by = integer(sources[1])
        return None if by is None else (sources[0].name, by if sums is Arithmetic.SUM else -by)

    def _constant(self, definition: int) -> int | None:
        if definition == ENTRY:
            return None
        statement = self.body[definition]
        if not isinstance(statement, Instruction) or statement.base != "mov" or statement.guard is not None:
            return None
        return integer(statement.operands[1])


@dataclass(frozen=True)
class _Calls:
    """Which functions of a module call which, and the costs of functions by name and by the callers that they may call
    again.
    """

    module: Module
    costs: dict[tuple[str, frozenset[str]], float] = field(default_factory=dict)

    @cached_property
    def functions(self) -> dict[str, Function]:
        """The functions with a body."""
        return {f.name: f for f in reversed([*self.module.functions()]) if f.body is not None}

    @cached_property
    def callees(self) -> dict[str, frozenset[str]]:
        """The functions that each function calls by name."""
        return {
            name: frozenset(
                callee
                for s in function.body or ()
                if isinstance(s, Instruction) and isa.facts(s).control is Control.CALL
                if (callee := isa.callee_of(s)) is not None
            )
            for name, function in self.functions.items()
        }

    def reached(self, name: str) -> frozenset[str]:
        """The functions that a function calls, directly or not."""
        found: set[str] = set()
        work = [name]
        while work:
            new = self.callees.get(work.pop(), frozenset()) - found
            found |= new
            work += new
        return frozenset(found)


def costs(module: Module, function: Function, callers: frozenset[str] = frozenset()) -> Costs:
    """The costs of a function with a body."""
    body = function.body or ()
    graph = control_flow.build(body)
    return Costs(module, body, graph, reaching_definitions(graph, body), loops(graph), callers)


def _is_call(instruction: Instruction) -> bool:
    return isa.facts(instruction).control is Control.CALL


def integer(operand: Operand) -> int | None:
    """The value of an integer literal; None for anything else."""
    if not isinstance(operand, Literal):
        return None
    sign = -1 if operand.spelling.startswith("-") else 1
    try:
        value = number(operand.spelling.lstrip("+-"))
    except ValueError:
        return None
    return sign * value if isinstance(value, int) else None


def _wrapped(value: int, bits: int, signed: bool) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value
