"""Outputs that cannot be written: found before the work, and never one written while another fails."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

from cccopt.cli import nvcc
from cccopt.cli.main import main
from tests.cli.test_commands import LAUNCH, MARKED

EMULATE = ["emulate", "marked.ptx", "tripl", *LAUNCH]
COMMANDS = {
    "transform -o": (["transform", "marked.ptx", "-o", "OUT", "--report", "r.json"], "transform"),
    "transform --report": (["transform", "marked.ptx", "-o", "out.ptx", "--report", "OUT"], "transform"),
    "explain --dot": (["explain", "marked.ptx", "--dot", "OUT"], "transform"),
    "emulate --profile": ([*EMULATE, "--save", "2=o.npy", "--profile", "OUT"], "emulator.Program.launch"),
    "emulate --save": ([*EMULATE, "--save", "1=o.npy", "--save", "2=OUT"], "emulator.Program.launch"),
    "bench --json": (["bench", "bfs", "--json", "OUT"], "bench.measure"),
    "bench ccc --json": (["bench", "ccc", "--json", "OUT"], "harness.suite.run"),
    "bench sensitivity --json": (["bench", "sensitivity", "--json", "OUT"], "harness.suite.run"),
    "bench cte --json": (["bench", "cte", "--json", "OUT"], "harness.cte.run.run"),
    "bench graphs --json": (["bench", "graphs", "--json", "OUT"], "harness.graphs.run.run"),
    "bench cte --figures": (["bench", "cte", "--json", "j.json", "--figures", "OUT"], "harness.cte.run.run"),
}
WORK = {
    "transform": ("cccopt.cli.transform.transform", "cccopt.cli.explain.transform"),
    "emulator.Program.launch": ("cccopt.emulator.Program.launch",),
    "bench.measure": ("cccopt.cli.bench.measure_named",),
    "harness.suite.run": ("cccopt.harness.suite.run",),
    "harness.cte.run.run": ("cccopt.harness.cte.run.run",),
    "harness.graphs.run.run": ("cccopt.harness.graphs.run.run",),
}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("marked.ptx").write_text(MARKED)
    np.save("in.npy", np.arange(-50, 50, dtype=np.int32))


def worked(*_: object, **__: object) -> NoReturn:
    raise AssertionError("the work has begun")


@pytest.mark.parametrize(
    ("command", "output"),
    [
        (command, output)
        for command in COMMANDS
        for output in ("absent/out", "marked.ptx/out", "/proc/out")
        # Folders are made.
        if "--figures" not in command or output != "absent/out"
    ],
)
def test_found_before_the_work(
    command: str, output: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words, work = COMMANDS[command]
    for name in WORK[work]:
        monkeypatch.setattr(name, worked)
    before = sorted(Path().rglob("*"))
    assert main([word.replace("OUT", output) for word in words]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error[CCC086]: cannot ")
    assert f"`{output}" in said.err
    assert sorted(Path().rglob("*")) == before


def test_one_file_does_not_take_two_outputs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["transform", "marked.ptx", "-o", "out", "--report", "./out"]) == 1
    assert "another output of this command is written there" in capsys.readouterr().err
    assert not Path("out").exists()


@pytest.mark.parametrize("workloads", [["bfs"], ["ccc"], ["sensitivity", "--demo"]])
def test_figures_are_refused_where_none_are_drawn(
    workloads: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *workloads, "--figures", "f"]) == 1
    assert "error[CCC089]: cannot use the argument `--figures`" in capsys.readouterr().err
    assert not Path("f").exists()


@pytest.mark.parametrize(
    "option", ["--ccc-report=marked.ptx/r.json", "--ccc-keep=marked.ptx/k", "--ccc-keep=/proc"]
)
def test_ccc_nvcc_does_not_begin(
    option: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("cccopt.cli.nvcc.launch", worked)
    monkeypatch.setattr("cccopt.cli.around_nvcc.find_program", lambda named: ("nvcc", ""))
    monkeypatch.setattr("cccopt.toolchain.cache.recall", lambda named: None)
    assert nvcc.main([option, "-c", "x.cu", "-o", "x.o"]) == 1
    said = capfd.readouterr().err
    assert said.startswith("error[CCC086]: cannot ")
    assert said.count("\n") == 1
