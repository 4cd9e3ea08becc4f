"""What `reduce` names: members and elements are reductions as plain variables are; what is in memory stays there."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from cccopt.ptx.ir import Instruction
from tests.fuzz.judge import Pair, alone, compile_pair, judge
from tests.kernels.running import CUDA, Arguments, Launch

pytestmark = pytest.mark.nvcc

LAUNCHES = (Launch(1, 64, 400), Launch(2, 33, 150), Launch(1, 32, 0))


@cache
def compiled() -> Pair:
    return compile_pair((CUDA / "reduced_variables.cu").read_text())


def items(launch: Launch) -> Arguments:
    """Arguments ``n, a, out, count`` of a loop over ``launch.trips`` items in all."""
    numbers = np.random.default_rng(5).integers(0, 1 << 16, launch.trips + 200).astype(np.uint32)
    return [
        launch.trips,
        numbers,
        np.zeros(launch.trips + 200, np.uint32),
        np.zeros(launch.threads, np.uint32),
    ]


@pytest.mark.parametrize("kernel", ["members", "elements", "by_reference", "flags"])
def test_rewritten(kernel: str) -> None:
    verdict = judge(alone(compiled(), kernel), kernel, items, LAUNCHES, assembler="sm_90")
    assert not verdict.wrong
    assert all(counts["take"] and counts["drain"] for counts in verdict.ran.values())


def test_a_sum_in_a_path_in_a_loop_of_tasks() -> None:
    """Each iteration has its own, so that the rest of the iteration waits with it (`cccopt.ccc.legality.carrying`)."""
    pair, launches = alone(compiled(), "in_a_path"), (Launch(4, 64, 200), Launch(1, 64, 30))
    verdict = judge(pair, "in_a_path", items, launches, forms=("carried",), assembler="sm_90")
    assert not verdict.wrong
    assert verdict.ran["carried"]["take"]


@pytest.mark.parametrize("kernel", ["found_and_left", "set_and_continued", "runs_of_a_loop"])
def test_flags_in_any_control_flow(kernel: str) -> None:
    verdict = judge(alone(compiled(), kernel), kernel, items, LAUNCHES, forms=("carried",), assembler="sm_90")
    assert not verdict.wrong
    assert verdict.ran["carried"]["take"]


def test_a_pin_stores_nothing() -> None:
    """Another thread may have added to the variable since it was loaded."""
    pair = alone(compiled(), "by_reference")
    for module in (pair.marked, pair.plain):
        (kernel,) = module.functions()
        assert sum(isinstance(s, Instruction) and s.base == "st" for s in kernel.body or ()) == 1
