"""Which calls through pointers become direct, and which are left."""

from __future__ import annotations

import pytest

from cccopt.ptx.call_promotion import MOST, promoted
from cccopt.ptx.ir import Function, Instruction, Module, Symbol
from cccopt.ptx.isa import callee_of, is_indirect_call
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from cccopt.ptx.verifier import verify

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
ONE = ".func (.param .b32 r) {name}(.param .b32 x) {{ ret; }}\n"
TABLE = ".global .align 8 .u64 table[{count}] = {{{names}}};\n"
CALL = """
{
.param .b32 param0;
st.param.b32 [param0], %r1;
.param .b32 retval0;
proto : .callprototype (.param .b32 _) _ (.param .b32 _);
GUARD call (retval0), %rd1, (param0), proto;
ld.param.b32 %r2, [retval0];
}
"""
KERNEL = """.visible .entry k(.param .u64 p)
{{
.reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<2>;
ld.param.u64 %rd1, [p];
{calls}
ret;
}}
"""


def module(*names: str, call: str = CALL, functions: str = "", others: str = "") -> Module:
    """A kernel that calls one of the functions ``names``, which are in a table; `functions` are in none."""
    made = functions + "".join(ONE.format(name=name) for name in names)
    table = TABLE.format(count=len(names), names=", ".join(names)) if names else ""
    return parse(HEAD + made + table + others + KERNEL.format(calls=call.replace("GUARD", "")))


def calls(made: Module) -> list[str | None]:
    kernel = next(f for f in made.functions() if f.name == "k")
    return [callee_of(s) for s in kernel.body or () if isinstance(s, Instruction) and s.base == "call"]


def test_each_target_is_called_by_name() -> None:
    made = promoted(module("f", "g"))
    assert calls(made) == ["f", "g"]
    text = print_module(made)
    verify(parse(text))
    assert text.count("trap;") == 1
    assert "callprototype" not in text


def test_two_calls_have_labels_and_registers_of_their_own() -> None:
    twice = CALL + CALL.replace("proto ", "other ").replace(" proto;", " other;")
    made = promoted(module("f", "g", call=twice))
    assert calls(made) == ["f", "g", "f", "g"]
    verify(parse(print_module(made)))
    named = promoted(module("f", call="$callee_1: .reg .b32 %callee_2; " + CALL))
    assert calls(named) == ["f"]
    verify(parse(print_module(named)))


def test_a_target_has_the_shape_of_the_call_and_an_address_that_is_taken() -> None:
    wide = ".func (.param .b64 r) wide(.param .b32 x) { ret; }\n"
    more = ".func (.param .b32 r) more(.param .b32 x, .param .b32 y) { ret; }\n"
    made = module(
        "f",
        functions=wide + more + ONE.format(name="never_named"),
        others=".global .align 8 .u64 others[2] = {wide, more};\n",
    )
    assert calls(promoted(made)) == ["f"]


def test_an_address_may_be_taken_in_code() -> None:
    made = module("f", functions=ONE.format(name="g"), call="mov.u64 %rd2, g;" + CALL)
    assert sorted(name for name in calls(promoted(made)) if name) == ["f", "g"]
    # A direct call takes none.
    direct = "{ .param .b32 a; .param .b32 b; call (b), g, (a); }"
    made = module("f", functions=ONE.format(name="g"), call=direct + CALL)
    assert calls(promoted(made)) == ["g", "f"]


LEFT = {
    "no target": module(),
    "too many": module(*(f"f{i}" for i in range(MOST + 1))),
    "visible": module("f", functions=".visible " + ONE.format(name="g")),
    "weak": module("f", functions=".weak " + ONE.format(name="g")),
    "external": module("f", functions=".extern .func g(.param .b32 x);\n"),
    "alias": module(
        "f", functions=ONE.format(name="g"), others=".func (.param .b32 r) h(.param .b32 x);\n.alias h, g;\n"
    ),
    "guarded": module("f", call=CALL.replace("GUARD", "@%p1")),
    "no scope": module(
        "f",
        call="q : .callprototype (.param .b32 _) _ (.param .b32 _);"
        " .param .b32 a; .param .b32 b; call (b), %rd1, (a), q;",
    ),
}


@pytest.mark.parametrize("why", LEFT)
def test_what_is_not_known_is_left(why: str) -> None:
    made = promoted(LEFT[why])
    assert made == LEFT[why]
    assert any(is_indirect_call(s) for f in made.functions() for s in f.body or ())


def test_system_calls_are_no_other_code() -> None:
    made = module("f", functions=".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n")
    assert calls(promoted(made)) == ["f"]


def test_other_functions_call_too() -> None:
    inner = (
        ".func (.param .b32 r) outer(.param .b32 x) { .reg .b32 %r<3>; .reg .b64 %rd<2>;"
        + CALL.replace("GUARD", "")
        + "ret; }\n"
    )
    made = promoted(module("f", functions=inner))
    outer = next(f for f in made.functions() if isinstance(f, Function) and f.name == "outer")
    named = [
        o for s in outer.body or () if isinstance(s, Instruction) and s.base == "call" for o in s.operands
    ]
    assert Symbol("f") in named
