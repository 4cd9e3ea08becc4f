"""Runs of programs without annotations, fitted to the marked regions that were added afterwards."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cccopt
from cccopt.ccc.profitability.profile import RegionProfile, RunProfile
from cccopt.driver import marked_ptx
from cccopt.driver.counted_profile import profile_of_run
from cccopt.emulator import Program
from cccopt.harness.sample_profile import marked_launches, sample_profile
from cccopt.harness.workload import base_state, load
from cccopt.profiling.emulated import of_launch
from cccopt.profiling.fitting import Fitted
from cccopt.profiling.run_file import RunFile, merged, write
from cccopt.profiling.sources import Source
from cccopt.region_profiles import of_run, program_of
from cccopt.toolchain.invoke import run_nvcc
from cccopt.toolchain.settings import Settings

CUDA = Path(__file__).parents[1] / "kernels" / "cuda"
SAMPLES = ("bfs", "dqg", "emies", "escape", "ff", "hash", "iefa", "rt", "sensitivity", "sssp", "walk")
UNROLLED = ("bfs", "sssp")
"""The samples of which nvcc unrolls a marked loop that is not annotated."""

pytestmark = pytest.mark.nvcc


def plain_program(source: Path, folder: Path) -> Program:
    """What nvcc makes of a file without its annotations."""
    around = source.parent.parent
    for file in (*around.glob("*/*.cu*"), *around.glob("*/*.h")):
        text = re.sub(r"(?m)^[ \t]*#[ \t]*pragma[ \t]+ccc\b.*\n", "", file.read_text())
        copy = folder / file.relative_to(around)
        copy.parent.mkdir(exist_ok=True)
        copy.write_text(text)
    output = folder / "plain.ptx"
    arguments = [
        "-ptx",
        "-arch=sm_90",
        "-lineinfo",
        str(folder / source.relative_to(around)),
        "-o",
        str(output),
    ]
    done = run_nvcc(arguments, Settings("off"), capture=True)
    assert done.status == 0, done.errors
    return Program(output.read_text(), "plain.ptx")


@cache
def marked(source: Path) -> str:
    return marked_ptx(source, nvcc_options=["-lineinfo"])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The run of a sample at a small size, by its name, counted without annotations."""

    @cache
    def run_of(name: str) -> RunFile:
        sample = load(name)
        program = plain_program(sample.source, tmp_path_factory.mktemp(name))
        state = base_state(sample.inputs("small", 1))

        def each() -> Iterator[RunFile]:
            for launch in marked_launches(sample, state):
                ran = program.launch(launch.kernel, launch.grid, launch.block, launch.arguments)
                yield of_launch(program, ran, sample.source.name)

        return merged(each())

    return run_of


def fit_of(run: RunFile, source: Path) -> Fitted:
    return profile_of_run(run, marked(source), str(source))


def decisions(program: cccopt.Program) -> list[tuple[object, ...]]:
    """What became of the regions."""
    regions = program.report["units"][0]["regions"]
    return [(r["kernel"], r["region"], r["outcome"], r["form"]) for r in regions]


def runs_of(region: RegionProfile) -> tuple[object, ...]:
    return region.kind, region.entries, region.entered, region.warps, region.lanes


@pytest.mark.parametrize("name", SAMPLES)
def test_a_run_without_annotations_decides_as_the_marked_program(
    name: str, runs: Any, tmp_path: Path
) -> None:
    sample, file = load(name), tmp_path / "run.ccc.json"
    run = runs(name)
    assert not run.kernels.functions
    write(file, run)
    measured = sample_profile(sample, "sm_90")
    assert measured is not None
    by_lines = cccopt.compile(sample.source, profile=file)
    assert decisions(by_lines) == decisions(cccopt.compile(sample.source, profile=measured))
    # Nothing is stale. A kernel that did not run is told in both cases.
    said = [r for r in by_lines.report["units"][0]["remarks"] if r["code"] == "CCC068"]
    assert all("holds no run of this function" in remark["why"] for remark in said)
    compare(measured, fit_of(run, sample.source).profile, exact=name not in UNROLLED)


def compare(measured: RunProfile, derived: RunProfile, exact: bool) -> None:
    """Counts of runs are equal where nvcc made the same of both; of an unrolled loop they are right within a quarter.
    Issue slots are within a sixth, or twice as many.
    """
    assert derived.functions.keys() == measured.functions.keys()
    for function, regions in measured.functions.items():
        assert derived.functions[function].keys() == regions.keys()
        for number, region in regions.items():
            found, where = derived.functions[function][number], f"{function}, region {number}"
            if exact and found.warps == region.warps:
                assert runs_of(found) == runs_of(region), where
            assert found.kind == region.kind, where
            for field in ("entries", "entered", "warps", "lanes"):
                assert getattr(found, field) == pytest.approx(getattr(region, field), rel=0.25), where
            assert found.lanes == region.lanes or not exact, where
            least, most = (1 / 1.2, 1.2) if exact else (0.5, 2)
            assert least * region.issued <= found.issued <= most * region.issued, where
            if region.sectors:
                # Lanes may meet in a sector although their strides are not known.
                assert 0.8 * region.sectors <= found.sectors <= 6 * region.sectors, where


