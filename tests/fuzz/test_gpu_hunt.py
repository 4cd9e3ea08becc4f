"""The hunt on a GPU, with the emulator in its place: jobs, the watch over them, what is dumped for other tools."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.cuda_memory import formals
from tests.fuzz.dump import Dump, packed
from tests.fuzz.gpu import Gpu, NoGpuError, chosen_backend
from tests.fuzz.gpu_jobs import Case, Image, Job
from tests.kernels.running import Launch

COUNT = formals(None).count(",") + 1
PARAMETERS = ", ".join(f".param .{'b32' if n < 3 else 'b64'} p{n}" for n in range(COUNT))
STORE = """
.visible .entry NAME(PARAMETERS) {
  .reg .b64 %rd<2>; .reg .b32 %r<2>;
  ld.param.b64 %rd1, [p5];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, VALUE;
  st.global.u32 [%rd1], %r1;
  ret;
}
"""
SPIN = """
.visible .entry NAME(PARAMETERS) {
AGAIN:
  bra.uni AGAIN;
}
"""


def image(label: str, **kernels: str) -> Image:
    text = "".join(body.replace("NAME", name) for name, body in kernels.items()).replace(
        "PARAMETERS", PARAMETERS
    )
    return Image(label, f".version 8.0\n.target sm_90\n.address_size 64\n{text}", b"cubin")


def store(value: int) -> str:
    return STORE.replace("VALUE", str(value))


def job(k1: str) -> Job:
    plain = image("plain", p0=store(7), p1=store(7), p2=store(7))
    rewritten = image("variant 0", k0=store(8), k1=k1, k2=store(7))
    launches = (Launch(1, 32, 40),)
    return Job(3, (plain, rewritten), tuple(Case(f"k{n}", f"p{n}", (1,), launches) for n in range(3)))


def test_a_difference_is_told_with_kernel_launch_and_place() -> None:
    gpu = Gpu("emulator")
    lines = list(gpu.run(job(store(7))))
    gpu.close()
    assert len(lines) == 1
    assert lines[0].startswith(
        "3 GPU WRONG: k0, variant 0, Launch(grid=1, block=32, trips=40): out[0] is 8, not 7"
    )
    assert (gpu.kernels, gpu.runs, dict(gpu.outcomes)) == (3, 6, {"WRONG": 1})


def test_a_kernel_that_hangs_ends_its_process_and_the_others_run() -> None:
    gpu = Gpu("emulator", patience=2.0, second=1.5)
    lines = list(gpu.run(job(SPIN)))
    gpu.close()
    assert [line.split(",")[0] for line in lines] == ["3 GPU WRONG: k0", "3 GPU HANG: k1"]
    assert gpu.runs == 6  # the plain one twice


def test_a_kernel_that_only_takes_long_is_not_said_to_hang() -> None:
    long = SPIN.replace("AGAIN:", ".reg .u32 %r; .reg .pred %p; mov.u32 %r, 0;\nAGAIN: add.u32 %r, %r, 1;")
    long = long.replace("bra.uni AGAIN;", "setp.lt.u32 %p, %r, 500000; @%p bra AGAIN; ret;")
    gpu = Gpu("emulator", patience=1.0, second=30)
    lines = list(gpu.run(job(long)))
    gpu.close()
    assert [line.split(",")[0] for line in lines] == ["3 GPU WRONG: k0", "3 GPU WRONG: k1"]
    assert gpu.runs == 7  # twice the plain one, and the long one at the second try


def test_a_fault_is_told_and_the_others_run() -> None:
    gpu = Gpu("emulator")
    wild = store(7).replace("st.global.u32 [%rd1]", "st.global.u32 [4]")
    lines = list(gpu.run(job(wild)))
    gpu.close()
    assert [line.split(",")[0] for line in lines] == ["3 GPU WRONG: k0", "3 GPU FAULT: k1"]
    assert gpu.runs == 6


def test_without_a_library_there_is_no_gpu() -> None:
    with pytest.raises(NoGpuError, match="no GPU through"):
        Gpu("nothing of that name").start()
    assert chosen_backend("emulator") == "emulator"


def test_arguments_are_packed_with_zeros_as_their_size() -> None:
    numbers = np.array([1, 2], np.uint32)
    expected = struct.pack("<IIIIQIIIQ", 3, 0, 5, 1, 8, 1, 2, 2, 16)
    assert packed([5, numbers, np.zeros(2, np.uint64)]) == expected


def test_a_dump_names_each_launch(tmp_path: Path) -> None:
    dump = Dump(tmp_path, 2)
    dump.add(job(store(7)))
    assert (tmp_path / "manifest.txt").read_text().splitlines() == [
        "3_1.cubin k0 1 1 1 32 1 1 3_k0_0.bin",
        "3_1.cubin k1 1 1 1 32 1 1 3_k1_0.bin",
    ]
    assert dump.left == 0
    assert (tmp_path / "3_1.cubin").read_bytes() == b"cubin"
