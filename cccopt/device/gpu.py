"""One NVIDIA GPU through PyCUDA: load PTX or cubins, keep arrays on it, launch and time kernels with CUDA events."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import ModuleType, TracebackType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cccopt.diagnostic import CccError, error

Array: TypeAlias = NDArray[Any]
Shape: TypeAlias = "tuple[int, int, int]"


_PIECE = 1 << 30
"""PyCUDA takes the sizes of fills and copies on the GPU as 32-bit numbers."""

HELD = 150_000
"""How long the GPU is kept busy while what is to be timed is queued, in nanoseconds: Python takes 50,000 to 60,000."""

HOLD = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry hold(.param .u64 nanoseconds)
{
  .reg .pred %done;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [nanoseconds];
  mov.u64 %rd2, %globaltimer;
AGAIN:
  mov.u64 %rd3, %globaltimer;
  sub.u64 %rd4, %rd3, %rd2;
  setp.ge.u64 %done, %rd4, %rd1;
  @!%done bra AGAIN;
  ret;
}
"""
"""A kernel that only takes time."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory on the GPU."""

    memory: Any
    nbytes: int


@dataclass(frozen=True, slots=True)
class LoadedModule:
    """Loaded code. Its kernels live as long as it does."""

    handle: Any

    def kernel(self, name: str) -> Kernel:
        """The kernel with this PTX name."""
        return Kernel(self.handle.get_function(name))


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel of loaded code."""

    function: Any


@dataclass
class Gpu:
    """A GPU with a context of its own, current from `open_gpu` until `close` (or the end of a ``with``)."""

    name: str
    arch: str
    _driver: ModuleType
    _context: Any
    _hold: Kernel | None = field(default=None, init=False)
    _profiled: bool = field(default=False, init=False)

    def load(self, code: str | bytes) -> LoadedModule:
        """Load PTX or a cubin. Raises `CccError` (CCC094) if the driver does not accept it."""
        image = code.encode() + b"\0" if isinstance(code, str) else code
        try:
            return LoadedModule(self._driver.module_from_buffer(image))
        except self._driver.Error as reason:
            raise CccError(
                error(
                    "CCC094",
                    "the GPU driver cannot load the code",
                    why=" ".join(str(reason).split()),
                    help=f"compile for `{self.arch}` or older, with an nvcc no newer than the driver",
                )
            ) from reason

    def zeros(self, nbytes: int) -> Buffer:
        """A buffer of zeros. Raises `CccError` (CCC095) if the GPU has too little memory left."""
        buffer = self._allocate(nbytes)
        for start, size in _pieces(nbytes):
            self._driver.memset_d8(int(buffer.memory) + start, 0, size)
        return buffer

    def upload(self, array: Array) -> Buffer:
        """A buffer with the contents of ``array``. Raises `CccError` as `zeros` does."""
        buffer = self._allocate(array.nbytes)
        self.write(buffer, array)
        return buffer

    def snapshot(self, buffer: Buffer) -> Buffer:
        """A copy of ``buffer`` on the GPU, for `restore`. Raises `CccError` as `zeros` does."""
        copy = self._allocate(buffer.nbytes)
        self.restore(copy, buffer)
        return copy

    def restore(self, buffer: Buffer, snapshot: Buffer) -> None:
        """Give ``buffer`` the contents of ``snapshot``. Raises `CccError` as `read` does."""
        with self._failing():
            self._restore(buffer, snapshot)

    def _restore(self, buffer: Buffer, snapshot: Buffer) -> None:
        for start, size in _pieces(buffer.nbytes):
            self._driver.memcpy_dtod(int(buffer.memory) + start, int(snapshot.memory) + start, size)

    def copy(self, target: Buffer, source: Buffer) -> float:
        """Copy on the GPU itself and return the milliseconds, timed like those of `launch`."""
        return self._timed(lambda: self._restore(target, source))

    def _allocate(self, nbytes: int) -> Buffer:
        try:
            return Buffer(self._driver.mem_alloc(max(nbytes, 1)), nbytes)
        except self._driver.Error as reason:
            raise CccError(
                error(
                    "CCC095",
                    f"the GPU does not have {nbytes:,} bytes left",
                    why=" ".join(str(reason).split()),
                    help="choose a smaller `--size`",
                )
            ) from reason

    def write(self, buffer: Buffer, array: Array) -> None:
        """Copy ``array`` to the GPU. Raises `CccError` as `read` does."""
        if array.nbytes:
            with self._failing():
                self._driver.memcpy_htod(buffer.memory, np.ascontiguousarray(array))

    def read(self, buffer: Buffer, array: Array) -> None:
        """Copy the buffer into ``array``, which must be contiguous and of the same size, after all earlier work has
        ended. Raises `CccError` (CCC095) if that ended in a fault.
        """
        if array.nbytes:
            with self._failing():
                self._driver.memcpy_dtoh(array, buffer.memory)

    def launch(self, kernel: Kernel, grid: Shape, block: Shape, arguments: Sequence[object]) -> float:
        """Run the kernel to its end and return its milliseconds, measured with CUDA events.

        They cover only the GPU's work. On an idle GPU, the first event would end at once, and the time that Python then
        takes to launch the kernel would count as the kernel's. So another kernel, which is not timed, keeps the GPU
        busy for `HELD` nanoseconds while the events and the launch between them are queued. In a `profile` there is no
        such kernel, because the profiler would count it.

        Raises `CccError` as `start` does.
        """
        queued = self._queueing(kernel, grid, block, arguments)
        with self._failing():
            return self._timed(queued)

    def start(self, kernel: Kernel, grid: Shape, block: Shape, arguments: Sequence[object]) -> None:
        """Let the kernel run after all earlier work, and do not wait for its end.

        An argument is a buffer or a numpy scalar. Raises `CccError`: CCC095 if the launch is refused or a kernel has
        ended in a fault, CCC096 for any other argument.
        """
        queued = self._queueing(kernel, grid, block, arguments)
        with self._failing():
            queued()

    def synchronize(self) -> None:
        """Wait until all earlier work has ended. Raises `CccError` (CCC095) if it ends in a fault."""
        with self._failing():
            self._driver.Context.synchronize()

    @staticmethod
    def _queueing(
        kernel: Kernel, grid: Shape, block: Shape, arguments: Sequence[object]
    ) -> Callable[[], object]:
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
        plain = [a.memory if isinstance(a, Buffer) else a for a in arguments]
        return lambda: kernel.function(*plain, grid=grid, block=block)

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        """A ``with`` in which an error of the driver becomes a `CccError` (CCC095)."""
        try:
            yield
        except self._driver.Error as reason:
            raise CccError(
                error(
                    "CCC095",
                    "a kernel failed on the GPU",
                    why=str(reason),
                    help="run it on the emulator, which names the access and its line: `--on emulator`",
                )
            ) from reason

    def _timed(self, queue: Callable[[], object]) -> float:
        """The milliseconds that the GPU takes for the work that ``queue`` gives it."""
        start, stop = self._driver.Event(), self._driver.Event()
        if not self._profiled:
            if self._hold is None:
                self._hold = self.load(HOLD).kernel("hold")
            self._hold.function(np.uint64(HELD), grid=(1, 1, 1), block=(1, 1, 1))
        start.record()
        queue()
        stop.record()
        stop.synchronize()
        return float(stop.time_since(start))

    @contextlib.contextmanager
    def profile(self) -> Iterator[None]:
        """A ``with`` in which a profiler that waits for a request, such as Nsight Compute, profiles launches."""
        self._tell("start_profiler", "cuProfilerStart")
        self._profiled = True
        try:
            yield
        finally:
            self._profiled = False
            self._tell("stop_profiler", "cuProfilerStop")

    def _tell(self, wrapped: str, plain: str) -> None:
        # Not every build of PyCUDA wraps these two.
        function = getattr(self._driver, wrapped, None) or getattr(ctypes.CDLL("libcuda.so.1"), plain)
        function()

    def close(self) -> None:
        """Release the context with all that was allocated in it."""
        # A context that a fault has ended cannot be released.
        with contextlib.suppress(self._driver.Error):
            self._context.pop()
            self._context.detach()

    def __enter__(self) -> Gpu:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _pieces(nbytes: int) -> Iterator[tuple[int, int]]:
    """(start, size) of stretches that PyCUDA can fill or copy at once."""
    return ((start, min(_PIECE, nbytes - start)) for start in range(0, nbytes, _PIECE))


def open_gpu() -> Gpu:
    """The first GPU. Raises `CccError`: CCC092 without PyCUDA, CCC093 without a usable GPU."""
    try:
        driver = importlib.import_module("pycuda.driver")
    except ImportError as reason:
        raise CccError(
            error(
                "CCC092",
                "cannot use a GPU: PyCUDA cannot be loaded",
                why=str(reason),
                help="install the extra `gpu` (`pip install 'cccopt[gpu]'`), or measure with `--on emulator`",
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
                "cannot use a GPU: the CUDA driver does not find one",
                why=str(reason),
                help="run this on a machine with an NVIDIA GPU, or measure with `--on emulator`",
            )
        ) from reason
    major, minor = device.compute_capability()
    return Gpu(str(device.name()), f"sm_{major}{minor}", driver, context)
