"""Predicted and measured, kernel by kernel: the tables of `docs/verdict.md`."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.verdict.judged import CHOOSING, CLOSE, Kernel, kernels_of, left_out, summary
from bench.verdict.measuring import times_of
from bench.verdict.programs import ALWAYS, AUTO, PROFILED, Task
from bench.verdict.tuning import tuned_of
from cccopt.cli.tune import DEFAULT
from cccopt.profiling.names import shown
from cccopt.tuning.builds import PLAIN

TITLES = ("program", "kernel", "ms", "always", "predicted", "auto", "auto, profile", "best")
TUNED = ("program", "kernel", "ms", *DEFAULT, "chosen", "gain, fresh runs", "of the best")
SETS = (("held out", False), ("used for fitting", True))


def show(tasks: Sequence[Task], console: Console, *, markdown: bool) -> None:
    """Print the tables."""
    kernels = [kernel for task in tasks for kernel in kernels_of(task)]
    devices = {found["device"] for task in tasks if (found := times_of(task.place))}
    console.print(", ".join(sorted(devices)))
    for title, fitting in SETS:
        here = [kernel for kernel in kernels if kernel.fitting == fitting]
        if not here:
            continue
        _print(title, TITLES, [_row(kernel) for kernel in here], console, markdown=markdown)
        for line in _said(here):
            print(line)
    for line in (each for task in tasks for each in left_out(task)):
        print(f"not in the tables: {line}")
    tuned = [(task, found) for task in tasks if (found := tuned_of(task)) is not None]
    rows = [(task, kernel) for task, found in tuned for kernel in found["kernels"]]
    if rows:
        _print("tuned", TUNED, [_tuned_row(*each) for each in rows], console, markdown=markdown)
        shares = [_of_best(kernel) for _, kernel in rows]
        print(
            f"tuned: {statistics.geometric_mean(shares):.3f} of the best build, at least {min(shares):.2f}"
            f" ({len(rows)} kernels)"
        )
    for task, found in tuned:
        for build, why in found["left_out"].items():
            print(f"not tried: {task.program.name}: {build}: {why}")


def _print(
    title: str, titles: Sequence[str], rows: Iterable[Sequence[str]], console: Console, *, markdown: bool
) -> None:
    if markdown:
        lines = [titles, ("---",) * len(titles), *rows]
        print(f"\n### {title.capitalize()}\n")
        print("\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n")
        return
    table = Table(*titles, title=title)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _tuned_row(task: Task, kernel: Mapping[str, Any]) -> tuple[str, ...]:
    tried, fresh = kernel["tried"], kernel["confirmed"]
    return (
        task.program.name,
        shown(kernel["kernel"]).partition("(")[0].removeprefix("void "),
        f"{kernel['nanoseconds'] / 1e6:.2f}",
        *(_interval(tried[build]) if build in tried else "left" for build in DEFAULT),
        kernel["build"],
        "1.00" if kernel["build"] == PLAIN else _interval(fresh),
        f"{_of_best(kernel):.2f}",
    )


def _interval(gain: Mapping[str, float]) -> str:
    return f"{gain['gain']:.2f} ({gain['low']:.2f} to {gain['high']:.2f})"


def _of_best(kernel: Mapping[str, Any]) -> float:
    """The gain of what was chosen, in fresh runs, over the largest of all builds, the plain one included."""
    best = max([1.0, *(gain["gain"] for gain in kernel["tried"].values())])
    return float((1.0 if kernel["build"] == PLAIN else kernel["confirmed"]["gain"]) / best)


def _row(kernel: Kernel) -> tuple[str, ...]:
    return (
        kernel.program,
        kernel.name,
        f"{kernel.milliseconds:.2f}",
        _measured(kernel),
        "-" if kernel.predicted is None else f"{kernel.predicted:.2f}",
        _chosen(kernel, AUTO),
        _chosen(kernel, PROFILED),
        f"{kernel.best:.2f}",
    )


def _measured(kernel: Kernel) -> str:
    if ALWAYS not in kernel.rewritten:
        return "left"
    return f"{kernel.gains[ALWAYS]:.2f}" if ALWAYS in kernel.gains else "other results"


def _chosen(kernel: Kernel, build: str) -> str:
    return f"{kernel.gains[build]:.2f}" if build in kernel.rewritten else "left"


def _said(kernels: Sequence[Kernel]) -> Iterator[str]:
    of = summary(kernels)
    for build in CHOOSING:
        yield (
            f"{build}: {of.gain[build]:.3f} times plain, {of.of_best[build]:.3f} of the best build, at least"
            f" {of.least[build]:.2f}, {of.share[build]:.0%} of the possible gain (on a logarithmic scale)"
            f" ({of.kernels} kernels)"
        )
    yield (
        f"predictions of `always`: median error {of.median:.0%}, {of.close:.0%} within {CLOSE:.0%},"
        f" wrong sign {len(of.wrong)} of {of.predictions} ({', '.join(of.wrong) or 'none'})"
    )
