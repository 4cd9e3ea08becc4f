"""ptxas' resource report, from a recorded transcript and from the real one."""

from __future__ import annotations

import pytest

from cccopt.diagnostic import CccError
from cccopt.toolchain.ptxas import Resources, parse_report, resources

# ptxas -v of CUDA 13.0.88 for sm_90.
TRANSCRIPT = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z2ccPd' for 'sm_90'
ptxas info    : Function properties for _Z2ccPd
    2176 bytes stack frame, 4384 bytes spill stores, 4776 bytes spill loads
ptxas info    : Used 32 registers, used 0 barriers, 2200 bytes cumulative stack size
ptxas info    : Compile time = 85.724 ms
ptxas info    : Compiling entry function 'a' for 'sm_90'
ptxas info    : Function properties for a
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 30 registers, used 1 barriers, 400 bytes smem
ptxas info    : Compile time = 6.136 ms
ptxas info    : Function properties for _Z1ff
    8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
"""

KERNEL = """\
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{
  .shared .align 4 .b8 s[256];
  .reg .b64 %rd<3>;
  .reg .b32 %r<3>;
  ld.param.u64 %rd1, [p];
  ld.shared.u32 %r1, [s+4];
  st.global.u32 [%rd1], %r1;
  ret;
}
"""


def test_a_recorded_report() -> None:
    assert parse_report(TRANSCRIPT) == {
        "_Z2ccPd": Resources(32, spill_stores=4384, spill_loads=4776, shared=0, stack=2200),
        "a": Resources(30, spill_stores=0, spill_loads=0, shared=400, stack=0),
    }


def test_a_report_in_other_words_is_an_error_and_no_zero() -> None:
    with pytest.raises(CccError):
        parse_report(TRANSCRIPT.replace("Used 30 registers", "30 registers used"))


@pytest.mark.nvcc
def test_the_real_ptxas() -> None:
    report = resources(KERNEL, "sm_90")
    assert report["k"].shared == 256
    assert 4 <= report["k"].registers <= 255


@pytest.mark.nvcc
def test_refused_ptx_is_an_error_with_the_line() -> None:
    with pytest.raises(CccError) as caught:
        resources(KERNEL.replace("ld.shared", "ld.shard"), "sm_90")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "CCC085"
    assert "line 10" in diagnostic.why
