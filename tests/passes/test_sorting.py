"""Exclusive paths that share one site: the warp sorts its lanes by path."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cccopt.analysis.cfg import build
from cccopt.analysis.loops import irreducible_edges
from cccopt.ccc.exclusive import exclusive_paths
from cccopt.ccc.regions import find
from cccopt.ccc.tails import tails
from cccopt.ccc.view import view
from cccopt.emulator import Program
from cccopt.ptx.ir import Instruction
from cccopt.ptx.parser import parse
from tests.passes.ptx_loops import LAUNCHES, arguments, loop, mark, uneven_arguments
from tests.passes.running import FORMS, Launch, compare, rewritten

CHOOSE = "shr.u32 %r9, %r6, 1; and.b32 %r9, %r9, 7;"
"""A number from 0 to 7, by the lane's value."""

LONG = (
    "mad.lo.u32 %r10, %r6, {0}, %r5; xor.b32 %r10, %r10, 0x55; st.global.u32 [%rd6], %r10;",
    "mul.wide.u32 %rd10, %r6, 7; add.u64 %rd10, %rd10, %rd4; cvt.u32.u64 %r10, %rd10; red.global.add.u32 [%rd6], %r10;",
    "mov.b32 {{%h1, %h2}}, %r6; add.u16 %h1, %h1, %h5; cvt.u32.u16 %r10, %h1; st.global.u32 [%rd6], %r10;",
    "selp.b32 %r10, {0}, %r6, %p7; red.global.xor.b32 [%rd6], %r10;",
)
AHEAD = "cvt.u16.u32 %h5, %r6; setp.gt.u32 %p7, %r6, 30;"
"""Values of 16 bits and a predicate for contexts."""


def switch(count: int, choose: str = CHOOSE, behind: str = "", code: str = "") -> str:
    """A jump by index over ``count`` marked paths, the numbers behind them to the join."""
    targets = ", ".join([f"CASE{k}" for k in range(count)] + ["JOIN"] * (8 - count))
    text = f"{AHEAD} {choose} table: .branchtargets {targets}; brx.idx %r9, table;\n"
    for k in range(count):
        body = code or LONG[k % len(LONG)].format(k + 3)
        text += f"CASE{k}:\n{mark('if.begin', 10 + k)}\n{body}\n{mark('if.end', 10 + k)}\nbra.uni JOIN;\n"
    return text + "JOIN:\n" + behind


def sorted_groups(text: str) -> list[int]:
    module = parse(text)
    seen = view(module, next(f for f in module.functions() if f.name == "k"))
    (region,) = find(seen).regions
    return [len(group) for group in exclusive_paths(seen, region, tails(seen, region))]


def same_results(text: str, make: Any = uneven_arguments, launches: tuple[Launch, ...] = LAUNCHES) -> None:
    compare(parse(text), "k", make, launches, seeds=(3, 4))


@pytest.mark.parametrize("count", [3, 8])
def test_cases_of_a_switch_share_a_site(count: int) -> None:
    text = loop(body=switch(count))
    assert sorted_groups(text) == [count]
    same_results(text)


def test_two_paths_vote_one_after_the_other() -> None:
    assert sorted_groups(loop(body=switch(2))) == []


def test_many_tasks_fill_both_halves() -> None:
    """More than 64 tasks a path, so that halves are filled and run in turn."""
    same_results(loop(body=switch(3)), arguments, (Launch(1, 64, 90),))


@pytest.mark.parametrize("choose", ["mov.u32 %r9, 1;", "mov.u32 %r9, 7;", "and.b32 %r9, %r5, 3;"])
def test_all_lanes_of_a_warp_may_agree(choose: str) -> None:
    """On one path, on none, or hardly ever."""
    same_results(loop(body=switch(4, choose)))


def test_what_runs_is_counted() -> None:
    """Once for each lane that came to a case, whether tasks waited or not."""
    text = loop(body=switch(4, code="red.global.add.u32 [%rd3], 1;", choose=CHOOSE), clauses="independent")
    module = rewritten(parse(text)).module
    counts = []
    for program in (Program(parse(text)), Program(module)):
        args = arguments(Launch(1, 96, 50))
        program.launch("k", (1, 1, 1), (96, 1, 1), args, shuffle=2, hazards=True)
        counts.append(int(args[3][0]))
    values = np.asarray(arguments(Launch(1, 96, 50))[1])
    assert (
        counts[0] == counts[1] == int(arguments(Launch(1, 96, 50))[3][0]) + int(((values >> 1 & 7) < 4).sum())
    )


