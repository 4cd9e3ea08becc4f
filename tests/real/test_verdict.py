"""The bench of what `auto` decides, on made-up builds and times."""

from __future__ import annotations

import json
import math
import os
import pickle
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tomllib", reason="Python 3.11")

from rich.console import Console

from bench.profile.programs import SAMPLE, Commands
from bench.real.measure import Run
from bench.real.program import Program, read_programs
from bench.real.recipe import Recipe
from bench.verdict import __main__ as command
from bench.verdict import measuring, table, tuning
from bench.verdict.judged import Kernel, kernels_of, left_out, summary
from bench.verdict.programs import ALWAYS, AUTO, PROFILED, Task, build_all, is_for_fitting, tasks
from cccopt.profiling.run_file import read
from cccopt.profiling.running import KernelTime, ProgramRun
from cccopt.tuning.runs import Observed

ORIGIN = ("https://example.org/made-up", "0" * 40, "made-up", "src", "none", "named")
RECIPE = Recipe(("cp scale.cu built",), "cat built")
NAME = "_Z5scalei"


def task(place: Path) -> Task:
    return Task(Program("scale", *ORIGIN, ()), RECIPE, place)


def kernel(
    gain: float, chosen: dict[str, float], predicted: float | None = None, program: str = "p"
) -> Kernel:
    return Kernel(
        program,
        "k",
        False,
        1.0,
        {ALWAYS: gain, **chosen},
        frozenset({ALWAYS, *chosen}),
        predicted,
    )


def test_programs_for_fitting_are_fixed() -> None:
    held_out = [program for program in read_programs() if not is_for_fitting(program.name)]
    assert (len(held_out), sum(len(program.kernels) for program in held_out)) == (34, 39)
    assert is_for_fitting(SAMPLE + "bfs")


def test_choosing_is_held_against_the_best_build() -> None:
    of = summary(
        [
            kernel(2.0, {PROFILED: 2.0}, 1.6),  # taken with a profile alone
            kernel(0.5, {}, 0.9),  # left by both
            kernel(1.5, {AUTO: 1.5, PROFILED: 0.8}),
        ]
    )
    assert of.gain[AUTO] == pytest.approx(1.5 ** (1 / 3))
    assert of.of_best[AUTO] == pytest.approx((1 / 2) ** (1 / 3))
    assert of.of_best[PROFILED] == pytest.approx((0.8 / 1.5) ** (1 / 3))
    assert (of.least[AUTO], of.least[PROFILED]) == (1.0, 0.8)
    assert of.share[AUTO] == pytest.approx(math.log(1.5) / math.log(3.0))
    assert (of.predictions, of.close) == (2, 0.5)
    assert of.median == pytest.approx(math.sqrt((2 / 1.6) * (0.9 / 0.5)) - 1)


def test_a_wrong_sign_is_a_gain_that_loses_or_the_other_way_round() -> None:
    wrong = [kernel(0.9, {}, 1.2, "lost"), kernel(1.2, {}, 0.9, "missed")]
    right = [kernel(1.02, {}, 0.9), kernel(1.2, {}, 1.02), kernel(0.7, {}, 0.9), kernel(0.7, {})]
    assert summary([*wrong, *right]).wrong == ("lost k", "missed k")


# --- from a folder of builds ---


def leave_build(place: Path, what: str, *regions: dict[str, Any]) -> None:
    (place / what).mkdir(parents=True, exist_ok=True)
    report = {"units": [{"regions": list(regions)}]}
    (place / what / "build.json").write_text(json.dumps({"succeeded": True, "reports": [report]}))


def region(number: int, kind: str, outcome: str, gain: float, *, assumed: bool = False) -> dict[str, Any]:
    cost = {"gain": gain, "assumed": assumed}
    return {"kernel": NAME, "region": number, "kind": kind, "outcome": outcome, "form": "split", "cost": cost}


@pytest.fixture
def built(tmp_path: Path) -> Task:
    made = task(tmp_path / "scale")
    leave_build(made.place, "plain")
    both = (region(1, "grid", "rewritten", 2.0), region(2, "if", "rewritten", 9.0))
    leave_build(made.place, ALWAYS, *both, region(3, "for", "declined", 7.0))
    leave_build(made.place, AUTO, *both)
    leave_build(made.place, PROFILED, region(1, "grid", "declined", 0.5))
    counts = {number: {"issued": slots} for number, slots in (("1", 50), ("2", 30), ("3", 20))}
    made.profile.write_text(json.dumps({"kernels": {NAME: counts}}))
    times = {"plain": [4e6, 8e6], ALWAYS: [2e6, 5e6], AUTO: [2e6, 4e6], PROFILED: [5e6, 8e6]}
    found = {build: {NAME: each, "other": [1.0]} for build, each in times.items()}
    text = json.dumps({"program": "scale", "device": "GPU", "times": found, "wrong": {}})
    (made.place / measuring.TIMES).write_text(text)
    return made


