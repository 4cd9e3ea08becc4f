"""``cccopt profile --at-least``, and the recipe for continuous integration."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cccopt.cli.main import main


@pytest.mark.nvcc
def test_the_recipe_runs_and_notices_emptier_warps(repository: Path, tmp_path: Path) -> None:
    """By the step of the action for GitHub that runs it."""
    page = (repository / "docs/ci.md").read_text()
    (kernel,) = re.findall(r"^```cuda\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (script,) = re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "check.sh").write_text(script)
    action = (repository / "action.yml").read_text()
    (step,) = re.findall(r"^      run: \|\n((?:        .*\n)+)", action, re.MULTILINE)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    summary = tmp_path / "summary.md"
    environment = {**os.environ, "PATH": path, "SCRIPT": "check.sh", "GITHUB_STEP_SUMMARY": str(summary)}

    def check() -> subprocess.CompletedProcess[str]:
        command = ["bash", "-e", "-c", step]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    (tmp_path / "collatz.cu").write_text(kernel)
    done = check()
    assert done.returncode == 0, done.stdout
    assert summary.read_text() == done.stdout
    assert re.fullmatch(r"```text\nsame: (.|\n)*```\n", done.stdout)
    (run,) = json.loads((tmp_path / "divergence.sarif").read_text())["runs"]
    assert run["results"] == []
    # Somebody takes the annotations out.
    (tmp_path / "collatz.cu").write_text(re.sub(r"(?m)^#pragma ccc.*\n", "", kernel))
    done = check()
    assert done.returncode == 1
    assert "error[CCC119]: the warp efficiency of `collatz` is" in done.stdout
    assert summary.read_text().endswith("```\n")
    (run,) = json.loads((tmp_path / "divergence.sarif").read_text())["runs"]
    (result,) = run["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "collatz.cu"


@pytest.mark.parametrize("words", [["k"], ["k=x"], ["k=101"], ["=5"], ["k=-1"]])
def test_a_threshold_is_a_kernel_and_a_percentage(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["profile", "--at-least", *words, "run.ccc.json"])
    assert ended.value.code == 2
    assert "like `bfs=40`" in capsys.readouterr().err


def test_a_file_of_findings_needs_something_to_find(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "--sarif", "x.sarif", "run.ccc.json"]) == 1
    assert "error[CCC089]: `--sarif` needs `--at-least`" in capsys.readouterr().err
