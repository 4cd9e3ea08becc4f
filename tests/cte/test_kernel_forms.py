"""Forms for a whole grid on the emulator: tasks over many blocks, empty ones at borders, results by atomics."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cccopt.emulator import Program
from tests.cte.compiling import compiled, ptx_of_kernels
from tests.cte.sequences import SEQUENCE, hashed, letters

pytestmark = pytest.mark.nvcc
HEADERS = (
    "block",
    "path",
    "policies/block",
    "policies/merge_path",
    "policies/thread_warp_block",
    "kernel/atomics",
    "kernel/defer_long",
    "kernel/merge_path",
    "kernel/edge_parallel",
    "kernel/virtual_split",
)
Sizes = NDArray[np.int64]

rng = np.random.default_rng(6)
PATTERNS: dict[str, Sizes] = {
    "no tasks": np.zeros(0, np.int64),
    "all empty": np.zeros(700, np.int64),
    "one task": np.array([5]),
    "giant over many blocks": np.r_[rng.integers(0, 5, 50), 4000, rng.integers(0, 5, 50)],
    "two giants": np.r_[1500, 0, 0, 1500],
    # A block of 64 x 3 takes 192 steps.
    "ends at a border": np.r_[191, 191, 192, 0, 0, 190, 1, 383],
    "begins at a border": np.r_[np.zeros(192, int), 192, np.zeros(384, int), 3],
    "empty ones over a border": np.r_[100, np.zeros(200, int), 100, np.zeros(91, int), 1],
    "skewed": np.minimum(800, (1.5 / rng.random(500) ** 0.7)).astype(np.int64),
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    ptx = ptx_of_kernels("kernel_forms", tmp_path_factory.mktemp("ptx"))
    assert ".local" not in ptx
    return Program(ptx, "kernel_forms.ptx")


def run_merge_path(
    program: Program,
    sizes: Sizes,
    threads: int,
    items: int,
    index: Any = np.int32,
    origin: int = 0,
    fix_up_blocks: int = 1,
    divided: bool = False,
    **how: Any,
) -> None:
    offsets = (origin + np.r_[0, np.cumsum(sizes)]).astype(index)
    fine = int(offsets[-1])
    tile = threads * items
    blocks = max(1, -(-(sizes.size + fine - origin) // tile))
    carry = np.dtype(
        {
            "names": ["tail", "lead", "task", "has_lead"],
            "formats": [SEQUENCE, SEQUENCE, index, np.int32],
            "offsets": [0, 12, 24, 24 + np.dtype(index).itemsize],
            "itemsize": 32 if index is np.int32 else 40,
        }
    )
    # What an earlier run left must not matter.
    carries = np.frombuffer(b"\x01" * (carry.itemsize * (blocks + 2)), carry).copy()
    visits, puts = np.zeros(fine + 1, np.uint32), np.zeros(sizes.size + 1, np.uint32)
    out = np.zeros(sizes.size + 1, SEQUENCE)
    name = f"merge_path_{threads}_{items}"
    partition: Any = 0
    if divided:
        partition = np.full(blocks + 1, -1, index)
        program.launch(
            f"{name}_divide", blocks // threads + 2, threads, [sizes.size, offsets, partition], **how
        )
        steps = np.minimum(np.arange(blocks + 1) * tile, sizes.size + fine - origin)
        ends = offsets[1:] - origin + np.arange(sizes.size)
        np.testing.assert_array_equal(partition, np.searchsorted(ends, steps))
    # Two blocks more than needed.
    arguments = [sizes.size, offsets, visits, out, puts, carries, partition]
    program.launch(name, blocks + 2, threads, arguments, **how)
    program.launch(f"{name}_fix_up", fix_up_blocks, threads, [blocks + 2, offsets, out, puts, carries], **how)
    assert (visits[origin:-1] == 1).all()
    assert (visits[:origin] == 0).all()
    assert (puts[:-1] == 1).all()
    assert puts[-1] == 0
    expected = hashed(letters(np.arange(fine)), offsets[:-1], offsets[1:], step=0)
    np.testing.assert_array_equal(out[:-1], expected)


@pytest.mark.parametrize("divided", [False, True])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_merge_path_puts_each_task_once_and_keeps_order(
    program: Program, pattern: str, divided: bool
) -> None:
    run_merge_path(program, PATTERNS[pattern], 64, 3, divided=divided)


def test_merge_path_of_64_bit_offsets(program: Program) -> None:
    run_merge_path(program, PATTERNS["giant over many blocks"], 256, 7, np.int64)


def test_merge_path_of_tiles_of_32_steps_from_the_middle_of_a_matrix(program: Program) -> None:
    run_merge_path(program, PATTERNS["skewed"][:200], 32, 1, origin=77, fix_up_blocks=3)
    run_merge_path(program, PATTERNS["skewed"][:200], 32, 1, origin=77, fix_up_blocks=3, divided=True)


def test_merge_path_with_lanes_in_any_order(program: Program) -> None:
    sizes = np.r_[0, 150, 3, 0, 0, 400, 1]
    run_merge_path(program, sizes, 64, 3, shuffle=2, check_uninitialized_shared=True)


@settings(max_examples=4)
@given(st.lists(st.one_of(st.integers(0, 3), st.sampled_from([31, 32, 188, 192, 500])), max_size=60))
def test_merge_path_of_random_sizes(program: Program, sizes: list[int]) -> None:
    run_merge_path(program, np.array(sizes, np.int64), 64, 3)


def combined(op: str, owners: NDArray[Any], values: NDArray[Any], out: NDArray[Any]) -> NDArray[Any]:
    """``out`` after each value has been combined with its owner's."""
    result: NDArray[Any] = out.copy()
    ufunc = {"plus": np.add, "minimum": np.fmin, "maximum": np.fmax}[op]
    ufunc.at(result, owners, values)
    return result