def test_ours_and_the_plain_kernels_of_a_table(tmp_path: Path) -> None:
    """Kernels with loops in loops, breaks, returns and paths in loops of tasks."""
    same = 0
    for file, apart in (
        ("in_lane.cu", "one_after_another leaves chunks partial calls claims reads vouched asks asked"),
        ("reduced_variables.cu", "members elements by_reference flags set_and_continued runs_of_a_loop"),
    ):
        source, folder = CUDA / file, tmp_path / file
        folder.mkdir()
        plain, text = plain_program(source, folder), program_of(marked(source))
        for kernel in apart.split():
            run = of_launch(plain, plain.launch(kernel, 4, 64, table()), file)
            wanted = of_run(text, text.launch(kernel, 4, 64, table()))
            found = fit_of(run, source)
            assert not found.remarks
            for number, region in wanted.functions[kernel].items():
                assert runs_of(found.profile.functions[kernel][number]) == runs_of(region), (kernel, number)
                assert found.profile.functions[kernel][number].issued == region.issued, (kernel, number)
                same += 1
    assert same > 30


def table() -> list[Any]:
    rng = np.random.default_rng(1)
    zeros = (np.zeros(4096, np.uint32) for _ in range(2))
    return [np.uint32(1500), rng.integers(0, 1 << 12, 2048, dtype=np.uint32), *zeros]


def test_a_path_without_a_branch_is_not_known(tmp_path: Path) -> None:
    source = CUDA / "in_lane.cu"
    plain = plain_program(source, tmp_path)
    found = fit_of(of_launch(plain, plain.launch("short_ones", 4, 64, table()), source.name), source)
    (remark,) = found.remarks
    assert remark.code == "CCC068"
    assert "no branch" in remark.why
    assert remark.place is not None
    assert remark.place.line_text.strip() == "if (x & 1) sum ^= x;"
    kinds = [region.kind for region in found.profile.functions["short_ones"].values()]
    assert sorted(kinds) == ["for", "while", "while"]


# --- sources that change ---


@pytest.fixture
def edited(tmp_path: Path) -> Path:
    """A copy of a sample to be edited."""
    folder = tmp_path / "edited"
    shutil.copytree(load("escape").source.parent, folder)
    return folder / "escape.cu"


def remarks_after(run: RunFile, source: Path, old: str, new: str) -> tuple[Fitted, list[str]]:
    text = source.read_text()
    assert text.count(old) == 1
    source.write_text(text.replace(old, new))
    found = profile_of_run(run, marked_ptx(source, nvcc_options=["-lineinfo"]), str(source))
    return found, [f"{r.place.position.line if r.place else 0}: {r.why}" for r in found.remarks]


def test_a_changed_line_is_told_and_its_region_not_known(runs: Any, edited: Path) -> None:
    found, said = remarks_after(runs("escape"), edited, "++taken;", "taken += 1;")
    line = edited.read_text().split("\n").index("      taken += 1;") + 1
    (remark,) = said
    assert f"escape.cu:{line} has changed" in remark
    assert [region.kind for region in found.profile.functions["escape"].values()] == ["for"]


def test_a_line_that_is_gone_is_told(runs: Any, edited: Path) -> None:
    found, said = remarks_after(runs("escape"), edited, "      step(x, y, cx, cy);\n", "      x += cx;\n")
    assert len(said) == 1
    assert 2 not in found.profile.functions["escape"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("#include", "// a line more\n// and another\n#include"),
        ("    steps[i] = taken;", "\tsteps[i] = taken;"),
        ("int main(", "int other() { return 1; }\nint main("),
        ("      ++taken;\n", "      // counted\n\n      ++taken;\n"),
    ],
)
def test_what_is_elsewhere_changes_nothing(old: str, new: str, runs: Any, edited: Path) -> None:
    text = edited.read_text()
    edited.write_text(text.replace(old, new, 1))
    run = runs("escape")
    found = profile_of_run(run, marked_ptx(edited, nvcc_options=["-lineinfo"]), str(edited))
    assert not found.remarks
    before = fit_of(run, load("escape").source).profile.functions["escape"]
    assert {n: runs_of(r) for n, r in found.profile.functions["escape"].items()} == {
        n: runs_of(r) for n, r in before.items()
    }


def test_without_hashes_of_lines_all_of_a_changed_file_is_stale(runs: Any, edited: Path) -> None:
    run = replace(runs("escape"), line_hashes={})
    edited.write_text(edited.read_text() + "\n// more\n")
    found = profile_of_run(run, marked_ptx(edited, nvcc_options=["-lineinfo"]), str(edited))
    assert not found.profile.functions["escape"]
    assert all("have changed" in remark.why for remark in found.remarks)
    assert len(found.remarks) == 2


def test_a_profile_without_line_information(runs: Any) -> None:
    found = profile_of_run(runs("escape"), marked_ptx(load("escape").source), "escape.cu")
    assert not found.profile.functions
    assert [remark.help for remark in found.remarks] == ["compile with `-lineinfo`"]


def test_regions_that_were_counted_as_such_come_first(runs: Any) -> None:
    source = load("escape").source
    other = {1: RegionProfile("for", 1, 2, 3, 4), 2: RegionProfile("while", 5, 6, 7, 8)}
    run = replace(runs("escape"), kernels=RunProfile({"escape": other}))
    assert fit_of(run, source).profile.functions["escape"] == other
    fewer = replace(run, kernels=RunProfile({"escape": {1: other[1]}}))
    assert fit_of(fewer, source).profile.functions["escape"][1].lanes > 4


def test_lines_are_found_again() -> None:
    old = Source("a\nb\nc\nd\ne")
    new = Source("new\na\n#pragma ccc for\n  b\nC\nd\ne")
    assert new.places_of(old.line_hashes) == {1: 2, 2: 3, 4: 5, 5: 6}
    assert old.places_of(old.line_hashes) == {n: n for n in range(1, 6)}
    assert old.places_of("") == {}
