"""Long tasks, which the warps of a block share under ``automatic``, on the emulator.

On a GPU: tests/device/test_cte_sharing.py. The emulator reports accesses to shared memory that nothing orders.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cccopt.emulator import EmulatorError, Program
from tests.cte.compiling import ptx_of_kernels
from tests.cte.sharing import PAIR, SEQUENCE, expected_of, expected_sequences, sizes_with_long
from tests.cte.support import apart, assert_equal, scanned

pytestmark = pytest.mark.nvcc
BLOCK = 128
LAYOUTS = {"scanned": scanned, "disjoint": apart}
TURNS = {**LAYOUTS, "mixed": scanned}
"""Of calls behind one another, which may have several layouts."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return Program(ptx_of_kernels("sharing", tmp_path_factory.mktemp("ptx")), "sharing.ptx")


def turns(program: Program, layout: str, sizes: NDArray[np.int64], stays: int = 0xF, **how: Any) -> None:
    """Runs and checks three calls behind one another; blocks take several turns."""
    tasks = TURNS[layout](sizes)
    visits, out = np.zeros(tasks.fine, np.uint32), np.zeros(tasks.count, PAIR)
    sums = np.zeros(tasks.count, np.int32)
    blocks = max(1, -(-tasks.count // BLOCK) // 2)
    arguments = [tasks.count, *tasks.bounds(np.int32), stays, 3, visits, out, sums]
    program.launch(f"turns_{layout}", blocks, BLOCK, arguments, **how)
    runs = stays >> np.arange(tasks.count) % BLOCK // 32 & 1 == 1
    texts, totals = expected_of(tasks, BLOCK, odd=3)
    assert_equal(out[runs], texts[runs], tasks.sizes[runs])
    assert_equal(sums[runs], totals[runs], tasks.sizes[runs])
    fine, owners = tasks.members
    assert_equal(visits[fine], (runs[owners] * 4).astype(np.uint32))


@pytest.mark.parametrize("layout", TURNS)
def test_calls_behind_one_another(program: Program, layout: str) -> None:
    turns(program, layout, sizes_with_long(np.random.default_rng(1), 500))


@pytest.mark.parametrize("layout", TURNS)
@settings(max_examples=4, derandomize=True)
@given(data=st.data())
def test_random_sizes(program: Program, layout: str, data: st.DataObject) -> None:
    """Around the length from which on tasks are shared, and of pieces that do not come out even."""
    long = st.sampled_from([1023, 1024, 2047, 2048, 2049, 2177, 3072, 4100])
    size = st.one_of(st.integers(0, 9), st.integers(30, 40), long)
    turns(program, layout, np.array(data.draw(st.lists(size, min_size=1, max_size=80)), np.int64))


@pytest.mark.parametrize("layout", TURNS)
@pytest.mark.parametrize("stays", [0b0001, 0b0110, 0b1011])
def test_warps_that_never_call_hold_up_nobody(program: Program, layout: str, stays: int) -> None:
    sizes = np.r_[2, 2100, np.zeros(40, int), 3000, np.ones(40, int), 2049]
    turns(program, layout, sizes, stays)


def test_lanes_and_warps_in_any_order_give_the_same(program: Program) -> None:
    turns(program, "disjoint", np.r_[1, 0, 2048, np.zeros(30, int), 3], shuffle=5, max_steps=100_000_000)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_large_values_keep_their_order(program: Program, layout: str) -> None:
    """Around the length from which on they are shared, of pieces that do not come out even, and beside short ones."""
    tasks = LAYOUTS[layout](np.r_[3, 8191, np.zeros(40, int), 8192, 70, np.arange(50), 8193, 12_345, 1])
    out = np.zeros(tasks.count, SEQUENCE)
    program.launch(f"texts_{layout}", 2, BLOCK, [tasks.count, *tasks.bounds(np.int32), out])
    assert_equal(out, expected_sequences(tasks), tasks.sizes)


SIZES = np.r_[np.zeros(5, np.int64), 12_000, np.arange(BLOCK - 6) % 20]
"""A long task, and others of more than a strip: who is through at once looks before there is anything to see."""


def runners(program: Program, kernel: str, layout: str = "scanned") -> tuple[set[int], NDArray[np.int32]]:
    """The warps that run the long task of a block, which is the first warp's, and all results less 7."""
    tasks = LAYOUTS[layout](SIZES)
    ran, out = np.zeros(tasks.fine, np.uint32), np.zeros(BLOCK, np.int32)
    program.launch(kernel, 1, BLOCK, [*tasks.bounds(np.int32), ran, out])
    assert (ran[tasks.members[0]] > 0).all()
    return set((ran[tasks.begins[5] : tasks.ends[5]] - 1).tolist()), out - 7


@pytest.mark.parametrize(
    ("kernel", "layout"),
    [
        ("who_by_value_scanned", "scanned"),
        ("who_by_value_disjoint", "disjoint"),
        ("who_uniform", "scanned"),
        ("who_visits_uniform", "disjoint"),
        ("who_of_32_bytes", "scanned"),
        ("who_of_captured_operator", "scanned"),
        ("who_of_aligned_captures", "scanned"),
    ],
)
def test_warps_share_a_long_task(program: Program, kernel: str, layout: str) -> None:
    warps, sums = runners(program, kernel, layout)
    assert warps == {0, 1, 2, 3}
    assert_equal(sums, 2 * SIZES)


@pytest.mark.parametrize(
    ("kernel", "layout"), [("who_of_two_types", "scanned"), ("who_of_types_by_warp", "disjoint")]
)
def test_calls_with_values_of_other_types_do_not_mix(program: Program, kernel: str, layout: str) -> None:
    assert_equal(runners(program, kernel, layout)[1], 2 * SIZES)


@pytest.mark.parametrize("kernel", ["who_by_reference", "who_of_warp", "who_of_thread"])
def test_a_closure_that_means_something_else_in_each_warp_is_not_shared(
    program: Program, kernel: str
) -> None:
    warps, sums = runners(program, kernel)
    assert warps == {0}
    assert_equal(sums, (2 + np.arange(BLOCK) // 32) * SIZES)


@pytest.mark.parametrize("kernel", ["who_of_36_bytes", "who_visits"])
def test_neither_very_large_values_nor_calls_of_unknown_closures_are_shared(
    program: Program, kernel: str
) -> None:
    warps, sums = runners(program, kernel)
    assert warps == {0}
    assert_equal(sums, 2 * SIZES)


def test_debug_builds_find_captures_that_are_not_uniform(tmp_path: Path) -> None:
    ptx = ptx_of_kernels("sharing", tmp_path, "-DCTE_DEBUG")
    # The driver has the body of this function.
    trapping = re.sub(r"\.extern (\.func __assertfail\s*\([^)]*\))[^;]*;", r"\1 { trap; }", ptx)
    program = Program(trapping, "sharing.ptx")
    assert runners(program, "who_by_value_scanned")[0] == {0, 1, 2, 3}
    with pytest.raises(EmulatorError, match="CCC078"):
        runners(program, "who_said_uniform")
