"""CTE is suggested where a loop surely has its shape, and what is suggested compiles in place of the loop."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cccopt.advising.suggestions import advise_on_source
from cccopt.cli.main import main
from tests.cte.compiling import compiled

pytestmark = pytest.mark.nvcc

CSR = "const int* __restrict__ row, const int* __restrict__ column"
KERNEL = "__global__ void __launch_bounds__(256)"
GUARD = "int v = threadIdx.x + blockIdx.x * blockDim.x;\n  if (v >= rows) return;"
STRIDE = "for (int v = threadIdx.x + blockIdx.x * blockDim.x; v < rows; v += gridDim.x * blockDim.x)"

SPMV_LOOP = "for (int k = row[v]; k < row[v + 1]; ++k) sum += value[k] * x[column[k]];"
SPMV = f"""
{KERNEL} spmv(int rows, {CSR}, const float* __restrict__ value, const float* __restrict__ x, float* __restrict__ y) {{
  {GUARD}
  float sum = 0;
  {SPMV_LOOP}
  y[v] = sum;
}}
"""
SPMV_CALL = (
    "sum = cte::for_each_index<BLOCK, cte::disjoint>(row[v], row[v + 1], "
    "[=](int k) { return value[k] * x[column[k]]; }, cte::plus{}, sum);"
)

COUNTS_LOOP = """for (int k = first; k < last; k += 1) {
      int u = column[k];
      atomicAdd(&found[u], 1);
    }"""
COUNTS = f"""
{KERNEL} counts(int rows, {CSR}, int* __restrict__ found) {{
  {STRIDE} {{
    int first = row[v], last = row[v + 1];
    {COUNTS_LOOP}
  }}
}}
"""
_COUNT = "[=](int k) { int u = column[k]; atomicAdd(&found[u], 1); }"
COUNTS_CALL = f"cte::for_each<BLOCK, cte::disjoint>(first, last, {_COUNT});"

NEGATIVE = {
    "a value of the lane's own": f"""
{KERNEL} scaled(int rows, {CSR}, const float* __restrict__ x, float* __restrict__ y) {{
  {STRIDE} {{
    float scale = x[v], sum = 0;
    for (int k = row[v]; k < row[v + 1]; ++k) sum += scale * x[column[k]];
    y[v] = sum;
  }}
}}
""",
    "iterations that end the loop": f"""
{KERNEL} search(int rows, {CSR}, const float* __restrict__ x, float* __restrict__ y) {{
  {STRIDE} {{
    float sum = 0;
    for (int k = row[v]; k < row[v + 1]; ++k) {{
      if (x[column[k]] < 0) break;
      sum += x[column[k]];
    }}
    y[v] = sum;
  }}
}}
""",
    "stores to places found in data": f"""
{KERNEL} levels(int rows, {CSR}, int next, int* level) {{
  {STRIDE} {{
    for (int k = row[v]; k < row[v + 1]; ++k) {{
      int u = column[k];
      if (level[u] < 0) level[u] = next;
    }}
  }}
}}
""",
    "a sum that each element reads": f"""
{KERNEL} horner(int rows, {CSR}, const float* __restrict__ x, float* __restrict__ y) {{
  {STRIDE} {{
    float sum = 0;
    for (int k = row[v]; k < row[v + 1]; ++k) sum += sum * x[column[k]];
    y[v] = sum;
  }}
}}
""",
    "a loop under a condition": f"""
{KERNEL} some(int rows, {CSR}, const float* __restrict__ x, float* __restrict__ y) {{
  {STRIDE} {{
    float sum = 0;
    if (x[v] > 3) {{
      for (int k = row[v]; k < row[v + 1]; ++k) sum += x[column[k]];
    }}
    y[v] = sum;
  }}
}}
""",
}


@pytest.mark.parametrize(
    ("kernel", "loop", "call"), [(SPMV, SPMV_LOOP, SPMV_CALL), (COUNTS, COUNTS_LOOP, COUNTS_CALL)]
)
def test_the_call_compiles_in_place_of_the_loop(kernel: str, loop: str, call: str, tmp_path: Path) -> None:
    source = tmp_path / "rows.cu"
    source.write_text(kernel)
    (advice,) = advise_on_source(source)
    assert advice.engagement == call
    assert kernel.count(loop) == 1
    new = f"#include <cte.cuh>\nconstexpr int BLOCK = 256;\n{kernel.replace(loop, call)}"
    source.write_text(new)
    ptx = tmp_path / "rows.ptx"
    done = compiled(source, "-ptx", "-arch=sm_90", "-o", str(ptx))
    assert done.returncode == 0, done.stderr
    assert "shfl" in ptx.read_text()


@pytest.mark.parametrize("kernel", NEGATIVE.values(), ids=NEGATIVE)
def test_other_shapes_get_no_call(kernel: str, tmp_path: Path) -> None:
    source = tmp_path / "rows.cu"
    source.write_text(kernel)
    (advice,) = advise_on_source(source)
    assert advice.pragmas
    assert advice.engagement == ""


def test_the_command_shows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rows.cu").write_text(SPMV)
    assert main(["advise", str(tmp_path / "rows.cu"), "--all", "--json", str(tmp_path / "out.json")]) == 0
    assert f"Or CTE, for blocks of BLOCK threads: {SPMV_CALL}" in capsys.readouterr().out
    (kernel,) = json.loads((tmp_path / "out.json").read_text())["kernels"]
    assert kernel["cte"] == SPMV_CALL
