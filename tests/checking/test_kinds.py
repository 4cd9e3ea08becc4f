"""How iterations meet in memory, one small loop for each kind."""

from __future__ import annotations

import numpy as np
import pytest

from cccopt.checking import Checker, check
from cccopt.diagnostic import CccError
from cccopt.emulator import Program, record
from cccopt.emulator.access import MemoryAccess
from cccopt.emulator.judging import MeetingKind
from tests.checking.loops import HEAD, checked, grid, inner, kinds, launched, loop

DIFFERENT, WITH_ATOMIC, LOADED, UPDATED, EXCHANGED, SAME, FLAG, BOUND, ATOMICS, AHEAD = (
    kind.value for kind in MeetingKind
)

COLLIDE = "and.b32 %r1, %i, 7; mul.wide.u32 %rd6, %r1, 4; add.u64 %rd6, %rd1, %rd6;"
"""%rd6 is the address of word i & 7: iterations share it."""

CASES: dict[str, tuple[str, list[tuple[bool, str]]]] = {
    "nothing": ("", []),
    "own word": ("st.global.u32 [%rd5], %i; ld.global.u32 %r2, [%rd5]; st.global.u32 [%rd5], %r2;", []),
    "own word, updated": ("ld.global.u32 %r2, [%rd5]; add.u32 %r2, %r2, 1; st.global.u32 [%rd5], %r2;", []),
    "different stores": (f"{COLLIDE} st.global.u32 [%rd6], %i;", [(True, DIFFERENT)]),
    "same stores": (f"{COLLIDE} st.global.u32 [%rd6], 5;", [(False, SAME)]),
    "same stores at each place": (f"{COLLIDE} st.global.u32 [%rd6], %r1;", [(False, SAME)]),
    "counters": (
        f"{COLLIDE} ld.global.u32 %r2, [%rd6]; add.u32 %r2, %r2, 1; st.global.u32 [%rd6], %r2;",
        [(True, DIFFERENT)],
    ),
    "a chain": ("ld.global.u32 %r2, [%rd5]; st.global.u32 [%rd5+4], %i;", [(True, LOADED)]),
    "a chain backwards": ("ld.global.u32 %r2, [%rd5+4]; st.global.u32 [%rd5], %i;", [(True, LOADED)]),
    "a flag": (
        f"{COLLIDE} setp.eq.u32 %p2, %i, %r1; @!%p2 ld.global.u32 %r2, [%rd6]; @%p2 st.global.u32 [%rd6], 1;",
        [(False, FLAG)],
    ),
    "a table": (f"{COLLIDE} ld.global.u32 %r2, [%rd6]; st.global.u32 [%rd6], %r1;", [(True, LOADED)]),
    "atomic sums": (f"{COLLIDE} red.global.add.u32 [%rd6], %i;", []),
    "atomic sums, old values used": (f"{COLLIDE} atom.global.add.u32 %r2, [%rd6], %i;", []),
    "an atomic sum that is loaded": (
        f"{COLLIDE} ld.global.u32 %r2, [%rd6]; red.global.add.u32 [%rd6], 1;",
        [(True, UPDATED)],
    ),
    "an atomic bound that is loaded": (
        f"{COLLIDE} ld.global.u32 %r2, [%rd6]; red.global.max.u32 [%rd6], %i;",
        [(False, BOUND)],
    ),
    "a sum that is reset": (
        f"{COLLIDE} red.global.add.u32 [%rd6], 1; st.global.u32 [%rd6], 0;",
        [(True, WITH_ATOMIC)],
    ),
    "exchanges": (f"{COLLIDE} atom.global.exch.b32 %r2, [%rd6], %i;", [(False, ATOMICS)]),
    "two atomic operations": (
        f"{COLLIDE} red.global.add.u32 [%rd6], 1; red.global.max.u32 [%rd6], %i;",
        [(False, ATOMICS)],
    ),
    "an exchange that is loaded": (
        f"{COLLIDE} ld.global.u32 %r2, [%rd6]; atom.global.cas.b32 %r3, [%rd6], 0, %i;",
        [(False, BOUND)],
    ),
    "a lock": (
        f"{COLLIDE} atom.global.cas.b32 %r3, [%rd6], 0, 1; st.global.u32 [%rd6], 0;",
        [(False, EXCHANGED)],
    ),
    "atomic stores": (f"{COLLIDE} st.relaxed.gpu.global.u32 [%rd6], %i;", [(False, ATOMICS)]),
    "atomic loads alone": (f"{COLLIDE} ld.relaxed.gpu.global.u32 %r2, [%rd6];", []),
    "volatile stores": (f"{COLLIDE} st.volatile.global.u32 [%rd6], %i;", [(True, DIFFERENT)]),
    "stored and cleared": (
        f"{COLLIDE} st.global.u32 [%rd6], %i; st.global.u32 [%rd6], 0;",
        [(False, AHEAD)],
    ),
    "scratch that is cleared": (
        f"{COLLIDE} st.global.u32 [%rd6], %i; ld.global.u32 %r2, [%rd6]; st.global.u32 [%rd6], 0;",
        [(True, LOADED)],
    ),
    "a byte of a word": ("ld.global.u32 %r2, [%rd5]; st.global.u8 [%rd5+6], %i;", [(True, LOADED)]),
    "bytes of one word": ("add.u64 %rd7, %rd1, 0; cvt.u64.u32 %rd8, %i; add.u64 %rd7, %rd7, %rd8; "
                          "st.global.u8 [%rd7], %i;", []),
    "a vector": ("mov.b64 %rd9, {%i, %i}; and.b64 %rd7, %rd5, -8; st.global.v2.u32 [%rd7], {%i, %i};",
                 [(True, DIFFERENT)]),
    "halves of a double word": ("and.b64 %rd7, %rd5, -8; cvt.u64.u32 %rd8, %i; st.global.u64 [%rd7], %rd8;",
                                [(True, DIFFERENT)]),
    "a flag that is lowered": (
        f"{COLLIDE} st.global.u32 [%rd6], 1; ld.global.u32 %r2, [%rd6]; st.global.u32 [%rd6], 0;",
        [(True, LOADED)],
    ),
    # Of two that store the same, only the later one loads.
    "a pair": ("shr.u32 %r1, %i, 1; mul.wide.u32 %rd6, %r1, 4; add.u64 %rd6, %rd1, %rd6; and.b32 %r2, %i, 1; "
               "setp.eq.u32 %p2, %r2, 1; @%p2 ld.global.u32 %r3, [%rd6]; st.global.u32 [%rd6], %r1;",
               [(True, LOADED)]),
    "guarded off": (f"{COLLIDE} setp.eq.u32 %p2, %i, 9; @%p2 st.global.u32 [%rd6], %i;", []),
    "read only": (f"{COLLIDE} ld.global.u32 %r2, [%rd6];", []),
    "by a promise": ("ld.global.nc.u32 %r2, [%rd5]; st.global.u32 [%rd5+4], %i;", []),
    "through a generic address": ("cvta.global.u64 %rd7, %rd1; st.u32 [%rd7], %i;", [(True, DIFFERENT)]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_kinds(case: str) -> None:
    body, expected = CASES[case]
    assert kinds(checked(loop(body))) == [(conflict, "for", kind) for conflict, kind in expected]


def test_an_example_names_iterations_and_values() -> None:
    # Iterations 0 of threads 0 to 7, and those that follow, share eight words.
    found = checked(loop(f"{COLLIDE} st.global.u32 [%rd6], %i;"))
    (conflict,) = found.conflicts
    assert (found.launches, found.iterations) == (1, 128)
    assert conflict.where == "element 0 of argument 0"
    assert (conflict.places, conflict.launches, conflict.launch, conflict.kernel) == (8, 1, 1, "k")
    (first,), (second,) = conflict.first.iterations, conflict.second.iterations
    assert (first.number, second.number) == (0, 3)
    assert (conflict.first.value, conflict.second.value) == ("0", "120")
    assert conflict.first.thread == "thread (0, 0, 0) of block (0, 0, 0)"
    assert conflict.second.thread == "thread (24, 0, 0) of block (0, 0, 0)"
    assert conflict.first.place.line_text.lstrip().startswith("and.b32")
    assert conflict.loop.place is not None
    assert str(conflict.loop.place) == "k.cu:3:1"


def test_the_first_of_an_example_came_first() -> None:
    (conflict,) = checked(loop("sub.u32 %r2, %n, %i; st.global.u32 [%rd1], %r2;")).conflicts
    assert (conflict.first.value, conflict.second.value) == ("128", "1")


def test_a_long_record_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "_FULL", 3)
    (conflict,) = checked(loop(f"{COLLIDE} st.global.u32 [%rd6], %i;")).conflicts
    assert (conflict.places, conflict.first.value, conflict.second.value) == (8, "0", "120")


@pytest.mark.parametrize(
    ("dtype", "value"), [(np.int32, "-2"), (np.uint32, "4294967294"), (np.float32, "nan")]
)
def test_values_are_of_the_arrays_type(dtype: type, value: str) -> None:
    body = "sub.u32 %r2, 4294967294, %i; st.global.u32 [%rd1], %r2;"
    found = check(loop(body), "k", grid=1, block=32, args=[np.zeros(8, dtype), 32])
    (conflict,) = found.conflicts
    assert value in (conflict.first.value, conflict.second.value)


# --- inner iterations ---


def test_inner_iterations_conflict_with_each_other() -> None:
    found = checked(loop(inner("st.global.u32 [%rd5], %k;", "for variable")))
    assert kinds(found) == [(True, "for variable", DIFFERENT)]
    (conflict,) = found.conflicts
    assert [i.loop.pragma for i in conflict.first.iterations] == ["for", "for variable"]
    assert [i.number for i in conflict.second.iterations] == [0, 3]
    assert conflict.places == 128


@pytest.mark.parametrize("kind", ["while", "recursive"])
def test_loops_that_keep_their_order_have_no_inner_iterations(kind: str) -> None:
    assert kinds(checked(loop(inner("st.global.u32 [%rd5], %k;", kind)))) == []


def test_an_iteration_and_its_inner_ones_keep_their_order() -> None:
    ahead, behind = "st.global.u32 [%rd5], 9;", "ld.global.u32 %r2, [%rd5]; st.global.u32 [%rd5], 8;"
    body = "setp.eq.u32 %p3, %k, 2; @%p3 st.global.u32 [%rd5], %k;"
    assert kinds(checked(loop(inner(body, "for variable", ahead=ahead, behind=behind)))) == []


def test_inner_iterations_of_different_iterations_conflict_as_those() -> None:
    body = f"{COLLIDE} setp.eq.u32 %p3, %k, 2; @%p3 st.global.u32 [%rd6], %i;"
    assert kinds(checked(loop(inner(body, "for variable")))) == [(True, "for", DIFFERENT)]


@pytest.mark.parametrize("kind", ["for variable", "while"])
def test_a_conflict_of_iterations_is_counted_once(kind: str) -> None:
    nest = inner("st.global.u32 [%rd5], 1;", kind, behind=f"{COLLIDE} st.global.u32 [%rd6+1024], %i;")
    (conflict,) = checked(loop(nest)).conflicts
    assert conflict.places == 8


# --- who meets ---


def test_threads_of_a_grid_are_iterations() -> None:
    own = (
        "ld.global.u32 %r2, [%rd5]; add.u32 %r2, %r2, 1; st.global.u32 [%rd5], %r2; st.global.u32 [%rd5], 7;"
    )
    assert kinds(checked(grid(own), threads=64, blocks=2)) == []
    found = checked(grid("st.global.u32 [%rd1], %i;"), threads=64, blocks=2)
    assert kinds(found) == [(True, "grid", DIFFERENT)]
    assert found.iterations == 128


def test_warps_do_not_meet() -> None:
    # The first lane of each warp stores the warp's number to one place.
    body = "shr.u32 %r2, %t, 5; and.b32 %r3, %t, 31; setp.eq.u32 %p2, %r3, 0; @%p2 st.global.u32 [%rd1], %r2;"
    assert kinds(checked(loop(body), n=128, threads=128)) == []
    assert kinds(checked(loop(body), n=32, threads=32, blocks=4)) == []


def test_each_warp_is_a_ground_of_its_own() -> None:
    (conflict,) = checked(loop("st.global.u32 [%rd1], %i;"), n=512, threads=128).conflicts
    assert conflict.places == 4


def test_launches_do_not_meet() -> None:
    body = "setp.eq.u32 %p2, %i, 0; @%p2 st.global.u32 [%rd1], %n;"
    out = np.zeros(64, np.uint32)
    assert launched(loop(body), [out, 1], [out, 2], [out, 3]).findings == ()


def test_findings_add_up_over_launches() -> None:
    out = np.zeros(64, np.uint32)
    (conflict,) = launched(loop("st.global.u32 [%rd1], %i;"), [out, 1], [out, 2], [out, 3]).conflicts
    assert (conflict.launch, conflict.launches, conflict.places) == (2, 2, 2)


AGAIN = """
    add.u32 %r18, %r18, 1;
    setp.lt.u32 %p5, %r18, 3;
    @%p5 bra AGAIN;
"""


def test_a_loop_that_is_entered_again_begins_anew() -> None:
    # Each time the loop has one iteration a thread.
    body = "st.global.u32 [%rd5], %r18;"
    again = loop(body, before="mov.u32 %r18, 0; AGAIN:", after=AGAIN)
    assert kinds(checked(again, n=32)) == []
    collide = loop(f"{COLLIDE} st.global.u32 [%rd6], %i;", before="mov.u32 %r18, 0; AGAIN:", after=AGAIN)
    (conflict,) = checked(collide, n=32).conflicts
    assert conflict.places == 3 * 8


def test_a_loop_that_is_entered_again_counts_anew() -> None:
    body = "setp.eq.u32 %p2, %r18, 2; @%p2 st.global.u32 [%rd1], %i;"
    found = checked(loop(body, before="mov.u32 %r18, 0; AGAIN:", after=AGAIN), n=64)
    (conflict,) = found.conflicts
    accesses = conflict.first, conflict.second
    assert [(i.number, i.entry) for access in accesses for i in access.iterations] == [(0, 2), (1, 2)]
    assert "iteration 1 (entry 2 of the loop) of thread (31, 0, 0)" in str(CccError(conflict.diagnostic()))


ONCE = "@%p1 bra LOOP;"


def test_a_loop_whose_end_is_not_seen_is_entered_again() -> None:
    # nvcc peeled the only iteration, and the mark of the end is gone.
    text = loop(f"{COLLIDE} st.global.u32 [%rd6], %i;", before="mov.u32 %r18, 0; AGAIN:", after=AGAIN)
    text = text.replace(ONCE, "").replace("// ccc for.end 1", "")
    (conflict,) = checked(text, n=32).conflicts
    assert conflict.places == 3 * 8


def test_the_mark_of_the_end_ends_a_peeled_iteration() -> None:
    assert kinds(checked(loop("", after="st.global.u32 [%rd1], %t;").replace(ONCE, ""), n=32)) == []


def test_an_iteration_that_was_peeled_off_the_end_belongs_to_the_loop() -> None:
    peeled = "// ccc body.begin 1\n st.global.u32 [%rd1], %n;\n // ccc body.end 1\n // ccc for.end 1"
    text = loop("st.global.u32 [%rd1], 5;").replace("// ccc for.end 1", peeled)
    assert kinds(checked(text, n=32)) == [(True, "for", DIFFERENT)]


@pytest.mark.parametrize("out", ["DONE", "OUT"])
def test_code_behind_the_loop_is_in_no_iteration(out: str) -> None:
    # At `OUT` no mark tells that the loop is over.
    assert kinds(checked(loop("", after="st.global.u32 [%rd1], %t;", out=out))) == []


def test_threads_without_an_iteration_are_in_none() -> None:
    found = checked(loop("", before="st.global.u32 [%rd1], %t;", after="st.global.u32 [%rd1], %t;"), n=1)
    assert (found.findings, found.iterations) == ((), 1)


# --- other memory ---

SHARED = "mov.u32 %r2, bins; shl.b32 %r3, %t, 2; add.u32 %r2, %r2, %r3;"


def test_shared_memory() -> None:
    scratch = f"{SHARED} st.shared.u32 [%r2], %i; ld.shared.u32 %r4, [%r2];"
    declared = ".shared .align 4 .b8 other[64]; .shared .align 4 .b8 bins[256];"
    found = checked(loop(scratch, before=declared), threads=64, blocks=2)
    assert kinds(found) == [(True, "for", DIFFERENT)]
    (conflict,) = found.conflicts
    assert conflict.where == "byte 0 of shared `bins` of block (0, 0, 0)"
    assert conflict.places == 128


def test_shared_memory_goes_by_its_block() -> None:
    body = "mov.u32 %r2, %ctaid.x; setp.eq.u32 %p2, %r2, 1; @%p2 st.shared.u32 [bins+4], %i;"
    (conflict,) = checked(loop(body, before=".shared .align 4 .b8 bins[256];"), blocks=2).conflicts
    assert conflict.where == "byte 4 of shared `bins` of block (1, 0, 0)"


def test_blocks_have_shared_memory_of_their_own() -> None:
    body = "setp.eq.u32 %p2, %t, 0; mov.u32 %r2, %ctaid.x; @%p2 st.shared.u32 [bins], %r2;"
    assert kinds(checked(loop(body, before=".shared .align 4 .b8 bins[256];"), n=32, blocks=4)) == []


LOCAL = ".local .align 4 .b8 slots[16];"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("st.local.u32 [slots], %i; ld.local.u32 %r2, [slots];", []),
        ("ld.local.u32 %r2, [slots]; st.local.u32 [slots], %i;", [(True, "for", LOADED)]),
        ("st.local.u32 [slots+4], %i; ld.local.u32 %r2, [slots];", []),
        ("ld.local.u32 %r2, [slots]; st.local.u32 [slots], 1;", [(False, "for", FLAG)]),
        ("mov.u64 %rd7, slots; cvta.local.u64 %rd7, %rd7; ld.u32 %r2, [%rd7]; st.u32 [%rd7], %i;",
         [(True, "for", LOADED)]),
    ],
)  # fmt: skip
def test_local_memory(body: str, expected: list[tuple[bool, str, str]]) -> None:
    found = checked(loop(body, before=LOCAL))
    assert kinds(found) == expected
    assert all("local memory of thread (" in f.where for f in found.findings)


