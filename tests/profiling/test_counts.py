"""Counters read back: the figures that the emulator's own counts make, by line, branch, loop and marked region."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cccopt.ccc.profitability.region_counts import measure
from cccopt.emulator import Profile, Program
from cccopt.passes.counting.layout import (
    BEGUN,
    OUTSIDE,
    UNKNOWN,
    Branch,
    Edge,
    FunctionLayout,
    Layout,
    LoopUnits,
    Spot,
    Unit,
    as_bytes,
    of_bytes,
)
from cccopt.passes.instrument import instrumented
from cccopt.profiling.counts import counts_of, functions_of, issues_of, notes_of, regions_of
from cccopt.profiling.emulated import of_launch
from cccopt.profiling.run_file import FunctionRun
from cccopt.ptx.parser import parse
from cccopt.toolchain.invoke import run_nvcc
from cccopt.toolchain.settings import Settings
from tests.kernels.generators.judging import LIMIT
from tests.kernels.generators.kernels import NAME, Case, from_seed
from tests.passes.instrumenting import Both, counts_in, run_both

CUDA = """
__device__ __noinline__ int steps(int n) {
  int found = 0;
  while (n > 1) {
    n = n % 2 ? 3 * n + 1 : n / 2;
    if (++found == 40) break;
  }
  return found;
}
__global__ void work(int *out, int count) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    if (i % 3 == 0) {
      out[i] += steps(i);
      if (out[i] > 20) out[i] -= 1;
    } else {
      for (int k = 0; k < i % 7; k++) out[i] = (out[i] * 3) ^ k;
    }
  }
}
"""


def both_of(case: Case) -> Both:
    def launch(program: Program, name: str) -> Profile:
        return program.launch(name, case.grid, case.block, case.arguments(), max_steps=20 * LIMIT)

    return run_both(parse(case.ptx), NAME, launch)


def bare(function: FunctionRun) -> FunctionRun:
    """A function without what is counted in samples alone: histograms, accesses."""
    return replace(
        function,
        launches=None,
        lines=tuple(replace(line, requests=None, sectors=None) for line in function.lines),
        branches=tuple(replace(branch, histogram=None) for branch in function.branches),
    )


@pytest.mark.nvcc
def test_figures_by_line_are_the_emulators(tmp_path: Path) -> None:
    source = tmp_path / "work.cu"
    source.write_text(CUDA)
    arguments = ["-ptx", "-lineinfo", "-arch=sm_90", str(source), "-o", str(tmp_path / "work.ptx")]
    done = run_nvcc(arguments, Settings("off"), capture=True)
    assert done.status == 0, done.errors
    module = parse((tmp_path / "work.ptx").read_text())

    def launch(program: Program, name: str) -> Profile:
        return program.launch(name, 3, 96, [np.zeros(700, np.int32), np.int32(700)])

    (kernel,) = (f.name for f in module.functions() if f.kind == "entry")
    both = run_both(module, kernel, launch)
    want = {f.name: f for f in of_launch(Program(module), both.plain, "work.cu", {}).functions}
    found = {f.name: f for f in functions_of(both.layout, both.counts, "work.cu")}
    assert found.keys() == want.keys()
    for name, function in found.items():
        assert bare(function) == bare(want[name])
        assert {Path(line.file).name for line in function.lines} == {"work.cu"}
    assert sum(len(f.branches) for f in found.values()) >= 5
    assert sum(len(f.loops) for f in found.values()) >= 2


@pytest.mark.parametrize("seed", range(5))
def test_random_kernels_have_the_same_figures(seed: int) -> None:
    both = both_of(from_seed(seed))
    want = of_launch(Program(both.module), both.plain, "k.ptx", {}).functions
    found = functions_of(both.layout, both.counts, "k.ptx")
    for ours, theirs in zip(found, want, strict=True):
        assert [(n.line, n.warps, n.lanes) for n in ours.lines] == [
            (n.line, n.warps, n.lanes) for n in theirs.lines
        ]
        ran = [(b.warps, b.lanes, b.taken, b.split) for b in theirs.branches]
        assert all((b.warps, b.lanes, b.taken, b.split) in ran for b in ours.branches)
        assert [(p.warps, p.lanes, p.entered) for p in ours.loops] == [
            (p.warps, p.lanes, p.entered) for p in theirs.loops
        ]


@pytest.mark.parametrize("seed", range(5))
def test_marked_regions_are_measured(seed: int) -> None:
    both = both_of(from_seed(seed))
    want = measure(both.module, both.plain.issues)
    assert want.functions
    assert regions_of(both.module, both.layout, both.counts) == want


def test_counts_add_up_over_launches_and_copies() -> None:
    case = from_seed(1)
    new, layout = instrumented(parse(case.ptx))
    program = Program(new)
    program.launch(f"{NAME}__ccc_counted", case.grid, case.block, case.arguments(), max_steps=20 * LIMIT)
    once = counts_of(layout, counts_in(program, layout))
    program.launch(f"{NAME}__ccc_counted", case.grid, case.block, case.arguments(), max_steps=20 * LIMIT)
    twice = counts_of(layout, counts_in(program, layout))
    for key, count in issues_of(once).items():
        assert issues_of(twice)[key].warps == 2 * count.warps
    assert not notes_of(layout, twice)


LAYOUT = Layout(
    2,
    7,
    ("a.cu", "b.cuh"),
    (
        FunctionLayout(
            "k", True, "", 0, 7, True,
            (Unit(0, 3, (3,), UNKNOWN, (Spot(0, 4, 5, 2),)), Unit(3, 9, (4, -6), 5, (Spot(1, 7, 0),))),
            (Edge(OUTSIDE, 0, (3,), 2), Edge(0, 1, (), 6), Edge(1, OUTSIDE, loose=True)),
            (Branch(Spot(0, 4, 5), 0, 1, 2),),
            (LoopUnits(Spot(1, 7, 0), 1, (1,), ()),),
        ),
        FunctionLayout("other", True, "its blocks are in clusters"),
    ),
)  # fmt: skip


def test_a_layout_is_read_as_it_was_written() -> None:
    assert of_bytes(as_bytes(LAYOUT)) == LAYOUT
    assert of_bytes(as_bytes(LAYOUT) + bytes(7)) == LAYOUT


@pytest.mark.parametrize("text", [b"", b"nonsense", as_bytes(LAYOUT)[:-20]])
def test_what_is_no_layout_is_told(text: bytes) -> None:
    with pytest.raises(ValueError, match="not a layout of counters"):
        of_bytes(text)


def test_counts_of_another_size_are_told() -> None:
    with pytest.raises(ValueError, match="3 counts, not 14"):
        counts_of(LAYOUT, [0, 0, 0])


def test_blocks_that_did_not_end_are_told() -> None:
    raw = np.zeros(14, np.uint64)
    raw[BEGUN] = raw[7 + BEGUN] = 2
    counts = counts_of(LAYOUT, raw.tobytes())
    assert notes_of(LAYOUT, counts) == (
        "`other` is only timed: its blocks are in clusters",
        "the counts of 4 of 4 blocks of `k` are lost",
    )


def test_functions_that_did_not_run_are_left_out() -> None:
    found: tuple[FunctionRun, ...] = functions_of(LAYOUT, counts_of(LAYOUT, bytes(8 * 14)), "a.cu")
    assert found == ()


def test_counts_that_contradict_each_other_are_told() -> None:
    # Lanes that came to the first unit and did not go on to the second have left.
    edges = (Edge(OUTSIDE, 0, (3,), 2), Edge(0, 1, (), 6), Edge(1, OUTSIDE, loose=True), Edge(0, OUTSIDE))
    function = replace(LAYOUT.functions[0], edges=edges, branches=(Branch(Spot(0, 4, 5), 0, 3, 1),))
    layout = replace(LAYOUT, functions=(function,))
    whole = counts_of(layout, [*[1, 1, 7, 1, 1, 5, 5], *[0] * 7])
    torn = counts_of(layout, [*[1, 1, 2, 1, 1, 5, 5], *[0] * 7])
    assert [branch.taken for branch in functions_of(layout, whole, "a.cu")[0].branches] == [2]
    assert not notes_of(layout, whole)
    (note,) = notes_of(layout, torn)
    assert "`k` contradict each other" in note
    (found,) = functions_of(layout, torn, "a.cu")
    assert [branch.taken for branch in found.branches] == [0]
    assert all(loop.entered >= 0 and loop.entries >= 0 for loop in found.loops)
