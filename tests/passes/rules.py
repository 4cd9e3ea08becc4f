"""Illegal loops, one or more for each legality rule, and their legal twins (DESIGN 6)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.passes.ptx_loops import (
    FOR,
    IF,
    PATH,
    SECOND,
    VARIABLE,
    inner_loop,
    mark,
    path,
)

Holes = dict[str, Any]
STORE_R11 = "st.global.u32 [%rd6], %r11;"
MIX = "mad.lo.u32 %r11, %r6, 5, 3; xor.b32 %r11, %r11, %r5;"
BRANCH_P7 = "setp.eq.u32 %p7, %r6, 60;"
OWN_WORD = "mul.wide.u32 %rd20, %r3, 4; add.u64 %rd20, %rd3, %rd20;"
"""%rd20 is the thread's own word of `other`."""
SHARED = ".shared .align 4 .b8 first[512]; .shared .align 4 .b8 second[512];"
SHARED_WORDS = """shl.b32 %r30, %r2, 2; mov.u32 %r31, first; add.u32 %r31, %r31, %r30;
    mov.u32 %r32, second; add.u32 %r32, %r32, %r30;"""
FILL = f"{SHARED_WORDS} st.shared.u32 [%r31], %r2; st.shared.u32 [%r32], %r2; bar.sync 0;"
LOCAL = ".local .align 4 .b8 depot[64]; .reg .b64 %l<9>;"
LOCAL_WORD = "mov.u64 %l1, depot; and.b32 %r16, %r6, 12; cvt.u64.u32 %l2, %r16; add.u64 %l3, %l1, %l2;"
CALLEE = """.func (.param .b32 result) twice(.param .b32 x) {{
    .reg .b32 %r<9>; ld.param.u32 %r1, [x]; add.u32 %r2, %r1, %r1; {} st.param.b32 [result], %r2; ret; }}"""
CALL = """{ .param .b32 x0; .param .b32 y0; st.param.b32 [x0], %r6; call.uni (y0), twice, (x0);
    ld.param.b32 %r10, [y0]; } st.global.u32 [%rd6], %r10;"""


def jump(label: str) -> str:
    return f"{BRANCH_P7} @%p7 bra {label};"


def shared(store: str, load: str) -> Holes:
    return {
        "declarations": SHARED,
        "ahead": FILL,
        "body": path(f"ld.shared.u32 %r10, [{load}]; st.global.u32 [%rd6], %r10;"),
        "behind": f"st.shared.u32 [{store}], %r6;",
    }


def collective(instruction: str) -> tuple[Holes, Holes]:
    """In the path, and ahead of it."""
    return (
        {"body": path(f"{instruction} {PATH}")},
        {"before": instruction},
    )


def nested(inner: str, outer: str) -> str:
    """A path in a path, with ``outer`` behind the inner one."""
    skip = "and.b32 %r9, %r6, 8; setp.ne.u32 %p1, %r9, 0;"
    return path(f"{path(inner, skip=skip, region=SECOND, label='_INNER')} {outer}")


@dataclass(frozen=True)
class Rule:
    """``illegal`` is refused with ``code`` at pragma ``at``; ``legal`` is rewritten. Both fill the holes of a loop."""

    code: str
    illegal: Holes
    legal: Holes = field(default_factory=dict)
    at: int = IF
    says: str = ""
    runs: bool = True


def same_place(code: str, illegal: str, legal: str, place: str = "before", **more: Any) -> Rule:
    """Two texts for one hole."""
    return Rule(code, {place: illegal}, {place: legal}, **more)


def scan(name: str) -> Holes:
    """The path's value goes into a running sum behind the path, which the store needs."""
    return {"ahead": f"mov.u32 {name}, 0;", "body": path(MIX), "before": "mov.u32 %r11, 1;"}


