"""Constant expressions: their values, written out, and what has none."""

from __future__ import annotations

import pytest

from cccopt.ptx.constants import with_constants
from cccopt.ptx.errors import PtxError
from cccopt.ptx.ir import Address, Expression, Instruction, Literal, Module, Variable
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module, print_operand


def operand(text: str) -> object:
    (function,) = parse(f".entry k () {{\nmov.u64 %rd1, {text}; }}").functions()
    assert function.body is not None
    (statement,) = function.body
    assert isinstance(statement, Instruction)
    return statement.operands[1]


def folded(text: str) -> str:
    """The literal that stands for ``text`` behind `with_constants`."""
    (function,) = with_constants(parse(f".entry k () {{ mov.u64 %rd1, {text}; }}")).functions()
    assert function.body is not None
    (statement,) = function.body
    assert isinstance(statement, Instruction)
    return print_operand(statement.operands[1])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(1+2)*3", 9),
        ("1+2*3", 7),
        ("10-4-3", 3),
        ("017+0x10+0b11U", 34),
        ("1<<4|3", 19),
        ("5>>1^7&2", 0),
        ("-7/2", -3),
        ("-7 % 3", -1),
        ("~5", -6),
        ("!0 + !7", 1),
        ("-(-5)", 5),
        ("- - 5", 5),
        ("1 - - -5 * 2", -9),
        ("-WARP_SZ", -32),
        ("+7", 7),
        ("1 ? 2 : 3", 2),
        ("0 ? 2 : 0 ? 3 : 4", 4),
        ("1<2 && 3>=4 || 2!=2", 0),
        ("3>2 == 1", 1),
        ("WARP_SZ*2-1", 63),
        ("(.u64)-1", 2**64 - 1),
        ("(.s64)0xFFFFFFFFFFFFFFFF", -1),
        ("(.u64)-8 / 2", 2**63 - 4),
        ("-8 >> 1", -4),
        ("(.u64)-8 >> 1", 2**63 - 4),
        ("-1 < 1U", 0),
        ("0x8000000000000000 > 0 ? 1 : 2", 1),
        ("(.s64)2.9", 2),
        ("1.5 < 2", 1),
        ("1 << 64", 0),
    ],
)
def test_values(text: str, value: int) -> None:
    assert isinstance(operand(text), Expression)
    assert folded(text) == str(value)


def test_floats() -> None:
    assert folded("1.0+0.5") == "0d3FF8000000000000"
    assert folded("0f3F800000*-3") == "0dC008000000000000"


def test_plain_numbers_are_literals() -> None:
    assert [operand(t) for t in ("5", "- 5", "0x1U")] == [Literal("5"), Literal("-5"), Literal("0x1U")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1/0", "division by zero"),
        ("1.0 << 2", "takes integers"),
        ("~1.5", "takes an integer"),
        ("1 ? 2", "ends too early"),
        ("1 ? 2 + 3", "ends too early"),
        ("1 : 2", "unexpected `:`"),
        ("(%r1)+1", "cannot hold this operand"),
        ("(1, 2)+1", "cannot hold this operand"),
        ("08+1", "not a constant expression"),
        ("(" * 5000 + "1" + ")" * 5000, "nested too deeply"),
    ],
)
def test_what_has_no_value(text: str, message: str) -> None:
    with pytest.raises(PtxError, match=message) as caught:
        operand(text)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "CCC001"
    assert diagnostic.place is not None
    assert diagnostic.place.position.line == 2


def test_everywhere() -> None:
    text = """.global .u64 a[3] = {1+1, b+(2*2), generic(b)+(2*3)};
    .entry k () { .local .b32 c; ld.v2.u32 {%r1, %r2}, [%rd1+(1+3)]; st.v2.u32 [b+1+4], {1+5, 3}; call f, (1+6); }
    """
    module = with_constants(parse(text))
    assert with_constants(module) == module
    printed = print_module(module)
    for left in ("{2, b+4, generic(b)+6}", "[%rd1+4]", "[b+5], {6, 3}", "f, (7)"):
        assert left in printed
    assert parse(printed) == module


def test_an_address_may_be_a_sum() -> None:
    (function,) = parse(".entry k () { ld.local.u32 %r1, [8+4]; }").functions()
    assert function.body is not None
    (load,) = function.body
    assert isinstance(load, Instruction)
    assert load.operands[1] == Address(Literal("8"), Literal("4"))


def test_variables_keep_their_spelling() -> None:
    module = parse(".global .u32 a = (1+2)*3;")
    assert tuple(module.items) == (Variable("global", ".u32", "a", initializer=module.items[0].initializer),)  # type: ignore[union-attr]
    assert "( 1 + 2 ) * 3" in print_module(Module(module.items))
