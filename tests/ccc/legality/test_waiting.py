"""Loops that may wait for another thread, told from those that end by themselves."""

from __future__ import annotations

import pytest

from cccopt.ccc.function.view import view_of
from cccopt.ccc.legality.waiting import tried, waiting
from cccopt.ptx.parser import parse
from tests.emulator.kernels import kernel

LOOP = """
    mov.u32 %r4, 0;
    LOOP: add.u32 %r4, %r4, 1; {reads}
    setp.gt.u32 %p1, %r4, 9; @%p1 bra {way_out}; {latch}
    FIRST: SECOND: st.global.u32 [%rd2], %r4;"""
LOCK = "atom.global.exch.b32 %r5, [%rd2], 1; setp.eq.u32 %p2, %r5, 0;"


@pytest.mark.parametrize("way_out", ["FIRST", "SECOND"])
@pytest.mark.parametrize("reads", ["", LOCK])
def test_a_counted_loop_ends_by_itself(way_out: str, reads: str) -> None:
    """Also where the block behind it has several labels, and where it may end earlier."""
    latch = "@%p2 bra SECOND; bra LOOP;" if reads else "bra LOOP;"
    assert found(LOOP.format(reads=reads, way_out=way_out, latch=latch)) is None


def test_a_lock_is_waited_for() -> None:
    assert found(f"LOOP: {LOCK} @!%p2 bra LOOP; FIRST: SECOND: st.global.u32 [%rd2], %r5;") is not None


def test_a_lock_whose_result_decides_by_control_is_waited_for() -> None:
    """A flag is set where the lock has been taken, and the loop's end reads only the flag."""
    body = f"""
    mov.u32 %r4, 0; mov.u32 %r6, 0;
    LOOP: {LOCK} @!%p2 bra TRIES;
    mov.u32 %r6, 1; bra NEXT;
    TRIES: add.u32 %r4, %r4, 1;
    NEXT: setp.eq.u32 %p1, %r6, 0; @%p1 bra LOOP;
    st.global.u32 [%rd2], %r4;"""
    assert found(body) is not None


COUNTED = """
    ld.global.u32 %r2, [%rd2+8]; mov.u32 %r4, 0;
    LOOP: add.u32 %r4, %r4, 1; {bound}
    setp.{test}.u32 %p1, %r4, %r5; @%p1 bra LOOP;
    st.global.u32 [%rd2], %r4;"""


@pytest.mark.parametrize(
    ("bound", "test", "waits"),
    [
        ("ld.global.u32 %r5, [%rd2+4];", "lt", False),  # as a marker's memory clobber has it
        ("ld.global.u32 %r6, [%rd2+4]; add.u32 %r5, %r6, %r2;", "lt", False),
        ("ld.global.u32 %r5, [%rd2+4];", "ne", True),  # it may change before the counter is there
        ("ld.global.u32 %r5, [%rd2+4];", "gt", True),
        ("ld.volatile.global.u32 %r5, [%rd2+4];", "lt", True),
        ("ld.relaxed.gpu.global.u32 %r5, [%rd2+4];", "lt", True),
        ("atom.global.add.u32 %r5, [%rd2+4], 0;", "lt", True),
        ("membar.gl; ld.global.u32 %r5, [%rd2+4];", "lt", True),
        ("ld.global.u32 %r6, [%rd2+4]; add.u32 %r5, %r6, %r4;", "lt", True),  # it moves with the counter
    ],
)
def test_a_bound_may_be_loaded_anew(bound: str, test: str, waits: bool) -> None:
    assert (found(COUNTED.format(bound=bound, test=test)) is not None) == waits


FUNCTIONS = """
.func pause() { membar.gl; ret; }
.func (.param .b32 out) get(.param .b64 place) {
    .reg .b32 %r<2>; .reg .b64 %rd<2>;
    ld.param.b64 %rd0, [place]; {fence} ld.global.b32 %r0, [%rd0]; {store} st.param.b32 [out], %r0; ret;
}
"""
PAUSE = "call pause;"
GET = """{ .param .b64 p0; .param .b32 r0; st.param.b64 [p0], %rd2;
    call (r0), get, (p0); ld.param.b32 %r5, [r0]; }"""
