"""The solver on graphs small enough to work out by hand."""

from __future__ import annotations

from operator import or_

import pytest

from cccopt.analysis.cfg import build
from cccopt.analysis.dataflow import Analysis, Direction, FlowGraph, Numbering, over_blocks, solve
from cccopt.ptx.ir import Instruction, Label

CHAIN_WITH_LOOP = FlowGraph({0: (1,), 1: (1, 2), 2: ()}, frozenset({0}), frozenset({2}))


def marking(direction: Direction, boundary: frozenset[str] = frozenset()) -> Analysis[frozenset[str]]:
    """Each node adds its number to the facts that pass."""
    return Analysis(direction, boundary, frozenset(), or_, lambda node, fact: fact | {str(node)})


def test_forwards_facts_come_from_the_entry():
    solution = solve(marking(Direction.FORWARD, frozenset({"in"})), CHAIN_WITH_LOOP)
    assert solution.before == {0: {"in"}, 1: {"in", "0", "1"}, 2: {"in", "0", "1"}}
    assert solution.after == {0: {"in", "0"}, 1: {"in", "0", "1"}, 2: {"in", "0", "1", "2"}}


def test_backwards_facts_come_from_the_exits():
    solution = solve(marking(Direction.BACKWARD, frozenset({"out"})), CHAIN_WITH_LOOP)
    assert solution.after == {2: {"out"}, 1: {"out", "2", "1"}, 0: {"out", "2", "1"}}
    assert solution.before == {2: {"out", "2"}, 1: {"out", "2", "1"}, 0: {"out", "2", "1", "0"}}


@pytest.mark.parametrize("direction", Direction)
def test_a_fixpoint_grows_with_the_transfers(direction):
    extra = {1: frozenset[str]()}
    analysis = Analysis(
        direction,
        frozenset({"in"}),
        frozenset[str](),
        or_,
        lambda n, fact: fact | {str(n)} | extra.get(n, frozenset()),
    )
    known = solve(analysis, CHAIN_WITH_LOOP)
    extra[1] = frozenset({"more"})
    assert solve(analysis, CHAIN_WITH_LOOP, known, [1]) == solve(analysis, CHAIN_WITH_LOOP)
    assert solve(analysis, CHAIN_WITH_LOOP, known) == known


def test_a_must_analysis_merges_by_intersection():
    everything = frozenset("abc")
    analysis = Analysis(
        Direction.FORWARD,
        frozenset(),
        everything,
        frozenset.intersection,
        lambda node, fact: fact | {1: frozenset("a"), 2: frozenset("ab")}.get(node, frozenset()),
    )
    graph = FlowGraph({0: (1, 2), 1: (3,), 2: (3,), 3: ()}, frozenset({0}), frozenset({3}))
    assert solve(analysis, graph).before[3] == frozenset("a")


def test_unreachable_blocks_do_not_flow_into_reachable_ones():
    graph = over_blocks(build((Label("A"), Instruction("ret"), Label("B"), Instruction("ret"))))
    assert set(graph.successors) == {0}
    assert graph.exits == {0}


def test_numbering_goes_both_ways_and_knows_its_items():
    numbering = Numbering(["x", "y", "x", "z"])
    assert len(numbering) == 3
    assert numbering.items(numbering.bits(["z", "x"])) == ("x", "z")
    assert "y" in numbering
    assert "w" not in numbering
    with pytest.raises(KeyError):
        numbering.bits(["w"])
