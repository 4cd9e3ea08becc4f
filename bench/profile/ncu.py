"""What Nsight Compute counts of each machine instruction: a profile of one run, read from its source page as CSV.

    "Kernel Name","bfs"
    "Address","Source","# Samples",...,"Instructions Executed","Thread Instructions Executed",...
    "0x7fc48541d900","      MOV R1, c[0x0][0x28] ",...,"3632","116224","116224",...

Each profiled launch has such a part. Names of columns changed between versions, and are those of the metrics where
these were asked for by name; both are known here.
"""

from __future__ import annotations

import csv
import io
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.real.measure import shell

METRICS = {
    "inst_executed": ("instructions executed", "# instructions executed", "warp instructions executed"),
    "thread_inst_executed": ("thread instructions executed", "# thread instructions executed"),
    "thread_inst_executed_true": (
        "predicated-on thread instructions executed",
        "# predicated-on thread instructions executed",
        "predicated on thread instructions executed",
    ),
}
WAYS = (("--metrics", ",".join(METRICS)), ("--section", "SourceCounters"))
"""Metrics alone take fewer passes than a section, but not every version may show them on its source page."""

_GUARD = re.compile(r"^\s*@!?U?P\w+\s+")
_CONTROL = re.compile(
    r"^\s*(?:@!?U?P\w+\s+)?(BRA|BRX|BRXU|JMP|JMX|JMXU|EXIT|BSSY|BSYNC|BREAK|CALL|RET|WARPSYNC|YIELD|KILL|NANOSLEEP|BMOV)\b"
)


@dataclass
class Executed:
    """A machine instruction: its text, the warps that issued it, the lanes active in these, and the lanes on."""

    text: str
    warps: int = 0
    lanes: int = 0
    on: int = 0

    @property
    def predicated(self) -> bool:
        """Whether it is under a predicate and no control flow."""
        return bool(_GUARD.match(self.text)) and not _CONTROL.match(self.text)

    @property
    def compared(self) -> int:
        """The lanes that counts are held against: those on, of a predicated instruction."""
        return self.on if self.predicated else self.lanes


@dataclass
class Profiled:
    """A kernel: its instructions in order, summed over ``launches`` (as parts of the page)."""

    name: str
    launches: int = 0
    instructions: list[Executed] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Profile:
    """What a run gave; ``why`` says why there is nothing."""

    kernels: Mapping[str, Profiled] = field(default_factory=dict)
    why: str = ""


def parse(text: str) -> dict[str, Profiled]:
    """The kernels of a source page, by the name that the page gives them."""
    found: dict[str, Profiled] = {}
    name, at = "", 0
    columns: dict[str, int] = {}
    current: Profiled | None = None
    for row in csv.reader(io.StringIO(text)):
        if not row:
            continue
        if row[0] in ("Kernel Name", "Function Name") and len(row) > 1:
            name, columns, current = row[1], {}, None
            continue
        if "Source" in row:
            columns = _columns(row)
            if columns:
                current, at = found.setdefault(name, Profiled(name)), 0
                current.launches += 1
            continue
        if current is None or len(row) <= max(columns.values()):
            continue
        instruction = _at(current, at, row[columns["source"]])
        at += 1
        instruction.warps += _number(row[columns["inst_executed"]])
        instruction.lanes += _number(row[columns["thread_inst_executed"]])
        instruction.on += _number(row[columns["thread_inst_executed_true"]])
    return found


def _columns(row: Sequence[str]) -> dict[str, int]:
    """The place of each column; empty where one is missing."""
    plain = [re.sub(r"\s*[\[(].*[\])]$", "", title).strip().lower() for title in row]
    found = {"source": len(row) - 1 - row[::-1].index("Source")}
    for metric, titles in METRICS.items():
        place = next((plain.index(title) for title in (metric, *titles) if title in plain), None)
        if place is None:
            return {}
        found[metric] = place
    return found


def _at(kernel: Profiled, at: int, text: str) -> Executed:
    if at == len(kernel.instructions):
        kernel.instructions.append(Executed(text.strip()))
    return kernel.instructions[at]


def _number(text: str) -> int:
    try:
        return round(float(text.replace(",", "").strip()))
    except ValueError:
        return 0


@dataclass
class Ncu:
    """The profiler, ``program``; ``ways`` is in which order ways to ask for counts are tried."""

    program: str
    ways: list[tuple[str, str]] = field(default_factory=lambda: list(WAYS))

    def profile(
        self,
        command: str,
        folder: Path,
        environment: Mapping[str, str],
        place: Path,
        launches: int,
        limit: float,
    ) -> Profile:
        """Profile the first ``launches`` launches of each kernel of a shell line (0: all); ``place`` takes reports."""
        why = "ncu counted nothing"
        which = ["--kernel-id", f":::{'|'.join(map(str, range(1, launches + 1)))}"] if launches else []
        for way in list(self.ways):
            report = place / f"{way[0].strip('-')}.ncu-rep"
            words = [
                *(
                    self.program,
                    "--target-processes",
                    "all",
                    "--clock-control",
                    "none",
                    "--cache-control",
                    "none",
                ),
                *(*which, *way, "-f", "-o", str(report), "bash", "-c", command),
            ]
            run = shell(shlex.join(words), folder, environment, limit)
            if "ERR_NVGPUCTRPERM" in run.output:
                return Profile(why="ncu may not read the GPU's counters here (ERR_NVGPUCTRPERM)")
            if run.status == 124:
                return Profile(why=f"ncu did not end within {limit:.0f} s")
            if not report.is_file():
                said = [line for line in run.output.splitlines() if line.startswith("==")]
                why = f"ncu left no report (status {run.status}): {said[-1][:120] if said else ''}"
                continue
            text = self._page(report, limit)
            (place / "source.csv").write_text(text)
            kernels = parse(text)
            if any(i.warps for kernel in kernels.values() for i in kernel.instructions):
                # What has worked is tried first from now on.
                self.ways.sort(key=lambda other: other != way)
                return Profile(kernels)
            why = f"nothing could be read from ncu's source page: {text[:160]!r}"
        return Profile(why=why)

    def _page(self, report: Path, limit: float) -> str:
        page = [self.program, "--import", str(report), "--page", "source", "--csv", "--print-source", "sass"]
        # Mangled names are sure; versions without these options give others.
        return _said([*page, "--print-units", "base", "--print-kernel-base", "mangled"], limit) or _said(
            page, limit
        )


def _said(words: Sequence[str], limit: float) -> str:
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout if done.returncode == 0 else ""