LIVE_OUTS = {
    "a value read behind the loop": Rule(
        "CCC034",
        {
            **scan("%r20"),
            "after": f"{OWN_WORD} st.global.u32 [%rd20], %r11;",
        },
        {**scan("%r20"), "behind": STORE_R11},
    ),
    "a running sum in the tail": Rule(
        "CCC035",
        {**scan("%r20"), "behind": "add.u32 %r20, %r20, %r11; st.global.u32 [%rd6], %r20;"},
        {**scan("%r20"), "behind": "add.u32 %r21, %r20, %r11; st.global.u32 [%rd6], %r21;"},
    ),
    "a value that decides a branch behind the path": Rule(
        "CCC034",
        {
            **scan("%r20"),
            "behind": "setp.gt.u32 %p7, %r11, 99; @%p7 bra LATCH; st.global.u32 [%rd6], %r6;",
        },
        {
            **scan("%r20"),
            "behind": "setp.gt.u32 %p7, %r11, 99; selp.u32 %r12, 1, 2, %p7; st.global.u32 [%rd6], %r12;",
        },
    ),
    "a value that ends the loop": Rule(
        "CCC034", {**scan("%r20"), "behind": "setp.gt.u32 %p7, %r11, 99; @%p7 bra DONE;"}, {**scan("%r20")}
    ),
    "an argument of a call behind the path": Rule(
        "CCC034",
        {
            **scan("%r20"),
            "module": CALLEE.format(""),
            "behind": CALL.replace("%r6", "%r11"),
        },
        {**scan("%r20"), "module": CALLEE.format(""), "body": path(f"{MIX} {CALL.replace('%r6', '%r11')}")},
    ),
    "a store to local memory": Rule(
        "CCC042",
        {
            **scan("%r20"),
            "declarations": LOCAL,
            "behind": f"{LOCAL_WORD} st.local.u32 [%l3], %r11;",
            "after": f"{OWN_WORD} ld.local.u32 %r17, [depot]; st.global.u32 [%rd20], %r17;",
        },
        {**scan("%r20"), "declarations": LOCAL, "behind": STORE_R11},
    ),
    "the number of trips of a variable loop": Rule(
        "CCC034",
        {"body": inner_loop("mad.lo.u32 %r14, %r14, 3, %r13;"), "behind": "st.global.u32 [%rd6], %r14;"},
        {"body": inner_loop("mad.lo.u32 %r14, %r14, 3, %r13; red.global.add.u32 [%rd6], %r14;")},
        at=VARIABLE,
        says="into a local ahead of it",
    ),
    "a sum over the path's runs": Rule(
        "CCC035",
        {
            "ahead": "mov.u32 %r20, 0;",
            "body": path("add.u32 %r20, %r20, %r6;"),
            "after": f"{OWN_WORD} st.global.u32 [%rd20], %r20;",
        },
        {"body": path("red.global.add.u32 [%rd3], %r6;")},
        says="atomicAdd",
    ),
    "a sum over the runs of a variable loop": Rule(
        "CCC035",
        {
            "ahead": "mov.u32 %r20, 0;",
            "body": inner_loop("add.u32 %r20, %r20, %r13;"),
            "after": f"{OWN_WORD} st.global.u32 [%rd20], %r20;",
        },
        {"body": inner_loop("red.global.add.u32 [%rd3], %r13;")},
        at=VARIABLE,
    ),
}

