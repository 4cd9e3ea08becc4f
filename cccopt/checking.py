"""Tests the promise of independence on real inputs: does the order of a marked loop's iterations show in memory?

The emulator runs the *original* program, PTX with the markers of annotations before any rewrite, and records what each
iteration does to memory (`cccopt.emulator.record`). `cccopt.emulator.judging` says what is a conflict and what a benign
meeting. A check holds for the inputs that it saw and no others.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from cccopt.ccc.regions.iterations import boundaries, vouched
from cccopt.diagnostic import CccError, Diagnostic, error
from cccopt.emulator import Program
from cccopt.emulator.iterations import Event, EventKind
from cccopt.emulator.meetings import Meeting, Touch, meetings
from cccopt.emulator.record import Record
from cccopt.ptx.ir import Function
from cccopt.ptx.lines import SourceLine, source_chains
from cccopt.text import Place, Position, SourceText

CONFLICT, NOTHING = "CCC102", "CCC103"


@dataclass(frozen=True, slots=True)
class CheckedLoop:
    """A marked loop: the words of its pragma, and its place in the source."""

    pragma: str
    place: Place | None


@dataclass(frozen=True, slots=True)
class Iteration:
    """One iteration of a marked loop in one thread.

    ``number`` counts from 0 since the thread entered the loop, which it had entered ``entry`` times before.
    """

    loop: CheckedLoop
    number: int
    entry: int


@dataclass(frozen=True, slots=True)
class CheckedAccess:
    """What an iteration does. ``action`` is ``load``, ``store`` or an atomic operation, ``thread`` is like
    ``thread (5, 0, 0) of block (0, 0, 0)``, and ``iterations`` go from the outermost marked loop inwards. ``value`` is
    in decimal, for an atomic its operand.
    """

    place: Place
    action: str
    thread: str
    iterations: tuple[Iteration, ...]
    value: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Two lines at which iterations of one loop access the same memory.

    ``conflict`` says whether the order of iterations matters there, ``kind`` how they meet. ``where`` is the memory of
    an example in words (``element 17 of argument 2``). ``first`` and ``second`` are what two iterations did to it, in
    that order, in launch ``launch`` (counted from 1, named ``label``) of ``kernel``. They meet at ``places`` places in
    ``launches`` launches.
    """

    conflict: bool
    kind: str
    kernel: str
    loop: CheckedLoop
    where: str
    first: CheckedAccess
    second: CheckedAccess
    launch: int
    label: str
    places: int
    launches: int = 1

    def diagnostic(self) -> Diagnostic:
        """A conflict as an error that names both lines."""
        what = "inner iterations" if self.loop.pragma == "for variable" else "iterations"
        label = f" ({self.label})" if self.label else ""
        times = f"{counted(self.places, 'location')} in {counted(self.launches, 'launch', 'es')}"
        return error(
            CONFLICT,
            f"the result depends on the order of {what} of a marked loop: {self.kind} (in `{self.kernel}`)",
            self.loop.place,
            why=f"both access {self.where} in launch {self.launch}{label}; these lines conflict at {times}",
            help=_HELP[self.loop.pragma],
            notes=tuple((_said(access), access.place) for access in (self.first, self.second)),
        )


_HELP = {
    "for": "give each iteration memory of its own (index it by the iteration, or keep it in variables of the body), "
    "use one commutative atomic for all updates, or remove the pragma",
    "for variable": "mark the loop `while`, whose inner iterations keep their order, or give each inner"
    " iteration memory of its own",
    "grid": "give each thread memory of its own, use one commutative atomic for all updates, "
    "or remove the pragma",
}


def counted(number: int, what: str, plural: str = "s") -> str:
    """``1 place``, ``2,000 places``."""
    return f"{number:,} {what}{plural * (number != 1)}"


def _said(access: CheckedAccess) -> str:
    doing = {"load": f"loads {access.value}", "store": f"stores {access.value}"}
    done = doing.get(access.action, f"performs an atomic `{access.action}` of {access.value}")
    if access.action.startswith("atomic "):
        done = f"performs an {access.action} of {access.value}"
    return f"{_numbered(access.iterations)}{access.thread} {done}"


