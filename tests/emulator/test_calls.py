"""Device functions: arguments and results by `.param` and by register, recursion, divergent calls, -O0 code."""

from __future__ import annotations

import numpy as np
import pytest

from cccopt.emulator import EmulatorError, emulate
from tests.emulator.kernels import kernel, run

SHUFFLES = pytest.mark.parametrize("shuffle", [None, 1, 7])


def call(function: str, argument: str, result: str) -> str:
    """The sequence that nvcc writes for a call of one argument and result."""
    return f"""{{
    .reg .b32 temp_param_reg; .param .b32 param0; st.param.b32 [param0+0], {argument}; .param .b32 retval0;
    call.uni (retval0), {function}, (param0);
    ld.param.b32 {result}, [retval0+0];
    }}"""


TRIANGLE = """
.func (.param .b32 func_retval0) triangle(.param .b32 triangle_param_0)
{
    .reg .pred %p<3>; .reg .b32 %r<9>;
    ld.param.u32 %r1, [triangle_param_0];
    mov.u32 %r2, 0;
    setp.eq.s32 %p1, %r1, 0;
    @%p1 bra OUT;
    add.s32 %r3, %r1, -1;
    CALL
    add.s32 %r2, %r4, %r1;
OUT: st.param.b32 [func_retval0+0], %r2;
    ret;
}
""".replace("CALL", call("triangle", "%r3", "%r4"))


