"""Builds by environment, choices by measured times, decisions that builds follow: all but the GPU, whose times are made
up here.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from cccopt.ccc.profitability import decisions
from cccopt.ccc.profitability.decisions import Decision, Decisions
from cccopt.cli import tune
from cccopt.cli.main import main
from cccopt.diagnostic import CccError
from cccopt.toolchain.invoke import run_nvcc
from cccopt.toolchain.settings import Settings
from cccopt.tuning import runs
from cccopt.tuning import tuner as tuning
from cccopt.tuning.builds import DECIDED, Place, digests_in, rewritten_in
from cccopt.tuning.gains import Gain, gain_of
from cccopt.tuning.runs import Observed
from cccopt.tuning.tuner import Task, Tuned, Tuner
from cccopt.workers.queue import Worker

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
extern "C" __global__ void other(int* out) { out[threadIdx.x] = 1; }
"""
BUILD = f"{shutil.which('ccc-nvcc') or Path(sys.executable).with_name('ccc-nvcc')} -arch=sm_90 -ptx walk.cu -o walk.ptx"


@pytest.fixture
def task(tmp_path: Path) -> Task:
    source = tmp_path / "source"
    source.mkdir()
    (source / "walk.cu").write_text(CUDA)
    return Task(BUILD, "./walk", source, tmp_path / "work", ("auto", "always", "in-lane"), 4, ("out.bin",))


class Machine:
    """Runs that take what ``speed`` says of the kernel `walk`: plain time over that of a build, by turn."""

    def __init__(self, **speed: Sequence[float]) -> None:
        self.speed = {name.replace("_", "-"): list(values) for name, values in speed.items()}
        self.wrong: set[str] = set()
        self.failing: set[str] = set()
        self.hanging: set[str] = set()
        self.runs: list[str] = []

    def __call__(self, command: str, tree: Path, outputs: Sequence[str]) -> Observed:
        assert (command, tuple(outputs)) == ("./walk", ("out.bin",))
        assert (tree / "walk.ptx").is_file()
        build = tree.parent.name
        turn = self.runs.count(build)
        self.runs.append(build)
        ratios = self.speed.get(build, [1.0])
        output = "other" if build in self.wrong else "same"
        times = {"walk": 1e6 / ratios[turn % len(ratios)], "other": 500.0}
        status = runs.TOO_LONG if build in self.hanging else int(build in self.failing)
        return Observed(status, times, "Fake GPU", (output,))


def tuned(task: Task, machine: Machine) -> Tuned:
    return Tuner(task, lambda _: None, machine).tuned()


FASTER = (1.40, 1.42, 1.41, 1.43)
SAME = (0.99, 1.01, 1.0, 1.0)


@pytest.mark.nvcc
def test_the_fastest_build_is_chosen_and_measured_anew(task: Task) -> None:
    machine = Machine(always=FASTER, in_lane=(1.2, 1.21, 1.2, 1.2), decided=(1.38, 1.39, 1.4, 1.38))
    found = tuned(task, machine)
    (walk,) = found.chosen
    assert (walk.kernel, walk.build, found.left_out, found.device) == ("walk", "always", {}, "Fake GPU")
    assert walk.confirmed.gain == pytest.approx(1.3875, abs=0.001)
    assert walk.confirmed.low > 1.36
    # Builds in which nothing is rewritten are the plain one.
    assert set(walk.tried) == {"always", "in-lane"}
    assert machine.runs[:8] == ["plain", "auto", "always", "in-lane"] * 2
    # The build by decisions is that of the choice.
    pieces = [(task.work / build / "tree/walk.ptx").read_text() for build in ("always", DECIDED, "plain")]
    code = [[line for line in text.splitlines() if not line.startswith("//")] for text in pieces]
    assert code[0] == code[1] != code[2]
    file = task.work / "decisions.json"
    decisions.write(file, found.decisions("13.0"))
    assert decisions.read(file) == found.decisions("13.0")


@pytest.mark.nvcc
def test_what_does_not_gain_for_certain_stays_plain(task: Task) -> None:
    machine = Machine(always=(1.3, 0.9, 1.2, 0.8), in_lane=SAME)
    (walk,) = tuned(task, machine).chosen
    assert (walk.build, walk.confirmed) == ("plain", Gain(1.0, 1.0, 1.0))
    shutil.rmtree(task.work)
    # It seemed to gain, and fresh runs deny it.
    (walk,) = tuned(task, Machine(always=FASTER, decided=SAME)).chosen
    assert (walk.build, walk.tried["always"].is_gain) == ("plain", True)


