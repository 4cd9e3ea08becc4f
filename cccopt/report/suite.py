"""The table of ``cccopt bench ccc``: a row for each build of each sample, then means and what falls short."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import geometric_mean, mean

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from cccopt.harness.choices import BuildName
from cccopt.harness.table import EMULATED, FEWEST_REPEATS, PROFILED, THESIS, BuildRow, SampleRows, Table
from cccopt.harness.workload import FULL

NEAR = 0.97
"""A sample falls short if `auto` is below this fraction of plain or `always`, or `always` of the handwritten build."""

AGREEMENT = 5.0
"""Points of warp efficiency by which emulator and Nsight Compute may differ."""

_SHORT = {"blocks": "blk", "registers": "reg", "shared memory": "smem"}


def print_suite(table: Table, console: Console) -> None:
    """Print the table, what its columns mean, how far the counters agree, and the means."""
    console.print(Text(f"{table.suite}, measured on {table.on} ({table.arch})", style="bold"))
    console.print(rows_table(table))
    for line in _legend(table):
        console.print(Text(line, style="dim"))
    for sample in table.samples:
        for row in sample.rows:
            if row.void:
                console.print(Text(f"{sample.name} {row.build}: {row.void}", style="red"))
            elif row.uncounted:
                console.print(Text(f"{sample.name} {row.build}: not emulated: {row.uncounted}", style="red"))
        if sample.uncounted:
            console.print(Text(f"{sample.name}: no counts from ncu: {sample.uncounted}"))
        elif sample.uncounted_as_timed:
            console.print(
                Text(f"{sample.name}: no counts from ncu at size {sample.size}: {sample.uncounted_as_timed}")
            )
    console.print()
    if any(row.profiled is not None for sample in table.samples for row in sample.rows):
        title = f"ncu minus emulator, predicated-on lanes, points, size {table.counted_size}"
        console.print(Text(title, style="bold"))
        console.print(agreement_table(table))
        console.print()
    for line in summary(table):
        console.print(Text(line))


def rows_table(table: Table) -> RichTable:
    """A row for each build; void ones say so."""
    timed = any(row.times is not None for sample in table.samples for row in sample.rows)
    result = RichTable(box=None, header_style="bold")
    result.add_column("sample", no_wrap=True)
    result.add_column("build", no_wrap=True)
    for name in ("ms", "±%") if timed else ():
        result.add_column(name, justify="right", no_wrap=True)
    for name in _COLUMNS:
        result.add_column(name, justify="right", no_wrap=True)
    for sample in table.samples:
        result.add_section()
        label = sample.name if sample.size in (FULL, table.counted_size) else f"{sample.name} ({sample.size})"
        for number, row in enumerate(sample.rows):
            cells = _cells(sample, row, timed) if not row.void else [Text("-"), *(_void(row, timed))]
            result.add_row(label if number == 0 else "", row.build, *cells)
    return result


_COLUMNS = (
    "speedup",
    "active/on %",
    "useful %",
    "warp instr.",
    "regs",
    "B/thr",
    "occup. %",
    "context",
    "result",
)


def _void(row: BuildRow, timed: bool) -> Iterator[Text]:
    """Empty cells up to the last, which says why there is nothing."""
    for _ in range(len(_COLUMNS) + (2 if timed else 0) - 2):
        yield Text("")
    yield Text(kind_of_void(row), style="red")


def kind_of_void(row: BuildRow) -> str:
    """The code that the build was refused with, or a word."""
    if row.void.startswith("CCC"):
        return row.void.partition(":")[0]
    return "WRONG" if row.failed else "none"


def _cells(sample: SampleRows, row: BuildRow, timed: bool) -> Iterator[Text]:
    if timed:
        times = row.times
        few = times is not None and len(times.milliseconds) < FEWEST_REPEATS
        yield Text("" if times is None else f"{times.median:.3f}" + ("*" if few else ""))
        yield Text("" if times is None else f"{100 * times.noise:.1f}")
    speedup = sample.speedup(row.build)
    yield Text("", "") if speedup is None else _speedup(speedup)
    counted, emulated = row.counted, row.emulated
    if counted is None:
        yield from (Text("?"), Text("?"), Text("?"))
    else:
        active, on = counted.warp_efficiency, counted.warp_efficiency_pred_on
        mark = _mark(row) if timed else ""
        yield Text(f"{100 * active:.1f}/{100 * on:.1f}{mark}")
        # Handwritten code does not say which part of it collects.
        useful = "" if row.build == BuildName.HANDWRITTEN else "?"
        yield Text(useful if emulated is None or not useful else f"{100 * emulated.useful_efficiency:.1f}")
        yield Text(f"{counted.warp_instructions:,}{mark}")
    yield from _needs(row)
    yield Text(contexts(row))
    yield Text("= plain" if row.same_as_plain and row.build != BuildName.PLAIN else "right")


def _mark(row: BuildRow) -> str:
    """The mark after counts that are not Nsight Compute's at the timed size; marked ones are at the counted size."""
    if row.profiled_as_timed is not None:
        return ""
    return "s" if row.profiled is not None else "e"


def _speedup(speedup: float) -> Text:
    if speedup < 0.995:
        return Text(f"{speedup:.2f}x LOSS", style="red")
    return Text(f"{speedup:.2f}x", style="green" if speedup > 1.005 else "")


def _needs(row: BuildRow) -> Iterator[Text]:
    kernel = row.main_kernel
    if kernel is None:
        yield from (Text(""), Text(""), Text(""))
        return
    spills = f"+{kernel.spill_bytes}s" if kernel.spill_bytes else ""
    yield Text(f"{kernel.registers}{spills}")
    yield Text(f"{kernel.shared_bytes_a_thread:.0f}")
    # At full occupancy, other limits do not matter.
    limits = "+".join(_SHORT[name] for name in kernel.limited_by if "warps" not in kernel.limited_by)
    yield Text("?" if kernel.occupancy is None else f"{100 * kernel.occupancy:.0f} {limits}".rstrip())


