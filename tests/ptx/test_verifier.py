"""The verifier: each rule broken once, and its twin that keeps the rule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cccopt.ptx.errors import PtxError
from cccopt.ptx.ir import Close, Instruction, Module, Open, Register, SpecialRegister
from cccopt.ptx.parser import parse
from cccopt.ptx.verifier import verify

DECLARED = """
.version 8.0
.target sm_90
.address_size 64
.global .align 4 .u32 word;
.entry k (.param .u64 p)
{
.reg .pred %p<4>;
.reg .b16 %h<4>;
.reg .b32 %r<6>;
.reg .b64 %rd<4>;
.reg .b128 %q<2>;
L:
"""

WRONG = [
    ("add.s32 %r1, %r2, %r9;", "CCC006", "undeclared register `%r9`", "add.s32 %r1, %r2, %r5;"),
    ("@q bra L;", "CCC006", "undeclared register `q`", "@%p1 bra L;"),
    ("mov.u32 %r1, %tid.q;", "CCC006", "undeclared special register `%tid`", "mov.u32 %r1, %tid.x;"),
    ("mov.u32 %r1, %r2.x;", "CCC008", "`%r2` is not a vector", "{ .reg .v4 .u32 v; mov.u32 %r1, v.x; }"),
    ("mov.u32 %r1, %fancy;", "CCC006", "undeclared register `%fancy`", "mov.u32 %r1, %laneid;"),
    ("bra M;", "CCC006", "undefined label `M`", "bra L;"),
    ("{ M: ret; } bra M;", "CCC006", "undefined label `M`", "{ M: bra M; }"),
    ("t: .branchtargets L, M;", "CCC006", "undeclared name `M`", "t: .branchtargets L, L;"),
    ("brx.idx %r1, L;", "CCC006", "no `.branchtargets`", "t: .branchtargets L, L; brx.idx %r1, t;"),
    ("ld.global.u32 %r1, [words];", "CCC006", "undeclared name `words`", "ld.global.u32 %r1, [word];"),
    ("call f;", "CCC006", "undeclared name `f`", "call k;"),
    ("{ .reg .b32 x; } mov.u32 x, 1;", "CCC006", "undeclared name `x`", "{ .reg .b32 x; mov.u32 x, 1; }"),
    ("L: ret;", "CCC007", "label `L` is defined twice", "{ L: ret; }"),
    (".reg .b32 %r<2>;", "CCC007", "`%r0` is declared twice", "{ .reg .b32 %r<2>; }"),
    (".shared .b32 p;", "CCC007", "`p` is declared twice", ".shared .b32 s;"),
    (
        "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p1, %q1;",
        "CCC008",
        "requires PTX 8.6 and `sm_100`",
        "elect.sync _|%p1, -1;",
    ),
    ("add.s32 %r1, %r2;", "CCC008", "takes 3 operands, not 2", "add.s32 %r1, %r2, 1;"),
    ("ret 1, 2;", "CCC008", "takes 0 operands, not 2", "ret;"),
    ("setp.eq.s32 %p1, %r1, 0, %p2, %p3;", "CCC008", "takes 3 to 4", "setp.eq.and.s32 %p1, %r1, 0, %p2;"),
    ("@%r1 bra L;", "CCC008", "guard `%r1` is not a predicate", "@!%p1 bra L;"),
    (
        "setp.eq.s32 %r1, %r2, 0;",
        "CCC008",
        "`.b32` register `%r1` where a predicate",
        "setp.eq.s32 %p1, %r2, 0;",
    ),
    ("setp.eq.s32 %p1|%r1, %r2, 0;", "CCC008", "register `%r1` where a pred", "setp.eq.s32 %p1|%p2, %r2, 0;"),
    ("mov.b32 %r1, %p1;", "CCC008", "`.pred` register `%p1` where a `.b32`", "mov.pred %p2, %p1;"),
    (
        "add.s32 %r1, %r2, %rd1;",
        "CCC008",
        "`%rd1` is 64 bits wide, `.s32` is 32",
        "add.s64 %rd1, %rd2, %rd1;",
    ),
    ("mov.u32 %r1, %h1;", "CCC008", "`%h1` is 16 bits wide", "mov.u16 %h1, %h2;"),
    ("mul.wide.s32 %r1, %r2, 4;", "CCC008", "`%r1` is 32 bits wide, `.s64`", "mul.wide.s32 %rd1, %r2, 4;"),
    ("ld.global.u64 %r1, [%rd1];", "CCC008", "`%r1` is 32 bits wide", "ld.global.u8 %r1, [%rd1];"),
    ("cvt.u16.u32 %h1, %h2;", "CCC008", "`%h2` is 16 bits wide", "cvt.u16.u32 %r1, %r2;"),
    ("mov.b64 {%r1, %h1}, %rd1;", "CCC008", "48 bits are packed into `.b64`", "mov.b64 {%r1, %r2}, %rd1;"),
    ("mov.b64 %rd1, {%r1, %p1};", "CCC008", "33 bits are packed into `.b64`", "mov.b128 %q0, {%rd1, %rd2};"),
    ("mov.u32 5, %r1;", "CCC008", "`5` cannot be written", "mov.u32 %r1, 5;"),
    ("mov.u32 %tid.x, 1;", "CCC008", "`%tid.x` cannot be written", "mov.u32 %r1, 1;"),
    ("bra 5;", "CCC008", "`5` is not a label", "bra.uni L;"),
    ("bra %r1;", "CCC006", "undefined label `%r1`", "{ %r1: bra %r1; }"),
]


def module(line: str) -> Module:
    return parse(f"{DECLARED}{line}\nret;\n}}")


@pytest.mark.parametrize(("line", "code", "message", "right"), WRONG, ids=[row[0] for row in WRONG])
def test_rules(line: str, code: str, message: str, right: str) -> None:
    with pytest.raises(PtxError) as caught:
        verify(module(line), "x.ptx")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == code
    assert message in diagnostic.message
    assert "of `k`" in diagnostic.message
    assert diagnostic.place is not None
    assert (diagnostic.place.file, diagnostic.place.position.line) == ("x.ptx", 14)
    verify(module(right))


def test_unbalanced_scopes() -> None:
    (function,) = module("").functions()
    assert function.body is not None
    for extra, message in ((Open(), "without its `}`"), (Close(), "without its `{`")):
        broken = replace(function, body=(*function.body, extra))
        with pytest.raises(PtxError, match=message):
            verify(Module((*module("").items[:-1], broken)))


def test_nodes_made_by_hand() -> None:
    (function,) = module("").functions()
    assert function.body is not None
    made = Instruction("mov.u32", (Register("%r1"), SpecialRegister("%nothing")))
    with pytest.raises(PtxError, match="unknown special register `%nothing`"):
        verify(Module((replace(function, body=(*function.body, made)),)))


def test_two_definitions_of_a_function() -> None:
    with pytest.raises(PtxError, match="`f` is defined twice"):
        verify(parse(".func f () { ret; } .func f () { ret; }"))
    verify(parse(".func f (); .func f () { ret; }"))


def test_unknown_opcodes_are_left_alone() -> None:
    verify(module("frobnicate.b32 %r1, %p1, [%rd1];"))


@pytest.mark.parametrize(
    ("head", "accepted"),
    [
        (".version 7.0\n.target sm_80", True),
        (".version 7.0\n.target sm_80, debug", True),
        (".version 10.2\n.target sm_103a", True),
        (".version 6.9\n.target sm_80", False),
        (".version 7.0\n.target sm_75", False),
        (".target sm_75\n.version 9.0", False),
        (".version 9.0", True),
        ("", True),
    ],
)
def test_an_instruction_is_not_younger_than_its_module(head: str, accepted: bool) -> None:
    module = parse(head + "\n.func f()\n{\n.reg .b32 %r<2>;\nredux.sync.add.s32 %r0, %r1, -1;\n}\n")
    if accepted:
        verify(module)
    else:
        with pytest.raises(PtxError, match=r"requires PTX 7\.0 and `sm_80` in `redux"):
            verify(module)


SHARED = """.version 9.0
.target sm_90
.address_size 64
.global .u32 {name};
.entry k() {{ .reg .b64 %r1; mov.u64 %r1, {name}; ret; }}
"""


def test_functions_of_a_module_that_passed_are_not_looked_at_again() -> None:
    good = parse(SHARED.format(name="a"))
    *around, variable, kernel = good.items
    verify(good, before=good)
    # What a function names lies around it.
    with pytest.raises(PtxError, match="undeclared name `a`"):
        verify(Module((*around, replace(variable, name="b"), kernel)), before=good)
    body = (*kernel.body[:1], Instruction("ret", (Register("%r9"),)))
    with pytest.raises(PtxError, match="takes 0 operands"):
        verify(Module((*around, variable, replace(kernel, body=body))), before=good)
