"""Natural loops of small bodies."""

from __future__ import annotations

from hypothesis import given, settings

from cccopt.analysis.cfg import build
from cccopt.analysis.loops import Loop, back_edges, innermost, irreducible_edges, loops
from cccopt.ptx.ir import Instruction, Label
from tests.slow import drawn

from .graphs import add, bodies, bra, label

MOVE = add("%r1", "%r2")
RETURN = Instruction("ret")


def test_a_loop_and_its_exit():
    cfg = build((MOVE, Label(label(1)), MOVE, bra(3, "%p"), MOVE, bra(1), Label(label(3)), RETURN))
    assert loops(cfg) == (Loop(1, (2,), frozenset({1, 2}), ((1, 3),), None, 1),)
    assert irreducible_edges(cfg) == ()


def test_a_block_that_branches_to_itself():
    cfg = build((MOVE, Label(label(1)), MOVE, bra(1, "%p"), RETURN))
    assert loops(cfg) == (Loop(1, (1,), frozenset({1}), ((1, 2),), None, 1),)


def test_nested_loops_and_two_latches_of_one_header():
    body = (
        MOVE,  # 0
        Label(label(1)),  # 1: outer header
        MOVE,
        Label(label(2)),  # 2: inner
        bra(2, "%p"),
        bra(1, "%q"),  # 3: first outer latch
        bra(1, "%s"),  # 4: second outer latch
        RETURN,  # 5
    )
    outer, inner = loops(build(body))
    assert outer == Loop(1, (3, 4), frozenset({1, 2, 3, 4}), ((4, 5),), None, 1)
    assert inner == Loop(2, (2,), frozenset({2}), ((2, 3),), 0, 2)
    assert innermost((outer, inner), 2) == inner
    assert innermost((outer, inner), 3) == outer
    assert innermost((outer, inner), 5) is None


def test_a_cycle_with_two_entries_is_irreducible_and_no_natural_loop():
    cfg = build((bra(2, "%p"), Label(label(1)), MOVE, Label(label(2)), bra(1, "%q"), RETURN))
    assert loops(cfg) == ()
    assert len(irreducible_edges(cfg)) == 1
    assert set(irreducible_edges(cfg)) <= {(1, 2), (2, 1)}


def test_a_cycle_that_is_not_reached_counts_for_nothing():
    cfg = build((RETURN, Label(label(1)), MOVE, bra(1)))
    assert loops(cfg) == ()
    assert irreducible_edges(cfg) == ()


@settings(max_examples=drawn(150), deadline=None)
@given(bodies())
def test_a_loop_is_entered_at_its_header_only_and_reducible_graphs_are_acyclic_without_back_edges(body):
    cfg = build(body)
    found = loops(cfg)
    for place, loop in enumerate(found):
        entries = {
            b for a, b in cfg.edges() if a in cfg.reachable and a not in loop.blocks and b in loop.blocks
        }
        assert entries <= {loop.header}
        assert loop.parent is None or loop.blocks < found[loop.parent].blocks
        assert loop.parent is None or loop.parent < place
    forward = {block: set(cfg.successors[block]) for block in cfg.reachable}
    for a, b in back_edges(cfg):
        forward[a].discard(b)
    cyclic = any(
        a in reach
        for a in forward
        for reach in [set().union(*(_reach(forward, t) for t in forward[a]), set())]
    )
    assert bool(irreducible_edges(cfg)) == cyclic


def _reach(successors, start):
    seen = {start}
    work = [start]
    while work:
        new = successors[work.pop()] - seen
        seen |= new
        work += new
    return seen
