"""The table of ``cccopt bench graphs``: a row for each form of each algorithm on each graph."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from cccopt.harness.graphs.table import GraphCell, GraphRow, GraphTable
from cccopt.harness.graphs.workload import PLAIN, SMALL
from cccopt.harness.table import EMULATED, PROFILED

SECTOR = 32
"""Bytes."""


def print_graphs(table: GraphTable, console: Console) -> None:
    """Print all rows, what their columns mean, and why rows are void."""
    console.print(Text(f"Graphs, measured on {table.on} ({table.arch})", style="bold"))
    console.print(rows_table(table))
    sizes = " and ".join(sorted({cell.size for cell in table.cells}))
    console.print(Text(f"Size {sizes}. over plain: the cost of `{PLAIN}` over the form's.", style="dim"))
    for line in _legend(table):
        console.print(Text(line, style="dim"))
    for cell in table.cells:
        for row in cell.rows:
            if row.void:
                said = f"{cell.algorithm} {cell.input} {row.form}: {row.void}"
                console.print(Text(said, style="red" if row.failed else ""))
    for why, cells in _uncounted(table).items():
        where = "" if len(cells) == len(table.cells) else f" of {', '.join(cells)}"
        console.print(Text(f"no counts from ncu{where}: {why}"))


def _is_timed(table: GraphTable) -> bool:
    return table.on != EMULATED


def _is_counted(table: GraphTable) -> bool:
    return any(row.counted is not None for cell in table.cells for row in cell.rows)


def _uncounted(table: GraphTable) -> dict[str, list[str]]:
    """Why Nsight Compute did not count, and for which algorithms on which graphs."""
    found: dict[str, list[str]] = {}
    for cell in table.cells:
        if cell.uncounted:
            found.setdefault(cell.uncounted, []).append(f"{cell.algorithm} {cell.input}")
    return found


def _legend(table: GraphTable) -> Iterator[str]:
    if _is_timed(table):
        yield "ms: what the kernels of a run took together, without the gaps between launches: the median of the"
        yield "repeats timed with CUDA events; ±%: the range of the repeats, as a percentage of that median."
        yield "run ms: from the first launch to the end of the last one, with the gaps in which Python reads flags and"
        yield "sizes and prepares the next launch."
        yield "MTEPS: millions of edges per second of kernel time, whichever edges a form looks at. bfs and sssp count"
        yield "the edges of the vertices that are reached, bc counts those twice, cc and pagerank_converged all edges,"
        yield "pagerank all of them once an iteration, tc each pair of neighbors once."
    else:
        yield "No times here: the cost is in warp instructions."
    if _is_counted(table):
        yield "active/on: warp efficiency with and without predicated-off lanes. KB: what warps read and write in"
        yield "global memory, in sectors of 32 bytes, whether or not a cache has them."
    if _is_counted(table) and _is_timed(table):
        yield f"active/on, KB and warp instr. are counted by {PROFILED}; s: at size {SMALL}, because a form has"
        yield "too many launches at this size."


def rows_table(table: GraphTable) -> RichTable:
    """A row for each form; void ones say so."""
    result = RichTable(box=None, header_style="bold")
    result.add_column("algorithm input", no_wrap=True)
    result.add_column("form", no_wrap=True)
    columns = _columns(table)
    for name in columns:
        result.add_column(name, justify="right", no_wrap=True)
    for cell in table.cells:
        result.add_section()
        for number, row in enumerate(cell.rows):
            many = f" ({cell.sources} sources)" if cell.sources > 1 else ""
            label = f"{cell.algorithm} {cell.input}{many}" if number == 0 else ""
            if row.void:
                word = Text("WRONG" if row.failed else "none", style="red" if row.failed else "")
                result.add_row(label, row.form, Text("-"), *[Text("")] * (len(columns) - 2), word)
            else:
                result.add_row(label, row.form, *_cells(table, cell, row))
    return result


def _columns(table: GraphTable) -> tuple[str, ...]:
    timed = ("ms", "±%", "run ms", "MTEPS") if _is_timed(table) else ()
    counted = ("active/on %", "warp instr.", "KB") if _is_counted(table) else ()
    return ("iterations", "launches", *timed, *counted, "over plain", "result")


def _cells(table: GraphTable, cell: GraphCell, row: GraphRow) -> Iterator[Text]:
    yield Text(f"{row.iterations:,}")
    yield Text(f"{row.launches:,}")
    if row.times is not None:
        yield Text(f"{row.times.median:.3f}")
        yield Text(f"{100 * row.times.noise:.1f}")
        yield Text("-" if row.elapsed is None else f"{row.elapsed.median:.3f}")
        yield Text(f"{cell.mteps.get(row.form, 0):,.0f}")
    if row.counted is not None:
        counts, mark = row.counted, "s" if cell.counted_size != cell.size else ""
        yield Text(f"{100 * counts.warp_efficiency:.1f}/{100 * counts.warp_efficiency_pred_on:.1f}{mark}")
        yield Text(f"{counts.warp_instructions:,}{mark}")
        yield Text(f"{counts.sectors * SECTOR / 1e3:,.0f}{mark}")
    elif _is_counted(table):
        yield from (Text(""),) * 3
    gain = cell.speedups.get(row.form)
    yield Text("") if gain is None else Text(f"{gain:.2f}x", style="red" if gain < 0.995 else "")
    yield Text("right")
