"""Which GPUs workers get: by a driver that the test compiles, which reads CUDA_VISIBLE_DEVICES as CUDA does."""

from __future__ import annotations

from pathlib import Path

import pytest

from cccopt.device.visible import visible, workers_on_gpus
from cccopt.workers.queue import HERE, Worker
from tests.workers.driver import make_driver


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the driver."""
    return make_driver(tmp_path_factory.mktemp("driver"))


NAMED = [
    (None, ["0", "1", "2", "3"]),
    ("2,0", ["2", "0"]),
    ("GPU-12, GPU-10", ["GPU-12", "GPU-10"]),
    ("0,GPU-10,1", ["0", "1"]),  # the same GPU by two names
    ("1,-1,2", ["1"]),
    ("MIG-20,MIG-21", ["MIG-20", "MIG-21"]),
    ("", []),
    ("NoDevFiles", []),
]


@pytest.mark.parametrize(("named", "selectors"), NAMED)
def test_gpus_are_those_that_cuda_shows(
    named: str | None, selectors: list[str], driver: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _see(monkeypatch, driver, named)
    assert [gpu.selector for gpu in visible()] == selectors


def test_without_a_driver_no_gpu_is_visible(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "libcuda.so.1").write_text("no library")
    _see(monkeypatch, tmp_path, None)
    assert visible() == ()


ASKED = [
    ("0,1,2", 2, (Worker("0"), Worker("1")), ""),
    ("0,1", 4, (Worker("0"), Worker("1")), "note: workers: 2, not 4: 2 GPUs are visible, and"),
    ("1", 4, HERE, "note: workers: 1, not 4: 1 GPU is visible, and timed runs never share a GPU"),
    ("1,1", 2, HERE, "note: workers: 1, not 2: 1 GPU is visible, and"),
    ("", 2, HERE, "note: workers: 1, not 2: no GPU is visible, and"),
    ("1", 1, HERE, ""),
    (
        "0,3,1",
        3,
        (Worker("0"), Worker("1")),
        "note: workers: 2, not 3: of 3 visible GPUs, 2 have the name `Large GPU`, and",
    ),
]


@pytest.mark.parametrize(("named", "asked", "workers", "said"), ASKED)
def test_no_two_workers_share_a_gpu(
    named: str,
    asked: int,
    workers: tuple[Worker, ...],
    said: str,
    driver: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _see(monkeypatch, driver, named)
    found, fewer = workers_on_gpus(asked)
    assert found == workers
    assert fewer.startswith(said)
    assert bool(fewer) is bool(said)


def _see(monkeypatch: pytest.MonkeyPatch, driver: Path, named: str | None) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(driver))
    if named is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
