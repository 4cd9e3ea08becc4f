"""Where parted lanes meet, on bodies whose blocks each write one register: block n writes bit n."""

from __future__ import annotations

from cccopt.analysis.cfg import build
from cccopt.analysis.mixing import Mixing
from cccopt.ptx.ir import Instruction, Label

from .graphs import add, bra, label

MOVE = add("%r1", "%r2")
RETURN = Instruction("ret")


def mixed(body, branch):
    """``{block: blocks whose writes differ there}`` if the branch of block ``branch`` varies."""
    cfg = build(body)
    found: dict[int, set[int]] = {}
    for block, bits in Mixing(cfg, [1 << b.index for b in cfg.blocks]).mixed_by(branch):
        found.setdefault(block, set()).update(b.index for b in cfg.blocks if bits >> b.index & 1)
    return found


def test_a_join_mixes_what_both_arms_write():
    body = (bra(2, "%p"), MOVE, bra(3), Label(label(2)), MOVE, Label(label(3)), RETURN)
    assert mixed(body, 0) == {3: {1, 2}}


def test_the_edge_of_a_loop_mixes_what_the_loop_writes():
    body = (MOVE, Label(label(1)), MOVE, bra(3, "%q"), MOVE, Label(label(3)), bra(1, "%p"), RETURN)
    assert mixed(body, 3) == {4: {1, 2, 3}}
    assert mixed(body, 1) == {3: {2}}


def test_a_branch_that_all_lanes_leave_together_mixes_nothing():
    body = (bra(1, "%p"), Label(label(1)), RETURN)
    assert mixed(body, 0) == {}


def test_two_ways_may_meet_before_the_last_one_joins():
    body = (
        bra(3, "%p"),  # 0
        MOVE,  # 1
        bra(4, "%q"),
        MOVE,  # 2
        Label(label(3)),  # 3: from 0 and 2
        MOVE,
        Label(label(4)),  # 4: from 1 and 3
        RETURN,
    )
    assert mixed(body, 0) == {3: {1, 2}, 4: {1, 2, 3}}
    assert mixed(body, 1) == {4: {2, 3}}


def test_lanes_that_wait_inside_a_cycle_meet_those_of_later_trips():
    body = (
        MOVE,  # 0
        Label(label(1)),  # 1
        bra(3, "%p"),
        bra(5, "%q"),  # 2: lanes that did not continue
        Label(label(3)),  # 3
        MOVE,
        bra(1),
        Label(label(5)),  # 4
        RETURN,
    )
    assert mixed(body, 1)[2] >= {1, 3}


def test_a_spin_loop_has_no_meeting_place_but_an_answer():
    body = (bra(2, "%p"), Label(label(1)), MOVE, bra(1), Label(label(2)), RETURN)
    assert mixed(body, 0) == {}
