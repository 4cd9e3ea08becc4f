"""In the in-lane form a vote names the lanes that have entered together, and all of them come to it.

Nothing is run here: a mutant is a rewritten function with one thing changed, and the check must name it.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from cccopt.ptx.ir import Guard, Instruction, Label, Literal, Register, Symbol
from tests.ccc.output_check.test_output_check import Rewritten, rewrites
from tests.kernels.ptx_loops import module, path

IN_LANE = [("in lane", True)]


@pytest.fixture(scope="module")
def made() -> Rewritten:
    (found,) = rewrites(module(body=path("st.global.u32 [%out_i], %value;")), IN_LANE)
    return found


def test_each_vote_names_the_lanes_that_entered(made: Rewritten) -> None:
    votes = [*made.of_added("vote.sync"), *made.of_added("bar.warp.sync")]
    assert len(votes) == 4
    for index, vote in votes:
        for mask in (Literal("-1"), Register("%some_other")):
            body = made.with_(index, replace(vote, operands=(*vote.operands[:-1], mask)))
            assert "this does not name all lanes" in made.found(body)


def test_lanes_meet_ahead_of_their_votes(made: Rewritten) -> None:
    """At the head of the loop, before the first vote; and once more when all have left it."""
    order = [i for i, _ in sorted([*made.of_added("vote.sync"), *made.of_added("bar.warp.sync")])]
    names = [made.body[i].opcode for i in order]  # type: ignore[union-attr]
    assert names[0] == "bar.warp.sync"
    assert names.count("bar.warp.sync") == 2


def test_no_vote_is_under_a_branch_that_parts_the_lanes(made: Rewritten) -> None:
    skip = Instruction("bra", (Symbol("$past"),), Guard(Register("%varies")))
    lane = Instruction("setp.eq.u32", (Register("%varies"), Register("%lane_of_mine"), Literal("3")))
    for index, vote in made.of_added("vote.sync"):
        body = made.with_(index, lane, skip, vote, Label("$past"))
        assert any("some lanes may not reach this" in text for text in made.found(body))


def test_the_mask_is_that_of_the_lanes_at_the_entry(made: Rewritten) -> None:
    said = "the mask does not name all lanes that enter"
    ((index, asked),) = made.of_added("activemask")
    (lanes,) = asked.operands
    full = Instruction("mov.b32", (lanes, Literal("-1")))
    assert said in made.found(made.with_(index, full))
    assert said in made.found(made.with_(index, replace(asked, guard=Guard(Register("%varies")))))
    for later, vote in made.of_added("vote.sync"):
        assert said in made.found(made.with_(later, asked, vote))


def test_a_lane_leaves_with_all_others(made: Rewritten) -> None:
    """One that leaves by itself would be waited for."""
    leaves = Instruction("bra", (Symbol("$out"),), Guard(Register("%varies")))
    for index, state in made.of_added("mov.u32"):
        if state.operands[1] == Literal("0") or made.body[index].guard is not None:  # type: ignore[union-attr]
            continue
        body = (*made.with_(index, leaves, state), Label("$out"), Instruction("ret"))
        assert any("some lanes may not reach this" in text for text in made.found(body))
