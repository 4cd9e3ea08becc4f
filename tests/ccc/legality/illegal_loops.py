"""Illegal loops, one or more for each legality rule, and their legal twins (DESIGN 6)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.kernels.ptx_loops import (
    FOR,
    IF,
    LAUNCHES,
    PATH,
    SECOND,
    SKIP,
    VARIABLE,
    inner_loop,
    mark,
    path,
)
from tests.kernels.running import Launch

Holes = dict[str, Any]
STORE_RESULT = "st.global.u32 [%out_i], %result;"
MIX = "mad.lo.u32 %result, %value, 5, 3; xor.b32 %result, %result, %i;"
BRANCH_P7 = "setp.eq.u32 %p7, %value, 60;"
COUNTED = "red.global.add.u32 [%out_i], %k;"
ROUND = "add.u32 %r33, %r33, 1; setp.lt.u32 %p12, %r33, 2; @%p12 bra ROUND;"
OWN_WORD = "mul.wide.u32 %rd20, %thread, 4; add.u64 %rd20, %other, %rd20;"
"""%rd20 is the thread's own word of `other`."""
PARTED = "setp.gt.u32 %p10, %value, 9; @%p10 bra HALF; add.u32 %r12, %value, 5; HALF: st.global.u32 [%out_i], %r12;"
"""%r12 where it is stored is 3 or what the branch computes."""
SHARED = ".shared .align 4 .b8 first[512]; .shared .align 4 .b8 second[512];"
SHARED_WORDS = """shl.b32 %r30, %tid_x, 2; mov.u32 %r31, first; add.u32 %r31, %r31, %r30;
    mov.u32 %r32, second; add.u32 %r32, %r32, %r30;"""
FILL = f"{SHARED_WORDS} st.shared.u32 [%r31], %tid_x; st.shared.u32 [%r32], %tid_x; bar.sync 0;"
LOCAL = ".local .align 4 .b8 depot[64]; .reg .b64 %l<9>;"
LOCAL_WORD = "mov.u64 %l1, depot; and.b32 %r16, %value, 12; cvt.u64.u32 %l2, %r16; add.u64 %l3, %l1, %l2;"
CALLEE = """.func (.param .b32 result) twice(.param .b32 x) {{
    .reg .b32 %r<9>; ld.param.u32 %r1, [x]; add.u32 %r2, %r1, %r1; {} st.param.b32 [result], %r2; ret; }}"""
CALL = """{ .param .b32 x0; .param .b32 y0; st.param.b32 [x0], %value; call.uni (y0), twice, (x0);
    ld.param.b32 %r10, [y0]; } st.global.u32 [%out_i], %r10;"""


def jump(label: str) -> str:
    return f"{BRANCH_P7} @%p7 bra {label};"


def shared(behind: str, inside: str) -> Holes:
    """The path loads the thread's word of one array, the code behind it stores to the iteration's of another."""
    return {
        "declarations": SHARED,
        "ahead": FILL,
        "body": path(f"ld.shared.u32 %r10, [{inside}]; st.global.u32 [%out_i], %r10;"),
        "behind": f"""and.b32 %r34, %i, 127; shl.b32 %r34, %r34, 2; mov.u32 %r35, {behind};
            add.u32 %r35, %r35, %r34; st.shared.u32 [%r35], %value;""",
    }


def nested(inner: str, outer: str) -> str:
    """A path in a path, with ``outer`` behind the inner one."""
    skip = "and.b32 %bits, %value, 8; setp.ne.u32 %skips, %bits, 0;"
    return path(f"{path(inner, skip=skip, region=SECOND, label='_INNER')} {outer}")


