"""Figures of ``cccopt bench cte``, one per workload, after 4.21-4.25 of F. Khorasani's thesis (extra ``figures``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from cccopt.harness.cte.table import Cell, CteTable
from cccopt.harness.cte.workload import ONE_PER_LANE
from cccopt.report.figures import bars, legend, module, save

LARGE = 20.0
"""If a speedup exceeds this, the axis is logarithmic."""


def draw_cte(table: CteTable, folder: Path) -> tuple[Path, ...]:
    """Write ``cte-WORKLOAD.svg`` for each workload into ``folder``: what each build gains over one task per lane, and
    how full its warps are, by input. Raises `CccError` (CCC092) without matplotlib.
    """
    by_workload: dict[str, list[Cell]] = {}
    for cell in table.cells:
        by_workload.setdefault(cell.workload, []).append(cell)
    figures: dict[Path, Callable[[], Any]] = {
        folder / f"cte-{name}.svg": partial(_figure, f"{name}, {table.on}", cells, table.copy is not None)
        for name, cells in by_workload.items()
    }
    save(figures)
    return tuple(figures)


def _figure(title: str, cells: Sequence[Cell], timed: bool) -> Any:
    width = max(6.0, 1.0 + 2.6 * len(cells))
    figure = module("matplotlib.figure").Figure(figsize=(width, 7), layout="constrained")
    figure.suptitle(title)
    gains, shares = figure.subplots(2, 1, sharex=True)
    builds = tuple(dict.fromkeys(row.build for cell in cells for row in cell.rows if not row.void))
    others = [build for build in builds if build != ONE_PER_LANE]
    bars(gains, cells, others, lambda cell, build: cell.speedups.get(build), builds)
    if any(gain > LARGE for cell in cells for gain in cell.speedups.values()):
        gains.set_yscale("log")
    gains.axhline(1, color="black", linewidth=0.8)
    gains.set_ylabel("speedup over 1-D" if timed else "warp instructions, 1-D over build")
    bars(shares, cells, builds, _efficiency, builds)
    shares.set_ylabel("warp execution efficiency, %")
    shares.set_ylim(0, 100)
    shares.set_xticks(range(len(cells)), [cell.input for cell in cells])
    legend(figure, (gains, shares), builds)
    return figure


def _efficiency(cell: Cell, build: str) -> float | None:
    row = cell.row(build)
    return None if row is None or row.counted is None else 100 * row.counted.issues.warp_efficiency