def test_a_kernel_is_judged_by_reports_profile_and_times(built: Task) -> None:
    (found,) = kernels_of(built)
    assert (found.name, found.milliseconds, found.rewritten) == ("scale", 6.0, {ALWAYS, AUTO})
    assert found.gains == {ALWAYS: 1.8, AUTO: 2.0, PROFILED: 0.9}
    # What is left as it was does not count by its times, which spread.
    assert (found.chosen(AUTO), found.chosen(PROFILED), found.best) == (2.0, 1.0, 2.0)
    # Eighty slots twice as fast, and twenty of a loop that is left.
    assert found.predicted == pytest.approx(100 / 60)
    built.profile.unlink()
    assert next(iter(kernels_of(built))).predicted is None


def test_a_build_with_other_results_has_no_gain(built: Task) -> None:
    file = built.place / measuring.TIMES
    found = json.loads(file.read_text())
    file.write_text(json.dumps({**found, "wrong": {ALWAYS: "other results than the plain build"}}))
    (judged,) = kernels_of(built)
    assert (judged.error, judged.best) == (None, 2.0)
    assert not [*left_out(built)]
    file.write_text(json.dumps({**found, "wrong": {AUTO: "status 1"}}))
    assert not [*kernels_of(built)]
    assert [*left_out(built)] == ["scale: auto: status 1"]
    file.write_text(json.dumps({**found, "wrong": {"plain": "status 1"}}))
    assert not [*kernels_of(built)]


def test_a_build_that_is_missing_is_not_one_in_which_nothing_is_rewritten(built: Task) -> None:
    (built.place / PROFILED / "build.json").unlink()
    assert not [*kernels_of(built)]
    assert [*left_out(built)] == ["scale: profiled is not built"]


def test_what_is_not_in_the_tables_is_said(built: Task, capsys: pytest.CaptureFixture[str]) -> None:
    file = built.place / measuring.TIMES
    found = json.loads(file.read_text())
    file.write_text(json.dumps({**found, "times": {build: {} for build in found["times"]}}))
    table.show([built], Console(), markdown=True)
    assert "not in the tables: scale: `scale(int)` did not run" in capsys.readouterr().out
    file.unlink()
    assert [*left_out(built)] == ["scale: it did not run"]


@pytest.mark.parametrize("markdown", [False, True])
def test_the_table_shows_what_is_left(
    built: Task, capsys: pytest.CaptureFixture[str], *, markdown: bool
) -> None:
    table.show([built], Console(width=150), markdown=markdown)
    said = capsys.readouterr().out
    cells = [cell.strip() for cell in said.replace("│", "|").split("|")]
    start = cells.index("scale")
    assert cells[start + 2 : start + 8] == ["6.00", "1.80", "1.67", "2.00", "left", "2.00"]
    assert "auto: 2.000 times plain, 1.000 of the best build, at least 2.00, 100% of" in said
    assert "profiled: 1.000 times plain, 0.500 of the best build" in said
    assert "median error 8%, 100% within 25%, wrong sign 0 of 1 (none)" in said


# --- steps ---


def seen(name: str, nanoseconds: int) -> ProgramRun:
    time = KernelTime(name, False, 2, nanoseconds, 32, 0, 2, "GPU")
    return ProgramRun(0, 0, True, True, times=(time,))


