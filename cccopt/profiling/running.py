"""Running a program for its counts, or for the times of its kernels: the agent inside it leaves files.

The program runs unchanged, twice: with its counted kernels, then with its plain ones, whose times are those of the
program without counters. `agent.cpp` says what the files hold.
"""

from __future__ import annotations

import os
import shutil
import signal
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from errno import EACCES, ENOENT
from pathlib import Path

from cccopt.device.facts import DeviceFacts, of_line
from cccopt.diagnostic import CccError, error
from cccopt.files import file_error
from cccopt.profiling.agent import agent
from cccopt.toolchain.discovery import find_nvcc
from cccopt.toolchain.instrument import COUNT_VARIABLE, COUNTED
from cccopt.toolchain.launch import ended

_MAGIC = b"cccprof1"
_SIZES = struct.Struct("<QQQQ")
COUNTS_SUFFIX, PROCESS_SUFFIX = ".counts", ".process"
_REASONS = {True: (EACCES, "it is not a program"), False: (ENOENT, "no such program")}


@dataclass(frozen=True, slots=True)
class UnitCounts:
    """What one unit, the file ``name`` of the program, counted on one device: its counters and their layout, as the
    agent read them.
    """

    name: str
    device: str
    counts: bytes
    layout: bytes


@dataclass(frozen=True, slots=True)
class KernelTime:
    """The launches of a kernel on one device; ``name`` is the plain name, even if they are of the ``counted`` copy.

    ``shared`` is static shared memory in bytes, ``warps`` the number of warps of all launches, ``block`` the largest x,
    y and z of their blocks, ``dynamic_shared`` the most dynamic shared memory of a launch.
    """

    name: str
    counted: bool
    launches: int
    nanoseconds: int
    registers: int
    shared: int
    warps: int
    device: str
    block: tuple[int, ...] = ()
    dynamic_shared: int = 0


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """A run of the program: its exit status as a shell shows it, and what its processes left.

    ``instrumented`` says whether a file of the program has counters, ``used_cuda`` whether CUDA was started.
    ``devices`` are those that ran kernels, if times were taken.
    ``lost`` says in sentences what is lost and why; ``untimed`` says why there are no times, if there are none;
    ``blind`` says that `cudaDeviceReset`, which destroys counts, could not be observed.
    """

    status: int
    signal: int
    instrumented: bool
    used_cuda: bool
    units: tuple[UnitCounts, ...] = ()
    times: tuple[KernelTime, ...] = ()
    devices: tuple[DeviceFacts, ...] = ()
    lost: tuple[str, ...] = ()
    untimed: str = ""
    blind: bool = False


def run_program(command: Sequence[str], folder: Path, *, counted: bool, timed: bool) -> ProgramRun:
    """Run ``command`` with the agent, whose files go into the empty ``folder``. It runs its counted kernels or, with
    its standard output discarded, its plain ones.

    Raises CccError if the program cannot be run (CCC086), and if there is no agent (CCC082, CCC110).
    """
    program = shutil.which(command[0])
    if program is None:
        exists = os.path.exists(command[0])
        raise file_error("run", command[0], OSError(*_REASONS[exists]))
    environment = environment_for(folder, counted=counted, timed=timed)
    try:
        process, code = ended(program, command[1:], environment, quiet=not counted)
    except OSError as problem:
        raise file_error("run", command[0], problem) from problem
    return left_in(folder, process, code, counted=counted)


def environment_for(folder: Path, *, counted: bool, timed: bool) -> dict[str, str]:
    """The environment in which a program and its child processes leave the agent's files in ``folder``.

    Raises CccError if there is no agent (CCC082, CCC110).
    """
    return _environment(_loadable(agent(), folder), folder, counted=counted, timed=timed)


@dataclass(frozen=True, slots=True)
class Input:
    """Standard input: if it is a file, both runs are to read it from the same position."""

    start: int | None

    @classmethod
    def of_now(cls) -> Input:
        """Standard input at its current position."""
        try:
            regular = os.path.isfile(f"/dev/fd/{sys.stdin.fileno()}")
            return cls(os.lseek(sys.stdin.fileno(), 0, os.SEEK_CUR) if regular else None)
        except (OSError, ValueError, AttributeError):
            return cls(None)

    def again(self) -> None:
        """Go back to that position."""
        if self.start is not None:
            with suppress(OSError, ValueError):
                os.lseek(sys.stdin.fileno(), self.start, os.SEEK_SET)


def _loadable(library: Path, folder: Path) -> str:
    """A path that LD_PRELOAD can hold: spaces and colons separate its paths."""
    if not set(" :") & set(str(library)):
        return str(library)
    if set(" :") & set(str(folder)):
        raise CccError(
            error(
                "CCC110",
                f"the agent in `{library}` cannot be preloaded",
                why=f"LD_PRELOAD separates paths by spaces and colons, but `{folder}` contains one",
                help="set CCCOPT_CACHE or TMPDIR to a folder without them",
            )
        )
    return str(shutil.copy(library, folder / "agent.so"))


