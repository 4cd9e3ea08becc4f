"""`printf` and `assert` in device code, and functions that nobody knows."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from cccopt.emulator import EmulatorError, Program
from cccopt.toolchain.discovery import find_nvcc

pytestmark = pytest.mark.nvcc
SOURCE = Path(__file__).parent / "cuda" / "system_calls.cu"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    ptx = tmp_path_factory.mktemp("ptx") / "k.ptx"
    command = [str(find_nvcc().path), "-arch=sm_90", "-ptx", str(SOURCE), "-o", str(ptx)]
    subprocess.run(command, check=True, capture_output=True)
    return Program(ptx.read_text(), ptx.name)


@pytest.mark.parametrize("shuffle", [None, 3])
def test_what_lanes_print_is_as_in_c(
    program: Program, shuffle: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    a, out = np.arange(12, dtype=np.int32), np.zeros(12, np.int32)
    profile = program.launch("said", 1, 32, [12, a, out], shuffle=shuffle)
    said = capsys.readouterr()
    assert said.out == ""
    assert sorted(said.err.splitlines()) == sorted(
        f"{i}:{i / 4:5.2f}|ab  |{i:04x}|x%-{i} {'much' if i > 5 else 'few'}" for i in (1, 5, 9)
    )
    # CUDA's returns how many arguments it has read, not how many characters it wrote.
    assert out.tolist() == [7 if i % 4 == 1 else -1 for i in range(12)]
    assert profile.warp_instructions > 0


def test_arguments_of_all_sizes(program: Program, capsys: pytest.CaptureFixture[str]) -> None:
    program.launch("sizes", 1, 2, [-(1 << 40), 2.5])
    common = (
        f"-1 {-(1 << 40)} {2**32 - 1} -3 65535 {(1 << 64) - (1 << 40):x} 0x10     42 2.5"
        " 2.500000e+00 2.5 0x1.4p+1 7 10"
    )
    assert capsys.readouterr().err.splitlines() == [f"{common} ta", f"{common} tb"]


def test_a_failed_assertion_is_told_as_it_is_written(program: Program) -> None:
    a = np.array([3, 1, -4, 1], np.int32)
    with pytest.raises(EmulatorError) as caught:
        program.launch("said", 1, 4, [4, a, np.zeros(4, np.int32)])
    (said,) = caught.value.diagnostics
    assert said.code == "CCC078"
    assert said.message.startswith('assertion `a[i] >= 0 && "no debts"` failed in thread (2, 0, 0)')
    assert f"{SOURCE.name}:8" in said.why


def test_what_has_no_body_matters_where_it_is_called(program: Program) -> None:
    out = np.zeros(32, np.uint64)
    program.launch("heap", 1, 32, [0, out])
    with pytest.raises(EmulatorError, match="function `malloc` has no body here") as caught:
        program.launch("heap", 1, 32, [1, out])
    assert caught.value.diagnostics[0].code == "CCC070"
