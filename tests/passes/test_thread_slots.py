"""Places that each thread has for itself, if a remainder finds them, and places of tiles, which iterations share out.

nvcc computes `i % 7` as `i - i / 7 * 7`. Such a remainder comes back, although `i` in it grows.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from cccopt.ccc.outcome.refusal import Refusal
from tests.kernels.running import CUDA, Arguments, Launch, compare, compiled, only, rewritten

pytestmark = pytest.mark.nvcc

TEXT = (CUDA / "thread_slots.cu").read_text()
SLOTS = re.findall(r"^SLOTS\((\w+),", TEXT, re.MULTILINE)
ROWS = re.findall(r"^ROWS\((\w+),", TEXT, re.MULTILINE)
CALLS = re.findall(r"^CALLS\((\w+),", TEXT, re.MULTILINE)
TILES = {"tiles_in_rows": 3, "tiles_in_rows_of_ten": 10}


@pytest.mark.parametrize("kernel", SLOTS)
@pytest.mark.parametrize("arch", ["sm_90", "sm_100"])
def test_a_remainder_finds_places_of_the_thread(kernel: str, arch: str) -> None:
    for form in ("split", "carried"):
        with pytest.raises(Refusal, match="CCC037"):
            rewritten(only(compiled("thread_slots", arch), kernel), form)


@pytest.mark.parametrize("kernel", ["by_a_row_of_seven", "by_a_distance"])
def test_a_difference_of_unknown_numbers_is_unknown(kernel: str) -> None:
    for form in ("split", "carried"):
        with pytest.raises(Refusal, match="CCC037"):
            rewritten(only(compiled("thread_slots", "sm_90"), kernel), form)


@pytest.mark.parametrize("arch", ["sm_90", "sm_100"])
def test_a_row_that_a_condition_replaces_comes_back(arch: str) -> None:
    with pytest.raises(Refusal, match="CCC037"):
        rewritten(only(compiled("thread_slots", arch), "rows_that_end_early"), "carried")


@pytest.mark.parametrize("kernel", ROWS)
def test_a_row_of_a_block_has_places_of_its_own(kernel: str) -> None:
    for form in ("split", "carried"):
        with pytest.raises(Refusal, match="CCC037"):
            rewritten(only(compiled("thread_slots", "sm_90"), kernel), form)


@pytest.mark.parametrize("kernel", CALLS)
def test_a_function_writes_to_places_of_the_thread(kernel: str) -> None:
    module = only(compiled("thread_slots", "sm_90"), kernel)
    if kernel == "called_with_a_place_of_the_iteration":
        assert rewritten(module, "carried")
        return
    for form in ("split", "carried"):
        with pytest.raises(Refusal, match="CCC037"):
            rewritten(module, form)


def tiled(width: int, launch: Launch) -> Arguments:
    tiles = 4 * width
    data = np.random.default_rng(3).integers(0, 99, tiles * 64).astype(np.int32)
    return [tiles, data, np.zeros_like(data), width]


@pytest.mark.parametrize("kernel", TILES)
def test_rows_and_columns_of_tiles_are_places_of_the_iteration(kernel: str) -> None:
    module = only(compiled("thread_slots", "sm_90"), kernel)
    launches = [Launch(3, (16, 4), 2)]
    ran = compare(module, kernel, lambda launch: tiled(TILES[kernel], launch), launches, forms=("split",))
    assert ran["split"]["push"]


def test_threads_of_different_blocks_share_no_scratch_in_global_memory() -> None:
    module = only(compiled("thread_slots", "sm_90"), "rows_of_blocks")
    launches = [Launch(6, 64, 1), Launch(3, 33, 1)]

    def make(launch: Launch) -> Arguments:
        data = np.random.default_rng(3).integers(0, 99, 1000).astype(np.int32)
        return [launch.threads - 5, data, np.zeros_like(data), 12]

    assert compare(module, "rows_of_blocks", make, launches, forms=("split",))["split"]
