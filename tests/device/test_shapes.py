"""Loops over thread blocks, recursion and sorted lanes on a GPU: the same memory as before, where lanes really part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from cccopt.device.gpu import Gpu, open_gpu
from cccopt.passes.pipeline import Options
from cccopt.passes.pipeline import run as rewrite_module
from cccopt.ptx.ir import Module
from cccopt.ptx.parser import parse
from tests.device.programs import ProgramOnGpu
from tests.kernels.ptx_loops import loop
from tests.kernels.ptx_switch import switch
from tests.kernels.running import CUDA, FORMS, marked

pytestmark = [pytest.mark.gpu, pytest.mark.nvcc]

Shape = tuple[int, int, int]


def launched(
    gpu: Gpu, module: Module, kernel: str, grid: Shape, block: Shape, args: Sequence[Any]
) -> list[bytes]:
    """What the buffers hold after a launch."""
    own = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    ProgramOnGpu(gpu, module).launch(kernel, grid, block, own)
    return [a.tobytes() for a in own if isinstance(a, np.ndarray)]


def numbers(n: int, low: int, high: int) -> np.ndarray:
    return np.random.default_rng(11).integers(low, high, n).astype(np.int32)


@pytest.mark.parametrize("kernel", ["shade", "trips"])
def test_a_loop_over_thread_blocks(kernel: str) -> None:
    with open_gpu() as gpu:
        module = marked(CUDA / "grid.cu", gpu.arch)
        blocks, threads = 5000, 96
        n = blocks * threads - 5
        args = [numbers(n, 1, 27), np.zeros(n, np.int32), n]
        shape: tuple[Shape, Shape] = ((blocks, 1, 1), (threads, 1, 1))
        before = launched(gpu, module, kernel, *shape, args)
        for resident in (1, 132, 1056, 9999):
            result = rewrite_module(module, Options("always", resident=resident))
            assert launched(gpu, result.module, kernel, *shape, args) == before, resident


@pytest.mark.parametrize("kernel", ["walks", "finds", "lasts", "blends"])
def test_a_recursion(kernel: str) -> None:
    with open_gpu() as gpu:
        module = marked(CUDA / "recursion.cu", gpu.arch)
        n = 100_000
        args = [numbers(n, -n // 6, n), np.zeros(n, np.int32), n]
        before = launched(gpu, module, kernel, (64, 1, 1), (64, 1, 1), args)
        for form in FORMS:
            result = rewrite_module(module, Options("always", form=form))
            assert launched(gpu, result.module, kernel, (64, 1, 1), (64, 1, 1), args) == before, form


@pytest.mark.parametrize("alike", [0.0, 0.98])
@pytest.mark.parametrize("count", [3, 8])
def test_sorted_lanes(count: int, alike: float) -> None:
    """All values at random, or about half of the warps with 32 that are alike: these run a path in place."""
    module = parse(loop(body=switch(count)))
    n = 200_003
    values = numbers(n, 0, 64)
    same = np.random.default_rng(12).random(n) < alike
    values[same] = np.repeat(values[::32], 32)[:n][same]
    with open_gpu() as gpu:
        args = [n, values, np.zeros(n, np.int32), values[::-1].copy(), 3]
        before = launched(gpu, module, "k", (33, 1, 1), (128, 1, 1), args)
        for form in FORMS:
            result = rewrite_module(module, Options("always", form=form))
            assert launched(gpu, result.module, "k", (33, 1, 1), (128, 1, 1), args) == before, form
