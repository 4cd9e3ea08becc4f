"""Theoretical occupancy against the toolkit's own calculator, and what limits it."""

from __future__ import annotations

import subprocess
from itertools import product
from pathlib import Path

import pytest

from cccopt.toolchain.discovery import find_nvcc
from cccopt.toolchain.occupancy import (
    BLOCKS,
    REGISTERS,
    SHARED,
    WARPS,
    Limits,
    limits_of,
    occupancy,
)

ARCHITECTURES = (75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121)

CALCULATOR = """
#include <climits>
#include <cstdio>
#include <cuda_occupancy.h>

int main() {
  int arch, warps, reserved, shared_sm, registers, shared, threads;
  while (std::scanf("%d %d %d %d %d %d %d", &arch, &warps, &reserved, &shared_sm, &registers, &shared, &threads) == 7) {
    cudaOccDeviceProp device;
    device.computeMajor = arch / 10;
    device.computeMinor = arch % 10;
    device.maxThreadsPerBlock = 1024;
    device.maxThreadsPerMultiprocessor = 32 * warps;
    device.regsPerBlock = device.regsPerMultiprocessor = 65536;
    device.warpSize = 32;
    device.sharedMemPerBlock = 49152;
    device.sharedMemPerMultiprocessor = shared_sm;
    device.sharedMemPerBlockOptin = shared_sm - reserved;
    device.reservedSharedMemPerBlock = reserved;
    device.numSms = 1;
    cudaOccFuncAttributes kernel;
    kernel.maxThreadsPerBlock = 1024;
    kernel.numRegs = registers;
    kernel.sharedSizeBytes = shared;
    kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    kernel.maxDynamicSharedSizeBytes = 0;
    kernel.numBlockBarriers = 1;
    cudaOccDeviceState state;
    state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
    cudaOccResult result;
    int status = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, threads, 0);
    std::printf("%d %d\\n", status, result.activeBlocksPerMultiprocessor);
  }
}
"""


def limits(arch: int) -> Limits:
    found = limits_of(f"sm_{arch}")
    assert found is not None
    return found


@pytest.mark.nvcc
def test_blocks_are_those_of_the_toolkits_calculator(tmp_path: Path) -> None:
    source = tmp_path / "calculator.cpp"
    source.write_text(CALCULATOR)
    command = [find_nvcc().path, "-x", "c++", source, "-o", tmp_path / "calculator"]
    subprocess.run([str(part) for part in command], check=True)
    registers = (16, 24, 25, 32, 33, 40, 64, 65, 96, 128, 168, 255)
    shared = (0, 1, 1000, 4096, 7168, 12544, 16384, 31 * 1024, 48 * 1024)
    threads = (32, 33, 96, 128, 160, 256, 320, 512, 768, 1024)
    cases = list(product(ARCHITECTURES, registers, shared, threads))
    asked = "\n".join(
        f"{arch} {limits(arch).warps} {limits(arch).reserved} {limits(arch).shared} {r} {s} {t}"
        for arch, r, s, t in cases
    )
    done = subprocess.run([tmp_path / "calculator"], input=asked, capture_output=True, text=True, check=True)
    told = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    ours = [occupancy(r, s, t, f"sm_{arch}") for arch, r, s, t in cases]
    assert len(told) == len(cases)
    different = [
        (case, blocks, found and found.blocks)
        for case, (status, blocks), found in zip(cases, told, ours, strict=True)
        if status != 0 or found is None or found.blocks != blocks
    ]
    assert different == []


@pytest.mark.parametrize(
    ("registers", "shared", "threads", "warps", "limited_by"),
    [
        (32, 0, 256, 64, (WARPS, REGISTERS)),
        (40, 0, 256, 48, (REGISTERS,)),
        (32, 28 * 1024, 256, 56, (SHARED,)),
        (16, 0, 32, 32, (BLOCKS,)),
        (255, 0, 1024, 0, (REGISTERS,)),
    ],
)
def test_what_limits_it(
    registers: int, shared: int, threads: int, warps: int, limited_by: tuple[str, ...]
) -> None:
    found = occupancy(registers, shared, threads, "sm_90")
    assert found is not None
    assert (found.warps, found.limited_by) == (warps, limited_by)
    assert found.share == warps / 64


def test_an_architecture_that_nobody_knows_has_none() -> None:
    assert occupancy(32, 0, 256, "sm_999") is None
    assert occupancy(32, 0, 256, "compute_90") is None
    assert occupancy(32, 0, 256, "sm_90a") == occupancy(32, 0, 256, "sm_90")
