"""The issue slots and warp cycles that a GPU offered while a kernel ran, from the kernel's time."""

from __future__ import annotations

from cccopt.ccc.profitability.elapsed import Elapsed
from cccopt.device.facts import DeviceFacts


def elapsed_on(device: DeviceFacts, nanoseconds: int, launches: int, warps: int) -> Elapsed:
    """What ``device`` offered in the ``nanoseconds`` of all ``launches`` of a kernel, with ``warps`` warps in total."""
    at_once = min(warps / launches, device.warps) if launches else 0.0
    return Elapsed(nanoseconds * device.slots_per_ns, nanoseconds * device.clock / 1e6 * at_once)
