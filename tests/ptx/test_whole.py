"""Instructions and locations that are one token: the same nodes as by the longer rules, and the same messages."""

from __future__ import annotations

import pytest

from cccopt.ptx.errors import PtxError
from cccopt.ptx.ir import Instruction, Location, Register, Statement, Symbol
from cccopt.ptx.parser import parse

INSTRUCTIONS = """
ret;
mov.u32 %r1, %tid.x;
@%p1 add.s32 %r1, %r2, -1;
@!%p1 ld.global.L2::128B.v2.f32 {%f1, _}, [%rd1+-4];
st.shared.u32 [name+8], 0;
st.global.f32 [%rd1], 0f3F800000;
mov.b32 v, {half, %h1};
mov.f64 %fd1, 0d3FF0000000000000;
setp.ne.s32 p, %r1, WARP_SZ;
mov.b32 %r1, 0x10;
fma.rn.f32 %f1, %f1, %f2, -%f3;
bar.sync 0;
bra $L;
@%p1 bra $L;
call helper;
mov.u16 %h1, v.x;
mov.u64 %rd1, name+4;
"""
LOCATIONS = """
.loc	1 2 3
.loc	1 20 0, function_name $L__info_string0, inlined_at 1 2 3
.loc	12 20 1, function_name $L__info_string0+16, inlined_at 1 2 0
"""


def body(text: str) -> tuple[Statement, ...]:
    declared = ".reg .pred p; .reg .b32 v; .reg .b16 half;"
    module = parse(
        f".version 8.0\n.shared .b32 name[4];\n.entry k ()\n{{\n{declared}\n{text}\n$L: ret;\n}}\n"
    )
    (function,) = module.functions()
    return function.body or ()


@pytest.mark.parametrize("line", INSTRUCTIONS.split("\n")[1:-1])
def test_an_instruction_is_what_its_parts_are(line: str) -> None:
    whole, apart = body(line), body(line.replace(";", " ;"))  # with a blank there, it is no single token
    assert whole == apart
    assert [s.position for s in whole if isinstance(s, Instruction)] == [
        s.position for s in apart if isinstance(s, Instruction)
    ]


@pytest.mark.parametrize("line", LOCATIONS.split("\n")[1:-1])
def test_a_location_is_what_its_parts_are(line: str) -> None:
    whole, apart = body(line), body(line.replace(" ", "  ").replace("\t", " "))
    assert whole == apart
    assert any(isinstance(s, Location) for s in whole)


def test_the_same_text_means_what_its_scope_says() -> None:
    text = "{ .reg .b32 name; mov.u32 %r1, name; }\nmov.u32 %r1, name;"
    inner, outer = (s for s in body(text) if isinstance(s, Instruction) and s.base == "mov")
    assert (inner.operands[1], outer.operands[1]) == (Register("name"), Symbol("name"))
    hidden = "mov.u32 %r1, %tid.x;\n{ .reg .v4 .b32 %tid; mov.u32 %r1, %tid.x; }\nmov.u32 %r1, %tid.x;"
    first, second, third = (s for s in body(hidden) if isinstance(s, Instruction) and s.base == "mov")
    assert first.operands == third.operands != second.operands


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("add.s32 %r1, %r2\nadd.s32 %r1, %r2, 1;", 1, "unexpected `add.s32`"),
        ("add.s32 %r1, %r2\n  @%p1 ret;", 3, "unexpected `@`"),
        ("add.s32 %r1, %r2\n.loc\t1 2 3", 1, "unknown or misplaced directive `.loc`"),
    ],
)
def test_what_is_unexpected_is_its_first_part(text: str, column: int, message: str) -> None:
    with pytest.raises(PtxError) as caught:
        body(text)
    (diagnostic,) = caught.value.diagnostics
    assert message in diagnostic.message
    assert diagnostic.place is not None
    assert diagnostic.place.position.column == column
