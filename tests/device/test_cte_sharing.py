"""Long tasks that warps of a block share, on a GPU: whoever runs what, each fine task once and in order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cccopt.device.gpu import open_gpu
from tests.cte.compiling import ptx_of_kernels
from tests.cte.sharing import PAIR, SEQUENCE, expected_of, expected_sequences, sizes_with_long
from tests.cte.support import apart, scanned
from tests.device.programs import ProgramOnGpu

pytestmark = [pytest.mark.gpu, pytest.mark.nvcc]
BLOCK = 128


@pytest.mark.parametrize(
    ("layout", "tasks_of"), [("scanned", scanned), ("disjoint", apart), ("mixed", scanned)]
)
def test_calls_behind_one_another(layout: str, tasks_of: type, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    with open_gpu() as gpu:
        program = ProgramOnGpu(gpu, ptx_of_kernels("sharing", tmp_path))
        for _ in range(30):
            count = int(rng.integers(1, 4000))
            tasks = tasks_of(sizes_with_long(rng, count, most=20_000))
            blocks = int(rng.integers(1, -(-count // BLOCK) + 1))
            visits, texts = np.zeros(tasks.fine, np.uint32), np.zeros(count, PAIR)
            sums = np.zeros(count, np.int32)
            arguments = [count, *tasks.bounds(np.int32), 0xF, 3, visits, texts, sums]
            program.launch(f"turns_{layout}", blocks, BLOCK, arguments)
            expected_texts, expected_sums = expected_of(tasks, BLOCK, odd=3)
            np.testing.assert_array_equal(visits[tasks.members[0]], 4)
            np.testing.assert_array_equal(texts, expected_texts)
            np.testing.assert_array_equal(sums, expected_sums)


@pytest.mark.parametrize(("layout", "tasks_of"), [("scanned", scanned), ("disjoint", apart)])
def test_large_values_keep_their_order(layout: str, tasks_of: type, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    with open_gpu() as gpu:
        program = ProgramOnGpu(gpu, ptx_of_kernels("sharing", tmp_path))
        for _ in range(10):
            count = int(rng.integers(1, 1000))
            tasks = tasks_of(sizes_with_long(rng, count, most=40_000))
            texts = np.zeros(count, SEQUENCE)
            arguments = [count, *tasks.bounds(np.int32), texts]
            program.launch(f"texts_{layout}", -(-count // BLOCK), BLOCK, arguments)
            np.testing.assert_array_equal(texts, expected_sequences(tasks))
