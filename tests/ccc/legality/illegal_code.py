"""Illegal loops for the rules about what a loop's instructions do, and all rules together."""

from __future__ import annotations

from tests.ccc.legality.illegal_loops import (
    CALL,
    CALLEE,
    FILL,
    FLOW,
    LIVE_OUTS,
    LOCAL,
    LOCAL_WORD,
    MEMORY,
    OWN_WORD,
    SHARED,
    SHARED_WORDS,
    STORE_RESULT,
    Holes,
    Rule,
    jump,
    scan,
)
from tests.kernels.ptx_loops import FOR, PATH, VARIABLE, inner_loop, path


def own_word(stored: str, loaded: str) -> Holes:
    """Each iteration stores to a word of one array, and its path loads one."""
    return {
        "declarations": SHARED,
        "ahead": FILL,
        "before": f"st.shared.u32 [{stored}], %value;",
        "body": path(f"ld.shared.u32 %r10, [{loaded}]; st.global.u32 [%out_i], %r10;"),
    }


def collective(instruction: str) -> tuple[Holes, Holes]:
    """In the path, and ahead of it."""
    return (
        {"body": path(f"{instruction} {PATH}")},
        {"before": instruction},
    )


STORE_BY = """mov.u32 %r30, {}; mul.wide.u32 %rd21, %r30, 4; add.u64 %rd21, %other, %rd21;
    st.global.u32 [%rd21], 1;"""

BY_POINTER = CALL.replace("call.uni (y0), twice, (x0);", "call (y0), %rd15, (x0), proto;")
POINTER = {
    "declarations": "proto: .callprototype (.param .b32 _) _ (.param .b32 _);",
    "ahead": "mov.u64 %rd15, twice;",
}
DECLARED = ".func (.param .b32 result) twice(.param .b32 x)"
COUNT = "add.u32 %r16, %r16, 1; red.global.add.u32 [%out_i], %r16;"
SCOPE = f"{{{{ .reg .b32 %t; {{}} mov.u32 %t, 1; {jump('OVER')} mov.u32 %t, 2; OVER: st.global.u32 [%out_i], %t; }}}}"
PLACE = "mov.u64 %l1, depot; and.b32 %r17, %k, 7; mul.wide.u32 %l2, %r17, 4; add.u64 %l3, %l1, %l2;"
UPDATE = "ld.global.u32 %r10, [%out_i]; add.u32 %r10, %r10, %value; st.global.u32 [%out_i], %r10;"