def _numbered(iterations: Sequence[Iteration]) -> str:
    """``inner iteration 3 of iteration 5 of``; a thread of a `grid` is its only iteration."""
    words = []
    for depth, iteration in enumerate(iterations):
        if iteration.loop.pragma != "grid":
            again = f" (entry {iteration.entry} of the loop)" if iteration.entry and depth == 0 else ""
            words.append(f"{'inner ' if depth else ''}iteration {iteration.number}{again} of ")
    return "".join(reversed(words))


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check found: conflicts first, findings at more places before others; how many ``launches`` there were, and
    how many ``iterations`` of marked loops ran in them, inner ones included.
    """

    findings: tuple[Finding, ...]
    launches: int
    iterations: int

    @property
    def conflicts(self) -> tuple[Finding, ...]:
        """The findings that contradict the annotation."""
        return tuple(f for f in self.findings if f.conflict)

    @property
    def meetings(self) -> tuple[Finding, ...]:
        """The benign ones."""
        return tuple(f for f in self.findings if not f.conflict)


class Checker:
    """Marked PTX whose launches are checked, one after the other; global variables keep their values between them.

    ``marked`` is the PTX (`cccopt.driver.marked_ptx`), ``name`` what messages call it.

    Raises PtxError for text that is not PTX, and CccError (CCC103) if it has no marked loop.
    """

    def __init__(self, marked: str, name: str = "<ptx>") -> None:
        self._record = Record({}, self._ended)
        self._program = Program(marked, name, record=self._record)
        functions = [f for f in self._program.module.functions() if f.body is not None]
        self._record.events = {
            key: events for function in functions for key, events in _events(function).items()
        }
        self._loops = {
            region: CheckedLoop(annotation.kind, annotation.place)
            for function in functions
            for region, annotation in vouched(function.body or ()).items()
        }
        if not self._loops:
            raise _nothing(
                f"`{name}` has no marked loop",
                "the check applies to loops under `#pragma ccc for` or `grid`",
                "give it an annotated .cu file, or marked PTX: `ccc-nvcc --ccc-keep=FOLDER` leaves it in"
                " `FOLDER/NAME.ARCH.1.ptx`",
            )
        files = {loop.place.file for loop in self._loops.values() if loop.place is not None}
        self._spelled = {os.path.realpath(file): file for file in files}
        self._lines: dict[str, tuple[tuple[SourceLine, ...], ...]] = {}
        self._found: dict[tuple[Any, ...], Finding] = {}
        self._launches = self._iterations = 0
        self._launch: tuple[str, str, Sequence[Any], Sequence[str]] = ("", "", (), ())

    def launch(
        self,
        kernel: str,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        args: Sequence[Any],
        *,
        shared_bytes: int = 0,
        label: str = "",
        names: Sequence[str] = (),
    ) -> None:
        """Run a kernel and check it.

        ``kernel``, ``grid``, ``block``, ``args`` and ``shared_bytes`` are those of `cccopt.emulate`.
        ``label`` names the launch in findings, ``names`` its arguments.

        Raises EmulatorError for what the kernel does wrong (CCC070 to CCC079).
        """
        self._launches += 1
        self._launch = (self._program.kernel_name(kernel), label, args, names)
        # The check also finds races of lanes, and names them by their iterations.
        self._program.launch(kernel, grid, block, args, shared_bytes=shared_bytes, hazards=False)

    def result(self) -> Checked:
        """What has been found so far. Raises CccError (CCC103) if no iteration of a marked loop ran."""
        if not self._iterations:
            raise _nothing(
                "no iteration of a marked loop ran",
                "nothing was checked",
                "launch the kernel on inputs that have work: with these arguments, no loop has an iteration",
            )
        found = sorted(self._found.values(), key=lambda f: (not f.conflict, -f.places))
        return Checked(tuple(found), self._launches, self._iterations)

    # --- from a launch's record --------------------------------------------------------------------------------

    def _ended(self, record: Record) -> None:
        self._iterations += record.iterations.column("loop").size - 1
        seen: set[tuple[Any, ...]] = set()
        kernel = self._launch[0]
        for meeting in meetings(record):
            places = (self._source_place(touch) for touch in (meeting.first, meeting.second))
            lines = sorted((place.file, place.position.line) for place in places)
            key = (kernel, meeting.kind, meeting.loop, *lines)
            before = self._found.get(key)
            if before is None:
                self._found[key] = self._finding(meeting)
            else:
                launches = before.launches + (key not in seen)
                self._found[key] = replace(before, places=before.places + meeting.places, launches=launches)
            seen.add(key)

    def _finding(self, meeting: Meeting) -> Finding:
        kernel, label, _, _ = self._launch
        where, dtype = self._where(meeting)
        return Finding(
            meeting.kind.conflict,
            meeting.kind.value,
            kernel,
            self._loops[meeting.loop],
            where,
            self._access(meeting.first, meeting.size, dtype),
            self._access(meeting.second, meeting.size, dtype),
            self._launches,
            label,
            meeting.places,
        )

    def _where(self, meeting: Meeting) -> tuple[str, np.dtype[Any] | None]:
        """The memory of a meeting in words, and the type of its elements if an argument gives it."""
        machine = self._record.machine
        if meeting.space == "local":
            return (
                f"byte {meeting.offset} of the local memory of {machine.shape.thread_name(meeting.owner)}",
                None,
            )
        if meeting.space == "shared":
            block = machine.shape.block_name(meeting.owner)
            return f"byte {meeting.offset} of shared `{_plain(meeting.array)}` of {block}", None
        address = meeting.base + meeting.offset
        for number, (argument, (at, _)) in enumerate(
            zip(self._launch[2], machine.kernel.parameters, strict=True)
        ):
            start = int.from_bytes(machine.memory.parameters[at : at + 8].tobytes(), "little")
            if isinstance(argument, np.ndarray) and start <= address < start + argument.nbytes:
                return self._element(number, argument, address - start, meeting.size)
        return f"byte {meeting.offset} of `{_plain(meeting.array)}`", None

    def _element(
        self, number: int, array: np.ndarray[Any, np.dtype[Any]], offset: int, size: int
    ) -> tuple[str, np.dtype[Any]]:
        """An element of an argument."""
        names, dtype = self._launch[3], array.dtype
        name = f"argument {number}" + (
            f" (`{names[number]}`)" if number < len(names) and names[number] else ""
        )
        element, rest = divmod(offset, dtype.itemsize)
        inside = f"byte {rest} of " if rest or size < dtype.itemsize else ""
        return f"{inside}element {element} of {name}", dtype

    def _access(self, touch: Touch, size: int, dtype: np.dtype[Any] | None) -> CheckedAccess:
        place = self._source_place(touch)
        steps = tuple(Iteration(self._loops[s.loop], s.number, s.entry) for s in touch.steps)
        thread = self._record.machine.shape.thread_name(touch.lane)
        return CheckedAccess(place, touch.action, thread, steps, _number(touch, size, dtype))

    def _source_place(self, touch: Touch) -> Place:
        """The CUDA line of an access (for one in a header of the toolkit, the line that calls it), or its PTX line."""
        if touch.function not in self._lines:
            function = next(
                f for f in self._program.module.functions() if f.name == touch.function and f.body is not None
            )
            self._lines[touch.function] = source_chains(self._program.module, function)
        chain = self._lines[touch.function][touch.statement]
        found = next((line for line in chain if not _of_toolkit(line.file)), None)
        if found is None:
            return self._program.places.ptx(touch.function, touch.statement)
        file = self._spelled.get(os.path.realpath(found.file), found.file)
        return _source(file).place(Position(found.line, max(found.column, 1)))


def check(
    marked: str,
    kernel: str,
    *,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Any],
    shared_bytes: int = 0,
    name: str = "<ptx>",
) -> Checked:
    """Run one kernel on the emulator and report where iterations of its marked loops access the same memory.

    The arguments are those of `cccopt.emulate`.

    Args:
        marked: PTX with marks (`cccopt.driver.marked_ptx`), best compiled with ``-lineinfo``.
        kernel: The kernel's name.
        grid: The number of blocks.
        block: The number of threads in a block.
        args: The kernel's arguments; arrays are updated in place.
        shared_bytes: Dynamic shared memory of a block.
        name: The name of the text in messages.

    Returns:
        The findings, conflicts first.

    Raises:
        EmulatorError: For errors of the kernel (CCC070 to CCC079).
        PtxError: For text that is not PTX.
        CccError: If there is no marked loop, or no iteration of one ran (CCC103).
    """
    checker = Checker(marked, name)
    checker.launch(kernel, grid, block, args, shared_bytes=shared_bytes)
    return checker.result()


def _events(function: Function) -> dict[tuple[str, int], tuple[Event, ...]]:
    found: dict[tuple[str, int], tuple[Event, ...]] = {}
    for boundary in boundaries(function.body or ()):
        key = (function.name, boundary.statement)
        found[key] = (*found.get(key, ()), Event(EventKind(boundary.event), boundary.region))
    return found


def _nothing(message: str, why: str, help: str) -> CccError:
    return CccError(error(NOTHING, message, why=why, help=help))


def _plain(name: str) -> str:
    """The plain name of a variable of a function, from its mangled name: ``bins`` from ``_ZZ1kE4bins``."""
    match = re.search(r"E(\d+)(\w+)$", name) if name.startswith("_ZZ") else None
    return name if match is None else match[2][: int(match[1])]


@lru_cache(maxsize=16)
def _source(file: str) -> SourceText:
    try:
        text = Path(file).read_text(encoding="utf-8", errors="replace") if Path(file).is_file() else ""
    except OSError:
        text = ""
    return SourceText(file, text)


@lru_cache(maxsize=256)
def _of_toolkit(file: str) -> bool:
    """Whether a file is a header of the CUDA toolkit."""
    return any((folder / "cuda_runtime.h").is_file() for folder in Path(file).parents)


def _number(touch: Touch, size: int, dtype: np.dtype[Any] | None) -> str:
    """The value in the type of its array, or else of its instruction."""
    if dtype is None or dtype.itemsize != size or dtype.kind not in "iuf":
        kind = touch.opcode.rpartition(".")[2][0]
        dtype = np.dtype(f"{ {'f': 'f', 's': 'i'}.get(kind, 'u') if size > 1 else 'u' }{size}")
    bits = np.array([touch.value], f"u{size}")
    return str(bits.view(dtype)[0])
