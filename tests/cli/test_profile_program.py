"""``cccopt profile`` on a program that has no CUDA: its two runs, the file, statuses, messages."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cccopt.cli import main as command_line
from cccopt.profiling.run_file import FunctionRun, LineCount, RunFile, read
from cccopt.profiling.running import UnitCounts

FAKES = Path(__file__).parents[1] / "profiling"
pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the fake program and the fake CUPTI."""
    folder = tmp_path_factory.mktemp("fakes")
    for source, made, *options in (
        ("fake_program.cpp", "fake_program", "-rdynamic"),
        ("fake_cupti.cpp", "libcupti_of_tests.so", "-shared", "-fPIC", "-Wl,-soname,libcupti_of_tests.so"),
    ):
        command = ["g++", "-std=c++17", FAKES / source, "-o", folder / made, *options, "-ldl"]
        subprocess.run(command, check=True)
    return folder


@pytest.fixture(autouse=True)
def _here(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of its own, our CUPTI, and a layout that says: two counters of line 1 of a kernel."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CCC_PROFILE_CUPTI", str(built / "libcupti_of_tests.so"))

    def counts_in(unit: UnitCounts, *_: object) -> RunFile:
        warps, lanes = (int.from_bytes(unit.counts[at : at + 8], "little") for at in (0, 8))
        name = {b"layoutA": "_Z1fPi", b"layoutB": "g"}[unit.layout]
        lines = (LineCount("a.cu", 1, 1, warps, lanes),)
        return RunFile(functions=(FunctionRun(name, name, True, unit.name, lines=lines),))

    monkeypatch.setattr("cccopt.profiling.collecting.counts_in", counts_in)


def profile(built: Path, *words: str, options: tuple[str, ...] = ()) -> int:
    return command_line.main(["profile", *options, "--", str(built / "fake_program"), *words])


