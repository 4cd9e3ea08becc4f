"""Which loops of tasks are counted, how many trips they have left, and what keeps their trips in order."""

from __future__ import annotations

import pytest

from cccopt.ccc.function.view import view_of
from cccopt.ccc.legality.counted_loops import CountedLoop, Pointer, TripCount, counted_loop
from cccopt.ccc.regions.marked_loops import find
from cccopt.ptx.ir import Literal, Module, Register
from cccopt.ptx.parser import parse
from tests.kernels.ptx_counted_loops import LOADED, Shape, added, counted
from tests.kernels.ptx_loops import loop
from tests.kernels.running import Launch, compare

UNIFORM = ("%rd1", "%rd2", "%rd3", "%rd30")

SHAPES = {
    **{f"{c} {t}": Shape(c, t) for c in ("lt", "le") for t in ("s32", "u32", "s64", "u64")},
    **{f"{c} {t}": Shape(c, t, -1) for c in ("gt", "ge") for t in ("s32", "u32", "s64", "u64")},
    **{f"{c} {t} by {s}": Shape(c, t, s) for c in ("lt", "le") for t in ("s32", "u64") for s in (2, 8)},
    **{f"{c} {t} by -4": Shape(c, t, -4) for c in ("gt", "ge") for t in ("u32", "s64")},
    **{f"ne {t} by {s}": Shape("ne", t, s) for t in ("s32", "b32", "u64") for s in (1, -1, 4, -4)},
    "lo": Shape("lt", "u32", test="setp.lo.u32 %p9, %r13, %r15;"),
    "ls": Shape("le", "u32", test="setp.ls.u32 %p9, %r13, %r15;"),
    "hi": Shape("gt", "u32", -1, test="setp.hi.u32 %p9, %r13, %r15;"),
    "hs": Shape("ge", "u32", -1, test="setp.hs.u32 %p9, %r13, %r15;"),
    "swapped lt": Shape("lt", test="setp.gt.s32 %p9, %r15, %r13;"),
    "swapped le": Shape("le", "u32", test="setp.ge.u32 %p9, %r15, %r13;"),
    "swapped gt": Shape("gt", step=-1, test="setp.lt.s32 %p9, %r15, %r13;"),
    "swapped ge": Shape("ge", step=-1, test="setp.le.s32 %p9, %r15, %r13;"),
    "swapped ne": Shape("ne", test="setp.ne.s32 %p9, %r15, %r13;"),
    "unless ge": Shape("lt", test="setp.ge.s32 %p9, %r13, %r15;", going="@!%p9"),
    "unless gt": Shape("le", test="setp.gt.s32 %p9, %r13, %r15;", going="@!%p9"),
    "unless swapped": Shape("gt", step=-1, test="setp.ge.s32 %p9, %r15, %r13;", going="@!%p9"),
    "unless eq": Shape("ne", step=4, test="setp.eq.s32 %p9, %r13, %r15;", going="@!%p9"),
    "unless lo": Shape("ge", "u32", -1, test="setp.lo.u32 %p9, %r13, %r15;", going="@!%p9"),
    "another register": Shape("lt", advance="add.s32 %r16, %r13, 1; mov.u32 %r13, %r16;"),
    "tested there": Shape(
        "lt",
        advance="add.s32 %r16, %r13, 1;",
        test="setp.lt.s32 %p9, %r16, %r15; mov.b32 %r13, %r16;",
    ),
    "two additions": Shape("lt", advance="add.s32 %r16, %r13, 3; add.s32 %r13, %r16, -2;"),
    "subtracted": Shape("gt", step=-1, advance="sub.s32 %r13, %r13, 1;"),
    "-1 subtracted": Shape("lt", "u32", advance="sub.u32 %r13, %r13, -1;"),
    "subtracted, 64 bits": Shape("ne", "u64", -4, advance="sub.u64 %r13, %r13, 4;"),
    "tested first": Shape(
        "lt", offset=0, advance="setp.lt.s32 %p9, %r13, %r15;", test="add.s32 %r13, %r13, 1;"
    ),
    "tested ahead of it": Shape(
        "lt", offset=4, test="add.s32 %r16, %r13, 3; setp.lt.s32 %p9, %r16, %r15;"
    ),
    "kept wide": Shape(
        "lt", advance="cvt.s64.s32 %rd20, %r13; cvt.u32.u64 %r16, %rd20; add.s32 %r13, %r16, 1;"
    ),
    "literal": Shape("lt", bound=20),
    "literal below zero": Shape("ne", step=-1, bound=-5),
    "swapped literal": Shape("gt", step=-1, bound=-7, test="setp.lt.s32 %p9, -7, %r13;"),
}  # fmt: skip


