"""The order in which the nodes of a graph are written.

If a function calls another one, the order is topological, like that of the compiler's own code, and loops are
contiguous. ptxas (13.0) gives a callee the uniform registers that are dead in the order of the code. If one side of a
divergent branch is written after the join of both, these include registers that lanes on the other side still read.

        A: @%p bra T;                   A: @%p bra T;
           O                               O; bra J;
        J: ...; ret;            not     T: T, with the call
        T: T, with the call; bra J;     J: ...; ret;

In other functions, a node follows one that falls through to it, so lanes that skip a marked path need no jump.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import networkx as nx

from cccopt.ccc.function.graph import Branch, End, Jump, Node, reachable, targets
from cccopt.ptx.ir import Instruction


def layout(entry: str, nodes: Mapping[str, Node]) -> list[str]:
    """The nodes that ``entry`` reaches, in the order in which they are written; ``entry`` comes first."""
    alive = reachable(nodes, [entry])
    calls = any(isinstance(s, Instruction) and s.base == "call" for name in alive for s in nodes[name].code)
    order = _topological if calls else _falling_through
    return order(entry, {name: node for name, node in nodes.items() if name in alive})


def _falling_through(entry: str, nodes: Mapping[str, Node]) -> list[str]:
    """Each node after one that falls through to it if possible, else in the given order."""
    laid_out: dict[str, None] = {}
    for start in (entry, *nodes):
        name: str | None = start
        while name is not None and name not in laid_out:
            laid_out[name] = None
            name = _preferred(nodes[name].end, laid_out)
    return list(laid_out)


def _preferred(end: End, laid_out: Collection[str]) -> str | None:
    match end:
        case Jump(target):
            return target
        case Branch(_, taken, otherwise):
            return otherwise if otherwise not in laid_out else taken
        case _:
            return None


def _topological(entry: str, nodes: Mapping[str, Node]) -> list[str]:
    """Each node after its predecessors (back edges aside), loops in one piece, a branch's sides one after the other.

    A cycle with several entries is entered in the given order.
    """
    graph = nx.DiGraph((name, target) for name, node in nodes.items() for target in targets(node.end))
    graph.add_node(entry)
    back, loops = _loops(graph, entry)
    waits_for = {name: {s for s in graph.predecessors(name) if (s, name) not in back} for name in nodes}
    waiting = {loop: set(loop) for loop in loops}
    ready = [entry]
    laid_out: dict[str, None] = {}
    while len(laid_out) < len(nodes):
        if not ready:
            ready.append(next(name for name in nodes if name not in laid_out))
        begun = [left for loop, left in waiting.items() if 0 < len(left) < len(loop)]
        inside = (name for name in reversed(ready) if all(name in left for left in begun))
        chosen = next(inside, ready[-1])
        ready.remove(chosen)
        laid_out[chosen] = None
        for left in waiting.values():
            left.discard(chosen)
        # What becomes ready last is written first: the side to which a branch falls through.
        for target in dict.fromkeys(targets(nodes[chosen].end)):
            waits_for[target].discard(chosen)
            if not waits_for[target] and target not in laid_out and target not in ready:
                ready.append(target)
    return list(laid_out)


def _loops(graph: nx.DiGraph[str], entry: str) -> tuple[set[tuple[str, str]], list[frozenset[str]]]:
    """The back edges of a graph, and its natural loops."""
    above = nx.immediate_dominators(graph, entry)

    def dominates(header: str, name: str) -> bool:
        while name != header and name != entry:
            name = above[name]
        return name == header

    back = {(source, target) for source, target in graph.edges if dominates(target, source)}
    loops = []
    for header in dict.fromkeys(target for _, target in back):
        body = graph.subgraph(set(graph) - {header})
        latches = [source for source, target in back if target == header and source != header]
        loops.append(frozenset({header, *latches}).union(*(nx.ancestors(body, latch) for latch in latches)))
    return back, loops
