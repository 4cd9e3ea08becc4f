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
    page = (repository / "docs/ci.md").read_text()
    (kernel,) = re.findall(r"^```cuda\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (script,) = re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

    def check() -> subprocess.CompletedProcess[str]:
        command = ["sh", "-ec", script]
        return subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )

    (tmp_path / "collatz.cu").write_text(kernel)
    done = check()
    assert done.returncode == 0, done.stderr
    (run,) = json.loads((tmp_path / "divergence.sarif").read_text())["runs"]
    assert run["results"] == []
    # Somebody takes the annotations out.
    (tmp_path / "collatz.cu").write_text(re.sub(r"(?m)^#pragma ccc.*\n", "", kernel))
    done = check()
    assert done.returncode == 1
    assert "error[CCC119]: the warp efficiency of `collatz` is" in done.stderr
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
    assert "there is no --at-least" in capsys.readouterr().err
