"""What a task takes along: the decision for each register that a path reads (DESIGN 4.1).

    limit = flag + 1;  word = a[i];
    if (...) out[i] = word * limit;     ->      push(word, i); later, in any lane: out[i] = word * limit
                                                `limit` is left out: it is the same in all lanes and iterations

A register left out that differs gives a task another lane's value, and one collected for nothing costs shared memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from cccopt.ccc.function.view import view_of
from cccopt.ccc.outcome.refusal import Refusal
from cccopt.ccc.plan.context import LiveIn, Placement, rebuilt
from cccopt.passes.pipeline import Result
from cccopt.ptx.ir import Instruction, Module
from cccopt.ptx.parser import parse
from tests.kernels.ptx_loops import IF, LAUNCHES, arguments, inner_loop, loop, path
from tests.kernels.running import Launch, compare, rewritten

SHORT = (*LAUNCHES, Launch(1, 64, 0))
"""The last launch has one element: all lanes but one fail the loop's guard."""


def uses(register: str, kind: str = "u32") -> str:
    """A path that stores what a register holds."""
    if kind == "u64":
        return path(f"cvt.u32.u64 %r10, {register}; st.global.u32 [%out_i], %r10;")
    return path(f"st.global.{kind} [%out_i], {register};")


@dataclass(frozen=True)
class Choice:
    """In the loop with these holes ``register`` gets ``decision`` for a reason that holds ``because``."""

    register: str
    decision: str
    because: str = ""
    holes: dict[str, Any] = field(default_factory=dict)


OUTER_LOOP = {
    "ahead": "mov.u32 %r25, 0; OUTER: mov.u32 %i, %thread;",
    "body": uses("%r25"),
    "after": "add.u32 %r25, %r25, 1; setp.lt.u32 %p10, %r25, 2; @%p10 bra OUTER;",
}
OWN_TRIPS = """mov.u32 %r29, 0;
COUNT: add.u32 %r29, %r29, 1; setp.lt.u32 %p11, %r29, %tid_x; @%p11 bra COUNT;"""
CALLEE = """.func (.param .b32 result) five() {
    .reg .b32 %r<9>; mov.u32 %r1, 5; st.param.b32 [result], %r1; ret; }"""
CALL = "{ .param .b32 y0; call.uni (y0), five; ld.param.b32 %r30, [y0]; }"

