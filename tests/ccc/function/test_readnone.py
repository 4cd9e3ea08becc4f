"""Functions that access no memory which other code sees, and a path and code after it that both call one."""

from __future__ import annotations

import pytest

from cccopt.ccc.function.readnone import is_readnone
from cccopt.passes.pipeline import Options
from cccopt.passes.pipeline import run as rewrite_module
from cccopt.ptx.parser import parse
from tests.kernels.running import compiled, only

HEAD = """.version 8.0
.target sm_90
.address_size 64
.extern .func elsewhere();
.func leaf(.param .b32 leaf_0) { .reg .b32 %r<3>; ld.param.u32 %r1, [leaf_0]; add.u32 %r2, %r1, 1; ret; }
.func again(.param .b32 again_0) { .reg .b32 %r<2>; .param .b32 x; ld.param.u32 %r1, [again_0];
  { .param .b32 p; st.param.b32 [p], %r1; call again, (p); } ret; }
"""
READNONE = {
    "arithmetic": "mul.lo.u32 %r1, %r2, %r3;",
    "a table that nothing changes": "ld.global.nc.u32 %r1, [%rd1]; ld.const.u32 %r2, [%rd2];",
    "an array of its own": "mov.u64 %rd1, frame; add.u64 %rd2, %rd1, %rd3; st.local.u32 [%rd2], %r1;",
    "calls": "{ .param .b32 p; st.param.b32 [p], %r1; call leaf, (p); call again, (p); }",
}
OTHERS = {
    "a load": "ld.global.u32 %r1, [%rd1];",
    "a store": "st.u32 [%rd1], %r1;",
    "an atomic": "red.global.add.u32 [%rd1], %r1;",
    "an array of its caller": "ld.param.u64 %rd1, [f_0]; st.local.u32 [%rd1], %r1;",
    "shared memory": "ld.shared.u32 %r1, [%rd1];",
    "a fence": "membar.gl;",
    "a barrier": "bar.sync 0;",
    "a call of what is not seen": "call elsewhere;",
    "a call by pointer": "call %rd1, (), pointers;",
}


def _judged(code: str) -> bool:
    body = f"""{HEAD}
.func f(.param .b64 f_0)
{{ .reg .b32 %r<9>; .reg .b64 %rd<9>; .local .align 4 .b8 frame[16];
  pointers: .callprototype _ ();
  {code}
  ret;
}}
"""
    return is_readnone(parse(body), "f")


@pytest.mark.parametrize("code", READNONE)
def test_it_touches_nothing_that_others_see(code: str) -> None:
    assert _judged(READNONE[code])


@pytest.mark.parametrize("code", OTHERS)
def test_others_may_see_what_it_does(code: str) -> None:
    assert not _judged(OTHERS[code])


@pytest.mark.nvcc
def test_a_path_and_what_follows_may_both_call_the_math_library() -> None:
    result = rewrite_module(only(compiled("math_calls", "sm_90"), "powers"), Options("always", form="split"))
    assert {region.form for region in result.regions} == {"split"}