CODE = {
    "an unknown instruction": Rule(
        "CCC044",
        {"before": "frobnicate.u32 %r10, %value;"},
        {"after": "frobnicate.u32 %r10, %value;"},
        at=FOR,
        runs=False,
    ),
    "a store to the thread's own shared word": Rule(
        "CCC037",
        {
            "declarations": SHARED,
            "ahead": SHARED_WORDS,
            "body": path(f"st.shared.u32 [%r31], %value; {PATH}"),
        },
        {
            "declarations": SHARED,
            "body": path(
                f"and.b32 %r30, %i, 127; shl.b32 %r30, %r30, 2; mov.u32 %r31, first; add.u32 %r31, %r31, %r30; {PATH}"
            ),
        },
    ),
    "a store of each iteration to what may be read": Rule(
        "CCC037",
        {"before": f"{OWN_WORD} st.global.u32 [%rd20], %value;", "body": path(UPDATE)},
        {"before": f"{OWN_WORD} st.global.u32 [%rd20], %value;", "body": path(UPDATE, clauses="independent")},
    ),
    "a store to the thread's own word behind the path, of its value": Rule(
        "CCC037",
        {**scan(), "behind": f"{OWN_WORD} st.global.u32 [%rd20], %result;"},
        {**scan(), "behind": STORE_RESULT},
    ),
    "a store to a word by the path's own %tid": Rule(
        "CCC037",
        {"body": path(STORE_BY.format("%tid.x"))},
        {"body": path(STORE_BY.format("%ctaid.x"))},
    ),
    "a word of each thread, not one of all": Rule(
        "CCC037",
        {"ahead": OWN_WORD, "body": path("st.global.u32 [%rd20], 1;")},
        {"body": path("st.global.u32 [%other], 1;")},
    ),
    "a store of each iteration to the thread's own word": Rule(
        "CCC037", own_word("%r31", "%r31"), own_word("%r32", "%r31")
    ),
    "a store to the thread's own global word": Rule(
        "CCC037",
        {"body": path(f"{OWN_WORD} st.global.u32 [%rd20], %value;")},
        {"body": path("st.global.u32 [%other_i], %value;")},
    ),
    "a store to an own word by a counter of the path": Rule(
        "CCC037",
        {
            "ahead": OWN_WORD,
            "body": path(
                "mov.u64 %rd21, %rd20;"
                + inner_loop("st.global.u32 [%rd21], %value; add.u64 %rd21, %rd21, 4;", variable=False)
            ),
        },
        {
            "body": path(
                "mov.u64 %rd21, %other_i;"
                + inner_loop("red.global.add.u32 [%rd21], %value; add.u64 %rd21, %rd21, 0;", variable=False)
            )
        },
    ),
    "local memory filled ahead": Rule(
        "CCC042",
        {
            "declarations": LOCAL,
            "ahead": "st.local.u32 [depot], %thread;",
            "body": path(f"{LOCAL_WORD} ld.local.u32 %r10, [%l3]; st.global.u32 [%out_i], %r10;"),
        },
        {
            "declarations": LOCAL,
            "body": path(
                f"{LOCAL_WORD} st.local.u32 [%l3], %i; ld.local.u32 %r10, [%l3]; st.global.u32 [%out_i], %r10;"
            ),
        },
    ),
    "local memory read behind": Rule(
        "CCC042",
        {
            "declarations": LOCAL,
            "body": path("st.local.u32 [depot], %i;"),
            "behind": "ld.local.u32 %r10, [depot]; st.global.u32 [%out_i], %r10;",
        },
        {
            "declarations": LOCAL,
            "body": path(
                "st.local.u32 [depot], %i; ld.local.u32 %r10, [depot]; st.global.u32 [%out_i], %r10;"
            ),
        },
    ),
    "local memory that one trip leaves to the next": Rule(
        "CCC042",
        {
            "declarations": LOCAL,
            "body": inner_loop(f"ld.local.u32 %r16, [depot]; {COUNT} st.local.u32 [depot], %r16;"),
        },
        {
            "declarations": LOCAL,
            "body": inner_loop(f"st.local.u32 [depot], %k; ld.local.u32 %r16, [depot]; {COUNT}"),
        },
        at=VARIABLE,
    ),
    "local memory at another place in each trip": Rule(
        "CCC042",
        {
            "declarations": LOCAL,
            "body": inner_loop(f"{PLACE} st.local.u32 [%l3], %k; ld.local.u32 %r16, [depot]; {COUNT}"),
        },
        {
            "declarations": LOCAL,
            "body": path(
                inner_loop(
                    f"{PLACE} st.local.u32 [%l3], %k; ld.local.u32 %r16, [%l3]; {COUNT}", variable=False
                )
            ),
        },
        at=VARIABLE,
    ),
    "local memory through a generic address": Rule(
        "CCC042",
        {
            "declarations": LOCAL,
            "ahead": "st.local.u32 [depot], %thread; mov.u64 %l5, depot; cvta.local.u64 %l6, %l5;",
            "body": path("ld.u32 %r10, [%l6]; st.global.u32 [%out_i], %r10;"),
        },
        {
            "declarations": LOCAL,
            "ahead": "mov.u64 %l5, depot; cvta.local.u64 %l6, %l5;",
            "body": path("st.local.u32 [depot], %i; ld.u32 %r10, [%l6]; st.global.u32 [%out_i], %r10;"),
        },
    ),
    "a local address given away": Rule(
        "CCC042",
        {
            "declarations": LOCAL,
            "module": CALLEE.format(""),
            "ahead": "mov.u64 %l5, depot; cvta.local.u64 %l6, %l5; st.global.u64 [%other], %l6;",
            "body": path(
                "st.local.u32 [depot], %i; ld.local.u32 %r10, [depot]; st.global.u32 [%out_i], %r10;"
            ),
        },
        {
            "declarations": LOCAL,
            "ahead": "mov.u64 %l5, depot; cvta.local.u64 %l6, %l5;",
            "body": path(
                "st.local.u32 [depot], %i; ld.local.u32 %r10, [depot]; st.global.u32 [%out_i], %r10;"
            ),
        },
    ),
    "an external function": Rule(
        "CCC041",
        {"module": ".extern .func (.param .b32 result) twice(.param .b32 x);", "body": path(CALL)},
        {"module": CALLEE.format(""), "body": path(CALL)},
    ),
    "a call through a register that may be of code from elsewhere": Rule(
        "CCC041",
        {"module": ".visible " + CALLEE.format(""), **POINTER, "body": path(BY_POINTER)},
        {"module": CALLEE.format(""), **POINTER, "body": path(BY_POINTER)},
        says="call the function by name",
    ),
    "a call through a register whose prototype has the name of a function": Rule(
        "CCC041",
        {
            "module": ".visible " + CALLEE.format("") + CALLEE.format("").replace("twice", "proto"),
            **POINTER,
            "body": path(BY_POINTER),
        },
        {"module": CALLEE.format("").replace("twice", "proto"), "body": path(CALL.replace("twice", "proto"))},
        says="call the function by name",
    ),
    "a function that is declared alone": Rule(
        "CCC041",
        {"module": f".extern {DECLARED};", "body": path(CALL)},
        {"module": f"{DECLARED}; {CALLEE.format('')}", "body": path(CALL)},
    ),
    "an external function that is not the system's": Rule(
        "CCC041",
        {"module": ".extern .func vprinter();", "body": path(f"call vprinter, (); {PATH}")},
        {"module": ".extern .func vprintf();", "body": path(f"call vprintf, (); {PATH}")},
        runs=False,
    ),
    "an external function that nobody vouches for": Rule(
        "CCC041",
        {
            "module": ".extern .func near();",
            "body": path(f"call near, (); {PATH}"),
            "clauses": "pure=ear,nea",
        },
        {
            "module": ".extern .func near();",
            "body": path(f"call near, (); {PATH}"),
            "clauses": "pure=far,near",
        },
        runs=False,
    ),
    "an external function behind a call": Rule(
        "CCC041",
        {
            "module": ".extern .func far();" + CALLEE.format("call.uni far;"),
            "body": path(CALL),
        },
        {"module": ".func near() { ret; }" + CALLEE.format("call.uni near;"), "body": path(CALL)},
    ),
    "a call in the path that ends the thread": Rule(
        "CCC041",
        {"module": CALLEE.format("exit;"), "body": path(CALL)},
        {"module": CALLEE.format("ret;"), "body": path(CALL)},
        at=FOR,
    ),
    "a call in the loop that ends the thread": Rule(
        "CCC041",
        {"module": CALLEE.format("exit;"), "body": CALL + path()},
        {"module": CALLEE.format("ret;"), "body": CALL + path()},
        at=FOR,
    ),
    "a branch in a scope with a variable": Rule(
        "CCC048",
        {"body": path(SCOPE.format(".local .b32 own;"))},
        {"body": path(SCOPE.format(""))},
        at=FOR,
    ),
    "a branch in a scope with a variable before the loop": Rule(
        "CCC048",
        {
            "before": SCOPE.replace("st.global.u32 [%out_i], %t;", "add.u32 %t, %t, 1;").format(
                ".local .b32 own;"
            ),
            "body": path(),
        },
        {
            "before": SCOPE.replace("st.global.u32 [%out_i], %t;", "add.u32 %t, %t, 1;").format(""),
            "body": path(),
        },
        at=FOR,
    ),
    "memory of the stack": Rule(
        "CCC042",
        {
            "before": "alloca.u64 %rd8, 16;",
            "body": path("st.local.u32 [%rd8], %value; ld.local.u32 %r10, [%rd8];"),
        },
        {
            "body": path("st.local.u32 [%rd8], %value; ld.local.u32 %r10, [%rd8];"),
            "ahead": "mov.u64 %rd8, scratch;",
            "declarations": ".local .align 4 .b8 scratch[16];",
        },
    ),
    "a value of 8 bits": Rule(
        "CCC049",
        {
            "declarations": ".reg .b8 %b<2>;",
            "before": "ld.global.nc.u8 %b1, [%a_i];",
            "body": path("cvt.u32.u8 %r10, %b1; st.global.u32 [%out_i], %r10;"),
        },
        {
            "before": "ld.global.nc.u8 %h1, [%a_i];",
            "body": path("cvt.u32.u16 %r10, %h1; st.global.u32 [%out_i], %r10;"),
        },
    ),
}

