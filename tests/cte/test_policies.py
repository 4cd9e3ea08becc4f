"""Policies of one warp on the emulator: each fine task once, order kept, any sizes, layouts, types, blocks, indices.

The emulator reports accesses to shared memory that no barrier orders.
"""

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
    LARGE,
    LITTLE,
    TYPES,
    WARPS,
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
WIDTHS = {f"sub_warp<{width}>": width for width in (2, 4, 8, 16, 32)}
POLICIES = ("one_per_lane", *WIDTHS, "warp", "warp_segmented", "warp_staged", "warp_chunked", "automatic")
BETWEEN = ("sub_warp<2>", "sub_warp<4>", "sub_warp<16>")
"""Widths between others take the same code."""
THOROUGHLY = tuple(policy for policy in POLICIES if policy not in BETWEEN)
"""With `scope` the tests of a policy follow one another, so that a worker parses the code of some policies alone."""
LAYOUTS = {"scanned": scanned, "disjoint": disjoint}
GIANT = WARPS["giant behind small ones"]

# The kernels of warp_policies.cu: threads of a block; indices and where they begin; whether there are descriptors.
REDUCTIONS: dict[str, tuple[Any, Any, int | None, bool]] = {
    "scanned_int32": (32, np.int32, 0, False),
    "scanned_float": ((16, 16), np.uint32, None, True),
    "scanned_double": ((32, 16, 2), np.int64, HIGH, True),
    "scanned_int64": ((8, 4, 6), np.int32, -2000, False),
    "scanned_sequence": (96, np.uint32, None, False),
    "scanned_long_sequence": (256, np.int64, -HIGH, True),
    "disjoint_int32": ((48, 2), np.int64, HIGH, True),
    "disjoint_float": (1024, np.int32, -2000, False),
    "disjoint_double": ((2, 64, 2), np.uint32, None, True),
    "disjoint_int64": (32, np.int32, 0, True),
    "disjoint_sequence": ((4, 8, 8), np.int32, -(2**31), True),
    "disjoint_long_sequence": (96, np.uint64, HIGH, False),
}
VISITS: dict[str, tuple[Any, Any, int | None, bool]] = {
    "scanned_visits": ((32, 3), np.int32, -70, False),
    "scanned_visits_described": (256, np.uint32, None, True),
    "disjoint_visits": ((4, 4, 2), np.int64, HIGH, True),
    "disjoint_visits_described": (128, np.uint32, None, True),
    "disjoint_visits_undescribed": ((8, 8), np.int32, -2000, False),
}


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    @cache
    def program(policy: str) -> Program:
        return Program(
            ptx_for_all_workers("warp_policies", tmp_path_factory, f"-DPOLICY=cte::{policy}"), policy
        )

    return program


@cache
def listed(layout: str, sizes: bytes, base: int | None) -> Tasks:
    """The tasks of ``sizes``; without a ``base`` they end at the last index of 32 bits."""
    return placed(LAYOUTS[layout](np.frombuffer(sizes, np.int64)), base)


@cache
def results(layout: str, sizes: bytes, kind: str, described: bool) -> NDArray[Any]:
    """All policies have the same."""
    return listed(layout, sizes, 0).prefixes(TYPES[kind], described=described)[1]


def reduce(program: Program, kernel: str, sizes: NDArray[np.int64], **how: Any) -> Profile:
    """Runs and checks a kernel."""
    block, index, base, described = REDUCTIONS[kernel]
    layout, kind = kernel.split("_", 1)
    key = sizes.astype(np.int64).tobytes()
    tasks, expected = listed(layout, key, base), results(layout, key, kind, described)
    visits, out = np.zeros(tasks.fine, np.uint32), np.zeros(tasks.count, TYPES[kind])
    arguments = [tasks.count, *tasks.bounds(index), index(tasks.base), visits, out]
    profile = program.launch(kernel, grid_of(tasks, block), block, arguments, **how)
    assert_equal(visits, tasks.visits)
    assert_equal(out, expected, tasks.sizes)
    return profile


@pytest.mark.parametrize("policy", THOROUGHLY, scope="module")
@pytest.mark.parametrize("kernel", REDUCTIONS)
def test_order_is_kept_and_every_fine_task_runs_once(programs: Any, policy: str, kernel: str) -> None:
    reduce(programs(policy), kernel, ALL)


@pytest.mark.parametrize("policy", BETWEEN, scope="module")
@pytest.mark.parametrize("kernel", ["scanned_float", "disjoint_sequence"])
def test_widths_between_do_the_same(programs: Any, policy: str, kernel: str) -> None:
    reduce(programs(policy), kernel, ALL)


@pytest.mark.parametrize("policy", THOROUGHLY, scope="module")
@pytest.mark.parametrize("kernel", ["scanned_sequence", "disjoint_double"])
def test_large_tasks(programs: Any, policy: str, kernel: str) -> None:
    reduce(programs(policy), kernel, LARGE)


