"""Loop-invariant uses and the slices that rebuild them, in a loop as nvcc writes it."""

from __future__ import annotations

import pytest

from cccopt.analysis.cfg import build
from cccopt.analysis.invariance import LoopInvariance, rematerialization_slice
from cccopt.analysis.loops import loops
from cccopt.analysis.reaching import reaching_definitions

from .kernels import device_function, find, kernel

LOOP = """
    ld.param.u32 %r9, [n];
    ld.param.u64 %rd7, [a];
    mov.u32 %r1, %tid.x;
    @%p1 mov.u32 %r8, 3;
LOOP:
    {line}
    st.global.u32 [%rd20], {used};
    add.s32 %r1, %r1, 1;
    setp.lt.s32 %p5, %r1, %r9;
    @%p5 bra LOOP;
    ret;
"""


def ask(line, used="%r2", make=kernel):
    """(invariant?, slice as opcodes or None) of ``used`` at the store behind ``line`` in a loop."""
    function = make(LOOP.format(line=line, used=used))
    cfg = build(function.body)
    reaching = reaching_definitions(cfg, function.body)
    (loop,) = loops(cfg)
    store = find(function, "st.global.u32 [%rd20]")
    found = rematerialization_slice(function, reaching, store, used)
    opcodes = None if found is None else [function.body[index].opcode for index in found]
    return LoopInvariance(function, reaching, loop.blocks).holds(store, used), opcodes


@pytest.mark.parametrize(
    ("line", "opcodes"),
    [
        ("mov.u32 %r2, 5;", ["mov.u32"]),
        ("mov.u32 %r2, %nctaid.x;", ["mov.u32"]),
        ("mov.u32 %r2, %tid.x;", ["mov.u32"]),
        ("ld.param.u32 %r2, [n];", ["ld.param.u32"]),
        ("add.s32 %r2, %r9, 1;", ["ld.param.u32", "add.s32"]),
        ("mov.u32 %r3, %ntid.x; mul.lo.s32 %r2, %r9, %r3;", ["ld.param.u32", "mov.u32", "mul.lo.s32"]),
        (
            "cvta.to.global.u64 %rd1, %rd7; cvt.u32.u64 %r2, %rd1;",
            ["ld.param.u64", "cvta.to.global.u64", "cvt.u32.u64"],
        ),
        ("add.s32 %r3, %r9, 1; add.s32 %r2, %r3, %r3;", ["ld.param.u32", "add.s32", "add.s32"]),
    ],
)
def test_invariant_and_rebuilt(line, opcodes):
    assert ask(line) == (True, opcodes)


@pytest.mark.parametrize(
    "line",
    [
        "ld.global.nc.u32 %r2, [%rd7];",  # an address that was checked before the load only
        "ld.const.u32 %r2, [%rd7];",
        "add.s32 %r2, %r30, 1;",  # nothing wrote %r30
        "add.s32 %r2, %r8, 1;",  # written under a guard, but outside
    ],
)
def test_invariant_but_not_to_be_rebuilt(line):
    assert ask(line) == (True, None)


@pytest.mark.parametrize(
    "line",
    [
        "add.s32 %r2, %r1, 1;",  # the counter
        "add.s32 %r2, %r2, 1;",
        "mov.u32 %r2, %clock;",
        "ld.global.u32 %r2, [%rd7];",
        "ld.volatile.global.u32 %r2, [%rd7];",
        "atom.global.add.u32 %r2, [%rd7], 1;",
        "@%p1 mov.u32 %r2, 5;",
        "mov.u32 %r2, 5; @%p1 mov.u32 %r2, 6;",
        "shfl.sync.idx.b32 %r2, %r9, 0, 31, -1;",
        "mystery.u32 %r2, %r9;",
        "{ .param .b32 back; ld.param.u32 %r2, [back]; }",
        "add.cc.u32 %r2, %r9, 1;",
    ],
)
def test_neither_invariant_nor_rebuilt(line):
    assert ask(line) == (False, None)


def test_values_from_outside_are_invariant_whatever_made_them():
    assert ask("", used="%r9") == (True, ["ld.param.u32"])
    assert ask("", used="%r8") == (True, None)
    assert ask("", used="%r1") == (False, None)


def test_a_device_functions_parameter_is_invariant_for_its_thread():
    assert ask("ld.param.u32 %r2, [n];", make=device_function) == (True, ["ld.param.u32"])


def test_a_slice_stops_at_what_is_available():
    function = kernel(LOOP.format(line="mul.lo.s32 %r3, %r9, 2; mad.lo.s32 %r2, %r1, %r3, %r8;", used="%r2"))
    cfg = build(function.body)
    reaching = reaching_definitions(cfg, function.body)
    store = find(function, "st.global.u32 [%rd20]")
    found = rematerialization_slice(
        function, reaching, store, "%r2", lambda definition, register: register in ("%r1", "%r8")
    )
    assert found is None  # %r8 may be unwritten, so no definition gives it for sure
    found = rematerialization_slice(
        function, reaching, find(function, "mad"), "%r3", lambda definition, register: register == "%r9"
    )
    assert found == (find(function, "mul"),)
    assert rematerialization_slice(function, reaching, store, "%r9", lambda *_: True) == ()


def test_a_register_that_is_written_twice_in_a_slice_is_not_rebuilt():
    function = kernel("mov.u32 %r1, 1; add.s32 %r2, %r1, 1; add.s32 %r1, %r2, 1; add.s32 %r3, %r1, %r2;")
    reaching = reaching_definitions(build(function.body), function.body)
    assert rematerialization_slice(function, reaching, find(function, "add.s32 %r3"), "%r1") is None
    assert rematerialization_slice(function, reaching, find(function, "add.s32 %r3"), "%r2") is not None


def test_long_chains_are_followed():
    chain = "mov.u32 %r2, %r9;\n" + "\n".join(f"add.s32 %r{3 + i % 2}, %r{2 + i % 2}, 1;" for i in range(2))
    many = "mov.u32 %r2, 1;\n" + "\n".join("add.s32 %r2, %r2, %r2;" for _ in range(1500))
    assert ask(chain, used="%r4")[0]
    assert ask(many) == (True, None)
