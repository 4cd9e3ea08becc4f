"""Opening a GPU: what is said where there is none, and a copy kernel where there is one."""

from __future__ import annotations

import sys
from typing import Any, cast

import numpy as np
import pytest

from cccopt.device.gpu import HELD, HOLD, Buffer, Gpu, Kernel, open_gpu
from cccopt.diagnostic import CccError
from cccopt.emulator import Program

COPY = """
.version 7.0
.target sm_75
.address_size 64
.visible .entry copy(.param .u64 to, .param .u64 from, .param .u32 count)
{
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<6>;
  mov.u32 %r1, %tid.x;
  ld.param.u32 %r2, [count];
  setp.ge.u32 %p1, %r1, %r2;
  @%p1 bra DONE;
  ld.param.u64 %rd1, [to];
  ld.param.u64 %rd2, [from];
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.u32 %r3, [%rd5];
  st.global.u32 [%rd4], %r3;
DONE:
  ret;
}
"""


def test_no_pycuda_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pycuda", None)
    monkeypatch.setitem(sys.modules, "pycuda.driver", None)
    with pytest.raises(CccError) as caught:
        open_gpu()
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "CCC092"
    assert "PyCUDA" in diagnostic.message
    assert "--on emulator" in diagnostic.help


class Queue:
    """A driver that writes down what it is given to do."""

    Error = OSError

    def __init__(self) -> None:
        self.calls: list[str] = []

    def module_from_buffer(self, image: bytes) -> Queue:
        self.calls.append("load")
        assert image == HOLD.encode() + b"\0"
        return self

    def get_function(self, name: str) -> Any:
        return lambda *arguments, grid, block: self.calls.append(
            f"{name}({', '.join(map(str, arguments))}) on {grid} x {block}"
        )

    def Event(self) -> Queue:
        return self

    def record(self) -> None:
        self.calls.append("event")

    def synchronize(self) -> None:
        self.calls.append("wait")

    def time_since(self, other: Queue) -> float:
        return 0.5

    def memcpy_dtod(self, target: int, source: int, size: int) -> None:
        self.calls.append("copy")

    def start_profiler(self) -> None:
        self.calls.append("profile")

    def stop_profiler(self) -> None:
        self.calls.append("profiled")


@pytest.fixture
def queue() -> Queue:
    return Queue()


@pytest.fixture
def watched(queue: Queue) -> Gpu:
    return Gpu("none", "sm_90", cast(Any, queue), None)


ONE = (1, 1, 1)
HELD_BY = f"hold({HELD}) on {ONE} x {ONE}"


def test_the_gpu_is_kept_busy_while_what_is_timed_is_queued(queue: Queue, watched: Gpu) -> None:
    kernel = Kernel(queue.get_function("work"))
    timed = ["event", f"work(5) on (7, 1, 1) x {ONE}", "event", "wait"]
    for loads in (["load"], []):
        assert watched.launch(kernel, (7, 1, 1), ONE, [np.int32(5)]) == 0.5
        assert queue.calls == [*loads, HELD_BY, *timed]
        queue.calls.clear()
    buffer = Buffer(1 << 20, 64)
    assert watched.copy(buffer, buffer) == 0.5
    assert queue.calls == [HELD_BY, "event", "copy", "event", "wait"]


def test_a_profiler_sees_what_is_timed_alone(queue: Queue, watched: Gpu) -> None:
    kernel = Kernel(queue.get_function("work"))
    with watched.profile():
        watched.launch(kernel, ONE, ONE, [])
    assert queue.calls == ["profile", "event", f"work() on {ONE} x {ONE}", "event", "wait", "profiled"]
    watched.launch(kernel, ONE, ONE, [])
    assert HELD_BY in queue.calls


def test_what_keeps_the_gpu_busy_ends() -> None:
    steps = [Program(HOLD).launch("hold", 1, 1, [np.uint64(ns)]).steps for ns in (10, 100)]
    # The emulator's clock counts steps.
    assert 10 <= steps[0] <= 15
    assert steps[1] - steps[0] == 90


@pytest.mark.gpu
def test_launch_runs_times_and_a_snapshot_brings_contents_back() -> None:
    source = np.arange(32, dtype=np.uint32)
    target = np.zeros(32, np.uint32)
    with open_gpu() as gpu:
        kernel = gpu.load(COPY).kernel("copy")
        buffers = [gpu.zeros(target.nbytes), gpu.upload(source)]
        before = gpu.snapshot(buffers[0])
        assert gpu.launch(kernel, (1, 1, 1), (32, 1, 1), [*buffers, np.uint32(20)]) > 0
        gpu.read(buffers[0], target)
        np.testing.assert_array_equal(target, np.where(source < 20, source, 0))
        gpu.restore(buffers[0], before)
        gpu.read(buffers[0], target)
        assert not target.any()
        # A kernel of a few instructions: what Python takes would be ten times as much.
        again = [gpu.launch(kernel, (1, 1, 1), (32, 1, 1), [*buffers, np.uint32(20)]) for _ in range(9)]
        assert min(again) < 0.02
        with gpu.profile():
            assert gpu.launch(kernel, (1, 1, 1), (32, 1, 1), [*buffers, np.uint32(20)]) > 0
        with pytest.raises(CccError, match="CCC096"):
            gpu.launch(kernel, (1, 1, 1), (32, 1, 1), [*buffers, 20])


@pytest.mark.gpu
def test_ptx_that_the_driver_refuses_is_an_error() -> None:
    with open_gpu() as gpu, pytest.raises(CccError, match="CCC094"):
        gpu.load(COPY.replace("ld.global", "ld.nowhere"))
