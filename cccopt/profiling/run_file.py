"""The counts of a program's runs, by kernel, source line, branch and loop, and the file that holds them.

    {"schema": 2, "cccopt": "0.1.0", "runs": 1, "devices": ["NVIDIA H100 80GB HBM3"],
     "sources": {"app.cu": "<SHA-256>"},
     "kernels": {"_Z3fooPi": {"1": {"kind": "for", ...}}},
     "functions": [{"name": "_Z3fooPi", "lines": [...], "branches": [...], "loops": [...], ...}],
     "uncounted": [{"name": "cub::...", "launches": 3, "time_ns": 1000}], "notes": []}

The emulator and GPUs make the same file. `run_file.schema.json` beside this module is its JSON Schema; the fields
are those of the classes below, in their order. ``kernels`` are the marked regions, which ``--ccc-profile`` reads.

Line numbers and the hash of a source leave out the lines of ``#pragma ccc`` (`sources`), so a run of a program that is
not annotated yet still fits the annotated program.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.resources import files
from typing import Any, ClassVar

from cccopt.ccc.profitability.profile import (
    RunProfile,
    as_bad_profile,
    kernels_of,
    regions_in,
    require_schema,
)
from cccopt.device.facts import DeviceFacts
from cccopt.files import read_text, write_text
from cccopt.profiling.candidate_counts import CandidateUnit
from cccopt.profiling.json_fields import from_json
from cccopt.profiling.sample import Sample, together
from cccopt.version import __version__

SCHEMA = 2
LANES = 32


@dataclass(frozen=True, slots=True)
class LineCount:
    """The instructions of a place in the source: ``warps`` issued them, ``lanes`` were active in them.

    Both are sums over instructions and executions. ``column`` is 0 if only the line is known. Its accesses to global
    memory made ``requests`` (groups of lanes) and touched ``sectors`` of 32 bytes, None if these were not counted. For
    a sample, ``groups`` holds the warps and lanes of its random groups, one group after the other.
    """

    GROUPED: ClassVar = ("warps", "lanes")

    file: str
    line: int
    column: int
    warps: int
    lanes: int
    requests: int | None = None
    sectors: int | None = None
    groups: tuple[int, ...] | None = None

    @property
    def idle(self) -> int:
        """Lane slots that were issued without an active lane."""
        return LANES * self.warps - self.lanes


@dataclass(frozen=True, slots=True)
class BranchCount:
    """A conditional branch of the PTX: ``warps`` and ``lanes`` ran it, ``taken`` lanes jumped.

    In ``split`` executions some lanes jumped and others did not. ``histogram[k]`` is the number of executions in which
    k lanes jumped (33 numbers), None if that was not counted. Several branches at one place keep their order. For a
    sample, ``groups`` holds the numbers that `GROUPED` names for its random groups, one group after the other.
    """

    GROUPED: ClassVar = ("warps", "lanes", "taken", "split")

    file: str
    line: int
    column: int
    warps: int
    lanes: int
    taken: int
    split: int
    histogram: tuple[int, ...] | None = None
    groups: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class LoopCount:
    """A loop of the PTX: ``entries`` warps and ``entered`` lanes entered it, and began ``warps`` and ``lanes``
    iterations. An iteration begins at the loop's header; if the loop is left there, the last, incomplete one counts,
    too. ``groups`` is as in `BranchCount`.
    """

    GROUPED: ClassVar = ("entries", "entered", "warps", "lanes")

    file: str
    line: int
    column: int
    entries: int
    entered: int
    warps: int
    lanes: int
    groups: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class FunctionRun:
    """A function: a kernel, or one that kernels call (``kernel`` is False; its counts cover all its callers).

    ``unit`` is the file that it was compiled from. Values not recorded, such as ``launches`` and ``time_ns``, are None.
    ``registers`` and ``shared`` (in bytes) are those of the plain copy, ``registers_counted`` and ``shared_counted``
    those of the counted one. ``launched`` is the number of warps of all launches, ``block`` the largest x, y and z of
    their blocks, ``dynamic_shared`` the most dynamic shared memory of a block in bytes. If ``counted`` is False, only
    the time is known. ``sample`` is None if all warps were counted.
    """

    GROUPED: ClassVar = LineCount.GROUPED

    name: str
    shown: str
    kernel: bool
    unit: str
    launches: int | None = None
    time_ns: int | None = None
    counted: bool = True
    registers: int | None = None
    registers_counted: int | None = None
    shared: int | None = None
    shared_counted: int | None = None
    launched: int | None = None
    block: tuple[int, ...] | None = None
    dynamic_shared: int | None = None
    sample: Sample | None = None
    lines: tuple[LineCount, ...] = ()
    branches: tuple[BranchCount, ...] = ()
    loops: tuple[LoopCount, ...] = ()

    @property
    def warps(self) -> int:
        """Warp instructions."""
        return sum(line.warps for line in self.lines)

    @property
    def lanes(self) -> int:
        """Thread instructions: the lanes active in the warp instructions."""
        return sum(line.lanes for line in self.lines)

    @property
    def groups(self) -> tuple[int, ...]:
        """Warps and lanes of a sample's random groups, over all lines."""
        total: tuple[int, ...] = ()
        for line in self.lines:
            total = together(total, line.groups or ())
        return total

    def error(self, count: Sampled, part: str = "lanes", whole: str = "warps") -> float | None:
        """Half the width of the 95 % confidence interval of the ratio ``part`` / ``whole`` of ``count``, which is this
        function or something in it; None if it is not known.
        """
        if self.sample is None:
            return None
        names, groups = count.GROUPED, count.groups or ()
        pairs = zip(*(groups[names.index(name) :: len(names)] for name in (part, whole)), strict=True)
        return self.sample.error(pairs, getattr(count, part), getattr(count, whole))

    @property
    def idle_share(self) -> float | None:
        """The share of lane slots without an active lane, 0 to 1; None for a function that did not run."""
        return 1 - self.lanes / (LANES * self.warps) if self.warps else None