CHOICES = {
    "a uniform loop counter": Choice(
        "%r22",
        "collected",
        "changes between push and pop",
        {"ahead": "mov.u32 %r22, 0;", "body": uses("%r22"), "latch": "add.u32 %r22, %r22, 1;"},
    ),
    "a parameter loaded ahead": Choice(
        "%r23", "left out", "before the loop", {"ahead": "ld.param.u32 %r23, [flag];", "body": uses("%r23")}
    ),
    "a parameter loaded in the loop": Choice(
        "%r23", "rebuilt", "the whole warp", {"before": "ld.param.u32 %r23, [flag];", "body": uses("%r23")}
    ),
    "a constant made in the loop": Choice(
        "%r23", "rebuilt", "", {"before": "mov.u32 %r23, 17;", "body": uses("%r23")}
    ),
    "%ntid read in the loop": Choice(
        "%r23", "rebuilt", "", {"before": "mov.u32 %r23, %ntid.x;", "body": uses("%r23")}
    ),
    "an address between guard and header": Choice(
        "%rd15",
        "rebuilt",
        "",
        {
            "preheader": "ld.param.u64 %rd14, [other]; cvta.to.global.u64 %rd15, %rd14;",
            "body": path("red.global.add.u32 [%rd15], %value;"),
        },
    ),
    "a varying value between guard and header": Choice(
        "%r24",
        "collected",
        "differs between lanes",
        {
            "preheader": "mov.u32 %r24, %clock;",
            "body": path(
                "shr.u32 %r10, %r24, 31; shr.u32 %r10, %r10, 1; add.u32 %r10, %r10, %value; "
                "st.global.u32 [%out_i], %r10;"
            ),
        },
    ),
    "%tid in the path": Choice(
        "%tid.x",
        "collected",
        "identifies the lane",
        {"body": path("mov.u32 %r10, %tid.x; st.global.u32 [%out_i], %r10;")},
    ),
    "%laneid in the path": Choice(
        "%laneid", "collected", "", {"body": path("mov.u32 %r10, %laneid; st.global.u32 [%out_i], %r10;")}
    ),
    "a lane mask in the path": Choice(
        "%lanemask_lt",
        "collected",
        "",
        {"body": path("mov.u32 %r10, %lanemask_lt; st.global.u32 [%out_i], %r10;")},
    ),
    "%tid read in the loop": Choice(
        "%r24",
        "collected",
        "differs between lanes",
        {"before": "mov.u32 %r24, %tid.x;", "body": uses("%r24")},
    ),
    "a value joined under a divergent branch": Choice(
        "%r24",
        "collected",
        "differs between lanes",
        {
            "before": "setp.gt.u32 %p7, %value, 30; mov.u32 %r24, 3; @%p7 bra BIG; ld.param.u32 %r24, [flag]; BIG:",
            "body": uses("%r24"),
        },
    ),
    "a value joined under a branch that becomes a select": Choice(
        "%r24",
        "recomputed",
        "each task computes it again from",
        {
            "before": "setp.gt.u32 %p7, %value, 30; mov.u32 %r24, 3; @%p7 bra BIG; mov.u32 %r24, 4; BIG:",
            "body": uses("%r24"),
        },
    ),
    "a value joined ahead of the loop": Choice(
        "%r24",
        "collected",
        "differs between lanes",
        {
            "ahead": "setp.gt.u32 %p7, %tid_x, 30; mov.u32 %r24, 3; @%p7 bra BIG; mov.u32 %r24, 4; BIG:",
            "body": uses("%r24"),
        },
    ),
    "a value written under a varying guard": Choice(
        "%r24",
        "collected",
        "differs between lanes",
        {
            "ahead": "setp.gt.u32 %p7, %tid_x, 30; mov.u32 %r24, 3; @%p7 mov.u32 %r24, 4;",
            "body": uses("%r24"),
        },
    ),
    "a value written again under a uniform guard": Choice(
        "%r24",
        "collected",
        "not proven to be the same",
        {
            "ahead": "ld.param.u32 %r26, [flag]; setp.gt.u32 %p7, %r26, 30; mov.u32 %r24, 3; @%p7 mov.u32 %r24, 4;",
            "body": uses("%r24"),
        },
    ),
    "a uniform value of an unmarked loop around": Choice("%r25", "collected", "", OUTER_LOOP),
    "a value of each trip of an unmarked loop around": Choice(
        "%r31",
        "collected",
        "",
        {**OUTER_LOOP, "ahead": OUTER_LOOP["ahead"] + " shl.b32 %r31, %r25, 3;", "body": uses("%r31")},
    ),
    "a value out of a loop that lanes leave at different trips": Choice(
        "%r29", "collected", "differs between lanes", {"ahead": OWN_TRIPS, "body": uses("%r29")}
    ),
    "a register that the path overwrites": Choice(
        "%r26",
        "collected",
        "overwrites it",
        {
            "ahead": "ld.param.u32 %r26, [flag];",
            "before": "ld.param.u32 %r26, [flag];",
            "body": path("add.u32 %r26, %r26, %value; st.global.u32 [%out_i], %r26;"),
        },
    ),
    "a load that others may store to": Choice(
        "%r27",
        "collected",
        "differs between lanes",
        {"ahead": "ld.global.u32 %r27, [%other];", "body": uses("%r27")},
    ),
    "a load of what nobody writes": Choice(
        "%r27", "left out", "", {"ahead": "ld.global.nc.u32 %r27, [%a];", "body": uses("%r27")}
    ),
    "a load through a varying address": Choice(
        "%value", "collected", "differs between lanes and iterations", {"body": uses("%value")}
    ),
    "what an atomic returns": Choice(
        "%r28",
        "collected",
        "differs between lanes",
        {
            "ahead": "atom.global.and.b32 %r28, [%other], 0;",
            "body": path("min.u32 %r10, %r28, 0; st.global.u32 [%out_i], %r10;"),
        },
    ),
    "a call's result": Choice(
        "%r30", "collected", "differs between lanes", {"module": CALLEE, "ahead": CALL, "body": uses("%r30")}
    ),
}