MEMORY = {
    "a load of what the path stores": Rule(
        "CCC036",
        {"behind": "ld.global.u32 %r12, [%rd6]; st.global.u32 [%rd7], %r12;"},
        {"behind": "ld.global.nc.u32 %r12, [%rd5]; xor.b32 %r12, %r12, 1;"},
        says="__restrict__",
    ),
    "a store to what the path loads": Rule(
        "CCC036",
        {
            "body": path("ld.global.u32 %r10, [%rd7]; red.global.add.u32 [%rd2], %r10;"),
            "behind": "st.global.u32 [%rd7], %r6;",
        },
        {"body": path("ld.global.u32 %r10, [%rd7]; red.global.add.u32 [%rd2], %r10;")},
    ),
    "two stores": Rule(
        "CCC036",
        {"behind": "st.global.u32 [%rd7], %r6;"},
        {"body": path(clauses="independent"), "behind": "st.global.u32 [%rd7], %r6;"},
        says="independent",
    ),
    "two stores, the loop independent": Rule(
        "CCC036",
        {"behind": "st.global.u32 [%rd7], %r6;"},
        {"clauses": "independent", "behind": "st.global.u32 [%rd7], %r6;"},
    ),
    "an atomic behind the path": Rule(
        "CCC036",
        {"behind": "red.global.add.u32 [%rd3], 1;"},
        {"body": path(clauses="independent"), "behind": "red.global.add.u32 [%rd3], 1;"},
    ),
    "an atomic in the path": Rule(
        "CCC036",
        {
            "body": path("red.global.add.u32 [%rd3], %r6;"),
            "behind": "ld.global.u32 %r12, [%rd7]; st.global.u32 [%rd6], %r12;",
        },
        {"body": path("red.global.add.u32 [%rd3], %r6;")},
    ),
    "a generic address": Rule(
        "CCC036",
        {"behind": "cvta.global.u64 %rd11, %rd7; ld.u32 %r12, [%rd11];"},
        {"behind": "cvta.global.u64 %rd11, %rd7; ld.global.nc.u32 %r12, [%rd5];"},
    ),
    "one shared array": Rule("CCC036", shared("%r31", "%r31"), shared("%r32", "%r31")),
    "a later path": Rule(
        "CCC036",
        {
            "body": path()
            + path("ld.global.u32 %r11, [%rd6]; st.global.u32 [%rd7], %r11;", region=SECOND, label="_2")
        },
        {
            "body": path()
            + path("ld.global.nc.u32 %r11, [%rd5]; mul.lo.u32 %r11, %r11, %r5;", region=SECOND, label="_2")
        },
    ),
    "the rest of an outer path": Rule(
        "CCC036",
        {"body": nested(PATH, "ld.global.u32 %r11, [%rd7]; add.u32 %r11, %r11, 1;")},
        {"body": nested(PATH, "ld.global.nc.u32 %r11, [%rd5]; add.u32 %r11, %r11, 1;")},
        at=SECOND,
    ),
    "what follows an outer path": Rule(
        "CCC036",
        {"body": nested(PATH, ""), "behind": "ld.global.u32 %r11, [%rd7]; add.u32 %r11, %r11, 1;"},
        {"body": nested(PATH, ""), "behind": "ld.global.nc.u32 %r11, [%rd5]; add.u32 %r11, %r11, 1;"},
    ),
    "a bound read again in each trip": Rule(
        "CCC036",
        {"latch": "ld.global.u32 %r1, [%rd3];", "ahead": "ld.global.u32 %r1, [%rd3];"},
        {"ahead": "ld.global.u32 %r1, [%rd3];"},
        says="into a local ahead of",
    ),
    "a call behind the path": Rule(
        "CCC036",
        {
            "module": CALLEE.format("st.global.u32 [storage], %r1;").join([".global .u32 storage;", ""]),
            "behind": CALL.replace("st.global.u32 [%rd6], %r10;", ""),
        },
        {
            "module": CALLEE.format("st.global.u32 [storage], %r1;").join([".global .u32 storage;", ""]),
            "before": CALL.replace("st.global.u32 [%rd6], %r10;", ""),
        },
    ),
}

FLOW = {
    "no marked loop": Rule("CCC030", {"marked": False}, {"marked": True}),
    "a path behind the loop": Rule("CCC030", {"body": "", "after": path()}, {"after": "mov.u32 %r10, 1;"}),
    "a jump into the path": Rule(
        "CCC031",
        {"before": jump("MIDDLE"), "body": path(f"mov.u32 %r10, 1; MIDDLE: {PATH}")},
        {"before": jump("BEGIN"), "body": path(begin="BEGIN:")},
    ),
    "a break in the path": Rule("CCC032", {"body": path(f"{jump('DONE')} {PATH}")}, {"before": jump("DONE")}),
    "a return in the path": Rule(
        "CCC032", {"body": path(f"{BRANCH_P7} @%p7 ret; {PATH}")}, {"before": f"{BRANCH_P7} @%p7 ret;"}
    ),
    "a continue that skips what follows": Rule(
        "CCC032",
        {"body": path(f"{jump('LATCH')} {PATH}"), "behind": "add.u32 %r20, %r20, 1;"},
        {"body": path(f"{jump('LATCH')} {PATH}")},
    ),
    "a break in a variable loop": Rule(
        "CCC032",
        {"body": inner_loop(f"{jump('DONE')} red.global.add.u32 [%rd6], %r13;")},
        {"body": inner_loop(f"{jump('INNER_DONE')} red.global.add.u32 [%rd6], %r13;")},
        at=VARIABLE,
    ),
    "a cycle with two entries": Rule(
        "CCC033",
        {"before": f"{jump('HALF')} FULL: shr.u32 %r6, %r6, 1; HALF: shr.u32 %r6, %r6, 1; {jump('FULL')}"},
        {"before": f"FULL: shr.u32 %r6, %r6, 1; HALF: shr.u32 %r6, %r6, 1; {jump('FULL')}"},
        at=FOR,
    ),
    "a loop between that is not marked": Rule(
        "CCC045",
        {"body": inner_loop(path("red.global.add.u32 [%rd6], %r13;"), variable=False)},
        {"body": path(inner_loop("red.global.add.u32 [%rd6], %r13;", variable=False))},
    ),
    "a path in a variable loop": Rule(
        "CCC046",
        {"body": inner_loop(path("red.global.add.u32 [%rd6], %r13;"))},
        {"body": path(inner_loop("red.global.add.u32 [%rd6], %r13;"))},
    ),
    "a marked loop that is gone": Rule(
        "CCC053", {"ahead": mark("for.begin", 7) + "\n" + mark("for.end", 7)}, at=7
    ),
}

