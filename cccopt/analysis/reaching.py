"""Reaching definitions: the writes that may have produced the value of a register. Forwards, may (union).

A guarded write adds a definition without ending the older ones. A register that may still be unwritten has
the definition `ENTRY`.

        0   mov.u32 %r1, 0;             before 1: {ENTRY for %p1, 0 for %r1}
        1   @%p1 mov.u32 %r1, 7;
        2   st.global.u32 [%rd1], %r1;  %r1 at 2: {0, 1}

Aho, Lam, Sethi, Ullman, "Compilers", 2nd ed., 9.2.4.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import or_

from cccopt.analysis import effects
from cccopt.analysis.cfg import ControlFlowGraph
from cccopt.analysis.dataflow import Analysis, Direction, over_blocks, solve
from cccopt.ptx.ir import Statement

ENTRY = -1
"""The definition of a register that nothing has written since the function was entered."""


@dataclass(frozen=True)
class ReachingDefinitions:
    """The definitions that reach each point of a body; a definition is a statement index, or `ENTRY`."""

    body: Sequence[Statement]
    cfg: ControlFlowGraph
    _block_in: Mapping[int, int]
    _definitions: Mapping[str, tuple[int, tuple[int, ...]]]
    """The definitions of each register, `ENTRY` first, and the position of the first one in the bit sets."""

    def reaching(self, statement: int, register: str) -> frozenset[int]:
        """The definitions of ``register`` just before ``statement``; none in dead code."""
        return self._reach(self.cfg.blocks[self.cfg.block_of(statement)].start, statement, register)

    def reaching_after(self, statement: int, register: str) -> frozenset[int]:
        """The definitions of ``register`` that reach the point just after ``statement`` itself."""
        return self._reach(self.cfg.blocks[self.cfg.block_of(statement)].start, statement + 1, register)

    def reaching_end(self, block: int, register: str) -> frozenset[int]:
        """The definitions of ``register`` that reach the end of block ``block``."""
        return self._reach(self.cfg.blocks[block].start, self.cfg.blocks[block].stop, register)

    def _reach(self, start: int, stop: int, register: str) -> frozenset[int]:
        """The definitions before statement ``stop`` of the block that begins at ``start``."""
        block = self.cfg.block_of(start)
        if block not in self._block_in:
            return frozenset()
        writers = self._writers.get((block, register), ())
        for position in range(bisect_left(writers, stop) - 1, -1, -1):
            if (writers[position], register) in self._killing:
                return frozenset(writers[position : bisect_left(writers, stop)])
        own = writers[: bisect_left(writers, stop)]
        before = self._at_block_start(block, register)
        return before.union(own) if own else before

    def _at_block_start(self, block: int, register: str) -> frozenset[int]:
        if register not in self._definitions:
            return frozenset({ENTRY})
        key = block, register
        if key not in self._known:
            first, own = self._definitions[register]
            bits = self._block_in[block] >> first & (1 << len(own)) - 1
            self._known[key] = frozenset(
                definition for position, definition in enumerate(own) if bits >> position & 1
            )
        return self._known[key]

    @cached_property
    def _known(self) -> dict[tuple[int, str], frozenset[int]]:
        """A cache of the definitions of registers at the beginning of blocks."""
        return {}

    @cached_property
    def _killing(self) -> frozenset[tuple[int, str]]:
        """The definitions that end all older ones of their register."""
        return frozenset((index, name) for index, s in enumerate(self.body) for name in effects.kills(s))

    @cached_property
    def _writers(self) -> Mapping[tuple[int, str], tuple[int, ...]]:
        """The statements of each block that may write a register, in order."""
        found: dict[tuple[int, str], list[int]] = {}
        for block in self.cfg.blocks:
            for index in block.statements():
                for register in effects.writes(self.body[index]):
                    found.setdefault((block.index, register), []).append(index)
        return {key: tuple(indices) for key, indices in found.items()}


def reaching_definitions(cfg: ControlFlowGraph, body: Sequence[Statement]) -> ReachingDefinitions:
    """The reaching definitions of a function body."""
    definitions: dict[str, list[int]] = {}
    for index, statement in enumerate(body):
        for name in sorted(effects.writes(statement)):
            definitions.setdefault(name, [ENTRY]).append(index)
    numbered: dict[str, tuple[int, tuple[int, ...]]] = {}
    undefined = first = 0
    for name, found in definitions.items():
        numbered[name] = (first, tuple(found))
        undefined |= 1 << first
        first += len(found)
    graph = over_blocks(cfg)
    made: dict[int, int] = {}
    kept: dict[int, int] = {}
    for block in graph.successors:
        made[block], kept[block] = _transfer([(i, body[i]) for i in cfg.blocks[block].statements()], numbered)
    analysis = Analysis(
        Direction.FORWARD,
        undefined,
        0,
        or_,
        lambda block, reaching: reaching & kept[block] | made[block],
    )
    return ReachingDefinitions(body, cfg, solve(analysis, graph).before, numbered)


def _transfer(
    statements: Sequence[tuple[int, Statement]], numbered: Mapping[str, tuple[int, tuple[int, ...]]]
) -> tuple[int, int]:
    """The definitions that some statements make and those of others that they keep, as bit sets."""
    own: dict[str, list[int]] = {}
    killed: set[str] = set()
    for index, statement in statements:
        effect = effects.of(statement)
        for name in effect.kills:
            own[name] = []
            killed.add(name)
        for name in effect.writes:
            own.setdefault(name, []).append(index)
    make = gone = 0
    for name, indices in own.items():
        first, found = numbered[name]
        for index in indices:
            make |= 1 << first + bisect_left(found, index)
        if name in killed:
            gone |= ((1 << len(found)) - 1) << first
    return make, ~gone
