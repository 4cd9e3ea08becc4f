"""Loads of one of two parameters keep no promise that the kernel breaks."""

from __future__ import annotations

import numpy as np
import pytest

from cccopt.ccc.outcome.refusal import Refusal
from cccopt.passes import broken_promises
from cccopt.passes.pipeline import Options, run
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from tests.fuzz.judge import compile_pair, judge
from tests.kernels.running import Arguments, Launch

EITHER = """
extern "C" __global__ void __launch_bounds__(64)
either(int n, int offset, const unsigned* __restrict__ a, unsigned* __restrict__ rows, unsigned* __restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    const unsigned* in = offset < 0 ? a : rows + 4 * i;
    unsigned x = a[i], largest = x >> 5;
#pragma ccc if
    if (x & 1) largest = max(largest, in[3] ^ x / (i + 1u));
    out[i] = largest;
    rows[4 * i + 3] = x;
  }
}
"""
PTX = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c)
{
	.reg .pred %p<2>;
	.reg .b32 %r<5>;
	.reg .b64 %rd<6>;
	// ccc for.begin 1 restrict=0,1,2 file=k.cu
	ld.param.u64 %rd1, [a];
	ld.param.u64 %rd2, [b];
	ld.param.u64 %rd3, [c];
	setp.ne.u64 %p1, %rd3, 0;
	selp.b64 %rd4, %rd1, %rd2, %p1;
	ld.global.nc.u32 %r1, [%rd4];
	ld.global.nc.L1::no_allocate.u32 %r2, [%rd2];
	selp.b64 %rd5, %rd1, %rd3, %p1;
	ld.global.nc.u32 %r3, [%rd5];
	st.global.u32 [%rd2], %r1;
	// ccc for.end 1
	ret;
}
"""


def items(launch: Launch) -> Arguments:
    numbers = np.random.default_rng(5).integers(0, 1 << 32, launch.trips).astype(np.uint32)
    rows, out = np.arange(4 * launch.trips, dtype=np.uint32), np.zeros(launch.trips, np.uint32)
    return [launch.trips, 1, numbers, rows, out]


@pytest.mark.nvcc
@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
@pytest.mark.parametrize("form", ["split", "idle lanes", "carried"])
def test_a_store_after_the_path_is_not_seen_by_the_path(arch: str, form: str) -> None:
    pair = compile_pair(EITHER, arch)
    assert "selp" in print_module(pair.marked)
    assert "ld.global.nc" in print_module(pair.marked)
    if form == "carried":
        assert not judge(pair, "either", items, [Launch(1, 64, 300)], forms=(form,)).wrong
        return
    with pytest.raises(Refusal) as caught:
        run(pair.marked, Options(mode="always", form=form))
    assert caught.value.diagnostics[0].code == "CCC036"


def test_only_a_load_of_several_places_of_which_one_is_written_becomes_plain() -> None:
    text = print_module(broken_promises.run(parse(PTX), Options(mode="always"))[0])
    loads = [line.split()[0] for line in text.splitlines() if "ld.global" in line]
    assert loads == ["ld.global.u32", "ld.global.nc.L1::no_allocate.u32", "ld.global.nc.u32"]


def test_functions_without_marks_stay_as_they_are() -> None:
    text = "\n".join(line for line in PTX.splitlines() if "// ccc" not in line)
    assert broken_promises.run(parse(text), Options(mode="always"))[0] == parse(text)
    assert run(parse(text), Options(mode="always")).module == parse(text)