CODE = {
    "an unknown instruction": Rule(
        "CCC044",
        {"before": "frobnicate.u32 %r10, %r6;"},
        {"after": "frobnicate.u32 %r10, %r6;"},
        at=FOR,
        runs=False,
    ),
    "a store to the thread's own shared word": Rule(
        "CCC037",
        {"declarations": SHARED, "ahead": SHARED_WORDS, "body": path(f"st.shared.u32 [%r31], %r6; {PATH}")},
        {
            "declarations": SHARED,
            "body": path(
                f"and.b32 %r30, %r5, 127; shl.b32 %r30, %r30, 2; mov.u32 %r31, first; add.u32 %r31, %r31, %r30; {PATH}"
            ),
        },
    ),
    "a store to the thread's own global word": Rule(
        "CCC037",
        {"body": path(f"{OWN_WORD} st.global.u32 [%rd20], %r6;")},
        {"body": path("st.global.u32 [%rd7], %r6;")},
    ),
    "a store to an own word by a counter of the path": Rule(
        "CCC037",
        {
            "ahead": OWN_WORD,
            "body": path(
                "mov.u64 %rd21, %rd20;"
                + inner_loop("st.global.u32 [%rd21], %r6; add.u64 %rd21, %rd21, 4;", variable=False)
            ),
        },
        {
            "body": path(
                "mov.u64 %rd21, %rd7;"
                + inner_loop("red.global.add.u32 [%rd21], %r6; add.u64 %rd21, %rd21, 0;", variable=False)
            )
        },
    ),
    "local memory filled ahead": Rule(
        "CCC042",
        {
            "declarations": LOCAL,
            "ahead": "st.local.u32 [depot], %r3;",
            "body": path(f"{LOCAL_WORD} ld.local.u32 %r10, [%l3]; st.global.u32 [%rd6], %r10;"),
        },
        {
            "declarations": LOCAL,
            "body": path(
                f"{LOCAL_WORD} st.local.u32 [%l3], %r5; ld.local.u32 %r10, [%l3]; st.global.u32 [%rd6], %r10;"
            ),
        },
    ),
    "local memory read behind": Rule(
        "CCC042",
        {
            "declarations": LOCAL,
            "body": path("st.local.u32 [depot], %r5;"),
            "behind": "ld.local.u32 %r10, [depot]; st.global.u32 [%rd6], %r10;",
        },
        {
            "declarations": LOCAL,
            "body": path(
                "st.local.u32 [depot], %r5; ld.local.u32 %r10, [depot]; st.global.u32 [%rd6], %r10;"
            ),
        },
    ),
    "local memory through a generic address": Rule(
        "CCC042",
        {
            "declarations": LOCAL,
            "ahead": "st.local.u32 [depot], %r3; mov.u64 %l5, depot; cvta.local.u64 %l6, %l5;",
            "body": path("ld.u32 %r10, [%l6]; st.global.u32 [%rd6], %r10;"),
        },
        {
            "declarations": LOCAL,
            "ahead": "mov.u64 %l5, depot; cvta.local.u64 %l6, %l5;",
            "body": path("st.local.u32 [depot], %r5; ld.u32 %r10, [%l6]; st.global.u32 [%rd6], %r10;"),
        },
    ),
    "a local address given away": Rule(
        "CCC042",
        {
            "declarations": LOCAL,
            "module": CALLEE.format(""),
            "ahead": "mov.u64 %l5, depot; cvta.local.u64 %l6, %l5; st.global.u64 [%rd3], %l6;",
            "body": path(
                "st.local.u32 [depot], %r5; ld.local.u32 %r10, [depot]; st.global.u32 [%rd6], %r10;"
            ),
        },
        {
            "declarations": LOCAL,
            "ahead": "mov.u64 %l5, depot; cvta.local.u64 %l6, %l5;",
            "body": path(
                "st.local.u32 [depot], %r5; ld.local.u32 %r10, [depot]; st.global.u32 [%rd6], %r10;"
            ),
        },
    ),
    "an external function": Rule(
        "CCC041",
        {"module": ".extern .func (.param .b32 result) twice(.param .b32 x);", "body": path(CALL)},
        {"module": CALLEE.format(""), "body": path(CALL)},
    ),
    "a call through a register": Rule(
        "CCC041",
        {
            "module": CALLEE.format(""),
            "declarations": "proto: .callprototype (.param .b32 _) _ (.param .b32 _);",
            "ahead": "mov.u64 %rd15, twice;",
            "body": path(CALL.replace("call.uni (y0), twice, (x0);", "call (y0), %rd15, (x0), proto;")),
        },
        {"module": CALLEE.format(""), "body": path(CALL)},
    ),
    "an external function behind a call": Rule(
        "CCC041",
        {
            "module": ".extern .func far();" + CALLEE.format("call.uni far;"),
            "body": path(CALL),
        },
        {"module": ".func near() { ret; }" + CALLEE.format("call.uni near;"), "body": path(CALL)},
    ),
    "a large shared array": Rule(
        "CCC043",
        {"declarations": ".shared .align 4 .b8 big[48640];", "ahead": "st.shared.u32 [big], %r1;"},
        {
            "declarations": ".shared .align 4 .b8 big[40000];",
            "ahead": "st.shared.u32 [big], %r1;",
            "bounds": ".maxntid 64",
        },
        at=FOR,
    ),
    "a branch in a scope": Rule(
        "CCC048",
        {
            "body": path(
                f"{{ .reg .b32 %t; mov.u32 %t, 1; {jump('OUT')} mov.u32 %t, 2; OUT: st.global.u32 [%rd6], %t; }}"
            )
        },
        {"body": path("{ .reg .b32 %t; mov.u32 %t, 1; st.global.u32 [%rd6], %t; }")},
        at=FOR,
    ),
    "a value of 8 bits": Rule(
        "CCC049",
        {
            "declarations": ".reg .b8 %b<2>;",
            "before": "ld.global.nc.u8 %b1, [%rd5];",
            "body": path("cvt.u32.u8 %r10, %b1; st.global.u32 [%rd6], %r10;"),
        },
        {
            "before": "ld.global.nc.u8 %h1, [%rd5];",
            "body": path("cvt.u32.u16 %r10, %h1; st.global.u32 [%rd6], %r10;"),
        },
    ),
}

