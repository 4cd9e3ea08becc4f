"""``cccopt doctor``: report what is installed, what is missing, and what to do about it."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from cccopt.cli.common import console
from cccopt.device import facts
from cccopt.device.gpu import open_gpu
from cccopt.diagnostic import CccError
from cccopt.driver import compile
from cccopt.toolchain.discovery import candidates, find_nvcc
from cccopt.toolchain.shadow import shadow_toolkit
from cccopt.version import __version__

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_TRIAL = """\
extern "C" __global__ void trial(int n, int* x) {
  for (int i = threadIdx.x; i < n; i += 32) x[i] += 1;
}
"""


@dataclass(frozen=True, slots=True)
class InstalledPart:
    """One line of the answer; ``problem`` is empty if all is well. Without a ``needed`` part, the command fails."""

    name: str
    found: str
    problem: str = ""
    cure: str = ""
    needed: bool = True


def add_parser(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "doctor", help="report what is installed and what is missing", description=__doc__
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the parts; exit status 1 when something that every command needs is missing."""
    parts = list(examine())
    table = Table("", "part", "found", "what to do", box=None, padding=(0, 2, 0, 0))
    for part in parts:
        mark = "ok" if not part.problem else "MISSING" if part.needed else "absent"
        found = part.problem if part.problem else part.found
        table.add_row(*map(Text, (mark, part.name, found, part.cure)))
    console().print(table)
    return 1 if any(part.problem and part.needed for part in parts) else 0


def examine() -> Iterator[InstalledPart]:
    """What this machine has, in the order in which a compilation needs it."""
    yield InstalledPart("cccopt", f"{__version__} on Python {sys.version.split()[0]} ({sys.executable})")
    packages = [
        f"{name} {importlib.metadata.version(name)}" for name in ("lark", "networkx", "numpy", "rich")
    ]
    yield InstalledPart("packages", ", ".join(packages))
    yield _host_compiler()
    yield from _nvcc()
    yield _gpu()
    yield from map(_device, facts.devices())
    profiler = shutil.which("ncu")
    yield InstalledPart(
        "Nsight Compute",
        profiler or "",
        "" if profiler else "no ncu on PATH",
        ""
        if profiler
        else "install Nsight Compute if you want hardware counters; the emulator counts without it",
        needed=False,
    )


def _host_compiler() -> InstalledPart:
    name = os.environ.get("NVCC_CCBIN") or "g++"
    found = shutil.which(name)
    if found is None:
        return InstalledPart(
            "host compiler", "", f"no `{name}`", "install g++: nvcc uses it to preprocess and link"
        )
    return InstalledPart("host compiler", found)


def _nvcc() -> Iterator[InstalledPart]:
    for candidate in candidates():
        if candidate.problem:
            place = f"{candidate.path} ({candidate.origin})"
            yield InstalledPart("nvcc, passed over", "", f"{place}: {candidate.problem}", needed=False)
    try:
        nvcc = find_nvcc()
        yield InstalledPart("nvcc", f"{nvcc.version} at {nvcc.path} ({nvcc.origin})")
        yield InstalledPart("cache", str(shadow_toolkit(nvcc).parent.parent))
        yield InstalledPart("a trial compilation", _trial())
    except CccError as problem:
        (diagnostic, *_) = problem.diagnostics
        words = ": ".join(part for part in (diagnostic.message, diagnostic.why) if part)
        yield InstalledPart("nvcc", "", words, diagnostic.help)


def _trial() -> str:
    with tempfile.TemporaryDirectory(prefix="cccopt-") as folder:
        source = Path(folder) / "trial.cu"
        source.write_text(_TRIAL)
        lines = len(compile(source).ptx.splitlines())
    return f"{lines} lines of PTX for sm_90"


def _gpu() -> InstalledPart:
    try:
        with open_gpu() as gpu:
            return InstalledPart("GPU", f"{gpu.name} ({gpu.arch})", needed=False)
    except CccError as problem:
        (diagnostic,) = problem.diagnostics
        return InstalledPart("GPU", "", diagnostic.message, diagnostic.help, needed=False)


def _device(device: facts.DeviceFacts) -> InstalledPart:
    """What predictions of times depend on; the driver may not report all of it."""
    parts = (
        (device.processors, f"{device.processors} multiprocessors"),
        (device.clock, f"{device.clock / 1e6:.2f} GHz"),
        (device.threads, f"{device.threads} threads per multiprocessor"),
        (device.registers, f"{device.registers} registers"),
        (device.shared, f"{device.shared // 1024} KiB shared memory"),
        (device.cache, f"{device.cache / 2**20:.0f} MiB L2 cache"),
        (device.memory_clock and device.bus, f"{device.bytes_per_ns:,.0f} GB/s to memory"),
    )
    return InstalledPart("device", f"{device.name}: {', '.join(text for known, text in parts if known)}")
