"""Ray casting: the reference against single rays by another way, both programs against the reference."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from cccopt.harness import workload
from cccopt.toolchain.invoke import run_nvcc
from cccopt.toolchain.settings import Settings
from tests.samples.peers import plain_and_peer

Vector = NDArray[np.float64]
LIGHT: Vector = np.array([0.48, 0.6, -0.64])
HORIZON, ZENITH = np.array([1.0, 1.0, 1.0]), np.array([0.5, 0.7, 1.0])


def rt() -> ModuleType:
    return cast(ModuleType, workload.load("rt").workload)


class Spheres:
    """One ray at a time, by the roots of the quadratic equation in double precision."""

    def __init__(self, count: int, seed: int) -> None:
        spheres, materials = rt().random_spheres(count, seed)
        self.centres, self.radii = spheres[:, :3].astype(float), np.sqrt(spheres[:, 3].astype(float))
        self.colours = materials[:, :3].astype(float)

    def first(self, origin: Vector, way: Vector, without: int | None = None) -> tuple[int, Vector] | None:
        """The first sphere ahead, and where it is met. One that holds the origin is not seen."""
        found = []
        for k, (centre, radius) in enumerate(zip(self.centres, self.radii, strict=True)):
            rest = origin - centre
            roots = np.roots([way @ way, 2 * way @ rest, rest @ rest - radius**2])
            if k != without and np.isreal(roots).all() and roots.min() > 0:
                found.append((roots.min().real, k))
        return (min(found)[1], origin + min(found)[0] * way) if found else None

    def light(self, k: int, point: Vector, without_shadow: bool) -> tuple[Vector, float]:
        """What a point sends back by day, and how much of it comes from the light."""
        normal = (point - self.centres[k]) / np.linalg.norm(point - self.centres[k])
        direct = max(0.0, float(normal @ LIGHT))
        if not without_shadow and self.first(point, LIGHT, k):
            direct = 0.0
        return self.colours[k] * (0.2 + 0.8 * direct), direct

    def colour(self, origin: Vector, way: Vector) -> Vector:
        """The light along a ray from the camera."""
        way = way / np.linalg.norm(way)
        hit = self.first(origin, way)
        if hit is None:
            return HORIZON + (ZENITH - HORIZON) * abs(way[1])
        k, point = hit
        normal = (point - self.centres[k]) / self.radii[k]
        mirrored = way - 2 * (way @ normal) * normal
        own, direct = self.light(k, point, without_shadow=False)
        highlight = max(0.0, float(mirrored @ LIGHT)) ** 32 if direct > 0 else 0.0
        second = self.first(point, mirrored, k)
        seen = HORIZON + (ZENITH - HORIZON) * abs(mirrored[1])
        if second is not None:
            seen, _ = self.light(*second, without_shadow=True)
        return 0.75 * own + 0.25 * seen + highlight


def camera(width: int, height: int, seed: int, pixel: int) -> tuple[Vector, Vector]:
    """Where a pixel's ray begins, and a way to its point in focus: 18 across, 20 ahead."""
    random = int(rt().hash32(np.array([pixel + seed * 0x9E3779B9 & 0xFFFFFFFF], np.uint32))[0])
    origin = np.array([(random & 0xFFFF) / 65536 - 0.5, (random >> 16) / 65536 - 0.5, 0])
    row, column = divmod(pixel, width)
    target = np.array([column + 0.5 - width / 2, height / 2 - row - 0.5, 0]) * 18 / width
    return origin, target + np.array([0, 0, 20]) - origin


def test_reference_sees_what_single_rays_see() -> None:
    width, height, seed = 71, 43, 1
    inputs = rt().picture(width, height, 80, 1, seed)
    image = rt().reference(inputs)["image"].reshape(-1, 4).astype(int)
    spheres = Spheres(80, seed)
    hits = 0
    for pixel in range(0, width * height, 61):
        origin, way = camera(width, height, seed, pixel)
        levels = np.floor(np.minimum(spheres.colour(origin, way), 1) * 255 + 0.5)
        assert np.abs(image[pixel, :3] - levels).max() <= 1
        hits += spheres.first(origin, way) is not None
    assert 15 < hits < 40


def test_single_precision_is_enough() -> None:
    inputs = rt().inputs("small", 2)
    single, double = (rt().rendered(inputs, real).astype(int) for real in (np.float32, np.float64))
    difference = np.abs(single - double).max(axis=-1)
    assert np.count_nonzero(difference > 1) < 0.005 * difference.size


AGREEMENT = """
#define main rt_main
#include "rt.cu"
#undef main
int main() {
  const Spheres made = random_spheres(50, 4294967295u);
  for (const auto* list : {&made.spheres, &made.materials})
    for (float4 v : *list) std::printf("%.9g %.9g %.9g %.9g\\n", v.x, v.y, v.z, v.w);
}
"""


@pytest.mark.nvcc
def test_host_program_and_numpy_generate_the_same_spheres(tmp_path: Path) -> None:
    source, program = tmp_path / "agreement.cu", tmp_path / "agreement"
    source.write_text(AGREEMENT)
    nvcc, include = shutil.which("nvcc"), workload.load("rt").source.parent
    subprocess.run([str(nvcc), "-w", "-I", str(include), str(source), "-o", str(program)], check=True)
    printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    found = np.array(printed.split(), np.float32).reshape(2, 50, 4)
    np.testing.assert_array_equal(found, np.stack(rt().random_spheres(50, 4294967295)))


def test_check_names_the_first_wrong_pixel() -> None:
    expected = rt().reference(rt().picture(6, 5, 3, 1, 1))
    result = {"image": expected["image"].copy()}
    assert rt().check(result, expected) == ""
    result["image"][2, 4, 1] ^= 1
    assert "1 wrong levels; the pixel in row 2, column 4" in rt().check(result, expected)


@pytest.mark.nvcc
def test_program_and_peer_are_right_and_the_peer_is_fuller(tmp_path: Path, repository: Path) -> None:
    plain, peer = plain_and_peer(workload.load("rt"), repository, tmp_path)
    assert (plain.wrong, peer.wrong) == ("", "")
    assert peer.counts.warp_efficiency > 1.5 * plain.counts.warp_efficiency
    assert 1.4 * peer.counts.warp_instructions < plain.counts.warp_instructions


@pytest.mark.gpu
@pytest.mark.nvcc
@pytest.mark.parametrize("mode", ["off", "always"])
def test_program_draws_what_numpy_draws(tmp_path: Path, mode: str) -> None:
    program, file = tmp_path / "rt", tmp_path / "picture.ppm"
    source = workload.load("rt").source
    done = run_nvcc(["-O3", "-arch=native", str(source), "-o", str(program)], Settings(mode), capture=True)
    assert done.status == 0, done.errors
    command = [program, "211", "119", "80", "3", file]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    image: Any = rt().reference(rt().picture(211, 119, 80, 1, 3))["image"]
    assert printed == rt().summary(image)
    header, levels = file.read_bytes().split(b"\n", 1)
    assert header == b"P6 211 119 255"
    np.testing.assert_array_equal(np.frombuffer(levels, np.uint8).reshape(119, 211, 3), image[..., :3])