@pytest.mark.parametrize("number", ["int32_t", "uint32_t", "int64_t", "uint64_t", "float", "double"])
@pytest.mark.parametrize("op", ["plus", "minimum", "maximum"])
def test_atomics_of_every_type(program: Program, number: str, op: str) -> None:
    dtype = np.dtype(number.removesuffix("_t") if number != "float" else "float32")
    generator = np.random.default_rng(7)
    owners = generator.integers(0, 6, 200).astype(np.int32)
    if dtype.kind == "f":
        values = generator.normal(size=200).astype(dtype)
        # Neither one sign alone, nor infinities, nor what is no number misleads a comparison of bits.
        values[owners == 1] = -abs(values[owners == 1])
        values[owners == 2] = abs(values[owners == 2])
        values[np.flatnonzero(owners == 3)[:2]] = np.inf, -np.inf
        if op != "plus":
            values[np.flatnonzero(owners == 4)[:2]] = np.nan, -np.nan
    else:
        info = np.iinfo(dtype)
        values = generator.integers(info.min, info.max, 200, dtype, endpoint=True)
        values[owners == 1] = info.max - values[owners == 1] % 5
    start: dict[str, Any] = {"plus": 0, "minimum": values[0], "maximum": values[0]}
    out = np.full(6, start[op], dtype)
    with np.errstate(invalid="ignore"):
        expected = combined(op, owners, values, out)
    program.launch(f"combine_{number}", 2, 128, [200, owners, values, out, list(start).index(op)])
    np.testing.assert_allclose(out, expected, rtol=1e-5 if number == "float" else 1e-12, atol=1e-6)


EDGE_KERNELS = {"plus": np.int32, "minimum": np.float32, "maximum": np.int64}


