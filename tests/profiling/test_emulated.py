"""Runs on the emulator as files: sums, branches, and the iterations of loops against counts by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cccopt.driver import marked_ptx
from cccopt.emulator import Program
from cccopt.harness.workload import fresh_state, load
from cccopt.profiling.emulated import of_launch
from cccopt.profiling.merging import merged
from cccopt.profiling.names import shown
from cccopt.profiling.run_file import RunFile, as_text, read
from cccopt.profiling.sources import Source
from cccopt.region_profiles import profile_of, program_of

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"


def run_of(text: str, trips: list[int]) -> RunFile:
    """The run of kernel ``f`` in one block, whose only argument is an array of a number for each thread."""
    program = Program(text, "f.ptx")
    found = program.launch("f", 1, len(trips), [np.array(trips, np.int32)])
    run = of_launch(program, found, "f.ptx", {"f.ptx": Source(text)})
    (function,) = run.functions
    assert (function.warps, function.lanes) == (found.warp_instructions, found.thread_instructions)
    assert (function.launches, function.kernel, run.devices) == (1, True, ("emulator",))
    return run


PROLOGUE = """\
.visible .entry f(.param .u64 p)
{
.reg .b64 %rd<4>;
.reg .b32 %r<5>;
.reg .pred %p<3>;
ld.param.u64 %rd1, [p];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 4;
add.s64 %rd3, %rd1, %rd2;
ld.global.u32 %r2, [%rd3];
mov.u32 %r3, 0;
"""

BOTTOM = f"""{HEAD}{PROLOGUE}
setp.le.s32 %p1, %r2, 0;
@%p1 bra DONE;
LOOP:
add.s32 %r3, %r3, 1;
setp.lt.s32 %p2, %r3, %r2;
@%p2 bra LOOP;
DONE:
ret;
}}
"""
"""A loop that is tested at its end, behind a guard."""

TOP = f"""{HEAD}{PROLOGUE}
LOOP:
setp.ge.s32 %p1, %r3, %r2;
@%p1 bra DONE;
add.s32 %r3, %r3, 1;
bra LOOP;
DONE:
ret;
}}
"""
"""A loop that is tested at its beginning."""

LEAVES = f"""{HEAD}{PROLOGUE}
LOOP:
setp.ge.s32 %p1, %r3, %r2;
@%p1 ret;
add.s32 %r3, %r3, 1;
bra LOOP;
}}
"""
"""A loop that threads end in."""

TRIPS = [0] * 32 + [k % 5 for k in range(32)] + [7] * 32 + [k % 2 for k in range(32)]


def iterations(trips: list[int], extra: int = 0) -> tuple[int, int, int, int]:
    """Entries by warps and lanes, then iterations; ``extra`` ones for each lane, even if it has none."""
    counts = [[k + extra for k in trips[i : i + 32] if k + extra] for i in range(0, len(trips), 32)]
    return (
        sum(bool(w) for w in counts),
        sum(map(len, counts)),
        sum(max(w, default=0) for w in counts),
        sum(map(sum, counts)),
    )


@pytest.mark.parametrize(
    ("text", "extra"), [(BOTTOM, 0), (TOP, 1), (LEAVES, 1)], ids=["bottom", "top", "leaves"]
)
def test_iterations_of_warps_and_lanes(text: str, extra: int) -> None:
    (loop,) = run_of(text, TRIPS).functions[0].loops
    assert (loop.entries, loop.entered, loop.warps, loop.lanes) == iterations(TRIPS, extra)
    assert text.split("\n")[loop.line - 1].endswith("bra LOOP;")


def test_branches() -> None:
    guard, latch = run_of(BOTTOM, TRIPS).functions[0].branches
    none = sum(k == 0 for k in TRIPS)
    assert (guard.warps, guard.lanes, guard.taken, guard.split) == (4, 128, none, 2)
    assert latch.taken == sum(TRIPS) - (128 - none)
    for branch in (guard, latch):
        assert branch.histogram is not None
        assert sum(branch.histogram) == branch.warps
        assert sum(k * n for k, n in enumerate(branch.histogram)) == branch.taken
    # Warps in which nobody, 7, 16 and all lanes pass the loop by.
    assert {k: n for k, n in enumerate(guard.histogram or ()) if n} == {0: 1, 7: 1, 16: 1, 32: 1}


def test_lines_of_ptx_where_no_others_are_known() -> None:
    run = run_of(BOTTOM, [1] * 32)
    assert run.sources == {"f.ptx": Source(BOTTOM).digest}
    lines = BOTTOM.split("\n")
    assert [lines[x.line - 1] for x in run.functions[0].lines][-2:] == ["@%p2 bra LOOP;", "ret;"]


def test_instructions_ahead_of_the_first_location_go_by_it() -> None:
    text = BOTTOM.replace(HEAD, f'{HEAD}.file 1 "f.cu"\n').replace("setp.le", ".loc 1 7 3\nsetp.le")
    run = run_of(text, [1] * 32)
    assert {(x.file, x.line, x.column) for x in run.functions[0].lines} == {("f.cu", 7, 3)}
    assert run.sources == {}


@pytest.mark.nvcc
def test_a_sample_has_its_regions_and_lines(tmp_path: Path) -> None:
    sample = load("bfs")
    marked = marked_ptx(sample.source, nvcc_options=["-O3", "-lineinfo"])
    program = program_of(marked)
    state = fresh_state(sample.inputs("small", seed=1))
    runs, total = [], 0
    for launch in sample.workload.launches(state):
        counted = program.launch(launch.kernel, launch.grid, launch.block, launch.arguments)
        total += counted.warp_instructions
        runs.append(of_launch(program, counted, "bfs.cu"))
    run = merged(runs)
    (bfs,) = run.functions
    assert bfs.warps == total
    assert bfs.launches == run.runs == len(runs)
    state = fresh_state(sample.inputs("small", seed=1))
    assert run.kernels == profile_of(marked, sample.workload.launches(state))
    source = Source(Path(sample.source).read_text())
    assert run.sources[str(sample.source)] == source.digest
    # The inner loop: what the marks count and what the lines count is the same.
    region = run.kernels.functions["bfs"][3]
    (inner,) = (x for x in bfs.loops if "k < last" in source.lines[source.shown(x.line) - 1])
    assert (inner.warps, inner.lanes) == (region.warps, region.lanes)
    (tmp_path / "run.json").write_text(as_text(replace(run, runs=1)))
    assert read(tmp_path / "run.json") == replace(run, runs=1)


def test_names_as_their_authors_wrote_them() -> None:
    assert shown("bfs") == "bfs"
    assert shown("_Zno") == "_Zno"
    if shown("_Z3bfsiPi") != "_Z3bfsiPi":
        assert shown("_Z3bfsiPi") == "bfs(int, int*)"
        assert shown("_Z4workILi400EEviPKf") == "void work<400>(int, float const*)"
        assert shown("__nv_static_25__92da177b_4_a_cu_bfad4959__Z4statPi") == "stat(int*)"
    assert shown("__nv_static_25__92da177b_4_a_cu_bfad4959_plain") == "plain"