GET_NEXT = GET.replace("%rd2", "%rd3")


@pytest.mark.parametrize(
    ("code", "fence", "store", "waits"),
    [
        (f"{PAUSE} ld.global.u32 %r5, [%rd3];", "", "", True),
        (GET_NEXT, "membar.gl;", "", True),
        (f"{PAUSE} {GET_NEXT}", "", "", True),
        (GET, "", "", True),  # one place, as if it were loaded here
        (GET_NEXT, "", "", False),  # a search
        (GET, "", "st.global.b32 [%rd0], 0;", False),  # the call itself may end the loop
    ],
)
def test_what_callees_do_counts(code: str, fence: str, store: str, waits: bool) -> None:
    body = f"""
    mov.u64 %rd3, %rd2;
    LOOP: add.u64 %rd3, %rd3, 4; {code}
    setp.eq.u32 %p1, %r5, 0; @%p1 bra LOOP;
    st.global.u32 [%rd2], %r5;"""
    functions = FUNCTIONS.replace("{fence}", fence).replace("{store}", store)
    assert (found(body, functions) is not None) == waits


@pytest.mark.parametrize(("name", "waits"), [("malloc", True), ("vprintf", False)])
def test_memory_that_others_may_free_is_waited_for(name: str, waits: bool) -> None:
    body = f"""
    LOOP: {{ .param .b64 p0; .param .b64 r0; st.param.b64 [p0], 16;
    call (r0), {name}, (p0); ld.param.b64 %rd4, [r0]; }}
    setp.eq.u64 %p1, %rd4, 0; @%p1 bra LOOP;
    st.global.u64 [%rd2], %rd4;"""
    assert (found(body, f".extern .func (.param .b64 r) {name}(.param .b64 n);") is not None) == waits


@pytest.mark.parametrize(
    ("gives_up", "then", "waits"),
    [
        ("@%p2 bra GIVE_UP;", "ret;", False),
        ("@%p2 bra GIVE_UP;", "st.global.u32 [%rd2], 1; trap;", True),  # a watchdog
        ("@!%p2 bra NEXT; bra GIVE_UP; NEXT:", "trap;", True),
        ("@%p2 trap;", "", True),
        ("@%p2 ret;", "", False),
    ],
)
def test_a_watchdog_ends_no_loop(gives_up: str, then: str, waits: bool) -> None:
    body = f"""
    mov.u32 %r4, 0;
    LOOP: add.u32 %r4, %r4, 1; setp.gt.u32 %p2, %r4, 1000; {gives_up}
    atom.global.or.b32 %r5, [%rd2], 0; setp.eq.u32 %p1, %r5, 0; @%p1 bra LOOP;
    st.global.u32 [%rd2], %r5; ret;
    GIVE_UP: {then}"""
    assert (found(body) is not None) == waits


UPDATE = """
    ld.global.u32 %r5, [%rd2+4];
    LOOP: mov.u32 %r6, %r5; {lock}
    atom.global.cas.b32 %r5, [%rd2+4], %r6, 7;
    setp.ne.u32 %p1, %r5, %r6; @%p1 bra LOOP;
    OUT: st.global.u32 [%rd2], %r5;"""


@pytest.mark.parametrize(
    "lock", ["", "atom.global.exch.b32 %r4, [%rd2], 1; setp.eq.u32 %p2, %r4, 0; @%p2 bra OUT;"]
)
def test_a_lock_free_update_does_not_hide_a_lock(lock: str) -> None:
    module = parse(kernel(UPDATE.format(lock=lock)))
    view = view_of(module, next(f for f in module.functions() if f.name == "k"))
    assert waiting(view, view.loops) is None  # it ends by itself
    assert [view.body[i].opcode for i in tried(view, view.loops)] == ["atom.global.exch.b32"] * bool(lock)


