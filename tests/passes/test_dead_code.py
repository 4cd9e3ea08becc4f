"""What nothing reads is dropped from rewritten functions, and nothing else from anywhere."""

from __future__ import annotations

import pytest

from cccopt.passes import dead_code
from cccopt.passes.options import Options
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from tests.kernels.ptx_loops import LAUNCHES, arguments, module, path
from tests.kernels.running import compare, rewritten

ADDED = "// ccc overhead.begin 1\n// ccc overhead.end 1"


def left(code: str, added: str = ADDED) -> str:
    """The code that is left of a kernel's."""
    text = f""".version 8.5
.target sm_90
.address_size 64
.entry k(.param .u64 a)
{{
.reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
{added}
ld.param.u64 %rd1, [a];
{code}
st.global.u32 [%rd1], %r1;
ret;
}}
"""
    after = print_module(dead_code.run(parse(text), Options())[0])
    lines = after.split("[a];")[1].split("st.global.u32 [%rd1], %r1;")[0].splitlines()
    return " ".join(" ".join(lines).split())


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("mov.u32 %r1, 1; mov.u32 %r2, 2;", "mov.u32 %r1, 1;"),
        ("mov.u32 %r1, 1; mov.u32 %r2, 2; add.u32 %r3, %r2, %r2;", "mov.u32 %r1, 1;"),
        ("mov.u32 %r1, 7; mov.u32 %r1, 1;", "mov.u32 %r1, 1;"),
        ("mov.u32 %r2, 0; @%p1 mov.u32 %r2, 2; mov.u32 %r1, 1;", "mov.u32 %r1, 1;"),
    ],
)
def test_what_nothing_reads_goes(code: str, expected: str) -> None:
    assert left(code) == expected


@pytest.mark.parametrize(
    "code",
    [
        "mov.u32 %r1, 1; @%p1 mov.u32 %r1, 2;",
        "ld.global.u32 %r2, [%rd1]; mov.u32 %r1, 1;",
        "atom.global.add.u32 %r2, [%rd1], 1; mov.u32 %r1, 1;",
        "mov.u32 %r2, %clock; mov.u32 %r1, 1;",
        "vote.sync.any.pred %p1, %p2, -1; mov.u32 %r1, 1;",
        "mov.u32 %r2, 3; setp.eq.u32 %p1|%p2, %r2, 1; selp.u32 %r1, 1, 2, %p2;",
    ],
)
def test_what_has_an_effect_or_is_read_stays(code: str) -> None:
    assert left(code) == code


def test_functions_without_added_code_stay_as_they_are() -> None:
    code = "mov.u32 %r2, 2; mov.u32 %r1, 1;"
    assert left(code, added="") == code


def test_a_root_that_tasks_compute_is_gone_ahead_of_them() -> None:
    roots = "cvt.rn.f32.u32 %f1, %value; sqrt.rn.f32 %f2, %f1;"
    before = module(before=roots, body=path("add.f32 %f3, %f2, %f2; st.global.f32 [%out_i], %f3;"))
    text = print_module(rewritten(before, "split").module)
    # One in the original loop, which also makes the last trips, one in a task, one in the remainder.
    assert text.count("sqrt.rn.f32") == 3
    compare(before, "k", arguments, LAUNCHES[:1])
