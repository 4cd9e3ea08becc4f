"""Compiled PTX for the tests of the language layer."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cccopt.toolchain.discovery import find_nvcc

HERE = Path(__file__).parent


def tool(name: str) -> str:
    """The path of a tool of the CUDA toolkit that cccopt finds."""
    return str(find_nvcc().bin / name)


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """nvcc's PTX of ``cuda/NAME.cu`` for an architecture with some options, compiled once a session."""
    folder = tmp_path_factory.mktemp("ptx")
    texts: dict[tuple[str, ...], str] = {}

    def compile_(name: str, arch: str, *options: str) -> str:
        key = (name, arch, *options)
        if key not in texts:
            out = folder / ("_".join(key) + ".ptx")
            source = HERE / "cuda" / f"{name}.cu"
            command = [
                tool("nvcc"),
                "-std=c++17",
                f"-arch={arch}",
                "-ptx",
                *options,
                str(source),
                "-o",
                str(out),
            ]
            subprocess.run(command, check=True, capture_output=True)
            texts[key] = out.read_text()
        return texts[key]

    return compile_


@pytest.fixture(scope="session")
def features() -> str:
    """Hand-written PTX with the corners of the language that nvcc seldom writes."""
    return (HERE / "features.ptx").read_text()
