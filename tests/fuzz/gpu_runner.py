"""Runs jobs on a GPU: `python -m tests.fuzz.gpu_runner BACKEND`, which `tests.fuzz.gpu` starts and watches.

Jobs come as pickles on standard input. Answers go to standard output: a `Ready`, then for each job a `Begun` before
each run, a `Ran` after it, and None when the job is over. What hangs or faults ends this process and not the hunt.
"""

from __future__ import annotations

import importlib
import os
import pickle
import sys
from collections.abc import Sequence
from typing import Any, BinaryIO, Protocol

import numpy as np

from cccopt.emulator import Program
from tests.fuzz.cuda_memory import arguments
from tests.fuzz.gpu_jobs import Begun, Image, Job, Ran, Ready, three
from tests.fuzz.trial import differences
from tests.kernels.running import Arguments, Launch

BACKENDS = ("cupy", "pycuda", "emulator")
"""The last one runs PTX on the CPU: a stand-in, so that all but the GPU can be tested without one."""

STACK = 8192
"""Bytes of stack a thread: functions that call themselves need more than the driver's default."""


class Backend(Protocol):
    """How to run code on some device."""

    def describe(self) -> tuple[str, str]:
        """The device and its architecture (``sm_90``)."""

    def load(self, image: Image) -> Any:
        """Code made ready."""

    def run(self, module: Any, kernel: str, launch: Launch, given: Arguments) -> list[bytes]:
        """The bytes of all buffers behind a launch, which is waited for."""


def scalar(position: int, value: int) -> np.generic:
    """A number as the parameter at ``position`` has it."""
    return np.uint32(value) if position == 2 else np.int32(value)


class _Cupy:
    def __init__(self) -> None:
        self._cupy = importlib.import_module("cupy")
        self._cupy.cuda.runtime.getDeviceCount()
        self._cupy.cuda.runtime.deviceSetLimit(0, STACK)  # 0: cudaLimitStackSize

    def describe(self) -> tuple[str, str]:
        device = self._cupy.cuda.Device(0)
        name = self._cupy.cuda.runtime.getDeviceProperties(0)["name"]
        return name.decode() if isinstance(name, bytes) else str(name), f"sm_{device.compute_capability}"

    def load(self, image: Image) -> Any:
        module = self._cupy.cuda.function.Module()
        module.load(image.cubin)
        return module

    def run(self, module: Any, kernel: str, launch: Launch, given: Arguments) -> list[bytes]:
        own = [
            self._cupy.asarray(a) if isinstance(a, np.ndarray) else scalar(place, a)
            for place, a in enumerate(given)
        ]
        module.get_function(kernel)(three(launch.grid), three(launch.block), tuple(own))
        self._cupy.cuda.runtime.deviceSynchronize()
        return [a.get().tobytes() for a in own if not isinstance(a, np.generic)]


class _PyCuda:
    def __init__(self) -> None:
        self._driver = importlib.import_module("pycuda.driver")
        self._driver.init()
        self._device = self._driver.Device(0)
        self._context = self._device.make_context()
        self._context.set_limit(self._driver.limit.STACK_SIZE, STACK)

    def describe(self) -> tuple[str, str]:
        major, minor = self._device.compute_capability()
        return str(self._device.name()), f"sm_{major}{minor}"

    def load(self, image: Image) -> Any:
        return self._driver.module_from_buffer(image.cubin)

    def run(self, module: Any, kernel: str, launch: Launch, given: Arguments) -> list[bytes]:
        own = [
            self._driver.to_device(a) if isinstance(a, np.ndarray) else scalar(place, a)
            for place, a in enumerate(given)
        ]
        module.get_function(kernel)(*own, grid=three(launch.grid), block=three(launch.block))
        self._context.synchronize()
        found = []
        for memory, array in zip(own, given, strict=True):
            if isinstance(array, np.ndarray):
                host = np.empty_like(array)
                self._driver.memcpy_dtoh(host, memory)
                found.append(host.tobytes())
        return found


class _Emulator:
    def describe(self) -> tuple[str, str]:
        return "the emulator, in place of a GPU", "sm_90"

    def load(self, image: Image) -> Any:
        return Program(image.ptx)

    def run(self, module: Any, kernel: str, launch: Launch, given: Arguments) -> list[bytes]:
        own = [a.copy() if isinstance(a, np.ndarray) else a for a in given]
        # A kernel that hangs is ended from outside, as on a GPU.
        module.launch(kernel, launch.grid, launch.block, own, hazards=False, max_steps=sys.maxsize)
        return [a.tobytes() for a in own if isinstance(a, np.ndarray)]


def backend(name: str) -> Backend:
    """The backend ``name``. Raises whatever the library does where it, a driver or a GPU is missing."""
    return {"cupy": _Cupy, "pycuda": _PyCuda, "emulator": _Emulator}[name]()


def serve(device: Backend, job: Job, send: Any) -> bool:
    """Runs a job; False when the device is of no more use."""
    modules = [device.load(image) for image in job.images]
    for case in job.cases:
        for launch in case.launches:
            given = arguments(launch)
            expected: Sequence[bytes] = ()
            for place in (0, *case.images):
                name = case.kernel if place else case.plain
                send(Begun(name, job.images[place].label, launch))
                try:
                    got = device.run(modules[place], name, launch, given)
                except Exception as problem:  # the libraries' own errors: a fault leaves no usable context
                    send(Ran(f"{type(problem).__name__}: {problem}"[:300], fault=True))
                    return False
                if not place:
                    expected = got
                send(Ran(differences(expected, got) if place else ""))
    send(None)
    return True


def main() -> int:
    # Libraries may print: what they say must not come between the answers.
    answers: BinaryIO = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def send(answer: object) -> None:
        pickle.dump(answer, answers)
        answers.flush()

    try:
        device = backend(sys.argv[1])
        send(Ready(*device.describe()))
    except Exception as problem:  # no library, no driver, no GPU: the parent says so
        send(Ready(problem=f"{type(problem).__name__}: {problem}"[:300]))
        return 1
    while True:
        try:
            job = pickle.load(sys.stdin.buffer)
        except EOFError:
            return 0
        if not serve(device, job, send):
            return 1


if __name__ == "__main__":
    sys.exit(main())
