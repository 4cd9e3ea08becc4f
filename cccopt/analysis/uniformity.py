"""Uniformity: does a register hold one value in all lanes of a warp that run a statement together?

The analysis starts with everything uniform and lets *varying* spread to a fixpoint; in doubt, a value varies.
Sources are `%tid`, `%laneid`, the lane masks and clocks, registers that were never written, and the results
of atomics, calls, shuffles and most loads (others may have stored meanwhile). The exceptions are `ld.param` of
a kernel, and `ld.const` and `.nc` loads through a uniform address. Variation spreads through operands and guards,
and through control. At a block where lanes that a varying branch sent different ways meet again, each register written
on the paths between varies (even if each path wrote a uniform value). After a cycle that lanes leave in different
iterations, each register written in the cycle varies.

        mov.u32 %r1, %tid.x;            %r1 varies
        mov.u32 %r2, 0;                 %r2 is uniform here
        setp.lt.s32 %p1, %r1, 9;        %p1 varies, so does the branch
        @%p1 bra JOIN;
        mov.u32 %r2, 1;                 uniform among the lanes that run it
    JOIN:
        st.global.u32 [%rd1], %r2;      %r2 varies here

Uniformity does not say *which* lanes run the statement: `Uniformity.divergent_control` gives the varying
branches that decide that. Coutinho, Sampaio, Pereira, Meira, "Divergence analysis and optimizations", PACT
2011; Rosemann, Moll, Hack, "An abstract interpretation for SPMD divergence on reducible control flow graphs",
POPL 2021.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from operator import or_

from cccopt.analysis import effects
from cccopt.analysis.cfg import ControlFlowGraph, ending
from cccopt.analysis.constancy import UNIFORM_SPECIAL_REGISTERS, reads_unchanging_memory
from cccopt.analysis.dataflow import Analysis, Direction, Numbering, over_blocks, solve
from cccopt.analysis.dominance import control_dependence
from cccopt.analysis.mixing import Mixing
from cccopt.ptx import isa
from cccopt.ptx.ir import Function, Instruction, Literal, Statement
from cccopt.ptx.isa import Control, Memory

_FULL_MASKS = frozenset({"-1", "0xffffffff", "4294967295"})


def is_full_mask(operand: object) -> bool:
    """Whether an operand is the literal mask of all 32 lanes."""
    return isinstance(operand, Literal) and operand.spelling.lower().rstrip("u") in _FULL_MASKS


@dataclass(frozen=True)
class Uniformity:
    """Which registers vary over the lanes of a warp, at each point of a function."""

    function: Function
    cfg: ControlFlowGraph
    varying_branches: frozenset[int]
    """Blocks whose ending branch, `ret` or `exit` may be taken by some lanes only."""
    _varying_in: Mapping[int, int]
    _steps: tuple[_Step, ...]
    _numbering: Numbering[str]

    def is_uniform_use(self, statement: int, register: str) -> bool:
        """Whether the lanes that run ``statement`` together hold one value in ``register`` just before it."""
        return self._is_uniform(statement, register)

    def is_uniform_definition(self, statement: int, register: str) -> bool:
        """Whether the lanes that ran ``statement`` together hold one value in ``register`` just after it."""
        return self._is_uniform(statement + 1, register, self.cfg.block_of(statement))

    def divergent_control(self, block: int) -> frozenset[int]:
        """The varying branches that decide which lanes run ``block``: its transitive control dependence.

        A block inside a cycle that lanes leave in different iterations depends on the branch that leaves it.
        """
        found: set[int] = set()
        work = [block]
        while work:
            new = self._dependence[work.pop()] - found
            found |= new
            work += new
        return frozenset(found) & self.varying_branches

    @cached_property
    def _dependence(self) -> Mapping[int, frozenset[int]]:
        return control_dependence(self.cfg)

    def _is_uniform(self, stop: int, register: str, block: int | None = None) -> bool:
        """Whether the register is uniform before the position ``stop`` of ``block`` (by default, that of ``stop``)."""
        block = self.cfg.block_of(stop) if block is None else block
        if register not in self._numbering or block not in self._varying_in:
            return False
        statements, uniform = self._writers.get((block, register), ((), ()))
        position = bisect_left(statements, stop)
        if position:
            return uniform[position - 1]
        return not self._varying_in[block] & self._numbering.bits([register])

    @cached_property
    def _writers(self) -> Mapping[tuple[int, str], tuple[list[int], list[bool]]]:
        """The statements of each block that may write a register, in order, and whether it is uniform after each."""
        body = self.function.body or ()
        found: dict[tuple[int, str], tuple[list[int], list[bool]]] = {}
        for block, varying in self._varying_in.items():
            for index in self.cfg.blocks[block].statements():
                varying = self._steps[index].apply(varying)
                for register in effects.writes(body[index]):
                    statements, uniform = found.setdefault((block, register), ([], []))
                    statements.append(index)
                    uniform.append(not varying & self._numbering.bits([register]))
        return found


def uniformity(function: Function, cfg: ControlFlowGraph) -> Uniformity:
    """The uniformity of ``function`` (with a body), whose graph is ``cfg``."""
    body = function.body or ()
    numbering = Numbering(name for s in body for name in sorted(effects.needs(s) | effects.writes(s)))
    steps = tuple(_step(statement, function, numbering) for statement in body)
    graph = over_blocks(cfg)
    mixing = Mixing(cfg, [_written(steps, block.statements()) for block in cfg.blocks])
    branches: frozenset[int] = frozenset()
    mixed = dict.fromkeys(graph.successors, 0)
    analysis = _analysis(cfg, steps, mixed, len(numbering))
    solution = solve(analysis, graph)
    varying_in = dict(solution.before)
    grown = set(varying_in)
    while True:
        found = _varying_branches(body, cfg, steps, {block: varying_in[block] for block in grown}) - branches
        if not found:
            return Uniformity(function, cfg, branches, varying_in, steps, numbering)
        branches |= found
        pairs = [pair for branch in sorted(found) for pair in mixing.mixed_by(branch)]
        for block, registers in pairs:
            mixed[block] |= registers
        solution = solve(analysis, graph, solution, {block for block, _ in pairs})
        now = {block: solution.before[block] | mixed[block] for block in varying_in}
        grown = {block for block in now if now[block] != varying_in[block]}
        varying_in = now


class _Variation(Enum):
    """Where the variation of an instruction's results comes from."""

    VARIES = "the instruction itself"
    OPERANDS = "its operands"
    UNIFORM = "nowhere: all lanes get one value whatever the operands are"


