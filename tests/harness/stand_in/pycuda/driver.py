"""As much of `pycuda.driver` as the harness uses: kernels run on the emulator, a warp instruction takes a microsecond.

Where STAND_IN_LOG names a file, launches between `start_profiler` and `stop_profiler` are logged there as by
``ncu --csv --metrics $STAND_IN_METRICS``; all sectors are said to be loaded. As on a GPU, a fault ends the context.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from cccopt.diagnostic import CccError
from cccopt.emulator import Profile, Program

Array = Any


_COPIED = 1 << 22
"""Bytes that a copy from one place to another takes a millisecond for."""


class Error(Exception):
    """What the driver says."""


class _Machine:
    memory: ClassVar[dict[int, Array]] = {}
    next_address = 1 << 32
    milliseconds = 0.0
    dead = False
    profiling = False
    launches = 0


def _alive() -> None:
    if _Machine.dead:
        raise Error("cuSomething failed: the context has ended")


class DeviceAllocation:
    def __init__(self, size: int) -> None:
        self.address = _Machine.next_address
        _Machine.next_address += size + 4096
        # Fresh memory holds anything.
        _Machine.memory[self.address] = np.full(size, 0xAB, np.uint8)

    def __int__(self) -> int:
        return self.address


def mem_alloc(size: int) -> DeviceAllocation:
    _alive()
    return DeviceAllocation(size)


def _bytes(place: DeviceAllocation | int, size: int) -> Array:
    _alive()
    for base, memory in _Machine.memory.items():
        if base <= int(place) and int(place) + size <= base + len(memory):
            return memory[int(place) - base : int(place) - base + size]
    raise Error("cuMemcpy failed: invalid argument")


def memcpy_htod(target: DeviceAllocation, source: Array) -> None:
    _bytes(target, source.nbytes)[:] = source.reshape(-1).view(np.uint8)


def memcpy_dtoh(target: Array, source: DeviceAllocation) -> None:
    target.reshape(-1).view(np.uint8)[:] = _bytes(source, target.nbytes)


def memcpy_dtod(target: int, source: int, size: int) -> None:
    _bytes(target, size)[:] = _bytes(source, size)
    _Machine.milliseconds += size / _COPIED


def memset_d8(target: int, value: int, size: int) -> None:
    _bytes(target, size)[:] = value


class Event:
    def record(self) -> None:
        _alive()
        self.at = _Machine.milliseconds

    def synchronize(self) -> None:
        _alive()

    def time_since(self, other: Event) -> float:
        return self.at - other.at


class Module:
    def __init__(self, image: bytes) -> None:
        self.program = Program(image.rstrip(b"\0").decode())

    def get_function(self, name: str) -> Function:
        return Function(self.program, name)


class Function:
    def __init__(self, program: Program, name: str) -> None:
        self.program, self.name = program, name

    def __call__(self, *arguments: Any, grid: Any, block: Any) -> None:
        _alive()
        if self.name == "hold":
            # The emulator's clock counts steps: not so many.
            arguments = (np.uint64(20),)
        plain = [_Machine.memory[int(a)] if isinstance(a, DeviceAllocation) else a for a in arguments]
        try:
            profile = self.program.launch(self.name, grid, block, plain)
        except CccError as problem:
            _Machine.dead = True
            raise Error(f"cuLaunchKernel failed: {problem.diagnostics[0].message}") from problem
        _Machine.milliseconds += profile.warp_instructions / 1000
        log = os.environ.get("STAND_IN_LOG")
        if _Machine.profiling and log:
            with open(log, "a", encoding="utf-8") as file:
                file.writelines(_rows(self.name, profile))


def _rows(kernel: str, profile: Profile) -> Iterator[str]:
    if _Machine.launches == 0:
        yield "==PROF== Connected to process 1\n"
        yield '"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n'
    metrics = {
        "smsp__inst_executed.sum": ("inst", f"{profile.warp_instructions:,}"),
        "smsp__thread_inst_executed_per_inst_executed.ratio": ("", f"{32 * profile.warp_efficiency:.6f}"),
        "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio": (
            "",
            f"{32 * profile.warp_efficiency_pred_on:.6f}",
        ),
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": ("sector", f"{profile.global_transactions:,}"),
        **{
            f"l1tex__t_sectors_pipe_lsu_mem_global_op_{operation}.sum": ("sector", "0")
            for operation in ("st", "red", "atom")
        },
    }
    for name in os.environ["STAND_IN_METRICS"].split(","):
        unit, value = metrics[name]
        yield f'"{_Machine.launches}","1","{kernel}(const int *, int)","{name}","{unit}","{value}"\n'
    _Machine.launches += 1


def module_from_buffer(image: bytes) -> Module:
    _alive()
    return Module(image)


def start_profiler() -> None:
    _Machine.profiling = True


def stop_profiler() -> None:
    _Machine.profiling = False


def init() -> None:
    pass


class Device:
    def __init__(self, number: int) -> None:
        self.number = number

    def name(self) -> str:
        return "Stand-in GPU"

    def compute_capability(self) -> tuple[int, int]:
        return 9, 0

    def make_context(self) -> Context:
        return Context()


class Context:
    @staticmethod
    def synchronize() -> None:
        _alive()

    def pop(self) -> None:
        _alive()

    def detach(self) -> None:
        _alive()
