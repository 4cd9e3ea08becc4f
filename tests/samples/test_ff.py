"""The fractal flame: numpy's bounds against points taken one by one, both programs against the bounds."""

from __future__ import annotations

import cmath
import math
import subprocess
from pathlib import Path
from types import ModuleType
from typing import cast

import numpy as np
import pytest

from cccopt.harness import workload
from cccopt.toolchain.invoke import run_nvcc
from cccopt.toolchain.settings import Settings
from tests.samples.peers import plain_and_peer


def ff() -> ModuleType:
    return cast(ModuleType, workload.load("ff").workload)


def moved(points: int) -> list[complex]:
    """The points after their variations, one by one, as complex numbers."""
    random = ff().hash32(np.arange(points, dtype=np.uint32))
    which = ff().hash32(random) % 10
    return [_moved(int(bits), int(variation)) for bits, variation in zip(random, which, strict=True)]


def _moved(bits: int, variation: int) -> complex:
    z = complex((bits & 0xFFFF) / 32768 - 1, (bits >> 16) / 32768 - 1)
    r, angle = abs(z) + 1e-6, cmath.phase(1j * z.conjugate())
    return (
        lambda: z,
        lambda: complex(math.sin(z.real), math.sin(z.imag)),
        lambda: z / r**2,
        lambda: z * 1j * cmath.exp(-1j * r * r),
        lambda: z * z / r,
        lambda: complex(angle / math.pi, r - 1),
        lambda: r * complex(math.sin(angle + r), math.cos(angle - r)),
        lambda: -1j * cmath.rect(r, angle * r),
        lambda: 1j * cmath.rect(angle / math.pi, -math.pi * r),
        lambda: cmath.rect(r ** math.sin(angle), angle),
    )[variation]()


def test_variations_are_right_one_by_one() -> None:
    x, y = ff().moved(2000)
    np.testing.assert_allclose(x + 1j * y, moved(2000), rtol=1e-12)


def test_bounds_hold_each_point_once_and_nearly_all_are_tight() -> None:
    expected = ff().reference({"points": 5000})
    image = np.zeros((2048, 2048), np.uint32)
    for z in moved(5000):
        image[int((z.imag + 2) * 512) % 2048, int((z.real + 2) * 512) % 2048] += 1
    assert ff().check({"image": image.ravel()}, expected) == ""
    assert expected["least"].sum() > 0.98 * 5000
    assert np.count_nonzero(image) > 4000


def test_check_finds_a_lost_and_a_moved_point() -> None:
    expected = ff().reference({"points": 5000})
    image = expected["least"].astype(np.uint32)
    assert "points in the image, not 5000" in ff().check({"image": image}, expected)
    lost = 5000 - int(image.sum())
    dark = np.flatnonzero(expected["most"] == 0)[0]
    image[dark] = lost
    assert f"1 wrong pixels; row 0 column {dark} counts {lost} points, not 0" in ff().check(
        {"image": image}, expected
    )
    other = image.copy()
    assert ff().check({"image": image}, {"image": other}) == ""
    other[-1] += 1
    assert "1 wrong pixels; row 2047 column 2047" in ff().check({"image": image}, {"image": other})


@pytest.mark.nvcc
def test_program_and_peer_are_right_and_the_peer_is_fuller(tmp_path: Path, repository: Path) -> None:
    plain, peer = plain_and_peer(workload.load("ff"), repository, tmp_path)
    assert (plain.wrong, peer.wrong) == ("", "")
    assert peer.counts.warp_efficiency > 3 * plain.counts.warp_efficiency
    assert 2 * peer.counts.warp_instructions < plain.counts.warp_instructions


@pytest.mark.gpu
@pytest.mark.nvcc
@pytest.mark.parametrize("mode", ["off", "always"])
def test_program_prints_an_image_that_numpy_allows(tmp_path: Path, mode: str) -> None:
    program = tmp_path / "ff"
    source = workload.load("ff").source
    done = run_nvcc(["-O3", "-arch=native", str(source), "-o", str(program)], Settings(mode), capture=True)
    assert done.status == 0, done.errors
    printed = subprocess.run([program, "16"], check=True, capture_output=True, text=True).stdout
    expected = ff().reference({"points": 1 << 16})
    words = printed.split()
    assert words[:2] == ["points", str(1 << 16)]
    assert np.count_nonzero(expected["least"]) <= int(words[4]) <= np.count_nonzero(expected["most"])
