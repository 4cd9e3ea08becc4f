"""Registers that converged code may, as far as edges show, read before it writes them, on paths that no lane takes.

A join brings all lanes together, including those that go on elsewhere (a `continue`, the end of an arm), and a number
sends each on its way. As far as edges show, a lane may then come from any edge before the join to any edge after it:

        A: mov.u32 %r1, 28;   ->  destination 1     join, dispatch     1: add.s32 %r2, %r1, 3;
        B: ...                ->  destination 0                        0: ...

No lane of B reads %r1, but ptxas (13.0) knows only the edges: it may assume any value for %r1, even in lanes of A. Aho,
Lam, Sethi, Ullman, "Compilers", 2nd ed., 9.2.5.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from operator import or_

from cccopt.analysis import effects
from cccopt.analysis.dataflow import Analysis, Direction, FlowGraph, solve
from cccopt.ccc.function.graph import Branch, End, IndexedJump, Leave, Node, program_order, reachable, targets
from cccopt.ptx.ir import Register


def exposed(
    nodes: Mapping[str, Node], entry: str, read_after: Collection[str], given: Collection[str]
) -> frozenset[str]:
    """The registers, except those ``given``, that are live at ``entry``; ``read_after`` are live outside of
    ``nodes``.
    """
    names = program_order(nodes, reachable(nodes, [entry]))
    index = {name: number for number, name in enumerate(names)}
    kills: list[frozenset[str]] = []
    needs: list[frozenset[str]] = []
    for name in names:
        node = nodes[name]
        killed, needed = frozenset[str](), _needs(node.end)
        for statement in reversed(node.code):
            gone = effects.kills(statement)
            killed |= gone
            needed = (needed - gone) | effects.needs(statement)
        kills.append(killed)
        needs.append(needed.difference(given))
    edges = {index[name]: [*targets(nodes[name].end)] for name in names}
    graph = FlowGraph(
        {number: [index[t] for t in found if t in index] for number, found in edges.items()},
        frozenset({index[entry]}),
        frozenset(number for number, found in edges.items() if any(t not in index for t in found)),
    )
    outside, nothing = frozenset(read_after).difference(given), frozenset[str]()
    live = Analysis(
        Direction.BACKWARD, outside, nothing, or_, lambda number, after: after - kills[number] | needs[number]
    )
    return solve(live, graph).before[index[entry]]


def _needs(end: End) -> frozenset[str]:
    """The registers that decide where control goes."""
    match end:
        case Branch(guard):
            return frozenset({guard.register.name})
        case IndexedJump(_, Register(name)):
            return frozenset({name})
        case Leave(instruction) if instruction is not None:
            return effects.needs(instruction)
    return frozenset()
