"""Escape times: the reference against orbits in exact arithmetic, both programs against the reference."""

from __future__ import annotations

import subprocess
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import cast

import numpy as np
import pytest

from cccopt.harness import workload
from cccopt.toolchain.invoke import run_nvcc
from cccopt.toolchain.settings import Settings
from tests.samples.peers import plain_and_peer


def escape() -> ModuleType:
    return cast(ModuleType, workload.load("escape").workload)


def rounded(exact: Fraction) -> np.float32:
    """The nearest number in single precision, the even one of two."""
    below = np.float32(float(exact))
    near = [np.nextafter(below, np.float32(-9)), below, np.nextafter(below, np.float32(9))]
    return min(near, key=lambda x: (abs(Fraction(float(x)) - exact), int(x.view(np.uint32)) & 1))


def fma(a: np.float32, b: np.float32, c: np.float32) -> np.float32:
    return rounded(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)))


def orbit(row: int, column: int, pitch: np.float32, limit: int) -> int:
    """The steps of one pixel."""
    cx = fma(np.float32(column), pitch, np.float32(-0.7436))
    cy = fma(np.float32(row), pitch, np.float32(0.1318))
    x = y = zero = np.float32(0)
    for step in range(limit):
        if fma(x, x, fma(y, y, zero)) >= 4:
            return step
        x, y = fma(x, x, fma(-y, y, cx)), fma(np.float32(2) * x, y, cy)
    return limit


def test_reference_rounds_once() -> None:
    steps = escape().reference(escape().window(61, 43, 300, 1))["steps"].reshape(43, 61)
    pitch = np.float32(2e-4) / np.float32(61)
    early = np.argwhere(steps < np.sort(steps, axis=None)[6])
    pixels = [(int(row), int(column)) for row, column in [*early, (0, 0), (42, 60)]]
    assert len({int(steps[pixel]) for pixel in pixels}) > 2
    for pixel in pixels:
        assert steps[pixel] == orbit(*pixel, pitch, 300)


def test_orbits_differ_in_length_and_some_stay() -> None:
    sample = workload.load("escape")
    steps = escape().reference(sample.inputs("small", 1))["steps"]
    assert 0 < np.count_nonzero(steps == 700) < len(steps) / 4
    assert len(np.unique(steps)) > 200


def test_check_names_the_first_wrong_pixel() -> None:
    expected = escape().reference(escape().window(5, 3, 50, 1))
    result = {"steps": expected["steps"].copy()}
    assert escape().check(result, expected) == ""
    result["steps"][7] += 1
    assert "1 wrong pixels; steps[7]" in escape().check(result, expected)


@pytest.mark.nvcc
def test_program_and_peer_are_right_and_the_peer_is_fuller(tmp_path: Path, repository: Path) -> None:
    plain, peer = plain_and_peer(workload.load("escape"), repository, tmp_path)
    assert (plain.wrong, peer.wrong) == ("", "")
    assert peer.counts.warp_efficiency > 1.7 * plain.counts.warp_efficiency
    assert 1.7 * peer.counts.warp_instructions < plain.counts.warp_instructions


@pytest.mark.gpu
@pytest.mark.nvcc
@pytest.mark.parametrize("mode", ["off", "always"])
def test_program_prints_what_numpy_computes(tmp_path: Path, mode: str) -> None:
    program = tmp_path / "escape"
    source = workload.load("escape").source
    done = run_nvcc(["-O3", "-arch=native", str(source), "-o", str(program)], Settings(mode), capture=True)
    assert done.status == 0, done.errors
    printed = subprocess.run(
        [program, "203", "101", "900"], check=True, capture_output=True, text=True
    ).stdout
    steps = escape().reference(escape().window(203, 101, 900, 1))["steps"]
    assert printed == escape().summary(900, steps)