@dataclass(frozen=True, slots=True)
class _Step:
    """The effect of one statement on the set of varying registers, as bit sets."""

    source: bool
    reads: int
    writes: int
    kills: int

    def apply(self, varying: int) -> int:
        if self.source or varying & self.reads:
            return varying | self.writes
        return varying & ~self.kills


def _step(statement: Statement, function: Function, numbering: Numbering[str]) -> _Step:
    if not isinstance(statement, Instruction):
        return _Step(False, 0, 0, 0)
    origin = _variation(statement, function)
    reads = effects.reads(statement)
    if origin is _Variation.UNIFORM:
        reads = frozenset() if statement.guard is None else frozenset({statement.guard.register.name})
    return _Step(
        origin is _Variation.VARIES,
        numbering.bits(reads),
        numbering.bits(effects.writes(statement)),
        numbering.bits(effects.kills(statement)),
    )


def _variation(instruction: Instruction, function: Function) -> _Variation:
    facts = isa.facts(instruction)
    if not effects.special_registers(instruction) <= UNIFORM_SPECIAL_REGISTERS:
        return _Variation.VARIES
    if not facts.known or facts.control is Control.CALL:
        return _Variation.VARIES
    if facts.memory is Memory.LOAD:
        return _Variation.OPERANDS if _reads_constant_memory(instruction, function) else _Variation.VARIES
    if _is_whole_warp_vote(instruction):
        return _Variation.UNIFORM
    return _Variation.OPERANDS if facts.pure else _Variation.VARIES


def _reads_constant_memory(instruction: Instruction, function: Function) -> bool:
    """Whether a load reads what is the same for all threads, which a device function's parameters are not."""
    own = isa.facts(instruction).space == "param" and function.kind != "entry"
    return not own and reads_unchanging_memory(instruction, function)


def _is_whole_warp_vote(instruction: Instruction) -> bool:
    """Whether an instruction gives all 32 lanes one result: `vote.sync` and similar ones with a full mask."""
    mask = instruction.operands[-1] if instruction.operands else None
    full = is_full_mask(mask)
    return full and isa.facts(instruction).uniform


def _written(steps: tuple[_Step, ...], statements: Iterable[int]) -> int:
    bits = 0
    for statement in statements:
        bits |= steps[statement].writes
    return bits


def _analysis(
    cfg: ControlFlowGraph, steps: tuple[_Step, ...], mixed: Mapping[int, int], registers: int
) -> Analysis[int]:
    def transfer(block: int, varying: int) -> int:
        varying |= mixed[block]
        for statement in cfg.blocks[block].statements():
            varying = steps[statement].apply(varying)
        return varying

    everything = (1 << registers) - 1
    return Analysis(Direction.FORWARD, everything, 0, or_, transfer)


def _varying_branches(
    body: tuple[Statement, ...],
    cfg: ControlFlowGraph,
    steps: tuple[_Step, ...],
    varying_in: Mapping[int, int],
) -> frozenset[int]:
    found: set[int] = set()
    for block, varying in varying_in.items():
        if ending(body, cfg.blocks[block]) is None:
            continue
        *inner, last = cfg.blocks[block].statements()
        for statement in inner:
            varying = steps[statement].apply(varying)
        if varying & steps[last].reads:
            found.add(block)
    return frozenset(found)
