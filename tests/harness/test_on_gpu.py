"""The GPU runner's own logic, on a stand-in whose kernels are Python functions over copies of the arrays."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from cccopt.device.gpu import Gpu
from cccopt.diagnostic import CccError, error
from cccopt.harness import on_gpu
from cccopt.harness.bench import MeasureOptions, measure
from cccopt.harness.choices import Platform
from cccopt.harness.workload import FULL, Array, Inputs, Launch, Sample, State, Workload, Zeros, load

SHAPE = ((1, 1, 1), (4, 1, 1))


class Count:
    """``setup`` draws limits; a launch adds 1 to each cell below its limit until a flag says that all are there.

    ``missing`` is counted by a launch of its own that is not timed.
    """

    SIZES = ("small", FULL)
    RESULTS = ("cells", "done", "missing")

    def __init__(self) -> None:
        self.referred: list[Array] = []

    def inputs(self, size: str, seed: int) -> Inputs:
        return {
            "base": np.array([1, 2, 3, 2], np.int32),
            "limits": Zeros(4, np.int32),
            "cells": Zeros((4,), np.int32),
            "done": np.zeros(1, np.int32),
            "missing": Zeros(1, np.int32),
        }

    def setup(self, state: State) -> Generator[Launch, None, None]:
        yield Launch("draw", *SHAPE, (state["base"], state["limits"]))

    def launches(self, state: State) -> Generator[Launch, None, None]:
        done = cast(Array, state["done"])
        for _ in range(9):
            if done[0]:
                break
            yield Launch("count", *SHAPE, (state["limits"], state["cells"], done), host=("done",))
        yield Launch("miss", *SHAPE, (state["limits"], state["cells"], state["missing"]), timed=False)

    def reference(self, inputs: Mapping[str, Any]) -> Mapping[str, Array]:
        self.referred.append(inputs["limits"].copy())
        return {"cells": inputs["limits"] + 0}

    def check(self, result: Mapping[str, Any], expected: Mapping[str, Array]) -> str:
        assert set(result) == {"base", *self.RESULTS}
        if result["missing"][0]:
            return f"{result['missing'][0]} are missing"
        return "" if (result["cells"] == expected["cells"]).all() else f"cells are {result['cells']}"


Kernel = Callable[..., None]


def draw(base: Array, limits: Array) -> None:
    limits[:] = 2 * base


def count(limits: Array, cells: Array, done: Array) -> None:
    cells += cells < limits
    done[0] = (cells == limits).all()


def count_too_far(limits: Array, cells: Array, done: Array) -> None:
    count(limits, cells, done)
    if done[0]:
        cells[3] += 1


def forget_all(limits: Array, cells: Array, done: Array) -> None:
    done[0] = True


def fault(limits: Array, cells: Array, done: Array) -> None:
    raise CccError(error("CCC095", "a kernel failed on the GPU"))


def miss(limits: Array, cells: Array, missing: Array) -> None:
    missing[0] = (cells < limits).sum()


_STEPS = cycle([1, 1, 1, 1, 1, 1, 6])


def count_in_a_hurry(limits: Array, cells: Array, done: Array) -> None:
    """In every second run all at once: runs take six launches and one by turns."""
    cells[:] = np.minimum(limits, cells + next(_STEPS))
    done[0] = (cells == limits).all()


PROGRAMS: Mapping[str, Mapping[str, Kernel]] = {
    "plain": {"draw": draw, "count": count, "miss": miss},
    "right": {"count": count},
    "too far": {"count": count_too_far},
    "forgets": {"count": forget_all},
    "faults": {"count": fault},
    "hurries": {"count": count_in_a_hurry},
}


@dataclass
class Loaded:
    kernels: Mapping[str, Kernel]

    def kernel(self, name: str) -> Kernel:
        return self.kernels[name]


@dataclass
class StandIn:
    """Memory apart from the host's, which the runner must copy to and from, and which it should leave alone."""

    arch: str = "sm_90"
    moved: list[str] = field(default_factory=list)

    def load(self, code: str) -> Loaded:
        return Loaded(PROGRAMS[code])

    def zeros(self, nbytes: int) -> Array:
        return np.zeros(nbytes, np.uint8)

    def upload(self, array: Array) -> Array:
        self.moved.append(f"upload {array.nbytes}")
        return array.view(np.uint8).copy()

    def snapshot(self, buffer: Array) -> Array:
        return buffer.copy()

    def restore(self, buffer: Array, snapshot: Array) -> None:
        buffer[:] = snapshot

    def write(self, buffer: Array, array: Array) -> None:
        buffer[:] = array.view(np.uint8)

    def read(self, buffer: Array, array: Array) -> None:
        self.moved.append(f"download {array.nbytes}")
        array[:] = buffer.view(array.dtype)

    def profile(self) -> AbstractContextManager[None]:
        self.moved.append("profile")
        return nullcontext()

    def launch(self, kernel: Kernel, grid: Any, block: Any, arguments: Sequence[Any]) -> float:
        buffers = [buffer.view(np.int32) for buffer in arguments]
        kernel(*buffers)
        return float(buffers[1][0])


def run(size: str, *names: str, gpu: StandIn | None = None) -> tuple[Count, tuple[Any, ...]]:
    workload = Count()
    sample = Sample("count", Path("count.cu"), cast(Workload, workload))
    builds = {"plain": "plain", **{name: name for name in names}}
    stand_in = cast(Gpu, gpu if gpu is not None else StandIn())
    return workload, on_gpu.run_on_gpu(stand_in, sample.instance(size, 1), builds)


