"""The inverse error function: the reference against a series in 60 digits, both programs against the reference."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from decimal import Decimal, localcontext
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np
import pytest

from cccopt.emulator import Program
from cccopt.harness import workload
from cccopt.harness.choices import BuildName
from cccopt.harness.on_emulator import run_on_emulator
from cccopt.toolchain.invoke import run_nvcc
from cccopt.toolchain.settings import Settings
from tests.samples.peers import ptx_of

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494")


def iefa() -> ModuleType:
    return cast(ModuleType, workload.load("iefa").workload)


def root_error(y: float, x: float) -> Decimal:
    """How far ``y`` is from the inverse error function of ``x``, relative to it: one Newton step in 60 digits."""
    with localcontext() as context:
        context.prec = 60
        square, power, total = Decimal(y) ** 2, Decimal(y), Decimal(y)
        for k in range(1, 400):
            power *= -square / k
            total += power / (2 * k + 1)
        scale = 2 / PI.sqrt()
        return (scale * total - Decimal(x)) / (scale * (-square).exp()) / Decimal(y)


def test_reference_is_the_root_to_the_last_bits() -> None:
    edges = [1e-10, 0.1, 0.4999, 0.5, 0.9, 0.99903, 0.99904, 0.9999999, 0.99999994, 1 - 2.0**-53]
    x = np.array([*edges, *iefa().values(40, 1, False), *iefa().values(40, 1, True)])
    y = iefa().erfinv(x)
    assert max(abs(root_error(float(b), float(a))) for a, b in zip(x, y, strict=True)) < 6e-16
    np.testing.assert_array_equal(iefa().erfinv(-x), -y)


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Mapping[str, str]:
    folder = tmp_path_factory.mktemp("iefa")
    peer = repository / "bench" / "handwritten" / "iefa.cu"
    return {
        BuildName.PLAIN: ptx_of(workload.load("iefa").source, folder),
        BuildName.HANDWRITTEN: ptx_of(peer, folder),
    }


def filled(ptx: str, n: int, seed: int) -> Mapping[str, Any]:
    state = {"values": n, "grid": 1, "seed": seed, "x uniform": np.zeros(n), "x equal": np.zeros(n)}
    program = Program(ptx)
    for launch in iefa().setup(state):
        program.launch(launch.kernel, launch.grid, launch.block, launch.arguments)
    return state


@pytest.mark.nvcc
def test_device_and_numpy_make_the_same_numbers(builds: Mapping[str, str]) -> None:
    for seed in (1, 7):
        state = filled(builds[BuildName.PLAIN], 1000, seed)
        np.testing.assert_array_equal(state["x uniform"], iefa().values(1000, seed, False))
        # exp may differ in its last bit, 1 - exp(-w) then as well.
        np.testing.assert_allclose(state["x equal"], iefa().values(1000, seed, True), rtol=0, atol=3e-16)
    w = -np.log((1 - state["x equal"]) * (1 + state["x equal"]))
    counts = np.histogram(w, [0, 6.25, 16, np.inf])[0]
    assert counts.min() > 280


@pytest.mark.nvcc
def test_program_and_peer_are_right_and_the_peer_is_fuller(builds: Mapping[str, str]) -> None:
    sample = workload.load("iefa")
    plain, peer = run_on_emulator(sample.instance("small", 1), builds)
    assert (plain.wrong, peer.wrong) == ("", "")
    before, after = (build.launches[1].counts for build in (plain, peer))
    assert plain.launches[1].label == "equal"
    assert after.warp_efficiency > before.warp_efficiency + 0.3
    assert after.warp_instructions < 0.95 * before.warp_instructions


@pytest.mark.nvcc
def test_program_and_peer_agree_in_every_bit(builds: Mapping[str, str]) -> None:
    sample = workload.load("iefa")
    plain, peer = run_on_emulator(workload.Instance(sample, sample.inputs("small", 5), workload.FULL), builds)
    assert (plain.wrong, peer.wrong) == ("", "")


def test_check_tells_wrong_results() -> None:
    x = {f"x {name}": np.array([0.1, 0.5, 0.9]) for name in iefa().DISTRIBUTIONS}
    expected = iefa().reference(x)
    result = {f"y {name}": iefa().erfinv(x[f"x {name}"]) for name in iefa().DISTRIBUTIONS}
    assert iefa().check(result, expected) == ""
    result["y equal"][1] *= 1 + 3e-15
    assert "1 wrong results, equal; y[1] is" in iefa().check(result, expected)
    result["y equal"][1] = np.nan
    assert "1 wrong results, equal; y[1] is" in iefa().check(result, expected)
    # Another build's are known by their digests.
    digests = {f"digest {name}": np.array([7], np.uint64) for name in iefa().DISTRIBUTIONS}
    assert iefa().check(digests, digests) == ""
    other = {**digests, "digest equal": np.array([255], np.uint64)}
    assert iefa().check(other, digests) == "wrong results, equal: their digest is 0xff, not 0x7"


@pytest.mark.nvcc
def test_the_digest_tells_a_bit_and_an_exchange(builds: Mapping[str, str]) -> None:
    program = Program(builds[BuildName.PLAIN])

    def digest(y: np.ndarray[Any, Any], grid: int = 1) -> int:
        total = np.zeros(1, np.uint64)
        program.launch("digest", (grid, 1, 1), (256, 1, 1), (np.uint32(y.size), y, total))
        return int(total[0])

    y = np.linspace(-2.0, 2.0, 999)
    bit, exchanged = y.copy(), y.copy()
    bit[998] = np.nextafter(bit[998], 3.0)
    exchanged[[3, 500]] = exchanged[[500, 3]]
    assert digest(y) == digest(y, grid=3)
    assert len({digest(one) for one in (y, bit, exchanged, y[:-1].copy())}) == 4


@pytest.mark.gpu
@pytest.mark.nvcc
@pytest.mark.parametrize("mode", ["off", "always"])
def test_program_prints_what_numpy_computes(tmp_path: Path, mode: str) -> None:
    program = tmp_path / "iefa"
    source = workload.load("iefa").source
    done = run_nvcc(["-O3", "-arch=native", str(source), "-o", str(program)], Settings(mode), capture=True)
    assert done.status == 0, done.errors
    printed = subprocess.run([program, "20001", "3"], check=True, capture_output=True, text=True).stdout
    results = {name: iefa().erfinv(iefa().values(20001, 3, name == "equal")) for name in iefa().DISTRIBUTIONS}
    for found, right in zip(printed.splitlines(), iefa().summary(20001, results).splitlines(), strict=True):
        assert found.split()[:3] == right.split()[:3]
        # The numbers near 1 are those of numpy but for the last bit of exp.
        figures = [[float(words[k]) for k in (4, 6)] for words in (found.split(), right.split())]
        assert figures[0] == pytest.approx(figures[1], rel=1e-5)
