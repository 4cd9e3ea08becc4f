"""Which inner loops are counted, how many inner iterations they have left, and what keeps those in order.

    for (k = other[i]; k < a[i]; k += step)     ->  ahead of the loop a lane has (a[i] - other[i]) / step left;
      red.add(table[hash(k, i)], ...);              the warp lays the inner iterations of its lanes side by side

A wrong count leaves out an inner iteration or runs one too many: each shape of counter, step and test is counted at the
ends of its type as well. The table gets each (k, i) once and in any order, so that memory tells.
"""

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

UNIFORM = ("%a", "%out", "%other", "%rd30")

SHAPES = {
    **{f"{c} {t}": Shape(c, t) for c in ("lt", "le") for t in ("s32", "u32", "s64", "u64")},
    **{f"{c} {t}": Shape(c, t, -1) for c in ("gt", "ge") for t in ("s32", "u32", "s64", "u64")},
    **{f"{c} {t} by {s}": Shape(c, t, s) for c in ("lt", "le") for t in ("s32", "u64") for s in (2, 8)},
    **{f"{c} {t} by -4": Shape(c, t, -4) for c in ("gt", "ge") for t in ("u32", "s64")},
    **{f"ne {t} by {s}": Shape("ne", t, s) for t in ("s32", "b32", "u64") for s in (1, -1, 4, -4)},
    "lo": Shape("lt", "u32", test="setp.lo.u32 %p9, %k, %bound;"),
    "ls": Shape("le", "u32", test="setp.ls.u32 %p9, %k, %bound;"),
    "hi": Shape("gt", "u32", -1, test="setp.hi.u32 %p9, %k, %bound;"),
    "hs": Shape("ge", "u32", -1, test="setp.hs.u32 %p9, %k, %bound;"),
    "swapped lt": Shape("lt", test="setp.gt.s32 %p9, %bound, %k;"),
    "swapped le": Shape("le", "u32", test="setp.ge.u32 %p9, %bound, %k;"),
    "swapped gt": Shape("gt", step=-1, test="setp.lt.s32 %p9, %bound, %k;"),
    "swapped ge": Shape("ge", step=-1, test="setp.le.s32 %p9, %bound, %k;"),
    "swapped ne": Shape("ne", test="setp.ne.s32 %p9, %bound, %k;"),
    "unless ge": Shape("lt", test="setp.ge.s32 %p9, %k, %bound;", going="@!%p9"),
    "unless gt": Shape("le", test="setp.gt.s32 %p9, %k, %bound;", going="@!%p9"),
    "unless swapped": Shape("gt", step=-1, test="setp.ge.s32 %p9, %bound, %k;", going="@!%p9"),
    "unless eq": Shape("ne", step=4, test="setp.eq.s32 %p9, %k, %bound;", going="@!%p9"),
    "unless lo": Shape("ge", "u32", -1, test="setp.lo.u32 %p9, %k, %bound;", going="@!%p9"),
    "another register": Shape("lt", advance="add.s32 %r16, %k, 1; mov.u32 %k, %r16;"),
    "tested there": Shape(
        "lt",
        advance="add.s32 %r16, %k, 1;",
        test="setp.lt.s32 %p9, %r16, %bound; mov.b32 %k, %r16;",
    ),
    "two additions": Shape("lt", advance="add.s32 %r16, %k, 3; add.s32 %k, %r16, -2;"),
    "subtracted": Shape("gt", step=-1, advance="sub.s32 %k, %k, 1;"),
    "-1 subtracted": Shape("lt", "u32", advance="sub.u32 %k, %k, -1;"),
    "subtracted, 64 bits": Shape("ne", "u64", -4, advance="sub.u64 %k, %k, 4;"),
    "tested first": Shape(
        "lt", offset=0, advance="setp.lt.s32 %p9, %k, %bound;", test="add.s32 %k, %k, 1;"
    ),
    "tested ahead of it": Shape(
        "lt", offset=4, test="add.s32 %r16, %k, 3; setp.lt.s32 %p9, %r16, %bound;"
    ),
    "kept wide": Shape(
        "lt", advance="cvt.s64.s32 %rd20, %k; cvt.u32.u64 %r16, %rd20; add.s32 %k, %r16, 1;"
    ),
    "literal": Shape("lt", bound=20),
    "literal below zero": Shape("ne", step=-1, bound=-5),
    "swapped literal": Shape("gt", step=-1, bound=-7, test="setp.lt.s32 %p9, -7, %k;"),
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
    counter, limit = ("%wide_k", "%wide_bound") if shape.bits == 64 else ("%k", "%bound")
    loop = found(shape.module)
    assert loop is not None
    offset = shape.step if shape.offset is None else shape.offset
    bound = Register(limit) if shape.bound is None else Literal(str(shape.bound))
    assert loop.count == TripCount(counter, offset, shape.step, shape.compare, shape.type, bound)
    assert loop.steps == {counter: shape.step}
    ran = compare(shape.module, "k", shape.arguments, [Launch(1, 32, 2)], forms=["split"], seeds=())
    assert ran["split"]["expand"]


CHASING = "cvt.u64.u32 %rd21, %k; shl.b64 %rd21, %rd21, {shift}; add.s64 %rd21, %out, %rd21;"
MOVING = "add.s32 %k, %k, 1; add.s64 %rd21, %rd21, {size};"
BETWEEN = "@%p7 bra BESIDE; {} BESIDE:"
INSIDE = "mov.u32 %r17, 0; TURN: {} add.u32 %r17, %r17, 1; setp.lt.u32 %p7, %r17, 3; @%p7 bra TURN;"
ODD = "and.b32 %r16, %i, 1; setp.eq.u32 %p7, %r16, 1;"

BIN = "and.b32 %r16, %k, 1; mul.wide.u32 %rd21, %r16, 4; add.u64 %rd21, {table}, %rd21;"
"""A place in a table that some trips have in common."""

IN_ORDER: dict[str, dict[str, str]] = {
    "two ways out": {"code": f"{added()} setp.eq.u32 %p7, %r20, 5; @%p7 bra DONE_3;"},
    "left at the head": {
        "code": f"setp.ge.s32 %p7, %k, %bound; @%p7 bra DONE_3; {added()}",
        "test": "",
        "going": "bra INNER_3; @%p9",
    },
    "two ways back": {"code": f"{ODD} @%p7 bra MORE; {added()}", "advance": "add.s32 %k, %k, 1; MORE:"},
    "steps of 3 below": {"advance": "add.s32 %k, %k, 3;"},
    "steps of 3 until equal": {
        "advance": "add.s32 %k, %k, 3;",
        "test": "setp.ne.s32 %p9, %k, %bound;",
    },
    "down while below": {"advance": "add.s32 %k, %k, -1;"},
    "up while above": {"test": "setp.gt.s32 %p9, %k, %bound;"},
    "while equal": {"test": "setp.eq.s32 %p9, %k, %bound;"},
    "no step": {"advance": "add.s32 %k, %k, 0;"},
    "a step of a register": {"advance": "add.s32 %k, %k, %stride;"},
    "a product": {"advance": "mul.lo.s32 %k, %k, 2;"},
    "a guarded step": {"advance": f"{ODD} add.s32 %k, %k, 1; @%p7 add.s32 %k, %k, 1;"},
    "a step only under a guard": {"advance": f"{ODD} @%p7 add.s32 %k, %k, 1;"},
    "a guarded copy": {"advance": f"{ODD} add.s32 %r16, %k, 1; @%p7 mov.b32 %k, %r16;"},
    "a step on one way": {"advance": ODD + BETWEEN.format("add.s32 %k, %k, 1;")},
    "a step in a loop": {"advance": INSIDE.format("add.s32 %k, %k, 1;")},
    "chosen": {"advance": f"{ODD} selp.s32 %r16, 1, 2, %p7; add.s32 %k, %k, %r16;"},
    "floating point": {
        "begin": "mov.f32 %f3, 0f00000000; mov.f32 %f4, 0f40A00000; mov.u32 %k, %value; mov.u32 %bound, 99;",
        "advance": "add.f32 %f3, %f3, 0f3F800000;",
        "test": "setp.lt.f32 %p9, %f3, %f4;",
    },
    "16 bits": {
        "begin": "cvt.u16.u32 %h3, %value; mov.u32 %k, 0; mov.u32 %bound, 9;",
        "advance": "add.u16 %h3, %h3, 1;",
        "test": "setp.lt.u16 %p9, %h3, 9;",
    },
    "a moving bound": {"code": f"{added()} add.s32 %bound, %bound, -2;"},
    "a bound at times moved": {"code": f"{added()} {ODD} @%p7 add.s32 %bound, %bound, -2;"},
    "a loaded test": {"test": "ld.global.u32 %r16, [%rd20+1024]; setp.ne.s32 %p9, %r16, 0;"},
    "a loaded bound": {"test": "ld.global.u32 %r16, [%rd20+1024]; setp.lt.s32 %p9, %k, %r16;"},
    "a test of two": {"test": f"{ODD} setp.lt.and.s32 %p9, %k, %bound, %p7;"},
    "the opposite of a test": {"test": "setp.lt.s32 %p8|%p9, %k, %bound;"},
    "a guarded test": {"test": f"{ODD} @%p7 setp.lt.s32 %p9, %k, %bound;"},
    "two conditions": {"test": f"{ODD} setp.lt.s32 %p6, %k, %bound; and.pred %p9, %p6, %p7;"},
    "a sum": {
        "begin": f"{LOADED} mov.u32 %x, %i;",
        "code": f"{added('%x')} add.u32 %x, %x, %r20;",
    },
    "an older counter": {
        "begin": f"{LOADED} mov.u32 %x, %i;",
        "code": f"{added('%x')} mov.u32 %x, %k;",
    },
    "an older condition": {
        "begin": f"{LOADED} setp.eq.u32 %p5, %value, 3;",
        "code": f"{ODD} selp.u32 %x, 7, 9, %p5; {added('%x')} setp.gt.u32 %p5, %r20, 77;",
    },
    "a call": {
        "code": "{ .param .b32 f_p; st.param.b32 [f_p], %k; call.uni far, (f_p); }",
        "module": ".func far(.param .b32 far_p) { ret; }",
    },
    "a varying value at one place": {"code": "st.global.u32 [%out_i], %k;"},
    "another value at one place": {"code": f"st.global.u32 [%out_i], 1; {ODD} @%p7 st.global.u32 [%out_i], 2;"},
    "a load from the place": {"code": "ld.global.u32 %r16, [%out_i]; st.global.u32 [%out_i], 1;"},
    "a shared place": {"code": "st.shared.u32 [flag], %k;", "module": ".shared .align 4 .b8 flag[4];"},
    "a result of an atomic of a lane's own": {"code": f"atom.global.add.u32 %r16, [%out_i], %k; {added('%r16')}"},
    "a sum of a lane's own in floating point": {
        "code": "cvt.rn.f32.u32 %f3, %k; red.global.add.f32 [%out_i], %f3;"
    },
    "bins of a lane's own": {"code": BIN.format(table="%out_i") + "st.global.u32 [%rd21], %k;"},
    "a sum by load and store": {
        "code": BIN.format(table="%out") + "ld.global.u32 %r17, [%rd21]; add.u32 %r17, %r17, 1;"
        " st.global.u32 [%rd21], %r17;"
    },
    "an exchange of a lane's own": {"code": "atom.global.exch.b32 %r16, [%out_i], %k;"},
    "a store to a surface": {"code": "sust.b.1d.b32.trap [%out, {%k}], %i;"},
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
        "code": "st.global.u32 [%rd21], %i;",
        "advance": MOVING.format(size=1 << 33),
    },
    "two stores": {
        "begin": LOADED + CHASING.format(shift=2),
        "code": "st.global.u32 [%rd21+4], %k; st.global.u32 [%rd21], %i;",
        "advance": MOVING.format(size=4),
    },
    "a moved pointer": {
        "begin": LOADED + CHASING.format(shift=2),
        "code": "add.s64 %rd22, %rd21, -8; ld.global.u32 %r16, [%rd22]; st.global.u32 [%rd21], %r16;",
        "advance": MOVING.format(size=4),
    },
    "overlapping stores": {
        "begin": LOADED + CHASING.format(shift=2),
        "code": "cvt.u64.u32 %rd22, %k; st.global.u64 [%rd21], %rd22;",
        "advance": MOVING.format(size=4),
    },
}  # fmt: skip