FOLD = "mad.lo.u32 %x, %x, 3, %k;"
STORE_X = "st.global.u32 [%out_i], %x;"
MARKED_INSIDE = f"""
    mov.u32 %r30, 0;
    {mark("for.begin", 6)}
INSIDE:
    {mark("body.begin", 6)}
    {path("red.global.add.u32 [%other_i], %r30;", region=7, label="_INSIDE")}
    {mark("body.end", 6)}
    add.u32 %r30, %r30, 1; setp.lt.u32 %p13, %r30, 3; @%p13 bra INSIDE;
    {mark("for.end", 6)}
"""
PLAIN_INSIDE = "\n".join(line for line in MARKED_INSIDE.splitlines() if "// ccc" not in line)


@dataclass(frozen=True)
class Rule:
    """``illegal`` is refused with ``code`` at pragma ``at``; ``legal`` is rewritten. Both fill the holes of a loop."""

    code: str
    illegal: Holes
    legal: Holes = field(default_factory=dict)
    at: int = IF
    says: str = ""
    runs: bool = True
    launches: tuple[Launch, ...] = LAUNCHES


def scan() -> Holes:
    """The path's value goes into a running sum behind the path, which the store needs."""
    return {"ahead": "mov.u32 %sum, 0;", "body": path(MIX), "before": "mov.u32 %result, 1;"}


LIVE_OUTS = {
    "a value read behind the loop": Rule(
        "CCC034",
        {
            **scan(),
            "after": f"{OWN_WORD} st.global.u32 [%rd20], %result;",
        },
        {**scan(), "behind": STORE_RESULT},
    ),
    "a running sum in the tail": Rule(
        "CCC035",
        {**scan(), "behind": "add.u32 %sum, %sum, %result; st.global.u32 [%out_i], %sum;"},
        {**scan(), "behind": "add.u32 %r21, %sum, %result; st.global.u32 [%out_i], %r21;"},
    ),
    "a value that decides a branch behind the path": Rule(
        "CCC034",
        {
            **scan(),
            "behind": "setp.gt.u32 %p7, %result, 99; @%p7 bra LATCH; st.global.u32 [%out_i], %value;",
        },
        {
            **scan(),
            "behind": "setp.gt.u32 %p7, %result, 99; selp.u32 %r12, 1, 2, %p7; st.global.u32 [%out_i], %r12;",
        },
    ),
    "a value that ends the loop": Rule(
        "CCC034",
        {**scan(), "behind": "setp.gt.u32 %p7, %result, 99; @%p7 bra DONE;"},
        {**scan(), "behind": "st.global.u32 [%out_i], %result;"},
    ),
    "a branch behind the path that parts what a statement under it reads": Rule(
        "CCC034",
        {
            **scan(),
            "before": "mov.u32 %result, 1; mov.u32 %r12, 3;",
            "behind": f"setp.gt.u32 %p7, %result, 99; @%p7 bra OVER; {PARTED} OVER:",
        },
        {
            **scan(),
            "behind": f"setp.gt.u32 %p7, %result, 99; @%p7 bra OVER; mov.u32 %r12, 3; {PARTED} OVER:",
        },
    ),
    "an argument of a call behind the path": Rule(
        "CCC034",
        {
            **scan(),
            "module": CALLEE.format(""),
            "behind": CALL.replace("%value", "%result"),
        },
        {
            **scan(),
            "module": CALLEE.format(""),
            "body": path(f"{MIX} {CALL.replace('%value', '%result')}"),
        },
    ),
    "a store to local memory": Rule(
        "CCC042",
        {
            **scan(),
            "declarations": LOCAL,
            "behind": f"{LOCAL_WORD} st.local.u32 [%l3], %result;",
            "after": f"{OWN_WORD} ld.local.u32 %r17, [depot]; st.global.u32 [%rd20], %r17;",
        },
        {**scan(), "declarations": LOCAL, "behind": STORE_RESULT},
    ),
    "what a variable loop results in, read at a branch": Rule(
        "CCC034",
        {"body": inner_loop(FOLD), "behind": f"setp.gt.u32 %p7, %x, 9; @%p7 bra LATCH; {STORE_X}"},
        {"body": inner_loop(FOLD), "behind": STORE_X},
        at=VARIABLE,
        says="into a local variable before the path",
    ),
    "a sum over the path's runs": Rule(
        "CCC035",
        {
            "ahead": "mov.u32 %sum, 0;",
            "body": path("add.u32 %sum, %sum, %value;"),
            "after": f"{OWN_WORD} st.global.u32 [%rd20], %sum;",
        },
        {"body": path("red.global.add.u32 [%other], %value;")},
        says="atomicAdd",
    ),
    "a value carried through the runs of a variable loop": Rule(
        "CCC035",
        {
            "ahead": "mov.u32 %sum, 0;",
            "body": inner_loop("mad.lo.u32 %sum, %sum, 3, %k;"),
            "after": f"{OWN_WORD} st.global.u32 [%rd20], %sum;",
        },
        {"body": inner_loop("red.global.add.u32 [%other], %k;")},
        at=VARIABLE,
    ),
}

