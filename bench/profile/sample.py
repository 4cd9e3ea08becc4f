"""What a sample of the warps says, against all of them: efficiencies and their intervals, instructions, sectors.

A program runs four times: with all warps counted, with a sample of them, with a detailed sample, and under Nsight
Compute, which counts the sectors of global memory that each kernel touches. Lines are held against each other where
all warps together ran them at least `LEAST` times.
"""

from __future__ import annotations

import csv
import io
import shlex
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.profile.programs import (
    COUNTED,
    DETAILED,
    PLAIN,
    SAMPLED,
    Built,
    command_of,
    environment_of,
    observed,
)
from bench.real.measure import shell
from cccopt.harness.ncu import SECTORS
from cccopt.profiling.collecting import run_file
from cccopt.profiling.merging import added
from cccopt.profiling.names import shown
from cccopt.profiling.run_file import LANES, FunctionRun, LineCount
from cccopt.report.profile_view import by_line

LEAST = 1000
SLACK = 0.005
"""What an interval may miss by and still hold: half of the last digit that tables show, and a line that is all ones."""
RATIOS = {
    "branches": (("split", "warps"), ("taken", "lanes")),
    "loops": (("warps", "entries"), ("lanes", "entered"), ("lanes", "warps")),
}
"""The figures of branches and loops that have intervals."""


def compared(built: Built, ncu: str, limit: float) -> dict[str, Any]:
    """The comparison of a program's kernels, as JSON."""
    runs = {}
    for variant in (COUNTED, SAMPLED, DETAILED):
        run, seen = observed(built, variant, counted=True, limit=limit, once=True)
        if run.status or not seen.units:
            return {"program": built.name, "kernels": [], "why": f"the {variant} run: status {run.status}"}
        runs[variant] = {f.name: f for f in run_file(seen, None).functions if f.kernel and f.warps}
    sectors, why = _sectors(built, ncu, limit)
    kernels = [
        _kernel(whole, runs[SAMPLED][name], runs[DETAILED][name], sectors.get(name))
        for name, whole in runs[COUNTED].items()
        if name in runs[SAMPLED] and name in runs[DETAILED]
    ]
    return {"program": built.name, "kernels": kernels, "why": why}


def _kernel(
    whole: FunctionRun, sample: FunctionRun, detailed: FunctionRun, theirs: int | None
) -> dict[str, Any]:
    lines, all_lines = _lines(sample), _lines(whole)
    wanted = {place: line for place, line in all_lines.items() if line.warps >= LEAST}
    held = [
        _held(line, lines[place], sample, "lanes", "warps")
        for place, line in wanted.items()
        if place in lines
    ]
    others = [
        _held(count, ours[key], sample, part, of)
        for what, ratios in RATIOS.items()
        for ours in [_by_order(getattr(sample, what))]
        for key, count in _by_order(getattr(whole, what)).items()
        if key in ours and count.warps >= LEAST
        for part, of in ratios
        if getattr(count, of) and getattr(ours[key], of)
    ]
    width = sample.error(sample)
    ours = sum(line.sectors or 0 for line in detailed.lines)
    return {
        "kernel": shown(whole.name),
        "warps": whole.warps,
        "instructions": sample.warps / whole.warps,
        "efficiencies": [f.lanes / (LANES * f.warps) for f in (whole, sample)],
        "width": None if width is None else width / LANES,
        "held": sum(held),
        "lines": len(wanted),
        "ratios": [sum(others), len(others)],
        "sectors": [ours, theirs],
    }


def _lines(function: FunctionRun) -> dict[tuple[str, int], LineCount]:
    """The counts by line. Each build has a tree of its own: of a path the name alone is the same in all."""
    found: dict[tuple[str, int], LineCount] = {}
    for line in by_line(function):
        place = (Path(line.file).name, line.line)
        found[place] = added(found[place], line) if place in found else line
    return found


def _by_order(counts: Sequence[Any]) -> dict[tuple[str, int, int], Any]:
    """Branches or loops by their lines, and by their order there."""
    found: dict[tuple[str, int, int], Any] = {}
    seen = Counter[tuple[str, int]]()
    for count in counts:
        line = (Path(count.file).name, count.line)
        found[(*line, seen[line])] = count
        seen[line] += 1
    return found


