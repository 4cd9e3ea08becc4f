"""Waves from boxes: numpy against sums source by source, the inputs against numpy's, both programs against numpy."""

from __future__ import annotations

import cmath
import math
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from cccopt.emulator import Program
from cccopt.harness import workload
from cccopt.harness.workload import State, base_state
from cccopt.toolchain.invoke import run_nvcc
from cccopt.toolchain.settings import Settings
from tests.samples.peers import plain_and_peer, ptx_of


def emies() -> ModuleType:
    return cast(ModuleType, workload.load("emies").workload)


def made(folder: Path, *size: int) -> State:
    """The inputs of ``size`` (the arguments of `waves`) as the kernels of the sample make them."""
    sample = workload.load("emies")
    program = Program(ptx_of(sample.source, folder))
    state = base_state(emies().waves(*size))
    for launch in sample.setup(state):
        program.launch(launch.kernel, launch.grid, launch.block, launch.arguments)
    return state


def direct(observer: NDArray[np.float64], sources: NDArray[np.float64]) -> complex:
    """The field at one observer, source by source."""
    field = 0j
    for *place, charge in sources.tolist():
        r = math.hypot(*(observer - place), 0.01)
        field += charge * cmath.exp(0.5j * math.pi * r) / r
    return field


def test_near_field_is_the_sum_over_the_sources() -> None:
    rng = np.random.default_rng(1)
    observers, sources = rng.uniform(0, 2, (30, 3)), rng.uniform(-1, 1, (50, 4))
    right = [direct(observer, sources) for observer in observers]
    np.testing.assert_allclose(emies().near_field(observers, sources), right, rtol=1e-12)


def test_far_field_comes_closer_to_the_sum_the_smaller_the_box() -> None:
    rng = np.random.default_rng(2)
    offsets, charges = rng.uniform(-0.5, 0.5, (64, 3)), rng.uniform(-1, 1, 64)
    observers = np.array([[2.0, 1, 0], [-1, 2, 3], [0, 0, -4]])
    errors = []
    for size in (0.1, 0.05):
        box = np.concatenate([np.zeros(3), [charges.sum()], size * charges @ offsets, np.zeros(5)])
        sources = np.column_stack([size * offsets, charges])
        far, near = emies().far_field(observers, box), emies().near_field(observers, sources)
        soft = emies().SOFT / 2 * charges.sum() / np.linalg.norm(observers, axis=1) ** 3
        errors.append(np.abs(far - near - soft).max())
    # What an expansion up to the dipole leaves out shrinks with the square of the size.
    assert 3 < errors[0] / errors[1] < 5
    assert errors[1] < 0.01


@pytest.mark.nvcc
def test_inputs_are_what_numpy_makes_and_reference_decides_box_by_box(tmp_path: Path) -> None:
    hash32 = cast(ModuleType, workload.load("sensitivity").workload).hash32

    def uniform(key: NDArray[np.uint32], k: int) -> NDArray[np.float64]:
        return (hash32(key + np.uint32(k * 0x9E3779B9 & 0xFFFFFFFF)) >> np.uint32(8)) / 2**24

    state: dict[str, Any] = dict(made(tmp_path, 2, 16, 1, 101, 5))
    number = np.arange(101, dtype=np.uint32)
    key = hash32(number + hash32(np.array([7], np.uint32)))
    observers = np.stack([state[axis] for axis in "xyz"], axis=1)
    np.testing.assert_allclose(observers, 2 * np.stack([uniform(key, k) for k in range(3)], axis=1))

    ranges = state["boxes"].view(np.int32)[:, 8:10]
    np.testing.assert_array_equal(ranges[:, 0], 18 * np.arange(8))
    assert set(ranges[:, 1]) <= {14, 15, 16, 17, 18}
    assert len(set(ranges[:, 1])) > 2
    fields = np.zeros(101, np.complex128)
    for b, (first, count) in enumerate(ranges):
        corner = np.array([b % 2, b // 2 % 2, b // 4])
        key = hash32(np.arange(first, first + count, dtype=np.uint32) + hash32(np.array([6], np.uint32)))
        places = corner + np.stack([uniform(key, k) for k in range(3)], axis=1)
        charges = 2 * uniform(key, 3) - 1
        sources = np.column_stack([places, charges])
        np.testing.assert_allclose(state["sources"][first : first + count], sources, rtol=1e-6)
        box = state["boxes"][b].astype(np.float64)
        np.testing.assert_allclose(box[:3], corner + 0.5)
        np.testing.assert_allclose(box[3:7], [charges.sum(), *(charges @ (places - box[:3]))], atol=1e-5)
        for o, observer in enumerate(observers.astype(np.float64)):
            near = math.dist(observer, box[:3]) < 1.5
            fields[o] += direct(observer, sources) if near else emies().far_field(observer[None], box)[0]
    expected = emies().reference(state)
    np.testing.assert_allclose(expected["fields"], np.stack([fields.real, fields.imag], axis=1), rtol=1e-4)
    assert not expected["undecided"].any()


def test_check_measures_against_the_size_of_all_fields() -> None:
    right = {"fields": np.array([[3.0, 4], [0, 0], [3, -4]])}
    result = {"fields": right["fields"].astype(np.float32)}
    size = math.sqrt(50 / 3)
    result["fields"][1, 0] = 0.9e-5 * size
    assert emies().check(result, right) == ""
    result["fields"][1, 0] = 1.1e-5 * size
    assert "1 wrong fields; fields[1] is" in emies().check(result, right)
    assert emies().check(result, {**right, "undecided": np.array([False, True, False])}) == ""
    result["fields"][2, 1] = np.nan
    assert "2 wrong fields; fields[1] is" in emies().check(result, right)


@pytest.mark.nvcc
def test_program_and_peer_are_right_and_the_peer_is_fuller(tmp_path: Path, repository: Path) -> None:
    plain, peer = plain_and_peer(workload.load("emies"), repository, tmp_path)
    assert (plain.wrong, peer.wrong) == ("", "")
    assert peer.counts.warp_efficiency > 2 * plain.counts.warp_efficiency
    assert 1.8 * peer.counts.warp_instructions < plain.counts.warp_instructions


@pytest.mark.gpu
@pytest.mark.nvcc
@pytest.mark.parametrize("mode", ["off", "always"])
def test_program_prints_what_numpy_computes(tmp_path: Path, mode: str) -> None:
    program = tmp_path / "emies"
    source = workload.load("emies").source
    done = run_nvcc(["-O3", "-arch=native", str(source), "-o", str(program)], Settings(mode), capture=True)
    assert done.status == 0, done.errors
    arguments = ("4", "16", "301", "7")
    printed = subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout
    state = made(tmp_path, 4, 16, 2, 301, 7)
    assert printed == emies().summary(64, emies().reference(state)["fields"])
