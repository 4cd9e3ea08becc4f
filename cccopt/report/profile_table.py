"""A run as terminal tables: kernels by time, and the lines, branches and loops of the worst ones where lanes idle."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cccopt.profiling.run_file import BranchCount, FunctionRun, LoopCount, RunFile
from cccopt.profiling.sources import Source
from cccopt.report.profile_view import (
    SourceView,
    duration,
    each_or_none,
    efficiency_text,
    idle_time,
    iterations_text,
    launch_facts,
    line_heads,
    number,
    ordered,
    percent,
    printable,
    sectors,
    share,
    share_text,
    summary,
    watched,
    worst,
    worst_lines,
)
from cccopt.text import shortened

_LEAST = 0.01
"""The least idle share at which the lines of a kernel, or a loop, are shown."""

_LONGEST_NAME = 120
_NARROW = 100

_FIGURES = 40
"""The columns of a terminal that the figures beside a line of source take."""

_SECTORS, _INTERVAL = 9, 7
"""The columns that sectors take, and the further ones that intervals take."""

_BAD, _POOR = 0.5, 0.25
"""The least idle shares at which a figure is red, and yellow; the figure says the same without colors."""


def print_run(
    run: RunFile, sources: Mapping[str, Source], console: Console, *, kernels: int = 3, lines: int = 8
) -> None:
    """Print all kernels, the ``lines`` worst lines of the ``kernels`` worst ones, and what is missing."""
    view = SourceView(run, sources)
    console.print(Text(f"counted: {printable(summary(run))}", style="bold"))
    console.print(kernel_table(run, narrow=console.width < _NARROW))
    for function in worst(run)[:kernels]:
        if (function.idle_share or 0.0) >= _LEAST:
            _print_function(function, view, console, lines)
    for remark in (*run.notes, *view.remarks()):
        console.print(Text(f"note: {printable(remark)}", style="yellow"), soft_wrap=True)


def kernel_table(run: RunFile, *, narrow: bool = False) -> Table:
    """All kernels, those that took the most time first; only the time is shown for those without counts."""
    table = _table()
    table.collapse_padding = narrow
    # Only this column shrinks on a narrow terminal: figures are never cut.
    table.add_column("kernel", overflow="fold", min_width=12, max_width=50)
    timed = run.time_ns is not None
    for name in ("time", "share", "launches") if timed else ("share", "launches"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("instructions", "efficiency", "idle", *(("idle\ntime",) if timed else ())):
        table.add_column(name, justify="right", no_wrap=True)
    rows = [(f.time_ns or 0, f.warps, _kernel_row(f, run)) for f in ordered(run)]
    for kernel in run.uncounted:
        first = _times(kernel.launches, kernel.time_ns, run)
        rows.append((kernel.time_ns, 0, [Text(_name(kernel.name)), *first, Text("not counted", "dim")]))
    for _, _, cells in sorted(rows, key=lambda row: (-row[0], -row[1])):
        table.add_row(*cells)
    return table


def _kernel_row(function: FunctionRun, run: RunFile) -> list[Text]:
    name = _name(function.shown) + ("" if function.kernel else " (called)")
    row = [Text(name), *_times(function.launches, function.time_ns, run)]
    if run.time_ns is None:
        part = share(function.warps, sum(f.warps for f in run.functions))
        row = [Text(name), Text(percent(part)), Text(number(function.launches))]
    if not function.counted:
        return [*row, Text("not counted", "dim")]
    idle = function.idle_share
    row += [
        Text(number(function.warps)),
        Text(efficiency_text(function)),
        _idle(idle),
    ]
    return [*row, Text(duration(idle_time(function)))] if run.time_ns is not None else row


def _name(name: str) -> str:
    return shortened(printable(name), _LONGEST_NAME)


def _times(launches: int | None, time: int | None, run: RunFile) -> list[Text]:
    part = None if time is None else share(time, run.time_ns or 0)
    return [Text(duration(time)), Text(percent(part)), Text(number(launches))]


def _print_function(function: FunctionRun, view: SourceView, console: Console, most: int) -> None:
    shown = worst_lines(function, most)
    console.print()
    console.print(Text(_name(function.shown), style="bold"))
    if facts := launch_facts(view.run, function):
        console.print(Text(", ".join(facts)))
    console.print(_lines(function, view, most, console.width))
    places = {(x.file, x.line) for x in shown}
    branches = [b for b in function.branches if (b.file, b.line) in places and b.split]
    if branches:
        console.print(_branches(function, sorted(branches, key=lambda b: -b.split)[:most], view))
    loops = [x for x in function.loops if 32 * x.warps - x.lanes > _LEAST * 32 * x.warps]
    if loops:
        console.print(_loops(function, sorted(loops, key=lambda x: x.lanes - 32 * x.warps)[:most], view))


def _lines(function: FunctionRun, view: SourceView, most: int, width: int) -> Table:
    """The worst lines: the share of the function's lane slots that each leaves idle, and its share of instructions."""
    slots = 32 * function.warps
    more = dict.fromkeys(line_heads(function), "right")
    table = _table("line", idle="right", instructions="right", efficiency="right", **more, source="left")
    worst = worst_lines(function, most)
    figures = _FIGURES + _SECTORS * len(more) + _INTERVAL * (function.sample is not None)
    room = max(width - figures - max(len(view.place(line)) for line in worst), 20)
    for line in worst:
        text = view.text(line.file, line.line)
        table.add_row(
            Text(printable(view.place(line))),
            _idle(share(line.idle, slots)),
            Text(percent(share(line.warps, function.warps))),
            Text(efficiency_text(function, line)),
            *((Text(each_or_none(sectors(line))),) if watched(function) else ()),
            Text("(no text)", "dim")
            if text is None
            else Text(shortened(printable(text).expandtabs(4).strip(), room)),
        )
    return table


def _branches(function: FunctionRun, branches: list[BranchCount], view: SourceView) -> Table:
    table = _table("branch", executions="right", split="right", taken="right")
    for branch in branches:
        table.add_row(
            Text(printable(view.place(branch))),
            Text(number(branch.warps)),
            Text(share_text(function, branch, "split", "warps")),
            Text(share_text(function, branch, "taken", "lanes")),
        )
    return table


def _loops(function: FunctionRun, loops: list[LoopCount], view: SourceView) -> Table:
    counts = {"per warp": "right", "per lane": "right"}
    table = _table("loop", iterations="right", efficiency="right", **counts)
    for loop in loops:
        table.add_row(
            Text(printable(view.place(loop))),
            Text(number(loop.warps)),
            Text(efficiency_text(function, loop)),
            Text(iterations_text(function, loop, "warps", "entries")),
            Text(iterations_text(function, loop, "lanes", "entered")),
        )
    return table


def _table(first: str = "", **others: str) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    if first:
        table.add_column(first, no_wrap=True)
    for name, justify in others.items():
        table.add_column(
            name, justify="right" if justify == "right" else "left", no_wrap=name != "source", overflow="fold"
        )
    return table


def _idle(value: float | None) -> Text:
    style = "" if value is None or value < _POOR else "red" if value >= _BAD else "yellow"
    return Text(percent(value), style=style)
