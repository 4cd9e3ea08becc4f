"""What the table and the page of a run show: kernels in order, lines of a kernel, figures as text, current sources.

A *lane slot* is a place for a lane in a warp instruction, which has 32. It is idle if no lane is active in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePath

from cccopt.profiling.merging import added
from cccopt.profiling.run_file import LANES, BranchCount, FunctionRun, LineCount, LoopCount, RunFile
from cccopt.profiling.sources import Source, files_of
from cccopt.text import quantity

UNCHECKED, SAME, CHANGED, MISSING, NO_SOURCE = "unchecked", "same", "changed", "missing", "no source"

_NO_FILE = "<ptx>"
"""The file of code without line information (`cccopt.passes.counting.spots`)."""

SAID = {
    MISSING: "cannot be read: its lines are shown without text",
    CHANGED: "has changed since the run: counts may appear next to the wrong lines",
    NO_SOURCE: "is code without line information, shown by the lines of its PTX: compile with `-lineinfo`",
}
"""What to say about a file in each of these states."""


@dataclass(frozen=True)
class SourceView:
    """The sources of a run as they are now."""

    run: RunFile
    texts: Mapping[str, Source]

    @cached_property
    def names(self) -> Mapping[str, str]:
        """The shortest suffix of each path that no other file has."""
        return short_names(files_of(self.run.functions))

    def state(self, file: str) -> str:
        """Whether a file is still what was counted; ``unchecked`` if the run has no hash of it."""
        if file == _NO_FILE:
            return NO_SOURCE
        if file not in self.texts:
            return MISSING
        if file not in self.run.sources:
            return UNCHECKED
        return SAME if self.texts[file].digest == self.run.sources[file] else CHANGED

    def line(self, file: str, number: int) -> int:
        """The line of the text that corresponds to a line of the run."""
        return self.texts[file].shown(number) if file in self.texts else number

    def text(self, file: str, number: int) -> str | None:
        """The text of a line of the run; None if there is none."""
        if file not in self.texts:
            return None
        lines, line = self.texts[file].lines, self.line(file, number)
        return lines[line - 1] if 0 < line <= len(lines) else None

    def place(self, count: LineCount | BranchCount | LoopCount) -> str:
        """File and line as a reader would look for them."""
        return f"{self.names[count.file]}:{self.line(count.file, count.line)}"

    def remarks(self) -> list[str]:
        """What to say about the sources."""
        states = {file: self.state(file) for file in files_of(self.run.functions)}
        return [f"{file} {SAID[state]}" for file, state in states.items() if state in SAID]


def short_names(files: Iterable[str]) -> dict[str, str]:
    """The shortest suffix of each path that is not a suffix of any other."""
    parts = {file: PurePath(file).parts for file in files}
    found = {}
    for file, own in parts.items():
        length = 1
        others = [other for name, other in parts.items() if name != file]
        while length < len(own) and any(other[-length:] == own[-length:] for other in others):
            length += 1
        found[file] = str(PurePath(*own[-length:])) if own else file
    return found


# --- kernels and their lines ---


def ordered(run: RunFile) -> list[FunctionRun]:
    """The counted or timed functions: those that took the most time first or, without times, the most instructions."""
    return sorted(run.functions, key=lambda f: (-(f.time_ns or 0), -f.warps, f.shown))


def worst(run: RunFile) -> list[FunctionRun]:
    """The counted functions, those that lost the most first: idle time or, without times, idle lane slots."""

    def lost(function: FunctionRun) -> tuple[float, float]:
        return -(idle_time(function) or 0.0), -float(sum(line.idle for line in function.lines))

    return sorted((f for f in run.functions if f.warps), key=lost)


def idle_time(function: FunctionRun) -> float | None:
    """The time of a kernel times its idle share, in ns: what full warps could save if time followed lane slots."""
    share = function.idle_share
    return None if share is None or function.time_ns is None else function.time_ns * share


def launch_facts(run: RunFile, function: FunctionRun) -> list[str]:
    """How much a kernel used the GPU that it was timed on, as parts of a sentence; empty if GPUs differ or nothing is
    known.
    """
    if len({replace(device, name="") for device in run.hardware}) != 1 or not function.time_ns:
        return []
    device = run.hardware[0]
    if not device.slots_per_ns or not device.warps:  # the driver did not say
        return []
    issued = function.warps / (device.slots_per_ns * function.time_ns)
    found = [f"issue rate {percent(issued)} of the GPU's peak"]
    if function.launched and function.launches:
        filled = function.launched / function.launches / device.warps
        if filled < 1:
            found.append(f"an average launch has {percent(filled)} of the warps that the GPU can hold")
    return found


def by_line(function: FunctionRun) -> list[LineCount]:
    """The counts of whole lines, in the order of files and lines."""
    found: dict[tuple[str, int], LineCount] = {}
    for count in function.lines:
        key = (count.file, count.line)
        here = replace(count, column=0)
        found[key] = added(found[key], here) if key in found else here
    return [found[key] for key in sorted(found)]


def worst_lines(function: FunctionRun, most: int) -> list[LineCount]:
    """The lines with the most idle lane slots."""
    return sorted((x for x in by_line(function) if x.idle), key=lambda x: (-x.idle, x.file, x.line))[:most]


def efficiency(warps: int, lanes: int) -> float | None:
    """The share of lane slots that are filled, 0 to 1."""
    return lanes / (LANES * warps) if warps else None


def efficiency_text(function: FunctionRun, count: LineCount | LoopCount | None = None) -> str:
    """The efficiency of a function, or of a line or loop in it, as text; for a sample, with half the width of its
    interval, in points.
    """
    found = function if count is None else count
    text = percent(efficiency(found.warps, found.lanes))
    if not found.warps or function.sample is None:
        return text
    width = function.error(found)
    return _in_points(text, None if width is None else width / LANES)


def share_text(function: FunctionRun, branch: BranchCount, part: str, whole: str) -> str:
    """A share of a branch's executions or lanes as text, like `efficiency_text`."""
    text = percent(share(getattr(branch, part), getattr(branch, whole)))
    return text if function.sample is None else _in_points(text, function.error(branch, part, whole))


