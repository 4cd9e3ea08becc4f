"""Loops with a known number of inner iterations, which nvcc unrolls unless they are marked, stay alone under `auto`."""

from __future__ import annotations

import pytest

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
    assert ("nvcc unrolls it" in said) == (most == "25" and mode == "auto")
    return {report.outcome for report in result.regions}


def test_a_constant_number_of_inner_iterations() -> None:
    assert outcomes("25", "auto") == {Outcome.DECLINED}
    assert outcomes("25", "always") == {Outcome.REWRITTEN}


def test_a_number_that_data_tell() -> None:
    """Left alone, too, but not for what nvcc would have made of it."""
    assert outcomes("n", "auto") == {Outcome.DECLINED}
