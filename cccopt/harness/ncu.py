"""Counts from Nsight Compute: one run of a workload's builds under ``ncu``, summed over the launches.

Two ratios and a sum are all that warp efficiency needs. The ratios of launches are weighted by their instructions, so
the result for all launches is a ratio of sums.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cccopt.harness.result import Issues, Traffic
from cccopt.workers.apart import environment

ACTIVE = "smsp__thread_inst_executed_per_inst_executed.ratio"
GUARDED_ON = "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio"
INSTRUCTIONS = "smsp__inst_executed.sum"
SECTORS = (
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum",
)
"""The 32-byte sectors of global memory that requests of warps touched, in a cache or not."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """What is measured of each launch: ``names``, which are ncu's, and ``counts``, which converts values to counts."""

    names: tuple[str, ...]
    counts: Callable[[Mapping[str, float]], Issues]


def _issues(values: Mapping[str, float]) -> Issues:
    return Issues(*_issued(values))


def _traffic(values: Mapping[str, float]) -> Traffic:
    return Traffic(*_issued(values), round(sum(values[name] for name in SECTORS)))


def _issued(values: Mapping[str, float]) -> tuple[int, int, int]:
    instructions = values[INSTRUCTIONS]
    return round(instructions), round(instructions * values[ACTIVE]), round(instructions * values[GUARDED_ON])


ISSUES = Metrics((INSTRUCTIONS, ACTIVE, GUARDED_ON), _issues)
TRAFFIC = Metrics((*ISSUES.names, *SECTORS), _traffic)


@dataclass(frozen=True, slots=True)
class Profiled:
    """Counts by build, of the kind that `Metrics.counts` makes; ``why`` says why some or all are missing."""

    counts: Mapping[str, Issues] = field(default_factory=dict)
    why: str = ""


@dataclass(frozen=True, slots=True)
class ProfiledRun:
    """What `cccopt.harness.once` runs: ``builds`` of ``sample`` (a name or folder), whose code is in ``cubins``, with
    further ``options``. ``metrics`` are what is counted.
    """

    sample: str
    builds: Sequence[str]
    cubins: Path
    size: str
    seed: int
    options: Sequence[str] = ()
    metrics: Metrics = ISSUES

    def command(self, order: Path) -> list[str]:
        """The command, which writes what it launched to ``order``."""
        program = (sys.executable, "-m", "cccopt.harness.once", self.sample, *self.builds)
        inputs = ("--size", self.size, "--seed", str(self.seed))
        return [*program, *inputs, "--cubins", str(self.cubins), "--order", str(order), *self.options]


def profile(run: ProfiledRun, seconds: float) -> Profiled:
    """Count the metrics of each of the builds; give up after ``seconds``."""
    ncu = shutil.which("ncu")
    if ncu is None:
        return Profiled(why="no ncu on PATH")
    with tempfile.TemporaryDirectory(prefix="cccopt-") as folder:
        log, order = Path(folder) / "log.csv", Path(folder) / "order.jsonl"
        asked = ("--metrics", ",".join(run.metrics.names), "--log-file", str(log))
        command = [ncu, *_OPTIONS, *asked, *run.command(order)]
        try:
            done = subprocess.run(
                command,
                env={**environment(), "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=seconds,
                check=False,
            )
            said = done.stdout + done.stderr
        except subprocess.TimeoutExpired:
            return Profiled(why=f"ncu did not end within {seconds:.0f} s")
        text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
        shown = order.read_text(encoding="utf-8").splitlines() if order.is_file() else []
    return counted(text, [tuple(json.loads(line)) for line in shown], said, run.metrics)


# Clocks do not change counts, and a cache flush between launches only takes time.
_OPTIONS = (
    *("--clock-control", "none", "--cache-control", "none", "--csv", "--print-units", "base"),
    *("--profile-from-start", "off"),
)


def counted(
    log: str, shown: Sequence[tuple[str, str]], said: str = "", metrics: Metrics = ISSUES
) -> Profiled:
    """The counts by build in ncu's log; ``shown`` lists build and kernel of each launch that it saw, in order."""
    if "ERR_NVGPUCTRPERM" in log + said:
        return Profiled(
            why="ncu cannot read the GPU's counters here (ERR_NVGPUCTRPERM): run as root or with"
            " CAP_SYS_ADMIN"
        )
    launches = metrics_by_launch(log)
    if not launches:
        lines = [line for line in (log + said).splitlines() if line.strip()]
        return Profiled(why="ncu counted nothing: " + (lines[-1].strip() if lines else "it printed nothing"))
    # A build that fails has launched before it could list its launches: they come last, and are left out.
    seen = [_plain_name(kernel) for kernel, _ in launches]
    if not shown or seen[: len(shown)] != [kernel for _, kernel in shown]:
        return Profiled(
            why=f"the {len(seen)} launches that ncu saw do not match the {len(shown)} that the builds made"
        )
    counts: dict[str, Issues] = {}
    for (build, _), (_, values) in zip(shown, launches[: len(shown)], strict=True):
        if set(values) != set(metrics.names):
            return Profiled(
                why=f"ncu did not report all metrics of a launch; it reported {', '.join(values) or 'none'}"
            )
        of_launch = metrics.counts(values)
        counts[build] = counts[build] + of_launch if build in counts else of_launch
    return Profiled(counts)


def metrics_by_launch(log: str) -> list[tuple[str, dict[str, float]]]:
    """Kernel name and metrics of each launch, in order, from the log of ``ncu --csv`` (one row per metric)."""
    lines = log.splitlines()
    header = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if header is None:
        return []
    found: dict[str, tuple[str, dict[str, float]]] = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines[header:]))):
        _, metrics = found.setdefault(row["ID"], (row["Kernel Name"], {}))
        value = (row.get("Metric Value") or "").replace(",", "")
        try:
            metrics[row["Metric Name"]] = float(value)
        except ValueError:
            continue  # "n/a"
    return [found[key] for key in sorted(found, key=int)]


def _plain_name(kernel: str) -> str:
    return kernel.partition("(")[0].strip()