def found(module: Module, carried: tuple[str, ...] = ()) -> CountedLoop | None:
    """The only task's loop as a counted one."""
    (function,) = (f for f in module.functions() if f.name == "k")
    view = view_of(module, function)
    (region,) = find(view).regions
    (path,) = region.all_paths()
    return counted_loop(view, path, carried, UNIFORM.__contains__)


def found_in(code: str | None = None, module: str = "", **holes: str) -> CountedLoop | None:
    """That of `counted` with its holes filled."""
    return found(parse(loop(counted(code, **holes), module=module)))


@pytest.mark.parametrize("name", SHAPES)
def test_trips_are_counted(name: str) -> None:
    """The count is found, and the warp makes the trips that the lanes made."""
    shape = SHAPES[name]
    letter = "rd" if shape.bits == 64 else "r"
    loop = found(shape.module)
    assert loop is not None
    offset = shape.step if shape.offset is None else shape.offset
    bound = Register(f"%{letter}15") if shape.bound is None else Literal(str(shape.bound))
    assert loop.count == TripCount(f"%{letter}13", offset, shape.step, shape.compare, shape.type, bound)
    assert loop.steps == {f"%{letter}13": shape.step}
    ran = compare(shape.module, "k", shape.arguments, [Launch(1, 32, 2)], forms=["split"], seeds=())
    assert ran["split"]["expand"]


CHASING = "cvt.u64.u32 %rd21, %r13; shl.b64 %rd21, %rd21, {shift}; add.s64 %rd21, %rd2, %rd21;"
MOVING = "add.s32 %r13, %r13, 1; add.s64 %rd21, %rd21, {size};"
BETWEEN = "@%p7 bra BESIDE; {} BESIDE:"
INSIDE = "mov.u32 %r17, 0; TURN: {} add.u32 %r17, %r17, 1; setp.lt.u32 %p7, %r17, 3; @%p7 bra TURN;"
ODD = "and.b32 %r16, %r5, 1; setp.eq.u32 %p7, %r16, 1;"

BIN = "and.b32 %r16, %r13, 1; mul.wide.u32 %rd21, %r16, 4; add.u64 %rd21, {table}, %rd21;"
"""A place in a table that some trips have in common."""

