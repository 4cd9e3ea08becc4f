"""nvcc on sources that include the headers."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

from cccopt.resources import folder
from cccopt.toolchain.discovery import find_nvcc
from tests.shared import shared_folder

STRICT = ("-ptx", "-Werror", "all-warnings")
UNREAD = (*STRICT, "-Xcicc", "-O0")
"""Of code that is to compile and that nobody reads: half of the time goes into optimizing it."""


def compiled(source: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """What nvcc says of ``source``, the folder of the headers being known to it."""
    command = [
        str(find_nvcc().driver),
        "-std=c++17",
        "-I",
        str(folder("cte_templates")),
        *options,
        str(source),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def ptx_of_kernels(name: str, folder_of_ptx: Path, *options: str) -> str:
    """The PTX of tests/cte/cuda/``name``.cu, of which nvcc must have nothing to warn."""
    output = folder_of_ptx / f"{name}.ptx"
    source = Path(__file__).parent / "cuda" / f"{name}.cu"
    done = compiled(source, "-ptx", "-arch=sm_90", "-Werror", "all-warnings", *options, "-o", str(output))
    assert done.returncode == 0, done.stderr
    return output.read_text()


def ptx_for_all_workers(name: str, factory: pytest.TempPathFactory, *options: str) -> str:
    """The same, compiled once for all processes that share the tests of a run."""
    there = shared_folder(factory) / f"{name}-{hashlib.sha256(repr(options).encode()).hexdigest()[:16]}.ptx"
    if not there.is_file():
        made = factory.mktemp("ptx")
        text = ptx_of_kernels(name, made, *options)
        unfinished = made / "unfinished"
        unfinished.write_text(text)
        unfinished.replace(there)
    return there.read_text()
