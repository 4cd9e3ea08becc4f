"""Counts for ``cccopt bench graphs --on gpu --counters``: the forms that were right run again under Nsight Compute.

By then, everything is timed. Counting replays each launch, so a graph on which a form has many launches is counted at
size `SMALL`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from cccopt.harness import ncu
from cccopt.harness.builds import cubin_file, first_of
from cccopt.harness.csr.generators import GENERATORS
from cccopt.harness.graphs.plan import Job
from cccopt.harness.graphs.table import GraphCell, GraphTable
from cccopt.harness.graphs.workload import SMALL
from cccopt.harness.result import Traffic
from cccopt.workers.queue import Item, Worker, WorkerEnded, answers

SECONDS = 60.0
"""The time limit of each form of an algorithm on a graph under Nsight Compute, on average."""

COUNTED_LAUNCHES = 256
"""A form with more launches is counted at size `SMALL`: Nsight Compute takes tens of milliseconds for each."""


def with_counts(
    table: GraphTable,
    todo: Sequence[Job],
    codes: Sequence[Mapping[str, bytes]],
    sources: int,
    workers: Sequence[Worker],
    on_progress: Callable[[GraphTable], None],
) -> GraphTable:
    """``table`` with counts, or with the reason why there are none; ``todo`` and ``codes`` (by form) are those of its
    cells.

    ``on_progress`` gets the table so far after each cell.
    """
    cells = [_if_countable(cell) for cell in table.cells]
    with tempfile.TemporaryDirectory(prefix="cccopt-") as folder:
        runs = {
            number: _run(job, cell, code, table.seed, sources, Path(folder, str(number)))
            for number, (job, cell, code) in enumerate(zip(todo, cells, codes, strict=True))
            if _right(cell) and not cell.uncounted
        }
        items = [
            Item(todo[number].title, ncu.profile, (run, SECONDS * len(run.builds)))
            for number, run in runs.items()
        ]
        with answers(items, workers) as found:
            for (number, run), answer in zip(runs.items(), found, strict=True):
                try:
                    profiled = answer.result()
                except WorkerEnded as problem:
                    profiled = ncu.Profiled(why=first_of(problem))
                cells[number] = _counted(cells[number], run, profiled)
                on_progress(replace(table, cells=tuple(cells)))
    return replace(table, cells=tuple(cells))


def _right(cell: GraphCell) -> list[str]:
    return [row.form for row in cell.rows if not row.void]


def _has_many(cell: GraphCell) -> bool:
    return any(row.launches > COUNTED_LAUNCHES for row in cell.rows)


def _if_countable(cell: GraphCell) -> GraphCell:
    """``cell``, with the reason if it cannot be counted: it has many launches, and its file has no smaller size."""
    if cell.input in GENERATORS or not _has_many(cell):
        return cell
    return replace(cell, uncounted=f"more than {COUNTED_LAUNCHES} launches, and a file has no smaller size")


def _run(
    job: Job, cell: GraphCell, code: Mapping[str, bytes], seed: int, sources: int, folder: Path
) -> ncu.ProfiledRun:
    """The run to count, with its code in ``folder``."""
    folder.mkdir()
    for form, cubin in code.items():
        cubin_file(folder, cell.algorithm, form).write_bytes(cubin)
    # The forms were right when they were timed, maybe at another size.
    options = ("--graph", job.input, "--sources", str(sources), "--unchecked")
    size = SMALL if _has_many(cell) else cell.size
    return ncu.ProfiledRun(job.name, _right(cell), folder, size, seed, options, ncu.TRAFFIC)


def _counted(cell: GraphCell, run: ncu.ProfiledRun, profiled: ncu.Profiled) -> GraphCell:
    found = {form: counts for form, counts in profiled.counts.items() if isinstance(counts, Traffic)}
    rows = tuple(replace(row, counted=found.get(row.form)) for row in cell.rows)
    missing = [form for form in run.builds if form not in found]
    why = profiled.why or (f"the run ended at `{missing[0]}`" if missing else "")
    return replace(cell, rows=rows, counted_size=run.size if found else "", uncounted=why)
