"""One NVIDIA GPU through PyCUDA: load PTX, keep arrays on it, launch and time kernels with CUDA events."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType, TracebackType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cccopt.diagnostic import CccError, error

Array: TypeAlias = NDArray[Any]
Shape: TypeAlias = "tuple[int, int, int]"


@dataclass(frozen=True, slots=True)
class Buffer:
    """An array on the GPU, with the contents that it had at first."""

    memory: Any
    pristine: Any
    nbytes: int


@dataclass(frozen=True, slots=True)
class Module:
    """Loaded PTX. Its kernels live as long as it does."""

    handle: Any

    def kernel(self, name: str) -> Kernel:
        """The kernel with this PTX name."""
        return Kernel(self.handle.get_function(name))


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel of loaded PTX."""

    function: Any


@dataclass
class Gpu:
    """A GPU with a context of its own, current from `open_gpu` until `close` (or the end of a ``with``)."""

    name: str
    arch: str
    _driver: ModuleType
    _context: Any

    def load(self, ptx: str) -> Module:
        """Compile and load a PTX text. Raises `CccError` (CCC094) where the driver does not take it."""
        try:
            return Module(self._driver.module_from_buffer(ptx.encode() + b"\0"))
        except self._driver.Error as reason:
            raise CccError(
                error(
                    "CCC094",
                    "the GPU's driver does not load the PTX",
                    why=" ".join(str(reason).split()),
                    help=f"compile for `{self.arch}` or older, with an nvcc no newer than the driver",
                )
            ) from reason

    def upload(self, array: Array) -> Buffer:
        """A buffer with the contents of ``array``, which `reset` brings back."""
        pristine = self._driver.mem_alloc(max(array.nbytes, 1))
        memory = self._driver.mem_alloc(max(array.nbytes, 1))
        buffer = Buffer(memory, pristine, array.nbytes)
        self._driver.memcpy_htod(pristine, np.ascontiguousarray(array))
        self.reset(buffer)
        return buffer

    def reset(self, buffer: Buffer) -> None:
        """Bring back what was uploaded at first."""
        self._driver.memcpy_dtod(buffer.memory, buffer.pristine, buffer.nbytes)

    def write(self, buffer: Buffer, array: Array) -> None:
        """Copy ``array`` to the GPU."""
        self._driver.memcpy_htod(buffer.memory, np.ascontiguousarray(array))

    def read(self, buffer: Buffer, array: Array) -> None:
        """Copy the buffer into ``array``, which is contiguous and of the same size."""
        self._driver.memcpy_dtoh(array, buffer.memory)

    def launch(self, kernel: Kernel, grid: Shape, block: Shape, arguments: Sequence[object]) -> float:
        """Run the kernel to its end and return its milliseconds by CUDA events.

        An argument is a buffer or a numpy scalar. Raises `CccError`: CCC095 where the launch is refused or
        the kernel ends in a fault, CCC096 for any other argument.
        """
        for position, argument in enumerate(arguments):
            if not isinstance(argument, (Buffer, np.generic)):
                raise CccError(
                    error(
                        "CCC096",
                        f"argument {position} is a `{type(argument).__name__}`, whose size is unknown",
                        why="a launch on a GPU copies the bytes of its arguments",
                        help="pass a numpy scalar of the parameter's type, such as `numpy.int32(5)`",
                    )
                )
        start, stop = self._driver.Event(), self._driver.Event()
        plain = [a.memory if isinstance(a, Buffer) else a for a in arguments]
        try:
            start.record()
            kernel.function(*plain, grid=grid, block=block)
            stop.record()
            stop.synchronize()
        except self._driver.Error as reason:
            raise CccError(
                error(
                    "CCC095",
                    "a kernel failed on the GPU",
                    why=str(reason),
                    help="run it on the emulator, which names the access and its line: `--on emulator`",
                )
            ) from reason
        return float(stop.time_since(start))

    def close(self) -> None:
        """Give the context back with all that was allocated in it."""
        self._context.pop()
        self._context.detach()

    def __enter__(self) -> Gpu:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_gpu() -> Gpu:
    """The first GPU. Raises `CccError`: CCC092 without PyCUDA, CCC093 without a usable GPU."""
    try:
        driver = importlib.import_module("pycuda.driver")
    except ImportError as reason:
        raise CccError(
            error(
                "CCC092",
                "cannot use a GPU: PyCUDA does not load",
                why=str(reason),
                help="install the extra `gpu` (`pip install cccopt[gpu]`), or measure with `--on emulator`",
            )
        ) from reason
    try:
        driver.init()
        device = driver.Device(0)
        context = device.make_context()
    except driver.Error as reason:
        raise CccError(
            error(
                "CCC093",
                "cannot use a GPU: the CUDA driver finds none",
                why=str(reason),
                help="run this on a machine with an NVIDIA GPU, or measure with `--on emulator`",
            )
        ) from reason
    major, minor = device.compute_capability()
    return Gpu(str(device.name()), f"sm_{major}{minor}", driver, context)
