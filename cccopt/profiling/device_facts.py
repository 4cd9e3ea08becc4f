"""What the driver says of a GPU that ran kernels, as far as times depend on it."""

from __future__ import annotations

from dataclasses import dataclass

SCHEDULERS = 4
"""Schedulers of a multiprocessor, from compute capability 7.0 on: each issues one instruction of a warp in a clock
(CUDA C++ Programming Guide, compute capabilities).
"""


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """Attributes of a device (CUDA driver API, `CUdevice_attribute`): its ``processors`` (multiprocessors), clocks in
    kHz, the width of its memory's bus in bits, bytes of the second-level cache; and of a multiprocessor the most
    threads, bytes of shared memory, 32-bit registers and blocks.
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
        """Instructions of warps that it can issue in a nanosecond."""
        return self.processors * SCHEDULERS * self.clock / 1e6

    @property
    def warps(self) -> int:
        """The most warps that it holds at once."""
        return self.processors * self.threads // 32


def of_line(line: str) -> DeviceFacts:
    """A line of the agent. Raises ValueError for anything else."""
    name, *numbers = line.split("\t")
    if len(numbers) != len(DeviceFacts.__slots__) - 1:
        raise ValueError(f"`{line}` is no line of a device")
    return DeviceFacts(name, *map(int, numbers))
