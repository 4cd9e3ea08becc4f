"""Marked loops and paths in the control flow graph, what is said of those that are not rewritten, and block sizes."""

from __future__ import annotations

from typing import Any

import pytest

from cccopt.ccc.function.annotations import Annotation
from cccopt.ccc.outcome.refusal import Refusal
from cccopt.ccc.regions.paths import Path
from cccopt.passes.pipeline import Result
from cccopt.ptx.ir import Function, Instruction
from cccopt.ptx.parser import parse
from tests.kernels.ptx_loops import (
    FOR,
    IF,
    LAUNCHES,
    PATH,
    SECOND,
    VARIABLE,
    arguments,
    inner_loop,
    loop,
    mark,
    path,
    regions_of,
    uneven_arguments,
)
from tests.kernels.running import Launch, compare, rewritten

EIGHT = "and.b32 %bits, %value, 8; setp.ne.u32 %skips, %bits, 0;"
ODD_TRIPS = "and.b32 %bits, %k, 1; setp.eq.u32 %skips, %bits, 0;"


def kernel_of(text: str) -> Function:
    (function,) = (f for f in parse(text).functions() if f.name == "k")
    return function


def tree(paths: tuple[Path, ...]) -> list[Any]:
    """Region numbers, each followed by the list of those inside, if any."""
    out: list[Any] = []
    for p in paths:
        out.append(p.annotation.region)
        if p.children:
            out.append(tree(p.children))
    return out


def said(text: str) -> list[str]:
    """The codes of the remarks of a rewrite."""
    return [d.code for d in rewritten(parse(text)).remarks]


def same_results(
    text: str, ran: frozenset[str] = frozenset({"push", "take", "drain"}), **options: Any
) -> None:
    counts = compare(parse(text), "k", uneven_arguments, LAUNCHES, seeds=(3,), **options)
    for form, phases in counts.items():
        assert ran <= {phase for phase, times in phases.items() if times}, (form, phases)


# --- shapes --------------------------------------------------------------------------------------------------


def test_a_path_s_nodes() -> None:
    view, (region,) = regions_of(loop())
    (found,) = region.paths
    assert found.annotation.region == IF
    assert not found.is_loop
    texts = [s.opcode for _, s in view.instructions(found.nodes)]
    assert texts == ["mad.lo.u32", "st.global.u32"]
    assert region.header not in found.nodes
    assert region.select in region.preheader
    assert not region.preheader & region.nodes


def test_two_paths_in_their_order() -> None:
    text = loop(
        body=path()
        + path(
            "red.global.add.u32 [%other], 1;", skip=EIGHT, region=SECOND, label="_2", clauses="independent"
        ),
        clauses="independent",
    )
    _, (region,) = regions_of(text)
    assert tree(region.paths) == [IF, SECOND]
    same_results(text)


def test_a_path_in_a_path() -> None:
    inner = path(PATH, skip=EIGHT, region=SECOND, label="_INNER")
    text = loop(body=path(inner))
    _, (region,) = regions_of(text)
    assert tree(region.paths) == [IF, [SECOND]]
    same_results(text)


def test_three_levels() -> None:
    middle = path(inner_loop("red.global.add.u32 [%out_i], %k;"), skip=EIGHT, region=SECOND, label="_INNER")
    text = loop(body=path(middle))
    _, (region,) = regions_of(text)
    assert tree(region.paths) == [IF, [SECOND, [VARIABLE]]]
    same_results(text)


def test_a_variable_loop_alone() -> None:
    text = loop(body=inner_loop("red.global.add.u32 [%out_i], %k;"))
    _, (region,) = regions_of(text)
    (found,) = region.paths
    assert found.is_loop
    assert found.annotation.pragma == "for variable"
    same_results(text)


def test_a_path_in_a_variable_loop() -> None:
    """Trips are run by the whole warp, also those of the remainder."""
    text = loop(body=inner_loop(path("red.global.add.u32 [%out_i], %k;", skip=ODD_TRIPS)))
    _, (region,) = regions_of(text)
    assert tree(region.paths) == [VARIABLE, [IF]]
    same_results(text)


def test_a_path_around_and_a_path_inside_a_variable_loop() -> None:
    inside = path("red.global.add.u32 [%out_i], %k;", skip=ODD_TRIPS, region=SECOND, label="_INNER")
    text = loop(body=path(inner_loop(inside), skip=EIGHT))
    _, (region,) = regions_of(text)
    assert tree(region.paths) == [IF, [VARIABLE, [SECOND]]]
    same_results(text)