SPIN = """mov.u32 %r21, 1;
SPIN: atom.global.exch.b32 %r22, [%other], %r21; setp.eq.u32 %p12, %r22, 1; @%p12 bra SPIN;"""

BARRIERS = {
    "bar.sync": "bar.sync 0;",
    "barrier.sync": "barrier.sync 0;",
    "bar.red": "bar.red.popc.u32 %r10, 0, %none;",
    "bar.arrive": "bar.arrive 1, 64;",
    "barrier.cluster": "barrier.cluster.arrive;",
    "cp.async.wait_all": "cp.async.wait_all;",
    "cp.async.wait_group": "cp.async.wait_group 0;",
    "griddepcontrol": "griddepcontrol.wait;",
    "cp.async": "cp.async.ca.shared.global [%r10], [%other_i], 16;",
}
ORDERED = {
    "membar": "membar.gl;",
    "fence": "fence.acq_rel.gpu;",
    "a volatile load": "ld.volatile.global.u32 %r10, [%other_i];",
    "an acquiring load": "ld.acquire.gpu.global.u32 %r10, [%other_i];",
    "a releasing store": "st.release.gpu.global.u32 [%other_i], 1;",
    "an acquiring atomic": "atom.acquire.gpu.global.add.u32 %r10, [%other_i], 1;",
    "bar.warp.sync": "bar.warp.sync -1;",
}
COLLECTIVES = {
    "vote": "vote.sync.ballot.b32 %r21, %none, -1;",
    "shfl": "shfl.sync.idx.b32 %r21, %value, 0, 31, -1;",
    "match": "match.any.sync.b32 %r21, %value, -1;",
    "redux": "redux.sync.add.u32 %r21, %value, -1;",
    "activemask": "activemask.b32 %r21;",
    "ldu": "ldu.global.u32 %r21, [%other_i];",
}

