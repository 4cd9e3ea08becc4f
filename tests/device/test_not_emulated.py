"""Kernels that only a GPU can judge: textures, surfaces, virtual calls, `new`, functions of doubles; all forms."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.builds import make_command

pytestmark = [pytest.mark.gpu, pytest.mark.nvcc]

SOURCE = Path(__file__).parent / "cuda/not_emulated.cu"
FORMS = ("auto", "split", "idle-lanes", "split,stack", "carried", "in-lane")
KERNELS = 17
"""Those with annotations."""


def built(folder: Path, name: str, *options: str) -> list[str]:
    """What a build of the program prints, sorted: lanes print in any order."""
    command = [make_command(folder / "bin"), *options, "-arch=native", "-O3", "-std=c++17", "-fmad=false"]
    subprocess.run([*command, SOURCE, "-o", name], cwd=folder, check=True, capture_output=True)
    done = subprocess.run([f"./{name}"], cwd=folder, check=True, text=True, capture_output=True)
    return sorted(done.stdout.splitlines())


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return built(tmp_path_factory.mktemp("plain"), "plain", "--ccc=off")


@pytest.mark.parametrize("form", FORMS)
def test_results_are_kept(form: str, plain: list[str], tmp_path: Path) -> None:
    options = ("--ccc=always", f"--ccc-form={form}", "--ccc-keep-going", "--ccc-report=report.json")
    assert built(tmp_path, "program", *options) == plain
    (unit,) = json.loads((tmp_path / "report.json").read_text())["units"]
    kernels = {region["kernel"] for region in unit["regions"] if region["outcome"] == "rewritten"}
    assert len(kernels) == KERNELS if form == "auto" else len(kernels) > KERNELS // 2


@pytest.mark.parametrize("how", ["", "=sampled", "=detailed"])
def test_counting_changes_no_result(how: str, plain: list[str], tmp_path: Path) -> None:
    assert built(tmp_path, "program", f"--ccc-instrument{how}") == plain
