"""The def-use graph: which statement's result is read by which, and use-def chains, the same backwards.

Nodes are statement indices, and `reaching.ENTRY` where a register may be read unwritten; an edge carries
``registers``, the names through which the value passes. A guarded write is a use of the value it may keep.

        0   ld.param.u32 %r1, [n];        edges: 0 -> 1 {%r1}, 1 -> 2 {%r2}, ENTRY -> 2 {%rd1}
        1   add.s32 %r2, %r1, 1;
        2   st.global.u32 [%rd1], %r2;

Kennedy, "A survey of data flow analysis techniques", 1981 (use-definition chains).
"""

from __future__ import annotations

import networkx as nx

from cccopt.analysis import effects
from cccopt.analysis.reaching import ReachingDefinitions


def def_use_graph(reaching: ReachingDefinitions) -> nx.DiGraph:
    """The def-use graph of the statements that the entry reaches and that read or write a register."""
    graph = nx.DiGraph()
    for block in reaching.cfg.reverse_postorder:
        for use in reaching.cfg.blocks[block].statements():
            statement = reaching.body[use]
            if effects.needs(statement) or effects.writes(statement):
                graph.add_node(use)
            for register in effects.needs(statement):
                for definition in reaching.reaching(use, register):
                    known = graph.get_edge_data(definition, use, {"registers": frozenset()})["registers"]
                    graph.add_edge(definition, use, registers=known | {register})
    return graph


def uses(graph: nx.DiGraph, definition: int, register: str) -> frozenset[int]:
    """The statements that may read the value that ``definition`` leaves in ``register``."""
    if definition not in graph:
        return frozenset()
    edges = graph.out_edges(definition, data="registers")
    return frozenset(use for _, use, registers in edges if register in registers)


def definitions(graph: nx.DiGraph, use: int, register: str) -> frozenset[int]:
    """The use-def chain: the definitions whose value of ``register`` may be read by ``use``."""
    if use not in graph:
        return frozenset()
    edges = graph.in_edges(use, data="registers")
    return frozenset(definition for definition, _, registers in edges if register in registers)
