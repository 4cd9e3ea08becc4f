"""Loops in which lanes wait for nothing are compiled without the marks inside of them, and do what they did. A kernel
gets no loop over blocks then.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import cccopt
from cccopt.ccc.profitability.profile import RegionProfile, RunProfile
from cccopt.driver.function_texts import definitions
from cccopt.emulator import Program
from cccopt.ptx.parser import parse
from tests.fuzz.judge import run
from tests.kernels.running import Launch

pytestmark = pytest.mark.nvcc

TEXT = """
__device__ __forceinline__ float dot(const int* starts, const int* columns, const float* x, int row) {
  float sum = 0;
#pragma ccc for variable
  for (int k = starts[row]; k < starts[row + 1]; ++k) sum = sum * 0.5f + x[columns[k]];
  return sum;
}

#define ARGUMENTS int n, const int* starts, const int* columns, const float* x, float* out

extern "C" __global__ void __launch_bounds__(64) rows(ARGUMENTS) {
  float sum = 0;
#pragma ccc for
  for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < n; row += gridDim.x * blockDim.x) {
    for (int k = 0; k < 8; ++k) out[row] += sum * (k + out[row]);
    sum = sum * 0.25f + dot(starts, columns, x, row);
    out[row] += sum;
  }
}
OTHER
"""

BLOCKS = """
#pragma ccc grid always
extern "C" __global__ void __launch_bounds__(64) blocks(ARGUMENTS) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n) return;
  float sum = dot(starts, columns, x, row);
  for (int k = 0; k < 3; ++k) out[row] += sum * (k + out[row]);
}
"""

WAITS = """
extern "C" __global__ void __launch_bounds__(64) waits(ARGUMENTS) {
  float last = 0;
#pragma ccc for inlane
  for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < n; row += gridDim.x * blockDim.x) {
    last = last * 0.25f + dot(starts, columns, x, row);
    out[row] = last;
  }
}
"""


def compiled(folder: Path, other: str = "", profile: RunProfile | None = None) -> cccopt.Compiled:
    source = folder / "k.cu"
    source.write_text(TEXT.replace("OTHER", other))
    return cccopt.compile(source, ccc="always", resident=2, profile=profile)


def loads(ptx: str, kernel: str) -> int:
    """How often a kernel's text loads a float."""
    (body,) = (ptx[d.start : d.end] for d in definitions(ptx) or () if d.name == kernel)
    return len(re.findall(r"ld\.global(\.nc)?\.f32", body))


def results(ptx: str, kernel: str, shuffle: int | None = None) -> bytes:
    """What a kernel stores, by the emulator."""
    draw = np.random.default_rng(3)
    starts = np.concatenate(([0], np.cumsum(draw.integers(0, 9, 150)))).astype(np.int32)
    columns = draw.integers(0, 64, int(starts[-1])).astype(np.int32)
    given = [150, starts, columns, draw.random(64, np.float32), np.zeros(150, np.float32)]
    return run(Program(parse(ptx)), kernel, Launch(3, 64, 150), given, shuffle)[0][-1]


def test_nvcc_unrolls_them(tmp_path: Path) -> None:
    program = compiled(tmp_path)
    regions = program.report["units"][0]["regions"]
    assert [(r["form"], r["outcome"], r["in_place"]) for r in regions] == [
        ("in lane", "rewritten", False),
        ("in lane", "rewritten", True),
    ]
    assert "vote" in program.ptx
    assert loads(program.ptx, "rows") == loads(program.original_ptx, "rows") > 1
    expected = results(program.original_ptx, "rows")
    assert [results(program.ptx, "rows", shuffle) for shuffle in (None, 1, 2)] == 3 * [expected]


def test_marks_stay_where_lanes_of_another_kernel_wait(tmp_path: Path) -> None:
    """The same text is inlined into a loop in which they do."""
    program = compiled(tmp_path, WAITS)
    regions = program.report["units"][0]["regions"]
    assert {(r["kernel"], r["in_place"]) for r in regions if r["kind"] == "for variable"} == {
        ("rows", True),
        ("waits", False),
    }
    assert loads(program.ptx, "rows") < loads(program.original_ptx, "rows")
    for kernel in ("rows", "waits"):
        assert results(program.ptx, kernel) == results(program.original_ptx, kernel)


@pytest.mark.parametrize("profiled", [False, True])
def test_a_kernel_gets_no_loop_over_blocks(tmp_path: Path, profiled: bool) -> None:
    """Nor does a profile make tasks move that gain nothing by that, though `always` is asked for."""
    alike = {
        1: RegionProfile("for variable", 100, 3200, 400, 12000, 8000.0, 7500.0),
        3: RegionProfile("grid", 100, 3200, 100, 3200, 9000.0, launches=1),
    }
    program = compiled(tmp_path, BLOCKS, RunProfile({"blocks": alike}) if profiled else None)
    regions = [r for r in program.report["units"][0]["regions"] if r["kernel"] == "blocks"]
    assert [(r["kind"], r["region"], r["outcome"]) for r in regions if r["kind"] == "grid"] == [
        ("grid", 3, "declined")
    ]
    assert all((r["cost"] is not None) is profiled for r in regions)
    said = [d["message"] for d in program.report["units"][0]["remarks"] if d["code"] == "CCC054"]
    assert said == ["this kernel stays as it is: no marked path costs enough for lanes to wait at it"]
    made, plain = (
        next(ptx[d.start : d.end] for d in definitions(ptx) or () if d.name == "blocks")
        for ptx in (program.ptx, program.original_ptx)
    )
    assert made == plain
