"""Loops that wait for other threads: what is said of them without the passes is what the passes say."""

from __future__ import annotations

from pathlib import Path

import pytest

from cccopt.advising import trials as module_of_trials
from cccopt.advising.suggestions import advise_on_source

SOURCE = """
__global__ void waits(int n, float* x) {
  __shared__ float tile[128];
  for (int i = 0; i < n; ++i) {
    tile[threadIdx.x] = x[i];
    __syncthreads();
    if (tile[127 - threadIdx.x] > 0) for (int k = 0; k < x[i]; ++k) x[i + k] += tile[k];
    __syncthreads();
  }
}
__global__ void late(int n, float* x) {
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < x[i]; ++k) x[i] *= x[k];
    if (x[i] > n) {
      x[i] = __shfl_sync(~0u, x[i], 0);
      __syncthreads();
    }
  }
}
__global__ void own(int n, float* x) {
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < x[threadIdx.x]; ++k) x[threadIdx.x] *= 0.5f;
}
"""


@pytest.mark.nvcc
def test_what_is_said_without_the_passes_is_what_they_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "waits.cu"
    file.write_text(SOURCE)
    early = advise_on_source(file)
    monkeypatch.setattr(module_of_trials, "refused_as_waiting", lambda module, kernel: ())
    assert early == advise_on_source(file)
    by_kernel = {advice.shown.partition("(")[0]: {d.code for d in advice.refusals} for advice in early}
    assert by_kernel["waits"] == by_kernel["late"] == {"CCC038"}
    assert "CCC038" not in by_kernel["own"]


@pytest.mark.nvcc
def test_the_passes_do_not_run_for_a_loop_that_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "waits.cu"
    file.write_text(SOURCE.split("__global__ void late")[0])
    monkeypatch.setattr(module_of_trials, "run", None)
    (advice,) = advise_on_source(file)
    assert advice.tried