@pytest.mark.parametrize("chunk", [2, 3, 16])
def test_several_trips_between_two_votes(chunk: int) -> None:
    text = loop(body=inner_loop("red.global.add.u32 [%out_i], %k;", clauses=f"chunk={chunk}"))
    _, (region,) = regions_of(text)
    assert region.paths[0].annotation.chunk == chunk
    same_results(text)


@pytest.mark.parametrize("chunk", [1, 3])
def test_what_a_loop_results_in_is_stored_with_its_task(chunk: int) -> None:
    """Lanes without trips store what they had ahead of the loop."""
    body = "xor.b32 %r16, %x, %k; mul.lo.u32 %x, %r16, 77;"
    same_results(
        loop(
            body=inner_loop(body, clauses=f"chunk={chunk}"),
            behind="add.u32 %r17, %x, %k; st.global.u32 [%out_i], %r17;",
        )
    )


def test_the_ways_out_of_a_loop_belong_to_its_task() -> None:
    """A `break` that leaves a value behind on a way of its own."""
    body = "setp.gt.u32 %p10, %value, 40; @%p10 bra BROKEN; red.global.add.u32 [%out_i], %k;"
    behind = "bra.uni MEET; BROKEN: mov.u32 %x, 99; MEET: st.global.u32 [%other_i], %x;"
    text = loop(body=inner_loop(body), behind=behind, clauses="independent")
    _, (region,) = regions_of(text)
    assert "BROKEN" in region.paths[0].nodes
    same_results(text)


@pytest.mark.parametrize(
    "after", ["st.global.u32 [%out_i], %value;", "xor.b32 %r12, %value, %i; st.global.u32 [%out_i], %r12;"]
)
@pytest.mark.parametrize(
    "code",
    [PATH, f"{PATH} {path('red.global.add.u32 [%other_i], %value;', skip=EIGHT, region=SECOND, label='_2')}"],
)
def test_a_lane_that_has_left_keeps_what_it_reads_behind_the_loop(code: str, after: str) -> None:
    """It comes along idle, also where the registers are those of the path's context."""
    leave = "setp.gt.u32 %p7, %value, 58; @%p7 bra OUT;"
    same_results(loop(before=leave, body=path(code), after=f"ret; OUT: {after}"), frozenset({"push"}))


def test_ways_out_of_a_loop_that_do_not_meet_are_refused() -> None:
    body = "setp.gt.u32 %p10, %value, 60; @%p10 bra LAST; red.global.add.u32 [%out_i], %k;"
    with pytest.raises(Refusal) as caught:
        rewritten(parse(loop(body=inner_loop(body), after="ret; LAST:")), "split")
    assert caught.value.diagnostics[0].code == "CCC032"


def test_a_condition_of_two_tests() -> None:
    """Both branches lead past the path, which has one beginning."""
    same_results(loop(before="setp.gt.u32 %p7, %value, 40; @%p7 bra JOIN;"))


def test_either_of_two_tests() -> None:
    same_results(loop(before="setp.gt.u32 %p7, %value, 50; @%p7 bra BEGIN;", body=path(begin="BEGIN:")))


def test_a_table_of_targets() -> None:
    """A switch whose cases are paths, one of them for two values."""
    body = f"""
    and.b32 %bits, %value, 3;
    table: .branchtargets FIRST, OTHER, FIRST, JOIN;
    brx.idx %bits, table;
FIRST:
    {mark("if.begin", IF, "independent")}
    {PATH}
    {mark("if.end", IF)}
    bra.uni JOIN;
OTHER:
    {mark("if.begin", SECOND, "independent")}
    red.global.add.u32 [%other_i], %value;
    {mark("if.end", SECOND)}
JOIN:
"""
    text = loop(body=body)
    _, (region,) = regions_of(text)
    assert sorted(tree(region.paths)) == [IF, SECOND]
    same_results(text)