@pytest.mark.parametrize("op", EDGE_KERNELS)
@pytest.mark.parametrize("fine", [0, 1, 33, 1500])
def test_edges_in_and_out_of_order(program: Program, op: str, fine: int) -> None:
    generator = np.random.default_rng(fine)
    sizes = np.diff(np.r_[0, np.sort(generator.integers(0, fine + 1, 40)), fine])
    in_order = np.repeat(np.arange(sizes.size), sizes).astype(np.int32)
    values = generator.integers(-1000, 1000, fine).astype(EDGE_KERNELS[op])
    for owners in (in_order, generator.permutation(in_order)):
        out = np.zeros(sizes.size, values.dtype)
        expected = combined(op, owners, values, out)
        program.launch(f"edges_{op}", 2, (32, 2), [fine, owners, values, out])
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(
    "kernel", ["plus_1_contiguous", "plus_4_contiguous", "plus_4_strided", "maximum_10_strided"]
)
@pytest.mark.parametrize("pattern", [name for name in PATTERNS if name != "two giants"])
def test_virtual_tasks(program: Program, kernel: str, pattern: str) -> None:
    op, pieces = kernel.split("_")[:2]
    sizes = PATTERNS[pattern]
    offsets = np.r_[0, np.cumsum(sizes)].astype(np.int32)
    first = np.r_[0, np.cumsum(-(-sizes // int(pieces)))].astype(np.int32)
    dtype = np.float32 if op == "maximum" else np.int32
    values = np.random.default_rng(8).integers(-1000, 1000, offsets[-1]).astype(dtype)
    out = np.full(sizes.size, -500, dtype)
    expected = combined(op, np.repeat(np.arange(sizes.size), sizes), values, out)
    program.launch(f"split_{kernel}", 3, 64, [sizes.size, offsets, first, values, out])
    np.testing.assert_array_equal(out, expected)


LONG: dict[str, Sizes] = {
    "no tasks": np.zeros(0, np.int64),
    "all empty": np.zeros(150, np.int64),
    "few each": rng.integers(0, 6, 150),
    "one giant": np.r_[1, 0, 3000, np.zeros(100, int), 2],
    # What a strip of 256 leaves of them is around the 32, 48 and 64 fine tasks that are still run at once.
    "around the limit": np.r_[
        [[0, 256 + more] for more in (31, 32, 33, 47, 48, 49, 63, 64, 65, 96, 97)]
    ].ravel(),
    "giants side by side": np.r_[700, 300, 0, 500, np.ones(90, int), 400],
    "power law": np.minimum(600, (1.5 / rng.random(130) ** 1.2)).astype(np.int64),
}
# The type of values; above how many fine tasks the rest of a task is left to the second kernel; the least value and the
# start value, which let no zero in between.
DEFERRED = {
    "plus": (np.int32, 32, -1000, 7),
    "minimum": (np.float32, 48, 1000, 5000),
    "maximum": (np.int64, 64, -3000, -5000),
}


@pytest.mark.parametrize("op", DEFERRED)
@pytest.mark.parametrize("pattern", LONG)
def test_long_tasks_are_left_to_a_second_kernel(program: Program, pattern: str, op: str) -> None:
    dtype, most, least, init = DEFERRED[op]
    index = np.int64 if op == "maximum" else np.int32
    sizes = LONG[pattern]
    tasks, blocks = sizes.size, sizes.size // 64 + 1
    ends = np.cumsum(sizes)
    fine = int(sizes.sum())
    begins = ends - sizes
    if op == "minimum":  # of tasks whose indices are in any order
        order = np.random.default_rng(3).permutation(tasks)
        begins, ends = begins[order], ends[order]
    # Past the last task.
    begins, ends = (
        np.r_[bounds, np.full(64 * blocks - tasks, fine)].astype(index) for bounds in (begins, ends)
    )
    values = np.random.default_rng(8).integers(least, least + 2000, fine + 1).astype(dtype)
    ufunc = {"plus": np.add, "minimum": np.fmin, "maximum": np.fmax}[op]
    expected = np.array([ufunc.reduce(values[b:e], initial=init) for b, e in zip(begins, ends, strict=True)])
    out, visits = np.zeros(tasks + 1, dtype), np.zeros(fine + 1, np.uint32)
    pieces = np.full((fine // most * 2 + 1, 3), -1, index)
    counters = np.zeros(2, np.int32)
    # The second run finds what the first one left; its lanes and blocks come in any order.
    for run, (finishing, shuffle) in enumerate([(1, None), (24, 5)]):
        shared = [values, visits, out, pieces, counters]
        program.launch(
            f"defer_{op}", blocks, 64, [tasks, begins, ends, dtype(init), *shared], shuffle=shuffle
        )
        left = pieces[: counters[0]]
        lengths = left[:, 2] - left[:, 1]
        assert (lengths.size > 0) == (pattern not in ("no tasks", "all empty", "few each"))
        assert (lengths > 0).all()
        assert (lengths <= most).all()
        assert visits.sum() == fine * (run + 1) - lengths.sum()
        program.launch(f"finish_{op}", finishing, 64, shared, shuffle=shuffle)
        np.testing.assert_array_equal(out[:tasks], expected[:tasks])
        assert out[tasks] == 0
        assert (visits[:fine] == run + 1).all()
        assert counters.tolist() == [0, 0]


def test_the_rest_of_a_long_task_is_cut_evenly(program: Program) -> None:
    strip = 128  # places of a warp, ahead of which nothing is left
    for left, count in ((63, 0), (64, 0), (65, 2), (128, 2), (129, 3)):
        ends = np.full(64, strip + left, np.int64)
        begins = ends.copy()
        begins[0] = 0
        values, visits = np.zeros(ends[0], np.int64), np.zeros(ends[0], np.uint32)
        pieces, counters = np.zeros((9, 3), np.int64), np.zeros(2, np.int32)
        program.launch(
            "defer_maximum",
            1,
            64,
            [1, begins, ends, 0, values, visits, np.zeros(1, np.int64), pieces, counters],
        )
        assert counters.tolist() == [count, 0]
        borders = [*range(strip, strip + left, 64), strip + left]
        assert pieces[:count].tolist() == [[0, *ends] for ends in pairwise(borders)][:count]


def test_headers_compile_alone_for_the_oldest_target(tmp_path: Path) -> None:
    for header in HEADERS:
        source = tmp_path / f"{header.replace('/', '_')}.cu"
        source.write_text(f"#include <cte/{header}.cuh>\n")
        done = compiled(
            source, "-ptx", "-arch=sm_75", "-Werror", "all-warnings", "-o", str(tmp_path / "o.ptx")
        )
        assert done.returncode == 0, f"{header}: {done.stderr}"


MISUSES = {
    "kernel::edge_parallel<64>::reduce(1, itself, itself, [](float a, float) { return a; }, p)": (
        "reduce with cte::plus, cte::minimum or cte::maximum"
    ),
    "kernel::edge_parallel<64>::reduce(1, itself, itself, plus{}, (char*)p)": (
        "integers or floating-point numbers of 32 or 64 bits"
    ),
    "kernel::virtual_split<0>::pieces(5)": "K must be at least 1",
    "kernel::virtual_split<4>::reduce<scanned>(1, i, i, itself, plus{}, p)": (
        "the assignment must be cte::contiguous or cte::strided"
    ),
    "kernel::defer_long<64, 16>::capacity(5)": "Most must be at least 32",
    "kernel::merge_path<100, 7>::blocks(1, 2)": "a multiple of 32, up to 1024",
    "kernel::merge_path<64, 40>::blocks(1, 2)": "1 to 32 steps",
}


def test_misuse_is_refused_in_sentences(tmp_path: Path) -> None:
    source = tmp_path / "misuse.cu"
    names = ("defer_long", "merge_path", "edge_parallel", "virtual_split")
    lines = [f"#include <cte/kernel/{name}.cuh>" for name in names]
    lines += [
        "using namespace cte;",
        "struct { __device__ int operator()(int i) const { return i; } } itself;",
    ]
    for number, call in enumerate(MISUSES):
        lines.append(f"__global__ void k{number}(float* p, const int* i) {{ {call}; }}")
    source.write_text("\n".join(lines) + "\n")
    done = compiled(source, "-ptx", "-o", str(tmp_path / "o.ptx"))
    assert done.returncode != 0
    for sentence in MISUSES.values():
        assert sentence in done.stderr, sentence