def context(result: Result, region: int = IF) -> dict[str, tuple[str, str]]:
    """Decision and reason for each live-in of a path."""
    (report,) = (r for r in result.regions if r.region == region)
    return {entry.register: (entry.decision, entry.reason) for entry in report.context}


@pytest.mark.parametrize("name", CHOICES)
def test_choice(name: str) -> None:
    choice = CHOICES[name]
    marked = parse(loop(**choice.holes))
    decision, reason = context(rewritten(marked))[choice.register]
    assert decision == choice.decision
    assert choice.because in reason
    compare(marked, "k", few, SHORT, seeds=())


def few(launch: Launch) -> list[Any]:
    """Arguments for launches of any length, one element at least."""
    if launch.trips == 0:
        return [1, *arguments(Launch(1, 64, 1))[1:]]
    return [launch.uneven, *arguments(launch)[1:]]


FUNCTION = """.version 9.0
.target sm_90
.address_size 64
.func work(.param .u32 n, .param .u64 out, .param .u32 step, .param .u32 start)
{
    .reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<9>;
    ld.param.u32 %r1, [n]; ld.param.u32 %r4, [step]; ld.param.u32 %r5, [start];
    // ccc for.begin 1
    setp.ge.u32 %p2, %r5, %r1; @%p2 bra DONE;
LOOP:
    // ccc body.begin 1
    ld.param.u64 %rd1, [out]; ld.param.u32 %r6, [start];
    and.b32 %r7, %r5, 96; setp.eq.u32 %p1, %r7, 0; and.b32 %r7, %r6, 3; setp.eq.or.u32 %p1, %r7, 0, %p1; @%p1 bra JOIN;
    // ccc if.begin 2
    mul.wide.u32 %rd2, %r5, 4; add.u64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r6;
    // ccc if.end 2
JOIN:
    // ccc body.end 1
    add.u32 %r5, %r5, %r4; setp.lt.u32 %p3, %r5, %r1; @%p3 bra LOOP;
DONE:
    // ccc for.end 1
    ret;
}
.visible .entry k(.param .u32 n, .param .u64 a, .param .u64 out, .param .u64 other, .param .u32 flag)
{
    .reg .b32 %r<9>; .reg .b64 %rd<9>;
    ld.param.u32 %r1, [n]; ld.param.u64 %rd1, [out]; mov.u32 %r2, %tid.x; mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %nctaid.x; mul.lo.u32 %r5, %r4, %r3; mov.u32 %r6, %ctaid.x; mad.lo.u32 %r2, %r6, %r3, %r2;
    { .param .b32 x0; .param .b64 x1; .param .b32 x2; .param .b32 x3; st.param.b32 [x0], %r1; st.param.b64 [x1], %rd1;
      st.param.b32 [x2], %r5; st.param.b32 [x3], %r2; call.uni work, (x0, x1, x2, x3); }
    ret;
}
"""


def test_parameters_of_a_function_differ_between_lanes() -> None:
    """Lanes that call a function together pass arguments of their own, wherever it loads them."""
    marked = parse(FUNCTION)
    found = context(rewritten(marked))
    assert {name: found[name][0] for name in ("%r6", "%rd1")} == {"%r6": "collected", "%rd1": "collected"}
    compare(marked, "k", few, LAUNCHES, seeds=())


def test_a_function_s_stacks_serve_any_block() -> None:
    """Whatever the pragma says: the kernels that call it decide."""
    marked = parse(FUNCTION.replace("// ccc for.begin 1", "// ccc for.begin 1 block=32"))
    result = rewritten(marked)
    assert {r.threads for r in result.regions} == {1024}
    assert [r.code for r in result.remarks] == ["CCC052"]
    compare(marked, "k", few, (Launch(1, 256, 2),), seeds=())