@pytest.mark.parametrize(
    ("expected", "again", "waits"),
    [
        ("", "mov.u32 %r6, %r5;", False),  # what the last attempt found
        ("ld.global.u32 %r6, [%rd2+4];", "", False),
        ("", "", True),  # a lock: only its holder brings back the number that is expected
        ("", "@%p3 mov.u32 %r6, %r5;", True),
        ("", "@%p3 bra LOOP; mov.u32 %r6, %r5;", True),
    ],
)
def test_each_attempt_expects_what_is_there(expected: str, again: str, waits: bool) -> None:
    body = f"""
    ld.global.u32 %r6, [%rd2+4]; setp.gt.u32 %p3, %r2, 5;
    LOOP: {expected}
    atom.global.cas.b32 %r5, [%rd2+4], %r6, 7;
    setp.eq.u32 %p1, %r5, %r6; @%p1 bra OUT; {again}
    bra LOOP;
    OUT: st.global.u32 [%rd2], %r5;"""
    assert (found(body) is not None) == waits


@pytest.mark.parametrize(
    ("amount", "other", "waits"),
    [
        ("mov.u32 %r6, %ntid.x;", "", False),  # blocks of work
        ("neg.s32 %r6, %r2;", "", True),
        ("mov.u32 %r6, %r2;", "st.global.u32 [%rd2+4], %r4;", False),
        ("mov.u32 %r6, %r2;", "red.global.add.u32 [%rd2+4], %r4;", True),  # a semaphore
        ("mov.u32 %r6, %r2;", "red.global.add.u32 [%rd2+64], %r4;", True),  # perhaps the same place
    ],
)
def test_numbers_are_claimed_once(amount: str, other: str, waits: bool) -> None:
    body = f"""
    ld.global.u32 %r2, [%rd2]; {amount}
    LOOP: atom.global.add.u32 %r5, [%rd2+4], %r6; {other}
    setp.lt.u32 %p1, %r5, %r2; @%p1 bra LOOP;
    st.global.u32 [%rd2], %r5;"""
    assert (found(body) is not None) == waits


@pytest.mark.parametrize(("back", "waits"), [("[%rd2+8]", False), ("[%rd2+4]", True)])
def test_numbers_that_the_loop_gives_back_are_claimed_again(back: str, waits: bool) -> None:
    body = f"""
    ld.global.u32 %r2, [%rd2];
    LOOP: atom.global.add.u32 %r5, [%rd2+4], 1; red.global.add.u32 {back}, -1;
    setp.lt.u32 %p1, %r5, %r2; @%p1 bra LOOP;
    st.global.u32 [%rd2], %r5;"""
    assert (found(body) is not None) == waits


CALLS = """
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.extern .func (.param .b32 r) unknown(.param .b64 a, .param .b64 b);
.func (.param .b32 r) computes(.param .b64 a, .param .b64 b) { st.param.b32 [r], 1; ret; }
.func (.param .b32 r) locks(.param .b64 a, .param .b64 b) {
    .reg .b32 %r<2>; .reg .b64 %rd<2>;
    ld.param.b64 %rd0, [a]; atom.global.exch.b32 %r0, [%rd0], 1; st.param.b32 [r], %r0; ret;
}
"""


@pytest.mark.parametrize(
    ("name", "tries"), [("vprintf", False), ("computes", False), ("locks", True), ("unknown", True)]
)
def test_only_calls_that_may_run_an_atomic_try(name: str, tries: bool) -> None:
    """An assertion in a search that a generic load ends prints something, and so may write, for all that is known."""
    body = f"""
    mov.u32 %r4, 0; mov.u64 %rd3, %rd2;
    LOOP: add.u32 %r4, %r4, 1; add.u64 %rd3, %rd3, 4;
    {{ .param .b64 p0; .param .b64 p1; .param .b32 r0; st.param.b64 [p0], %rd2; st.param.b64 [p1], %rd2;
    call (r0), {name}, (p0, p1); ld.param.b32 %r6, [r0]; }}
    ld.u32 %r5, [%rd3]; setp.eq.u32 %p2, %r5, %r6; @%p2 bra FIRST;
    setp.lt.u32 %p1, %r4, 9; @%p1 bra LOOP;
    FIRST: st.global.u32 [%rd2], %r5;"""
    module = parse(kernel(body, module=CALLS))
    view = view_of(module, next(f for f in module.functions() if f.name == "k"))
    assert bool(tried(view, view.loops)) == tries


def found(body: str, functions: str = "") -> int | None:
    module = parse(kernel(body, module=functions))
    view = view_of(module, next(f for f in module.functions() if f.name == "k"))
    return waiting(view, view.loops)