IN_ORDER: dict[str, dict[str, str]] = {
    "two ways out": {"code": f"{added()} setp.eq.u32 %p7, %r20, 5; @%p7 bra DONE_3;"},
    "left at the head": {
        "code": f"setp.ge.s32 %p7, %r13, %r15; @%p7 bra DONE_3; {added()}",
        "test": "",
        "going": "bra INNER_3; @%p9",
    },
    "two ways back": {"code": f"{ODD} @%p7 bra MORE; {added()}", "advance": "add.s32 %r13, %r13, 1; MORE:"},
    "steps of 3 below": {"advance": "add.s32 %r13, %r13, 3;"},
    "steps of 3 until equal": {
        "advance": "add.s32 %r13, %r13, 3;",
        "test": "setp.ne.s32 %p9, %r13, %r15;",
    },
    "down while below": {"advance": "add.s32 %r13, %r13, -1;"},
    "up while above": {"test": "setp.gt.s32 %p9, %r13, %r15;"},
    "while equal": {"test": "setp.eq.s32 %p9, %r13, %r15;"},
    "no step": {"advance": "add.s32 %r13, %r13, 0;"},
    "a step of a register": {"advance": "add.s32 %r13, %r13, %r4;"},
    "a product": {"advance": "mul.lo.s32 %r13, %r13, 2;"},
    "a guarded step": {"advance": f"{ODD} add.s32 %r13, %r13, 1; @%p7 add.s32 %r13, %r13, 1;"},
    "a step only under a guard": {"advance": f"{ODD} @%p7 add.s32 %r13, %r13, 1;"},
    "a guarded copy": {"advance": f"{ODD} add.s32 %r16, %r13, 1; @%p7 mov.b32 %r13, %r16;"},
    "a step on one way": {"advance": ODD + BETWEEN.format("add.s32 %r13, %r13, 1;")},
    "a step in a loop": {"advance": INSIDE.format("add.s32 %r13, %r13, 1;")},
    "chosen": {"advance": f"{ODD} selp.s32 %r16, 1, 2, %p7; add.s32 %r13, %r13, %r16;"},
    "floating point": {
        "begin": "mov.f32 %f3, 0f00000000; mov.f32 %f4, 0f40A00000; mov.u32 %r13, %r6; mov.u32 %r15, 99;",
        "advance": "add.f32 %f3, %f3, 0f3F800000;",
        "test": "setp.lt.f32 %p9, %f3, %f4;",
    },
    "16 bits": {
        "begin": "cvt.u16.u32 %h3, %r6; mov.u32 %r13, 0; mov.u32 %r15, 9;",
        "advance": "add.u16 %h3, %h3, 1;",
        "test": "setp.lt.u16 %p9, %h3, 9;",
    },
    "a moving bound": {"code": f"{added()} add.s32 %r15, %r15, -2;"},
    "a bound at times moved": {"code": f"{added()} {ODD} @%p7 add.s32 %r15, %r15, -2;"},
    "a loaded test": {"test": "ld.global.u32 %r16, [%rd20+1024]; setp.ne.s32 %p9, %r16, 0;"},
    "a loaded bound": {"test": "ld.global.u32 %r16, [%rd20+1024]; setp.lt.s32 %p9, %r13, %r16;"},
    "a test of two": {"test": f"{ODD} setp.lt.and.s32 %p9, %r13, %r15, %p7;"},
    "the opposite of a test": {"test": "setp.lt.s32 %p8|%p9, %r13, %r15;"},
    "a guarded test": {"test": f"{ODD} @%p7 setp.lt.s32 %p9, %r13, %r15;"},
    "two conditions": {"test": f"{ODD} setp.lt.s32 %p6, %r13, %r15; and.pred %p9, %p6, %p7;"},
    "a sum": {
        "begin": f"{LOADED} mov.u32 %r14, %r5;",
        "code": f"{added('%r14')} add.u32 %r14, %r14, %r20;",
    },
    "an older counter": {
        "begin": f"{LOADED} mov.u32 %r14, %r5;",
        "code": f"{added('%r14')} mov.u32 %r14, %r13;",
    },
    "an older condition": {
        "begin": f"{LOADED} setp.eq.u32 %p5, %r6, 3;",
        "code": f"{ODD} selp.u32 %r14, 7, 9, %p5; {added('%r14')} setp.gt.u32 %p5, %r20, 77;",
    },
    "a call": {
        "code": "{ .param .b32 f_p; st.param.b32 [f_p], %r13; call.uni far, (f_p); }",
        "module": ".func far(.param .b32 far_p) { ret; }",
    },
    "a varying value at one place": {"code": "st.global.u32 [%rd6], %r13;"},
    "another value at one place": {"code": f"st.global.u32 [%rd6], 1; {ODD} @%p7 st.global.u32 [%rd6], 2;"},
    "a load from the place": {"code": "ld.global.u32 %r16, [%rd6]; st.global.u32 [%rd6], 1;"},
    "a shared place": {"code": "st.shared.u32 [flag], %r13;", "module": ".shared .align 4 .b8 flag[4];"},
    "a result of an atomic of a lane's own": {"code": f"atom.global.add.u32 %r16, [%rd6], %r13; {added('%r16')}"},
    "a sum of a lane's own in floating point": {
        "code": "cvt.rn.f32.u32 %f3, %r13; red.global.add.f32 [%rd6], %f3;"
    },
    "bins of a lane's own": {"code": BIN.format(table="%rd6") + "st.global.u32 [%rd21], %r13;"},
    "a sum by load and store": {
        "code": BIN.format(table="%rd2") + "ld.global.u32 %r17, [%rd21]; add.u32 %r17, %r17, 1;"
        " st.global.u32 [%rd21], %r17;"
    },
    "an exchange of a lane's own": {"code": "atom.global.exch.b32 %r16, [%rd6], %r13;"},
    "a store to a surface": {"code": "sust.b.1d.b32.trap [%rd2, {%r13}], %r5;"},
    "the place before": {
        "begin": LOADED + CHASING.format(shift=2),
        "code": "ld.global.u32 %r16, [%rd21+-4]; st.global.u32 [%rd21], %r16;",
        "advance": MOVING.format(size=4),
    },
    "the place behind": {
        "begin": LOADED + CHASING.format(shift=2),
        "code": "ld.global.u32 %r16, [%rd21+4]; st.global.u32 [%rd21], %r16;",
        "advance": MOVING.format(size=4),
    },
    "strides of 8 GiB": {
        "begin": LOADED + CHASING.format(shift=2),
        "code": "st.global.u32 [%rd21], %r5;",
        "advance": MOVING.format(size=1 << 33),
    },
    "two stores": {
        "begin": LOADED + CHASING.format(shift=2),
        "code": "st.global.u32 [%rd21+4], %r13; st.global.u32 [%rd21], %r5;",
        "advance": MOVING.format(size=4),
    },
    "a moved pointer": {
        "begin": LOADED + CHASING.format(shift=2),
        "code": "add.s64 %rd22, %rd21, -8; ld.global.u32 %r16, [%rd22]; st.global.u32 [%rd21], %r16;",
        "advance": MOVING.format(size=4),
    },
    "overlapping stores": {
        "begin": LOADED + CHASING.format(shift=2),
        "code": "cvt.u64.u32 %rd22, %r13; st.global.u64 [%rd21], %rd22;",
        "advance": MOVING.format(size=4),
    },
}  # fmt: skip


