"""Roles, types and effects of single instructions, with the expected answers written out."""

from __future__ import annotations

import pytest

from cccopt.ptx.ir import (
    Function,
    Instruction,
    Literal,
    Register,
    RegisterDeclaration,
    RegisterNames,
    Statement,
)
from cccopt.ptx.isa import (
    Control,
    Memory,
    Role,
    callee_of,
    definitions,
    facts,
    is_conditional_write,
    reads,
    register_types,
    rename,
    targets,
    width,
)
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_statement

DEF, USE, ADDRESS, LABEL, NAME = Role.DEF, Role.USE, Role.ADDRESS, Role.LABEL, Role.NAME


def body(*lines: str) -> tuple[Statement, ...]:
    module = parse("\n".join([".version 8.0", ".target sm_90", ".entry k ()", "{", *lines, "}"]))
    (function,) = module.functions()
    assert function.body is not None
    return function.body


def instruction(line: str) -> Instruction:
    (statement,) = body(line)
    assert isinstance(statement, Instruction)
    return statement


def names(registers: tuple[object, ...]) -> str:
    return " ".join(getattr(r, "name") for r in registers)  # noqa: B009


# Each row: the instruction, what it writes, what it reads.
DATA_FLOW = [
    ("add.s32 %r1, %r2, %r3;", "%r1", "%r2 %r3"),
    ("@%p1 add.s32 %r1, %r2, 4;", "%r1", "%p1 %r2"),
    ("mov.u32 %r1, %tid.x;", "%r1", "%tid.x"),
    ("setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p3;", "%p1 %p2", "%r1 %r2 %p3"),
    ("setp.eq.s32 %p1|_, %r1, %r1;", "%p1", "%r1"),
    ("ld.global.v2.f32 {%f1, _}, [%rd1+8];", "%f1", "%rd1"),
    ("st.shared.v2.b32 [%r1], {%r2, %r3};", "", "%r1 %r2 %r3"),
    ("st.local.u32 [scratch+4], %r2;", "", "%r2"),
    ("mov.b64 {%r1, %r2}, %rd1;", "%r1 %r2", "%rd1"),
    ("mov.b64 %rd1, {%r1, %r2};", "%rd1", "%r1 %r2"),
    ("atom.global.cas.b32 %r1, [%rd1], %r2, %r3;", "%r1", "%rd1 %r2 %r3"),
    ("red.shared.add.u32 [%r1], %r2;", "", "%r1 %r2"),
    ("shfl.sync.up.b32 %r1|%p1, %r2, 1, 0, -1;", "%r1 %p1", "%r2"),
    ("vote.sync.ballot.b32 %r1, !%p1, %r2;", "%r1", "%p1 %r2"),
    ("elect.sync _|%p1, %r2;", "%p1", "%r2"),
    ("selp.b32 %r1, %r2, %r3, %p1;", "%r1", "%r2 %r3 %p1"),
    ("bfi.b32 %r1, %r2, %r3, %r4, %r5;", "%r1", "%r2 %r3 %r4 %r5"),
    ("bar.red.popc.u32 %r1, 0, %p1;", "%r1", "%p1"),
    ("bar.sync %r1, %r2;", "", "%r1 %r2"),
    ("@!%p1 bra L;", "", "%p1"),
    ("brx.idx %r1, table;", "", "%r1"),
    ("call.uni (%r1), f, (%r2, 3, param0);", "%r1", "%r2"),
    ("call (retval0), %rd1, (param0), prototype;", "", "%rd1"),
    ("call f, (%r2);", "", "%r2"),
    ("cp.async.ca.shared.global [%r1], [%rd1], 16, %r2;", "", "%r1 %rd1 %r2"),
    ("tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1, %r2}];", "%f1 %f2 %f3 %f4", "%rd1 %r1 %r2"),
    ("mbarrier.arrive.expect_tx.shared.b64 _, [%r1], %r2;", "", "%r1 %r2"),
    ("mbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2;", "%p1", "%r1 %r2"),
    ("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%f1}, {%r1}, {%r2}, {%f3};", "%f1", "%r1 %r2 %f3"),
    ("vadd.s32.u32.s32 %r1, %r2.b0, %r3.h1;", "%r1", "%r2 %r3"),
    ("vadd.s32.u32.s32 %r1.b2, %r2, %r3, %r4;", "%r1", "%r1 %r2 %r3 %r4"),
    ("add.cc.u32 %r1, %r2, %r3;", "%r1", "%r2 %r3"),
    # Not in the table: all that is named may be read and written, but for addresses.
    ("frobnicate.b32 %r1, [%rd1], {%r2};", "%r1 %r2", "%r1 %rd1 %r2"),
]


