"""What the CUDA driver says about a GPU, as far as the times of kernels depend on it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

SCHEDULERS = 4
"""Warp schedulers of a multiprocessor, from compute capability 7.0 onwards: each issues one warp instruction per clock
(CUDA C++ Programming Guide, compute capabilities).
"""


ATTRIBUTES = (16, 13, 36, 37, 38, 39, 81, 82, 106)
"""The attributes of `DeviceFacts` after its name, by their numbers in `CUdevice_attribute`. The profiling agent has the
same list.
"""

DRIVER = "libcuda.so.1"


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """Attributes of a device (CUDA driver API, `CUdevice_attribute`): its ``processors`` (multiprocessors), clocks in
    kHz, the width of its memory bus in bits, and the bytes of its L2 cache. The others are the most threads, bytes of
    shared memory, 32-bit registers and blocks per multiprocessor. 0 for what the driver does not report.
    """

    name: str
    processors: int
    clock: int
    memory_clock: int
    bus: int
    cache: int
    threads: int
    shared: int
    registers: int
    blocks: int

    @property
    def slots_per_ns(self) -> float:
        """The warp instructions that it can issue per nanosecond."""
        return self.processors * SCHEDULERS * self.clock / 1e6

    @property
    def bytes_per_ns(self) -> float:
        """The most bytes that its memory delivers per nanosecond: two transfers per clock, each as wide as the bus."""
        return 2 * self.memory_clock * self.bus / 8 / 1e6

    @property
    def warps(self) -> int:
        """The most warps that it holds at once."""
        return self.processors * self.threads // 32


def of_line(line: str) -> DeviceFacts:
    """The facts in a line of the agent. Raises ValueError for anything else."""
    name, *numbers = line.split("\t")
    if len(numbers) != len(DeviceFacts.__slots__) - 1:
        raise ValueError(f"`{line}` is not the line of a device")
    return DeviceFacts(name, *map(int, numbers))


def devices(driver: str = DRIVER) -> tuple[DeviceFacts, ...]:
    """The GPUs of this machine, as the CUDA ``driver`` (a shared library) describes them; none without it, or if it
    does not start. It needs no PyCUDA and makes no context.
    """
    return tuple(facts for facts in each_device(driver, _facts) if facts is not None)


def each_device(driver: str, of: Callable[[ctypes.CDLL, int], T]) -> tuple[T, ...]:
    """The results of ``of`` for the CUDA driver and the number of each GPU; none without the driver, or if it does not
    start.
    """
    count = ctypes.c_int()
    try:
        cuda = ctypes.CDLL(driver)
        if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)):
            return ()
    except (OSError, AttributeError):  # no such library, or another one of this name
        return ()
    return tuple(of(cuda, number) for number in range(count.value))


def _facts(cuda: ctypes.CDLL, number: int) -> DeviceFacts | None:
    device, name, value = ctypes.c_int(), ctypes.create_string_buffer(256), ctypes.c_int()
    if cuda.cuDeviceGet(ctypes.byref(device), number) or cuda.cuDeviceGetName(name, len(name), device):
        return None
    numbers = []
    for attribute in ATTRIBUTES:
        failed = cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        numbers.append(0 if failed else value.value)
    return DeviceFacts(name.value.decode(errors="replace"), *numbers)