def _in_points(text: str, width: float | None) -> str:
    return f"{text} ± {NOT_KNOWN if width is None else f'{min(100 * width, 100):.1f}'}"


def iterations_text(function: FunctionRun, loop: LoopCount, part: str, whole: str) -> str:
    """The iterations of a warp or of a lane per entry into the loop, as text; for a sample, with half the width of the
    interval.
    """
    if not loop.entries or not loop.entered:
        return NOT_KNOWN
    text = each(getattr(loop, part) / getattr(loop, whole))
    if function.sample is None:
        return text
    return f"{text} ± {each_or_none(function.error(loop, part, whole))}"


def sectors(line: LineCount) -> float | None:
    """The sectors of global memory that a request of a line touches on average; None if that was not counted."""
    return line.sectors / line.requests if line.requests and line.sectors is not None else None


def watched(function: FunctionRun) -> bool:
    """Whether accesses to global memory were counted."""
    return any(line.requests for line in function.lines)


def line_heads(function: FunctionRun) -> tuple[str, ...]:
    """The column headings of further figures of a line."""
    return ("sectors",) if watched(function) else ()


def share(part: float, whole: float) -> float:
    """The share of ``part`` in ``whole``; 0 if ``whole`` is 0."""
    return part / whole if whole else 0.0


def iterations(loop: LoopCount) -> tuple[float, float] | None:
    """The iterations of a warp and of a lane per entry into the loop; None if it was never entered."""
    if not loop.entries or not loop.entered:
        return None
    return loop.warps / loop.entries, loop.lanes / loop.entered


BINS = ((0, 0), (1, 1), (2, 3), (4, 7), (8, 15), (16, 31), (32, 32))


def binned(histogram: Iterable[int]) -> list[tuple[str, int]]:
    """Executions by the number of lanes that jumped, in a few bins."""
    counts = tuple(histogram)
    return [
        (str(first) if first == last else f"{first}–{last}", sum(counts[first : last + 1]))
        for first, last in BINS
    ]


# --- figures as text ---

NOT_KNOWN = "–"


def percent(value: float | None) -> str:
    """A share as text. A share above zero is not shown as zero."""
    if value is None:
        return NOT_KNOWN
    return "< 0.1 %" if 0 < value < 0.0005 else f"{100 * value:.1f} %"


def duration(nanoseconds: float | None) -> str:
    """A time with three or four digits and its unit."""
    if nanoseconds is None:
        return NOT_KNOWN
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= size:
            value = nanoseconds / size
            return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"
    return f"{nanoseconds:.0f} ns"


def number(value: int | None) -> str:
    """A count as text."""
    return NOT_KNOWN if value is None else f"{value:,}"


def each(value: float) -> str:
    """An average as text."""
    return f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"


def each_or_none(value: float | None) -> str:
    """An average as text; a dash if it is not known."""
    return NOT_KNOWN if value is None else each(value)


def resources(plain: int | None, counted: int | None) -> str:
    """Registers or bytes of the plain kernel and of its counted copy."""
    if plain is None and counted is None:
        return NOT_KNOWN
    return number(plain) if counted in (None, plain) else f"{number(plain)} ({number(counted)})"


def printable(text: str) -> str:
    """``text`` with characters replaced that control terminals, change the direction of text or cannot be written."""
    return "".join(c if _is_harmless(c) else "\N{REPLACEMENT CHARACTER}" for c in text)


def _is_harmless(character: str) -> bool:
    return character in "\t\u00a0\u3000" or character.isprintable()


def summary(run: RunFile) -> str:
    """One line on what was run: devices, runs, kernels, time."""
    kernels = sum(f.kernel for f in run.functions) + len(run.uncounted)
    parts = [" and ".join(run.devices) or "no device"]
    parts.append(quantity(run.runs, "run"))
    parts.append(quantity(kernels, "kernel"))
    parts.append(duration(run.time_ns) if run.time_ns is not None else "no times")
    return ", ".join(parts)
