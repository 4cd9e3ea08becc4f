"""Photons in layers: numpy against photons followed one by one, both programs against numpy's bounds."""

from __future__ import annotations

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


def walk() -> ModuleType:
    return cast(ModuleType, workload.load("walk").workload)


def followed(photon: int, absorption: float) -> float:
    """The moment of one photon, in Python's integers and floats."""
    state = int(walk().hash32(np.array([photon + 1], np.uint32))[0])

    def uniform() -> float:
        nonlocal state
        state ^= state << 13 & 0xFFFFFFFF
        state ^= state >> 17
        state ^= state << 5 & 0xFFFFFFFF
        return (state >> 8) / 2**24

    place, weight, alive = 0j, 1.0, True
    while alive:
        distance = -math.log(uniform() + 1e-7)
        place += distance * complex(math.cos(turn := 2 * math.pi * uniform()), math.sin(turn))
        place = complex(place.real, abs(place.imag))
        weight *= 0.995 if place.imag < 4 else 0.985 if place.imag > 8 else 1.005 - place.imag / 400
        alive = uniform() > np.float32(absorption)
    return weight * abs(place) ** 2


@pytest.mark.parametrize("absorption", walk().ABSORPTIONS)
def test_reference_follows_each_photon(absorption: float) -> None:
    moments, tolerance = walk().walk(60, absorption)
    # The constants of the kernel are floats: one of 1e-7 is as wrong as a millionth of itself.
    np.testing.assert_allclose(moments, [followed(i, absorption) for i in range(60)], rtol=1e-4, atol=1e-6)
    assert np.all(tolerance > 0)


def test_bounds_are_narrow_enough_to_tell_photons_apart() -> None:
    expected = walk().reference({"photons": 1000})
    for name in walk().RESULTS:
        assert np.median(expected["tolerance of " + name] / expected[name]) < 1e-4
    result = {name: expected[name].astype(np.float32) for name in walk().RESULTS}
    assert walk().check(result, expected) == ""
    result["moments 0.1"][[3, 4]] = result["moments 0.1"][[4, 3]]
    assert "2 wrong moments 0.1; photon 3 has" in walk().check(result, expected)
    result["moments 0.1"][[3, 4]] = np.nan
    assert "2 wrong moments 0.1" in walk().check(result, expected)


def test_builds_of_one_machine_agree_in_every_bit() -> None:
    plain = {name: np.ones(5, np.float32) for name in walk().RESULTS}
    other = {name: array.copy() for name, array in plain.items()}
    assert walk().check(other, plain) == ""
    other["moments 0.3"][2] = np.nextafter(np.float32(1), np.float32(2))
    assert "1 wrong moments 0.3; photon 2" in walk().check(other, plain)


@pytest.mark.nvcc
def test_program_and_peer_are_right_and_the_peer_is_fuller(tmp_path: Path, repository: Path) -> None:
    plain, peer = plain_and_peer(workload.load("walk"), repository, tmp_path)
    assert (plain.wrong, peer.wrong) == ("", "")
    assert peer.counts.warp_efficiency > 1.5 * plain.counts.warp_efficiency
    assert 1.5 * peer.counts.warp_instructions < plain.counts.warp_instructions


@pytest.mark.gpu
@pytest.mark.nvcc
@pytest.mark.parametrize("mode", ["off", "always"])
def test_program_prints_the_means_that_numpy_computes(tmp_path: Path, mode: str) -> None:
    program = tmp_path / "walk"
    source = workload.load("walk").source
    done = run_nvcc(["-O3", "-arch=native", str(source), "-o", str(program)], Settings(mode), capture=True)
    assert done.status == 0, done.errors
    printed = subprocess.run([program, "14"], check=True, capture_output=True, text=True).stdout
    for line, absorption in zip(printed.splitlines(), walk().ABSORPTIONS, strict=True):
        moments, tolerance = walk().walk(1 << 14, absorption)
        words = line.split()
        assert words[:2] == ["absorption", f"{absorption:g}"]
        assert abs(float(words[-1]) - moments.mean()) <= tolerance.mean() + 5e-4