def _held(whole: Any, count: Any, sample: FunctionRun, part: str, of: str) -> bool:
    """Whether the interval of a ratio holds that of all warps; a ratio without an interval claims nothing."""
    ours, theirs = (getattr(found, part) / getattr(found, of) for found in (count, whole))
    # Lanes of a warp are shown as a share of 32.
    slack = SLACK * (LANES if part == "lanes" and of == "warps" else max(1.0, theirs))
    width = 0.0 if sample.sample is None else sample.error(count, part, of)
    return width is None or abs(ours - theirs) <= width + slack


def _sectors(built: Built, ncu: str, limit: float) -> tuple[Mapping[str, int], str]:
    """The sectors of all launches of each kernel, by mangled name; and why there are none."""
    with tempfile.TemporaryDirectory(prefix="cccopt-") as name:
        report = Path(name) / "sectors.ncu-rep"
        options = ("--target-processes", "all", "--clock-control", "none", "--cache-control", "none")
        words = [ncu, *options, "--metrics", ",".join(SECTORS), "-f", "-o", str(report)]
        words += ["bash", "-c", command_of(built.recipe, once=True)]
        run = shell(shlex.join(words), built.folders[PLAIN], environment_of(built), limit)
        if run.status == 124:
            return {}, f"ncu did not end within {limit:.0f} s"
        page = [ncu, "--import", str(report), "--page", "raw", "--csv", "--print-kernel-base", "mangled"]
        said = shell(shlex.join([*page, "--print-units", "base"]), Path(name), environment_of(built), limit)
    return of_raw_page(said.output), ""


def of_raw_page(text: str) -> dict[str, int]:
    """The sectors by kernel in ncu's raw page."""
    found: dict[str, int] = defaultdict(int)
    names: list[str] = []
    for row in csv.reader(io.StringIO(text)):
        if "Kernel Name" in row:
            names = row
        elif len(row) == len(names) and row[0]:  # the second line has units
            cells = dict(zip(names, row, strict=True))
            values = [cells.get(metric, "").replace(",", "") for metric in SECTORS]
            found[cells["Kernel Name"]] += sum(round(float(value)) for value in values if value)
    return dict(found)


def show(found: Sequence[dict[str, Any]], console: Console) -> None:
    """Print a line a kernel, and the summary."""
    table = Table(box=None, pad_edge=False)
    for title in (
        "program",
        "kernel",
        "instructions",
        "efficiency",
        "sampled",
        "+-",
        "lines held",
        "sectors",
    ):
        table.add_column(title, justify="left" if title in ("program", "kernel") else "right")
    kernels = [(each["program"], kernel) for each in found for kernel in each["kernels"]]
    for program, kernel in kernels:
        whole, sample = kernel["efficiencies"]
        ours, theirs = kernel["sectors"]
        table.add_row(
            program[:20],
            kernel["kernel"].partition("(")[0].removeprefix("void ")[-28:],
            f"{kernel['instructions']:.3f}",
            f"{100 * whole:.1f}",
            f"{100 * sample:.1f}",
            "exact" if kernel["width"] is None else f"{100 * kernel['width']:.1f}",
            f"{kernel['held']} of {kernel['lines']}",
            f"{ours / theirs:.3f}" if theirs else "-",
        )
    console.print(table)
    for line in summary(found):
        console.print(line, soft_wrap=True)


def summary(found: Sequence[dict[str, Any]]) -> list[str]:
    """How many lines' intervals hold, and how many kernels' sectors are within 10 %."""
    kernels = [kernel for each in found for kernel in each["kernels"]]
    held, lines = (sum(kernel[key] for kernel in kernels) for key in ("held", "lines"))
    ratios = [ours / theirs for ours, theirs in (k["sectors"] for k in kernels) if theirs]
    near = sum(abs(ratio - 1) <= 0.1 for ratio in ratios)
    right, known = (sum(kernel["ratios"][i] for kernel in kernels) for i in (0, 1))
    said = [
        f"intervals hold the figure of all warps on {held} of {lines} lines ({100 * held / max(lines, 1):.1f} %)",
        f"and on {right} of {known} figures of branches and loops ({100 * right / max(known, 1):.1f} %)",
        f"sectors within 10 % of Nsight Compute's in {near} of {len(ratios)} kernels",
    ]
    return said + [f"{each['program']}: {each['why']}" for each in found if each["why"]]