def test_tasks_of_one_warp_need_not_agree() -> None:
    """Where its lanes did: branches, tables and calls lose the word that says so."""
    code = """setp.eq.u32 %p7, %block_size, 64; @%p7 bra.uni OVER; red.global.add.u32 [%out_i], 1; OVER:
    { .param .b32 x0; st.param.b32 [x0], %value; @%p7 call.uni nothing, (x0); }
    and.b32 %r10, %block_size, 1; table: .branchtargets ODD, EVEN; brx.idx.uni %r10, table;
    ODD: red.global.add.u32 [%out_i], 2; EVEN: red.global.add.u32 [%out_i], %value;"""
    text = loop(body=path(code), module=".func nothing(.param .b32 x) { ret; }")
    (function,) = (f for f in rewritten(parse(text)).module.functions() if f.name == "k")
    found = [s for s in function.body or () if isinstance(s, Instruction) and s.base in ("brx", "call")]
    tasks = [s for s in found if s.guard is None or not s.guard.register.name.startswith("%p")]
    assert {s.opcode for s in tasks} == {"brx.idx", "call"}
    assert len(tasks) < len(found)
    same_results(text)


def test_a_continue_to_where_the_path_ends_ends_it() -> None:
    text = loop(body=path(f"setp.eq.u32 %p7, %value, 60; @%p7 bra LATCH; {PATH}"))
    _, (region,) = regions_of(text)
    assert len(region.paths[0].nodes) == 2
    same_results(text)


def test_a_path_with_branches_and_a_loop() -> None:
    trips = inner_loop("red.global.add.u32 [%out_i], %k;", variable=False)
    test = "setp.gt.u32 %p7, %value, 30; @%p7 bra HIGH;"
    same_results(loop(body=path(f"{test} {PATH} bra.uni BOTH; HIGH: {trips} BOTH:")))


def test_a_loop_with_several_exits() -> None:
    """Each lane leaves where it would have left. Split, the new loop ends with the first lane that leaves."""
    exits = "setp.eq.u32 %p7, %value, 63; @%p7 bra EARLY; setp.eq.u32 %p8, %value, 61; @%p8 ret;"
    word = "mul.wide.u32 %rd20, %thread, 4; add.u64 %rd20, %other, %rd20;"
    after = f"{word} st.global.u32 [%rd20], 1; ret; EARLY: {word} st.global.u32 [%rd20], 2;"
    same_results(loop(before=exits, after=after), ran=frozenset({"push", "drain"}))


def test_a_loop_that_tests_at_its_head() -> None:
    """nvcc rotates its loops; other compilers need not."""
    text = (
        loop()
        .replace("setp.lt.u32 %more, %i, %n; @%more bra LOOP;", "bra.uni HEAD;")
        .replace(
            "setp.ge.u32 %none, %i, %n; @%none bra DONE;", "HEAD: setp.ge.u32 %none, %i, %n; @%none bra DONE;"
        )
    )
    same_results(text)


def test_the_path_ends_the_iteration() -> None:
    same_results(loop(body=path().replace("JOIN:", "").replace("bra JOIN", "bra LATCH")))


def test_the_whole_body_is_the_path() -> None:
    """Every lane wants it in every trip."""
    same_results(loop(body=path(skip="").replace("@%skips bra JOIN;", "")), ran=frozenset({"take"}))


def test_no_lane_ever_wants_the_path() -> None:
    same_results(loop(body=path(skip="setp.ge.u32 %skips, %value, 0;")), ran=frozenset({"whole"}))


def test_a_marked_loop_in_the_body_of_another_is_refused() -> None:
    """The outer loop's path may part the warp whose votes the inner one needs."""
    inner = f"""
    mov.u32 %r20, 0;
    {mark("for.begin", 6)}
INSIDE:
    {mark("body.begin", 6)}
    add.u32 %r21, %value, %r20; and.b32 %r22, %r21, 3; setp.ne.u32 %p12, %r22, 0; @%p12 bra INSIDE_JOIN;
    {mark("if.begin", 7)}
    red.global.add.u32 [%other_i], %r21;
    {mark("if.end", 7)}
INSIDE_JOIN:
    {mark("body.end", 6)}
    add.u32 %r20, %r20, 1; setp.lt.u32 %p13, %r20, 3; @%p13 bra INSIDE;
    {mark("for.end", 6)}
"""
    with pytest.raises(Refusal) as caught:
        rewritten(parse(loop(before=inner, clauses="independent")), "split")
    assert caught.value.diagnostics[0].code == "CCC046"
    # The outer marks alone are fine: what is inside is plain code.
    plain = "\n".join(line for line in inner.splitlines() if "// ccc" not in line)
    same_results(loop(before=plain, clauses="independent"))