def contexts(row: BuildRow) -> str:
    """Bytes per task, by path, ``before→after`` compression; equal ones are given once with their number."""
    times: dict[str, int] = {}
    for c in row.contexts:
        cell = str(c.bytes) if c.bytes == c.uncompressed_bytes else f"{c.uncompressed_bytes}→{c.bytes}"
        times[cell] = times.get(cell, 0) + 1
    return "+".join(f"{n}x{cell}" if n > 1 else cell for cell, n in times.items())


def _legend(table: Table) -> Iterator[str]:
    rows = [row for sample in table.samples for row in sample.rows if row.counted is not None]
    times = [row.times for row in rows if row.times is not None]
    if times:
        repeats = " or ".join(str(n) for n in sorted({len(t.milliseconds) for t in times}))
        yield f"ms: median of {repeats} repeats timed with CUDA events, the builds taking turns (a trailing `*`: fewer"
        yield "repeats, because each takes over 0.5 s); ±%: range of the repeats."
        sizes = " or ".join(dict.fromkeys(sample.size for sample in table.samples))
        sources = {
            "": f"{PROFILED} at the timed size ({sizes})",
            "s": f"s: {PROFILED} at size {table.counted_size}",
            "e": f"e: {EMULATED} at size {table.counted_size}",
        }
        marks = {_mark(row) for row in rows}
        listed = "; ".join(source for mark, source in sources.items() if mark in marks)
        yield f"active/on, warp instr.: {listed}."
        yield f"useful: {EMULATED} at size {table.counted_size}."
    else:
        yield f"Counted at size {table.counted_size}: {EMULATED}. speedup: plain's warp instructions over the build's."
    yield "active/on: warp efficiency, with and without predicated-off lanes."
    yield "regs: per thread (+bytes spilled); B/thr: shared bytes per thread; occup.: theoretical, and what"
    yield "limits it; all three of the kernel that takes most of the run. context: bytes per task, by path,"
    yield "before→after compression. marked: annotated, pass off; handwritten: no pass."
    yield "Took: " + ", ".join(f"{phase} {seconds:.0f} s" for phase, seconds in table.seconds) + "."


def agreement_table(table: Table) -> RichTable:
    """Nsight Compute's warp efficiency (predicated-on lanes) minus the emulator's, in points."""
    builds = [build for build in BuildName if any(sample.row(build) for sample in table.samples)]
    result = RichTable(box=None, header_style="bold")
    result.add_column("sample")
    for build in builds:
        result.add_column(build, justify="right")
    for sample in table.samples:
        result.add_row(sample.name, *(_difference(sample.row(build)) for build in builds))
    return result


def difference(row: BuildRow | None) -> float | None:
    """Points of warp efficiency by which Nsight Compute's count is above the emulator's."""
    if row is None or row.profiled is None or row.emulated is None:
        return None
    return 100 * (row.profiled.warp_efficiency_pred_on - row.emulated.warp_efficiency_pred_on)


def _difference(row: BuildRow | None) -> Text:
    points = difference(row)
    if points is None:
        return Text("")
    far = abs(points) > AGREEMENT
    return Text(f"{points:+.1f}{' FAR' if far else ''}", style="red" if far else "")


def summary(table: Table) -> Iterator[str]:
    """Means over the thesis' programs in the table, and the samples that fall short of another build."""
    ours = [sample for sample in table.samples if sample.name in THESIS]
    timed = any(row.times is not None for sample in table.samples for row in sample.rows)
    what = "time" if timed else "warp instructions"
    for build in (BuildName.ALWAYS, BuildName.AUTO, BuildName.HANDWRITTEN):
        found = [speedup for sample in ours if (speedup := sample.speedup(build)) is not None]
        if found:
            yield (
                f"{build} over plain ({what}), {len(found)} of the thesis' {len(THESIS)} programs: geometric mean "
                f"{geometric_mean(found):.2f}x, arithmetic {mean(found):.2f}x, {min(found):.2f}x to {max(found):.2f}x"
            )
    for build in (BuildName.PLAIN, BuildName.ALWAYS, BuildName.HANDWRITTEN):
        rows = [row for sample in ours if (row := sample.row(build)) is not None and row.counted]
        both = [mean((c.warp_efficiency, c.warp_efficiency_pred_on)) for row in rows if (c := row.counted)]
        if both:
            elsewhere = sum(_mark(row) != "" for row in rows) if timed else 0
            note = f"; {elsewhere} of them counted at size {table.counted_size}" if elsewhere else ""
            of = f"over {len(both)} of the thesis' {len(THESIS)} programs"
            yield f"{build}: warp efficiency {100 * mean(both):.1f} % (mean of `active` and `on`, {of}{note})"
    for sample in table.samples:
        yield from shortcomings(sample)


def shortcomings(sample: SampleRows) -> Iterator[str]:
    """Where a mode is slower than it should be, compared with the other builds of the same run."""
    for build, others in (
        (BuildName.AUTO, (BuildName.PLAIN, BuildName.ALWAYS)),
        (BuildName.ALWAYS, (BuildName.HANDWRITTEN,)),
    ):
        ratios = {other: sample.speedup(build, over=other) for other in others}
        known = {other: ratio for other, ratio in ratios.items() if ratio is not None}
        if known:
            other, ratio = min(known.items(), key=lambda item: item[1])
            if ratio < NEAR:
                yield f"{sample.name}: {build} reaches {ratio:.2f} of {other}"
