"""Becke's weights: numpy against sums point by point, the inputs against numpy's, both programs against numpy."""

from __future__ import annotations

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


def dqg() -> ModuleType:
    return cast(ModuleType, workload.load("dqg").workload)


def made(folder: Path, *size: int) -> State:
    """The inputs of ``size`` (the arguments of `grids_of`) as the kernels of the sample make them."""
    sample = workload.load("dqg")
    program = Program(ptx_of(sample.source, folder))
    state = base_state(dqg().grids_of(*size))
    for launch in sample.setup(state):
        program.launch(launch.kernel, launch.grid, launch.block, launch.arguments)
    return state


def share(point: list[float], atoms: list[list[float]]) -> float:
    """The first atom's share of one point, by Becke's formulas with the polynomial written out three times."""

    def p(mu: float) -> float:
        return (3 * mu - mu**3) / 2

    claims = [
        math.prod(
            (1 - p(p(p((math.dist(point, a) - math.dist(point, b)) / math.dist(a, b))))) / 2
            for b in atoms
            if b is not a
        )
        for a in atoms
    ]
    return claims[0] / math.fsum(claims)


def test_shares_of_a_point_are_those_of_the_formulas_and_sum_to_1() -> None:
    rng = np.random.default_rng(3)
    atoms, points = rng.uniform(-2, 2, (7, 3)), rng.uniform(-3, 3, (40, 3))
    shares = dqg().shares(points, atoms)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-14)
    first = [share(list(point), atoms.tolist()) for point in points]
    np.testing.assert_allclose(shares[:, 0], first, atol=1e-13)
    assert shares[:, 0].min() < 0.01
    assert shares[:, 0].max() > 0.5
    np.testing.assert_array_equal(
        dqg().shares(np.array([[0.0, 5, 2]]), np.array([[-1.0, 0, 0], [1, 0, 0]])), 0.5
    )


def test_reference_takes_each_points_own_list_and_leaves_the_core_out() -> None:
    atoms = np.array([[0.0, 0, 0], [2, 0, 0], [0, 2.5, 0]])
    points = np.array([[0.9, 0.3, 0.2], [0.9, 0.3, 0.2], [0.005, 0, 0], [0.007, 0, 0]])
    inputs = {"lists": atoms.T[None], "counts": np.array([[2, 3, 3, 3]], np.int32)}
    inputs |= {axis: points[None, :, k] for k, axis in enumerate("xyz")}
    weights = dqg().reference(inputs)["weights"][0]
    right = [share(list(points[0]), atoms[:count].tolist()) for count in (2, 3)]
    np.testing.assert_allclose(weights[:2], right, atol=1e-14)
    assert weights[0] != weights[1]
    assert weights[2] == 1


def uniform(key: NDArray[np.uint32], k: int) -> NDArray[np.float64]:
    hash32 = cast(ModuleType, workload.load("sensitivity").workload).hash32
    return ((hash32(key + np.uint32(k * 0x9E3779B9 & 0xFFFFFFFF)) >> np.uint32(8)) + 0.5) / 2**24


@pytest.mark.nvcc
def test_inputs_are_what_numpy_makes(tmp_path: Path) -> None:
    hash32 = cast(ModuleType, workload.load("sensitivity").workload).hash32
    state: dict[str, Any] = dict(made(tmp_path, 3, 20, 1, 2, 301, 7))
    number = np.arange(27, dtype=np.uint32)
    key = hash32(number + hash32(np.array([7], np.uint32)))
    cells = np.stack([number % 3, number // 3 % 3, number // 9], axis=1)
    molecule = cells * 3.0 + np.stack([uniform(key, k) for k in range(3)], axis=1)
    for grid, owner in enumerate((0, 13)):
        apart = np.linalg.norm(molecule - molecule[owner], axis=1)
        nearest = np.argsort(apart)[:20]
        np.testing.assert_array_equal(state["lists"][grid], molecule[nearest].T)
        points = np.stack([state[axis][grid] for axis in "xyz"], axis=1)
        r = np.linalg.norm(points - molecule[owner], axis=1)
        key = hash32(
            np.arange(301, dtype=np.uint32) + np.uint32(grid * 301) + hash32(~np.array([7], np.uint32))
        )
        reach = np.where(uniform(key, 3) < 1 / 16, 0.003 * apart[nearest[1]], apart[nearest[-1]] / 3)
        np.testing.assert_allclose(r, reach * np.max([uniform(key, k) for k in (4, 5, 6)], axis=0), rtol=1e-9)
        nearer = (apart[nearest] < 3 * r[:, None]).sum(axis=1)
        np.testing.assert_array_equal(state["counts"][grid], np.clip(nearer, 2, 20))
        assert len(np.unique(state["counts"][grid])) > 10


def test_check_finds_one_wrong_weight() -> None:
    numpy = {"weights": np.array([[0.25, 0.5], [1, 0.75]]), "error": np.array([dqg().ERROR])}
    build = {"weights": numpy["weights"]}
    result = {"weights": numpy["weights"].copy()}
    result["weights"][1, 1] += 1e-13
    assert dqg().check(result, numpy) == ""
    assert "1 wrong weights; weights[1, 1] is 0.75" in dqg().check(result, build)
    result["weights"][0, 1] += 1e-11
    assert "1 wrong weights; weights[0, 1] is 0.5" in dqg().check(result, numpy)
    result["weights"][0, 0] = np.nan
    assert "2 wrong weights; weights[0, 0] is nan" in dqg().check(result, numpy)


@pytest.mark.nvcc
def test_program_and_peer_are_right_and_the_peer_is_fuller(tmp_path: Path, repository: Path) -> None:
    plain, peer = plain_and_peer(workload.load("dqg"), repository, tmp_path)
    assert (plain.wrong, peer.wrong) == ("", "")
    assert peer.counts.warp_efficiency > 1.8 * plain.counts.warp_efficiency
    assert 1.6 * peer.counts.warp_instructions < plain.counts.warp_instructions


@pytest.mark.gpu
@pytest.mark.nvcc
@pytest.mark.parametrize("mode", ["off", "always"])
def test_program_prints_what_numpy_computes(tmp_path: Path, mode: str) -> None:
    program = tmp_path / "dqg"
    source = workload.load("dqg").source
    done = run_nvcc(["-O3", "-arch=native", str(source), "-o", str(program)], Settings(mode), capture=True)
    assert done.status == 0, done.errors
    arguments = ("3", "2", "301", "7")
    printed = subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout
    state = made(tmp_path, 3, 27, 1, 2, 301, 7)
    assert printed == dqg().summary(dqg().reference(state)["weights"])
