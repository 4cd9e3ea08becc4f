"""The labels by which profiles know the phases of rewritten code."""

from __future__ import annotations

from cccopt.ccc.function.graph import Graph, reachable


def labels_of(graph: Graph, phases: tuple[str, ...], number: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The labels of the reachable nodes in each phase of path or region ``number``."""
    alive = reachable(graph.nodes, [graph.entry])
    kept = [node for node in graph.nodes.values() if node.name in alive]
    found = ((p, tuple(n.name for n in kept if n.phase == f"{p}_{number}")) for p in phases)
    return tuple((phase, names) for phase, names in found if names)


def entry_of(graph: Graph, number: str) -> str:
    """The label of the rewritten loop of region ``number``: where it claims memory for its stacks, if it does."""
    (_, (entry,)), *_ = labels_of(graph, ("claim", "whole"), number)
    return entry