def times(result: Any) -> list[tuple[float, ...]]:
    return [launch.times.milliseconds for launch in result.launches]


@pytest.mark.parametrize("size", ["small", FULL])
def test_every_repeat_starts_from_what_setup_left_and_a_wrong_build_measures_nothing(size: str) -> None:
    workload, (plain, right, far, forgets) = run(size, "right", "too far", "forgets")
    # Six launches until the largest limit is reached; what cell 0 then holds is the stand-in's time.
    expected = [(t,) * on_gpu.REPEATS for t in (1.0, 2.0, 2.0, 2.0, 2.0, 2.0)]
    assert times(plain) == times(right) == expected
    assert (plain.wrong, right.wrong) == ("", "")
    assert far.wrong == "cells are [2 4 6 5]"
    assert forgets.wrong == "4 are missing"
    assert far.launches == forgets.launches == ()
    # At full size nobody asks the reference; elsewhere it sees what setup made.
    assert [list(limits) for limits in workload.referred] == ([[2, 4, 6, 4]] if size == "small" else [])


def test_results_are_downloaded_twice_and_zeros_are_never_uploaded() -> None:
    gpu = StandIn()
    run(FULL, "right", gpu=gpu)
    assert [moved for moved in gpu.moved if moved.startswith("upload")] == ["upload 16", "upload 4"]
    # Two builds, after the first warm-up and the last repeat; `done` also once a launch.
    assert gpu.moved.count("download 16") == 2 * 2
    assert gpu.moved.count("download 4") == 2 * (2 * 2) + 2 * 6 * (on_gpu.WARM_UPS + on_gpu.REPEATS)


# Three arrays for the reference; two checks of each build that is right, one of the other.
@pytest.mark.parametrize(("size", "downloads"), [("small", 3 + 2 + 2 + 1), (FULL, 0)])
def test_scratch_is_restored_and_not_downloaded_where_it_is_large(
    size: str, downloads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Count, "RESULTS", ("done", "missing"))
    monkeypatch.setattr(Count, "SCRATCH", ("cells",), raising=False)
    monkeypatch.setattr(Count, "check", lambda self, result, expected: str(result["missing"][0] or ""))
    gpu = StandIn()
    _, (plain, right, forgets) = run(size, "right", "forgets", gpu=gpu)
    # Were they not restored, the second repeat would find all there and time one launch.
    assert times(plain) == times(right) == [(t,) * on_gpu.REPEATS for t in (1.0, 2.0, 2.0, 2.0, 2.0, 2.0)]
    assert forgets.wrong == "4"
    assert gpu.moved.count("download 16") == downloads


def test_a_build_whose_repeats_are_long_takes_none_from_others(monkeypatch: pytest.MonkeyPatch) -> None:
    found = cycle([on_gpu.REPEATS, 3])
    monkeypatch.setattr(on_gpu, "repeats_for", lambda seconds: next(found))
    gpu = StandIn()
    _, results = run(FULL, "right", gpu=gpu)
    assert [{len(repeats) for repeats in times(result)} for result in results] == [{on_gpu.REPEATS}, {3}]
    # Each is checked after its first warm-up and after its own last repeat.
    assert gpu.moved.count("download 16") == 2 * 2


def test_launches_may_vary_where_the_workload_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    _, (plain, hurries) = run(FULL, "hurries")
    assert (plain.wrong, hurries.wrong) == ("", "the number of launches differs between repeats")
    monkeypatch.setattr(Count, "LAUNCHES_VARY", True, raising=False)
    _, (plain, hurries) = run(FULL, "hurries")
    assert (plain.wrong, hurries.wrong) == ("", "")
    assert plain.times.milliseconds == (11.0,) * on_gpu.REPEATS
    assert set(hurries.times.milliseconds) == {11.0, 2.0}
    assert {launch.times for launch in (*plain.launches, *hurries.launches)} == {None}


def test_a_workload_may_have_a_reference_at_full_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Count, "FULL_REFERENCE", True, raising=False)
    workload, (plain, far) = run(FULL, "too far")
    assert [list(limits) for limits in workload.referred] == [[2, 4, 6, 4]]
    assert (plain.wrong, far.wrong) == ("", "cells are [2 4 6 5]")


def test_a_fault_names_its_build() -> None:
    with pytest.raises(on_gpu.BuildFailure, match="CCC095") as caught:
        run(FULL, "right", "faults")
    assert caught.value.build == "faults"


@pytest.mark.parametrize(
    ("seconds", "repeats"),
    [(0.001, 11), (0.38, 11), (0.42, 9), (0.5, 9), (0.6, 6), (1.0, 3), (60.0, 3)],
)
def test_long_repeats_are_fewer(seconds: float, repeats: int) -> None:
    assert on_gpu.repeats_for(seconds) == repeats


def test_no_gpu_is_said_before_anything_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pycuda", None)
    monkeypatch.setitem(sys.modules, "pycuda.driver", None)
    with pytest.raises(CccError, match="CCC092"):
        measure(load("bfs"), MeasureOptions(on=Platform.GPU))


def test_unknown_workloads_and_sizes_name_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(CccError, match=r"CCC090.*(?s:.*)`bfs`.*`sensitivity`"):
        load("nothing")
    with pytest.raises(CccError, match=r"CCC091.*(?s:.*)`small`, `demo`"):
        load("bfs").inputs("huge", 1)
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "mine.cu").write_text("")
    (folder / "workload.py").write_text("SIZES = ()\ndef inputs(size, seed): return {}\n")
    with pytest.raises(CccError, match=r"does not define `launches`, `reference`, `check`"):
        load(str(folder))
