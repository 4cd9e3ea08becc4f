"""Loops with a known number of inner iterations, which nvcc unrolls unless they are marked, stay alone."""

from __future__ import annotations

from pathlib import Path

import pytest

import cccopt
from cccopt.ccc.outcome.choices import Outcome
from cccopt.passes.pipeline import Options, run
from tests.fuzz.judge import alone, compile_pair

pytestmark = pytest.mark.nvcc

TEXT = """
__device__ const unsigned primes[25] = {3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41};
extern "C" __global__ void __launch_bounds__(64) NAME(int n, unsigned* __restrict__ a) {
#pragma ccc for
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    unsigned x = a[i];
#pragma ccc for variable
    for (int k = 0; k < MOST; k++)
      if (x % (primes[k % 25] | 1u) == 0) {
        a[i] = 0;
        break;
      }
  }
}
"""


def outcomes(most: str, mode: str) -> set[str]:
    pair = compile_pair(TEXT.replace("NAME", "k").replace("MOST", most))
    result = run(alone(pair, "k").marked, Options(mode=mode))
    said = " ".join(remark.why for remark in result.remarks)
    assert ("by which nvcc unrolls it" in said) == (most == "25" and mode == "auto")
    return {report.outcome for report in result.regions}


def test_a_constant_number_of_inner_iterations() -> None:
    assert outcomes("25", "auto") == {Outcome.DECLINED}
    assert outcomes("25", "always") == {Outcome.REWRITTEN}


@pytest.mark.parametrize(
    ("what", "text", "rewritten"),
    [
        ("unrolled", TEXT.replace("MOST", "25"), False),
        ("asked for", TEXT.replace("MOST", "25").replace("for variable", "for variable always"), True),
        (
            "kept a loop",
            TEXT.replace("MOST", "25").replace("    for (int k", "#pragma unroll 1\n    for (int k"),
            True,
        ),
        ("not known", TEXT.replace("MOST", "n"), True),
    ],
)
def test_what_nvcc_makes_no_loop_of_is_left(tmp_path: Path, what: str, text: str, rewritten: bool) -> None:
    """Even under `--ccc=always`: the mark alone costs more than collecting gains."""
    source = tmp_path / "k.cu"
    source.write_text(text.replace("NAME", "k"))
    program = cccopt.compile(source, ccc="always")
    (unit,) = program.report["units"]
    assert (program.ptx != program.original_ptx) == rewritten
    assert {region["outcome"] for region in unit["regions"]} == {"rewritten" if rewritten else "declined"}
    assert ["CCC117"] * (not rewritten) == [remark["code"] for remark in unit["remarks"]]


def test_one_kernel_of_two(tmp_path: Path) -> None:
    """What both have marked is declined in the kernel in which nvcc unrolls it, which is nvcc's own then."""
    kernel = TEXT.split('extern "C"')[1]
    source = tmp_path / "k.cu"
    known, unknown = (
        kernel.replace("NAME", name).replace("MOST", most) for name, most in (("k", "25"), ("m", "n"))
    )
    source.write_text(f'{TEXT.split("extern")[0]}extern "C"{known}extern "C"{unknown}')
    program = cccopt.compile(source, ccc="always")
    (unit,) = program.report["units"]
    assert {(r["kernel"], r["outcome"]) for r in unit["regions"]} == {("k", "declined"), ("m", "rewritten")}


def test_a_number_that_data_tell() -> None:
    """Left alone, too, but not for what nvcc would have made of it."""
    assert outcomes("n", "auto") == {Outcome.DECLINED}
