"""The matrix of versions: what is tried, and the table. The trials themselves are run by hand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.version_matrix import TESTS, Row, StepFailed, markdown, newest_of_minors, python_row, said

LISTED = """cuda-toolkit (13.5.0)
Available versions: 13.5.0, 13.4.3, 13.4.10, 13.0.3.0, 13.0.2, 12.9.2.0, 11.8.0
  INSTALLED: 13.0.2
"""


def test_the_newest_toolkit_of_each_minor_version_is_tried() -> None:
    assert newest_of_minors(LISTED) == ["13.0.3.0", "13.4.10", "13.5.0"]
    assert newest_of_minors("") == []


def test_the_tests_that_are_run_exist(repository: Path) -> None:
    assert [name for name in TESTS if not (repository / name).exists()] == []


def test_the_table_is_markdown() -> None:
    text = markdown([Row("Python", "3.10.1", "numpy 2", "a | b")])
    assert text.splitlines() == [
        "| tried | version | with | result |",
        "| --- | --- | --- | --- |",
        "| Python | 3.10.1 | numpy 2 | a / b |",
    ]


def test_a_failure_is_a_row_that_says_how(tmp_path: Path) -> None:
    python = tmp_path / "python3.99"
    python.write_text("#!/bin/sh\necho ModuleNotFoundError >&2\nexit 1\n")
    python.chmod(0o755)
    row = python_row(str(python), tmp_path / "none.whl")
    assert (row.result, row.failed) == ("failed: ModuleNotFoundError", True)
    with pytest.raises(StepFailed, match="no-such-program"):
        said([tmp_path / "no-such-program"], tmp_path)


def test_the_command_knows_its_options(repository: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.version_matrix", "--only", "nvcc"],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "invalid choice: 'nvcc'" in done.stderr