RULES = {**FLOW, **LIVE_OUTS, **MEMORY, **CODE}
RULES |= {
    f"{name} in the loop": Rule(
        "CCC038", {"before": code}, {"after": code if name == "bar.sync" else ""}, at=FOR
    )
    for name, code in BARRIERS.items()
}
RULES |= {
    "a barrier in a function": Rule(
        "CCC038",
        {"module": CALLEE.format("bar.sync 0;"), "before": CALL.replace("st.global.u32 [%out_i], %r10;", "")},
        {"module": CALLEE.format(""), "before": CALL.replace("st.global.u32 [%out_i], %r10;", "")},
        at=FOR,
    )
}
RULES |= {
    "a collective in a function": Rule(
        "CCC040",
        {
            "module": CALLEE.format("vote.sync.any.pred %p1, %p1, -1;").replace(
                ".reg", ".reg .pred %p<2>; .reg"
            ),
            "body": path(CALL),
        },
        {"module": CALLEE.format(""), "body": path(CALL)},
    )
}
SPARE = "addc.u32 %r12, %value, 7;"
FILLED = "red.global.add.u32 [%out_i], %r10;"
CARRY = "add.cc.u32 %r11, %value, 0xf0000000;"
SUM = "addc.u32 %r10, %value, 7; st.global.u32 [%out_i], %r10;"
RULES |= {
    "a carry flag that the path reads": Rule(
        "CCC122", {"before": CARRY, "body": path(SUM)}, {"body": path(CARRY + SUM)}
    ),
    "a carry flag that is read behind the path": Rule(
        "CCC122", {"before": CARRY, "behind": SPARE}, {"behind": CARRY + SPARE}
    ),
    "a carry flag from trip to trip": Rule(
        "CCC122",
        {"before": CARRY, "body": inner_loop(f"addc.cc.u32 %r10, %value, 7; {FILLED}")},
        {"body": inner_loop(f"{CARRY} addc.cc.u32 %r10, %value, 7; {FILLED}")},
        at=VARIABLE,
    ),
}
RULES |= {
    "a loop over an atomic": Rule(
        "CCC039",
        {"before": SPIN},
        {"before": inner_loop("atom.global.exch.b32 %r22, [%other], 1;", variable=False)},
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
MORE_COLLECTIVES = {
    "bar.warp.sync": "bar.warp.sync -1;",
    "elect": "elect.sync %r21|%p11, -1;",
    "ldmatrix": "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r22}, [%r21];",
    "mma": "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r22,%r23}, {%r24}, {%r25}, {%r26,%r27};",
}
"""Those that the loop may not hold outside of the path either, or that the emulator does not run."""
RULES |= {
    f"{name} in the path": Rule("CCC040", {"body": path(f"{code} {PATH}")})
    for name, code in MORE_COLLECTIVES.items()
}
RULES |= {f"{name} in the path": Rule("CCC040", *collective(code)) for name, code in COLLECTIVES.items()}
