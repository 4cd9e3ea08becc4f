"""The samples as programs: what their `main` prints is what workload.py says, with the pass off and on."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import ModuleType
from typing import cast

import pytest

from cccopt.harness import workload
from cccopt.toolchain.invoke import run_nvcc
from cccopt.toolchain.settings import Settings

pytestmark = [pytest.mark.gpu, pytest.mark.nvcc]


def output(name: str, mode: str, folder: Path, *arguments: str) -> str:
    program = folder / name
    source = workload.load(name).source
    done = run_nvcc(["-O3", "-arch=native", str(source), "-o", str(program)], Settings(mode), capture=True)
    assert done.status == 0, done.errors
    return subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("mode", ["off", "always"])
def test_bfs_prints_what_numpy_computes(tmp_path: Path, mode: str) -> None:
    sample = cast(ModuleType, workload.load("bfs").workload)
    inputs = sample.search(sample.graph500(15, 8, 3), 16)
    expected = sample.summary(inputs, sample.reference(inputs)["levels"])
    assert output("bfs", mode, tmp_path, "15", "8", "3") == expected


@pytest.mark.parametrize("mode", ["off", "always"])
def test_sensitivity_prints_what_numpy_computes(tmp_path: Path, mode: str) -> None:
    sample = cast(ModuleType, workload.load("sensitivity").workload)
    pairs = [(n, 4) for n in (1, 5, 20, 80, 320)]
    expected = sample.reference({"iterations": 1 << 18, "pairs": pairs})
    lines = [sample.summary(n, k, expected[f"cells N={n} k={k}"]) for n, k in pairs]
    assert output("sensitivity", mode, tmp_path, "18", "4") == "".join(lines)
