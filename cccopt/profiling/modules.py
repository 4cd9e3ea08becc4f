"""Counting kernels of modules that a Python program loads: with a `Profiling` of its own, or for `cccopt profile`.

A module that is loaded with the driver's functions registers nothing, so the agent does not know about it. The loaders
ask `current` whether to count kernels, hand out the counted copies, and say where the counts are. These are read at the
end of the ``with`` statement or of the process.

A text is compiled from a temporary file, which is gone by then. So the text is kept in the cache folder, and the counts
name that file.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from cccopt.diagnostic import CccError
from cccopt.files import encoded, require_writable, write_bytes, write_text
from cccopt.passes.counting.layout import Layout, as_bytes, of_bytes
from cccopt.passes.counting.spots import NO_FILE
from cccopt.passes.instrument import COUNTED, MODULE_HEAD
from cccopt.profiling.collecting import run_file
from cccopt.profiling.run_file import RunFile, write
from cccopt.profiling.running import COUNTS_SUFFIX, PROCESS_SUFFIX, ProgramRun, UnitCounts, counts_file
from cccopt.toolchain.cache import cache_folders, prepare
from cccopt.toolchain.instrument import COUNT_VARIABLE

Copy = Callable[[int, int], bytes]
"""Copies bytes from a device, given an address and their number, once everything running there has ended."""

_HEAD = struct.Struct("<QQQQ")


@dataclass(frozen=True, eq=False)
class LoadedCounts:
    """A module with counters: its name, its device's, where the counters and their layout are in the device's memory
    (``head``), and the ``text`` that was compiled (None: not known).
    """

    name: str
    device: str
    copy: Copy
    head: tuple[int, ...]
    text: str | None

    def counted_name(self, kernel: str) -> str:
        """The name of the kernel's counted copy, or its own if it has none."""
        counted = any(f.name == kernel and f.kernel and f.counted for f in self._layout.functions)
        return kernel + COUNTED if counted else kernel

    @cached_property
    def _layout(self) -> Layout:
        _, _, address, size = self.head
        return of_bytes(self.copy(address, size))

    def counts(self) -> UnitCounts:
        """The counts so far."""
        address, size, _, _ = self.head
        named = (file for file in self._layout.files if file != NO_FILE)
        gone = next((file for file in named if not os.path.exists(file)), None)
        kept = None if gone is None or self.text is None else _kept(self.text, os.path.basename(gone))
        files = tuple(kept if kept and file == gone else file for file in self._layout.files)
        layout = as_bytes(replace(self._layout, files=files))
        return UnitCounts(self.name, self.device, self.copy(address, size), layout)


@dataclass(eq=False)
class Profiling:
    """The modules loaded while kernels are counted; ``run`` holds the counts once counting is over."""

    modules: list[LoadedCounts] = field(default_factory=list)
    run: RunFile = field(default_factory=RunFile)

    def add(self, name: str, device: str, head: int, copy: Copy, text: str | None) -> LoadedCounts:
        """Add a loaded module, which was compiled from ``text`` (None: not known); its `MODULE_HEAD` is at the address
        ``head``.
        """
        loaded = LoadedCounts(name, device, copy, _HEAD.unpack(copy(head, _HEAD.size)), text)
        self.modules.append(loaded)
        return loaded

    def counts(self) -> tuple[UnitCounts, ...]:
        """The counts of all modules so far."""
        return tuple(module.counts() for module in self.modules)


def _kept(text: str, name: str) -> str | None:
    """Write ``text`` to a file in a cache folder and return its name; None if that is not possible."""
    for folder in cache_folders():
        file = Path(folder) / "sources" / hashlib.sha256(encoded(text)).hexdigest()[:16] / name
        try:
            prepare(folder)
            file.parent.mkdir(parents=True, exist_ok=True)
            write_text(file, text)
        except (OSError, CccError):
            continue
        return str(file)
    return None


_innermost: list[Profiling] = []


@contextmanager
def profile(output: str | os.PathLike[str] | None = None) -> Iterator[Profiling]:
    """Count the kernels of the modules that `cccopt.pycuda.SourceModule`, `cccopt.cupy_module` or `cccopt.optimize`
    load in a ``with`` block, without rewriting them.

    A `profile` around this one also counts these modules.

    Args:
        output: The file to write after the block, as `cccopt profile` does; no file if it is None.

    Returns:
        A context manager for a `Profiling`, whose ``run`` holds the counts, but no kernel times, after the block.

    Raises:
        CccError: If ``output`` cannot be written (CCC086).
    """
    if output is not None:
        require_writable(Path(output))
    around = current()
    profiling = Profiling()
    _innermost.append(profiling)
    try:
        yield profiling
        profiling.run = run_file(ProgramRun(0, 0, True, True, profiling.counts()), None)
    finally:
        _innermost.remove(profiling)
        if around is not None:
            around.modules += profiling.modules
    if output is not None:
        write(Path(output), profiling.run)


def current() -> Profiling | None:
    """The current `Profiling`: of the innermost `profile`, or of `cccopt profile` around the process. None if nothing
    is counted, or if `cccopt profile` takes times.
    """
    asked = os.environ.get(COUNT_VARIABLE)
    if asked == "0":
        return None
    if not _innermost and asked == "1" and "CCC_PROFILE_DIR" in os.environ:
        _innermost.append(Profiling())
        folder = Path(os.environ["CCC_PROFILE_DIR"])
        _say(folder, "unit", "cuda")
        atexit.register(_leave, _innermost[0], folder, os.getpid())
    return _innermost[-1] if _innermost else None


def as_written(mode: str) -> str:
    """The ``mode`` of a module, but ``off`` if `cccopt profile` takes the times of kernels as they are written."""
    return "off" if os.environ.get(COUNT_VARIABLE) == "0" else mode


def _leave(profiling: Profiling, folder: Path, process: int) -> None:
    """Write the counts where `cccopt profile` finds them, at the end of the process that made them."""
    if os.getpid() != process:
        return
    try:
        counts = profiling.counts()
    except Exception as problem:  # the libraries' own, for example if the context is gone; Python is ending
        _say(folder, "unit", "cuda", f"failed {' '.join(str(problem).split())}")
        return
    write_bytes(folder / f"{process}.python{COUNTS_SUFFIX}", counts_file(counts))
    _say(folder, "unit", "cuda", "end")


def _say(folder: Path, *words: str) -> None:
    """Write what the agent would note about this process."""
    write_text(folder / f"{os.getpid()}.python{PROCESS_SUFFIX}", "".join(f"{word}\n" for word in words))


__all__ = ["MODULE_HEAD", "LoadedCounts", "Profiling", "as_written", "current", "profile"]
