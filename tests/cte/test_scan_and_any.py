"""Scans inside a coarse task and searches with an early exit, on the emulator: any sizes, layouts, indices, blocks."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cccopt.emulator import Profile, Program
from tests.cte.compiling import ptx_for_all_workers
from tests.cte.sequences import SEQUENCE
from tests.cte.support import (
    ALL,
    HIGH,
    LITTLE,
    TYPES,
    Tasks,
    apart,
    assert_equal,
    disjoint,
    grid_of,
    placed,
    scanned,
    warp_with,
)

pytestmark = pytest.mark.nvcc
OF_WARPS = ("one_per_lane", "sub_warp<2>", "sub_warp<8>", "sub_warp<32>", "warp", "automatic")
POLICIES = (*OF_WARPS, "thread_warp_block")

# The kernels of scan_and_any.cu: their tasks, threads of a block, indices and where they begin, descriptors.
SCANS: dict[str, tuple[Any, Any, Any, int | None, bool]] = {
    "scan_scanned_sequence": (scanned, (8, 4, 3), np.int32, -2000, False),
    "scan_scanned_float": (scanned, 256, np.uint32, None, True),
    "scan_disjoint_long_sequence": (apart, 32, np.int64, HIGH, False),
    "scan_disjoint_int32": (apart, (48, 2), np.uint32, None, True),
}
SEARCHES: dict[str, tuple[Any, Any, Any, int | None, bool]] = {
    "any_scanned": (scanned, 96, np.int32, -2000, False),
    "any_scanned_described": (scanned, (4, 8), np.uint32, None, True),
    "any_disjoint": (disjoint, (16, 4, 4), np.int64, HIGH, True),
    "any_disjoint_unsigned": (disjoint, 32, np.uint32, None, False),
}


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    @cache
    def program(policy: str) -> Program:
        return Program(
            ptx_for_all_workers("scan_and_any", tmp_path_factory, f"-DPOLICY=cte::{policy}"), policy
        )

    return program


def scan(program: Program, kernel: str, sizes: Any, **how: Any) -> Profile:
    """Runs and checks a scan."""
    layout, block, index, base, described = SCANS[kernel]
    tasks = placed(layout(sizes), base)
    dtype = TYPES[kernel.split("_", 2)[2]]
    visits, writes = np.zeros(tasks.fine, np.uint32), np.zeros(tasks.fine, np.uint32)
    owners, prefixes = np.zeros(tasks.fine, np.int32), np.zeros(tasks.fine, dtype)
    out = np.zeros(tasks.count, dtype)
    arguments = [tasks.count, *tasks.bounds(index), index(tasks.base), visits, writes, owners, prefixes, out]
    profile = program.launch(kernel, grid_of(tasks, block), block, arguments, **how)
    ahead, results = tasks.prefixes(dtype, described=described)
    fine, whose = tasks.members
    assert_equal(visits, tasks.visits)
    assert_equal(writes, tasks.visits)
    assert_equal(owners[fine], whose * described)
    assert_equal(prefixes[fine], ahead)
    assert_equal(out, results, tasks.sizes)
    return profile


@pytest.mark.parametrize("policy", POLICIES, scope="module")
@pytest.mark.parametrize("kernel", SCANS)
def test_each_fine_task_learns_what_stands_ahead_of_it(programs: Any, policy: str, kernel: str) -> None:
    scan(programs(policy), kernel, ALL)


def search(
    program: Program, kernel: str, tasks: Tasks, wanted: NDArray[np.uint8], **how: Any
) -> tuple[NDArray[np.uint32], Profile]:
    """Runs and checks a search. Also tells how often each fine task was asked."""
    _, block, index, base, described = SEARCHES[kernel]
    tasks = placed(tasks, base)
    visits, out = np.zeros(tasks.fine, np.uint32), np.zeros(tasks.count, np.uint8)
    arguments = [tasks.count, *tasks.bounds(index), index(tasks.base), visits, wanted, out]
    profile = program.launch(kernel, grid_of(tasks, block), block, arguments, **how)
    fine, whose = tasks.members
    found = np.zeros(tasks.count, np.uint8)
    np.maximum.at(found, whose, wanted[fine] == 1 + whose % 2 * described)
    assert_equal(out, found, tasks.sizes)
    assert (visits <= tasks.visits).all()
    # Without a hit in some task nobody may stop early.
    asked = np.zeros(tasks.fine, bool)
    asked[fine[found[whose] == 0]] = True
    assert visits[asked].all()
    return visits, profile


@pytest.mark.parametrize("policy", POLICIES, scope="module")
@pytest.mark.parametrize("kernel", SEARCHES)
@pytest.mark.parametrize("share", [0, 0.01])
def test_what_is_there_is_found(programs: Any, policy: str, kernel: str, share: float) -> None:
    tasks = SEARCHES[kernel][0](ALL)
    generator = np.random.default_rng(3)
    wanted = generator.integers(1, 3, tasks.fine) * (generator.random(tasks.fine) < share)
    search(programs(policy), kernel, tasks, wanted.astype(np.uint8))


@pytest.mark.parametrize("policy", POLICIES, scope="module")
@pytest.mark.parametrize("lane", [0, 9, 31])
def test_what_was_found_is_not_looked_for_again(programs: Any, policy: str, lane: int) -> None:
    sizes = np.r_[np.tile([2, 0], 16), 3]
    sizes[lane] = 1000
    for kernel, layout in (("any_scanned", scanned), ("any_disjoint_unsigned", apart)):
        tasks = layout(sizes)
        begin, costs = int(tasks.begins[lane]), []
        together = int(np.prod(SEARCHES[kernel][1])) if policy == "thread_warp_block" else 32
        for at in (0, 170, 999):
            wanted = np.zeros(tasks.fine, np.uint8)
            wanted[begin + at] = 1
            visits, profile = search(programs(policy), kernel, tasks, wanted)
            assert at < visits[begin : begin + 1000].sum() <= at + together
            costs.append(profile.warp_instructions)
        assert costs[0] < costs[1] < costs[2] - 250


def test_all_warps_of_a_block_go_along_a_giant(programs: Any) -> None:
    tasks = scanned(warp_with({3: 9000}))
    nowhere = np.zeros(tasks.fine, np.uint8)
    steps = {}
    for policy in ("sub_warp<32>", "thread_warp_block"):
        scanning = scan(programs(policy), "scan_scanned_float", tasks.sizes)
        _, searching = search(programs(policy), "any_disjoint", tasks, nowhere)
        steps[policy] = (scanning.steps, searching.steps)
    # Eight warps in blocks of 256 threads.
    for one, eight in zip(*steps.values(), strict=True):
        assert 4 * eight < one


@pytest.mark.parametrize("policy", ["sub_warp<8>", "warp", "thread_warp_block"])
def test_warps_in_any_order_give_the_same(programs: Any, policy: str) -> None:
    scan(programs(policy), "scan_scanned_sequence", LITTLE, shuffle=1)
    tasks = disjoint(LITTLE)
    search(
        programs(policy), "any_disjoint", tasks, (np.arange(tasks.fine) % 37 == 5).astype(np.uint8), shuffle=2
    )


SIZES = st.lists(st.one_of(st.integers(0, 6), st.sampled_from([31, 32, 33, 64, 97])), min_size=1, max_size=40)


@pytest.mark.parametrize("policy", POLICIES, scope="module")
@settings(max_examples=2, derandomize=True)
@given(sizes=SIZES, seed=st.integers(0, 99))
def test_random_sizes(programs: Any, policy: str, sizes: list[int], seed: int) -> None:
    scan(programs(policy), "scan_disjoint_long_sequence", np.array(sizes))
    tasks = disjoint(sizes)
    wanted = np.random.default_rng(seed).integers(0, 40, tasks.fine).astype(np.uint8)
    search(programs(policy), "any_disjoint", tasks, wanted)


@pytest.mark.parametrize("policy", OF_WARPS)
@pytest.mark.parametrize(("threads", "stays"), [(40, 2**32 - 1), (64, 0xFFFF7FFE), (64, 0x00010000)])
def test_warps_that_are_not_whole(programs: Any, policy: str, threads: int, stays: int) -> None:
    tasks = apart(np.r_[np.tile([3, 40, 0, 70], 8), 70, 2, 0, 33, 1, 129, 0, 8, np.full(24, 5)][:threads])
    prefixes, totals = np.zeros(tasks.fine, SEQUENCE), np.zeros(threads, SEQUENCE)
    wanted, found = (np.arange(tasks.fine) % 50 == 3).astype(np.uint8), np.full(threads, 7, np.uint8)
    arguments = [threads, *tasks.bounds(np.int32), stays, prefixes, totals, wanted, found]
    programs(policy).launch("partly", 1, threads, arguments)
    fine, whose = tasks.members
    here = (stays >> (np.arange(threads) % 32) & 1).astype(bool)
    ahead, results = tasks.prefixes(SEQUENCE, described=False)
    assert_equal(prefixes[fine[here[whose]]], ahead[here[whose]])
    assert_equal(totals, np.where(here, results, np.zeros(1, SEQUENCE)))
    hits = np.zeros(threads, np.uint8)
    np.maximum.at(hits, whose, wanted[fine])
    assert_equal(found, np.where(here, hits, 7))
