"""What counting costs: the times of kernels, plain, in the instrumented program uncounted, counted, and sampled.

They take turns, all of them with the agent in the process, which takes the kernels' times from CUPTI.
Without CUPTI they are what the recipe finds in the program's output.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.profile.programs import COUNTED, DETAILED, PLAIN, SAMPLED, Built, observed
from bench.real.measure import WALL, Run, fault, results, times
from bench.real.recipe import Recipe
from cccopt.profiling.names import shown
from cccopt.profiling.running import ProgramRun

TURNS = (
    ("plain", PLAIN, False),
    ("uncounted", COUNTED, False),
    ("counted", COUNTED, True),
    (SAMPLED, SAMPLED, True),
    (DETAILED, DETAILED, True),
)
OURS = ("uncounted", "counted", SAMPLED, DETAILED)
SHORT = 20_000.0
"""Nanoseconds: kernels whose mean launch is shorter are also left out of a summary, as launching is what they do."""


@dataclass
class _Kernel:
    """What the runs of one kind said of a kernel: nanoseconds a launch by run; the last known of all else."""

    nanoseconds: list[float] = field(default_factory=list)
    launches: int = 0
    registers: int = 0
    shared: int = 0
    counted: bool = False


@dataclass
class Costs:
    """What the runs of a program said, by kind of run and kernel."""

    kernels: dict[str, dict[str, _Kernel]] = field(
        default_factory=lambda: {kind: defaultdict(_Kernel) for kind, _, _ in TURNS}
    )
    runs: dict[str, list[Run]] = field(default_factory=lambda: defaultdict(list))
    untimed: str = ""
    lost: list[str] = field(default_factory=list)

    def add(self, kind: str, recipe: Recipe, run: Run, seen: ProgramRun) -> None:
        """Add a run."""
        self.runs[kind].append(run)
        self.lost += seen.lost
        kernels = self.kernels[kind]
        if seen.untimed or not seen.times:
            self.untimed = seen.untimed or "no times"
            for name, value in times(recipe, run).items():
                if name == WALL:
                    continue
                # The unit is the program's; ratios are all that is shown.
                kernels[name].nanoseconds.append(value)
                kernels[name].counted = True
            return
        for name in dict.fromkeys(time.name for time in seen.times):
            here = [time for time in seen.times if time.name == name]
            kernel = kernels[name]
            kernel.launches = sum(time.launches for time in here)
            kernel.nanoseconds.append(sum(time.nanoseconds for time in here) / max(kernel.launches, 1))
            kernel.registers = max(time.registers for time in here)
            kernel.shared = max(time.shared for time in here)
            kernel.counted = any(time.counted for time in here)


def measured(built: Built, rounds: int, limit: float) -> dict[str, Any]:
    """The costs of a program's kernels, as JSON."""
    costs = Costs()
    for _ in range(rounds):
        for kind, variant, counted in TURNS:
            if any(run.status == 124 for run in costs.runs[kind]):
                continue
            costs.add(kind, built.recipe, *observed(built, variant, counted=counted, limit=limit))
    return as_json(built.name, built.recipe, costs)


def as_json(name: str, recipe: Recipe, costs: Costs) -> dict[str, Any]:
    """The costs of a program."""
    plain = costs.runs["plain"][0]
    return {
        "program": name,
        "kernels": [] if fault(recipe, plain, plain) else list(_kernels(costs)),
        "results": {kind: _results(recipe, costs, kind) for kind in OURS},
        "untimed": costs.untimed,
        "lost": list(dict.fromkeys(costs.lost)),
    }


