"""The wheel, installed in an empty environment, has all that its commands need."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import numpy
import pytest


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


# Of https://www.apache.org/licenses/LICENSE-2.0.txt.
APACHE_2 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"


@pytest.fixture(scope="module")
def built(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution."""
    folder = tmp_path_factory.mktemp("built")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=repository)
    return folder


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ``bin`` of an environment that holds the wheel; its dependencies are those of this environment."""
    folder = tmp_path_factory.mktemp("wheel")
    (wheel,) = built.glob("*.whl")
    venv.create(folder / "venv")
    python = folder / "venv/bin/python"
    pip = (sys.executable, "-m", "pip", "--python", python)
    run(*pip, "install", "--quiet", "--no-index", "--no-deps", wheel, cwd=folder)
    (site,) = (folder / "venv/lib").glob("python*/site-packages")
    # A folder named by a .pth file is searched, but the .pth files in it (the checkout's own) are not read.
    (site / "dependencies.pth").write_text(f"{Path(numpy.__file__).parent.parent}\n")
    return python.parent


def test_both_distributions_carry_the_licence_and_its_name(built: Path) -> None:
    (wheel,), (source,) = built.glob("*.whl"), built.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as files:
        (metadata,) = (name for name in files.namelist() if name.endswith(".dist-info/METADATA"))
        said = files.read(metadata).decode().splitlines()
        carried = files.read(str(Path(metadata).parent / "licenses" / "LICENSE"))
    assert "License-Expression: Apache-2.0" in said
    assert "License-File: LICENSE" in said
    assert hashlib.sha256(carried).hexdigest() == APACHE_2
    with tarfile.open(source) as files:
        (name,) = (name for name in files.getnames() if name.count("/") == 1 and name.endswith("/LICENSE"))
        stream = files.extractfile(name)
        assert stream is not None
        assert stream.read() == carried


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
from cccopt.profiling import run_file
from cccopt.report.profile_page import page
assert "</html>" in page(run_file.RunFile(), {}) and run_file.schema()
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


def test_the_wheel_has_headers_and_a_cmake_package(installed: Path) -> None:
    for option, file in (("--cte-include", "cte.cuh"), ("--cmake-dir", "cccoptConfig.cmake")):
        folder = run(installed / "cccopt", option, cwd=installed).strip()
        assert (Path(folder) / file).is_file()
