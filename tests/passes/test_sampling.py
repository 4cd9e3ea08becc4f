"""Samples of warps: one of each run is counted and stands for all of it, and figures say how exact they are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cccopt.emulator import Profile, Program
from cccopt.passes.counting.bounds import above_bounds, registers_of_thread
from cccopt.passes.instrument import DETAILED, Counting, instrumented
from cccopt.profiling.counts import functions_of, groups_of, notes_of
from cccopt.profiling.emulated import of_launch
from cccopt.profiling.run_file import LANES
from cccopt.ptx.parser import parse
from cccopt.toolchain.invoke import run_nvcc
from cccopt.toolchain.settings import Settings
from tests.emulator.kernels import kernel as ptx_kernel
from tests.passes.instrumenting import Both, run_both

BLOCK = 70  # three warps, the last of six lanes


def launched(grid: int, how: Counting, body: str = "st.global.u32 [%rd2], %r0;") -> Both:
    results: list[np.ndarray[Any, Any]] = []

    def launch(program: Program, name: str) -> Profile:
        results.append(np.zeros(grid * BLOCK, np.uint32))
        return program.launch(name, grid, BLOCK, [results[-1]])

    both = run_both(parse(ptx_kernel(body)), "k", launch, how)
    assert results[0].tolist() == results[1].tolist()
    return both


@pytest.mark.parametrize(
    ("blocks", "stands_for"), [(1, 1), (85, 1), (86, 2), (170, 2), (171, 4), (342, 8), (683, 16), (1400, 32)]
)
def test_one_warp_of_each_run_stands_for_all_of_it(blocks: int, stands_for: int) -> None:
    """Of launches of fewer than 256 warps all are counted; of the last run that may be none."""
    (found,) = launched(blocks, DETAILED).counts
    runs = 3 * blocks / stands_for
    assert runs - 1 <= found.blocks <= runs + 1
    assert found.warps == found.blocks * stands_for
    assert found.squares == found.warps * stands_for
    assert found.lost == 0


def test_fewer_warps_are_never_counted_than_asked_for() -> None:
    (found,) = launched(342, Counting(every=4)).counts
    assert found.warps == 4 * found.blocks


DIVERGENT = """
    mul.lo.u32 %r4, %r0, 0x9E3779B1; shr.u32 %r4, %r4, 27; mov.u32 %r5, 0;
    LOOP: add.u32 %r5, %r5, 1; and.b32 %r6, %r5, 3; setp.eq.u32 %p1, %r6, %r3; @%p1 bra SKIP;
    add.u32 %r6, %r5, %r6; mul.lo.u32 %r6, %r6, %r5;
    SKIP: setp.lt.u32 %p2, %r5, %r4; @%p2 bra LOOP; st.global.u32 [%rd2], %r6;"""


def test_intervals_hold_the_figures_of_all_warps() -> None:
    held = seen = 0
    for blocks in (171, 300, 511, 640):
        both = launched(blocks, DETAILED, DIVERGENT)
        (found,) = functions_of(both.layout, both.counts, "k.ptx", groups_in(both))
        (whole,) = of_launch(Program(both.module), both.plain, "k.ptx", {}).functions
        want = {line.line: line for line in whole.lines}
        assert abs(found.warps - whole.warps) < 0.1 * whole.warps
        for line in found.lines:
            width = found.error(line)
            exact = want[line.line].lanes / want[line.line].warps
            seen += 1
            held += width is not None and abs(line.lanes / line.warps - exact) <= width + 1e-9
        width = found.error(found)
        assert width is not None
        assert 0 < width < 0.1 * LANES
    assert seen == 32
    assert held >= 0.9 * seen


FIGURES = {
    "branches": (("split", "warps"), ("taken", "lanes")),
    "loops": (("warps", "entries"), ("lanes", "entered"), ("lanes", "warps")),
}


@pytest.mark.parametrize("what", FIGURES)
def test_intervals_of_branches_and_loops_hold_the_figures_of_all_warps(what: str) -> None:
    held = seen = 0
    for blocks in (171, 205, 256, 300, 411, 511, 577, 640):
        # The same warps are drawn from these launches: what they do has to differ.
        both = launched(
            blocks, DETAILED, DIVERGENT.replace("0x9E3779B1", str(0x9E3779B1 * (2 * blocks + 1) % 2**32))
        )
        (found,) = functions_of(both.layout, both.counts, "k.ptx", groups_in(both))
        (whole,) = of_launch(Program(both.module), both.plain, "k.ptx", {}).functions
        for ours, exact in zip(getattr(found, what), getattr(whole, what), strict=True):
            for part, of in FIGURES[what]:
                width = found.error(ours, part, of)
                distance = getattr(ours, part) / getattr(ours, of) - getattr(exact, part) / getattr(exact, of)
                seen += 1
                held += width is not None and abs(distance) <= width + 1e-9
    assert seen >= 16
    assert held >= 0.9 * seen


def groups_in(both: Both) -> Any:
    return groups_of(both.layout, both.raw)


def test_the_groups_add_up() -> None:
    both = launched(171, DETAILED, DIVERGENT)
    groups = groups_in(both)
    assert len(groups) == both.layout.copies > 8
    (all_,) = both.counts
    for unit, found in enumerate(all_.units):
        assert found.warps == sum(group[0].units[unit].warps for group in groups)
        assert found.lanes == sum(group[0].units[unit].lanes for group in groups)


def test_all_warps_counted_is_exact() -> None:
    both = launched(20, DETAILED, DIVERGENT)
    (found,) = functions_of(both.layout, both.counts, "k.ptx", groups_in(both))
    assert found.sample is None
    assert all(line.groups is None for line in found.lines)


CUDA = """
struct Range { unsigned* first; };

