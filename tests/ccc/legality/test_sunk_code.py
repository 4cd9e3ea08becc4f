"""Values that a path writes and code after the path reads: computed again, sunk into the task, or refused.

    for (i = thread; i < n; i += stride) {      for (i = thread; i < n; i += stride) {
      result = 1;                                 if (value % 4 == 0) push(i, value);
      if (value % 4 == 0)               ->        else out[i] = 1;
        result = f(value, i);                     32 tasks wait: pop; result = f(value, i); out[i] = result;
      out[i] = result;                          }
    }

A path runs later, and in another lane. A lane that pushed a task and ran the store itself would store what `result`
held before; a store in both places would happen twice; a value that a task reads and its lane has changed meanwhile
would be another one. So each test asks which statements sink, which the lane leaves out and which it computes again
(`sunk_parts`), and compares memory; where none of that is right, the loop is refused with CCC034 or CCC035.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from cccopt.ccc.function.view import view_of
from cccopt.ccc.legality.region_analysis import RegionAnalysis
from cccopt.ccc.legality.sunk_code import SunkCode
from cccopt.ccc.outcome.refusal import Refusal
from cccopt.ccc.regions.marked_loops import find
from cccopt.ptx.ir import Function, Instruction
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_statement
from tests.kernels.ptx_loops import LAUNCHES, SECOND, arguments, inner_loop, loop, path, uneven_arguments
from tests.kernels.ptx_switch import steps, switch
from tests.kernels.running import Launch, compare, rewritten

VALUE = (
    "mad.lo.u32 %r12, %value, 5, 3; setp.gt.u32 %p6, %r12, 99; add.u32 %result, %r12, %i;"
    " @%p6 xor.b32 %result, %result, 9;"
)
"""%result, by more than one way, so that a lane cannot simply compute it again."""
DEAR = "mad.lo.u32 %r12, %value, 5, 3; mad.lo.u32 %r16, %r12, %value, %i; mad.lo.u32 %result, %r16, %r12, 1;"
"""%result, by more than a lane would rather compute again than have its readers moved."""
CHEAP = "xor.b32 %result, %value, 5;"
BEFORE = "mov.u32 %result, 1;"
STORE = "st.global.u32 [%out_i], %result;"


def sunk_parts(**holes: Any) -> tuple[list[str], list[str], list[str]]:
    """After the first path: what runs with its tasks, what their lane leaves out, what it computes again."""
    (function,) = (f for f in parse(loop(**holes)).functions() if f.kind == "entry")
    assert isinstance(function, Function)
    view = view_of(parse(loop(**holes)), function)
    (region,) = find(view).regions
    found = RegionAnalysis(view, region).sunk[region.paths[0].begin]
    assert isinstance(found, SunkCode)
    texts = [
        [print_statement(view.body[i]).strip() for i in part]
        for part in (found.moved, found.skipped, found.recomputed)
    ]
    return texts[0], texts[1], texts[2]


def same_results(**holes: Any) -> None:
    ran = compare(parse(loop(**holes)), "k", uneven_arguments, LAUNCHES, seeds=(3,))
    assert all(counts["push"] and counts["take"] and counts["drain"] for counts in ran.values())


def refused(**holes: Any) -> str:
    with pytest.raises(Refusal) as caught:
        rewritten(parse(loop(**holes)), "split")
    return caught.value.diagnostics[0].code


def test_nothing_is_read_behind() -> None:
    assert sunk_parts() == ([], [], [])


def test_the_store_runs_with_the_task() -> None:
    holes = {"before": BEFORE, "body": path(VALUE), "behind": STORE}
    assert sunk_parts(**holes) == ([STORE], [STORE], [])
    same_results(**holes)


def test_each_side_effect_happens_once() -> None:
    same_results(before=BEFORE, body=path(VALUE), behind="red.global.add.u32 [%other], %result;")


def test_what_only_the_lane_needs_stays_with_it() -> None:
    """The address is computed by both, the unrelated atomic by the lane alone."""
    address = "add.u64 %rd11, %out_i, 0;"
    other = "xor.b32 %r33, %value, 7;"
    holes = {
        "before": BEFORE,
        "body": path(VALUE),
        "behind": f"{address} {other} st.global.u32 [%rd11], %result;",
    }
    moved, skipped, _ = sunk_parts(**holes)
    assert moved == ["add.u64 %rd11, %out_i, 0;", "st.global.u32 [%rd11], %result;"]
    assert skipped == ["st.global.u32 [%rd11], %result;"]
    same_results(**holes)


def test_a_chain_of_statements_moves() -> None:
    behind = "add.u32 %r20, %result, %value; mul.lo.u32 %r21, %r20, 3; st.global.u32 [%out_i], %r21;"
    holes = {"before": BEFORE, "body": path(VALUE), "behind": behind}
    moved, skipped, _ = sunk_parts(**holes)
    assert len(moved) == len(skipped) == 3
    same_results(**holes)


def test_a_read_only_load_behind_the_path_is_repeated() -> None:
    behind = "ld.global.nc.u32 %r33, [%a+4]; add.u32 %r34, %result, %r33; st.global.u32 [%out_i], %r34;"
    holes = {"before": BEFORE, "body": path(VALUE), "behind": behind}
    moved, skipped, _ = sunk_parts(**holes)
    assert (len(moved), len(skipped)) == (3, 2)
    same_results(**holes)


def test_the_lane_s_identity_sinks_with_its_reader() -> None:
    behind = "mov.u32 %r33, %laneid; add.u32 %r34, %result, %r33; st.global.u32 [%out_i], %r34;"
    same_results(before=BEFORE, body=path(VALUE), behind=behind)


def test_an_operand_that_changes_behind_the_path_is_refused() -> None:
    """The task would read another value of other[i] than its lane."""
    behind = "ld.global.u32 %r33, [%other_i]; add.u32 %r34, %result, %r33; st.global.u32 [%out_i], %r34;"
    assert refused(before=BEFORE, body=path(VALUE), behind=behind) == "CCC034"


def test_an_operand_with_two_definitions_is_refused() -> None:
    twice = "mov.u32 %r33, 1; setp.gt.u32 %p7, %value, 9; @%p7 mov.u32 %r33, 2;"
    behind = f"{twice} add.u32 %r34, %result, %r33; st.global.u32 [%out_i], %r34;"
    assert refused(before=BEFORE, body=path(VALUE), behind=behind) == "CCC034"


def test_a_guarded_reader_is_refused() -> None:
    behind = f"setp.gt.u32 %p7, %value, 9; @%p7 {STORE}"
    assert refused(before=BEFORE, body=path(VALUE), behind=behind) == "CCC034"


def test_a_reader_behind_a_branch_is_refused() -> None:
    behind = f"setp.gt.u32 %p7, %value, 9; @%p7 bra LATCH; {STORE}"
    assert refused(before=BEFORE, body=path(VALUE), behind=behind) == "CCC034"


def test_a_volatile_reader_is_refused() -> None:
    behind = "st.volatile.global.u32 [%out_i], %result;"
    assert refused(before=BEFORE, body=path(VALUE, clauses="independent"), behind=behind) == "CCC034"


def test_a_collective_reader_is_refused() -> None:
    behind = "shfl.sync.idx.b32 %r33, %result, 0, 31, -1; st.global.u32 [%out_i], %r33;"
    assert refused(before=BEFORE, body=path(VALUE), behind=behind) == "CCC034"


def test_a_cheap_value_is_computed_again() -> None:
    """Whatever reads it: here a branch."""
    behind = "setp.gt.u32 %p7, %result, 9; @%p7 bra LATCH; red.global.add.u32 [%other], 1;"
    holes = {
        "before": BEFORE,
        "body": path(f"{CHEAP} red.global.add.u32 [%other], %result;", clauses="independent"),
        "behind": behind,
    }
    moved, _, again = sunk_parts(**holes)
    assert (moved, again) == ([], [CHEAP])
    same_results(**holes)


def test_a_cheap_value_of_intermediate_ones_is_computed_again() -> None:
    code = "xor.b32 %r12, %value, 5; add.u32 %result, %r12, %value;"
    behind = "setp.gt.u32 %p7, %result, 40; @%p7 bra LATCH; red.global.add.u32 [%other], 1;"
    holes = {
        "before": BEFORE,
        "body": path(f"{code} red.global.add.u32 [%other], %result;", clauses="independent"),
        "behind": behind,
    }
    assert len(sunk_parts(**holes)[2]) == 2
    same_results(**holes)


HANDED = "add.u32 %r16, %i, 3; mad.lo.u32 %x, %x, 5, %r16; red.global.xor.b32 [%other], %x;"
"""What a trip leaves behind for the lane: %r16, which is the same in all of them."""
TRIPS = {
    "for variable": inner_loop(HANDED),
    "chunks": inner_loop(HANDED, clauses="chunk=3"),
    "while": inner_loop(HANDED).replace("variable", "kind=while"),
    "in a path": path(inner_loop(HANDED)),
    "with a path inside": inner_loop(HANDED + path("red.global.xor.b32 [%other_i], %k;", region=SECOND, label="_2")),
    "by all lanes": inner_loop(HANDED).replace("setp.eq.u32 %p8, %bound, 0; @%p8 bra INNER_DONE;", ""),
}  # fmt: skip


@pytest.mark.parametrize("clauses", ["", "reduce=^:hash"])
@pytest.mark.parametrize("name", TRIPS)
def test_a_lane_computes_again_what_its_trips_handed_on(name: str, clauses: str) -> None:
    """It goes on with its iteration while they wait."""
    holes = {
        "before": "mov.u32 %r16, 1;",
        "body": TRIPS[name],
        "behind": "red.global.xor.b32 [%out_i], %r16;",
    }
    holes |= {"ahead": "mov.u32 %r20, 3;", "after": "red.global.xor.b32 [%other+4], %r20;"}
    if clauses:
        # Computed again beside what tasks give to their owners.
        holes["body"] = TRIPS[name].replace("red.global.xor.b32 [%other]", "xor.b32 %r20, %r20")
    ran = compare(parse(loop(clauses=clauses, **holes)), "k", uneven_arguments, LAUNCHES, seeds=(3,))
    assert all(counts["trip"] and counts["push"] for counts in ran.values())


def test_an_expensive_value_is_computed_again_only_for_readers_that_cannot_move() -> None:
    holes = {"before": BEFORE, "body": path(DEAR)}
    assert sunk_parts(**holes, behind=STORE) == ([STORE], [STORE], [])
    branch = "setp.gt.u32 %p7, %result, 999; @%p7 bra LATCH; st.global.u32 [%out_i], 1;"
    moved, _, again = sunk_parts(**holes, behind=branch)
    assert (moved, len(again)) == ([], 3)
    same_results(**holes, behind=branch)


def test_a_very_expensive_value_is_not_computed_again() -> None:
    quotients = " ".join(f"div.u32 %r{16 + k}, %value, {k + 3};" for k in range(6))
    sums = " ".join(f"add.u32 %r{23 + k}, %r{22 + k}, %r{16 + k};" for k in range(6))
    code = f"{quotients} add.u32 %r22, %r16, %r17; {sums} mov.u32 %r36, %r28;"
    branch = "setp.gt.u32 %p7, %r36, 9; @%p7 bra LATCH; mov.u32 %r20, 1;"
    assert refused(before="mov.u32 %r36, 1;", body=path(code), behind=branch) == "CCC034"


def test_a_value_that_is_not_always_computed_is_not_computed_again() -> None:
    code = f"setp.gt.u32 %p7, %value, 9; @%p7 bra OVER; {CHEAP} OVER: red.global.add.u32 [%other], 1;"
    holes = {
        "before": BEFORE,
        "body": path(code),
        "behind": "setp.gt.u32 %p8, %result, 9; @%p8 bra LATCH; mov.u32 %r20, 1;",
    }
    assert refused(**holes) == "CCC034"


def test_a_plain_load_is_not_computed_again() -> None:
    """Others may have stored there since."""
    holes = {
        "before": BEFORE,
        "body": path("ld.global.u32 %result, [%other_i];"),
        "behind": "setp.gt.u32 %p8, %result, 9; @%p8 bra LATCH; mov.u32 %r20, 1;",
    }
    assert refused(**holes) == "CCC034"


def test_a_value_written_in_part_of_the_path_keeps_the_one_from_ahead() -> None:
    code = f"setp.gt.u32 %p7, %value, 9; @%p7 bra OVER; {VALUE} OVER: red.global.add.u32 [%other], 1;"
    same_results(before="add.u32 %result, %value, 100;", body=path(code, clauses="independent"), behind=STORE)


def test_a_guarded_write_keeps_the_value_from_ahead() -> None:
    code = "setp.gt.u32 %p7, %value, 9; @%p7 mov.u32 %result, 77;"
    same_results(before="add.u32 %result, %value, 100;", body=path(code), behind=STORE)


def test_two_paths_share_sunk_code() -> None:
    """Each lane takes one of them or none, and the store happens once."""
    first = f"""
    and.b32 %bits, %value, 3; setp.ne.u32 %skips, %bits, 0; @%skips bra OTHERWISE;
    // ccc if.begin 2 line=20:3 file=loop.cu
    {VALUE}
    // ccc if.end 2
    bra.uni JOIN;