@pytest.mark.parametrize("name", IN_ORDER)
def test_trips_in_order_are_not_counted(name: str) -> None:
    assert found_in(**IN_ORDER[name]) is None


ANY_ORDER: dict[str, dict[str, str]] = {
    "a texture": {"code": f"tex.1d.v4.u32.s32 {{%r16, %r17, %r18, %r19}}, [%rd3, {{%r13}}]; {added('%r17')}"},
    "an atomic of a lane's own": {"code": "red.global.add.u32 [%rd6], %r13;"},
    "a test and set of what all share": {
        "code": BIN.format(table="%rd2") + "ld.global.u32 %r17, [%rd21]; setp.eq.u32 %p7, %r17, 0;"
        " @%p7 st.global.u32 [%rd21], 1;"
    },
    "rows of a matrix of a lane's own": {
        "code": "mul.wide.u32 %rd21, %r13, 8; add.u64 %rd21, %rd6, %rd21; st.global.u32 [%rd21], %r13;"
    },
    "branches": {"code": f"{added()} {ODD} {BETWEEN.format(added('%r5'))}"},
    "an inner loop": {"code": INSIDE.format(added("%r17"))},
    "a trap": {"code": f"{added()} setp.eq.u32 %p7, %r5, 99999; @!%p7 bra FINE; trap; FINE:"},
    "an unused sum": {
        "begin": f"{LOADED} mov.u32 %r14, %r5;",
        "code": f"{added()} add.u32 %r14, %r14, %r20;",
    },
    "one value at one place": {
        "code": "mov.u32 %r17, 1; st.global.u32 [%rd6], 1; st.global.u32 [%rd6], %r17;"
    },
    "loads of one place": {"code": "ld.global.u32 %r16, [%rd7]; " + added("%r16")},
    "two fields": {
        "begin": LOADED + CHASING.format(shift=3),
        "code": "ld.global.u32 %r16, [%rd21+4]; st.global.u32 [%rd21], %r16;",
        "advance": MOVING.format(size=8),
    },
    "a place itself": {
        "begin": LOADED + CHASING.format(shift=2),
        "code": "ld.global.u32 %r16, [%rd21]; add.u32 %r16, %r16, 1; st.global.u32 [%rd21], %r16;",
        "advance": MOVING.format(size=4),
    },
    "a read-only load of the place before": {
        "begin": LOADED + CHASING.format(shift=2),
        "code": "ld.global.nc.u32 %r16, [%rd21+-4]; st.global.u32 [%rd21], %r16;",
        "advance": MOVING.format(size=4),
    },
    "an atomic of the whole grid": {"code": "red.global.add.u32 [%rd3], %r13;"},
}  # fmt: skip


@pytest.mark.parametrize("name", ANY_ORDER)
def test_trips_in_any_order_are_counted(name: str) -> None:
    assert found_in(**ANY_ORDER[name]) is not None


def test_what_only_counts_is_no_part_of_a_trip() -> None:
    """Neither the counter, where a trip reads but a pointer, nor the test, nor sums that nothing reads."""
    made = found_in(
        begin=f"{LOADED} {CHASING.format(shift=2)} mov.u32 %r14, %r5;",
        code="st.global.u32 [%rd21], 7; add.u32 %r14, %r14, 3; add.s64 %rd22, %rd22, 4;",
        advance=MOVING.format(size=4),
    )
    assert made is not None
    assert made.steps == made.strides == {"%rd21": 4}
    assert made.reads == {"%rd21"}
    assert len(made.code) == 1


def test_steps_wrap_around() -> None:
    advance = "add.s32 %r13, %r13, 0xFFFFFFFF; add.s32 %r14, %r14, 0x90000000;"
    made = found_in(
        begin=f"{LOADED} mov.u32 %r14, %r5;",
        code=added("%r14"),
        advance=advance,
        test="setp.gt.s32 %p9, %r13, %r15;",
    )
    assert made is not None
    assert made.steps == {"%r13": -1, "%r14": 0x90000000 - (1 << 32)}


