"""The counters that a thread clears when it enters their loops, and adds up only if it has done so.

A function may have hundreds of counters in loops, few of which a thread enters. Outermost loops are entered at most
once in a call: there is no way back to them. So counters that are not in registers are in ranges, one for each such
loop; a bit of a register says whether the thread has entered it.

        @%p st.local.u32 [own+..], 0;       for each counter of the loop
        @%p or.b32 %entered, %entered, 4;
        @%p bra LOOP;

All threads first clear the counters of loops that may be entered from another loop or through a jump table: code that
clears them on entry would be in the other loop, or would have no condition to run under.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from cccopt.passes.counting.flow import Flow, Way
from cccopt.passes.counting.layout import OUTSIDE

_MOST = 32
"""The most loops with ranges of their own: the bits of a register."""


@dataclass(frozen=True, slots=True)
class Nest:
    """An outermost loop: its counters in local memory are numbers ``start`` to ``stop`` of the thread's own.
    ``entries`` are the edges that lead to it.
    """

    start: int
    stop: int
    entries: tuple[int, ...]


def sorted_by_nest(flow: Flow, units: Sequence[int], first: int) -> tuple[list[int], tuple[Nest, ...]]:
    """An order of the counters in ``units``: those that all threads clear, then loop by loop; and the loops, whose
    counters are numbered from ``first`` in this order.
    """
    by_cycle: dict[int, list[int]] = defaultdict(list)
    for index, unit in enumerate(units):
        by_cycle[flow.cycle(unit)].append(index)
    entries = {cycle: _entries(flow, cycle) for cycle in by_cycle}
    lazy = sorted((c for c in by_cycle if entries[c]), key=lambda c: -len(by_cycle[c]))[:_MOST]
    order = [index for index, unit in enumerate(units) if flow.cycle(unit) not in lazy]
    nests = []
    for cycle in sorted(lazy):
        start = first + len(order)
        order += by_cycle[cycle]
        nests.append(Nest(start, first + len(order), entries[cycle]))
    return order, tuple(nests)


def _entries(flow: Flow, cycle: int) -> tuple[int, ...]:
    """The edges that lead to a cycle from outside; none if one is of a jump table or comes from another cycle."""
    found = [
        index
        for index, edge in enumerate(flow.edges)
        if edge.target != OUTSIDE
        and flow.cycle(edge.target) == cycle
        and (edge.source == OUTSIDE or flow.cycle(edge.source) != cycle)
    ]
    for edge in (flow.edges[index] for index in found):
        if edge.way in (Way.INDEXED, Way.LOST):
            return ()
        if edge.source != OUTSIDE and flow.units[edge.source].depth:
            return ()
    return tuple(found)
