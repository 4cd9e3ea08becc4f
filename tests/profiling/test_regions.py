"""Marked regions are counted on a GPU as `--ccc-profile` reads them, and leave no trace in the plain kernels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cccopt
from cccopt.ccc.profitability.profile import RegionProfile, RunProfile
from cccopt.cli.nvcc import main
from cccopt.device.facts import DeviceFacts
from cccopt.driver import marked_ptx
from cccopt.driver.function_texts import definitions
from cccopt.emulator import Program
from cccopt.passes.instrument import COUNTED
from cccopt.profiling.candidate_counts import candidates_of
from cccopt.profiling.collecting import counts_in, run_file
from cccopt.profiling.merging import merged
from cccopt.profiling.run_file import RunFile, read, write
from cccopt.profiling.running import KernelTime, ProgramRun, UnitCounts
from cccopt.ptx.ir import Instruction
from cccopt.ptx.parser import parse
from cccopt.region_profiles import of_run, program_of
from tests.passes.instrumenting import as_read, head_of, memory_at
from tests.passes.instrumenting import counts_in as raw_counts

pytestmark = pytest.mark.nvcc

HEAD = 'extern "C" __global__ void __launch_bounds__(64) k(int n, const unsigned* __restrict__ in, unsigned* out) {\n'
BODY = """
    unsigned x = in[i];
#pragma ccc if
    if (x % 3 == 0) {
      for (int k = 0; k < 90; ++k) x = __umulhi(x, x | 1u) ^ x * 1664525u;
      out[i] = x;
    }