@pytest.mark.parametrize("policy", ["warp_staged", "automatic"], scope="module")
@pytest.mark.parametrize("kernel", ["scanned_int32", "scanned_long_sequence", "disjoint_int64"])
def test_strips_of_any_length(programs: Any, policy: str, kernel: str) -> None:
    """How much of a strip is run depends on how many places are left."""
    totals = [places + more for places in range(32, 545, 32) for more in (-1, 0, 1)]
    reduce(programs(policy), kernel, np.concatenate([split_evenly(total, 32) for total in totals]))


def split_evenly(total: int, parts: int) -> NDArray[np.int64]:
    return (total + np.arange(parts)) // parts


@pytest.mark.parametrize("policy", THOROUGHLY, scope="module")
def test_no_fine_tasks_at_all(programs: Any, policy: str) -> None:
    for kernel in ("scanned_sequence", "disjoint_long_sequence"):
        reduce(programs(policy), kernel, np.zeros(130, np.int64))


@cache
def giant_of_one_lane(programs: Any, kernel: str) -> Profile:
    return reduce(programs("one_per_lane"), kernel, GIANT)


@pytest.mark.parametrize(
    "policy", [policy for policy in THOROUGHLY if policy != "one_per_lane"], scope="module"
)
@pytest.mark.parametrize("kernel", ["scanned_int32", "scanned_int64", "disjoint_sequence"])
def test_a_giant_keeps_more_lanes_busy_than_one(programs: Any, policy: str, kernel: str) -> None:
    alone, shared = giant_of_one_lane(programs, kernel), reduce(programs(policy), kernel, GIANT)
    assert shared.global_accesses < alone.global_accesses / 3
    assert shared.warp_efficiency > 3 * alone.warp_efficiency


@pytest.mark.parametrize("policy", THOROUGHLY, scope="module")
def test_warps_in_any_order_give_the_same(programs: Any, policy: str) -> None:
    looks = policy == "automatic"  # for tags of warps that may not have come (docs/decisions/0014)
    how = {"shuffle": 3, "check_uninitialized_shared": not looks}
    reduce(programs(policy), "disjoint_sequence", LITTLE, **how)


LISTS = st.lists(
    st.one_of(
        st.integers(0, 6), st.integers(28, 36), st.sampled_from([0, 127, 128, 129, 255, 256, 257, 385])
    ),
    min_size=1,
    max_size=70,
)


@pytest.mark.parametrize("policy", THOROUGHLY, scope="module")
@settings(max_examples=3, derandomize=True)
@given(sizes=LISTS)
def test_random_sizes(programs: Any, policy: str, sizes: list[int]) -> None:
    for kernel in ("scanned_sequence", "disjoint_float"):
        reduce(programs(policy), kernel, np.array(sizes))
    for kernel in ("scanned_visits_described", "disjoint_visits_described"):
        visit(programs(policy), kernel, np.array(sizes))


def visit(program: Program, kernel: str, sizes: NDArray[np.int64], *, highest: int | None = None) -> None:
    """Runs and checks a kernel without a reduction; its tasks end at the index ``highest`` if given."""
    block, index, base, described = VISITS[kernel]
    tasks = placed((scanned if kernel.startswith("scanned") else apart)(sizes), base)
    if highest is not None:
        tasks = placed(tasks, highest - int(tasks.ends.max()))
    visits, hashes = np.zeros(tasks.fine, np.uint32), np.zeros(tasks.fine, np.uint32)
    arguments = [tasks.count, *tasks.bounds(index), index(tasks.base), visits, hashes]
    program.launch(kernel, grid_of(tasks, block), block, arguments)
    assert_equal(visits, tasks.visits)
    assert_equal(hashes[tasks.members[0]], tasks.hashes(described=described))


@pytest.mark.parametrize("policy", THOROUGHLY, scope="module")
@pytest.mark.parametrize("kernel", VISITS)
def test_calls_without_a_reduction_run_every_fine_task_once(programs: Any, policy: str, kernel: str) -> None:
    visit(programs(policy), kernel, ALL)


@pytest.mark.parametrize("policy", THOROUGHLY, scope="module")
@pytest.mark.parametrize("kernel", [kernel for kernel in VISITS if kernel.startswith("disjoint")])
def test_a_single_busy_lane(programs: Any, policy: str, kernel: str) -> None:
    """All lanes run its task, whatever its size; a long one is shared with the block, and then none or one is left."""
    of_one = [0, 1, 31, 32, 33, 127, 128, 129, 160, 1023, 1024]
    lone = [warp_with({lane: size}) for lane in (0, 13, 31) for size in of_one]
    beside_long = [warp_with({5: 1500}), warp_with({5: 1500, 20: 33}), warp_with({20: 33, 31: 1})]
    visit(programs(policy), kernel, np.concatenate([*lone, *beside_long]))


@pytest.mark.parametrize("policy", ["warp_staged", "automatic"], scope="module")
@pytest.mark.parametrize("kernel", VISITS)
def test_strips_without_values_of_any_length(programs: Any, policy: str, kernel: str) -> None:
    totals = [places + more for places in (1, 32, 64, 96, 128, 160, 256) for more in (-1, 0, 1)]
    visit(programs(policy), kernel, np.concatenate([split_evenly(total, 32) for total in totals]))