@SHUFFLES
def test_recursion_to_depths_that_differ(shuffle: int | None) -> None:
    body = f"rem.u32 %r4, %r0, 21; {call('triangle', '%r4', '%r5')} st.global.u32 [%rd2], %r5;"
    out, profile = run(body, module=TRIANGLE, block=48, grid=2, shuffle=shuffle)
    assert out.tolist() == [(k := i % 21) * (k + 1) // 2 for i in range(96)]
    if shuffle is None:
        stores = [c for (name, _), c in profile.issues.items() if name == "k"]
        assert {(c.warps, c.lanes) for c in stores} == {(4, 96)}


def test_recursion_that_does_not_end() -> None:
    body = f"mov.u32 %r4, -1; {call('triangle', '%r4', '%r5')}"
    with pytest.raises(EmulatorError, match="calls are nested more deeply"):
        run(body, module=TRIANGLE)


FIBONACCI = """
.func (.param .b32 func_retval0) fib(.param .b32 fib_param_0)
{
    .reg .pred %p<3>; .reg .b32 %r<9>; .local .align 4 .b8 kept[8];
    ld.param.u32 %r1, [fib_param_0];
    st.local.u32 [kept+4], %r1;
    setp.lt.s32 %p1, %r1, 2;
    @%p1 bra SMALL;
    add.s32 %r3, %r1, -1;
    FIRST
    ld.local.u32 %r6, [kept+4]; add.s32 %r3, %r6, -2;
    SECOND
    add.s32 %r1, %r4, %r5;
SMALL: st.param.b32 [func_retval0+0], %r1;
    ret;
}
""".replace("FIRST", call("fib", "%r3", "%r4")).replace("SECOND", call("fib", "%r3", "%r5"))


@SHUFFLES
def test_each_depth_has_registers_and_local_memory_of_its_own(shuffle: int | None) -> None:
    body = f"and.b32 %r4, %r3, 7; {call('fib', '%r4', '%r5')} st.global.u32 [%rd2], %r5;"
    out, _ = run(body, module=FIBONACCI, shuffle=shuffle)
    assert out.tolist() == [0, 1, 1, 2, 3, 5, 8, 13] * 4


@SHUFFLES
def test_calls_from_both_sides_of_a_branch_and_under_a_guard(shuffle: int | None) -> None:
    module = """
.func (.param .b32 func_retval0) scale(.param .b32 scale_param_0, .param .align 8 .b8 scale_param_1[16])
{
    .reg .b32 %r<9>; .reg .b64 %rd<3>; .reg .pred %p<2>;
    ld.param.u32 %r1, [scale_param_0]; ld.param.u32 %r2, [scale_param_1+12];
    mul.lo.u32 %r3, %r1, %r2; st.param.b32 [func_retval0+0], %r3;
    setp.gt.u32 %p1, %r1, 20; @%p1 ret;
    add.u32 %r3, %r3, 1; st.param.b32 [func_retval0+0], %r3;
    ret;
}
"""

    def scaled(factor: int, guard: str = "") -> str:
        return f"""{{
        .param .b32 param0; .param .align 8 .b8 param1[16]; .param .b32 retval0;
        st.param.b32 [param0+0], %r3; st.param.v2.b32 [param1+8], {{%r3, {factor}}};
        {guard} call (retval0), scale, (param0, param1);
        ld.param.b32 %r5, [retval0+0];
        }}"""

    body = f"""
    setp.lt.u32 %p1, %r3, 13; setp.gt.u32 %p2, %r3, 29; mov.u32 %r6, 0;
    @%p1 bra LOW;
    {scaled(10)} add.u32 %r6, %r6, %r5; bra JOIN;
LOW: {scaled(100)} add.u32 %r6, %r6, %r5;
JOIN: {scaled(1000, "@%p2")}
    @%p2 add.u32 %r6, %r6, %r5;
    st.global.u32 [%rd2], %r6;
    """
    out, _ = run(body, module=module, shuffle=shuffle)
    expected = [(100 if i < 13 else 10) * i + (i <= 20) + (1000 * i if i > 29 else 0) for i in range(32)]
    assert out.tolist() == expected


@SHUFFLES
def test_parameters_in_registers(shuffle: int | None) -> None:
    module = """
.func (.reg .b32 sum, .reg .b32 difference) both(.reg .b32 a, .reg .b32 b)
{ add.u32 sum, a, b; sub.u32 difference, a, b; ret; }
"""
    body = """
    mov.u32 %r4, 5; call (%r5, %r6), both, (%r3, %r4); mad.lo.u32 %r7, %r5, 1000, %r6;
    st.global.u32 [%rd2], %r7;
    """
    out, _ = run(body, module=module, shuffle=shuffle)
    assert out.view(np.int32).tolist() == [(i + 5) * 1000 + i - 5 for i in range(32)]


@SHUFFLES
def test_lanes_that_exit_inside_a_function(shuffle: int | None) -> None:
    module = ".func leave(.param .b32 p) { .reg .b32 %r<2>; .reg .pred %p<2>; ld.param.u32 %r1, [p];" \
             " setp.lt.u32 %p1, %r1, 9; @%p1 exit; ret; }\n"  # fmt: skip
    body = """
    { .param .b32 param0; st.param.b32 [param0+0], %r3; call.uni leave, (param0); }
    setp.eq.u32 %p1, %r3, %r3; vote.sync.ballot.b32 %r4, %p1, 0xffffffff; st.global.u32 [%rd2], %r4;
    """
    out, _ = run(body, module=module, shuffle=shuffle)
    assert out.tolist() == [0] * 9 + [0xFFFFFE00] * 23


def test_functions_that_cannot_be_followed() -> None:
    with pytest.raises(EmulatorError, match="indirect call"):
        run(
            "mov.u64 %rd3, f; PROTO: .callprototype _ (); call %rd3, (), PROTO;",
            module=".func f() { ret; }\n",
        )
    with pytest.raises(EmulatorError, match="has no body"):
        run("call f, ();", module=".extern .func f();\n")
    with pytest.raises(EmulatorError, match="is called with 0 arguments"):
        run("call f, ();", module=".func f(.param .b32 x) { ret; }\n")


def test_several_kernels_of_one_name_must_be_told_apart() -> None:
    ptx = kernel("").replace(" k(", " _Z1kPj(") + kernel("").split(".address_size 64\n")[1].replace(
        " k(", " _Z1kPf("
    )
    with pytest.raises(EmulatorError, match="several kernels"):
        emulate(ptx, "k", grid=1, block=1, args=[np.zeros(1, np.uint32)])
    emulate(ptx, "_Z1kPf", grid=1, block=1, args=[np.zeros(1, np.uint32)])
    emulate(ptx.replace("_Z1kPf", "_Z5otherPf"), "k", grid=1, block=1, args=[np.zeros(1, np.uint32)])