BARRIERS = {
    "bar.sync": ("bar.sync 0;", ""),
    "barrier.sync": ("barrier.sync 0;", ""),
    "bar.red": ("bar.red.popc.u32 %r10, 0, %p2;", ""),
    "bar.arrive": ("bar.arrive 1, 64;", ""),
    "barrier.cluster": ("barrier.cluster.arrive;", ""),
    "cp.async.wait_all": ("cp.async.wait_all;", ""),
    "cp.async.wait_group": ("cp.async.wait_group 0;", ""),
    "griddepcontrol": ("griddepcontrol.wait;", ""),
}
ORDERED = {
    "membar": "membar.gl;",
    "fence": "fence.acq_rel.gpu;",
    "a volatile load": "ld.volatile.global.u32 %r10, [%rd7];",
    "an acquiring load": "ld.acquire.gpu.global.u32 %r10, [%rd7];",
    "a releasing store": "st.release.gpu.global.u32 [%rd7], 1;",
    "an acquiring atomic": "atom.acquire.gpu.global.add.u32 %r10, [%rd7], 1;",
    "bar.warp.sync": "bar.warp.sync -1;",
}
COLLECTIVES = {
    "vote": "vote.sync.ballot.b32 %r21, %p2, -1;",
    "shfl": "shfl.sync.idx.b32 %r21, %r6, 0, 31, -1;",
    "match": "match.any.sync.b32 %r21, %r6, -1;",
    "redux": "redux.sync.add.u32 %r21, %r6, -1;",
    "activemask": "activemask.b32 %r21;",
}

RULES = {**FLOW, **LIVE_OUTS, **MEMORY, **CODE}
RULES |= {
    f"{name} in the loop": Rule(
        "CCC038", {"before": code}, {"after": "bar.sync 0;" if name == "bar.sync" else ""}, at=FOR
    )
    for name, (code, _) in BARRIERS.items()
}
RULES |= {
    "a barrier in a function": Rule(
        "CCC038",
        {"module": CALLEE.format("bar.sync 0;"), "before": CALL.replace("st.global.u32 [%rd6], %r10;", "")},
        {"module": CALLEE.format(""), "before": CALL.replace("st.global.u32 [%rd6], %r10;", "")},
        at=FOR,
    )
}
RULES |= {
    f"{name} ahead of the path": Rule("CCC039", {"before": code}, {"before": code, "clauses": "independent"})
    for name, code in ORDERED.items()
}
RULES |= {
    f"{name} behind the path": Rule(
        "CCC039", {"behind": code}, {"behind": code, "body": path(clauses="independent")}
    )
    for name, code in ORDERED.items()
}
RULES |= {
    f"{name} in the path": Rule("CCC040", *collective(code), says="") for name, code in COLLECTIVES.items()
}