@pytest.mark.parametrize(("line", "written", "read"), DATA_FLOW, ids=[row[0] for row in DATA_FLOW])
def test_data_flow(line: str, written: str, read: str) -> None:
    assert (names(definitions(instruction(line))), names(reads(instruction(line)))) == (written, read)


@pytest.mark.parametrize(
    ("line", "roles", "types"),
    [
        ("mul.wide.s32 %rd1, %r1, 4;", (DEF, USE, USE), ("s64", "s32", "s32")),
        ("mad.wide.u16 %r1, %h1, %h2, %r2;", (DEF, USE, USE, USE), ("u32", "u16", "u16", "u32")),
        ("cvt.rn.f32.s64 %f1, %rd1;", (DEF, USE), ("f32", "s64")),
        ("cvt.rn.f16x2.f32 %r1, %f1, %f2;", (DEF, USE, USE), ("f16x2", "f32", "f32")),
        ("set.lt.u32.f32 %r1, %f1, %f2;", (DEF, USE, USE), ("u32", "f32", "f32")),
        ("shl.b64 %rd1, %rd2, %r1;", (DEF, USE, USE), ("b64", "b64", "u32")),
        ("ld.param.u64 %rd1, [p];", (DEF, ADDRESS), ("u64", None)),
        ("bra.uni L;", (LABEL,), (None,)),
        ("call (r), f, (a);", (DEF, NAME, USE), (None, None, None)),
        ("lop3.or.b32 %r1|%p1, %r2, %r3, %r4, 3, %p2;", (DEF, *[USE] * 5), (*["b32"] * 4, None, "pred")),
    ],
)
def test_roles_and_types(line: str, roles: tuple[Role, ...], types: tuple[str | None, ...]) -> None:
    told = facts(instruction(line))
    assert (told.roles, told.types) == (roles, types)


@pytest.mark.parametrize(
    ("line", "memory", "space", "synchronises"),
    [
        ("ld.global.nc.f32 %f1, [%rd1];", Memory.LOAD, "global", False),
        ("ld.u32 %r1, [%rd1];", Memory.LOAD, "generic", False),
        ("ld.shared::cta.u32 %r1, [%r2];", Memory.LOAD, "shared", False),
        ("ld.volatile.global.u32 %r1, [%rd1];", Memory.LOAD, "global", True),
        ("ld.acquire.gpu.u32 %r1, [%rd1];", Memory.LOAD, "generic", True),
        ("ld.relaxed.gpu.global.u32 %r1, [%rd1];", Memory.LOAD, "global", False),
        ("st.release.cta.shared.u32 [%r1], %r2;", Memory.STORE, "shared", True),
        ("st.param.b32 [param0], %r1;", Memory.STORE, "param", False),
        ("atom.global.add.u32 %r1, [%rd1], 1;", Memory.ATOMIC, "global", False),
        ("atom.add.acq_rel.gpu.u32 %r1, [%rd1], 1;", Memory.ATOMIC, "generic", True),
        ("membar.gl;", Memory.NONE, None, True),
        ("bar.sync 0;", Memory.NONE, None, True),
        ("vote.sync.any.pred %p1, %p2, -1;", Memory.NONE, None, True),
        ("activemask.b32 %r1;", Memory.NONE, None, False),
        ("frobnicate;", Memory.ATOMIC, "generic", True),
    ],
)
def test_memory(line: str, memory: Memory, space: str | None, synchronises: bool) -> None:
    told = facts(instruction(line))
    assert (told.memory, told.space, told.synchronises) == (memory, space, synchronises)


def test_effects() -> None:
    assert facts(instruction("add.s32 %r1, %r2, 1;")).pure
    assert not facts(instruction("addc.s32 %r1, %r2, 1;")).pure  # reads the carry flag
    assert not facts(instruction("ld.global.u32 %r1, [%rd1];")).pure
    assert facts(instruction("mov.u32 %r1, %tid.x;")).pure
    assert not facts(instruction("mov.u32 %r1, %clock;")).pure
    assert facts(instruction("bar.sync 0;")).aligned
    assert not facts(instruction("barrier.sync 0;")).aligned
    assert facts(instruction("barrier.sync.aligned 0;")).aligned
    assert facts(instruction("shfl.sync.idx.b32 %r1, %r2, 0, 31, -1;")).convergent
    assert not facts(instruction("frobnicate;")).known
    assert not facts(instruction("add.s32 %r1, %r2;")).known  # too few operands: nothing is known
    controls = {
        "ret;": Control.RETURN,
        "exit;": Control.EXIT,
        "trap;": Control.TRAP,
        "bra L;": Control.BRANCH,
    }
    for line, control in controls.items():
        assert facts(instruction(line)).control is control