"""
KERNELS = {
    "for": f"{HEAD}#pragma ccc for\nfor (int i = threadIdx.x + blockIdx.x * 64; i < n; i += gridDim.x * 64)"
    f" {{{BODY}}}\n}}\n",
    "grid": f"#pragma ccc grid\n{HEAD}int i = threadIdx.x + blockIdx.x * 64; if (i >= n) return;{BODY}}}\n",
    "while": f"{HEAD}#pragma ccc for\nfor (int i = threadIdx.x; i < n; i += 64) {{\nunsigned x = in[i], k = 0;\n"
    "#pragma ccc while\nwhile (x > 1 && k < 99) { x = x % 2 ? 3 * x + 1 : x / 2; ++k; }\nout[i] = k; }\n}\n",
}
N = 2000


def arguments() -> list[Any]:
    given = np.random.default_rng(1).integers(1, 2**20, N, dtype=np.uint32)
    return [N, given, np.zeros(N, np.uint32)]


def built(folder: Path, text: str, *options: str) -> str:
    """What `ccc-nvcc --ccc-instrument` makes of a text."""
    (folder / "k.cu").write_text(text)
    out = folder / "k.ptx"
    assert (
        main(["-arch=sm_90", "-ptx", "--ccc-instrument", *options, str(folder / "k.cu"), "-o", str(out)]) == 0
    )
    return out.read_text()


def counted(ptx: str, grid: int) -> RunFile:
    """The file of a launch of the counted kernel, as if a GPU had run it."""
    return counts_in(counts_on_gpu(ptx, grid), launches={"k": 1})


def counts_on_gpu(ptx: str, grid: int) -> UnitCounts:
    """What the counted kernel left in a launch, as if a GPU had run it."""
    program = Program(parse(ptx))
    program.launch("k" + COUNTED, grid, 64, arguments())
    _, _, address, size = head_of(program)
    layout = memory_at(program, address, size)
    return UnitCounts("k.cu", "a GPU", raw_counts(program, as_read(program)), layout)


def without_sectors(profile: RunProfile) -> dict[int, RegionProfile]:
    return {number: replace(region, sectors=0.0) for number, region in profile.functions["k"].items()}


@pytest.mark.parametrize("kind", KERNELS)
def test_regions_are_those_of_the_emulator(kind: str, tmp_path: Path) -> None:
    run = counted(built(tmp_path, KERNELS[kind]), 40)
    program = program_of(marked_ptx(tmp_path / "k.cu"))
    want = of_run(program, program.launch("k", 40, 64, arguments()))
    assert without_sectors(run.kernels) == without_sectors(want)
    # Its accesses are side by side: what was not counted is known.
    loop = min(run.kernels.functions["k"])
    assert run.kernels.functions["k"][loop].sectors == pytest.approx(
        want.functions["k"][loop].sectors, rel=0.5
    )
    assert run.functions[0].lines


GPU = DeviceFacts("a GPU", 2, 1_000_000, 1_000_000, 512, 1 << 20, 64, 1 << 16, 1 << 16, 32)
"""It issues 8 slots in a nanosecond, and holds four warps."""


def timed(name: str, launches: int, *, counted: bool = False) -> KernelTime:
    return KernelTime(name, counted, launches, 1000 * launches, 32, 0, 3 * launches, GPU.name)


def test_loops_have_the_time_of_their_kernel_if_it_is_theirs_alone(tmp_path: Path) -> None:
    unit = counts_on_gpu(built(tmp_path, KERNELS["for"]), 40)
    uncounted = ProgramRun(0, 0, True, True, times=(timed("k", 2), timed("other", 9)), devices=(GPU,))

    def loop_of(*units: UnitCounts, ran: ProgramRun | None = uncounted, copies: int = 2) -> RegionProfile:
        counts = ProgramRun(0, 0, True, True, units, (timed("k", copies, counted=True),), (GPU,))
        regions = run_file(counts, ran).kernels.functions["k"]
        return regions[min(regions)]

    loop = loop_of(unit)
    assert 0.5 * 16000 < loop.elapsed <= 16000
    assert loop.resident == pytest.approx(loop.elapsed / 8 * 3)
    for untimed in (
        loop_of(unit, unit),  # as of two processes
        loop_of(unit, copies=3),
        loop_of(unit, ran=None),
        loop_of(unit, ran=replace(uncounted, untimed="there is no CUPTI")),
        loop_of(unit, ran=replace(uncounted, devices=())),
    ):
        assert (untimed.elapsed, untimed.resident) == (0.0, 0.0)
        assert untimed.warps > 0


def test_launches_of_a_loop_over_blocks_are_those_of_its_counts(tmp_path: Path) -> None:
    unit = counts_on_gpu(built(tmp_path, KERNELS["grid"]), 40)

    def launches(*units: UnitCounts) -> list[int]:
        counts = ProgramRun(0, 0, True, True, units, (timed("k", 2, counted=True), timed("k", 3)), (GPU,))
        return [region.launches for region in run_file(counts, None).kernels.functions["k"].values()]

    assert launches(unit) == [2, 0]
    # Of several processes, all have one name.
    assert launches(unit, unit) == [0, 0]


@pytest.mark.parametrize("kind", KERNELS)
def test_plain_kernels_are_nvccs(kind: str, tmp_path: Path) -> None:
    ptx = built(tmp_path, KERNELS[kind])
    plain = cccopt.compile(tmp_path / "k.cu", ccc="off", nvcc_options=["-lineinfo"]).ptx
    assert kernel(ptx) == kernel(plain)
    assert "// ccc " not in ptx


def kernel(ptx: str) -> list[str]:
    """The words of the plain kernel."""
    found = next(d for d in definitions(ptx) or () if d.name == "k" and d.body is not None)
    return ptx[found.start : found.end].split()


def test_the_file_decides_for_auto(tmp_path: Path) -> None:
    write(tmp_path / "k.ccc.json", counted(built(tmp_path, KERNELS["for"]), 2))
    assert read(tmp_path / "k.ccc.json").kernels.functions["k"]
    outcomes = {
        bool(profile): {region["outcome"] for unit in program.report["units"] for region in unit["regions"]}
        for profile in (None, str(tmp_path / "k.ccc.json"))
        for program in (cccopt.compile(tmp_path / "k.cu", profile=profile),)
    }
    assert outcomes == {False: {"declined"}, True: {"rewritten"}}


@pytest.mark.parametrize("kind", KERNELS)
def test_candidates_are_counted_as_on_the_emulator(kind: str, tmp_path: Path) -> None:
    text = "".join(line for line in KERNELS[kind].splitlines(True) if not line.startswith("#pragma ccc"))
    run = counted(built(tmp_path, text, "--ccc-candidates"), 40)
    program = program_of(marked_ptx(tmp_path / "k.cu", candidates=True))
    launched = program.launch("k", 40, 64, arguments())
    (unit,) = candidates_of("k.cu", program.module, launched.issues)
    want = unit.functions
    assert [unit.functions for unit in run.candidates] == [want]
    assert not run.kernels.functions
    write(tmp_path / "run.json", run)
    assert read(tmp_path / "run.json").candidates == run.candidates
    (twice,) = merged([run, run]).candidates
    (function,) = (f for f in parse(twice.ptx).functions() if f.name == "k")
    assert sum(isinstance(s, Instruction) for s in function.body or ()) == len(twice.functions[0].warps)
    assert twice.functions[0].warps == tuple(2 * n for n in want[0].warps)


def test_a_mistaken_annotation_is_left_out(tmp_path: Path) -> None:
    text = KERNELS["for"].replace("#pragma ccc if", "#pragma ccc if nonsense")
    run = counted(built(tmp_path, text), 2)
    assert run.functions[0].lines


def test_mistakes_and_what_is_not_counted_are_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    built(tmp_path, KERNELS["for"].replace("#pragma ccc if", "#pragma ccc if nonsense"))
    assert "nonsense" in capfd.readouterr().err
    # Debug information tells of the marks' own functions.
    assert "// ccc " not in built(tmp_path, KERNELS["for"], "-G")
    assert "warning[CCC114]" in capfd.readouterr().err
    idle = KERNELS["for"].replace(
        HEAD, "template <class T> __global__ void idle(int n, const T* in, T* out) {\n"
    )
    for quiet in (KERNELS["for"], f"{idle}{HEAD}out[threadIdx.x] = in[n]; }}"):
        built(tmp_path, quiet)
        assert "warning" not in capfd.readouterr().err