MEMORY = {
    "a load of what the path stores": Rule(
        "CCC036",
        {"behind": "ld.global.u32 %r12, [%out_i]; st.global.u32 [%other_i], %r12;"},
        {"behind": "ld.global.nc.u32 %r12, [%a_i]; xor.b32 %r12, %r12, 1;"},
        says="move the access into the path",
    ),
    "a store to what the path loads": Rule(
        "CCC036",
        {
            "body": path("ld.global.u32 %r10, [%other_i]; red.global.add.u32 [%out], %r10;"),
            "behind": "st.global.u32 [%other_i], %value;",
        },
        {"body": path("ld.global.u32 %r10, [%other_i]; red.global.add.u32 [%out], %r10;")},
    ),
    "two stores": Rule(
        "CCC036",
        {"behind": "st.global.u32 [%other_i], %value;"},
        {"body": path(clauses="independent"), "behind": "st.global.u32 [%other_i], %value;"},
        says="independent",
    ),
    "two stores, the loop independent": Rule(
        "CCC036",
        {"behind": "st.global.u32 [%other_i], %value;"},
        {"clauses": "independent", "behind": "st.global.u32 [%other_i], %value;"},
    ),
    "an atomic behind the path": Rule(
        "CCC036",
        {"behind": "red.global.add.u32 [%other], 1;"},
        {"body": path(clauses="independent"), "behind": "red.global.add.u32 [%other], 1;"},
    ),
    "an atomic in the path": Rule(
        "CCC036",
        {
            "body": path("red.global.add.u32 [%other], %value;"),
            "behind": "ld.global.u32 %r12, [%other_i]; st.global.u32 [%out_i], %r12;",
        },
        {"body": path("red.global.add.u32 [%other], %value;")},
    ),
    "two kinds of atomics": Rule(
        "CCC036",
        {"body": path("red.global.add.u32 [%other], 1;"), "behind": "red.global.max.u32 [%other], %value;"},
        {"body": path("red.global.add.u32 [%other], 1;"), "behind": "red.global.add.u32 [%other], %value;"},
    ),
    "a sum of floats": Rule(
        "CCC036",
        {
            "body": path("red.global.add.f32 [%other], 0f3F800000;"),
            "behind": "red.global.add.f32 [%other], %f1;",
        },
        {"body": path("red.global.add.s32 [%other], 2;"), "behind": "red.global.add.s32 [%other], 1;"},
    ),
    "an atomic whose result is read": Rule(
        "CCC036",
        {
            "body": path("red.global.add.u32 [%other], 1;"),
            "behind": "atom.global.add.u32 %r12, [%other], 1; and.b32 %r12, %r12, 1; add.u32 %sum, %sum, %r12;",
        },
        {
            "body": path("red.global.add.u32 [%other], 1;"),
            "behind": "atom.global.add.u32 %r12, [%other], 1; add.u32 %sum, %sum, 1;",
        },
    ),
    "a generic address": Rule(
        "CCC036",
        {"behind": "cvta.global.u64 %rd11, %other_i; ld.u32 %r12, [%rd11];"},
        {"behind": "cvta.global.u64 %rd11, %other_i; ld.global.nc.u32 %r12, [%a_i];"},
    ),
    "a load behind a store that runs with the task": Rule(
        "CCC036",
        {**scan(), "behind": f"{STORE_RESULT} ld.global.u32 %r12, [%other_i]; add.u32 %r12, %r12, 1;"},
        {**scan(), "behind": f"{STORE_RESULT} ld.global.nc.u32 %r12, [%a_i]; add.u32 %r12, %r12, 1;"},
    ),
    "one shared array": Rule(
        "CCC036", shared("first", "%r31"), shared("second", "%r31"), launches=LAUNCHES[:1]
    ),
    "a later path": Rule(
        "CCC036",
        {
            "body": path()
            + path(
                "ld.global.u32 %result, [%out_i]; st.global.u32 [%other_i], %result;",
                region=SECOND,
                label="_2",
            )
        },
        {
            "body": path()
            + path(
                "ld.global.nc.u32 %result, [%a_i]; mul.lo.u32 %result, %result, %i;",
                region=SECOND,
                label="_2",
            )
        },
    ),
    "the rest of an outer path": Rule(
        "CCC036",
        {"body": nested(PATH, "ld.global.u32 %result, [%other_i]; add.u32 %result, %result, 1;")},
        {"body": nested(PATH, "ld.global.nc.u32 %result, [%a_i]; add.u32 %result, %result, 1;")},
        at=SECOND,
    ),
    "what follows an outer path": Rule(
        "CCC036",
        {
            "body": nested(PATH, ""),
            "behind": "ld.global.u32 %result, [%other_i]; add.u32 %result, %result, 1;",
        },
        {
            "body": nested(PATH, ""),
            "behind": "ld.global.nc.u32 %result, [%a_i]; add.u32 %result, %result, 1;",
        },
    ),
    "a bound read again in each trip": Rule(
        "CCC036",
        {"latch": "ld.global.u32 %n, [%other];", "ahead": "ld.global.u32 %n, [%other];"},
        {"ahead": "ld.global.u32 %n, [%other];"},
        says="into a local variable before",
    ),
    "a call behind the path": Rule(
        "CCC036",
        {
            "module": CALLEE.format("st.global.u32 [storage], %r1;").join([".global .u32 storage;", ""]),
            "behind": CALL.replace("st.global.u32 [%out_i], %r10;", ""),
        },
        {
            "module": CALLEE.format("st.global.u32 [storage], %r1;").join([".global .u32 storage;", ""]),
            "before": CALL.replace("st.global.u32 [%out_i], %r10;", ""),
        },
    ),
}

