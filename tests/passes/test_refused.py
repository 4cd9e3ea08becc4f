"""What is said of a loop that several forms refuse, and of one that other kernels of the file must not concern."""

from __future__ import annotations

from pathlib import Path

import pytest

import cccopt
from cccopt.ccc.outcome.refusal import FENCE, LIVE_OUT, Refusal, refuse
from cccopt.passes.refused import with_next
from cccopt.text import Place, Position
from tests.kernels.ptx_loops import module, path
from tests.kernels.running import rewritten


def test_the_help_of_each_form_that_was_tried_is_passed_on() -> None:
    first = refuse(LIVE_OUT, None, "`%r1`", help="move its use into the path")
    both = with_next(first, refuse(FENCE, None), "carried form, in which the rest of the iteration waits,")
    (said,) = both.diagnostics
    (other,) = refuse(FENCE, None).diagnostics
    assert said.help == f"move its use into the path; for the carried form: {other.help}"
    assert other.message in said.why


def test_a_line_is_noted_once() -> None:
    here = (("here", Place("k.cu", Position(3, 1), "f();")),)
    last = refuse(FENCE, None, notes=here * 2)
    (said,) = with_next(refuse(LIVE_OUT, None, "`%r1`", notes=here), last, "carried form,").diagnostics
    (again,) = with_next(Refusal(said), last, "in-lane form,").diagnostics
    assert [label for label, _ in again.notes] == ["here", "here (CCC039)"]


def test_an_empty_path_is_called_so_in_the_carried_form() -> None:
    with pytest.raises(Refusal) as caught:
        rewritten(module(body=path("")), "carried")
    assert [said.code for said in caught.value.diagnostics] == ["CCC053"]


KERNEL = """
struct Table { const unsigned* in; unsigned* out; };
__device__ Table tables[2];
extern "C" __global__ void __launch_bounds__(64) indirect(int n, unsigned* result) {
  Table t = tables[0];
  unsigned acc = 1;
#pragma ccc for inlane
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    unsigned x = t.in[i];
#pragma ccc if
    if (x & 1) { for (unsigned q = 0; q < (x >> 27); ++q) acc = acc * 1664525u + x; t.out[i] = acc; }
  }
  result[threadIdx.x] = acc;
}
"""
SHARED = """
extern "C" __global__ void __launch_bounds__(64) other(int n, unsigned* out) {
  __shared__ unsigned s[64];
  s[threadIdx.x] = out[threadIdx.x];
  __syncthreads();
#pragma ccc for
  for (int i = threadIdx.x; i < n; i += 64) {
    unsigned x = out[i];
#pragma ccc if
    if (x & 1) { for (unsigned q = 0; q < (x >> 27); ++q) x = x * 1664525u + q; out[i] = x + s[x & 63]; }
  }
}
"""


@pytest.mark.nvcc
def test_shared_memory_of_another_kernel_does_not_matter(tmp_path: Path) -> None:
    source = tmp_path / "two.cu"
    source.write_text(KERNEL + SHARED)
    report = cccopt.compile(source, ccc="always").report
    regions = [region for unit in report["units"] for region in unit["regions"]]
    assert {r["form"] for r in regions if r["kernel"] == "indirect"} == {"in lane"}


@pytest.mark.nvcc
def test_its_own_shared_memory_does(tmp_path: Path) -> None:
    source = tmp_path / "one.cu"
    source.write_text(
        KERNEL.replace(
            "unsigned acc = 1;", "__shared__ unsigned s[64]; s[threadIdx.x] = n; unsigned acc = s[n & 63];"
        )
    )
    with pytest.raises(cccopt.CccError, match="CCC109"):
        cccopt.compile(source, ccc="always")
