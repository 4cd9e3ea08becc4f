"""The header that all CTE headers begin with: it compiles alone, and says in a sentence what it needs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cccopt.resources import folder
from cccopt.toolchain.discovery import find_nvcc
from cccopt.version import __version__

pytestmark = pytest.mark.nvcc

SOURCE = "#include <cte/version.cuh>\n__global__ void k(int* out) { *out = CTE_VERSION; }\n"


def compile_with(tmp_path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    source = tmp_path / "alone.cu"
    source.write_text(SOURCE)
    command = [
        find_nvcc().driver,
        "-ptx",
        "-I",
        folder("cte_templates"),
        *options,
        source,
        "-o",
        tmp_path / "o.ptx",
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
def test_it_compiles_alone_and_tells_the_version(tmp_path: Path, arch: str) -> None:
    done = compile_with(tmp_path, f"-arch={arch}")
    assert done.returncode == 0, done.stderr
    major, minor, patch = (int(part) for part in __version__.split("."))
    assert f", {major * 10000 + minor * 100 + patch};" in (tmp_path / "o.ptx").read_text()


def test_an_older_language_is_refused_in_a_sentence(tmp_path: Path) -> None:
    done = compile_with(tmp_path, "-std=c++14")
    assert done.returncode != 0
    assert "need C++17" in done.stdout + done.stderr