@pytest.mark.nvcc
def test_wrong_failing_and_hanging_builds_are_left_out(task: Task) -> None:
    for fault, why in (
        ("wrong", "its results differ from those of the plain build"),
        ("failing", "it ended with status 1"),
        ("hanging", "it did not end within the limit"),
    ):
        machine = Machine(always=FASTER, in_lane=(1.2,) * 4, decided=(1.2, 1.21, 1.2, 1.2))
        getattr(machine, fault).add("always")
        shutil.rmtree(task.work, ignore_errors=True)
        found = tuned(task, machine)
        assert found.left_out == {"always": why}
        assert [kernel.build for kernel in found.chosen] == ["in-lane"]
    machine = Machine()
    machine.failing = {"plain"}
    shutil.rmtree(task.work)
    with pytest.raises(CccError, match=r"CCC116.*the plain program fails"):
        tuned(task, machine)
    shutil.rmtree(task.work)
    machine = Machine()
    machine.wrong = {DECIDED}
    with pytest.raises(CccError, match="the runs of the build with decisions cannot be used"):
        tuned(task, machine)


@pytest.mark.nvcc
def test_it_goes_on_where_it_was_interrupted(task: Task) -> None:
    class Interrupted(Machine):
        def __call__(self, command: str, tree: Path, outputs: Sequence[str]) -> Observed:
            if len(self.runs) == 9:
                raise KeyboardInterrupt
            return super().__call__(command, tree, outputs)

    first = Interrupted(always=FASTER)
    with pytest.raises(KeyboardInterrupt):
        tuned(task, first)
    stamp = (task.work / "always/tree/walk.ptx").stat().st_mtime_ns
    second = Machine(always=FASTER, decided=FASTER)
    assert [kernel.build for kernel in tuned(task, second).chosen] == ["always"]
    assert len(second.runs) == 4 * 4 - 9 + 2 * 4
    assert (task.work / "always/tree/walk.ptx").stat().st_mtime_ns == stamp
    # Another source is another task.
    (task.source / "walk.cu").write_text(CUDA.replace("40", "50"))
    third = Machine(always=FASTER, decided=FASTER)
    tuned(task, third)
    assert len(third.runs) == 4 * 4 + 2 * 4


@pytest.mark.nvcc
def test_workers_make_builds_side_by_side(task: Task, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    begun.mkdir()
    meet = (
        f"touch {begun}/$$; for i in {{1..600}}; do set -- {begun}/*; [ $# -ge 2 ] && break; sleep 0.1; done"
    )
    together = replace(task, build=f"{meet}; [ $# -ge 2 ] && {BUILD}")
    speed = {"always": FASTER, "in_lane": (1.2, 1.21, 1.2, 1.2), "decided": FASTER}
    machine = Machine(**speed)
    found = Tuner(together, lambda _: None, machine, (Worker(), Worker())).tuned()
    assert machine.runs[:8] == ["plain", "auto", "always", "in-lane"] * 2
    shutil.rmtree(task.work)
    assert tuned(task, Machine(**speed)) == found


@pytest.mark.nvcc
def test_a_build_whose_worker_dies_is_left_out(task: Task) -> None:
    dying = f"case $NVCC_APPEND_FLAGS in *=in-lane*) kill -9 $PPID ;; *) {BUILD} ;; esac"
    tuner = Tuner(replace(task, build=dying), lambda _: None, Machine(), (Worker(), Worker()))
    assert tuner.tuned().left_out == {"in-lane": "its process ended with status -9"}
    shutil.rmtree(task.work)
    tuner = Tuner(replace(task, build="kill -9 $PPID"), lambda _: None, Machine(), (Worker(), Worker()))
    with pytest.raises(CccError, match=r"CCC121.*the worker running the build `plain` ended"):
        tuner.tuned()


@pytest.mark.nvcc
def test_builds_that_cannot_be(task: Task) -> None:
    with pytest.raises(CccError, match=r"CCC116.*`plain` failed"):
        tuned(replace(task, build="echo no such thing; exit 3"), Machine())
    with pytest.raises(CccError, match="compiled nothing with ccc-nvcc"):
        tuned(replace(task, build="touch walk.ptx"), Machine())
    only_plain = f"case $NVCC_APPEND_FLAGS in *--ccc=off*) {BUILD} ;; *) exit 4 ;; esac"
    machine = Machine()
    tuner = Tuner(replace(task, build=only_plain), lambda _: None, machine)
    with pytest.raises(CccError, match=r"nothing to tune[^$]*no build rewrites anything"):
        tuner.tuned()
    assert set(tuner.left_out) == set(task.builds)
    assert "status 4" in tuner.left_out["always"]
    assert not machine.runs


def test_a_gain_is_a_mean_of_ratios_with_its_interval() -> None:
    found = gain_of([2.0, 2.2, 1.8], [1.0, 1.0, 1.0])
    assert found.gain == pytest.approx(1.9933, abs=1e-3)
    assert found.low == pytest.approx(1.55, abs=0.01)
    assert found.is_gain
    assert gain_of([1.0, 1.0], [2.0, 2.0]).is_loss
    with pytest.raises(ValueError, match="1 rounds"):
        gain_of([1.0], [1.0])


# --- decisions ---


def compiled(folder: Path, file: Path, *, mode: str = "auto") -> tuple[str, str]:
    """The PTX of `CUDA` by a file of decisions, and what was said."""
    (folder / "walk.cu").write_text(CUDA)
    output = folder / "made.ptx"
    arguments = ["-ptx", "-arch=sm_90", str(folder / "walk.cu"), "-o", str(output)]
    done = run_nvcc(arguments, Settings(mode, verbose=True, decisions=str(file)), capture=True)
    assert done.status == 0, done.errors
    return output.read_text(), done.errors


@pytest.mark.nvcc
def test_builds_follow_decisions_until_the_code_changes(task: Task, tmp_path: Path) -> None:
    tuned(task, Machine())
    (digest,) = digests_in([Place(task.work / "always")])["walk"]
    assert digests_in([Place(task.work / "auto")]) == {"walk": (digest,)}
    assert rewritten_in(Place(task.work / "always")) == {"walk"}
    file = tmp_path / "decisions.json"
    said, texts = {}, {}
    for build, of in (("always", digest), ("in-lane", digest), ("plain", digest), ("always", "other")):
        entry = Decision(("one more", of), build, 1.4, 1.3, 1.5)
        decisions.write(file, Decisions("Fake GPU", "13.0", {"walk": entry}))
        texts[build, of], said[build, of] = compiled(tmp_path, file)
    assert "measured gain 1.40x (1.30 to 1.50) on Fake GPU" in said["always", digest]
    assert "no other build was faster" in said["plain", digest]
    assert "warning[CCC115]: the decision for `walk` is stale" in said["always", "other"]
    assert len({texts[key] for key in texts if key[1] == digest}) == 3
    assert texts["plain", digest] == texts["always", "other"]  # `auto` rewrites nothing here


KERNEL = '{"schema": 1, "kernels": {"k": {"digests": %s, "build": "%s", "gain": %s, "low": 1, "high": 1}}}'


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("{", "Expecting"),
        ('{"schema": 2}', "its layout is version 2; cccopt"),
        ('{"schema": 1}', "it has no `kernels`"),
        (KERNEL % ("[]", "fast", 1), "not a build"),
        (KERNEL % ("[]", "auto", '"x"'), "not numbers"),
        (KERNEL % ("1", "auto", 1), "not a list"),
    ],
)  # fmt: skip
def test_other_files_are_no_decisions(tmp_path: Path, data: str, why: str) -> None:
    (tmp_path / "d.json").write_text(data)
    with pytest.raises(CccError, match="CCC069") as caught:
        decisions.read(tmp_path / "d.json")
    assert why in str(caught.value)


