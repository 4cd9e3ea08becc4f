"""The pragma of a loop tells what its iterations are, whatever its keyword: results stay the same, in every form."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.fuzz.judge import Pair, alone, compile_pair, judge
from tests.kernels.running import CUDA, Arguments, Launch

pytestmark = pytest.mark.nvcc

KERNELS = ("over_while", "over_do", "worklist", "counted_for", "for_break", "for_memory", "variable_while")
LAUNCHES = (Launch(1, 64, 400), Launch(2, 33, 150), Launch(1, 32, 0))


@cache
def compiled() -> Pair:
    return compile_pair((CUDA / "loop_pragmas.cu").read_text())


def items(launch: Launch) -> Arguments:
    """Arguments ``n, a, out, count`` of a loop over ``launch.trips`` items in all."""
    numbers = np.random.default_rng(5).integers(0, 1 << 16, launch.trips + 200).astype(np.uint32)
    return [launch.trips, numbers, np.zeros(4 * launch.trips + 200, np.uint32), np.zeros(8, np.uint32)]


@pytest.mark.parametrize("kernel", KERNELS)
def test_rewritten(kernel: str) -> None:
    verdict = judge(alone(compiled(), kernel), kernel, items, LAUNCHES, assembler="sm_90")
    assert not verdict.wrong
    assert all(counts["take"] and counts["drain"] for counts in verdict.ran.values())