OVERLAPPING = f"""
    {SKIP} @%skips bra JOIN;
    {mark("if.begin", IF)}
    add.u32 %r10, %value, 1;
    {mark("if.begin", SECOND)}
    add.u32 %r10, %r10, 1;
    {mark("if.end", IF)}
    st.global.u32 [%out_i], %r10;
    {mark("if.end", SECOND)}
JOIN:
"""
LEAVING = f"""
    {mark("if.begin", SECOND)}
    st.global.u32 [%out_i], %value;
    {mark("if.end", SECOND)}
"""
GONE = f"""
    {mark("for.begin", VARIABLE, "variable")}
    {mark("body.begin", VARIABLE)}
    add.u32 %k, %value, 1;
    {mark("body.end", VARIABLE)}
    {mark("for.end", VARIABLE)}
"""
"""A loop of one trip."""

FLOW = {
    "no marked loop": Rule("CCC030", {"marked": False}, {"marked": True}),
    "a path behind the loop": Rule("CCC030", {"body": "", "after": path()}, {"after": "mov.u32 %r10, 1;"}),
    "a jump into the path": Rule(
        "CCC031",
        {"before": jump("MIDDLE"), "body": path(f"mov.u32 %r10, 1; MIDDLE: {PATH}")},
        {"before": jump("BEGIN"), "body": path(begin="BEGIN:")},
    ),
    "a jump past the loop's own beginning": Rule(
        "CCC031",
        {"ahead": "setp.eq.u32 %p7, %n, 0; @%p7 bra LOOP;"},
        {"ahead": "setp.eq.u32 %p7, %n, 0; @%p7 bra DONE;"},
        at=FOR,
    ),
    "paths that overlap": Rule(
        "CCC031",
        {"body": OVERLAPPING},
        {"body": nested("mov.u32 %result, 3;", PATH)},
        at=SECOND,
    ),
    "a path that leaves the loop": Rule(
        "CCC032",
        {"before": jump("OUT"), "after": f"ret; OUT: {LEAVING}"},
        {"before": jump("OUT"), "after": "ret; OUT: st.global.u32 [%out_i], %value;"},
        at=SECOND,
    ),
    "a break in the path": Rule("CCC032", {"body": path(f"{jump('DONE')} {PATH}")}, {"before": jump("DONE")}),
    "a return in the path": Rule(
        "CCC032", {"body": path(f"{BRANCH_P7} @%p7 ret; {PATH}")}, {"before": f"{BRANCH_P7} @%p7 ret;"}
    ),
    "a return on one way through the path": Rule(
        "CCC032",
        {"body": path(f"{BRANCH_P7} @!%p7 bra OVER; ret; OVER: {PATH}")},
        {"before": f"{BRANCH_P7} @!%p7 bra OVER; ret; OVER:"},
    ),
    "code in the path that never ends": Rule(
        "CCC032",
        {"body": path(f"setp.eq.u32 %p7, %value, 999; @!%p7 bra OVER; SPIN: bra SPIN; OVER: {PATH}")},
        {"body": path(f"setp.eq.u32 %p7, %value, 999; @!%p7 bra OVER; trap; OVER: {PATH}")},
    ),
    "a continue that skips what follows": Rule(
        "CCC032",
        {"body": path(f"{jump('LATCH')} {PATH}"), "behind": "add.u32 %sum, %sum, 1;"},
        {"body": path(f"{jump('LATCH')} {PATH}")},
    ),
    "a break in a variable loop": Rule(
        "CCC032",
        {"body": inner_loop(f"{jump('DONE')} red.global.add.u32 [%out_i], %k;")},
        {"body": inner_loop(f"{jump('INNER_DONE')} red.global.add.u32 [%out_i], %k;")},
        at=VARIABLE,
    ),
    "a cycle with two entries": Rule(
        "CCC033",
        {
            "before": f"{jump('HALF')} FULL: shr.u32 %value, %value, 1; HALF: shr.u32 %value, %value, 1; {jump('FULL')}"
        },
        {"before": f"FULL: shr.u32 %value, %value, 1; HALF: shr.u32 %value, %value, 1; {jump('FULL')}"},
        at=FOR,
    ),
    "a loop between that is not marked": Rule(
        "CCC045",
        {"body": inner_loop(path("red.global.add.u32 [%out_i], %k;"), variable=False)},
        {"body": path(inner_loop("red.global.add.u32 [%out_i], %k;", variable=False))},
    ),
    "a variable loop in one that is not marked": Rule(
        "CCC045",
        {"body": f"mov.u32 %r33, 0; ROUND: {inner_loop(COUNTED)} {ROUND}"},
        {"body": inner_loop(f"mov.u32 %r33, 0; ROUND: {COUNTED} {ROUND}")},
        at=VARIABLE,
    ),
    "a marked loop in a marked loop": Rule(
        "CCC046",
        {"before": MARKED_INSIDE, "clauses": "independent"},
        {"before": PLAIN_INSIDE, "clauses": "independent"},
        at=6,
    ),
    "a variable loop that is gone": Rule("CCC053", {"before": GONE}, at=VARIABLE),
    "a marked loop that is gone": Rule(
        "CCC053", {"ahead": mark("for.begin", 7) + "\n" + mark("for.end", 7)}, at=7
    ),
}
