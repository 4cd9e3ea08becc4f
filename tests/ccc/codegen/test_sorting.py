"""Exclusive paths that share one site: the warp sorts its lanes by path.

    switch (value / 2 % 8) {                    all lanes have one path: they run it where they are
      case 0: ...; break;               ->      else: all push; of some path 32 tasks wait: all lanes pop and run it
      case 1: ...; break;                       after the loop: each path's rest
      ...
    }

Protects against tasks run by another path, twice or never, against arrays of tasks that overflow into their
neighbour's (two paths fill one array from both ends), and against votes for lanes that agree anyway.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from cccopt.analysis.cfg import build
from cccopt.analysis.loops import irreducible_edges
from cccopt.ccc.codegen.sorting import CHAIN
from cccopt.ccc.function.view import view_of
from cccopt.ccc.legality.region_analysis import RegionAnalysis
from cccopt.ccc.regions.marked_loops import find
from cccopt.emulator import Program
from cccopt.ptx.ir import Instruction
from cccopt.ptx.isa import definitions
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from tests.kernels.ptx_loops import LAUNCHES, arguments, inner_loop, loop, mark, path, uneven_arguments
from tests.kernels.ptx_switch import AHEAD, CHOOSE, steps, switch
from tests.kernels.running import FORMS, Launch, compare, rewritten


def sorted_groups(text: str) -> list[int]:
    module = parse(text)
    view = view_of(module, next(f for f in module.functions() if f.name == "k"))
    (region,) = find(view).regions
    return [len(group) for group in RegionAnalysis(view, region).exclusive]


def same_results(text: str, make: Any = uneven_arguments, launches: tuple[Launch, ...] = LAUNCHES) -> None:
    compare(parse(text), "k", make, launches, seeds=(3, 4))


@pytest.mark.parametrize("count", [3, 5, 6, 8])
def test_cases_of_a_switch_share_a_site(count: int) -> None:
    text = loop(body=switch(count))
    assert sorted_groups(text) == [count]
    same_results(text)


def test_two_paths_vote_one_after_the_other() -> None:
    assert sorted_groups(loop(body=switch(2))) == []


@pytest.mark.parametrize(("count", "groups"), [(3, []), (4, [3])])
def test_a_case_at_which_another_path_ends_votes_for_itself(count: int, groups: list[int]) -> None:
    """The compiler leads lanes that are known to come to a case straight there, from an earlier path's end."""
    ahead = f"""and.b32 %bits, %value, 8; setp.eq.u32 %skips, %bits, 0; @%skips bra NUMBERED;
        {mark("if.begin", 9, "independent")}
        mad.lo.u32 %r10, %value, 7, 1; red.global.add.u32 [%other_i], %r10;
        {mark("if.end", 9)}
        bra.uni CASE0;
        NUMBERED:"""
    text = loop(before=ahead, body=switch(count))
    assert sorted_groups(text) == groups
    same_results(text)


def test_many_tasks_wait_and_run() -> None:
    """So many of each path that warps take them again and again."""
    compare(parse(loop(body=switch(3))), "k", arguments, (Launch(1, 64, 90),), seeds=(3,))


@pytest.mark.parametrize("choose", ["mov.u32 %bits, 1;", "mov.u32 %bits, 7;", "and.b32 %bits, %i, 3;"])
def test_all_lanes_of_a_warp_may_agree(choose: str) -> None:
    """On one path, on none, or hardly ever."""
    same_results(loop(body=switch(4, choose)))


TAIL = "st.global.u32 [%out_i], %result;"
LONG_TAIL = (
    "mad.lo.u32 %result, %value, 5, 3; setp.gt.u32 %p6, %result, 99; @%p6 xor.b32 %result, %result, 9;"
)
SINKING = "mul.lo.u32 %r21, %value, %value; xor.b32 %r21, %r21, 21;"
"""Ahead of the paths: what they alone read."""