extern "C" __global__ void k(unsigned* out, int n) {
  __shared__ unsigned near[96];
  __shared__ Range ranges[2];
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x, found = 0;
  near[threadIdx.x] = i;
  ranges[0].first = out;
  ranges[1].first = near;
  __syncthreads();
  volatile unsigned* either = ranges[i % 3u == 2u].first;
  if (i % 5u) found = either[(i * 7u) % 96u];
  atomicAdd(ranges[i % 7u == 3u].first + i % 96u, 1u);
  for (unsigned j = 0; j < (i & 15u); j++)
    if ((i ^ j) & 5u) found += out[(i * 37u + j * j) % n];
  if (i % 3u == 1u) atomicAdd(&out[i % n], found & 1u);
  out[n + i] = found;
}
"""


@pytest.mark.nvcc
def test_branches_and_accesses_are_watched(tmp_path: Path) -> None:
    """Histograms and sectors are the emulator's, line by line, if all warps are counted."""
    (tmp_path / "k.cu").write_text(CUDA)
    arguments = ["-ptx", "-lineinfo", "-arch=sm_90", str(tmp_path / "k.cu"), "-o", str(tmp_path / "k.ptx")]
    assert run_nvcc(arguments, Settings("off"), capture=True).status == 0
    module = parse((tmp_path / "k.ptx").read_text())

    def launch(program: Program, name: str) -> Profile:
        return program.launch(name, 4, 96, [np.arange(1000, dtype=np.uint32), np.int32(500)])

    generic = [
        s for f in module.functions() for s in f.body or () if getattr(s, "opcode", "") == "ld.volatile.u32"
    ]
    assert len(generic) == 1
    both = run_both(module, "k", launch, DETAILED)
    (want,) = of_launch(Program(module), both.plain, "k.cu", {}).functions
    (found,) = functions_of(both.layout, both.counts, "k.cu", groups_in(both))
    assert found.lines == want.lines
    assert found.branches == want.branches
    assert sum(line.requests or 0 for line in found.lines) > 3
    assert sum(line.sectors or 0 for line in found.lines) > sum(line.requests or 0 for line in found.lines)
    assert sum(sum(b.histogram or ()) for b in found.branches) == sum(b.warps for b in found.branches) > 0


def test_of_a_kernel_with_too_many_counters_some_warps_are_counted() -> None:
    few = Counting(registers=1, local=2)
    both = launched(1400, few, DIVERGENT)
    assert both.layout.every == 16
    (found,) = functions_of(both.layout, both.counts, "k.ptx", groups_in(both))
    assert found.sample is not None
    assert found.warps == pytest.approx(sum(count.warps for count in both.plain.issues.values()), rel=0.05)
    assert notes_of(both.layout, both.counts) == (
        "one warp in 16 is counted, more in small launches: `k` has too many branches "
        "(--ccc-instrument=all counts all warps)",
    )


def test_of_one_with_many_registers_fewer_warps_are_counted() -> None:
    few = Counting(registers=1, local=2, limits={"k": 128})
    assert instrumented(parse(ptx_kernel(DIVERGENT)), few)[1].every == 64
    assert instrumented(parse(ptx_kernel(DIVERGENT)), replace(few, limits={"other": 128}))[1].every == 16


@pytest.mark.parametrize(("watch", "every"), [(False, 256), (True, 64)])
def test_of_a_kernel_with_too_many_counters_a_sample_is_smaller(watch: bool, every: int) -> None:
    few = Counting(registers=1, local=2, every=64, watch=watch)
    assert instrumented(parse(ptx_kernel(DIVERGENT)), few)[1].every == every
    assert instrumented(parse(ptx_kernel(DIVERGENT)), replace(few, local=15))[1].every == 64


def test_as_many_counters_as_there_may_be_leave_all_warps_counted() -> None:
    assert instrumented(parse(ptx_kernel(DIVERGENT)), Counting(registers=1, local=15))[1].every == 1
    assert instrumented(parse(ptx_kernel(DIVERGENT)), Counting(registers=1, local=2))[1].crowded == "k"


@pytest.mark.parametrize(
    ("directives", "registers"),
    [
        ("", 64),
        (".maxntid 256, 1, 1", 128),
        (".maxntid 16, 16", 128),
        (".maxntid 1024", 64),
        (".reqntid 640, 1, 1", 96),
        (".maxntid 256, 1, 1 .minnctapersm 8", 32),
        (".maxntid 256, 1, 1 .minnctapersm 3", 80),
        (".maxntid 128 .maxnreg 40", 40),
    ],
)
def test_registers_leave_room_for_the_threads_that_a_kernel_says_it_has(
    directives: str, registers: int
) -> None:
    text = ptx_kernel("").replace("(.param .u64 out)", f"(.param .u64 out) {directives}")
    (kernel,) = parse(text).functions()
    assert registers_of_thread(kernel) == registers


def test_kernels_without_bounds_have_as_many_registers_as_they_need() -> None:
    text = ptx_kernel("")
    free, bound = parse(text), parse(text.replace("(.param .u64 out)", "(.param .u64 out) .maxntid 256"))
    assert above_bounds(free, {"k": 216}) == {"k": 216}
    assert above_bounds(free, {"k": 64}) == above_bounds(free, {}) == above_bounds(bound, {"k": 216}) == {}