OTHERWISE:
    setp.ne.u32 %skips, %bits, 1; @%skips bra JOIN;
    // ccc if.begin 4 line=40:3 file=loop.cu
    {VALUE.replace("5, 3", "9, 4")}
    // ccc if.end 4
JOIN:
"""
    same_results(before=BEFORE, body=first, behind="red.global.add.u32 [%other], %result;")


def test_a_reader_in_a_path_that_always_runs_is_refused() -> None:
    """It is a task itself, and may come first."""
    second = path(STORE, skip="", region=SECOND, label="_2").replace("@%skips bra JOIN_2;", "")
    assert refused(before=BEFORE, body=path(VALUE, clauses="independent") + second) == "CCC034"


def test_a_reader_at_the_head_of_the_next_iteration_is_refused() -> None:
    """The loop tests at its head, to which the last trip leads straight."""
    reader = "mul.wide.u32 %rd30, %i, 4; add.u64 %rd30, %other, %rd30; st.global.u32 [%rd30], %result;"
    text = loop(ahead=BEFORE, body=path(VALUE))
    text = text.replace("setp.lt.u32 %more, %i, %n; @%more bra LOOP;", "bra.uni HEAD;")
    text = text.replace(
        "setp.ge.u32 %none, %i, %n; @%none bra DONE;",
        f"HEAD: {reader} setp.ge.u32 %none, %i, %n; @%none bra DONE;",
    )
    with pytest.raises(Refusal) as caught:
        rewritten(parse(text), "split")
    assert caught.value.diagnostics[0].code == "CCC034"


def test_sunk_code_stays_in_the_path_around_it() -> None:
    inner = path(
        VALUE, skip="and.b32 %bits, %value, 8; setp.ne.u32 %skips, %bits, 0;", region=SECOND, label="_INNER"
    )
    same_results(before=BEFORE, body=path(f"{inner} {STORE}"))


def test_a_value_of_an_inner_path_read_behind_the_outer_one_is_refused() -> None:
    inner = path(
        VALUE, skip="and.b32 %bits, %value, 8; setp.ne.u32 %skips, %bits, 0;", region=SECOND, label="_INNER"
    )
    assert (
        refused(
            before=BEFORE,
            body=path(inner),
            behind="setp.gt.u32 %p8, %result, 9; @%p8 bra LATCH; mov.u32 %r20, 1;",
        )
        == "CCC034"
    )


HAMMOCK = "setp.gt.u32 %p8, {0}, 9; @%p8 bra PAST; atom.global.add.u32 %r30, [%other], 1; {1} PAST:"


@pytest.mark.parametrize("chunk", [1, 3])
def test_a_branch_around_code_moves_as_a_whole(chunk: int) -> None:
    """With what it leads past, another branch among it; lanes whose tasks run it go past it."""
    inner = "setp.lt.u32 %p9, %x, 3; @%p9 bra PAST; red.global.add.u32 [%out_i], %x;"
    body = inner_loop("shr.u32 %x, %x, 1;", clauses=f"chunk={chunk}")
    same_results(
        body=body,
        clauses="independent",
        behind=HAMMOCK.format("%x", inner) + "red.global.add.u32 [%other], %x;",
    )


def test_a_branch_around_a_use_of_the_result() -> None:
    """The branch itself has nothing to do with the path."""
    same_results(
        before=BEFORE, body=path(VALUE), clauses="independent", behind=HAMMOCK.format("%value", STORE)
    )


def test_a_branch_to_two_places_is_refused() -> None:
    behind = "setp.gt.u32 %p8, %x, 9; @%p8 bra HIGH; st.global.u32 [%out_i], %x; bra MEET;"
    holes = {"body": inner_loop("mad.lo.u32 %x, %x, 3, %k;")}
    assert refused(**holes, behind=behind + "HIGH: red.global.add.u32 [%out_i], %x; MEET:") == "CCC034"


def test_a_branch_around_what_later_code_reads_is_refused() -> None:
    behind = HAMMOCK.format("%x", "mov.u32 %r31, 5;") + "red.global.add.u32 [%other], %r31;"
    holes = {"ahead": "mov.u32 %r31, 1;", "body": inner_loop("mad.lo.u32 %x, %x, 3, %k;")}
    assert refused(**holes, behind=behind) == "CCC034"


def test_a_value_that_sunk_code_carries_on_is_refused() -> None:
    holes = {"ahead": "mov.u32 %r20, 0;", "before": BEFORE, "body": path(VALUE)}
    assert refused(**holes, behind="add.u32 %r20, %r20, %result; st.global.u32 [%out_i], %r20;") == "CCC035"


def test_convergent_readers_of_other_values_stay() -> None:
    """A shuffle behind the path that reads nothing of it runs with all lanes, as before."""
    behind = f"shfl.sync.idx.b32 %r33, %value, 0, 31, -1; xor.b32 %r33, %r33, 1; {STORE}"
    marked = parse(loop(before=BEFORE, body=path(VALUE), behind=behind))
    compare(marked, "k", arguments, LAUNCHES[:1], seeds=(3,))


# --- code after exclusive paths that sinks into the tasks of all of them ---

FIRST = tuple(VALUE.replace("5, 3", f"{k + 5}, {k + 3}") for k in range(4))
"""%result by each of four paths."""
OTHER = tuple(code.replace("%result", "%r16") for code in FIRST)
"""%r16 likewise."""
SET = "mov.u32 %result, 1; mov.u32 %r16, 2;"
COUNT = "red.global.add.u32 [%out_i], %result;"
COUNT_OTHER = "red.global.add.u32 [%other_i], %r16;"
SHARED = (
    "xor.b32 %r33, %value, 7; add.u32 %r34, %result, %r33; red.global.add.u32 [%out_i], %r34;"
    "red.global.max.u32 [%other_i], %r33;"
)
"""%r33 is for what sinks and for what does not."""
DIRECT = "and.b32 %bits, %value, 7;"


def cases(codes: Sequence[str], behind: str, *, covering: bool = True, ahead: str = "", **holes: Any) -> str:
    """Exclusive paths with code that sinks; ``covering``: each lane comes to one of them."""
    body = switch(len(codes), DIRECT, behind, codes=codes, covering=covering, **holes)
    return loop(before=SET + ahead, body=body, clauses="independent")


def common(text: str) -> tuple[list[int], list[int]]:
    """Of each path how many statements run with its tasks, and how many of them in no lane."""
    (function,) = (f for f in parse(text).functions() if f.kind == "entry")
    view = view_of(parse(text), function)
    (region,) = find(view).regions
    found = RegionAnalysis(view, region).sunk
    ordered = [found[p.begin] for p in sorted(region.paths, key=lambda p: p.annotation.region)]
    return [len(t.moved) for t in ordered], [len(t.dropped) for t in ordered]


def told(text: str) -> bool:
    """Whether the rewritten loop keeps flags for the sunk code."""
    bodies = (f.body or () for f in rewritten(parse(text)).module.functions())
    return any(isinstance(s, Instruction) and s.opcode == "or.pred" for body in bodies for s in body)


def runs_once(text: str) -> None:
    """In warps whose lanes differ, and whose lanes agree on each number in turn; in partial ones too."""
    compare(parse(text), "k", uneven_arguments, (Launch(2, 33, 3), Launch(1, 64, 9)), seeds=(3,))
    agreed = [[number] * 32 for number in (0, 1, 2, 3, 4, 5, 6, 7, 8, 15)]
    parted = [[1] * 31 + [2], [2, 0] * 16]
    numbers = [*agreed, *parted, *agreed[:4]]
    launch = Launch(1, 32, len(numbers))
    compare(parse(text), "k", lambda _: steps(launch, numbers), (launch,), seeds=(3,))


@pytest.mark.parametrize(
    ("codes", "behind", "moved", "dropped"),
    [
        (FIRST[:3], COUNT, [1, 1, 1], [1, 1, 1]),
        (FIRST[:3], STORE, [1, 1, 1], [1, 1, 1]),
        (("", *FIRST[1:3]), COUNT, [1, 1, 1], [1, 1, 1]),
        (("", FIRST[1], "", ""), COUNT, [1, 1, 1, 1], [1, 1, 1, 1]),
        (("", *FIRST, ""), COUNT, [1] * 6, [1] * 6),
        (
            (FIRST[0], "setp.gt.u32 %p6, %value, 20; @%p6 mov.u32 %result, 99;", ""),
            COUNT,
            [1, 1, 1],
            [1, 1, 1],
        ),
        ((FIRST[0], "", FIRST[1]), "add.u32 %result, %result, 3;" + COUNT, [2, 2, 2], [2, 2, 2]),
        (FIRST[:3], SHARED, [3, 3, 3], [2, 2, 2]),
        ((FIRST[0], "", ""), SHARED, [3, 3, 3], [2, 2, 2]),
        ((FIRST[0], "", ""), SHARED.replace("%r33", "%value"), [3, 3, 3], [2, 2, 2]),
        (
            (FIRST[0], "", ""),
            SHARED.replace("xor.b32 %r33, %value, 7", "mov.u32 %r33, %laneid"),
            [3] * 3,
            [2] * 3,
        ),
        ((FIRST[0], OTHER[1], FIRST[2]), COUNT + COUNT_OTHER, [1, 1, 1], [0, 0, 0]),
    ],
    ids=[
        *(
            "an atomic",
            "a store",
            "one writes nothing",
            "three write nothing",
            "a jump table",
            "a guarded write",
        ),
        *(
            "a chain",
            "what the lane needs too",
            "and one path writes",
            "an operand that changes behind the path",
        ),
        *("the lane's identity", "each another value"),
    ],
)
def test_tasks_of_all_paths_run_the_sunk_code(
    codes: tuple[str, ...], behind: str, moved: list[int], dropped: list[int]
) -> None:
    text = cases(codes, behind)
    assert common(text) == (moved, dropped)
    runs_once(text)


@pytest.mark.parametrize("codes", [FIRST[:3], ("", *FIRST[1:3])])
def test_lanes_that_come_to_no_path_run_the_sunk_code_themselves(codes: tuple[str, ...]) -> None:
    text = cases(codes, COUNT, covering=False)
    assert common(text) == ([1, 1, 1], [0, 0, 0])
    # A flag tells who they are; where there are none, nobody asks.
    assert [told(text), told(cases(codes, COUNT))] == [True, False]
    runs_once(text)


@pytest.mark.parametrize("way", ["JOIN", "HERE"])
def test_a_branch_past_the_switch_to_the_join(way: str) -> None:
    """Straight, or by a branch that stands alone."""
    text = cases(("", *FIRST[1:3]), COUNT, ahead=f"setp.gt.u32 %p8, %value, 4; @%p8 bra {way};")
    text = text.replace("JOIN:\n", "HERE: bra.uni JOIN;\nJOIN:\n")
    assert common(text) == ([1, 1, 1], [0, 0, 0])
    runs_once(text)


def test_a_branch_past_the_sunk_code() -> None:
    """Lanes on it have nothing to run."""
    text = cases(("", *FIRST[1:3]), COUNT, ahead="setp.gt.u32 %p8, %value, 4; @%p8 bra LATCH;")
    assert common(text) == ([1, 1, 1], [1, 1, 1])
    runs_once(text)


def test_a_branch_in_sunk_code_is_not_dropped() -> None:
    behind = HAMMOCK.format("%result", COUNT)
    assert common(cases(FIRST[:3], behind))[1] == [0, 0, 0]
    runs_once(cases(FIRST[:3], behind))
    # What stands behind the branch of a lane's own may be.
    behind = HAMMOCK.format("%value", "red.global.add.u32 [%other_i], 1;") + COUNT
    assert common(cases(FIRST[:3], behind))[1] == [1, 1, 1]
    runs_once(cases(FIRST[:3], behind))


def test_an_operand_that_tasks_cannot_have_is_refused() -> None:
    operand = "ld.global.u32 %r33, [%other]; add.u32 %r34, %result, %r33; st.global.u32 [%out_i], %r34;"
    with pytest.raises(Refusal):
        rewritten(parse(cases(("", *FIRST[1:3]), operand)), "split")


def test_what_only_dropped_code_reads_is_computed_by_tasks() -> None:
    """Lanes that come to no path read it as well."""
    ahead = "div.u32 %r35, %value, 7; xor.b32 %r35, %r35, 21;"
    behind = "add.u32 %r34, %result, %r35; st.global.u32 [%out_i], %r34;"
    decisions = []
    for covering in (True, False):
        text = cases(("", *FIRST[1:3]), behind, ahead=ahead, covering=covering)
        contexts = [r.context for r in rewritten(parse(text)).regions if r.kind == "if"]
        decisions.append(
            {entry.decision for context in contexts for entry in context if entry.register == "%r35"}
        )
        runs_once(text)
    assert decisions == [{"recomputed"}, {"collected"}]


@pytest.mark.parametrize("which", range(4))
def test_a_path_that_stays_as_it_is(which: int) -> None:
    """Its lanes run the sunk code themselves."""
    text = cases(("", *FIRST[1:]), COUNT, clauses={which: "mode=off"})
    outcomes = [region.outcome for region in rewritten(parse(text)).regions if region.kind == "if"]
    assert sorted(outcomes) == ["declined"] + ["rewritten"] * 3
    runs_once(text)


@pytest.mark.parametrize("last", ["", FIRST[2] + OTHER[2]])
def test_a_path_that_writes_one_of_two_values(last: str) -> None:
    text = cases((FIRST[0] + OTHER[0], FIRST[1], last), COUNT + COUNT_OTHER)
    runs_once(text)


@pytest.mark.parametrize("value", ["%result", "%r34"])
def test_a_branch_into_the_middle_of_the_sunk_code(value: str) -> None:
    """Its first part is dropped, its second is not."""
    behind = f"add.u32 %r34, %result, 1; MIDDLE: red.global.add.u32 [%other_i], {value};"
    text = cases(FIRST[:3], behind, ahead="mov.u32 %r34, 7; setp.gt.u32 %p8, %value, 5; @%p8 bra MIDDLE;")
    runs_once(text)
