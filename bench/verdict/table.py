"""Predicted and measured, kernel by kernel: the tables of `docs/verdict.md`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table

from bench.verdict.judged import CHOOSING, CLOSE, Kernel, kernels_of, left_out, summary
from bench.verdict.measuring import times_of
from bench.verdict.programs import ALWAYS, AUTO, PROFILED, Task

TITLES = ("program", "kernel", "ms", "always", "predicted", "auto", "auto, profile", "best")
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
        rows = [_row(kernel) for kernel in here]
        if markdown:
            lines = [TITLES, ("---",) * len(TITLES), *rows]
            print(f"\n### {title.capitalize()}\n")
            print("\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n")
        else:
            table = Table(*TITLES, title=title)
            for row in rows:
                table.add_row(*row)
            console.print(table)
        for line in _said(here):
            print(line)
    for line in (each for task in tasks for each in left_out(task)):
        print(f"not in the tables: {line}")


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
