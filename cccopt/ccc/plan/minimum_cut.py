"""The minimum cut of a network, by maximum flow: level graphs and blocking flows.

        source -3-> a -2-> sink         cut: a and b are on the source's side,
        source -1-> b -9-> sink    ->   but for b, which could still send more to the sink: {source, a}

E. A. Dinic, "Algorithm for solution of a problem of maximum flow in networks with power estimation", 1970. A module of
its own rather than networkx, which takes longer to import than most files to rewrite.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import pairwise
from math import inf
from typing import Generic, TypeVar

Node = TypeVar("Node", bound=Hashable)


class Network(Generic[Node]):
    """Nodes and the capacities of edges between them."""

    def __init__(self) -> None:
        self._capacity: dict[Node, dict[Node, float]] = {}

    def add_edge(self, start: Node, end: Node, capacity: float = inf) -> None:
        """Add an edge; one that is there already gets the new capacity."""
        self._capacity.setdefault(start, {})[end] = capacity
        self._capacity.setdefault(end, {})

    def source_side(self, source: Node, sink: Node) -> set[Node]:
        """The nodes on the side of ``source`` in the minimum cut with the most of them.

        Raises ValueError where a path without a limit leads from ``source`` to ``sink``.
        """
        residual = {node: dict(edges) for node, edges in self._capacity.items()}
        for start, edges in self._capacity.items():
            for end in edges:
                residual[end].setdefault(start, 0)
        while sink in (level := _levels(residual, source)):
            _block(residual, level, source, sink)
        return residual.keys() - _reaching(residual, sink)


_Residual = dict[Node, dict[Node, float]]


def _levels(residual: _Residual[Node], source: Node) -> dict[Node, int]:
    """How many edges each node is away that the source can still send to."""
    level = {source: 0}
    work = [source]
    for node in work:
        new = [end for end, left in residual[node].items() if left and end not in level]
        level.update(dict.fromkeys(new, level[node] + 1))
        work += new
    return level


def _block(residual: _Residual[Node], level: dict[Node, int], source: Node, sink: Node) -> None:
    """Send what fits along ways that go up one level with each edge."""
    ends = {
        node: [end for end in residual[node] if level.get(end, 0) == above + 1]
        for node, above in level.items()
    }
    way = [source]
    while way:
        node = way[-1]
        if node == sink:
            amount = min(residual[start][end] for start, end in pairwise(way))
            if amount == inf:
                raise ValueError("a way without a limit")
            for start, end in pairwise(way):
                residual[start][end] -= amount
                residual[end][start] += amount
            way = [source]
            continue
        while ends[node] and not residual[node][ends[node][-1]]:
            ends[node].pop()
        if ends[node]:
            way.append(ends[node][-1])
            continue
        way.pop()
        if way:
            ends[way[-1]].pop()


def _reaching(residual: _Residual[Node], sink: Node) -> set[Node]:
    """The nodes that could still send to the sink."""
    found = {sink}
    work = [sink]
    while work:
        end = work.pop()
        new = [start for start in residual[end] if start not in found and residual[start][end]]
        found.update(new)
        work += new
    return found
