"""What runs of a program counted, by kernel, source line, branch and loop, and the file that holds it.

    {"schema": 2, "cccopt": "0.1.0", "runs": 1, "devices": ["NVIDIA H100 80GB HBM3"],
     "sources": {"app.cu": "<SHA-256>"},
     "kernels": {"_Z3fooPi": {"1": {"kind": "for", ...}}},
     "functions": [{"name": "_Z3fooPi", "lines": [...], "branches": [...], "loops": [...], ...}],
     "uncounted": [{"name": "cub::...", "launches": 3, "time_ns": 1000}], "notes": []}

The emulator and GPUs make the same file. `run_file.schema.json` beside this module is its JSON Schema; the fields
are those of the classes below, in their order. ``kernels`` are the marked regions, which ``--ccc-profile`` reads.

Lines are counted without those of ``#pragma ccc``, and the hash of a source leaves them out too (`sources`), so a run
of a program that is not annotated yet fits the program afterwards.
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

    Both are sums over instructions and executions. ``column`` is 0 where the line is all that is known. Its accesses to
    global memory made ``requests`` (groups of lanes) and touched ``sectors`` of 32 bytes, None where these were not
    counted. ``groups`` are of a sample: warps and lanes of its random groups, one after the other.
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
    k lanes jumped (33 numbers), None where that was not counted. Several branches of one place keep their order.
    ``groups`` are of a sample: the numbers that `GROUPED` names, of its random groups, one group after the other.
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
    """A loop of the PTX: ``entries`` warps and ``entered`` lanes came to it from outside, and began ``warps`` and
    ``lanes`` iterations. An iteration begins at the loop's header; if that is where the loop is left, the last,
    incomplete one counts too. ``groups`` are as in `BranchCount`.
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
    """A function: a kernel, or what kernels call (``kernel`` is False; its counts are of all callers).

    ``unit`` is the file that it was compiled from. What is not known is None: ``launches`` and ``time_ns`` where no
    run was timed, the resources (of the plain and of the counted copy; ``shared`` in bytes), the ``launched`` warps of
    all launches and the largest x, y and z of their blocks where they were not asked for. Without ``counted`` there is
    only time. ``sample`` is there if not all warps were counted.
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
        """Warps and lanes of a sample's random groups, of all lines."""
        total: tuple[int, ...] = ()
        for line in self.lines:
            total = together(total, line.groups or ())
        return total

    def error(self, count: Sampled, part: str = "lanes", whole: str = "warps") -> float | None:
        """Half the width of the interval of a ratio of two figures of this function, or of something in it; None if not
        known.
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
"""What has numbers of a sample's random groups."""


@dataclass(frozen=True, slots=True)
class UncountedKernel:
    """A kernel for which only the time is known: it was not built with counters."""

    name: str
    launches: int
    time_ns: int


@dataclass(frozen=True, slots=True)
class RunFile:
    """What one run or several of a program counted. ``runs`` is their number; an empty file has none.

    ``devices`` are names of GPUs, or ``emulator``; ``hardware`` describes those that were timed.
    ``sources`` are hashes by the names that the counts use.
    ``notes`` are sentences on what is missing. ``candidates`` are of programs built with ``--ccc-candidates``, of which
    no region is annotated.
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
        """The time of all kernels; None where no run was timed."""
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
    """What a file holds. Raises ValueError, KeyError or TypeError where that is no run."""
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
    """What the file of a run holds: JSON, a line for each count."""
    data: dict[str, Any] = {"schema": SCHEMA}
    # `asdict` would take the regions apart too, whose keys are numbers.
    data |= {**asdict(replace(run, kernels=RunProfile())), "kernels": kernels_of(run.kernels)}
    functions, candidates = data.pop("functions"), data.pop("candidates")
    head = json.dumps(data, indent=1, ensure_ascii=False)
    # Names of files may be no UTF-8; `write_text` gives their bytes back.
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


# --- several runs ---