def test_a_run_makes_a_file_of_counts_and_times(built: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert profile(built, "unit", "another", "cuda", "launch", "print", "exit3") == 3
    said = capfd.readouterr()
    assert said.out.startswith("1\n")  # the program's, once
    assert said.err.splitlines() == [
        "cccopt profile: running with counters",
        "cccopt profile: running again without counters, to time the kernels (the program's output is discarded)",
    ]
    run = read("fake_program.ccc.json")
    assert (run.runs, run.devices) == (1, ("GPU 0",))
    # The fake program launches the counted copy once and the plain kernel twice, whatever it is told.
    assert run.notes == ("`f(int*)` was launched 1 time with counters, and 2 times without",)
    g, f = run.functions
    assert (f.unit, g.unit) == ("a.cu", "b.cu")
    assert (f.name, f.launches, f.time_ns, f.registers, f.shared, f.warps, f.lanes) == (
        "_Z1fPi", 2, 1500, 32, 64, 1, 2,
    )  # fmt: skip
    assert (f.registers_counted, f.shared_counted) == (32, 64)
    assert (g.name, g.launches, g.warps) == ("g", 0, 10)
    (other,) = run.uncounted
    assert (other.name, other.launches, other.time_ns) == ("cub_kernel", 1, 7)


def test_counts_of_devices_and_processes_are_added(built: Path) -> None:
    program = built / "fake_program"
    both = f"{program} unit two-devices cuda; {program} unit cuda"
    assert command_line.main(["profile", "-o", "both.json", "--no-time", "--", "sh", "-c", both]) == 0
    run = read("both.json")
    assert run.devices == ("GPU 0", "GPU 1")
    (f,) = run.functions
    assert (f.warps, f.lanes, f.launches, f.time_ns) == (1 + 100 + 1, 2 + 200 + 2, None, None)


def test_both_runs_read_the_same_input(built: Path) -> None:
    Path("input").write_text("given\n")
    words = [str(built / "fake_program"), "unit", "cuda", "echo"]
    command = [sys.executable, "-c", "import sys; from cccopt.profiling.running import Input, run_program; "
               "from pathlib import Path; here = Input.of_now(); Path('a').mkdir(); Path('b').mkdir(); "
               "run_program(sys.argv[1:], Path('a'), counted=True, timed=False); here.again(); "
               "run_program(sys.argv[1:], Path('b'), counted=False, timed=True)", *words]  # fmt: skip
    with open("input") as stream:
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        done = subprocess.run(
            command, stdin=stream, env=environment, capture_output=True, text=True, check=True
        )
    assert done.stderr == "given\ngiven\n"


def test_files_are_added_up_and_shown(built: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("a.json", "b.json"):
        assert profile(built, "unit", "cuda", options=("--no-time", "-o", name)) == 0
    capfd.readouterr()
    assert command_line.main(["profile", "a.json", "b.json", "-o", "sum.json"]) == 0
    assert "_Z1fPi" in capfd.readouterr().out
    assert (read("sum.json").runs, read("sum.json").functions[0].warps) == (2, 2)


def test_a_lost_process_is_a_warning_and_a_note(built: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program = built / "fake_program"
    both = f"{program} unit cuda; {program} unit cuda kill; exit 0"
    assert command_line.main(["profile", "-o", "lost.json", "--no-time", "--", "sh", "-c", both]) == 0
    said = capfd.readouterr().err
    assert "warning[CCC112]: the counts of process " in said
    (note,) = json.loads(Path("lost.json").read_text())["notes"]
    assert note in said


def test_without_cupti_there_are_counts_and_a_warning(
    built: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CCC_PROFILE_CUPTI", "none")
    assert profile(built, "unit", "cuda") == 0
    assert "warning[CCC113]: the times of kernels are left out" in capfd.readouterr().err
    (f,) = read("fake_program.ccc.json").functions
    assert (f.warps, f.launches) == (1, None)


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["cuda"], 1, "neither the program nor anything that it starts has counters"),
        (["unit", "cuda", "kill"], 137, "was killed by signal 9, SIGKILL"),
        (["unit", "cuda", "fault"], 1, "CUDA_ERROR_ILLEGAL_ADDRESS"),
    ],
)
def test_a_program_that_counts_nothing_is_an_error(
    built: Path, words: list[str], status: int, said: str, capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("cccopt.cli.profile._no_gpu", lambda: "")
    assert profile(built, *words) == status
    errors = capfd.readouterr().err
    assert "error[CCC111]: `" in errors
    assert said in errors
    assert not Path("fake_program.ccc.json").exists()


def test_without_a_gpu_it_says_so(
    built: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cccopt.cli.profile._no_gpu", lambda: "the NVIDIA driver does not find a GPU")
    assert profile(built, "unit", "exit3") == 3
    assert "error[CCC093]: cannot use a GPU" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "there is neither a program nor a file"),
        (["--"], "nothing follows `--`"),
        (["x.json", "--", "./app"], "files and a program cannot be combined"),
        (["app"], "`app` is not the file of a run"),
    ],
)
def test_what_cannot_be_told_is_an_error(
    words: list[str], why: str, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("app").touch()
    assert command_line.main(["profile", *words]) == 1
    said = capfd.readouterr().err
    assert "error[CCC089]: cannot tell what to profile" in said
    assert why in said


def test_options_behind_the_dashes_are_the_programs(built: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert profile(built, "-o", "--html", "--", "unit", "cuda", options=("--no-time",)) == 0
    assert Path("fake_program.ccc.json").is_file()
    assert not Path("--html").exists()


def test_a_program_that_is_not_there_is_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["profile", "--", "./nowhere"]) == 1
    assert "error[CCC086]: cannot run `./nowhere`: no such program" in capfd.readouterr().err


def test_without_cupti_a_reset_may_be_why_there_is_nothing(
    built: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cccopt.cli.profile._no_gpu", lambda: "")
    assert profile(built, "empty", "cuda") == 1
    assert "cudaDeviceReset" not in capfd.readouterr().err
    monkeypatch.setenv("CCC_PROFILE_CUPTI", "none")
    assert profile(built, "empty", "cuda") == 1
    assert "or called `cudaDeviceReset`" in capfd.readouterr().err
