"""Figures of ``cccopt bench graphs`` (extra ``figures``): one for each algorithm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from cccopt.harness.graphs.table import GraphCell, GraphTable
from cccopt.harness.graphs.workload import PLAIN
from cccopt.harness.table import EMULATED
from cccopt.report.figures import bars, legend, module, save


def draw_graphs(table: GraphTable, folder: Path) -> tuple[Path, ...]:
    """Write ``graphs-ALGORITHM.svg`` for each algorithm into ``folder``: what each form gains over `PLAIN`, by graph,
    and the time of a whole run or, on the emulator, how full its warps are. Raises `CccError` (CCC092) without
    matplotlib.
    """
    by_algorithm: dict[str, list[GraphCell]] = {}
    for cell in table.cells:
        by_algorithm.setdefault(cell.algorithm, []).append(cell)
    figures: dict[Path, Callable[[], Any]] = {
        folder / f"graphs-{name}.svg": partial(_figure, f"{name}, {table.on}", cells, table.on != EMULATED)
        for name, cells in by_algorithm.items()
    }
    save(figures)
    return tuple(figures)


def _figure(title: str, cells: Sequence[GraphCell], timed: bool) -> Any:
    width = max(6.0, 2.0 + 2.6 * len(cells))
    figure = module("matplotlib.figure").Figure(figsize=(width, 7), layout="constrained")
    figure.suptitle(title)
    gains, below = figure.subplots(2, 1, sharex=True)
    forms = tuple(dict.fromkeys(row.form for cell in cells for row in cell.rows if not row.void))
    others = [form for form in forms if form != PLAIN]
    bars(gains, cells, others, lambda cell, form: cell.speedups.get(form), forms)
    gains.set_yscale("log")
    gains.axhline(1, color="black", linewidth=0.8)
    gains.set_ylabel(f"kernel time, {PLAIN} over form" if timed else f"warp instructions, {PLAIN} over form")
    bars(below, cells, forms, _elapsed if timed else _efficiency, forms)
    if timed:
        below.set_yscale("log")
        below.set_ylabel("whole run, ms")
    else:
        below.set_ylim(0, 100)
        below.set_ylabel("warp execution efficiency, %")
    below.set_xticks(range(len(cells)), [cell.input for cell in cells])
    legend(figure, (gains, below), forms)
    return figure


def _elapsed(cell: GraphCell, form: str) -> float | None:
    elapsed = cell.row(form).elapsed
    return None if elapsed is None else elapsed.median


def _efficiency(cell: GraphCell, form: str) -> float | None:
    counted = cell.row(form).counted
    return None if counted is None else 100 * counted.warp_efficiency