def test_slots_order() -> None:
    def slots(line: str) -> float:
        return facts(instruction(line)).slots

    assert slots("fma.rn.f32 %f1, %f2, %f3, %f4;") == 1
    assert slots("fma.rn.f64 %fd1, %fd2, %fd3, %fd4;") == 2
    assert slots("sin.approx.f32 %f1, %f2;") == 8
    assert slots("add.s64 %rd1, %rd2, 1;") > slots("add.s32 %r1, %r2, 1;")
    assert slots("div.s32 %r1, %r2, %r3;") > slots("mul.lo.s32 %r1, %r2, %r3;")


def test_conditional_write() -> None:
    assert is_conditional_write(instruction("@%p1 mov.u32 %r1, 0;"))
    assert not is_conditional_write(instruction("mov.u32 %r1, 0;"))
    assert not is_conditional_write(instruction("@%p1 bra L;"))
    assert not is_conditional_write(instruction("@%p1 st.global.u32 [%rd1], 0;"))


@pytest.mark.parametrize(
    ("line", "renamed"),
    [
        ("@%p1 add.s32 %r1, %r1, 4;", "@%q add.s32 %new, %old, 4;"),
        ("ld.global.v2.u32 {%r1, %r2}, [%r1+4];", "ld.global.v2.u32 {%new, %r2}, [%old+4];"),
        ("setp.ne.and.b32 %p1|%p2, %r1, 0, !%p1;", "setp.ne.and.b32 %pnew|%p2, %old, 0, !%q;"),
        ("mov.u32 %r3, %tid.x;", "mov.u32 %r3, 7;"),
        ("call (%r1), f, (%r1, %r2);", "call (%new), f, (%old, %r2);"),
        ("vset.u32.u32.ne %r2, %r1.b0, -%r1.h1;", "vset.u32.u32.ne %r2, %old.b0, -%old.h1;"),
    ],
)
def test_rename(line: str, renamed: str) -> None:
    uses = {"%r1": Register("%old"), "%p1": Register("%q"), "%tid.x": Literal("7")}
    new = {"%r1": Register("%new"), "%p1": Register("%pnew")}
    assert print_statement(rename(instruction(line), uses, new)).strip() == renamed
    assert rename(instruction(line), uses.get, new) == rename(instruction(line), uses, new)


def test_rename_refuses_what_cannot_stand() -> None:
    with pytest.raises(ValueError, match="only a register"):
        rename(instruction("@%p1 ret;"), {"%p1": Literal("1")}, {})
    with pytest.raises(ValueError, match="read and written"):
        rename(instruction("frobnicate %r1;"), {"%r1": Register("%r2")}, {})
    both = {"%r1": Register("%r2")}
    assert print_statement(rename(instruction("frobnicate %r1;"), both, both)) == "\tfrobnicate %r2;"


def test_register_types() -> None:
    declarations = (
        RegisterDeclaration(".b32", (RegisterNames("%r", 3), RegisterNames("x"))),
        RegisterDeclaration(".v4 .f32", (RegisterNames("v"),)),
    )
    function = Function("entry", "k", body=declarations)
    assert register_types(function) == {"%r0": "b32", "%r1": "b32", "%r2": "b32", "x": "b32", "v": "v4.f32"}


def test_width() -> None:
    assert [width(t) for t in ("pred", "u8", "f16x2", "b64", "b128", "v4.f32")] == [1, 8, 32, 64, 128, 128]


def test_targets() -> None:
    statements = body("table: .branchtargets A, B;", "A: brx.idx %r1, table;", "B: bra A;", "ret;")
    found = [targets(s, statements) for s in statements if isinstance(s, Instruction)]
    assert found == [("A", "B"), ("A",), ()]


def test_callee() -> None:
    """A call by a pointer names what it may lead to: that is no function, whatever its name."""
    direct = body("call f;", "call.uni f, ();", "call (r), f;", "call (r), f, (a);")
    assert [callee_of(s) for s in direct if isinstance(s, Instruction)] == ["f"] * 4
    table = "f: .callprototype (.param .b32 _) _ (.param .b32 _);"
    by_pointer = body(table, "call %rd1, (), f;", "call (r), %rd1, (a), f;")
    assert [callee_of(s) for s in by_pointer if isinstance(s, Instruction)] == [None] * 2
