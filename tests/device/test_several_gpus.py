"""A program that uses two GPUs, from several threads or processes: its results and its counts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cccopt.device.visible import visible
from cccopt.profiling import run_file
from tests.cli.builds import make_command

pytestmark = [pytest.mark.gpu, pytest.mark.nvcc]

PROGRAM = """\
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

__device__ unsigned steps_of[64];

__global__ void work(int n, const unsigned* __restrict__ in, unsigned* out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    unsigned x = in[i];
#pragma ccc if
    if (x % 8 == 3) {
      int k = 0;
      for (; k < 20 + x % 40; ++k) x = (x ^ (x >> 15)) * 2246822519u + k;
      out[i] = x;
      atomicAdd(&steps_of[k % 64], 1u);
    }
  }
}

// Runs `work` on a device; `seed` and `n` determine its input. Returns a checksum.
static unsigned on(int device, unsigned seed, int n) {
  cudaSetDevice(device);
  std::vector<unsigned> host(n);
  for (int i = 0; i < n; i++) host[i] = (i + seed) * 2654435761u >> 7;
  unsigned *in, *out, steps[64];
  cudaMalloc(&in, 4 * n);
  cudaMalloc(&out, 4 * n);
  cudaMemset(out, 0, 4 * n);
  cudaMemcpy(in, host.data(), 4 * n, cudaMemcpyHostToDevice);
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  work<<<20, 128, 0, stream>>>(n, in, out);
  cudaStreamSynchronize(stream);
  cudaMemcpy(host.data(), out, 4 * n, cudaMemcpyDeviceToHost);
  cudaMemcpyFromSymbol(steps, steps_of, sizeof steps);
  unsigned sum = 0;
  for (int i = 0; i < n; i++) sum = sum * 31 + host[i];
  for (int i = 0; i < 64; i++) sum = sum * 31 + steps[i];
  if (cudaGetLastError() != cudaSuccess) exit(1);
  return sum;
}

int main(int argc, char** argv) {
  unsigned sums[2] = {};
  const int sizes[2] = {50000, 70001};
  if (argv[1][0] == 't') {  // each on a device of its own, at the same time
    std::thread first([&] { sums[0] = on(0, 1, sizes[0]); }), second([&] { sums[1] = on(1, 2, sizes[1]); });
    first.join();
    second.join();
  } else {  // device numbers, one after the other; a minus leaves that part out
    for (int i = 0; i < 2; i++)
      if (argv[1][i] != '-') sums[i] = on(argv[1][i] - '0', i + 1, sizes[i]);
  }
  printf("%u %u\\n", sums[0], sums[1]);
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the program: plain, rewritten, and counted."""
    if len(visible()) < 2:
        pytest.skip("fewer than two GPUs are visible")
    place = tmp_path_factory.mktemp("several")
    (place / "app.cu").write_text(PROGRAM)
    command = make_command(place / "bin")
    for name, options in (
        ("plain", ["--ccc=off"]),
        ("always", ["--ccc=always"]),
        ("counted", ["--ccc=off", "--ccc-instrument"]),
        ("sampled", ["--ccc=off", "--ccc-instrument=sampled"]),
    ):
        subprocess.run(
            [command, *options, "-arch=native", "-O3", "-lineinfo", "app.cu", "-o", name],
            cwd=place,
            check=True,
        )
    return place


def said(folder: Path, *command: str) -> str:
    """What a program prints."""
    return subprocess.run([*command], cwd=folder, check=True, text=True, capture_output=True).stdout


def profiled(folder: Path, name: str, *command: str) -> run_file.RunFile:
    """The profile of a run."""
    subprocess.run(
        [sys.executable, "-m", "cccopt.cli.main", "profile", "-o", name, "--", *command],
        cwd=folder,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    return run_file.read(folder / name)


@pytest.mark.parametrize("devices", ["01", "10", "11", "threads"])
def test_results(folder: Path, devices: str) -> None:
    """The rewritten program's are those of the plain one."""
    assert said(folder, "./always", devices) == said(folder, "./plain", devices)


def lines_of(run: run_file.RunFile) -> list[tuple[object, ...]]:
    """The counts of all lines of all kernels."""
    return sorted(
        (function.name, line.line, line.warps, line.lanes)
        for function in run.functions
        for line in function.lines
    )


@pytest.mark.parametrize("devices", ["01", "10", "11", "threads"])
def test_counts_are_those_of_one_gpu(folder: Path, devices: str) -> None:
    one = profiled(folder, "one.json", "./counted", "00")
    several = profiled(folder, f"{devices}.json", "./counted", devices)
    assert lines_of(several) == lines_of(one)
    (kernel,) = several.functions
    assert kernel.launches == 2
    assert kernel.time_ns


def test_a_gpu_that_is_not_the_first(folder: Path) -> None:
    assert lines_of(profiled(folder, "b.json", "./counted", "1-")) == lines_of(
        profiled(folder, "a.json", "./counted", "0-")
    )


def test_a_process_for_each_gpu(folder: Path) -> None:
    both = "CUDA_VISIBLE_DEVICES=0 ./counted 0- & CUDA_VISIBLE_DEVICES=1 ./counted -0 & wait"
    several = profiled(folder, "processes.json", "sh", "-c", both)
    assert lines_of(several) == lines_of(profiled(folder, "one.json", "./counted", "00"))


def test_samples_of_two_gpus(folder: Path) -> None:
    """All warps of so few launches are represented by the sample, whichever GPU they run on."""
    sampled = profiled(folder, "sampled.json", "./sampled", "threads")
    (kernel,) = sampled.functions
    (whole,) = profiled(folder, "one.json", "./counted", "00").functions
    assert kernel.launches == whole.launches == 2
    assert kernel.warps == whole.warps