def test_the_store_behind_the_join_runs_with_the_task() -> None:
    """For lanes that came to no case, by themselves."""
    code = "mad.lo.u32 %r11, %r6, 5, 3; setp.gt.u32 %p6, %r11, 99; @%p6 xor.b32 %r11, %r11, 9;"
    body = switch(4, behind="st.global.u32 [%rd6], %r11;", code=code)
    text = loop(before="mov.u32 %r11, 1;", body=body)
    assert sorted_groups(text) == [4]
    same_results(text)


def test_a_continue_ahead_of_the_switch() -> None:
    """Lanes go past the join."""
    before = "setp.lt.u32 %p8, %r6, 9; @%p8 bra LATCH;"
    behind = "red.global.add.u32 [%rd3], 1;"
    same_results(loop(before=before, body=switch(4), behind=behind, clauses="independent"))


def test_a_path_ahead_and_a_path_behind_keep_their_own_votes() -> None:
    first = f"and.b32 %r20, %r6, 1; setp.ne.u32 %p9, %r20, 0; @%p9 bra FIRST;\n{mark('if.begin', 30)}\n"
    first += f"red.global.add.u32 [%rd3], %r6;\n{mark('if.end', 30)}\nFIRST:\n"
    last = (
        first.replace("FIRST", "LAST")
        .replace("30", "31")
        .replace("and.b32 %r20, %r6, 1", "and.b32 %r20, %r6, 2")
    )
    text = loop(before=first, body=switch(4), behind=last, clauses="independent")
    assert sorted_groups(text) == [4]
    same_results(text)


def test_stacks_that_are_too_large_are_not_sorted() -> None:
    """Two halves of 32 slots for each path would take more than a block has; stacks of one each do not."""
    result = rewritten(parse(loop(body=switch(4), bounds=".maxntid 704", clauses="independent")))
    assert not any("serve" in label for report in result.regions for _, ls in report.labels for label in ls)
    assert result.regions[0].shared_bytes <= 49152


TREE = """
    shr.u32 %r9, %r6, 1; and.b32 %r9, %r9, 7;
    setp.gt.u32 %p7, %r9, 3; @%p7 bra HIGH;
    setp.gt.u32 %p8, %r9, 1; @%p8 bra CASE2;
    setp.eq.u32 %p9, %r9, 0; @%p9 bra CASE0; bra.uni CASE1;
HIGH:
    setp.eq.u32 %p10, %r9, 5; @!%p10 bra JOIN; bra.uni CASE3;
"""


def tree(before: str = "", behind: str = "") -> str:
    """Four paths at the leaves of a tree of branches, as nvcc makes it of a switch."""
    cases = switch(4, behind=behind).partition("brx.idx %r9, table;")[2]
    return loop(before=AHEAD.split(";")[0] + ";" + before, body=TREE + cases, clauses="independent")


def parting_branches(text: str) -> int:
    """Branches of the rewritten kernel on the predicates of the tree."""
    (function,) = (f for f in rewritten(parse(text)).module.functions() if f.name == "k")
    found = [s for s in function.body or () if isinstance(s, Instruction) and s.base == "bra" and s.guard]
    return sum(s.guard.register.name in ("%p7", "%p8", "%p9", "%p10") for s in found if s.guard is not None)


def test_a_tree_that_only_chooses_is_straight_code() -> None:
    """The original loop keeps its four branches, the sorted one has none of them."""
    assert parting_branches(tree()) == 4
    same_results(tree())


def test_a_tree_whose_tests_are_read_later_stays() -> None:
    """%p9 has a value behind it that only some lanes gave it."""
    text = tree("setp.ne.u32 %p9, %r6, 1;", "selp.b32 %r31, 1, 2, %p9; red.global.add.u32 [%rd3], %r31;")
    assert parting_branches(text) > 4
    same_results(text)


@pytest.mark.parametrize("form", FORMS)
def test_the_loops_have_one_entry_each(form: str) -> None:
    """ptxas places what brings lanes together by natural loops: a second way in has hung a GPU."""
    module = rewritten(parse(loop(body=switch(4))), form).module
    (function,) = (f for f in module.functions() if f.name == "k")
    assert not list(irreducible_edges(build(function.body or ())))


@pytest.mark.parametrize("form", FORMS)
def test_a_warp_serves_and_drains(form: str) -> None:
    ran = compare(
        parse(loop(body=switch(4))), "k", arguments, (Launch(1, 64, 90),), forms=(form,), seeds=(3,)
    )
    assert all(counts["push"] and counts["take"] and counts["drain"] for counts in ran.values())