Sampled = LineCount | BranchCount | LoopCount | FunctionRun
"""Everything that can hold numbers for a sample's random groups."""


@dataclass(frozen=True, slots=True)
class UncountedKernel:
    """A kernel for which only the time is known: it was not built with counters."""

    name: str
    launches: int
    time_ns: int


@dataclass(frozen=True, slots=True)
class RunFile:
    """The counts of one or several runs of a program. ``runs`` is their number, 0 in an empty file.

    ``devices`` are names of GPUs, or ``emulator``; ``hardware`` describes those that were timed.
    ``sources`` maps the file names that the counts use to hashes.
    ``notes`` are sentences on what is missing. ``candidates`` are from programs built with ``--ccc-candidates``, which
    have no annotated regions.
    """

    cccopt: str = __version__
    runs: int = 0
    devices: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    kernels: RunProfile = field(default_factory=RunProfile)
    functions: tuple[FunctionRun, ...] = ()
    uncounted: tuple[UncountedKernel, ...] = ()
    notes: tuple[str, ...] = ()
    hardware: tuple[DeviceFacts, ...] = ()
    candidates: tuple[CandidateUnit, ...] = ()

    @property
    def time_ns(self) -> int | None:
        """The time of all kernels; None if no run was timed."""
        known = [f.time_ns for f in self.functions if f.time_ns is not None]
        known += [kernel.time_ns for kernel in self.uncounted]
        return sum(known) if known else None


# --- the file ---


def read(path: str | os.PathLike[str]) -> RunFile:
    """Read the file of a run at ``path``. A file of schema 1 has only marked regions.

    Raises CccError for a file that cannot be read (CCC086) or holds something else (CCC069).
    """
    text = read_text(path)
    with as_bad_profile(path):
        return of_json(json.loads(text))


def of_json(data: Mapping[str, Any]) -> RunFile:
    """The run that a file holds. Raises ValueError, KeyError or TypeError if it is not a run."""
    require_schema(data["schema"])
    kernels = regions_in(data["kernels"])
    if data["schema"] != SCHEMA:
        return RunFile(runs=1, kernels=kernels)
    run = replace(from_json(RunFile, data, leave_out=("kernels",)), kernels=kernels)
    for function in run.functions:
        if any(b.histogram is not None and len(b.histogram) != LANES + 1 for b in function.branches):
            raise ValueError(f"a histogram of `{function.name}` does not have {LANES + 1} numbers")
    return run


def write(path: str | os.PathLike[str], run: RunFile) -> None:
    """Write ``run`` to the file ``path``, whole or not at all. Raises CccError if it cannot be written (CCC086)."""
    write_text(path, as_text(run))


def as_text(run: RunFile) -> str:
    """The text of a run's file: JSON, with a line for each count."""
    data: dict[str, Any] = {"schema": SCHEMA}
    # `asdict` would also take apart the regions, whose keys are numbers.
    data |= {**asdict(replace(run, kernels=RunProfile())), "kernels": kernels_of(run.kernels)}
    functions, candidates = data.pop("functions"), data.pop("candidates")
    head = json.dumps(data, indent=1, ensure_ascii=False)
    # File names may not be UTF-8; `write_text` restores their bytes.
    listed = ",\n".join(f"  {_function(entry)}" for entry in functions)
    tried = ",\n".join(f"  {json.dumps(entry)}" for entry in candidates)
    return f'{head[:-2]},\n "functions": [\n{listed}\n ],\n "candidates": [\n{tried}\n ]\n}}\n'


def schema() -> dict[str, Any]:
    """The JSON Schema of the file."""
    text = files("cccopt.profiling").joinpath("run_file.schema.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def _function(entry: dict[str, Any]) -> str:
    lists = {name: entry.pop(name) for name in ("lines", "branches", "loops")}
    head = json.dumps(entry, ensure_ascii=False)[:-1]
    parts = [f'   "{name}": [{_items(counts)}]' for name, counts in lists.items()]
    return f"{head},\n" + ",\n".join(parts) + "}"


def _items(counts: Sequence[dict[str, Any]]) -> str:
    return ",".join(f"\n    {json.dumps(count, ensure_ascii=False)}" for count in counts)
