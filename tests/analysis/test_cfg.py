"""Blocks and edges of small bodies, written by hand."""

from __future__ import annotations

import pytest

from cccopt.analysis.cfg import Block, EdgeKind, build
from cccopt.ptx.ir import (
    BranchTargets,
    Close,
    Guard,
    Instruction,
    Label,
    Marker,
    Open,
    Register,
    RegisterDeclaration,
    RegisterNames,
    Symbol,
)

P = Register("%p1")
MOVE = Instruction("mov.u32", (Register("%r1"), Register("%r2")))
RETURN = Instruction("ret")


def bra(label, guarded=False):
    return Instruction("bra", (Symbol(label),), Guard(P) if guarded else None)


def ranges(cfg):
    return [(block.start, block.stop) for block in cfg.blocks]


def test_a_branch_and_its_fall_through_make_blocks_that_cover_the_body():
    body = (
        RegisterDeclaration(".b32", (RegisterNames("%r", 3),)),
        bra("DONE", guarded=True),
        Marker("if.begin", 1),
        MOVE,
        Label("DONE"),
        RETURN,
    )
    cfg = build(body)
    assert cfg.blocks == (Block(0, 0, 2), Block(1, 2, 4), Block(2, 4, 6, "DONE"))
    assert cfg.successors == ((1, 2), (2,), ())
    assert cfg.predecessors == ((), (0,), (0, 1))
    assert cfg.kinds == {
        (0, 2): {EdgeKind.TAKEN},
        (0, 1): {EdgeKind.FALLTHROUGH},
        (1, 2): {EdgeKind.FALLTHROUGH},
    }
    assert cfg.exits == (2,)
    assert [cfg.block_of(i) for i in range(len(body))] == [0, 0, 1, 1, 2, 2]


def test_where_branch_and_fall_through_meet_one_edge_has_both_kinds():
    cfg = build((bra("NEXT", guarded=True), Label("NEXT"), RETURN))
    assert cfg.successors == ((1,), ())
    assert cfg.kinds[0, 1] == {EdgeKind.TAKEN, EdgeKind.FALLTHROUGH}


def test_an_unguarded_branch_does_not_fall_through():
    cfg = build((bra("END"), MOVE, Label("END"), RETURN))
    assert cfg.successors == ((2,), (2,), ())
    assert cfg.reverse_postorder == (0, 2)
    assert cfg.reachable == {0, 2}


@pytest.mark.parametrize("opcode", ["ret", "exit", "trap", "ret.uni"])
def test_leaving_ends_a_block_and_a_guarded_one_also_falls_through(opcode):
    plain = build((Instruction(opcode), MOVE, RETURN))
    assert plain.successors == ((), ())
    assert plain.exits == (0, 1)
    guarded = build((Instruction(opcode, (), Guard(P)), MOVE, RETURN))
    assert guarded.successors == ((1,), ())
    assert guarded.exits == (0, 1)


def test_the_end_of_the_body_is_an_implicit_return():
    assert build((MOVE, Label("END"), MOVE)).exits == (1,)
    assert build((MOVE, bra("END", guarded=True), Label("END"))).exits == (1,)
    assert build((Label("END"), MOVE, bra("END", guarded=True))).exits == (0,)


def test_an_empty_body_is_one_empty_block_that_leaves():
    cfg = build(())
    assert cfg.blocks == (Block(0, 0, 0),)
    assert cfg.exits == (0,)
    assert cfg.reverse_postorder == (0,)


def test_labels_in_a_row_head_one_block():
    cfg = build((bra("B", guarded=True), Label("A"), Label("B"), MOVE, bra("A"), RETURN))
    assert ranges(cfg) == [(0, 1), (1, 5), (5, 6)]
    assert cfg.successors == ((1,), (1,), ())


def test_a_call_does_not_end_a_block():
    assert len(build((MOVE, Instruction("call.uni", (Symbol("f"),)), MOVE, RETURN)).blocks) == 1


def test_an_indexed_branch_reaches_each_of_its_targets():
    body = (
        BranchTargets("table", "branchtargets", ("A", "B", "A")),
        Instruction("brx.idx", (Register("%r1"), Symbol("table"))),
        Label("A"),
        RETURN,
        Label("B"),
        RETURN,
    )
    cfg = build(body)
    assert cfg.successors == ((1, 2), (), ())
    assert cfg.kinds == {(0, 1): {EdgeKind.TAKEN}, (0, 2): {EdgeKind.TAKEN}}


def test_a_label_is_found_in_its_own_scope_first():
    inner = (Open(), bra("L", guarded=True), MOVE, Label("L"), Close())
    cfg = build((*inner, *inner, Label("M"), RETURN))
    assert cfg.successors == ((1, 2), (2,), (3, 4), (4,), (5,), ())


def test_a_branch_out_of_a_scope_finds_the_outer_label():
    cfg = build((Open(), bra("L", guarded=True), Close(), MOVE, Label("L"), RETURN))
    assert cfg.successors == ((1, 2), (2,), ())


def test_a_label_of_another_scope_is_not_seen():
    with pytest.raises(ValueError, match="no label `L`"):
        build((Open(), Label("L"), Close(), bra("L"), RETURN))


def test_reverse_postorder_puts_a_block_behind_its_predecessors_but_for_back_edges():
    body = (
        Label("HEAD"),
        bra("ELSE", guarded=True),
        MOVE,
        bra("JOIN"),
        Label("ELSE"),
        MOVE,
        Label("JOIN"),
        bra("HEAD", guarded=True),
        RETURN,
    )
    cfg = build(body)
    rank = {block: place for place, block in enumerate(cfg.reverse_postorder)}
    assert set(rank) == {0, 1, 2, 3, 4}
    assert all(rank[a] < rank[b] for a, b in cfg.edges() if (a, b) != (3, 0))
