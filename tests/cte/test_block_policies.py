"""Policies of the whole block on the emulator: every fine task once, order kept, any sizes, any block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cccopt.emulator import Program
from tests.cte.compiling import ptx_of_kernels
from tests.cte.sequences import SEQUENCE, hashed, letters

pytestmark = pytest.mark.nvcc
POLICIES = ("block", "merge_path", "thread_warp_block", "automatic_block")
Sizes = NDArray[np.int64]

rng = np.random.default_rng(5)
PATTERNS: dict[str, Sizes] = {
    "all empty": np.zeros(97, np.int64),
    "one giant": np.r_[np.zeros(17, int), 2100, np.zeros(40, int)],
    "giants and small": np.r_[rng.integers(0, 6, 60), 700, 2, 400, rng.integers(0, 6, 30), 96, 0, 95, 97],
    "around 32": np.r_[np.tile([31, 32, 33, 0], 12), np.ones(60, int), 64, 63, 65],
    "around 1024": np.r_[0, 1023, 1024, 1025, 0, 5],
    "one task": np.array([1]),
}
SKEWED = np.minimum(300, (1.5 / rng.random(130) ** 0.7)).astype(np.int64)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    ptx = ptx_of_kernels("block_policies", tmp_path_factory.mktemp("ptx"))
    assert ".local" not in ptx
    return Program(ptx, "block_policies.ptx")


def blocks(tasks: int, threads: int) -> int:
    """Fewer than there are tasks for, so that a block takes several turns."""
    return max(1, -(-tasks // threads) // 2)


def run_scanned(program: Program, policy: str, sizes: Sizes, threads: int, block: Any, **how: Any) -> None:
    offsets = np.r_[0, np.cumsum(sizes)].astype(np.int32)
    visits, out = np.zeros(offsets[-1] + 1, np.uint32), np.zeros(sizes.size, SEQUENCE)
    kernel = f"{policy}_scanned_{threads}"
    program.launch(kernel, blocks(sizes.size, threads), block, [sizes.size, offsets, visits, out], **how)
    assert (visits[:-1] == 1).all()
    assert visits[-1] == 0
    values = letters(np.arange(offsets[-1]))
    np.testing.assert_array_equal(out, hashed(values, offsets[:-1], offsets[1:], step=1))


def run_disjoint(program: Program, policy: str, sizes: Sizes, threads: int, block: Any, **how: Any) -> None:
    order = np.random.default_rng(1).permutation(sizes.size)
    offsets = np.r_[0, np.cumsum(sizes)]
    begins, ends = offsets[:-1][order], offsets[1:][order]
    visits, out = np.zeros(offsets[-1] + 1, np.uint32), np.zeros(sizes.size, SEQUENCE)
    kernel = f"{policy}_disjoint_{threads}"
    program.launch(kernel, blocks(sizes.size, threads), block, [sizes.size, begins, ends, visits, out], **how)
    assert (visits[:-1] == 1).all()
    assert visits[-1] == 0
    tasks = np.empty(sizes.size, np.int64)
    tasks[order] = np.arange(sizes.size)
    owners = np.repeat(tasks, sizes)
    values = letters(np.arange(offsets[-1]) * 1000 + owners * 3)
    np.testing.assert_array_equal(out, hashed(values, begins, ends, step=1))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_order_is_kept_and_every_fine_task_runs_once(program: Program, policy: str, pattern: str) -> None:
    run_scanned(program, policy, PATTERNS[pattern], 96, (8, 4, 3))
    run_disjoint(program, policy, PATTERNS[pattern], 96, (48, 2))


@pytest.mark.parametrize("policy", POLICIES)
def test_the_smallest_and_the_largest_block(program: Program, policy: str) -> None:
    run_scanned(program, policy, SKEWED, 32, 32)
    run_scanned(program, policy, PATTERNS["giants and small"], 1024, 1024)
    run_disjoint(program, policy, PATTERNS["giants and small"], 512, 512)


@pytest.mark.parametrize("policy", POLICIES)
def test_lanes_in_any_order_give_the_same(program: Program, policy: str) -> None:
    sizes = np.r_[3, 0, 0, 40, 1, 130, 7, 0, 2]
    run_scanned(program, policy, sizes, 96, 96, shuffle=3, check_uninitialized_shared=True)
    run_disjoint(program, policy, sizes, 96, 96, shuffle=4, check_uninitialized_shared=True)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=2)
@given(data=st.data())
def test_random_sizes(program: Program, policy: str, data: st.DataObject) -> None:
    size = st.one_of(st.integers(0, 3), st.integers(28, 36), st.sampled_from([0, 95, 96, 97, 223, 224, 225]))
    sizes = np.array(data.draw(st.lists(size, min_size=1, max_size=100)), np.int64)
    run_scanned(program, policy, sizes, 96, 96)
    run_disjoint(program, policy, sizes, 96, 96)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("layout", ["scanned", "disjoint"])
@pytest.mark.parametrize("pattern", ["giants and small", "all empty", "one giant", "around 1024"])
def test_calls_without_a_reduction_visit_all(
    program: Program, policy: str, layout: str, pattern: str
) -> None:
    sizes = PATTERNS[pattern]
    offsets = np.r_[0, np.cumsum(sizes)].astype(np.int32)
    visits = np.zeros(offsets[-1] + 1, np.uint32)
    program.launch(f"{policy}_visits_{layout}", blocks(sizes.size, 96), 96, [sizes.size, offsets, visits])
    assert (visits[:-1] == 1).all()
    assert visits[-1] == 0


def sums(program: Program, policy: str, sizes: Sizes) -> float:
    """Runs the sums of a policy, checks them, and tells its warp efficiency."""
    offsets = np.r_[0, np.cumsum(sizes)].astype(np.int32)
    values = np.random.default_rng(2).random(offsets[-1]).astype(np.float32)
    out = np.zeros(sizes.size, np.float32)
    profile = program.launch(f"{policy}_sums", -(-sizes.size // 256), 256, [sizes.size, offsets, values, out])
    padded = np.r_[values.astype(np.float64), 0]
    expected = np.where(sizes > 0, np.add.reduceat(padded, np.minimum(offsets[:-1], values.size)), 0) + 2
    np.testing.assert_allclose(out, expected, rtol=1e-5)
    return profile.warp_efficiency


@pytest.mark.parametrize("policy", POLICIES)
def test_sums_keep_more_lanes_busy_than_one_lane_a_task(program: Program, policy: str) -> None:
    sizes = np.minimum(2000, (1.9 / np.random.default_rng(3).random(500) ** 0.62)).astype(np.int64)
    sizes[5] = 2000
    assert sums(program, policy, sizes) > 2 * sums(program, "one_per_lane", sizes)
