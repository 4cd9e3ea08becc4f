"""Long tasks that warps of a block share, on a GPU: whoever runs what, each fine task once and in order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cccopt.device.gpu import Gpu, Kernel, open_gpu
from tests.cte.compiling import ptx_of_kernels
from tests.cte.sharing import PAIR, SEQUENCE, expected_of, expected_sequences, sizes_with_long
from tests.cte.support import Tasks, apart, scanned

pytestmark = [pytest.mark.gpu, pytest.mark.nvcc]
BLOCK = 128


def launch(
    gpu: Gpu,
    kernel: Kernel,
    tasks: Tasks,
    blocks: int,
    numbers: list[np.generic],
    *results: NDArray[np.generic],
) -> None:
    """Runs ``kernel`` on tasks, whose number and bounds come first, and reads what it wrote into ``results``."""
    bounds = [gpu.upload(array) for array in tasks.bounds(np.int32)]
    written = [gpu.upload(array) for array in results]
    arguments = [np.int32(tasks.count), *bounds, *numbers, *written]
    gpu.launch(kernel, (blocks, 1, 1), (BLOCK, 1, 1), arguments)
    for array, buffer in zip(results, written, strict=True):
        gpu.read(buffer, array)


@pytest.mark.parametrize(
    ("layout", "tasks_of"), [("scanned", scanned), ("disjoint", apart), ("mixed", scanned)]
)
def test_calls_behind_one_another(layout: str, tasks_of: type, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    with open_gpu() as gpu:
        kernel = gpu.load(ptx_of_kernels("sharing", tmp_path)).kernel(f"turns_{layout}")
        for _ in range(30):
            count = int(rng.integers(1, 4000))
            tasks = tasks_of(sizes_with_long(rng, count, most=20_000))
            blocks = int(rng.integers(1, -(-count // BLOCK) + 1))
            visits, texts = np.zeros(tasks.fine, np.uint32), np.zeros(count, PAIR)
            sums = np.zeros(count, np.int32)
            launch(gpu, kernel, tasks, blocks, [np.uint32(0xF), np.int8(3)], visits, texts, sums)
            expected_texts, expected_sums = expected_of(tasks, BLOCK, odd=3)
            np.testing.assert_array_equal(visits[tasks.members[0]], 4)
            np.testing.assert_array_equal(texts, expected_texts)
            np.testing.assert_array_equal(sums, expected_sums)


@pytest.mark.parametrize(("layout", "tasks_of"), [("scanned", scanned), ("disjoint", apart)])
def test_large_values_keep_their_order(layout: str, tasks_of: type, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    with open_gpu() as gpu:
        kernel = gpu.load(ptx_of_kernels("sharing", tmp_path)).kernel(f"texts_{layout}")
        for _ in range(10):
            count = int(rng.integers(1, 1000))
            tasks = tasks_of(sizes_with_long(rng, count, most=40_000))
            texts = np.zeros(count, SEQUENCE)
            launch(gpu, kernel, tasks, -(-count // BLOCK), [], texts)
            np.testing.assert_array_equal(texts, expected_sequences(tasks))
