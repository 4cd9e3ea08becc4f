"""The GPU runner's own logic, on a stand-in whose kernels are Python functions over copies of the arrays."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from cccopt.device.gpu import Gpu
from cccopt.diagnostic import CccError
from cccopt.harness import on_gpu
from cccopt.harness.bench import GPU, Options, measure
from cccopt.harness.workload import Array, Inputs, Launch, Sample, State, Workload, load


class Count:
    """Adds 1 to every cell until a flag that the kernel writes says that 3 is reached."""

    SIZES = ("small",)

    def inputs(self, size: str, seed: int) -> Inputs:
        return {"cells": np.zeros(4, np.int32), "done": np.zeros(1, np.int32)}

    def launches(self, state: State) -> Generator[Launch, None, None]:
        done = cast(Array, state["done"])
        while not done[0]:
            yield Launch("count", (1, 1, 1), (4, 1, 1), (state["cells"], done, np.int32(3)), host=("done",))

    def reference(self, inputs: Inputs) -> Mapping[str, Array]:
        return {"cells": np.full(4, 3, np.int32)}

    def check(self, result: Mapping[str, Any], expected: Mapping[str, Array]) -> str:
        return "" if (result["cells"] == expected["cells"]).all() else f"cells are {result['cells']}"


Kernel = Callable[[Array, Array, int], None]


def counts(cells: Array, done: Array, limit: int) -> None:
    cells += 1
    done[0] = cells[0] >= limit


def counts_and_forgets_one(cells: Array, done: Array, limit: int) -> None:
    counts(cells, done, limit)
    cells[3] = 0


@dataclass
class Loaded:
    kernels: Mapping[str, Kernel]

    def kernel(self, name: str) -> Kernel:
        return self.kernels[name]


@dataclass
class StandIn:
    """Memory apart from the host's, which the runner must copy to and from."""

    arch: str = "sm_90"
    programs: Mapping[str, Kernel] = field(
        default_factory=lambda: {"right": counts, "wrong": counts_and_forgets_one}
    )

    def load(self, ptx: str) -> Loaded:
        return Loaded({"count": self.programs[ptx]})

    def upload(self, array: Array) -> list[Array]:
        return [array.copy(), array.copy()]

    def reset(self, buffer: list[Array]) -> None:
        buffer[0][:] = buffer[1]

    def write(self, buffer: list[Array], array: Array) -> None:
        buffer[0][:] = array

    def read(self, buffer: list[Array], array: Array) -> None:
        array[:] = buffer[0]

    def launch(self, kernel: Kernel, grid: Any, block: Any, arguments: Sequence[Any]) -> float:
        cells, done, limit = arguments
        kernel(cells[0], done[0], int(limit))
        return float(cells[0][0])


@pytest.fixture(autouse=True)
def _no_ptxas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_gpu, "kernel_resources", lambda ptx, arch, launches: ())


def test_every_repeat_starts_afresh_and_a_wrong_build_measures_nothing() -> None:
    sample = Sample("count", Path("count.cu"), cast(Workload, Count()))
    inputs = sample.inputs("small", 1)
    expected = sample.workload.reference(inputs)
    builds = {"plain": "right", "ccc": "wrong"}
    right, wrong = on_gpu.run_on_gpu(cast(Gpu, StandIn()), sample, inputs, expected, builds, repeats=5)
    assert right.wrong == ""
    assert [launch.times and launch.times.milliseconds for launch in right.launches] == [
        (1.0,) * 5,
        (2.0,) * 5,
        (3.0,) * 5,
    ]
    assert wrong.wrong == "cells are [3 3 3 0]"
    assert wrong.launches == ()
    assert not cast(Array, inputs["cells"]).any()


def test_no_gpu_is_said_before_anything_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pycuda", None)
    monkeypatch.setitem(sys.modules, "pycuda.driver", None)
    with pytest.raises(CccError, match="CCC092"):
        measure(load("bfs"), Options(on=GPU))


def test_unknown_workloads_and_sizes_name_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(CccError, match=r"CCC090.*(?s:.*)`bfs`, `sensitivity`"):
        load("nothing")
    with pytest.raises(CccError, match=r"CCC091.*(?s:.*)`small`, `demo`"):
        load("bfs").inputs("huge", 1)
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "mine.cu").write_text("")
    (folder / "workload.py").write_text("SIZES = ()\ndef inputs(size, seed): return {}\n")
    with pytest.raises(CccError, match=r"does not define `launches`, `reference`, `check`"):
        load(str(folder))
