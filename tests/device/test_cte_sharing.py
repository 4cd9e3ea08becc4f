"""Long tasks that warps of a block share, on a GPU: whoever runs what, each fine task once and in order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cccopt.device.gpu import open_gpu
from tests.cte.compiling import ptx_of_kernels
from tests.cte.sharing import PAIR, SEQUENCE, expected_of, expected_sequences, sizes_with_long
from tests.cte.support import apart, scanned

pytestmark = [pytest.mark.gpu, pytest.mark.nvcc]
BLOCK = 128


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
            own = [
                *tasks.bounds(np.int32),
                np.zeros(tasks.fine, np.uint32),
                np.zeros(count, PAIR),
                np.zeros(count, np.int32),
            ]
            begins, ends, visits, texts, sums = [gpu.upload(array) for array in own]
            arguments = [np.int32(count), begins, ends, np.uint32(0xF), np.int8(3), visits, texts, sums]
            gpu.launch(kernel, (blocks, 1, 1), (BLOCK, 1, 1), arguments)
            for array, buffer in zip(own[2:], (visits, texts, sums), strict=True):
                gpu.read(buffer, array)
            expected = expected_of(tasks, BLOCK, odd=3)
            np.testing.assert_array_equal(own[2][tasks.members[0]], 4)
            np.testing.assert_array_equal(own[3], expected[0])
            np.testing.assert_array_equal(own[4], expected[1])


@pytest.mark.parametrize(("layout", "tasks_of"), [("scanned", scanned), ("disjoint", apart)])
def test_large_values_keep_their_order(layout: str, tasks_of: type, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    with open_gpu() as gpu:
        kernel = gpu.load(ptx_of_kernels("sharing", tmp_path)).kernel(f"texts_{layout}")
        for _ in range(10):
            count = int(rng.integers(1, 1000))
            tasks = tasks_of(sizes_with_long(rng, count, most=40_000))
            out = np.zeros(count, SEQUENCE)
            begins, ends, texts = [gpu.upload(array) for array in (*tasks.bounds(np.int32), out)]
            blocks = -(-count // BLOCK)
            gpu.launch(kernel, (blocks, 1, 1), (BLOCK, 1, 1), [np.int32(count), begins, ends, texts])
            gpu.read(texts, out)
            np.testing.assert_array_equal(out, expected_sequences(tasks))
