"""Atomic operations that ptxas combines for the lanes of a warp: found, counted, and priced where lanes come apart."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cccopt.ccc.function.view import view_of
from cccopt.ccc.outcome.choices import Form, Mode
from cccopt.ccc.profitability.combined_atomics import is_combined
from cccopt.ccc.profitability.elapsed import Elapsed
from cccopt.ccc.profitability.overlap import Needs, Scales, scales
from cccopt.ccc.profitability.profile import RegionProfile, RunProfile, as_text, regions_in
from cccopt.emulator import Program
from cccopt.passes.pipeline import Options, run
from cccopt.ptx.ir import Instruction
from cccopt.ptx.parser import parse
from cccopt.region_profiles import of_run
from tests.fuzz.judge import alone, compile_pair

ATOMICS = {
    "a counter": ("atom.global.add.u32 %r9, [%rd1], 1;", True),
    "a counter that nothing reads": ("red.global.add.u64 [%rd1+8], %rd3;", True),
    "different values": ("red.global.add.u32 [%rd1], %r1;", True),
    "different values that something reads": ("atom.global.add.u32 %r9, [%rd1], %r1;", False),
    "a maximum": ("red.global.max.s32 [%rd1], %r1;", True),
    "a maximum of 64 bits": ("red.global.max.u64 [%rd1], %rd2;", False),
    "one of many": ("red.global.add.u32 [%rd2], 1;", False),
    "floating point": ("red.global.add.f32 [%rd1], %f1;", False),
    "shared memory": ("red.shared.add.u32 [s], 1;", False),
    "an exchange": ("atom.global.exch.b32 %r9, [%rd1], 1;", False),
    "a load": ("ld.global.u32 %r9, [%rd1];", False),
}


@pytest.mark.parametrize("name", ATOMICS)
def test_what_ptxas_combines(name: str) -> None:
    text, combined = ATOMICS[name]
    module = parse(
        f""".version 8.0
.target sm_90
.address_size 64
.shared .u32 s;
.visible .entry k(.param .u64 out, .param .u64 many)
{{
  .reg .b32 %r<16>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd3, [many];
  mov.u32 %r1, %tid.x;
  cvt.rn.f32.u32 %f1, %r1;
  mad.wide.u32 %rd2, %r1, 4, %rd1;
  {text}
  st.global.u32 [%rd2+64], %r9;
  ret;
}}
"""
    )
    view = view_of(module, next(module.functions()))
    last = max(i for i, s in enumerate(view.body) if isinstance(s, Instruction) and s.base != "ret") - 1
    assert is_combined(view, last) is combined


def test_operations_on_one_address_bound_a_time() -> None:
    needs = Needs(code=10.0, added=0.0, memory=0.0, waiting=1.0, atomics=100.0)
    assert Scales().time(needs).total == pytest.approx(100.0, rel=0.01)
    # A kernel that takes no longer than that spends its time on them; one that takes ten times as long, a tenth.
    assert scales(Elapsed(100.0, 1.0), needs).time(needs).total == pytest.approx(100.0)
    assert scales(Elapsed(1000.0, 1.0), needs).time(needs).atomics == pytest.approx(100.0, rel=0.1)
    more = Needs(10.0, 0.0, 0.0, 1.0, 400.0)
    assert scales(Elapsed(100.0, 1.0), needs).time(more).total > 300


def test_files_keep_them() -> None:
    counted = RunProfile({"k": {1: RegionProfile("for", 1, 32, 1, 32, 9.0, atomics=3.0, packed_atomics=2.0)}})
    assert regions_in(json.loads(as_text(counted))["kernels"]) == counted
    outer = RegionProfile("for", warps=10, lanes=160, issued=9.0)
    inner = RegionProfile("if", warps=10, lanes=80, issued=5.0, packed=2.0, atomics=4.0)
    merged = RunProfile({"k": {1: outer, 2: inner}}).without({2}, {2: 1}).functions["k"][1]
    assert (merged.atomics, merged.packed_atomics) == (4.0, 0.0)


KERNEL = """
__global__ void __launch_bounds__(64) k(int n, const unsigned* __restrict__ a, unsigned* __restrict__ queue,
                                        unsigned* __restrict__ count) {
#pragma ccc for
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    unsigned x = a[i], left = x & 63;
#pragma ccc while
    while (left) { x = x * 1664525u + 1013904223u; x ^= x >> 7; x = __umulhi(x, x | 1) ^ x * 22695477u; --left; }
    APPEND
  }
}
"""
N = 900


def predicted(append: str, form: Form) -> tuple[float, float]:
    """What one form of the loop gains, and how often a warp iteration of the plain loop runs a combined operation."""
    marked = alone(compile_pair(KERNEL.replace("APPEND", append)), "_Z1kiPKjPjS1_").marked
    rng = np.random.default_rng(1)
    lengths = rng.choice([2, 8, 20, 60], N, p=[0.5, 0.25, 0.2, 0.05])
    given = (rng.integers(0, 2**26, N) * 64 + lengths).astype(np.uint32)
    program = Program(marked)
    zeros = np.zeros(N, np.uint32)
    counts = program.launch("_Z1kiPKjPjS1_", 1, 64, [N, given, zeros, zeros[:2].copy()])
    profile = of_run(program, counts)
    (loop,) = (r for r in profile.functions["_Z1kiPKjPjS1_"].values() if r.kind == "for")
    result = run(marked, Options(mode=Mode.ALWAYS, form=form, profile=profile))
    (cost,) = (r.cost for r in result.regions if r.kind == "for")
    assert cost is not None
    return cost.gain, loop.atomics / loop.warps


@pytest.mark.nvcc
@pytest.mark.parametrize("form", [Form.SPLIT, Form.IN_LANE])
def test_lanes_that_come_apart_do_not_gain_if_they_append_to_one_queue(form: Form) -> None:
    """On an H200, with 4 million elements: 1.73 (split) and 1.07 (in lane) without the queue, 0.78 and 0.19 with it."""
    apart, none = predicted("queue[i] = x;", form)
    queue, some = predicted("if (x & 1) queue[atomicAdd(count, 1u)] = x;", form)
    assert none == 0
    assert some == pytest.approx(1.0, abs=0.05)
    assert apart > 1.3
    assert queue < 1.0