def test_two_marked_loops_in_a_row() -> None:
    second = f"""
    mov.u32 %i, %thread;
    {mark("for.begin", 6)}
    setp.ge.u32 %none, %i, %n; @%none bra LAST;
AGAIN:
    {mark("body.begin", 6)}
    mul.wide.u32 %offset, %i, 4; add.u64 %a_i, %a, %offset; add.u64 %other_i, %other, %offset;
    ld.global.nc.u32 %value, [%a_i]; and.b32 %bits, %value, 3; setp.ne.u32 %skips, %bits, 1; @%skips bra AGAIN_JOIN;
    {mark("if.begin", 7)}
    st.global.u32 [%other_i], %value;
    {mark("if.end", 7)}
AGAIN_JOIN:
    {mark("body.end", 6)}
    add.u32 %i, %i, %stride; setp.lt.u32 %more, %i, %n; @%more bra AGAIN;
LAST:
    {mark("for.end", 6)}
"""
    text = loop(after=second)
    result = rewritten(parse(text))
    assert {r.region for r in result.regions} == {FOR, IF, 6, 7}
    same_results(text)


# --- copies and remarks --------------------------------------------------------------------------------------


def test_two_copies_in_one_loop_have_stacks_of_their_own() -> None:
    """One pragma, inlined twice."""
    text = loop(
        body=path(clauses="independent")
        + path("red.global.add.u32 [%other_i], %value;", skip=EIGHT, label="_2", clauses="independent")
    )
    result = rewritten(parse(text))
    assert [r.region for r in result.regions].count(IF) == 2
    same_results(text)


def test_a_marked_loop_without_a_path_stays() -> None:
    text = loop(body="")
    result = rewritten(parse(text))
    assert [d.code for d in result.remarks] == ["CCC054"]
    assert result.regions == ()
    assert result.module == parse(text)


@pytest.mark.parametrize("code", ["", "add.u32 %r21, %value, 1;"], ids=["no code", "unread code"])
def test_a_path_without_an_effect_stays(code: str) -> None:
    """There is no task in it, so collecting would only cost time; what is beside it is collected."""
    alone = parse(loop(body=path(code)))
    result = rewritten(alone)
    assert [d.code for d in result.remarks] == ["CCC054"]
    assert {r.outcome for r in result.regions} == {"declined"}
    assert result.module == alone
    beside = loop(
        body=path("red.global.add.u32 [%other_i], %value;", region=SECOND)
        + path(code, skip=EIGHT, label="_2")
    )
    result = rewritten(parse(beside))
    assert [d.code for d in result.remarks] == ["CCC054"]
    assert {r.region for r in result.regions if r.outcome == "rewritten"} == {FOR, SECOND}
    same_results(beside)


OUTER = {
    "ahead": "mov.u32 %r25, 0; and.b32 %r26, %tid_x, 3; OUTER: mov.u32 %i, %thread;",
    "after": "add.u32 %r25, %r25, 1; setp.lt.u32 %p10, %r25, {}; @%p10 bra OUTER;",
}


def peeled(ahead: str = "", after: str = "") -> str:
    """The loop with a copy of its first trip, body marks and all, between its beginning and its header."""
    text = loop(
        ahead=f"""{ahead}
    {mark("for.begin", FOR)}
    setp.ge.u32 %none, %i, %n; @%none bra DONE;
    {mark("body.begin", FOR)}
    mul.wide.u32 %offset, %i, 4; add.u64 %a_i, %a, %offset; add.u64 %out_i, %out, %offset;
    ld.global.nc.u32 %value, [%a_i];
    {path(label="_PEELED")}
    {mark("body.end", FOR)}
    add.u32 %i, %i, %stride;
""",
        after=after,
    )
    text = text.replace(
        f"{mark('for.begin', FOR)}\n    setp.ge.u32 %none, %i, %n; @%none bra DONE;\n    \nLOOP",
        "setp.ge.u32 %none, %i, %n; @%none bra DONE;\nLOOP",
    )
    assert text.count("for.begin") == 1
    return text


def test_a_peeled_copy_of_the_path_stays() -> None:
    """The first trip's copy stands ahead of the loop."""
    assert said(peeled()) == ["CCC051"]
    same_results(peeled())


def test_a_peeled_copy_in_a_loop_around_stays() -> None:
    """That loop is not the marked one, though a trip's marks stand in it."""
    text = peeled(OUTER["ahead"], OUTER["after"].format(2))
    _, (region,) = regions_of(text)
    assert len(region.paths) == 1
    assert said(text) == ["CCC051"]
    same_results(text)


