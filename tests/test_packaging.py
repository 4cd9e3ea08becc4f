"""The wheel, installed in an empty environment, has all that its commands need."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import numpy
import pytest


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ``bin`` of an environment that holds the wheel; its dependencies are those of this environment."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=repository)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "venv")
    python = folder / "venv/bin/python"
    pip = (sys.executable, "-m", "pip", "--python", python)
    run(*pip, "install", "--quiet", "--no-index", "--no-deps", wheel, cwd=folder)
    (site,) = (folder / "venv/lib").glob("python*/site-packages")
    # A folder named by a .pth file is searched, but the .pth files in it (the checkout's own) are not read.
    (site / "dependencies.pth").write_text(f"{Path(numpy.__file__).parent.parent}\n")
    return python.parent


def test_explain_prints_a_page(installed: Path, tmp_path: Path) -> None:
    assert run(installed / "cccopt", "explain", "CCC030", cwd=tmp_path).startswith("# CCC030: ")


def test_grammar_headers_and_samples_are_in_the_package(installed: Path, tmp_path: Path) -> None:
    program = """
import cccopt, pathlib
from cccopt.resources import folder
package = pathlib.Path(cccopt.__file__).parent
for name in ("ptx_grammar", "cte_templates", "samples", "bench", "docs/codes"):
    assert folder(name).is_relative_to(package), folder(name)
    assert any(folder(name).rglob("*.*")), name
assert (folder("samples") / "bfs" / "bfs.cu").is_file()
module = cccopt.parse(".version 9.0\\n.target sm_90\\n.address_size 64\\n")
print(len(module.items), pathlib.Path(cccopt.__file__).parent)
"""
    count, place = run(installed / "python", "-c", program, cwd=tmp_path).split()
    assert int(count) == 3
    assert Path(place).is_relative_to(installed.parent)


@pytest.mark.nvcc
def test_a_sample_compiles_from_the_package(installed: Path, tmp_path: Path) -> None:
    program = "from cccopt.resources import folder; print(folder('samples') / 'bfs' / 'bfs.cu')"
    sample = run(installed / "python", "-c", program, cwd=tmp_path).strip()
    command = (installed / "ccc-nvcc", "-ptx", "-arch=sm_90", sample, "-o", "bfs.ptx")
    assert run(*command, cwd=tmp_path) == ""
    assert ".entry bfs(" in (tmp_path / "bfs.ptx").read_text()
