"""The tables of ``cccopt bench cte``: a row for each build on each input, then how `automatic` compares with others."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import geometric_mean

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from cccopt.harness.cte.table import Cell, CteRow, CteTable, speedup
from cccopt.harness.cte.workload import AUTOMATIC, ONE_PER_LANE, BuildKind, with_ours
from cccopt.harness.table import EMULATED, FEWEST_REPEATS
from cccopt.text import quantity

NEAR_SUB_WARP, NEAR_POLICY = 0.97, 0.95
"""`automatic` falls short below these fractions of the speed of the best sub-warp width and of the best policy."""


def print_cte(table: CteTable, console: Console) -> None:
    """Print all rows, what their columns mean, why rows are void, and how `automatic` compares."""
    console.print(Text(f"CTE, measured on {table.on} ({table.arch})", style="bold"))
    console.print(rows_table(table))
    for line in _legend(table):
        console.print(Text(line, style="dim"))
    for line, failed in _voids(table):
        console.print(Text(line, style="red" if failed else ""))
    for cell in table.cells:
        if cell.uncounted:
            console.print(Text(f"{cell.workload} {cell.input}: no counts from ncu: {cell.uncounted}"))
    console.print()
    console.print(Text(f"{AUTOMATIC} compared with the others", style="bold"))
    console.print(automatic_table(table))
    for line in (*summary(table), *other_headers(table)):
        console.print(Text(line))


def _voids(table: CteTable) -> Iterator[tuple[str, bool]]:
    """Why rows are void, once if the reason is the same on several inputs, and whether that is a failure."""
    inputs: dict[str, list[str]] = {}
    found: dict[tuple[str, str, str, bool], list[str]] = {}
    for cell in table.cells:
        inputs.setdefault(cell.workload, []).append(cell.input)
        for row in cell.rows:
            if row.void:
                key = (cell.workload, row.build, row.void, row.failed)
                found.setdefault(key, []).append(cell.input)
    for (workload, build, void, failed), where in found.items():
        on = "" if where == inputs[workload] else f" on {', '.join(where)}"
        yield f"{workload} {build}{on}: {void}", failed


def rows_table(table: CteTable) -> RichTable:
    """A row for each build; void ones say so."""
    result = RichTable(box=None, header_style="bold")
    result.add_column("workload input", no_wrap=True)
    result.add_column("build", no_wrap=True)
    columns = _columns(table)
    for name in columns:
        result.add_column(name, justify="right", no_wrap=True)
    for cell in table.cells:
        result.add_section()
        for number, row in enumerate(cell.rows):
            label = f"{cell.workload} {cell.input}" if number == 0 else ""
            name = row.build if row.kind not in (BuildKind.FORM, BuildKind.VENDOR) else f"{row.build} *"
            if row.void:
                code, _, _ = row.void.partition(":")
                word = code if code.startswith("CCC") else "WRONG" if row.failed else "none"
                cells = [Text("-"), *[Text("")] * (len(columns) - 2), Text(word, style="red" * row.failed)]
            else:
                cells = [*_cells(table, cell, row)]
            result.add_row(label, name, *cells)
    return result


def _columns(table: CteTable) -> tuple[str, ...]:
    timed = ("ms", "±%", "GB/s", "copy %") if table.copy is not None else ()
    return (*timed, "over 1-D", "over sub-warp", "active/on %", "warp instr.", "regs", "shared", "result")


def _cells(table: CteTable, cell: Cell, row: CteRow) -> Iterator[Text]:
    if table.copy is not None:
        times, rate = row.times, cell.gigabytes.get(row.build)
        few = times is not None and len(times.milliseconds) < FEWEST_REPEATS
        yield Text("" if times is None else f"{times.median:.3f}" + ("-" if few else ""))
        yield Text("" if times is None else f"{100 * times.noise:.1f}")
        yield Text("" if rate is None else f"{rate:,.0f}")
        yield Text("" if rate is None else f"{100 * rate / table.copy.gigabytes:.1f}")
    for gains in (cell.speedups, cell.speedups_over_sub_warp):
        yield _gain(gains.get(row.build))
    if row.counted is None:
        yield from (Text(""), Text(""))
    else:
        issues = row.counted.issues
        mark = _mark(table, cell, row)
        yield Text(f"{100 * issues.warp_efficiency:.1f}/{100 * issues.warp_efficiency_pred_on:.1f}{mark}")
        yield Text(f"{issues.warp_instructions:,}{mark}")
    kernel = row.main_kernel
    spills = f"+{kernel.spill_bytes}s" if kernel is not None and kernel.spill_bytes else ""
    yield Text("" if kernel is None else f"{kernel.registers}{spills}")
    yield Text("" if kernel is None else f"{kernel.shared_bytes:,}")
    yield Text("right")


def _mark(table: CteTable, cell: Cell, row: CteRow) -> str:
    """``e`` for the emulator's counts beside times, ``s`` for counts at a different size from the times'."""
    if row.counted is None or table.copy is None:
        return ""
    if row.counted.source == EMULATED:
        return "e"
    return "s" if row.counted.size != cell.size else ""


def _gain(gain: float | None) -> Text:
    return Text("") if gain is None else Text(f"{gain:.2f}x", style="red" if gain < 0.995 else "")


def _legend(table: CteTable) -> Iterator[str]:
    rows = [row for cell in table.cells for row in cell.rows if row.counted is not None]
    sizes = " and ".join(sorted({cell.size for cell in table.cells}))
    if table.copy is not None:
        repeats = [len(row.times.milliseconds) for cell in table.cells for row in cell.rows if row.times]
        counts = " or ".join(str(n) for n in sorted(set(repeats)))
        copied, rate = f"{table.copy.bytes / 1e9:.1f} GB", f"{table.copy.gigabytes:,.0f} GB/s"
        yield f"Size {sizes}. ms: median of {counts} repeats timed with CUDA events, the builds taking turns"
        yield "(a trailing `-`: fewer repeats, because each is long); ±%: range of the repeats."
        yield "GB/s: the minimum number of bytes that a run must move, divided by its time; copy %: GB/s as a"
        yield f"percentage of the {rate} (bytes read plus bytes written) that a copy of {copied} reached on this GPU"
        yield "in this run."
    else:
        yield f"Size {sizes}. No times here: gains are ratios of warp instructions."
    sources = " or ".join(sorted({row.counted.source for row in rows if row.counted is not None}))
    marks = "; e: emulator, size small; s: ncu, size small" if table.copy is not None else ""
    yield f"active/on: warp efficiency with and without predicated-off lanes: {sources or 'not counted'}{marks}."
    cost = "time" if table.copy is not None else "warp instructions"
    yield f"over 1-D: {cost} of {ONE_PER_LANE}, divided by the build's; over sub-warp: the same with the best width."
    yield "*: not a policy, but a form for whole kernels, a library or a build with other headers."
    yield "regs: per thread (+bytes spilled); shared: static bytes per block; both of the kernel that takes"
    yield "most of the run."
    yield "Took: " + ", ".join(f"{phase} {seconds:.0f} s" for phase, seconds in table.seconds) + "."


def automatic_table(table: CteTable) -> RichTable:
    """For each workload and input, the best of each kind, and how the time of `automatic` compares."""
    result = RichTable(box=None, header_style="bold")
    for name in ("workload", "input"):
        result.add_column(name, no_wrap=True)
    for name in (AUTOMATIC, "over 1-D", "best sub-warp", "over sub-warp", "best policy", "of policy"):
        result.add_column(name, justify="right", no_wrap=True)
    for name in ("best kernel form", "best library", "best of ours over it"):
        result.add_column(name, justify="right", no_wrap=True)
    for cell in table.cells:
        row, sub_warp, policy = cell.automatic(), cell.best_sub_warp(), cell.best_policy()
        form, library = cell.best_form(), cell.best_vendor()
        result.add_row(
            cell.workload,
            cell.input,
            _cost(row),
            _gain(speedup(row, cell.row(ONE_PER_LANE))),
            _named(sub_warp),
            _gain(speedup(row, sub_warp)),
            _named(policy),
            _gain(speedup(row, policy)),
            _named(form),
            _named(library),
            _gain(
                speedup(
                    cell.best(lambda one: one.kind not in (BuildKind.OTHER_HEADERS, BuildKind.VENDOR)),
                    library,
                )
            ),
        )
    return result


def _cost(row: CteRow | None) -> Text:
    if row is None or row.cost is None:
        return Text("")
    return Text(f"{row.cost:.3f}" if row.times is not None else f"{row.cost:,.0f}")


def _named(row: CteRow | None) -> Text:
    return Text("") if row is None else Text(f"{row.build} ") + _cost(row)


def summary(table: CteTable) -> Iterator[str]:
    """Where `automatic` falls short of the best sub-warp width or of the best policy."""
    short = 0
    for cell in table.cells:
        for best, near in ((cell.best_sub_warp(), NEAR_SUB_WARP), (cell.best_policy(), NEAR_POLICY)):
            ratio = speedup(cell.automatic(), best)
            if best is not None and ratio is not None and ratio < near:
                short += 1
                yield f"{cell.workload} {cell.input}: {AUTOMATIC} reaches {ratio:.2f} of {best.build}"
    if not short:
        yield f"{AUTOMATIC}: at least {NEAR_SUB_WARP} of the best sub-warp width, {NEAR_POLICY} of the best policy"


def other_headers(table: CteTable) -> Iterator[str]:
    """How builds with our headers compare with builds with other headers."""
    others = dict.fromkeys(
        row.build for cell in table.cells for row in cell.rows if row.kind == BuildKind.OTHER_HEADERS
    )
    for build in others:
        ours = with_ours(build)
        ratios = [speedup(cell.row(ours), cell.row(build)) for cell in table.cells]
        known = [ratio for ratio in ratios if ratio is not None]
        if known:
            yield (
                f"{ours} over {build}, {quantity(len(known), 'input')}: geometric mean {geometric_mean(known):.2f}x, "
                f"{min(known):.2f}x to {max(known):.2f}x"
            )
