"""The script that times ccc-nvcc against nvcc, on compilers that take a known time."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.toolchain.conftest import script


@pytest.fixture
def bench(repository: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """``bench/wrapper_overhead.py`` as a module, in an empty folder."""
    spec = importlib.util.spec_from_file_location(
        "wrapper_overhead", repository / "bench" / "wrapper_overhead.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    monkeypatch.chdir(tmp_path)
    spec.loader.exec_module(module)
    return module


def compilers(folder: Path, runs: str, seconds: float = 0.0) -> tuple[str, str]:
    """An nvcc, and a ccc-nvcc that takes ``seconds`` more and reports the device compiler's ``runs``."""
    report = f'[ "$2" = --ccc-report=report.json ] && echo \'{{"units": [{{"device_compiler_seconds": {runs}}}]}}\''
    slow = script(folder / "ccc-nvcc", f"sleep {seconds}; {report} >report.json; exit 0")
    return str(script(folder / "nvcc", ":")), str(slow)


def case(bench: ModuleType, **fields: object) -> object:
    return bench.Case(
        "a case", lambda compiler, options: [compiler, *options, "x.cu"], ("--ccc=always",), **fields
    )


def test_the_second_run_is_not_counted(bench: ModuleType, tmp_path: Path) -> None:
    nvcc, ours = compilers(tmp_path, "[0.5, 0.15]", seconds=0.3)
    times = bench._measure(case(bench, seconds=0.5, runs=2), nvcc, ours, 2)
    assert times.second_run == 0.15
    assert times.cost == pytest.approx(0.3 - 0.15, abs=0.1)


def test_a_case_that_does_not_show_what_it_claims_is_an_error(bench: ModuleType, tmp_path: Path) -> None:
    nvcc, ours = compilers(tmp_path, "[0.5]")
    with pytest.raises(SystemExit, match="cicc ran 1 times, not 2"):
        bench._measure(case(bench, runs=2), nvcc, ours, 2)


def test_a_compiler_that_fails_ends_the_work(bench: ModuleType, tmp_path: Path) -> None:
    nvcc, _ = compilers(tmp_path, "[]")
    with pytest.raises(SystemExit, match="exit status 7\nsaid"):
        bench._measure(case(bench), nvcc, str(script(tmp_path / "bad", "echo said; exit 7")), 2)


@pytest.mark.parametrize(
    ("bar", "more", "said"),
    [
        ({"share": 0.05}, 0.04, []),
        ({"share": 0.05}, 0.06, ["a case costs 6.0% of nvcc's time, more than 5%"]),
        ({"seconds": 0.5}, 0.4, []),
        ({"seconds": 0.5}, 0.6, ["a case costs 0.60 s, more than 0.5 s"]),
        ({}, 9.0, []),
    ],
)
def test_missed_bars_are_told(bench: ModuleType, bar: dict[str, float], more: float, said: list[str]) -> None:
    # One pair that was disturbed does not count.
    times = bench.PairTimes((1.0, 1.0, 3.0), (more, more, 7.0), (0.0, 0.0, 0.0), 0.0)
    assert list(bench._missed(case(bench, **bar), times)) == said
