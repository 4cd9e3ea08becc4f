"""Strides over lanes: sources, arithmetic, induction variables; and what has none."""

from __future__ import annotations

import pytest

from cccopt.analysis.affine import LaneStrides, access_size
from cccopt.analysis.cfg import build
from cccopt.analysis.dominance import dominators
from cccopt.analysis.loops import loops
from cccopt.analysis.reaching import reaching_definitions
from cccopt.analysis.uniformity import uniformity

from .kernels import find, kernel


def strides(function):
    cfg = build(function.body)
    return LaneStrides(
        reaching_definitions(cfg, function.body), uniformity(function, cfg), dominators(cfg), loops(cfg)
    )


def stride_after(text, register):
    function = kernel(f"{text}\nexit;")
    return strides(function).of_register(find(function, "exit"), register)


THREAD = "mov.u32 %r9, %tid.x; mov.u32 %r8, %ctaid.x; mov.u32 %r7, %ntid.x; mad.lo.s32 %r9, %r8, %r7, %r9;\n"


@pytest.mark.parametrize(
    ("text", "register", "expected"),
    [
        ("mov.u32 %r1, %tid.x;", "%r1", 1),
        ("mov.u32 %r1, %laneid;", "%r1", 1),
        ("mov.u32 %r1, %tid.y;", "%r1", 0),
        ("mov.u32 %r1, %lanemask_lt;", "%r1", None),
        ("ld.param.u32 %r1, [n];", "%r1", 0),
        (THREAD, "%r9", 1),
        (THREAD + "mul.wide.s32 %rd1, %r9, 4;", "%rd1", 4),
        (THREAD + "mul.wide.s32 %rd1, %r9, -8;", "%rd1", -8),
        (THREAD + "cvt.s64.s32 %rd1, %r9; shl.b64 %rd1, %rd1, 3;", "%rd1", 8),
        (THREAD + "cvt.u64.u32 %rd1, %r9; mad.lo.s64 %rd1, %rd1, 12, 5;", "%rd1", 12),
        (THREAD + "ld.param.u32 %r1, [n]; sub.s32 %r1, %r1, %r9;", "%r1", -1),
        (THREAD + "ld.param.u32 %r1, [n]; mul.lo.s32 %r1, %r1, %r9;", "%r1", None),
        (THREAD + "neg.s32 %r1, %r9; add.s32 %r1, %r9, %r1;", "%r1", 0),
        (THREAD + "shr.u32 %r1, %r9, 1;", "%r1", None),
        (THREAD + "xor.b32 %r1, %r9, 1;", "%r1", None),
        (THREAD + "mul.hi.s32 %r1, %r9, 4;", "%r1", None),
        (THREAD + "cvt.rn.f32.s32 %f1, %r9;", "%f1", None),
        (THREAD + "setp.lt.s32 %p1, %r9, 3; mov.u32 %r1, %r9; @%p1 add.s32 %r1, %r9, 5;", "%r1", None),
        (
            THREAD + "setp.lt.s32 %p1, %r9, 3; mov.u32 %r1, %r9; @%p1 bra J; add.s32 %r1, %r9, 5; J:",
            "%r1",
            None,
        ),
    ],
)
def test_strides(text, register, expected):
    assert stride_after(text, register) == expected


def test_a_value_that_is_read_twice_is_looked_at_once():
    twice = "add.s32 %r9, %r9, %r9; "
    assert stride_after(THREAD + 50 * twice, "%r9") == 2**50


LOOP = """
    {start}
    ld.param.u64 %rd1, [a]; ld.param.u32 %r3, [n]; mov.u32 %r4, %nctaid.x;
LOOP:
    mul.wide.s32 %rd2, %r9, 4; add.s64 %rd3, %rd1, %rd2;
    {body}
    {step}
    setp.lt.s32 %p1, %r9, %r3; @%p1 bra LOOP;
    exit;"""


def loop(start=THREAD, body="ld.global.u32 %r2, [%rd3+4];", step="add.s32 %r9, %r9, %r4;"):
    function = kernel(LOOP.format(start=start, body=body, step=step))
    return strides(function), find(function, "ld.global")


def test_an_induction_variable_keeps_its_stride():
    found, load = loop()
    assert found.of_access(load) == 4
    assert found.is_coalesced(load)


def test_a_counter_that_begins_with_another_one():
    inner = "mov.u32 %r5, %r9; M: add.s32 %r5, %r5, 64; setp.lt.s32 %p2, %r5, %r3; @%p2 bra M;"
    found, load = loop(body=inner + "mul.wide.s32 %rd3, %r5, 4; ld.global.u32 %r2, [%rd3];")
    assert found.of_access(load) == 4


@pytest.mark.parametrize(
    "step",
    [
        "add.s32 %r9, %r9, %r2;",  # each lane by another step
        "shl.b32 %r9, %r9, 1;",  # another stride in each trip
        "setp.lt.s32 %p2, %r2, 3; @%p2 bra L; add.s32 %r9, %r9, 1; L:",  # only some lanes step
    ],
)
def test_a_register_that_lanes_change_differently_has_none(step):
    found, load = loop(step=step)
    assert found.of_access(load) is None
    assert not found.is_coalesced(load)


def test_a_pointer_that_steps_along():
    walk = "ld.global.u32 %r2, [%rd8]; add.s64 %rd8, %rd8, 512;"
    pointer = "ld.param.u64 %rd9, [b]; mul.wide.s32 %rd8, %r9, 4; add.s64 %rd8, %rd9, %rd8;"
    found, load = loop(start=THREAD + pointer, body=walk)
    assert found.is_coalesced(load)


@pytest.mark.parametrize(
    ("load", "size", "coalesced"),
    [
        ("ld.global.u32 %r2, [%rd3];", 4, True),
        ("ld.global.nc.f32 %f2, [%rd3+-8];", 4, True),
        ("ld.global.u8 %r2, [%rd3];", 1, False),
        ("ld.global.u64 %rd5, [%rd3];", 8, False),
        ("ld.global.v2.u16 {%r1, %r2}, [%rd3];", 4, True),
        ("ld.global.u32 %r2, [%rd1];", 4, False),
    ],
)
def test_coalesced_is_a_stride_of_the_access_size(load, size, coalesced):
    found, at = loop(body=load)
    assert access_size(found.reaching.body[at]) == size
    assert found.is_coalesced(at) == coalesced


def test_what_is_no_access_is_not_coalesced():
    found, _ = loop()
    function = found.uniformity.function
    assert not found.is_coalesced(find(function, "mul.wide"))
    assert not found.is_coalesced(find(function, "exit"))
    assert access_size(function.body[find(function, "exit")]) == 0
