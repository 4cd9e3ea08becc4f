"""``ccc-nvcc`` as the CUDA compiler of a build system."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_annotated import KERNEL, MAIN, is_rewritten

CMAKE = """\
cmake_minimum_required(VERSION 3.20)
project(program LANGUAGES CUDA)
set(CMAKE_CUDA_ARCHITECTURES 80 90)
add_executable(program main.cu kernel.cu)
"""
# The command beside the Python that runs the tests.
CCC_NVCC = Path(sys.executable).parent / "ccc-nvcc"

pytestmark = [
    pytest.mark.nvcc,
    pytest.mark.skipif(shutil.which("cmake") is None, reason="CMake is not installed"),
]


def build(folder: Path, *options: str) -> str:
    """Configure and build as a user does; the sources lie in ``folder``."""
    (folder / "CMakeLists.txt").write_text(CMAKE)
    (folder / "kernel.cu").write_text(KERNEL)
    (folder / "main.cu").write_text(MAIN)
    configure = ["cmake", "-S", folder, "-B", folder / "build", *options]
    subprocess.run(configure, check=True, capture_output=True)
    subprocess.run(["cmake", "--build", folder / "build"], check=True, capture_output=True)
    return subprocess.run([folder / "build/program"], check=True, capture_output=True, text=True).stdout


def test_cmake_takes_it_as_the_compiler(tmp_path: Path) -> None:
    flags = "--ccc=always -no-compress"
    assert build(tmp_path, f"-DCMAKE_CUDA_COMPILER={CCC_NVCC}", f"-DCMAKE_CUDA_FLAGS={flags}") == "ran\n"
    (kernel,) = tmp_path.rglob("kernel.cu.o")
    assert is_rewritten(kernel.read_bytes())