@pytest.mark.parametrize("name", IN_ORDER)
def test_trips_in_order_are_not_counted(name: str) -> None:
    assert found_in(**IN_ORDER[name]) is None


ANY_ORDER: dict[str, dict[str, str]] = {
    "a texture": {"code": f"tex.1d.v4.u32.s32 {{%r16, %r17, %r18, %r19}}, [%other, {{%k}}]; {added('%r17')}"},
    "an atomic of a lane's own": {"code": "red.global.add.u32 [%out_i], %k;"},
    "a test and set of what all share": {
        "code": BIN.format(table="%out") + "ld.global.u32 %r17, [%rd21]; setp.eq.u32 %p7, %r17, 0;"
        " @%p7 st.global.u32 [%rd21], 1;"
    },
    "rows of a matrix of a lane's own": {
        "code": "mul.wide.u32 %rd21, %k, 8; add.u64 %rd21, %out_i, %rd21; st.global.u32 [%rd21], %k;"
    },
    "branches": {"code": f"{added()} {ODD} {BETWEEN.format(added('%i'))}"},
    "an inner loop": {"code": INSIDE.format(added("%r17"))},
    "a trap": {"code": f"{added()} setp.eq.u32 %p7, %i, 99999; @!%p7 bra FINE; trap; FINE:"},
    "an unused sum": {
        "begin": f"{LOADED} mov.u32 %x, %i;",
        "code": f"{added()} add.u32 %x, %x, %r20;",
    },
    "one value at one place": {
        "code": "mov.u32 %r17, 1; st.global.u32 [%out_i], 1; st.global.u32 [%out_i], %r17;"
    },
    "loads of one place": {"code": "ld.global.u32 %r16, [%other_i]; " + added("%r16")},
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
    "an atomic of the whole grid": {"code": "red.global.add.u32 [%other], %k;"},
}  # fmt: skip


