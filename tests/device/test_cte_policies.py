"""CTE's policies on a GPU, whose lanes are in no lock-step: what tests/cte checks on the emulator, with more tasks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cccopt.device.gpu import open_gpu
from tests.cte import test_block_policies, test_policies, test_scan_and_any
from tests.cte.compiling import ptx_of_kernels
from tests.cte.support import ALL, LARGE
from tests.device.programs import ProgramOnGpu

pytestmark = [pytest.mark.gpu, pytest.mark.nvcc]
EVERYONE = test_policies.EVERYONE


@contextmanager
def loaded(source: str, folder: Path, *options: str) -> Iterator[Any]:
    with open_gpu() as gpu:
        yield ProgramOnGpu(gpu, ptx_of_kernels(source, folder, *options))


@cache
def many(count: int) -> NDArray[np.int64]:
    """The sizes of ``count`` tasks: a third are empty, one in ten thousand has more than a thousand fine tasks."""
    rng = np.random.default_rng(17)
    return np.minimum(9000, 0.7 / (1 - rng.random(count)) ** 0.8).astype(np.int64)


@pytest.mark.parametrize("policy", test_policies.THOROUGHLY)
def test_policies_of_a_warp(policy: str, tmp_path: Path) -> None:
    with loaded("warp_policies", tmp_path, f"-DPOLICY=cte::{policy}") as program:
        for sizes in (ALL, LARGE, many(5), many(1000), many(50_000)):
            for kernel in test_policies.REDUCTIONS:
                test_policies.reduce(program, kernel, sizes)
            for kernel in test_policies.VISITS:
                test_policies.visit(program, kernel, sizes)
        for kernel in ("scanned_sequence", "disjoint_int32"):
            test_policies.reduce(program, kernel, many(2**20))
        test_policies.visit(program, "disjoint_visits", many(2**20))
        for stays, calls in ((EVERYONE, 0xAAAAAAAA), (0x0F0F3C01, 0xFFFFFFFE), (EVERYONE, EVERYONE)):
            test_policies.partly(lambda _: program, policy, 64, stays, calls)


@pytest.mark.parametrize("policy", test_block_policies.POLICIES)
def test_policies_of_the_block(policy: str, tmp_path: Path) -> None:
    with loaded("block_policies", tmp_path) as program:
        for sizes in (*test_block_policies.PATTERNS.values(), many(5), many(50_000)):
            test_block_policies.run_scanned(program, policy, sizes, 96, (8, 4, 3))
            test_block_policies.run_scanned(program, policy, sizes, 1024, 1024)
            test_block_policies.run_disjoint(program, policy, sizes, 512, 512)


@pytest.mark.parametrize("policy", test_scan_and_any.POLICIES)
def test_scans_and_searches(policy: str, tmp_path: Path) -> None:
    with loaded("scan_and_any", tmp_path, f"-DPOLICY=cte::{policy}") as program:
        for sizes in (ALL, LARGE, many(5), many(50_000)):
            for kernel in test_scan_and_any.SCANS:
                test_scan_and_any.scan(program, kernel, sizes)
            for kernel, (layout, *_) in test_scan_and_any.SEARCHES.items():
                tasks = layout(sizes)
                wanted = np.random.default_rng(3).integers(0, 30, tasks.fine).astype(np.uint8)
                test_scan_and_any.search(program, kernel, tasks, wanted)