def test_what_a_reduction_carries_does_not_keep_trips_in_order() -> None:
    """And its update is a part of each trip, though nothing there reads it."""
    given = parse(loop(counted("add.u32 %r14, %r14, %r13;")))
    assert found(given) is not None
    made = found(given, ("%r14",))
    assert made is not None
    assert len(made.code) == 1
    assert "%r14" not in made.steps


MADE = "mul.wide.s32 %rd21, %r13, 4; add.s64 %rd21, %rd2, %rd21;"
STORED = "st.global.u32 [%rd21], %r5;"
POINTERS = {
    "signed": ({}, 4),
    "of 12 bytes": ({"begin": "mul.wide.s32 %rd21, %r13, 12; add.u64 %rd21, %rd21, %rd2;"}, 12),
    "through another": ({"begin": "mul.wide.s32 %rd22, %r13, 4; add.s64 %rd21, %rd22, %rd2;"}, 4),
    "downwards": ({"advance": "add.s32 %r13, %r13, -1; add.s64 %rd21, %rd21, -4;", "compare": "gt.s32"}, 4),
    "unsigned": ({"begin": "mul.wide.u32 %rd21, %r13, 4; add.s64 %rd21, %rd2, %rd21;", "compare": "lt.u32"}, 4),
}  # fmt: skip
NO_POINTERS = {
    "no guard": {"leave": ""},
    "a guard of another sign": {"leave": "setp.ge.u32 %p8, %r13, %r15;"},
    "a guard of another bound": {"leave": "setp.ge.s32 %p8, %r13, %r7;"},
    "a guard of an older counter": {
        "begin": "setp.ge.s32 %p8, %r13, %r15; add.s32 %r13, %r13, -1;" + MADE,
        "leave": "mov.u32 %r18, 0;",
    },
    "a guard the other way": {"leave": "setp.lt.s32 %p8, %r13, %r15;"},
    "another sign": {"begin": "mul.wide.u32 %rd21, %r13, 4; add.s64 %rd21, %rd2, %rd21;"},
    "another step": {"advance": MOVING.format(size=8)},
    "another way": {"advance": MOVING.format(size=-4)},
    "until equal": {"compare": "ne.s32"},
    "a lane's own base": {"begin": "mul.wide.s32 %rd21, %r13, 4; add.s64 %rd21, %rd6, %rd21;"},
    "a base set later": {"begin": MADE.replace("%rd2,", "%rd30,") + "mov.u64 %rd30, %rd3;"},
    "a counter moved": {"begin": MADE + "add.s32 %r13, %r13, 1;"},
    "another counter": {"begin": MADE.replace("%r13", "%r6")},
    "two beginnings": {"begin": MADE + f"{ODD} @%p7 add.s64 %rd21, %rd21, 4;"},
    "a difference": {"begin": "mul.wide.s32 %rd21, %r13, 4; sub.s64 %rd21, %rd2, %rd21;"},
    "a size of a register": {"begin": "mul.wide.s32 %rd21, %r13, %r7; add.s64 %rd21, %rd2, %rd21;"},
}  # fmt: skip


def pointed(given: dict[str, str]) -> tuple[Pointer, ...]:
    """The pointers of a loop that stores through %rd21."""
    holes = {"begin": MADE, "advance": MOVING.format(size=4), "compare": "lt.s32"} | given
    begin, compare = LOADED + holes.pop("begin"), holes.pop("compare")
    unless = {"lt": "ge", "gt": "le", "ne": "eq"}[compare[:2]] + compare[2:]
    guard = {"leave": f"setp.{unless} %p8, %r13, %r15;", "test": f"setp.{compare} %p9, %r13, %r15;"}
    made = found_in(code=STORED, begin=begin, **guard | holes)
    assert made is not None
    assert made.strides["%rd21"]
    if made.pointers:
        assert made.steps == {"%r13": made.count.step}
        assert made.reads == {"%r13", "%r5"}
    return made.pointers


@pytest.mark.parametrize("name", POINTERS)
def test_pointers_follow_the_counter(name: str) -> None:
    given, size = POINTERS[name]
    if size != 4:
        given = given | {"advance": MOVING.format(size=size)}
    widen = "mul.wide.u32" if name == "unsigned" else "mul.wide.s32"
    assert pointed(given) == (Pointer("%rd21", "%rd2", "%r13", size, widen),)


@pytest.mark.parametrize("name", NO_POINTERS)
def test_pointers_that_the_counter_does_not_give_are_counted(name: str) -> None:
    assert pointed(NO_POINTERS[name]) == ()
