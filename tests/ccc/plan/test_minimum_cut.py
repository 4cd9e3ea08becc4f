"""Minimum cuts of known networks, and of random ones against networkx."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cccopt.ccc.plan.minimum_cut import Network


def _network(edges):
    network = Network[object]()
    for edge in edges:
        network.add_edge(*edge)
    return network


def test_side_of_the_source_is_as_large_as_it_can_be():
    edges = [("s", "a", 3), ("a", "t", 2), ("s", "b", 1), ("b", "t", 9)]
    assert _network(edges).source_side("s", "t") == {"s", "a"}
    assert _network([("s", "a", 1), ("a", "b", 1), ("b", "t", 1)]).source_side("s", "t") == {"s", "a", "b"}


def test_edges_without_capacity_are_not_cut():
    assert _network([("s", "a"), ("a", "t", 2)]).source_side("s", "t") == {"s", "a"}
    with pytest.raises(ValueError, match="limit"):
        _network([("s", "a"), ("a", "t")]).source_side("s", "t")


def test_a_later_capacity_counts():
    assert _network([("s", "a", 1), ("a", "t", 5), ("s", "a", 9)]).source_side("s", "t") == {"s", "a"}


NODES = st.integers(0, 7)


@given(st.lists(st.tuples(NODES, NODES, st.integers(0, 4)).filter(lambda edge: edge[0] != edge[1])))
def test_cuts_are_those_of_networkx(edges):
    edges = [(0, 7, 0), *edges]
    graph = nx.DiGraph()
    for start, end, capacity in edges:
        graph.add_edge(start, end, capacity=capacity)
    _, (source, _) = nx.minimum_cut(graph, 0, 7)
    assert _network(edges).source_side(0, 7) == source