@pytest.mark.parametrize("name", ANY_ORDER)
def test_trips_in_any_order_are_counted(name: str) -> None:
    assert found_in(**ANY_ORDER[name]) is not None


def test_what_only_counts_is_no_part_of_a_trip() -> None:
    """Neither the counter, where a trip reads but a pointer, nor the test, nor sums that nothing reads."""
    made = found_in(
        begin=f"{LOADED} {CHASING.format(shift=2)} mov.u32 %x, %i;",
        code="st.global.u32 [%rd21], 7; add.u32 %x, %x, 3; add.s64 %rd22, %rd22, 4;",
        advance=MOVING.format(size=4),
    )
    assert made is not None
    assert made.steps == made.strides == {"%rd21": 4}
    assert made.reads == {"%rd21"}
    assert len(made.code) == 1


def test_steps_wrap_around() -> None:
    advance = "add.s32 %k, %k, 0xFFFFFFFF; add.s32 %x, %x, 0x90000000;"
    made = found_in(
        begin=f"{LOADED} mov.u32 %x, %i;",
        code=added("%x"),
        advance=advance,
        test="setp.gt.s32 %p9, %k, %bound;",
    )
    assert made is not None
    assert made.steps == {"%k": -1, "%x": 0x90000000 - (1 << 32)}


