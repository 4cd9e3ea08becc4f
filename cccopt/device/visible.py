"""Which GPUs a program may use, and workers for them.

The CUDA driver decides that, in a process of its own, so what it starts stays out of this one. CUDA_VISIBLE_DEVICES may
hold numbers, UUIDs or prefixes of them, and MIG devices. CUDA shows a process at most one MIG device, so each name in
the variable is tried alone.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from cccopt.device.facts import DRIVER, each_device
from cccopt.workers import apart
from cccopt.workers.queue import HERE, VISIBLE, Worker

_SECONDS = 60.0
"""How many seconds the driver may take to start."""


@dataclass(frozen=True, slots=True)
class VisibleGpu:
    """A GPU: its ``name``, its ``uuid`` in hexadecimal digits, and the ``selector`` with which CUDA_VISIBLE_DEVICES
    names only this one.
    """

    selector: str
    uuid: str
    name: str


def visible() -> tuple[VisibleGpu, ...]:
    """The GPUs that a program started here may use, in CUDA's order, each once; none without a driver."""
    named = os.environ.get(VISIBLE)
    if named is None:
        return tuple(VisibleGpu(str(number), *gpu) for number, gpu in enumerate(_seen_with({})))
    selectors = [name.strip() for name in named.split(",")]
    found: dict[str, VisibleGpu] = {}
    with ThreadPoolExecutor(len(selectors)) as pool:
        alone = pool.map(lambda selector: _seen_with({VISIBLE: selector}), selectors)
        for selector, seen in zip(selectors, alone, strict=True):
            if len(seen) != 1:
                break  # CUDA ignores what follows an invalid name
            ((uuid, name),) = seen
            found.setdefault(uuid, VisibleGpu(selector, uuid, name))
    return tuple(found.values())


def workers_on_gpus(asked: int) -> tuple[tuple[Worker, ...], str]:
    """Up to ``asked`` workers with a GPU each, and a line that says why there are fewer, if there are.

    All GPUs have the same name as the first one, because the measurements go into one table.
    """
    if asked == 1:
        return HERE, ""
    gpus = visible()
    alike = [gpu for gpu in gpus if gpu.name == gpus[0].name]
    workers = tuple(Worker(gpu.selector) for gpu in alike[:asked])
    fewer = _why_fewer(asked, gpus, alike) if len(workers) < asked else ""
    return (workers if len(workers) > 1 else HERE), fewer


def _why_fewer(asked: int, gpus: Sequence[VisibleGpu], alike: Sequence[VisibleGpu]) -> str:
    seen = "no GPU is visible" if not gpus else "1 GPU is visible" if len(gpus) == 1 else ""
    if not seen and len(alike) == len(gpus):
        seen = f"{len(gpus)} GPUs are visible"
    same = "only the first has" if len(alike) == 1 else f"{len(alike)} have"
    seen = seen or f"of {len(gpus)} visible GPUs, {same} the name `{gpus[0].name}`"
    return f"note: workers: {max(len(alike), 1)}, not {asked}: {seen}, and timed runs never share a GPU"


def _seen_with(variables: dict[str, str]) -> tuple[tuple[str, str], ...]:
    try:
        return apart.call(_seen, DRIVER, seconds=_SECONDS, variables=variables)
    except apart.Failed:
        return ()


def _seen(began: apart.Began, driver: str) -> tuple[tuple[str, str], ...]:
    """The UUID and the name of each GPU that the driver shows this process."""
    return each_device(driver, _described)


def _described(cuda: ctypes.CDLL, number: int) -> tuple[str, str]:
    device, name, uuid = ctypes.c_int(), ctypes.create_string_buffer(256), (ctypes.c_ubyte * 16)()
    cuda.cuDeviceGet(ctypes.byref(device), number)
    cuda.cuDeviceGetName(name, len(name), device)
    # The first version of this function gives the GPU's UUID for each of its MIG devices.
    cuda.cuDeviceGetUuid_v2(ctypes.byref(uuid), device)
    return bytes(uuid).hex(), name.value.decode(errors="replace")
