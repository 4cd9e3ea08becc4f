"""Counted loops of tasks whose inner iterations the warp lays side by side: the same bytes, whatever lanes have.

    for (k = first; k < bound; ++k)             lane                   0 1 2 3 ...
      f(i, k);                          ->      inner iterations       3 0 1 5
                                                window of 32 lanes:    0 0 0 2 3 3 3 3 3 ...   whose inner iteration
                                                                       0 1 2 0 0 1 2 3 4 ...   which of them

An inner iteration left out, run twice, or run with the registers of a lane that does not own it shows in memory.
`compare` runs each kernel with these loops expanded and with stacks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cccopt.ccc.codegen import expansion
from cccopt.emulator import Program
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from tests.kernels.ptx_counted_loops import LOADED, TABLE, WIDE, added, between, counted, trips
from tests.kernels.ptx_loops import SECOND, loop, path
from tests.kernels.running import Arguments, Launch, compare, phases, rewritten, run

FORMS = ("split", "idle lanes")
Make = Callable[[Launch], Arguments]
Numbers = Sequence[int]

MIXED = (0, 3, 1, 0, 0, 7, 40, 2, 33, 1, 0, 5, 31, 32, 11)
"""Lanes with no trip, a few, and more than a warp has lanes."""


def mixed(launch: Launch) -> Arguments:
    return trips(MIXED, launch)


def same(
    text: str,
    make: Make = mixed,
    launch: Launch | None = None,
    *,
    forms: Sequence[str] = FORMS,
    seeds: Sequence[int] = (),
) -> Mapping[str, int]:
    """Compares memory; how often warps ran each phase of the first form, where each form must have expanded loops."""
    launch = Launch(1, 64, 2) if launch is None else launch
    ran = compare(parse(text), "k", make, [launch], forms=forms, seeds=seeds)
    assert all(counts["expand"] for counts in ran.values()), ran
    return ran[forms[0]]


def windows(text: str, make: Make, launch: Launch) -> int:
    """How often warps run a trip in up to 32 lanes."""
    result = rewritten(parse(text), "split")
    return phases(result, run(Program(result.module), "k", launch, make(launch))[1])["trip"]


LONG = {
    "leave": "setp.ge.s64 %p8, %wide_k, %wide_bound;",
    "advance": "add.s64 %wide_k, %wide_k, 1;",
    "test": "setp.lt.s64 %p9, %wide_k, %wide_bound;",
}
NARROW = "cvt.u32.u64 %r16, %wide_k;"

NUMBERS: dict[str, Numbers] = {
    "one each": [1],
    "a last one": [*[0] * 63, 1],
    "a giant": [*[0] * 9, 1000, *[2] * 22],
    "a giant alone": [*[0] * 31, 999],
    "a lane in three": [0, 0, 31],
    "31 in all": [0, 1, *[2] * 15, *[0] * 15],
    "32 in all": [16, *[0] * 30, 16],
    "33 in all": [*[0] * 30, 32, 1],
    "64 in all": [2],
    "65 in all": [33, *[0] * 30, 32],
    "mixed": MIXED,
}


@pytest.mark.parametrize("name", NUMBERS)
def test_lanes_with_any_numbers_of_trips(name: str) -> None:
    """Whole windows but for the last of each warp and iteration."""
    numbers, launch = NUMBERS[name], Launch(1, 32, 2)
    text = loop(counted())
    same(text, lambda given: trips(numbers, given), launch, seeds=(1,) if name == "mixed" else ())
    in_all = np.resize(numbers, 64).reshape(2, 32).sum(1)
    assert windows(text, lambda given: trips(numbers, given), launch) == sum(-(-in_all // 32))


def test_no_trips() -> None:
    text, launch = loop(counted()), Launch(1, 64, 2)
    ran = compare(parse(text), "k", lambda given: trips([0], given), [launch], forms=FORMS, seeds=())
    assert not ran["split"]["expand"]


@settings(max_examples=15, deadline=None, derandomize=True, database=None)
@given(st.lists(st.sampled_from([0, 0, 1, 2, 3, 5, 16, 31, 32, 33, 70]), min_size=1, max_size=40))
def test_any_list_of_trips(numbers: list[int]) -> None:
    text, launch = loop(counted()), Launch(1, 40, 2)
    compare(parse(text), "k", lambda given: trips(numbers, given), [launch], forms=["split"], seeds=())


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("most", [4, 8, 32])
def test_long_lanes_take_several_rounds(most: int, bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes that have more trips than are laid out at a time: as many, one more, one less, several times as many."""
    monkeypatch.setattr(expansion, "MOST", most)
    numbers = [0, 1, most - 1, most, most + 1, 2 * most - 1, 2 * most, 2 * most + 1, 5 * most + 3, 0, 3]
    launch = Launch(1, 32, 1)
    begin = f"{LOADED} mul.wide.s32 %rd21, %k, -4; add.s64 %rd21, %other, %rd21;"
    code = f"{added()} ld.global.nc.u32 %r17, [%rd21+2048]; {added('%r17')}"
    text = loop(counted(code, begin=begin, advance="add.s32 %k, %k, 1; add.s64 %rd21, %rd21, -4;"))
    if bits == 64:
        text = loop(counted(NARROW + added("%r16", "%r16"), begin=WIDE, **LONG))

    def make(given: Launch) -> Arguments:
        begins = [place % 5 for place in range(len(numbers))]
        ends = [b + n for b, n in zip(begins, numbers, strict=True)]
        args = between(begins, ends, given, bits)
        return [*args[:3], np.resize(args[3], 1024), *args[4:]] if bits == 32 else args

    same(text, make, launch, seeds=(1,) if most == 4 else ())
    here = np.resize(numbers, 32)
    rounds = [np.clip(here - k * most, 0, most).sum() for k in range(8)]
    assert windows(text, make, launch) == sum(-(-total // 32) for total in rounds)


# --- what a trip reads ---

CONTEXTS = {
    "a predicate": ("setp.gt.u32 %p5, %value, 2;", "selp.u32 %r17, 5, 9, %p5;"),
    "16 bits": (
        "cvt.u16.u32 %h1, %value; cvt.u16.u32 %h2, %i;",
        "mad.lo.u16 %h3, %h1, 7, %h2; cvt.u32.u16 %r17, %h3;",
    ),
    "both": (
        "setp.gt.u32 %p5, %value, 2; setp.lt.u32 %p6, %i, 40; cvt.u16.u32 %h1, %value;",
        "cvt.u32.u16 %r17, %h1; @%p5 add.u32 %r17, %r17, 3; @!%p6 add.u32 %r17, %r17, 5;",
    ),
    "f32": (
        "cvt.rn.f32.u32 %f1, %value;",
        "cvt.rn.f32.s32 %f2, %k; fma.rn.f32 %f2, %f2, %f1, %f1; mov.b32 %r17, %f2;",
    ),
    "f64": (
        "cvt.rn.f64.u32 %g1, %value;",
        "cvt.rn.f64.s32 %g2, %k; fma.rn.f64 %g2, %g2, %g1, %g1;"
        " mov.b64 {%r17, %r18}, %g2; xor.b32 %r17, %r17, %r18;",
    ),
    "64 bits": ("mul.wide.u32 %rd22, %i, 0x90000001;", "shr.u64 %rd23, %rd22, 29; cvt.u32.u64 %r17, %rd23;"),
    "the thread": ("", "mov.u32 %r17, %tid.x; mov.u32 %r18, %laneid; mad.lo.u32 %r17, %r17, 64, %r18;"),
    "a mask": ("", "mov.u32 %r17, %lanemask_lt;"),
    "a load of the trip": (
        "",
        "and.b32 %r17, %k, 63; mul.wide.u32 %rd22, %r17, 4; add.u64 %rd22, %a, %rd22;"
        " ld.global.nc.u32 %r17, [%rd22];",
    ),
    "one that grows, too": ("mul.lo.u32 %x, %i, 77;", "mov.u32 %r17, %x; add.u32 %x, %x, 1000003;"),
    "a uniform one that grows": ("mov.u32 %x, 7;", "mov.u32 %r17, %x; add.u32 %x, %x, 1000003;"),
    "one of 64 bits that shrinks": (
        "cvt.u64.u32 %rd22, %i;",
        "shr.u64 %rd23, %rd22, 3; cvt.u32.u64 %r17, %rd23; sub.s64 %rd22, %rd22, 0x40000000;",
    ),
    "one that grows by much": ("mov.u32 %x, %i;", "mov.u32 %r17, %x; add.u32 %x, %x, 0x90000001;"),
}


@pytest.mark.parametrize("name", CONTEXTS)
def test_what_a_trip_reads_comes_from_its_owner(name: str) -> None:
    ahead, code = CONTEXTS[name]
    text = loop(counted(code + added("%r17"), begin=LOADED + ahead), declarations=".reg .f64 %g<5>;")
    same(text, seeds=(1,) if name in ("both", "the thread") else ())


def test_pointers_follow_counters_below_zero() -> None:
    """The counter is widened with its sign."""
    begin = f"{LOADED} mul.wide.s32 %rd21, %k, 4; add.s64 %rd21, %rd30, %rd21;"
    code = "red.global.add.u32 [%rd21], %i;"
    text = loop(counted(code, begin=begin, advance=POINTED), ahead=f"add.s64 %rd30, %out, {2 * TABLE};")
    begins = [-128, -5, -1, 0, 3, 100, -33]

    def make(launch: Launch) -> Arguments:
        return between(begins, [b + place * 4 for place, b in enumerate(begins)], launch)

    same(text, make)


POINTED = "add.s32 %k, %k, 1; add.s64 %rd21, %rd21, 4;"


def test_pointers_go_on_where_the_counter_wraps_around() -> None:
    """No `for` begins like this, as its guard lets no lane in: without one, pointers are not made from the counter."""
    most = (1 << 32) - 1
    begin = f"{LOADED} mul.wide.u32 %rd21, %k, 4; add.s64 %rd21, %rd30, %rd21;"
    holes = {"leave": "", "advance": POINTED, "test": "setp.lt.u32 %p9, %k, %bound;"}
    text = loop(
        counted("red.global.add.u32 [%rd21], %i;", begin=begin, **holes),
        ahead=f"add.s64 %rd30, %out, {-4 * (most - 4)};",
    )
    same(text, lambda launch: between([most, most, most - 2], [5, 3, most], launch))


# --- what a trip does ---

ODD = "and.b32 %r16, %i, 1; setp.eq.u32 %p7, %r16, 1;"

CODES = {
    "branches": f"{added()} {ODD} @%p7 bra BESIDE; {added('%i')} BESIDE:",
    "two ways": f"{ODD} @%p7 bra ODD; {added('%i')} bra BESIDE; ODD: {added()} BESIDE:",
    "a loop": f"""
        and.b32 %r18, %k, 3;
        TURN: {added("%r18")} add.s32 %r18, %r18, -1; setp.gt.s32 %p7, %r18, -1; @%p7 bra TURN;""",
    "a table": f"""
        and.b32 %r16, %k, 3; setp.gt.u32 %p7, %r16, 2; @%p7 bra BESIDE;
        WAYS: .branchtargets W0, W1, W2; brx.idx %r16, WAYS;
        W0: {added()} bra BESIDE; W1: {added("%i")} W2: {added("%value")} BESIDE:""",
    "guards": f"{ODD} mov.u32 %r17, 1; @!%p7 add.u32 %r17, %i, 3; {added('%r17')}",
    "one value at one place": "mov.u32 %r17, 77; st.global.u32 [%other_i], %r17;",
}


@pytest.mark.parametrize("name", CODES)
def test_what_a_trip_may_do(name: str) -> None:
    same(loop(counted(CODES[name])), seeds=(1,) if name in ("two ways", "a loop") else ())


@pytest.mark.parametrize("code", ["add.u32 %r20, %r20, %r17;", "max.u32 %r20, %r20, %r17;"])
def test_reductions_that_any_lane_keeps(code: str) -> None:
    """A lane adds its share at the end; it need not be that of its own trips."""
    hashed = "mad.lo.u32 %r17, %k, 0x9E3779B1, %i; shr.u32 %r17, %r17, 3;"
    operator, update = ("+", "add") if code.startswith("add") else ("max", "max")
    text = loop(
        counted(f"{hashed} {code}"),
        clauses=f"reduce={operator}:sum",
        ahead="mov.u32 %r20, 0;",
        after=f"red.global.{update}.u32 [%out], %r20;",
    )
    same(text)


# --- where it stands ---

BOTH = counted() + counted(added("%i"), SECOND)

PLACES = {
    "a path": path(counted()),
    "a path with code around": path(added("%value", "%i") + counted() + added("%i", "%value")),
    "the other side": f"""
        setp.gt.u32 %skips, %value, 5; @%skips bra OTHER;
        {added("%value", "%value")} bra JOIN; OTHER: {counted()} JOIN:""",
    "two": BOTH,
    "two in a path": path(BOTH, region=5),
    "a path that reads a lane mask": path(
        "mov.u32 %r17, %lanemask_le;"
        + added("%r17", "%i")
        + counted("mov.u32 %r17, %lanemask_le;" + added("%r17"))
    ),
    "no test": counted(leave=""),
    "a case": f"""
        and.b32 %r16, %i, 3; setp.gt.u32 %skips, %r16, 2; @%skips bra JOIN;
        WAYS: .branchtargets W0, W1, W2; brx.idx %r16, WAYS;
        W0: {added("%value", "%value")} bra JOIN; W1: {counted()} bra JOIN; W2: {added("%i", "%value")} JOIN:""",
}


@pytest.mark.parametrize("name", PLACES)
def test_where_a_loop_may_stand(name: str) -> None:
    same(loop(PLACES[name]), seeds=(1,) if name in ("a path", "no test") else ())


@pytest.mark.parametrize("block", [1, 31, 33, 50, (8, 4), (7, 5), (4, 4, 4), (3, 5, 3)])
def test_blocks_of_any_shape(block: int | tuple[int, ...]) -> None:
    code = "mov.u32 %r17, %tid.x; mov.u32 %r18, %tid.y; mov.u32 %r19, %tid.z; mad.lo.u32 %r17, %r18, 9, %r17;"
    code += "mad.lo.u32 %r17, %r19, 99, %r17;" + added("%r17")
    launch = Launch(2, block, 2)
    ran = compare(
        parse(loop(counted(code))), "k", mixed, [launch], forms=FORMS, seeds=(1,) if block == 33 else ()
    )
    # Only whole warps leave the original code.
    assert all(bool(counts["expand"]) == (launch.threads >= 64) for counts in ran.values())


def test_targets_without_reductions_over_the_warp() -> None:
    """Before sm_80 lanes collect the bits of all by shuffles."""
    for target, redux in (("sm_90", True), ("sm_75", False)):
        text = loop(counted()).replace("sm_90", target)
        assert ("redux.sync" in print_module(rewritten(parse(text), "split").module)) == redux
        same(text)


def test_trips_see_what_their_lane_wrote_ahead_of_the_loop() -> None:
    """Other lanes run them: shuffles alone order no accesses to memory, which the emulator cannot tell."""
    begin = f"{LOADED} st.global.u32 [%rd30], %i;"
    code = "ld.global.u32 %r17, [%rd30];" + added("%r17")
    text = loop(
        counted(code, begin=f"add.u64 %rd30, %out, {4 * TABLE}; add.u64 %rd30, %rd30, %offset; {begin}")
    )

    def make(launch: Launch) -> Arguments:
        n, ends, _, begins, flag = mixed(launch)
        return [n, ends, np.zeros(TABLE + n, np.uint32), begins, flag]

    same(text, make, seeds=(1,))
    _, first = print_module(rewritten(parse(text), "split").module).split("$ccc_expand:")
    code_lines = (line for line in first.splitlines() if line.strip() and not line.strip().startswith("//"))
    assert next(code_lines).split()[0] == "bar.warp.sync"