def test_what_a_reduction_carries_does_not_keep_trips_in_order() -> None:
    """And its update is a part of each trip, though nothing there reads it."""
    given = parse(loop(counted("add.u32 %x, %x, %k;")))
    assert found(given) is not None
    made = found(given, ("%x",))
    assert made is not None
    assert len(made.code) == 1
    assert "%x" not in made.steps


MADE = "mul.wide.s32 %rd21, %k, 4; add.s64 %rd21, %out, %rd21;"
STORED = "st.global.u32 [%rd21], %i;"
POINTERS = {
    "signed": ({}, 4),
    "of 12 bytes": ({"begin": "mul.wide.s32 %rd21, %k, 12; add.u64 %rd21, %rd21, %out;"}, 12),
    "through another": ({"begin": "mul.wide.s32 %rd22, %k, 4; add.s64 %rd21, %rd22, %out;"}, 4),
    "downwards": ({"advance": "add.s32 %k, %k, -1; add.s64 %rd21, %rd21, -4;", "compare": "gt.s32"}, 4),
    "unsigned": ({"begin": "mul.wide.u32 %rd21, %k, 4; add.s64 %rd21, %out, %rd21;", "compare": "lt.u32"}, 4),
}  # fmt: skip
NO_POINTERS = {
    "no guard": {"leave": ""},
    "a guard of another sign": {"leave": "setp.ge.u32 %p8, %k, %bound;"},
    "a guard of another bound": {"leave": "setp.ge.s32 %p8, %k, %block_size;"},
    "a guard of an older counter": {
        "begin": "setp.ge.s32 %p8, %k, %bound; add.s32 %k, %k, -1;" + MADE,
        "leave": "mov.u32 %r18, 0;",
    },
    "a guard the other way": {"leave": "setp.lt.s32 %p8, %k, %bound;"},
    "another sign": {"begin": "mul.wide.u32 %rd21, %k, 4; add.s64 %rd21, %out, %rd21;"},
    "another step": {"advance": MOVING.format(size=8)},
    "another way": {"advance": MOVING.format(size=-4)},
    "until equal": {"compare": "ne.s32"},
    "a lane's own base": {"begin": "mul.wide.s32 %rd21, %k, 4; add.s64 %rd21, %out_i, %rd21;"},
    "a base set later": {"begin": MADE.replace("%out,", "%rd30,") + "mov.u64 %rd30, %other;"},
    "a counter moved": {"begin": MADE + "add.s32 %k, %k, 1;"},
    "another counter": {"begin": MADE.replace("%k", "%value")},
    "two beginnings": {"begin": MADE + f"{ODD} @%p7 add.s64 %rd21, %rd21, 4;"},
    "a difference": {"begin": "mul.wide.s32 %rd21, %k, 4; sub.s64 %rd21, %out, %rd21;"},
    "a size of a register": {"begin": "mul.wide.s32 %rd21, %k, %block_size; add.s64 %rd21, %out, %rd21;"},
}  # fmt: skip