@pytest.mark.parametrize("policy", THOROUGHLY, scope="module")
@pytest.mark.parametrize("kernel", ["scanned_visits", *(kernel for kernel in VISITS if "scribed" in kernel)])
def test_a_giant_that_ends_at_the_highest_index(programs: Any, policy: str, kernel: str) -> None:
    """Behind its last fine task there is no index to ask about."""
    highest = int(np.iinfo(VISITS[kernel][1]).max)
    lanes = np.r_[7, np.zeros(19, np.int64), 3, 1]
    for giant in (128, 160, 300, 640, 1300):
        # Of tasks that lie from back to front the first one ends last.
        sizes = (
            np.r_[lanes, giant]
            if kernel.startswith("scanned")
            else np.r_[giant, lanes, np.zeros(9, np.int64)]
        )
        visit(programs(policy), kernel, sizes, highest=highest)


@pytest.mark.parametrize("policy", THOROUGHLY, scope="module")
def test_calls_share_a_storage_of_the_callers(programs: Any, policy: str) -> None:
    tasks = scanned(np.r_[LITTLE, WARPS["around 32"]])
    visits = np.zeros(tasks.fine, np.uint32)
    out, sums = np.zeros(tasks.count, SEQUENCE), np.zeros(tasks.count)
    programs(policy).launch("several", 1, 96, [tasks.count, *tasks.bounds(np.int32), 0, visits, out, sums])
    half = tasks.sizes // 2
    expected = [*result_twice(tasks, half)]
    assert_equal(sums, half + tasks.sizes + 0.5, tasks.sizes)
    assert_equal(out, np.array(expected, SEQUENCE), tasks.sizes)
    # Thrice all, the first half, the second one.
    assert_equal(visits[:-1], np.full(tasks.fine - 1, 4, np.uint32))


def result_twice(tasks: Tasks, half: NDArray[np.int64]) -> Any:
    """Each task, and behind it its second half."""
    hashes = tasks.hashes(described=False).tolist()
    for task, (begin, end) in enumerate(zip(tasks.begins.tolist(), tasks.ends.tolist(), strict=True)):
        text, power, length = task, 3, 1
        for letter in hashes[begin:end] + hashes[begin + int(half[task]) : end]:
            text, power, length = (text * 31 + letter) % 2**32, power * 31 % 2**32, length + 1
        yield text, power, length


EVERYONE = 2**32 - 1
SIZES = np.r_[np.tile([3, 4, 0, 1, 1, 3, 2], 4), 9, 400, 0, 1, 70, 2, 0, 33, 1, 129, 0, 8, np.full(24, 5)]


def partly(programs: Any, policy: str, threads: int, stays: int, calls: int) -> NDArray[np.int64]:
    """Runs a call by a part of the threads, checks it, and tells in how many lanes each coarse task ran."""
    made = scanned(SIZES[:threads])
    tasks = Tasks(made.begins, made.ends)
    runners, out = np.zeros(tasks.fine, np.uint32), np.zeros(threads, SEQUENCE)
    programs(policy).launch(
        "partly", 1, threads, [threads, *tasks.bounds(np.int32), stays, calls, runners, out]
    )
    lanes = np.arange(threads) % 32
    here = (stays >> lanes & 1).astype(bool)
    runs = here & (calls >> lanes & 1).astype(bool)
    expected = np.where(runs, tasks.prefixes(SEQUENCE, described=False)[1], np.array((1, 1, 1), SEQUENCE))
    expected[~here] = np.zeros(1, SEQUENCE)
    assert_equal(out, expected, tasks.sizes)
    ran = [runners[begin:end] for begin, end in zip(tasks.begins, tasks.ends, strict=True)]
    assert all((who != 0).all() == doing for who, doing in zip(ran, runs, strict=True) if who.size)
    alone = [
        who.size == 0 or not doing or set(who) == {task + 1}
        for task, (who, doing) in enumerate(zip(ran, runs, strict=True))
    ]
    return np.array([0 if ok else np.unique(who).size for who, ok in zip(ran, alone, strict=True)])


@pytest.mark.parametrize("policy", POLICIES, scope="module")
def test_a_warp_that_is_not_whole_runs_a_task_a_lane(programs: Any, policy: str) -> None:
    # The second warp of the block has eight threads.
    helped = partly(programs, policy, 40, EVERYONE, EVERYONE)
    assert (helped[32:] == 0).all()
    # The lanes of a whole warp help one another: the task of 400 runs in all of them, or in most.
    lanes = {"one_per_lane": 0, **WIDTHS}.get(policy, 32)
    assert helped[29] == lanes or (policy in ("warp_chunked", "automatic") and helped[29] > 16)
    assert (partly(programs, policy, 64, 0x7FFFFFFF, EVERYONE) == 0).all()  # lane 31 has left
    assert (
        partly(programs, policy, 64, 0x0F0F3C01, 0xFFFFFFFE) == 0
    ).all()  # as have others, and lane 0 stands aside
    assert (partly(programs, policy, 64, EVERYONE, 0xAAAAAAAA) == 0).all()
