"""The order in which blocks are written."""

from __future__ import annotations

import networkx as nx
from hypothesis import assume, given
from hypothesis import strategies as st

from cccopt.ccc.function.graph import Branch, Jump, Leave, Node, targets
from cccopt.ccc.function.layout import layout
from cccopt.ptx.ir import Guard, Instruction, Register, Symbol

ENTRY = "0"


def node(name: str, successors: list[str], calls: bool) -> Node:
    code = (Instruction("call.uni", (Symbol("f"),)),) if calls else ()
    match successors:
        case []:
            return Node(name, code, Leave(Instruction("ret")))
        case [target]:
            return Node(name, code, Jump(target))
        case [taken, otherwise]:
            return Node(name, code, Branch(Guard(Register("%p")), taken, otherwise))
        case _:
            raise ValueError(successors)


def graph(text: str) -> dict[str, Node]:
    """The nodes of ``0:taken,otherwise 1:target 2:``; a ``!`` behind a name is a call in that node."""
    nodes = {}
    for item in text.split():
        name, _, successors = item.partition(":")
        nodes[name.rstrip("!")] = node(
            name.rstrip("!"), successors.split(",") if successors else [], name.endswith("!")
        )
    return nodes


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, Node]:
    """Graphs of nodes with up to two successors, with a call in the first one."""
    names = [str(position) for position in range(draw(st.integers(1, 9)))]
    return {
        name: node(name, draw(st.lists(st.sampled_from(names), max_size=2, unique=True)), name == ENTRY)
        for name in names
    }


def edges(nodes: dict[str, Node]) -> nx.DiGraph[str]:
    found = nx.DiGraph((name, target) for name, each in nodes.items() for target in targets(each.end))
    found.add_node(ENTRY)
    return found.subgraph(nx.descendants(found, ENTRY) | {ENTRY})


def dominated(flow: nx.DiGraph[str], name: str) -> set[str]:
    """The nodes that the entry cannot reach without ``name``, itself too."""
    if name == ENTRY:
        return set(flow)
    rest = flow.subgraph(set(flow) - {name})
    return set(flow) - nx.descendants(rest, ENTRY) - {ENTRY}


def test_without_a_call_a_node_follows_one_that_falls_through_to_it() -> None:
    assert layout(ENTRY, graph("0:T,O T:J O:J J:")) == ["0", "O", "J", "T"]


def test_with_a_call_both_sides_of_a_branch_come_before_their_join() -> None:
    assert layout(ENTRY, graph("0:T,O T!:J O:J J:")) == ["0", "O", "T", "J"]


def test_with_a_call_what_leaves_a_loop_comes_after_it() -> None:
    assert layout(ENTRY, graph("0:H H:E,B B!:H E:")) == ["0", "H", "B", "E"]
    assert layout(ENTRY, graph("0:H H:B,E B!:H E:")) == ["0", "H", "B", "E"]


@given(graphs())
def test_each_reached_node_is_written_once_and_the_entry_first(nodes: dict[str, Node]) -> None:
    order = layout(ENTRY, nodes)
    assert order[0] == ENTRY
    assert sorted(order) == sorted(edges(nodes))


@given(graphs())
def test_with_a_call_edges_lead_forward_unless_they_close_a_loop(nodes: dict[str, Node]) -> None:
    flow = edges(nodes)
    forward = [(source, target) for source, target in flow.edges if source not in dominated(flow, target)]
    assume(nx.is_directed_acyclic_graph(nx.DiGraph(forward)))
    order = layout(ENTRY, nodes)
    assert all(order.index(source) < order.index(target) for source, target in forward)


@given(graphs())
def test_with_a_call_loops_are_in_one_piece(nodes: dict[str, Node]) -> None:
    flow = edges(nodes)
    back = [(source, target) for source, target in flow.edges if source in dominated(flow, target)]
    assume(back and nx.is_directed_acyclic_graph(nx.DiGraph(set(flow.edges) - set(back))))
    order = layout(ENTRY, nodes)
    for header in {header for _, header in back}:
        body = flow.subgraph(set(flow) - {header})
        latches = {latch for latch, target in back if target == header} - {header}
        loop = {header} | latches.union(*(nx.ancestors(body, latch) for latch in latches))
        places = sorted(order.index(name) for name in loop)
        assert places == list(range(places[0], places[0] + len(places)))