def _environment(library: str, folder: Path, *, counted: bool, timed: bool) -> dict[str, str]:
    before = os.environ.get("LD_PRELOAD", "")
    environment = {
        **os.environ,
        "LD_PRELOAD": f"{library}:{before}" if before else library,
        "CUDA_INJECTION64_PATH": library,
        "CCC_PROFILE_DIR": str(folder),
        "CCC_PROFILE_TIME": "1" if timed else "0",
        COUNT_VARIABLE: "1" if counted else "0",
    }
    environment.setdefault("CCC_PROFILE_CUPTI", ":".join(_cupti()))
    return environment


def _cupti() -> Iterator[str]:
    """The libcupti files found in nvcc's toolkit and in packages from PyPI."""
    roots = []
    with suppress(CccError):
        roots.append(find_nvcc().root)
    roots += [Path(entry) / "nvidia" / part for entry in sys.path for part in ("cu13", "cuda_cupti")]
    for root in dict.fromkeys(roots):
        for folder in (
            "lib64",
            "extras/CUPTI/lib64",
            "lib",
            "targets/x86_64-linux/lib",
            "targets/sbsa-linux/lib",
        ):
            yield from map(str, sorted((root / folder).glob("libcupti.so.1?"), reverse=True))


# --- the agent's files ---


def left_in(folder: Path, process: int, code: int, *, counted: bool) -> ProgramRun:
    """What the processes of a program left in ``folder``; the first was ``process``, which ended with ``code``, -N for
    signal N.
    """
    units: list[UnitCounts] = []
    times: list[KernelTime] = []
    lost: list[str] = []
    untimed: list[str] = []
    said: list[Mapping[str, str]] = []
    for log in sorted(folder.glob(f"*{PROCESS_SUFFIX}")):
        here = _lines(log)
        said.append(here)
        matters = "unit" in here if counted else "cuda" in here
        number = int(log.name.partition(".")[0])
        if "cuda" in here and matters and ("end" not in here or "failed" in here):
            what = "counts" if counted else "times"
            name = f" (`{here['program']}`)" if here.get("program") else ""
            how = _how(here, number, code if number == process else None)
            lost.append(f"the {what} of process {number}{name} are lost: {how}")
        untimed += [here["untimed"]] if "untimed" in here else []
    for file in sorted(folder.glob(f"*{COUNTS_SUFFIX}")):
        units += _units(file.read_bytes())
    for file in sorted(folder.glob("*.times")):
        times += map(_time, file.read_text(errors="surrogateescape").splitlines())
    devices = {
        of_line(line): None
        for file in sorted(folder.glob("*.devices"))
        for line in file.read_text(errors="surrogateescape").splitlines()
    }
    return ProgramRun(
        code if code >= 0 else 128 - code,
        max(-code, 0),
        any("unit" in here for here in said),
        any("cuda" in here for here in said),
        tuple(units),
        tuple(times),
        tuple(devices),
        tuple(lost),
        untimed[0] if untimed else "",
        any("blind" in here for here in said),
    )


def _lines(log: Path) -> dict[str, str]:
    """What a process noted about itself: for each keyword, what follows it."""
    said: dict[str, str] = {}
    for line in log.read_text(errors="surrogateescape").splitlines():
        word, _, rest = line.partition(" ")
        said.setdefault(word, rest)
    return said


def _how(said: Mapping[str, str], number: int, code: int | None) -> str:
    """Why the counts or times of a process are missing."""
    if "failed" in said:
        return said["failed"]
    if code is not None and code < 0:
        return f"it was killed by {_signal(-code)}"
    if Path(f"/proc/{number}").exists():
        return "it is still running"
    return "it did not return from `main` or call `exit`: it was ended by a signal, an uncaught exception or `_exit`"


def _signal(number: int) -> str:
    try:
        return f"signal {number}, {signal.Signals(number).name}"
    except ValueError:
        return f"signal {number}"


def _units(data: bytes) -> Iterator[UnitCounts]:
    """The units in a file of counts, up to the first incomplete one."""
    at = len(_MAGIC)
    while data.startswith(_MAGIC) and at + _SIZES.size <= len(data):
        sizes = _SIZES.unpack_from(data, at)
        at += _SIZES.size
        parts = []
        for size in sizes:
            parts.append(data[at : at + size])
            at += size
        if at > len(data):
            return
        name, device, counts, layout = parts
        names = (name.decode("utf-8", "surrogateescape"), device.decode("utf-8", "replace"))
        yield UnitCounts(*names, counts, layout)


def counts_file(units: Iterable[UnitCounts]) -> bytes:
    """The bytes of a file of counts."""
    found = [_MAGIC]
    for unit in units:
        parts = (unit.name.encode("utf-8", "surrogateescape"), unit.device.encode(), unit.counts, unit.layout)
        found += [_SIZES.pack(*map(len, parts)), *parts]
    return b"".join(found)


def _time(line: str) -> KernelTime:
    name, *numbers, device = line.split("\t")
    plain = name.removesuffix(COUNTED)
    launches, nanoseconds, registers, shared, dynamic, warps, *block = map(int, numbers)
    return KernelTime(
        plain, plain != name, launches, nanoseconds, registers, shared, warps, device, tuple(block), dynamic
    )
