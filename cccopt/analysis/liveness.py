"""Liveness: the registers whose current value may still be read. Backwards, may: merge is union.

A guarded write does not end the life of the old value, but keeps it alive (`effects.needs`).

                                        live before
        mov.u32 %r1, 0;                 {%p1, %r3}
        @%p1 add.s32 %r1, %r3, 1;       {%p1, %r1, %r3}
        st.global.u32 [%rd1], %r1;      {%r1, %rd1} (with %rd1 in the lines above, too)

*Upward-exposed* registers of a region are those read in it before it writes them on some path that stays
inside: liveness at its head, computed for the region only. Aho, Lam, Sethi, Ullman, "Compilers", 2nd ed.,
9.2.5.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import or_

from cccopt.analysis import effects
from cccopt.analysis.cfg import ControlFlowGraph
from cccopt.analysis.dataflow import Analysis, Direction, FlowGraph, ItemSets, Numbering, Solution, solve
from cccopt.ptx.ir import Statement


@dataclass(frozen=True)
class Liveness:
    """Live registers at the start and the end of each block, and around any statement."""

    body: Sequence[Statement]
    cfg: ControlFlowGraph
    live_in: ItemSets[str]
    live_out: ItemSets[str]

    def live_before(self, statement: int) -> frozenset[str]:
        """The registers live just before statement ``statement``."""
        return self._before[statement]

    def live_after(self, statement: int) -> frozenset[str]:
        """The registers live after statement ``statement``, on any path of control from it."""
        block = self.cfg.blocks[self.cfg.block_of(statement)]
        if statement + 1 == block.stop:
            return self.live_out[block.index]
        return self._before[statement + 1]

    @cached_property
    def _before(self) -> dict[int, frozenset[str]]:
        found: dict[int, frozenset[str]] = {}
        for block in self.cfg.blocks:
            live = self.live_out[block.index]
            for statement in reversed(block.statements()):
                effect = effects.of(self.body[statement])
                live = (live - effect.kills) | effect.needs
                found[statement] = live
        return found


def liveness(cfg: ControlFlowGraph, body: Sequence[Statement]) -> Liveness:
    """The live registers of a function body; nothing is live at its end."""
    graph = FlowGraph(dict(enumerate(cfg.successors)), frozenset({cfg.entry}), frozenset(cfg.exits))
    numbering, solution = _solve(body, graph, lambda block: cfg.blocks[block].statements())
    return Liveness(body, cfg, ItemSets(numbering, solution.before), ItemSets(numbering, solution.after))


def region(cfg: ControlFlowGraph, start: int, stops: Collection[int]) -> frozenset[int]:
    """The statements that control reaches from statement ``start`` before it reaches one of ``stops``.

    The region contains ``start`` unless that is a stop, and no stops.
    """
    successors = _statement_successors(cfg)
    found: set[int] = set()
    work = [start]
    while work:
        statement = work.pop()
        if statement not in found and statement not in stops:
            found.add(statement)
            work += successors(statement)
    return frozenset(found)


def upward_exposed(
    cfg: ControlFlowGraph, body: Sequence[Statement], start: int, stops: Collection[int]
) -> frozenset[str]:
    """The registers read between statement ``start`` and ``stops`` before they are written there.

    The region is that of `region`; what is read at the stops or after them does not count.
    """
    pieces = _pieces(cfg, start, frozenset(stops))
    graph = FlowGraph({at: targets for at, (_, targets) in pieces.items()}, frozenset({start}), frozenset())
    numbering, solution = _solve(body, graph, lambda at: range(at, pieces[at][0]))
    return frozenset(numbering.items(solution.before[start]))


def _pieces(
    cfg: ControlFlowGraph, start: int, stops: frozenset[int]
) -> Mapping[int, tuple[int, tuple[int, ...]]]:
    """The runs of statements that control may pass through from ``start`` onwards before it reaches one of ``stops``.
    For the first statement of each: where the run stops (half-open), and the first statements of the runs after it.
    """
    found: dict[int, tuple[int, tuple[int, ...]]] = {}
    work = [start]
    while work:
        at = work.pop()
        if at in found:
            continue
        block = cfg.blocks[cfg.block_of(at)]
        stop = next((i for i in range(at, block.stop) if i in stops), None)
        targets = () if stop is not None else (cfg.blocks[b].start for b in cfg.successors[block.index])
        found[at] = (block.stop if stop is None else stop, tuple(targets))
        work += found[at][1]
    return found


def _solve(
    body: Sequence[Statement], graph: FlowGraph, statements: Callable[[int], Sequence[int]]
) -> tuple[Numbering[str], Solution[int]]:
    """Liveness as bit sets over a graph whose nodes each represent some statements."""
    kills: dict[int, set[str]] = {}
    needs: dict[int, set[str]] = {}
    for node in graph.successors:
        kill: set[str] = set()
        need: set[str] = set()
        for index in reversed(statements(node)):
            effect = effects.of(body[index])
            kill |= effect.kills
            need -= effect.kills
            need |= effect.needs
        kills[node], needs[node] = kill, need
    # Registers that no node needs from outside are live nowhere between nodes, and there are many of them.
    numbering = Numbering(sorted(set().union(*needs.values())))
    killed = {node: numbering.bits(k for k in kill if k in numbering) for node, kill in kills.items()}
    needed = {node: numbering.bits(need) for node, need in needs.items()}
    analysis = Analysis(Direction.BACKWARD, 0, 0, or_, lambda node, live: live & ~killed[node] | needed[node])
    return numbering, solve(analysis, graph)


def _statement_successors(cfg: ControlFlowGraph) -> Callable[[int], Iterable[int]]:
    """A function that maps a statement to those that may run next."""

    def successors(statement: int) -> Iterable[int]:
        block = cfg.blocks[cfg.block_of(statement)]
        if statement + 1 < block.stop:
            return (statement + 1,)
        return [cfg.blocks[target].start for target in cfg.successors[block.index]]

    return successors