def given(numbers: list[list[int]], **holes: Any) -> None:
    """Runs a warp whose lanes come to the paths ``numbers``, trip by trip: the same results, and tasks only where the
    lanes differ.
    """
    text = loop(body=switch(4, "and.b32 %bits, %value, 7;", **holes), before="mov.u32 %result, 1;" + SINKING)
    launch = Launch(1, 32, len(numbers))
    counts = compare(parse(text), "k", lambda launch: steps(launch, numbers), (launch,), seeds=(3,))
    parted = [trip for trip in numbers if len(set(trip)) > 1]
    tasks = Counter(number for trip in parted for number in trip if number < 4)
    # Shuffled, as the first form runs too, warps are counted lane by lane.
    for form in ("split", "idle lanes"):
        assert counts[form]["push"] == len(parted)
        assert counts[form]["take"] == sum(waiting // 32 for waiting in tasks.values())
        assert counts[form]["drain"] == 4


HOLES: tuple[dict[str, Any], ...] = (
    {},
    {"code": LONG_TAIL, "behind": TAIL},
    {"code": "add.u32 %r10, %r21, %i; st.global.u32 [%out_i], %r10;"},
)
"""Paths of different kinds; a store behind the join; what only paths read."""


@pytest.mark.parametrize("holes", HOLES)
def test_lanes_that_agree_run_the_path_at_once(holes: dict[str, Any]) -> None:
    given([[number] * 32 for number in (0, 1, 2, 3, 7, 2)], **holes)


@pytest.mark.parametrize("holes", HOLES)
@pytest.mark.parametrize(("other", "lane"), [(0, 0), (2, 31), (7, 5)])
def test_one_lane_differs_now_and_then(holes: dict[str, Any], other: int, lane: int) -> None:
    """What agrees runs in between, also where tasks of the same path wait."""
    parted = [1] * 32
    parted[lane] = other
    given([parted, [1] * 32, [other] * 32, parted, parted, [7] * 32], **holes)


@pytest.mark.parametrize("number", [0, 2])
def test_a_pair_of_paths_fills_all_of_its_slots(number: int) -> None:
    """31 tasks of either path wait as 32 more come, to one of them or to both."""
    first, second = ([number + k] * 31 + [7] for k in (0, 1))
    more = [[number] * 31 + [number + 1], [number + 1] * 31 + [number], [number, number + 1] * 16]
    for last in more:
        given([first, second, last, second, first, *more])


@pytest.mark.parametrize("count", [3, 4, 5])
def test_slots_of_a_warp(count: int) -> None:
    """94 for two paths, 63 for one more; each takes 8 bytes here, and a block has four warps."""
    code = "mad.lo.u32 %r10, %value, 3, %i; st.global.u32 [%out_i], %r10;"
    result = rewritten(parse(loop(body=switch(count, code=code))))
    slots = count // 2 * 94 + count % 2 * 63
    assert result.regions[0].shared_bytes == 8 * ((4 * slots + 31) // 32 * 32)


def test_a_value_from_ahead_of_the_loop_has_one_definition_for_all_lanes() -> None:
    """Lanes without trips would bring another one, which takes a register where a parameter needs none. All lanes run
    the first, those with trips the second, the third stands ahead of the original loop.
    """
    ahead = "ld.param.u64 %rd14, [a]; cvta.to.global.u64 %rd15, %rd14;"
    read = "ld.global.nc.u32 %r20, [%rd15]; red.global.add.u32 [%other_i], %r20;"
    text = loop(preheader=ahead, behind=read, body=switch(4), clauses="independent")
    (function,) = (f for f in rewritten(parse(text)).module.functions() if f.name == "k")
    written = (
        (s.opcode, d.name) for s in function.body or () if isinstance(s, Instruction) for d in definitions(s)
    )
    assert [opcode for opcode, name in written if name == "%rd15"] == ["cvta.to.global.u64"] * 3
    same_results(text)


def test_what_runs_is_counted() -> None:
    """Once for each lane that came to a case, whether tasks waited or not."""
    text = loop(body=switch(4, code="red.global.add.u32 [%other], 1;", choose=CHOOSE), clauses="independent")
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
    code = "mad.lo.u32 %result, %value, 5, 3; setp.gt.u32 %p6, %result, 99; @%p6 xor.b32 %result, %result, 9;"
    body = switch(4, behind="st.global.u32 [%out_i], %result;", code=code)
    text = loop(before="mov.u32 %result, 1;", body=body)
    assert sorted_groups(text) == [4]
    same_results(text)


def test_a_continue_ahead_of_the_switch() -> None:
    """Lanes go past the join."""
    before = "setp.lt.u32 %p8, %value, 9; @%p8 bra LATCH;"
    behind = "red.global.add.u32 [%other], 1;"
    same_results(loop(before=before, body=switch(4), behind=behind, clauses="independent"))


def test_a_path_ahead_and_a_path_behind_keep_their_own_votes() -> None:
    first = f"and.b32 %r20, %value, 1; setp.ne.u32 %p9, %r20, 0; @%p9 bra FIRST;\n{mark('if.begin', 30)}\n"
    first += f"red.global.add.u32 [%other], %value;\n{mark('if.end', 30)}\nFIRST:\n"
    last = (
        first.replace("FIRST", "LAST")
        .replace("30", "31")
        .replace("and.b32 %r20, %value, 1", "and.b32 %r20, %value, 2")
    )
    text = loop(before=first, body=switch(4), behind=last, clauses="independent")
    assert sorted_groups(text) == [4]
    same_results(text)


def test_stacks_that_are_too_large_are_not_sorted() -> None:
    """With 94 slots for two paths they take more than a block has; stacks of 32 do not."""
    few, many = (
        rewritten(parse(loop(body=switch(5), bounds=f".maxntid {threads}", clauses="independent")))
        for threads in (256, 1024)
    )
    served = ["$ccc_serve:" in print_module(result.module) for result in (few, many)]
    assert served == [True, False]
    assert many.regions[0].shared_bytes <= 49152


TREE = """
    shr.u32 %bits, %value, 1; and.b32 %bits, %bits, 7;
    setp.gt.u32 %p7, %bits, 3; @%p7 bra HIGH;
    setp.gt.u32 %p8, %bits, 1; @%p8 bra CASE2;
    setp.eq.u32 %p9, %bits, 0; @%p9 bra CASE0; bra.uni CASE1;
HIGH:
    setp.eq.u32 %p10, %bits, 5; @!%p10 bra JOIN; bra.uni CASE3;
"""


def tree(before: str = "", behind: str = "") -> str:
    """Four paths at the leaves of a tree of branches, as nvcc makes it of a switch."""
    cases = switch(4, behind=behind).partition("brx.idx %bits, table;")[2]
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
    text = tree("setp.ne.u32 %p9, %value, 1;", "selp.b32 %r31, 1, 2, %p9; red.global.add.u32 [%other], %r31;")
    assert parting_branches(text) > 4
    same_results(text)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("count", [4, 5])
def test_the_loops_have_one_entry_each(count: int, form: str) -> None:
    """ptxas places what brings lanes together by natural loops: a second way in has hung a GPU."""
    for covering in (False, True):
        module = rewritten(parse(loop(body=switch(count, covering=covering))), form).module
        (function,) = (f for f in module.functions() if f.name == "k")
        assert not list(irreducible_edges(build(function.body or ())))


@pytest.mark.parametrize(("count", "tables"), [(3, 0), (CHAIN, 0), (CHAIN + 1, 2), (6, 2)])
def test_few_paths_are_told_apart_by_comparisons(count: int, tables: int) -> None:
    """More by a jump table where lanes agree, and one more for tasks; none of them is the program's own."""
    (function,) = (f for f in rewritten(parse(loop(body=switch(count)))).module.functions() if f.name == "k")
    opcodes = [s.opcode for s in function.body or () if isinstance(s, Instruction)]
    assert opcodes.count("brx.idx.uni") == tables


def test_a_loop_of_tasks_in_a_path_behind() -> None:
    """The node that held its end marker is no longer on any way when its path's turn comes."""
    inner = inner_loop("mad.lo.u32 %x, %x, 3, 1;")
    behind = path(inner + "st.global.u32 [%other_i], %x;", region=5, label="_BEHIND")
    text = loop(body=switch(3), behind=behind, clauses="independent")
    assert sorted_groups(text) == [3]
    same_results(text)


@pytest.mark.parametrize("form", FORMS)
def test_two_sites_in_one_loop(form: str) -> None:
    """The remainder of the first site is no way back from the second one into the loop's code between them."""
    behind = switch(3).replace("CASE", "LATER").replace("JOIN", "END").replace("table", "list")
    for number in range(3):
        behind = behind.replace(
            f".begin {10 + number} line={100 + 10 * number}", f".begin {20 + number} line={200 + 10 * number}"
        )
        behind = behind.replace(f".end {10 + number}", f".end {20 + number}")
    text = loop(body=switch(3), behind=behind.replace("%out_i", "%other_i"), clauses="independent")
    assert sorted_groups(text) == [3, 3]
    module = rewritten(parse(text), form).module
    (function,) = (f for f in module.functions() if f.name == "k")
    assert not list(irreducible_edges(build(function.body or ())))
    compare(parse(text), "k", arguments, (Launch(1, 64, 20),), forms=(form,), seeds=(3,))


@pytest.mark.parametrize(
    ("count", "form"), [(3, "split"), (4, "auto"), (4, "idle lanes"), (5, "idle lanes"), (6, "split")]
)
def test_a_warp_serves_and_drains(count: int, form: str) -> None:
    ran = compare(
        parse(loop(body=switch(count))), "k", arguments, (Launch(1, 32, 40),), forms=(form,), seeds=(3,)
    )
    assert all(counts["push"] and counts["take"] and counts["drain"] for counts in ran.values())


@pytest.mark.parametrize("count", [3, 4, 5])
@pytest.mark.parametrize("last", [1, 31])
def test_the_remainder_is_that_of_each_path(count: int, last: int) -> None:
    """So many tasks of the last path wait, and one of each other one."""
    numbers = [[*range(count - 1)] + [7] * (33 - count), [count - 1] * last + [7] * (32 - last)]
    text = loop(body=switch(count, "and.b32 %bits, %value, 7;"))
    launch = Launch(1, 32, 2)
    ran = compare(
        parse(text), "k", lambda launch: steps(launch, numbers), (launch,), forms=("split",), seeds=()
    )
    assert (ran["split"]["push"], ran["split"]["take"], ran["split"]["drain"]) == (2, 0, count)