def test_a_parameter_of_a_function_in_the_path_is_refused() -> None:
    """A kernel's is one for all lanes."""
    load = "ld.param.u32 %r6, [{}]; mul.wide.u32 %rd2"
    with pytest.raises(Refusal) as caught:
        rewritten(parse(FUNCTION.replace("mul.wide.u32 %rd2", load.format("start"))), "split")
    assert caught.value.diagnostics[0].code == "CCC057"
    assert rewritten(
        parse(loop(body=path("ld.param.u32 %r10, [flag]; st.global.u32 [%out_i], %r10;")))
    ).regions


def declared(kind: str, count: int) -> str:
    """``count`` predicates or 16-bit values that vary, and a path that adds them up."""
    if kind == "pred":
        made = [f"setp.gt.u32 %p{7 + i}, %value, {7 * i};" for i in range(count)]
        used = [f"selp.u32 %r11, {1 << i}, 0, %p{7 + i}; or.b32 %r10, %r10, %r11;" for i in range(count)]
    else:
        made = [f"ld.global.nc.u16 %h{1 + i}, [%a_i+{i % 2}];".replace("+1]", "+2]") for i in range(count)]
        used = [f"cvt.u32.u16 %r11, %h{1 + i}; add.u32 %r10, %r10, %r11;" for i in range(count)]
    sum_up = " ".join(["mov.u32 %r10, 0;", *used])
    return loop(before=" ".join(made), body=path(f"{sum_up} red.global.add.u32 [%other], %r10;"))


@pytest.mark.parametrize(
    ("kind", "count", "size"),
    [("pred", 1, 4), ("pred", 9, 4), ("b16", 1, 4), ("b16", 2, 4), ("b16", 3, 8)],
)
def test_predicates_are_bits_of_a_word_and_halves_share_one(kind: str, count: int, size: int) -> None:
    marked = parse(declared(kind, count))
    (report,) = (r for r in rewritten(marked).regions if r.region == IF)
    collected = [e for e in report.context if e.decision == "collected"]
    assert {e.type for e in collected} <= {kind, "b32"}
    if kind == "b16":
        assert report.context_bytes == size
    else:
        assert report.context_bytes <= size
    compare(marked, "k", few, SHORT, seeds=())


def test_wide_values_take_eight_bytes() -> None:
    marked = parse(
        loop(before="ld.global.nc.u64 %rd11, [%a]; ld.global.u64 %rd12, [%other];", body=uses("%rd12", "u64"))
    )
    (report,) = (r for r in rewritten(marked).regions if r.region == IF)
    assert {e.register: e.decision for e in report.context}["%rd12"] == "collected"
    assert report.context_bytes == 8 + 4
    assert report.threads == 128
    assert report.shared_bytes == 128 * report.context_bytes


def test_what_the_path_writes_first_is_no_live_in() -> None:
    found = context(rewritten(parse(loop())))
    assert "%r10" not in found


def test_what_merely_lives_through_is_no_live_in() -> None:
    holes = {"before": "mul.lo.u32 %r31, %value, 3;", "behind": "xor.b32 %r32, %r31, 1;", "body": path()}
    assert "%r31" not in context(rewritten(parse(loop(**holes))))


def test_an_inner_path_takes_what_it_needs_of_the_outer_one() -> None:
    """Its tasks outlive the run of the outer path that made them."""
    inner = inner_loop("red.global.add.u32 [%out_i], %r12;")
    marked = parse(loop(body=path(f"ld.global.nc.u32 %r12, [%a]; add.u32 %r12, %r12, %value; {inner}")))
    found = context(rewritten(marked), region=3)
    assert found["%r12"][0] == "collected"
    compare(marked, "k", few, SHORT, seeds=())


def test_registers_of_one_statement_get_their_names_in_a_fixed_order() -> None:
    parts = [f"%h{i}" for i in range(4)]
    code = f".reg .b16 %h<4>; .reg .b64 %w; mov.b64 {{{', '.join(parts)}}}, %w; ret;"
    (function,) = parse(f".version 9.0\n.target sm_90\n.address_size 64\n.entry k() {{ {code} }}").functions()
    seen = view_of(Module((function,)), function)
    (place,) = (i for i, s in enumerate(seen.body) if isinstance(s, Instruction) and s.base == "mov")
    _, last = rebuilt(seen, LiveIn("%h3", "b16", Placement.REBUILT, "", (place,)))
    assert last.name.endswith("_3")
