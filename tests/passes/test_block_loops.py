"""In the counted copy of a kernel marked `grid`, each iteration of the loop over blocks begins with full warps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from cccopt.ccc.outcome.choices import Mode
from cccopt.ccc.profitability.profile import RegionProfile
from cccopt.ccc.profitability.region_counts import measure
from cccopt.emulator import Profile, Program
from cccopt.passes import grid_loop
from cccopt.passes.options import Options
from cccopt.profiling.counts import issues_of
from cccopt.ptx.ir import Marker, Module
from tests.fuzz.judge import alone, compile_pair
from tests.passes.instrumenting import run_both

pytestmark = pytest.mark.nvcc

GRID, BLOCK, RESIDENT = 23, 70, 4
THREADS = GRID * BLOCK - 9
WARPS = GRID * 3
KERNEL = f"""
#pragma ccc grid
extern "C" __global__ void __launch_bounds__({BLOCK}) k(int n, const unsigned* __restrict__ in, unsigned* out) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned x = in[i];
#pragma ccc if
  if (x % 3 == 0) {{
    do x = x * 1664525u + 1; while (x % 7);
    out[i] = x;
    return;
  }}
  if (x % 5 == 0) return;
  out[i] = ~x;
}}
"""


def looped() -> Module:
    """The kernel with its loop over blocks and its markers."""
    module = alone(compile_pair(KERNEL), "k").marked
    return grid_loop.run(module, Options(mode=Mode.ALWAYS, resident=RESIDENT)).module


def loop_over_blocks(module: Module, launch: Callable[[Program, str], Profile]) -> RegionProfile:
    """What was counted of the loop; it has the lowest number."""
    regions = measure(module, issues_of(run_both(module, "k", launch).counts)).functions["k"]
    return regions[min(regions)]


@pytest.mark.parametrize("shuffle", range(3))
def test_each_block_begins_with_its_warps(shuffle: int) -> None:
    given = np.random.default_rng(1).integers(0, 2**20, THREADS, dtype=np.uint32)

    def launch(program: Program, name: str) -> Profile:
        return program.launch(
            name, GRID, BLOCK, [THREADS, given, np.zeros(THREADS, np.uint32)], shuffle=shuffle, hazards=True
        )

    loop = loop_over_blocks(looped(), launch)
    assert (loop.warps, loop.lanes) == (WARPS, GRID * BLOCK)


def test_groups_that_a_gpu_keeps_apart_are_no_warps_of_the_loop() -> None:
    """ptxas may copy the head of the loop: then lanes that wait for one another go on from different places."""
    module = looped()
    given = np.arange(THREADS, dtype=np.uint32)

    def launch(program: Program, name: str) -> Profile:
        return program.launch(name, GRID, BLOCK, [THREADS, given, np.zeros(THREADS, np.uint32)])

    issues = issues_of(run_both(module, "k", launch).counts)
    (function,) = (f for f in module.functions() if f.name == "k")
    body = next(
        i for i, s in enumerate(function.body or ()) if isinstance(s, Marker) and s.event == "body.begin"
    )
    apart = {
        (name, index): replace(count, warps=2 * count.warps) if index > body else count
        for (name, index), count in issues.items()
    }
    number = min(measure(module, issues).functions["k"])
    together, groups = (measure(module, found).functions["k"][number] for found in (issues, apart))
    assert (groups.warps, groups.lanes, groups.issued) == (together.warps, together.lanes, together.issued)