def test_threads_have_local_memory_of_their_own() -> None:
    body = "setp.eq.u32 %p2, %t, 0; @%p2 st.local.u32 [slots], %n; @!%p2 ld.local.u32 %r2, [slots];"
    assert kinds(checked(loop(body, before=LOCAL), n=32)) == []


def test_variables_of_the_module() -> None:
    text = loop("mov.u64 %rd7, total; st.global.u32 [%rd7+4], %i;")
    found = checked(text.replace(HEAD, f"{HEAD}.global .align 4 .b8 total[8];\n"))
    assert [f.where for f in found.conflicts] == ["byte 4 of `total`"]


def test_arrays_that_share_memory_go_by_the_first_that_holds_it() -> None:
    whole = np.zeros(64, np.uint32)
    text = loop("st.global.u32 [%rd1], %i;")
    (conflict,) = launched(text, [whole[16:], 32], [whole, 32]).conflicts
    assert conflict.where == "element 0 of argument 0"


# --- what cannot be checked ---


@pytest.mark.parametrize("text", [loop("").replace("// ccc", "//"), loop("").replace("line=3:1", "mode=off")])
def test_without_a_mark_there_is_nothing_to_check(text: str) -> None:
    with pytest.raises(CccError, match="CCC103"):
        Checker(text)


def test_a_check_without_an_iteration_says_so() -> None:
    with pytest.raises(CccError, match="CCC103"):
        checked(loop(""), n=0)


def test_programs_without_a_record_hold_no_trace_of_it() -> None:
    program = Program(loop(f"{COLLIDE} st.global.u32 [%rd6], %i;"))
    program.launch("k", 1, 32, [np.zeros(64, np.uint32), 32])
    kernel = program._kernels["k"]
    assert not any(name.startswith("E") for name in kernel.code.names)
    executing = {type(kernel.code.names[f"A{n}"].__self__) for n in range(len(kernel.code.accesses))}
    assert executing == {MemoryAccess}