def test_builds_run_by_turns_until_one_is_wrong(built: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def observed(_: object, what: str, **how: object) -> tuple[Run, ProgramRun]:
        ran.append(what)
        return Run(3 if what == AUTO else 0, "", 1.0), seen(NAME, 100 * len(ran))

    monkeypatch.setattr(measuring, "observed", observed)
    assert measuring.take_times(built, 2, 1.0) == "auto: status 3"
    assert ran == ["plain", AUTO, ALWAYS, "plain", ALWAYS]  # nothing is rewritten in the fourth
    times = measuring.times_of(built.place)
    assert times is not None
    assert times["times"]["plain"] == {NAME: [100.0, 400.0]}
    assert (times["wrong"], times["device"]) == ({AUTO: "status 3"}, "GPU")
    assert not [*kernels_of(built)]  # what is rewritten and wrong has no figure
    leave_build(built.place, AUTO, region(1, "grid", "declined", 0.5))
    (judged,) = kernels_of(built)
    assert judged.chosen(PROFILED) == judged.chosen(AUTO) == 1.0


def test_counts_are_kept_and_a_profile_is_made_of_them(built: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    assert measuring.take_profile(built, 1, 1.0) == "it is not built"
    leave_build(built.place, "counted")
    monkeypatch.setattr(measuring, "observed", lambda *_, **__: (Run(0, "", 1.0), seen(NAME, 7)))
    assert measuring.take_profile(built, 1, 1.0).startswith("nothing is counted")
    built.profile.unlink()
    measuring.make_profile(built)
    assert not built.profile.exists()
    (built.place / measuring.COUNTS).write_bytes(pickle.dumps((seen(NAME, 7), seen(NAME, 7))))
    measuring.make_profile(built)
    assert [found.time_ns for found in read(built.profile).uncounted] == [7]
    # What is there is not counted again.
    assert measuring.take_profile(built, 1, 1.0) == ""


def test_missing_builds_are_made_with_the_profile_where_there_is_one(tmp_path: Path) -> None:
    folder = tmp_path / "made-up" / "src"
    folder.mkdir(parents=True)
    (folder / "scale.cu").write_text("int x;\n")
    one = Task(Program("scale", *ORIGIN, ()), Recipe(("$NVCC",), "true"), tmp_path / "out/scale")
    script = tmp_path / "ccc"
    script.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/said\n')
    script.chmod(0o755)
    commands = Commands("true", str(script))
    assert build_all([one], [tmp_path], commands, 1, profiled=False) == []
    said = (tmp_path / "said").read_text().splitlines()
    assert [line.split()[0] for line in said] == ["--ccc-instrument=detailed", "--ccc=auto"]
    # Nothing is built twice, nor with a profile that is not there.
    assert build_all([one], [tmp_path], commands, 1, profiled=False) == []
    assert build_all([one], [tmp_path], commands, 1, profiled=True) == []
    assert (tmp_path / "said").read_text().splitlines() == said
    one.profile.write_text("{}")
    assert build_all([one], [tmp_path], commands, 1, profiled=True) == []
    said = (tmp_path / "said").read_text().splitlines()[2:]
    assert [line.split()[0] for line in said] == ["--ccc=always", "--ccc=auto"]
    assert all(f"--ccc-profile={one.profile}" in line for line in said)
    # A newer profile asks for other builds.
    os.utime(one.profile, (1 << 32, 1 << 32))
    assert build_all([one], [tmp_path], commands, 1, profiled=True) == []
    assert len((tmp_path / "said").read_text().splitlines()) == 6
    missing = Task(one.program, one.recipe, tmp_path / "out/other")
    assert "made-up" in build_all([missing], [tmp_path / "none"], commands, 1, profiled=False)[0]


CUDA = """
extern "C" __global__ void walk(int n, const int* first, int* out) {
#pragma ccc for
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    int found = 0;
#pragma ccc if
    if (first[i] & 1) { for (int k = 0; k < 40; k++) found = found * 3 + (first[i] ^ k); }
    out[i] = found;
  }
}
"""


@pytest.mark.nvcc
def test_what_tuning_chooses_is_kept_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "made-up" / "src"
    folder.mkdir(parents=True)
    (folder / "walk.cu").write_text(CUDA)
    recipe = Recipe(("$NVCC -arch=sm_90 -ptx walk.cu -o walk.ptx",), "cat walk.ptx", same=("sum .*",))
    one = Task(Program("walk", *ORIGIN, ()), recipe, tmp_path / "out/walk")
    speed = {"plain": 1.0, "always": 1.5, "in-lane": 3.0, "decided": 1.47}
    turns: list[str] = []

    def observed(command: str, tree: Path, outputs: object, limit: float) -> Observed:
        build = tree.parent.name
        turns.append(build)
        (tree / "src/printed.txt").write_text(f"sum {4 if build == 'in-lane' else 3}\n")
        return Observed(0, {"walk": (1e6 + 100 * len(turns)) / speed.get(build, 1.0)}, "GPU", ())

    monkeypatch.setattr(tuning, "observe", observed)
    ccc = str(Path(sys.executable).with_name("ccc-nvcc"))
    assert tuning.tune(one, [tmp_path], ccc, 3, 1.0, nullcontext()) == ""
    assert set(turns) == {"plain", "auto", "always", "in-lane", "decided"}
    table.show([one], Console(width=150), markdown=True)
    said = capsys.readouterr().out
    assert (
        "| walk | walk | 1.00 | left | 1.50 (1.50 to 1.50) | left | always | 1.47 (1.47 to 1.47) | 0.98 |"
        in said
    )
    assert "tuned: 0.980 of the best build, at least 0.98 (1 kernels)" in said
    assert "not tried: walk: in-lane: it ended with status 1" in said
    ran = len(turns)
    assert tuning.tune(one, [tmp_path], ccc, 3, 1.0, nullcontext()) == ""
    assert len(turns) == ran
    missing = Task(one.program, one.recipe, tmp_path / "out/other")
    assert "made-up" in tuning.tune(missing, [tmp_path / "none"], ccc, 3, 1.0, nullcontext())


def test_a_step_names_what_went_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["bench.verdict", "run", "--only", SAMPLE + "bfs", "--out", str(tmp_path)]
    monkeypatch.setattr("sys.argv", words)
    assert command.main() == 1
    assert f"{SAMPLE}bfs: it is not built" in capsys.readouterr().err
    monkeypatch.setattr("sys.argv", [*words, "--budget", "-1"])
    assert command.main() == 0
    assert "for want of time" in capsys.readouterr().err
    assert [each.program.name for each in tasks(None, [SAMPLE + "bfs"], tmp_path)] == [SAMPLE + "bfs"]
