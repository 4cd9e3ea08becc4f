"""Counted kernels of modules that a Python program loads: by a `Profiling` of its own, or for `cccopt profile`.

A module that is loaded by the driver's functions registers nothing, so the agent knows nothing of it. The loaders ask
`current` whether kernels are to be counted, hand out the counted copies, and tell where the counts lie. These are read
at the end, of the ``with`` statement or of the process.
"""

from __future__ import annotations

import atexit
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cccopt.files import write_bytes, write_text
from cccopt.passes.counting.layout import of_bytes
from cccopt.passes.instrument import COUNTED, MODULE_HEAD
from cccopt.profiling.collecting import run_file
from cccopt.profiling.run_file import RunFile, write
from cccopt.profiling.running import COUNTS_SUFFIX, PROCESS_SUFFIX, ProgramRun, UnitCounts, counts_file
from cccopt.toolchain.instrument import COUNT_VARIABLE

Copy = Callable[[int, int], bytes]
"""Copies bytes from a device, of an address and a number, once all that runs there has ended."""

_HEAD = struct.Struct("<QQQQ")


@dataclass(frozen=True)
class LoadedCounts:
    """A module with counters: its name, its device's, where they and their layout are in the device's memory."""

    name: str
    device: str
    copy: Copy
    head: tuple[int, ...]

    def counted_name(self, kernel: str) -> str:
        """The name of the kernel's counted copy, or its own if it has none."""
        layout = of_bytes(self.layout())
        counted = any(f.name == kernel and f.kernel and f.counted for f in layout.functions)
        return kernel + COUNTED if counted else kernel

    def layout(self) -> bytes:
        """What the counters count, as text."""
        _, _, address, size = self.head
        return self.copy(address, size)

    def counts(self) -> UnitCounts:
        """The counts by now."""
        address, size, _, _ = self.head
        return UnitCounts(self.name, self.device, self.copy(address, size), self.layout())


@dataclass
class Profiling:
    """What is loaded while kernels are counted; ``run`` is what they did, once that is over."""

    modules: list[LoadedCounts] = field(default_factory=list)
    run: RunFile = field(default_factory=RunFile)

    def add(self, name: str, device: str, head: int, copy: Copy) -> LoadedCounts:
        """A module that was loaded, whose `MODULE_HEAD` is at the address ``head``."""
        loaded = LoadedCounts(name, device, copy, _HEAD.unpack(copy(head, _HEAD.size)))
        self.modules.append(loaded)
        return loaded

    def counts(self) -> tuple[UnitCounts, ...]:
        """The counts of all modules by now."""
        return tuple(module.counts() for module in self.modules)


_innermost: list[Profiling] = []


@contextmanager
def profile(output: str | os.PathLike[str] | None = None) -> Iterator[Profiling]:
    """Count the kernels of the modules that are loaded meanwhile, by `cccopt.pycuda.SourceModule` or
    `cccopt.cupy_module`, without rewriting them.

    What comes of the ``with`` has the result as its ``run`` behind it; with ``output`` it is written to that file, as
    `cccopt profile` does. Times of kernels are not in it.
    """
    profiling = Profiling()
    _innermost.append(profiling)
    try:
        yield profiling
        profiling.run = run_file(ProgramRun(0, 0, True, True, profiling.counts()), None)
    finally:
        _innermost.remove(profiling)
    if output is not None:
        write(Path(output), profiling.run)


def current() -> Profiling | None:
    """What counts at present: the innermost `profile`, or `cccopt profile` around the process."""
    if not _innermost and os.environ.get(COUNT_VARIABLE) == "1" and "CCC_PROFILE_DIR" in os.environ:
        _innermost.append(Profiling())
        atexit.register(_leave, _innermost[0], Path(os.environ["CCC_PROFILE_DIR"]))
    return _innermost[-1] if _innermost else None


def as_written() -> bool:
    """Whether kernels are to run as they are written, for they are counted or their times are taken."""
    return current() is not None or COUNT_VARIABLE in os.environ


def _leave(profiling: Profiling, folder: Path) -> None:
    """Leaves the counts where `cccopt profile` finds them."""
    name = f"{os.getpid()}.python"
    write_bytes(folder / f"{name}{COUNTS_SUFFIX}", counts_file(profiling.counts()))
    write_text(folder / f"{name}{PROCESS_SUFFIX}", "unit\ncuda\nend\n")


__all__ = ["MODULE_HEAD", "LoadedCounts", "Profiling", "as_written", "current", "profile"]
