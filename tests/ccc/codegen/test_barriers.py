"""Every `bar.warp.sync` of the rewrite is needed: without any one of them the emulator's hazard mode finds a race,
and so does compute-sanitizer's racecheck on a GPU."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cccopt.emulator import EmulatorError, Program
from cccopt.ptx.ir import Function, Instruction, Module
from cccopt.ptx.printer import print_module
from tests.kernels.running import compiled, rewritten

FORMS = ("split", "idle lanes")
SEEDS = (None, 1, 2)
INPUT = np.random.default_rng(3).integers(0, 2**31, 2048).astype(np.uint32)

pytestmark = pytest.mark.nvcc


def run(module: Module, shuffle: int | None = None) -> np.ndarray:
    output = np.zeros(128, np.uint32)
    Program(module).launch("barriers", 1, 128, [INPUT, output, np.uint32(2)], shuffle=shuffle)
    return output


def without_each_barrier(module: Module) -> list[Module]:
    """The module once for each of its warp barriers, which is left out."""
    (function,) = (item for item in module.items if isinstance(item, Function))
    body = function.body or ()
    places = [i for i, s in enumerate(body) if isinstance(s, Instruction) and s.opcode == "bar.warp.sync"]
    cut = (replace(function, body=(*body[:i], *body[i + 1 :])) for i in places)
    return [Module(tuple(new if item is function else item for item in module.items)) for new in cut]


@pytest.mark.parametrize("form", FORMS)
def test_with_all_barriers_there_is_no_hazard(form: str) -> None:
    marked = compiled("barriers", "sm_90")
    module = rewritten(marked, form).module
    for seed in SEEDS:
        assert (run(module, seed) == run(marked)).all()


@pytest.mark.parametrize("form", FORMS)
def test_without_any_one_barrier_hazard_mode_finds_a_race(form: str) -> None:
    variants = without_each_barrier(rewritten(compiled("barriers", "sm_90"), form).module)
    assert len(variants) == 6
    for module in variants:
        with pytest.raises(EmulatorError) as caught:
            run(module)
        assert caught.value.diagnostics[0].code == "CCC073"


PROGRAM = """
import sys, numpy as np
from cccopt.device.gpu import open_gpu
with open_gpu() as gpu:
    kernel = gpu.load(open(sys.argv[1]).read()).kernel("barriers")
    values = np.random.default_rng(3).integers(0, 2**31, 2048).astype(np.uint32)
    gpu.launch(kernel, (1, 1, 1), (128, 1, 1), [gpu.upload(values), gpu.upload(np.zeros(128, np.uint32)), np.uint32(2)])
"""


def racecheck(module: Module, folder: Path) -> str:
    """The summary line of racecheck over one launch."""
    ptx, program = folder / "barriers.ptx", folder / "program.py"
    ptx.write_text(print_module(module))
    program.write_text(PROGRAM)
    command = ["compute-sanitizer", "--tool", "racecheck", sys.executable, str(program), str(ptx)]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), check=False)
    lines = [line for line in done.stdout.splitlines() if "SUMMARY" in line]
    assert lines, done.stdout + done.stderr
    return lines[-1]


@pytest.mark.gpu
@pytest.mark.skipif(shutil.which("compute-sanitizer") is None, reason="no compute-sanitizer on PATH")
@pytest.mark.parametrize("form", FORMS)
def test_racecheck_agrees(form: str, tmp_path: Path) -> None:
    module = rewritten(compiled("barriers", "sm_90"), form).module
    assert "(0 errors, 0 warnings)" in racecheck(module, tmp_path)
    for variant in without_each_barrier(module):
        assert "(0 errors, 0 warnings)" not in racecheck(variant, tmp_path)