@pytest.mark.nvcc
def test_a_folder_takes_a_report_for_each_command(tmp_path: Path) -> None:
    (tmp_path / "walk.cu").write_text(CUDA)
    words = [*BUILD.split(), f"--ccc-report={tmp_path}/reports/"]
    for _ in range(2):
        subprocess.run(words, cwd=tmp_path, check=True)
    found = [json.loads(file.read_text()) for file in (tmp_path / "reports").iterdir()]
    assert len(found) == 2
    assert [set(unit["digests"]) for each in found for unit in each["units"]] == [{"walk"}] * 2


# --- the command ---


@pytest.mark.nvcc
def test_the_command_writes_decisions_and_a_table(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = Machine(always=FASTER, in_lane=SAME, decided=FASTER)
    monkeypatch.setattr(tuning, "observe", machine)
    monkeypatch.setattr(tune, "Tuner", lambda task, done, _, workers: Tuner(task, done, machine, workers))
    monkeypatch.chdir(task.source)
    words = ["tune", "--build", BUILD, "--run", "./walk", "--compare", "out.bin", "--rounds", "3"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "1.41" in said
    assert "as plain" in said
    assert "1.00 ?" in said
    assert decisions.read("decisions.json").kernels["walk"].build == "always"
    (task.source / "a b").mkdir()
    assert main([*words, "--work", "a b"]) == 1
    assert "which is split at spaces" in capsys.readouterr().err
    nothing = f"case $NVCC_APPEND_FLAGS in *=off*|*in-lane*) {BUILD} ;; *) exit 4 ;; esac"
    machine.speed["in-lane"] = []
    assert main(["tune", "--build", f"{nothing}; exit $?", "--run", "./walk", "--try", "always"]) == 1
    said = capsys.readouterr()
    assert "`always` is left out" in said.out
    assert "no build rewrites anything" in said.err


def test_few_rounds_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["tune", "--build", "make", "--run", "./a", "--rounds", "2"])
    assert "fewer than 3 rounds" in capsys.readouterr().err


def test_a_run_that_hangs_is_killed_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "environment_for", lambda folder, **_: dict(os.environ))
    command = "sleep 60 & echo $! > child; wait"
    found = runs.observe(command, tmp_path, ["child"], limit=0.5)
    assert found.status == runs.TOO_LONG
    child = int((tmp_path / "child").read_text())
    for _ in range(50):
        if not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text().split()[2]:
            break
        time.sleep(0.1)
    else:
        pytest.fail("the child still runs")
    assert runs.observe("exit 3", tmp_path, []).status == 3
