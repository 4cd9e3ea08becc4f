"""The units of a function and the edges between them: what counters have to distinguish.

A unit is a run of statements that the same lanes of the same warps execute together: a basic block, cut after each call
of a function that may end its thread, as fewer lanes may return from it.

        setp.eq.s32 %p1, %r1, 0;      unit 0    -> 2 (taken), 1
        @%p1 bra  DONE;
        call  may_exit;               unit 1    -> 3, OUTSIDE (loose)
        add.s32  %r1, %r1, 1;         unit 3    -> 2
    DONE:
        ret;                          unit 2    -> OUTSIDE
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import networkx as nx

from cccopt.analysis.cfg import ControlFlowGraph, EdgeKind, build, ending
from cccopt.analysis.loops import Loop, loops
from cccopt.passes.counting.layout import OUTSIDE
from cccopt.ptx.ir import Body, Guard, Instruction, Label
from cccopt.ptx.isa import Control, facts

LEAVING = (Control.RETURN, Control.EXIT)
"""The control transfers that end a function for a thread."""


class Way(Enum):
    """Which lanes take an edge."""

    ALWAYS = "always"  # all lanes at the end of its source
    TAKEN = "taken"  # those whose guard holds
    OTHER = "other"  # those whose guard does not
    INDEXED = "indexed"  # those whose index selects it
    LOST = "lost"  # those that a called function has ended
    ENTRY = "entry"  # those that the function is called with


@dataclass(frozen=True, slots=True)
class FlowUnit:
    """Statements ``start`` to ``stop`` of a basic block; ``depth`` is how many loops they are in."""

    block: int
    start: int
    stop: int
    depth: int


@dataclass(frozen=True, slots=True)
class FlowEdge:
    """Control goes from ``source`` to ``target``; ``guard`` is that of a conditional branch or exit."""

    source: int
    target: int
    way: Way
    guard: Guard | None = None


class Flow:
    """The reachable units and edges of a body. ``leaves`` says whether a call may end its thread."""

    def __init__(self, body: Body, leaves: Callable[[Instruction], bool]) -> None:
        self.body = body
        self.cfg: ControlFlowGraph = build(body)
        self.loops: tuple[Loop, ...] = loops(self.cfg)
        self.units: list[FlowUnit] = []
        self.edges: list[FlowEdge] = []
        self.first: dict[int, int] = {}
        self._last: dict[int, int] = {}
        depths = self._depths()
        for block in sorted(self.cfg.reachable):
            self._cut(block, depths[block], leaves)
        self.edges.append(FlowEdge(OUTSIDE, self.first[self.cfg.entry], Way.ENTRY))
        for block in sorted(self.cfg.reachable):
            self._leave(block)

    def _depths(self) -> dict[int, int]:
        """How many loops each block is in; cycles with several entries count as one."""
        graph = nx.DiGraph(list(self.cfg.edges()))
        parts = [found for found in nx.strongly_connected_components(graph) if len(found) > 1]
        self._cycle = {block: number for number, found in enumerate(parts) for block in found}
        cycles = self._cycle.keys() | set(nx.nodes_with_selfloops(graph))
        return {
            block: max(sum(block in loop.blocks for loop in self.loops), int(block in cycles))
            for block in self.cfg.reachable
        }

    def _cut(self, block: int, depth: int, leaves: Callable[[Instruction], bool]) -> None:
        start, stop = self.cfg.blocks[block].start, self.cfg.blocks[block].stop
        self.first[block] = len(self.units)
        for index in range(start, stop):
            statement = self.body[index]
            if (
                isinstance(statement, Instruction)
                and facts(statement).control is Control.CALL
                and leaves(statement)
            ):
                self.edges.append(FlowEdge(len(self.units), OUTSIDE, Way.LOST))
                self.edges.append(FlowEdge(len(self.units), len(self.units) + 1, Way.ALWAYS))
                self.units.append(FlowUnit(block, start, index + 1, depth))
                start = index + 1
        self._last[block] = len(self.units)
        self.units.append(FlowUnit(block, start, stop, depth))

    def _leave(self, block: int) -> None:
        """The edges from the end of a block."""
        source = self._last[block]
        last = ending(self.body, self.cfg.blocks[block])
        guard = None if last is None else last.guard
        control = None if last is None else facts(last).control
        targets = self.cfg.successors[block]
        for target in targets:
            kinds = self.cfg.kinds[block, target]
            if control is Control.INDEXED and len(targets) > 1:
                way = Way.INDEXED
            elif len(targets) == 1 and block not in self.cfg.exits:
                way = Way.ALWAYS
            else:
                way = Way.TAKEN if EdgeKind.TAKEN in kinds else Way.OTHER
            self.edges.append(FlowEdge(source, self.first[target], way, None if way is Way.ALWAYS else guard))
        if block in self.cfg.exits:
            way = Way.ALWAYS
            if guard is not None and targets:
                way = Way.OTHER if control is Control.BRANCH else Way.TAKEN
            self.edges.append(FlowEdge(source, OUTSIDE, way, None if way is Way.ALWAYS else guard))

    def last(self, block: int) -> int:
        """The last unit of a block."""
        return self._last[block]

    @cached_property
    def out(self) -> list[list[int]]:
        """The edges from each unit."""
        found: list[list[int]] = [[] for _ in self.units]
        for index, edge in enumerate(self.edges):
            if edge.source != OUTSIDE:
                found[edge.source].append(index)
        return found

    @cached_property
    def into(self) -> list[list[int]]:
        """The edges to each unit."""
        found: list[list[int]] = [[] for _ in self.units]
        for index, edge in enumerate(self.edges):
            if edge.target != OUTSIDE:
                found[edge.target].append(index)
        return found

    def head(self, unit: int) -> int:
        """The statement before which code that counts the unit is inserted: the first after its labels."""
        found = self.units[unit].start
        while found < self.units[unit].stop and isinstance(self.body[found], Label):
            found += 1
        return found

    def end(self, unit: int) -> int:
        """The statement before which code that runs last in the unit is inserted: its branch, or what follows it."""
        here = self.units[unit]
        last = self.body[here.stop - 1]
        ends = isinstance(last, Instruction) and ending(self.body, self.cfg.blocks[here.block]) is last
        return here.stop - 1 if ends else here.stop

    def is_in(self, edge: FlowEdge, blocks: Collection[int]) -> bool:
        """Whether an edge comes out of one of ``blocks``."""
        return edge.source != OUTSIDE and self.units[edge.source].block in blocks

    def cycle(self, unit: int) -> int:
        """A number that identifies the cycles that a unit is in: cycles that share code have one number, and so do all
        units that are in no cycle.
        """
        block = self.units[unit].block
        if block in self._cycle or not self.units[unit].depth:
            return self._cycle.get(block, -1)
        return len(self.cfg.blocks) + block  # a block that is a loop by itself

    def leaves_loop(self, edge: FlowEdge) -> bool:
        """Whether lanes that take an edge may wait after it for others that run another iteration of a loop."""
        if OUTSIDE in (edge.source, edge.target):
            return False
        source, target = self.units[edge.source].block, self.units[edge.target].block
        if source in self._cycle and self._cycle.get(target) != self._cycle[source]:
            return True
        return any(source in loop.blocks and target not in loop.blocks for loop in self.loops)

    def may_meet(self, unit: int) -> bool:
        """Whether lanes that reach a unit separately may reconverge in it: at a call, a collective, or a barrier."""
        here = self.units[unit]
        run = (s for s in self.body[here.start : here.stop] if isinstance(s, Instruction))
        return any(facts(s).convergent or facts(s).control is Control.CALL for s in run)

    def only_leaves(self, unit: int) -> bool:
        """Whether a unit is a bare `ret` or `exit`."""
        here = self.units[unit]
        run = [s for s in self.body[here.start : here.stop] if isinstance(s, Instruction)]
        return len(run) == 1 and run[0].guard is None and facts(run[0]).control in LEAVING

    def edge_depth(self, edge: FlowEdge) -> int:
        """The approximate number of loops that lanes taking the edge stay in."""
        depths = [self.units[unit].depth for unit in (edge.source, edge.target) if unit != OUTSIDE]
        return min(depths) if len(depths) == 2 else 0


def branches(flow: Flow) -> Iterator[tuple[int, int, int]]:
    """The units that end with a conditional branch, except branches to where control goes anyway, with the edges of
    lanes that jump and of those that do not.
    """
    for block in sorted(flow.first):
        last = ending(flow.body, flow.cfg.blocks[block])
        if last is None or last.guard is None or facts(last).control is not Control.BRANCH:
            continue
        unit = flow.last(block)
        by_way = {flow.edges[i].way: i for i in flow.out[unit]}
        if Way.TAKEN in by_way and Way.OTHER in by_way:
            yield unit, by_way[Way.TAKEN], by_way[Way.OTHER]
