"""Measurements as terminal tables: one per workload, launch by launch and in total, with losses named as such."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cccopt.harness.choices import BuildName
from cccopt.harness.result import BuildResult, Counts, KernelResources, LaunchResult, Measurement

ARROW = " → "
_LEAST_CHANGE = 0.005


def print_measurement(measurement: Measurement, console: Console) -> None:
    """Print wrong results, or else the workload's table, which they would void; then the remarks."""
    for build in measurement.builds:
        if build.wrong:
            console.print(Text(f"wrong result of the {build.name} build: {build.wrong}", style="bold red"))
    if measurement.right:
        console.print(table(measurement))
        for line in _notes(measurement):
            console.print(Text(line, style="dim"))
    for remark in measurement.remarks:
        console.print(Text(remark))
    console.print()


def table(measurement: Measurement) -> Table:
    """The launches' rows and, for a single kernel, their total; `Measurement.right` must hold."""
    timed = measurement.build(BuildName.PLAIN).times is not None
    title = f"{measurement.workload} ({measurement.size}, {measurement.arch}), measured on {measurement.on}"
    result = Table(title=title, title_justify="left", title_style="bold", box=None, header_style="bold")
    result.add_column("launch", no_wrap=True)
    for name in ("milliseconds", "speedup", "noise") if timed else _COUNTED:
        result.add_column(name, justify="right")
    for name in ("context", "shared", "registers"):
        result.add_column(name, justify="right", no_wrap=True)
    before, after = measurement.build(BuildName.PLAIN), measurement.build(BuildName.CCC)
    several_kernels = len({launch.kernel for launch in before.launches}) > 1
    for old, new in zip(before.launches, after.launches, strict=True):
        resources = _resources(measurement, old.kernel) if several_kernels else ("", "", "")
        result.add_row(old.label or old.kernel, *_cells(old, new), *resources)
    if not several_kernels:
        total = _total(before, after)
        resources = _resources(measurement, before.launches[0].kernel)
        result.add_section()
        result.add_row("total", *total, *resources, style="bold")
    return result


_COUNTED = ("warp instructions", "change", "efficiency %", "pred. on %", "useful %")


def _cells(old: LaunchResult, new: LaunchResult) -> Iterator[Text]:
    if old.times is not None and new.times is not None:
        noise = max(old.times.noise, new.times.noise)
        return _time_cells(old.times.median, new.times.median, noise)
    assert old.counts is not None
    assert new.counts is not None
    return _count_cells(old.counts, new.counts)


def _total(before: BuildResult, after: BuildResult) -> Iterator[Text]:
    if before.times is not None and after.times is not None:
        noise = max(before.times.noise, after.times.noise)
        return _time_cells(before.times.median, after.times.median, noise)
    return _count_cells(before.counts, after.counts)


def _time_cells(old: float, new: float, noise: float) -> Iterator[Text]:
    yield Text(f"{old:.3f}{ARROW}{new:.3f}")
    yield _verdict(f"{old / new:.2f}x", new / old - 1)
    yield Text(f"{100 * noise:.1f} %")


def _count_cells(old: Counts, new: Counts) -> Iterator[Text]:
    change = new.warp_instructions / old.warp_instructions - 1
    yield Text(f"{old.warp_instructions:,}{ARROW}{new.warp_instructions:,}")
    yield _verdict(f"{100 * change:+.1f} %", change)
    yield _shares(old.warp_efficiency, new.warp_efficiency)
    yield _shares(old.warp_efficiency_pred_on, new.warp_efficiency_pred_on)
    yield _shares(old.useful_efficiency, new.useful_efficiency)


def _verdict(text: str, growth: float) -> Text:
    """A log file does not keep colors, so a loss also says that it is one."""
    if growth > _LEAST_CHANGE:
        return Text(f"{text} LOSS", style="red")
    return Text(text, style="green" if growth < -_LEAST_CHANGE else "")


def _shares(old: float, new: float) -> Text:
    return Text(f"{100 * old:.1f}{ARROW}{100 * new:.1f}")


def _resources(measurement: Measurement, kernel: str) -> tuple[str, str, str]:
    """Bytes of context per task, shared memory per block before and after, registers before and after."""
    regions = [region for region in measurement.regions if region.kernel == kernel]
    contexts = [str(region.context_bytes) for region in regions if region.context_bytes is not None]
    context = " + ".join(contexts) or "-"
    old = _of_kernel(measurement.build(BuildName.PLAIN), kernel)
    new = _of_kernel(measurement.build(BuildName.CCC), kernel)
    spills = f" ({new.spill_bytes} spilled)" if new.spill_bytes else ""
    return (
        context,
        f"{old.shared_bytes}{ARROW}{new.shared_bytes}",
        f"{old.registers}{ARROW}{new.registers}{spills}",
    )


def _phases(measurement: Measurement) -> Iterator[str]:
    """How often warps ran each part of the rewritten code."""
    phases = measurement.build(BuildName.CCC).phases
    for region in measurement.regions:
        ran = [p for p in phases if (p.kernel, p.region) == (region.kernel, region.region)]
        if ran:
            counts = ", ".join(f"{p.name} {p.warps:,}" for p in ran)
            yield f"{region.kernel}, {region.place}, {region.kind}: warps that ran {counts}"


def _of_kernel(build: BuildResult, kernel: str) -> KernelResources:
    return next(resources for resources in build.resources if resources.kernel == kernel)


def _notes(measurement: Measurement) -> Iterator[str]:
    others = [build for build in measurement.builds if build.name not in (BuildName.PLAIN, BuildName.CCC)]
    plain = measurement.build(BuildName.PLAIN)
    yield "before → after; before: plain nvcc on the source without pragmas."
    per = "context: bytes per task, one number per path; shared: bytes per block"
    yield f"{per}; registers: per thread, by ptxas."
    yield from _phases(measurement)
    for build in others:
        total = f"{build.counts.warp_instructions:,} warp instructions"
        if build.times is not None:
            total = f"{build.times.median:.3f} ms"
        yield f"{build.name} build (annotated, pass off): {total} in total"
    if plain.times is not None:
        yield "Times are medians, measured with CUDA events. For warp efficiency, run with `--on emulator`."
    else:
        yield "Counted in PTX by the emulator: no times, and ptxas may predicate code that branches here."