def pointed(given: dict[str, str]) -> tuple[Pointer, ...]:
    """The pointers of a loop that stores through %rd21."""
    holes = {"begin": MADE, "advance": MOVING.format(size=4), "compare": "lt.s32"} | given
    begin, compare = LOADED + holes.pop("begin"), holes.pop("compare")
    unless = {"lt": "ge", "gt": "le", "ne": "eq"}[compare[:2]] + compare[2:]
    guard = {"leave": f"setp.{unless} %p8, %k, %bound;", "test": f"setp.{compare} %p9, %k, %bound;"}
    made = found_in(code=STORED, begin=begin, **guard | holes)
    assert made is not None
    assert made.strides["%rd21"]
    if made.pointers:
        assert made.steps == {"%k": made.count.step}
        assert made.reads == {"%k", "%i"}
    return made.pointers


@pytest.mark.parametrize("name", POINTERS)
def test_pointers_follow_the_counter(name: str) -> None:
    given, size = POINTERS[name]
    if size != 4:
        given = given | {"advance": MOVING.format(size=size)}
    widen = "mul.wide.u32" if name == "unsigned" else "mul.wide.s32"
    assert pointed(given) == (Pointer("%rd21", "%out", "%k", size, widen),)


@pytest.mark.parametrize("name", NO_POINTERS)
def test_pointers_that_the_counter_does_not_give_are_counted(name: str) -> None:
    assert pointed(NO_POINTERS[name]) == ()
