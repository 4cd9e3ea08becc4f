"""What is known of one instruction's result: never less than what it may compute."""

from __future__ import annotations

import pytest

from cccopt.ccc.legality.flag_values import BOOLEAN, KEPT, Unknown, Values, result
from cccopt.ptx.ir import Function, Instruction
from cccopt.ptx.isa import register_types
from cccopt.ptx.parser import parse

ANY, NONZERO = Unknown.ANY, Unknown.NONZERO
ZERO, ONE, HELD = frozenset({0}), frozenset({1}), frozenset({KEPT})
DECLARED = ".reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<4>; .reg .b64 %l<4>; .reg .f32 %f<4>;"


def computed(code: str, known: dict[str, Values]) -> Values:
    text = (
        f".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k() {{ {DECLARED} {code} ret; }}\n"
    )
    (function,) = (f for f in parse(text).functions() if isinstance(f, Function))
    instruction = next(s for s in function.body or () if isinstance(s, Instruction))
    return result(instruction, known, register_types(function))


@pytest.mark.parametrize(
    ("code", "known", "expected"),
    [
        ("mov.u32 %r1, 7;", {}, frozenset({7})),
        ("mov.u32 %r1, -1;", {}, frozenset({0xFFFFFFFF})),
        ("mov.f32 %f1, 0f3F800000;", {}, frozenset({0x3F800000})),
        ("mov.u32 %r1, %r2;", {"%r2": HELD}, HELD),
        ("mov.u32 %r1, %tid.x;", {}, ANY),
        ("@%p1 mov.u32 %r1, 7;", {"%r1": HELD}, frozenset({7, KEPT})),
        ("@%p1 mov.u32 %r1, 7;", {}, ANY),
        ("selp.b32 %r1, 1, 0, %p1;", {}, BOOLEAN),
        ("selp.b32 %r1, 1, 0, %p1;", {"%p1": ONE}, ONE),
        ("selp.b32 %r1, 1, 0, %p1;", {"%p1": ZERO}, ZERO),
        ("selp.b32 %r1, 1, %r2, %p1;", {"%r2": HELD}, frozenset({1, KEPT})),
        ("selp.b32 %r1, 1, %r2, %p1;", {"%r2": NONZERO}, NONZERO),
        ("selp.b32 %r1, 0, %r2, %p1;", {"%r2": NONZERO}, ANY),
        ("setp.eq.s32 %p1, %r1, 5;", {"%r1": frozenset({5})}, ONE),
        ("setp.ne.s32 %p1, %r1, 5;", {"%r1": frozenset({5})}, ZERO),
        ("setp.ne.s32 %p1, %r1, 0;", {"%r1": NONZERO}, ONE),
        ("setp.eq.s32 %p1, 0, %r1;", {"%r1": NONZERO}, ZERO),
        ("setp.ne.s32 %p1, %r1, 5;", {"%r1": NONZERO}, BOOLEAN),
        ("setp.ne.s32 %p1, %r1, %r2;", {"%r1": ANY, "%r2": ZERO}, BOOLEAN),
        ("setp.ne.s32 %p1, %r1, 0;", {"%r1": HELD}, BOOLEAN),
        ("setp.lt.s32 %p1, %r1, 5;", {"%r1": frozenset({5})}, BOOLEAN),
        ("setp.eq.f32 %p1, %f1, 0f80000000;", {"%f1": ZERO}, BOOLEAN),  # -0.0 equals 0.0
        ("or.b32 %r1, %r2, %r3;", {"%r2": NONZERO}, NONZERO),
        ("or.b32 %r1, %r2, %r3;", {"%r3": ONE}, NONZERO),
        ("or.b32 %r1, %r2, %r3;", {"%r3": ZERO}, ANY),
        ("or.b32 %r1, %r2, %r3;", {"%r2": HELD, "%r3": ZERO}, ANY),
        ("or.b32 %r1, %r2, %r3;", {"%r2": frozenset({2}), "%r3": BOOLEAN}, frozenset({2, 3})),
        ("and.b32 %r1, %r2, %r3;", {"%r2": ZERO}, ZERO),
        ("and.b32 %r1, %r2, 1;", {}, BOOLEAN),
        ("and.b32 %r1, %r2, %r3;", {"%r2": NONZERO}, ANY),
        ("xor.b32 %r1, %r2, %r3;", {"%r2": ONE}, ANY),
        ("xor.b32 %r1, %r2, 1;", {"%r2": ONE}, ZERO),
        ("and.pred %p1, %p2, %p3;", {}, BOOLEAN),
        ("or.pred %p1, %p2, %p3;", {"%p3": ONE}, ONE),
        ("not.pred %p1, %p2;", {"%p2": ONE}, ZERO),
        ("not.b32 %r1, %r2;", {"%r2": ONE}, ANY),
        ("cvt.u32.u16 %r1, %h1;", {"%h1": ONE}, ONE),
        ("cvt.s32.s8 %r1, %r2;", {"%r2": frozenset({0xFF})}, frozenset({0xFFFFFFFF})),
        ("cvt.u32.u8 %r1, %r2;", {"%r2": frozenset({0x1FF})}, frozenset({0xFF})),
        ("cvt.u16.u32 %h1, %r2;", {"%r2": frozenset({0x10001})}, ONE),
        ("cvt.u16.u32 %h1, %r2;", {"%r2": NONZERO}, ANY),  # the lower half may be zero
        ("cvt.u32.u16 %r1, %h1;", {"%h1": HELD}, ANY),
        ("cvt.s8.s32 %h1, %r1;", {"%r1": ONE}, ANY),
        ("cvt.rn.f32.s32 %f1, %r1;", {"%r1": ONE}, ANY),
        ("cvt.sat.u16.u32 %h1, %r1;", {"%r1": ONE}, ANY),
        ("shr.u32 %r1, %r2, 31;", {}, BOOLEAN),
        ("shr.u32 %r1, %r2, 30;", {}, ANY),
        ("shr.s32 %r1, %r2, 31;", {}, ANY),
        ("add.s32 %r1, %r2, 1;", {"%r2": ZERO}, ANY),
        ("setp.eq.and.s32 %p1, %r1, 5, %p2;", {"%r1": frozenset({5})}, BOOLEAN),
    ],
)
def test_results(code: str, known: dict[str, Values], expected: Values) -> None:
    assert computed(code, known) == expected