def _kernels(costs: Costs) -> Iterable[dict[str, Any]]:
    for name, counted in costs.kernels["counted"].items():
        kinds = [costs.kernels[kind].get(name) for kind, _, _ in TURNS]
        of = [statistics.median(kind.nanoseconds) for kind in kinds if kind and kind.nanoseconds]
        plain, sampled = kinds[0], costs.kernels[SAMPLED].get(name)
        if plain is None or sampled is None or len(of) < len(TURNS) or not counted.counted:
            continue
        if min(of) <= 0:
            continue
        yield {
            "kernel": shown(name),
            "launches": [kind.launches for kind in kinds if kind],
            "ns": of,
            "spread": max(plain.nanoseconds) / min(plain.nanoseconds),
            **{kind: time / of[0] for kind, time in zip(OURS, of[1:], strict=True)},
            "registers": [plain.registers, counted.registers, sampled.registers],
            "shared": [plain.shared, counted.shared],
        }


def _results(recipe: Recipe, costs: Costs, kind: str) -> str:
    """`equal`, `within` (its own check or the tolerance) or what is wrong."""
    plain = costs.runs["plain"][0]
    if why := fault(recipe, plain, plain):
        return f"plain: {why}"
    for run in costs.runs[kind]:
        if why := fault(recipe, run, plain):
            return why
    same = {tuple(results(recipe, run)) for run in costs.runs[kind]}
    theirs = {tuple(results(recipe, run)) for run in costs.runs["plain"]}
    if not recipe.same:
        return "passes" if recipe.passes else "not compared"
    if len(theirs) == 1:
        return "equal" if same == theirs else "within"
    return "within (plain runs differ)"


def show(found: Sequence[dict[str, Any]], console: Console) -> None:
    """Print a line a kernel, the most costly first, and the summary."""
    table = Table(box=None, pad_edge=False)
    for title in (
        "program",
        "kernel",
        "launches",
        "us",
        "uncounted",
        "counted",
        SAMPLED,
        DETAILED,
        "registers",
        "shared",
        "results",
    ):
        table.add_column(title, justify="left" if title in ("program", "kernel", "results") else "right")
    rows = [(each, kernel) for each in found for kernel in each["kernels"]]
    for each, kernel in sorted(rows, key=lambda row: -row[1]["counted"]):
        table.add_row(
            each["program"][:20],
            kernel["kernel"].partition("(")[0].removeprefix("void ")[-28:],
            "/".join(dict.fromkeys(map(str, kernel["launches"]))),
            f"{kernel['ns'][0] / 1000:.1f}",
            f"{kernel['uncounted']:.2f}",
            f"{kernel['counted']:.2f}",
            f"{kernel[SAMPLED]:.2f}",
            f"{kernel[DETAILED]:.2f}",
            ">".join(map(str, kernel["registers"])),
            ">".join(map(str, kernel["shared"])),
            each["results"]["counted"][:24],
        )
    console.print(table)
    for line in summary(found):
        console.print(line, soft_wrap=True)


def summary(found: Sequence[dict[str, Any]]) -> list[str]:
    """The medians and maxima, and what is not right."""
    kernels = [kernel for each in found for kernel in each["kernels"]]
    lines = []
    for title, some in (
        ("all kernels", kernels),
        (f"launches of {SHORT / 1000:.0f} us and more", [k for k in kernels if k["ns"][0] >= SHORT]),
    ):
        for kind in ("counted", SAMPLED, DETAILED, "uncounted") if some else ():
            ratios = [kernel[kind] for kernel in some]
            over = sum(ratio > 4 for ratio in ratios)
            lines.append(
                f"{title}: {kind}/plain median {statistics.median(ratios):.3f}, at most {max(ratios):.2f}"
                f" ({len(ratios)} kernels, {over} above 4)"
            )
    for each in found:
        bad = [f"{kind}: {said}" for kind, said in each["results"].items() if not said.startswith(_GOOD)]
        if bad:
            lines.append(f"{each['program']}: {'; '.join(bad)}")
        if each["lost"]:
            lines.append(f"{each['program']}: {each['lost'][0]}")
        if each["untimed"]:
            lines.append(f"{each['program']}: times are the program's: {each['untimed']}")
        elif not each["kernels"]:
            lines.append(f"{each['program']}: no kernel was counted")
    return lines


_GOOD = ("equal", "within", "passes", "not compared")
