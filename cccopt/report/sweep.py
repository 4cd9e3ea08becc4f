"""The tables of ``cccopt bench sensitivity``: what each build gains, and how full its warps are, point by point."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from cccopt.harness.choices import BuildName
from cccopt.harness.sweep import BUILDS, SweepPoint
from cccopt.harness.table import EMULATED, Table

NEAR = 0.97


def print_sweep(table: Table, points: Sequence[SweepPoint], console: Console) -> None:
    """Print the speedups of all builds, then efficiencies, then where `auto` falls short."""
    timed = any(point.milliseconds is not None for point in points)
    what = "speedup" if timed else "warp instructions, plain over build"
    console.print(Text(f"{what}, measured on {table.on} ({table.arch})", style="bold"))
    console.print(grid(points, _speedup, skip=(BuildName.PLAIN,)))
    console.print()
    console.print(Text(f"warp efficiency / useful, %, {EMULATED}, size {table.counted_size}", style="bold"))
    console.print(grid(points, _efficiency))
    if timed:
        noise = max(point.noise or 0.0 for point in points)
        varies = f"repeats vary by at most {100 * noise:.1f} %"
        said = f"Medians of times measured with CUDA events, the builds taking turns; {varies}."
        console.print(Text(said, "dim"))
    console.print(Text("N: multiply-adds in the path. k: lanes of 32 that take it, on average.", style="dim"))
    for row in table.samples[0].rows:
        if row.void or row.uncounted:
            console.print(Text(f"{row.build}: {row.void or f'not emulated: {row.uncounted}'}", style="red"))
    short = short_of_best(points)
    places = ", ".join(f"N={length} k={lanes} {ratio:.2f}" for length, lanes, ratio in short)
    said = f"auto reaches {NEAR} of the better of plain and always"
    console.print(Text(f"{said} except at {places}" if short else f"{said} at all points"))


def grid(
    points: Sequence[SweepPoint], cell: Callable[[SweepPoint], Text], skip: Sequence[str] = ()
) -> RichTable:
    """A row for each length and build, a column for each number of lanes."""
    result = RichTable(box=None, header_style="bold")
    result.add_column("N", justify="right")
    result.add_column("build")
    lanes = sorted({point.lanes for point in points})
    for k in lanes:
        result.add_column(f"k={k}", justify="right")
    by_place = {(point.length, point.build, point.lanes): point for point in points}
    builds = [build for build in BUILDS if build not in skip and any(p.build == build for p in points)]
    for length in sorted({point.length for point in points}):
        for number, build in enumerate(builds):
            here = [by_place.get((length, build, k)) for k in lanes]
            cells = [cell(point) if point is not None else Text("") for point in here]
            result.add_row(str(length) if number == 0 else "", build, *cells)
    return result


def _speedup(point: SweepPoint) -> Text:
    if point.speedup is None:
        return Text("?")
    return Text(f"{point.speedup:.2f}", style="red" if point.speedup < 0.995 else "")


def _efficiency(point: SweepPoint) -> Text:
    if point.counts is None:
        return Text("?")
    # Handwritten code does not say which part of it collects.
    useful = "" if point.build == BuildName.HANDWRITTEN else f"/{100 * point.counts.useful_efficiency:.0f}"
    return Text(f"{100 * point.counts.warp_efficiency:.0f}{useful}")


def short_of_best(points: Sequence[SweepPoint]) -> list[tuple[int, int, float]]:
    """Length, lanes and ratio of the points where `auto` is below `NEAR` of the better of plain nvcc and `always`."""
    speedups = {(p.build, p.length, p.lanes): p.speedup for p in points if p.speedup}
    found = []
    for (build, length, lanes), speedup in speedups.items():
        best = max(1.0, speedups.get((BuildName.ALWAYS, length, lanes), 1.0))
        if build == BuildName.AUTO and speedup < NEAR * best:
            found.append((length, lanes, speedup / best))
    return found