@pytest.mark.parametrize(("trips", "codes"), [("%r26", ["CCC055"]), ("2", [])])
def test_a_loop_around_with_uneven_trips_is_remarked(trips: str, codes: list[str]) -> None:
    text = loop(ahead=OUTER["ahead"], after=OUTER["after"].format(trips))
    assert said(text) == codes
    same_results(text)


def test_dynamic_shared_memory_is_remarked() -> None:
    text = loop(module=".extern .shared .align 4 .b8 dynamic[];", ahead="mov.u32 %r30, dynamic;")
    assert said(text) == ["CCC056"]


# --- block sizes and partial warps ---------------------------------------------------------------------------


def limits(result: Result) -> list[tuple[str, ...]]:
    (function,) = (f for f in result.module.functions() if f.name == "k")
    return [d.arguments for d in function.directives if d.name == ".maxntid"]


@pytest.mark.parametrize(
    ("bounds", "clauses", "threads", "stated", "codes"),
    [
        (".maxntid 256, 1, 1", "", 256, [("256", "1", "1")], []),
        (".maxntid 64", "", 64, [("64",)], []),
        (".maxntid 16, 4, 2", "", 128, [("16", "4", "2")], []),
        (".reqntid 33", "", 64, [], []),
        ("", "block=96", 96, [("96", "1", "1")], []),
        ("", "block=16,8", 128, [("16", "8", "1")], []),
        (".maxntid 64", "block=96", 64, [("64",)], []),
        ("", "", 1024, [], ["CCC052"]),
        (".minnctapersm 2", "", 1024, [], ["CCC052"]),
    ],
)
def test_stacks_are_sized_by_the_block(
    bounds: str, clauses: str, threads: int, stated: list[tuple[str, ...]], codes: list[str]
) -> None:
    result = rewritten(parse(loop(bounds=bounds, clauses=clauses)))
    (report,) = (r for r in result.regions if r.region == IF)
    assert -(-report.threads // 32) * 32 == threads
    assert report.shared_bytes == threads * report.context_bytes
    assert limits(result) == stated
    assert [d.code for d in result.remarks] == codes


@pytest.mark.parametrize("block", [1, 31, 32, 33, 96, (4, 8), (8, 3, 2), (7, 5)])
def test_a_warp_that_is_not_whole_runs_the_original(block: Any) -> None:
    launch = Launch(1, block, 6)
    counts = compare(parse(linear()), "k", arguments, (launch,), seeds=(3,))
    whole, rest = divmod(launch.threads, 32)
    for phases in counts.values():
        assert bool(phases.get("whole")) == bool(whole)
        assert bool(phases.get("original")) == bool(rest) or phases.get("original", 0) > 0


def linear() -> str:
    """The loop over a block of one to three dimensions."""
    number = """mov.u32 %thread, %tid.z; mov.u32 %r30, %ntid.y; mov.u32 %r31, %tid.y;
    mad.lo.u32 %thread, %thread, %r30, %r31;
    mov.u32 %r30, %ntid.x; mad.lo.u32 %thread, %thread, %r30, %tid_x;
    mov.u32 %r31, %ntid.y; mul.lo.u32 %stride, %r30, %r31;
    mov.u32 %r31, %ntid.z; mul.lo.u32 %stride, %stride, %r31; mov.u32 %i, %thread;"""
    return loop(ahead=number)


def test_lanes_that_returned_early_leave_the_original() -> None:
    text = loop(ahead="and.b32 %r30, %tid_x, 7; setp.eq.u32 %p14, %r30, 7; @%p14 ret;")
    same_results(text, ran=frozenset({"original"}))
    counts = compare(parse(text), "k", uneven_arguments, LAUNCHES[:1], seeds=())
    assert not any(phases.get("whole") for phases in counts.values())


def test_paths_nest_deeper_than_pythons_own_stack() -> None:
    annotation = Annotation(1, "if", "if")
    path = Path(annotation, "0", frozenset(), "")
    for number in range(1, 3000):
        path = Path(annotation, str(number), frozenset(), "", (path,))
    assert [one.begin for one in path.tree()] == [str(number) for number in reversed(range(3000))]
    both = Path(annotation, "top", frozenset(), "", (path, Path(annotation, "last", frozenset(), "")))
    assert [one.begin for one in both.tree()][:2] == ["top", "2999"]
    assert both.tree()[-1].begin == "last"
