"""Opening a GPU: what is said where there is none, and a copy kernel where there is one."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from cccopt.device.gpu import open_gpu
from cccopt.diagnostic import CccError

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
        with gpu.profile():
            assert gpu.launch(kernel, (1, 1, 1), (32, 1, 1), [*buffers, np.uint32(20)]) > 0
        with pytest.raises(CccError, match="CCC096"):
            gpu.launch(kernel, (1, 1, 1), (32, 1, 1), [*buffers, 20])


@pytest.mark.gpu
def test_ptx_that_the_driver_refuses_is_an_error() -> None:
    with open_gpu() as gpu, pytest.raises(CccError, match="CCC094"):
        gpu.load(COPY.replace("ld.global", "ld.nowhere"))
