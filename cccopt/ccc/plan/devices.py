"""The largest device of each architecture, which limits what a launch may run at once."""

from __future__ import annotations

from dataclasses import dataclass

from cccopt.ptx.constants import WARP_SIZE
from cccopt.ptx.ir import Directive, Module


@dataclass(frozen=True, slots=True)
class Device:
    """What runs at once: ``processors`` (multiprocessors) of ``threads`` each, in at most ``blocks`` blocks."""

    processors: int
    threads: int
    blocks: int


DEVICES = {
    75: Device(72, 1024, 16),
    80: Device(108, 2048, 32),
    86: Device(84, 1536, 16),
    87: Device(16, 1536, 16),
    89: Device(142, 1536, 24),
    90: Device(132, 2048, 32),
    100: Device(148, 2048, 32),
    103: Device(160, 2048, 32),
    110: Device(20, 1536, 24),
    120: Device(188, 1536, 24),
    121: Device(48, 1536, 24),
}
"""The largest part of each architecture (NVIDIA's data sheets; CUDA C++ Programming Guide, compute capabilities)."""

UNKNOWN_DEVICE = Device(188, 2048, 32)
"""For any other architecture: as large as any. Blocks that are too many for the device just run later."""


def target_of(module: Module) -> str:
    """The target that the module names, for example ``sm_90``."""
    found = (i.arguments[0] for i in module.items if isinstance(i, Directive) and i.name == ".target")
    return next(found, "")


def warps_at_once(module: Module, threads: int, resident: int | None) -> int:
    """The warps of ``resident`` blocks of ``threads`` threads; if ``resident`` is None, as many as the target's largest
    device holds.
    """
    if resident is not None:
        return resident * -(-threads // WARP_SIZE)
    device = device_of(module) or UNKNOWN_DEVICE
    return device.processors * device.threads // WARP_SIZE


def device_of(module: Module) -> Device | None:
    """The largest device of the module's target, None if that is not known."""
    number = target_of(module).removeprefix("sm_").rstrip("af")
    return DEVICES.get(int(number)) if number.isdecimal() else None
