"""Dominator trees of known graphs, and of random ones against the definition."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from cccopt.analysis.cfg import build
from cccopt.analysis.dominance import (
    EXIT,
    control_dependence,
    dominators,
    immediate_dominators,
    post_dominators,
)
from cccopt.ptx.ir import Instruction, Label
from tests.slow import drawn

from .graphs import add, bodies, bra, label, reached

MOVE = add("%r1", "%r2")
RETURN = Instruction("ret")
DIAMOND = (
    bra(2, "%p"),
    MOVE,
    bra(3),
    Label(label(2)),
    MOVE,
    Label(label(3)),
    RETURN,
)
LOOP = (MOVE, Label(label(1)), MOVE, bra(3, "%p"), MOVE, bra(1), Label(label(3)), RETURN)
SPIN = (bra(2, "%p"), Label(label(1)), bra(1), Label(label(2)), RETURN)


def test_diamond():
    cfg = build(DIAMOND)
    assert dominators(cfg).immediate == {0: None, 1: 0, 2: 0, 3: 0}
    assert post_dominators(cfg).immediate == {EXIT: None, 3: EXIT, 2: 3, 1: 3, 0: 3}
    assert control_dependence(cfg) == {0: set(), 1: {0}, 2: {0}, 3: set()}


def test_loop_header_depends_on_the_branch_that_ends_the_loop():
    cfg = build(LOOP)
    assert dominators(cfg).immediate == {0: None, 1: 0, 2: 1, 3: 1}
    assert post_dominators(cfg).immediate == {EXIT: None, 3: EXIT, 1: 3, 2: 1, 0: 1}
    assert control_dependence(cfg) == {0: set(), 1: {1}, 2: {1}, 3: set()}


def test_a_spin_loop_has_no_post_dominators_but_its_control_dependence():
    cfg = build(SPIN)
    assert set(post_dominators(cfg).immediate) == {EXIT, 0, 2}
    assert control_dependence(cfg)[1] >= {0}
    assert not post_dominators(cfg).dominates(1, 1)


def test_unreachable_blocks_have_no_dominator():
    cfg = build((RETURN, MOVE, RETURN))
    assert dominators(cfg).immediate == {0: None}


def test_code_behind_a_guarded_exit_depends_on_it():
    cfg = build((Instruction("exit", (), bra(0, "%p").guard), MOVE, RETURN))
    assert control_dependence(cfg) == {0: set(), 1: {0}}
    assert post_dominators(cfg).immediate == {EXIT: None, 0: EXIT, 1: EXIT}


def test_queries_on_the_tree():
    tree = dominators(build(DIAMOND))
    assert tree.dominates(0, 3)
    assert tree.dominates(3, 3)
    assert not tree.dominates(1, 3)
    assert tree.nearest_common([1, 2]) == 0
    assert tree.nearest_common([2]) == 2
    assert tree.chain(3) == (3, 0)
    with pytest.raises(ValueError, match="no nodes"):
        tree.nearest_common([])
    with pytest.raises(KeyError):
        tree.nearest_common([1, 99])


def test_any_small_graph_without_all_keys():
    tree = immediate_dominators({7: {8, 9}, 8: {10}, 9: {10}}, 7)
    assert tree.immediate == {7: None, 8: 7, 9: 7, 10: 7}
    assert immediate_dominators({}, 4).immediate == {4: None}


@settings(max_examples=drawn(150), deadline=None)
@given(bodies())
def test_dominators_are_what_the_definition_says(body):
    cfg = build(body)
    successors = {block: set(targets) for block, targets in enumerate(cfg.successors)}
    tree = dominators(cfg)
    nodes = reached(successors, 0)
    assert set(tree.immediate) == nodes
    for a in nodes:
        for b in nodes:
            assert tree.dominates(a, b) == (b not in reached(successors, 0, without=a))


@settings(max_examples=drawn(150), deadline=None)
@given(bodies())
def test_post_dominators_are_what_the_definition_says(body):
    cfg = build(body)
    successors = {block: set(targets) for block, targets in enumerate(cfg.successors)}
    for block in cfg.exits:
        successors[block].add(EXIT)
    tree = post_dominators(cfg)
    nodes = {block for block in successors if EXIT in reached(successors, block)}
    assert set(tree.immediate) == nodes | {EXIT}
    for a in nodes:
        for b in nodes:
            assert tree.dominates(a, b) == (EXIT not in reached(successors, b, without=a))


@settings(max_examples=drawn(150), deadline=None)
@given(bodies())
def test_control_dependence_is_what_the_definition_says(body):
    cfg = build(body)
    successors = {block: set(targets) for block, targets in enumerate(cfg.successors)}
    for block in cfg.exits:
        successors[block].add(EXIT)
    leaving = {block for block in successors if EXIT in reached(successors, block)}
    for block in set(successors) - leaving:
        successors[block].add(EXIT)

    def surely(start: int, node: int) -> bool:
        return EXIT not in reached(successors, start, without=node)

    for node, branches in control_dependence(cfg).items():
        expected = {
            a
            for a, targets in successors.items()
            if any(t != EXIT and surely(t, node) for t in targets)
            and (a == node or not surely(a, node))
            and any(not surely(t, node) for t in targets)
        }
        assert branches == expected
