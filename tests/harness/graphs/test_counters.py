"""Which runs of graph algorithms Nsight Compute is asked about, and what becomes of its answers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from cccopt.harness import ncu
from cccopt.harness.choices import Platform
from cccopt.harness.graphs import counters
from cccopt.harness.graphs.plan import GraphPlan, jobs
from cccopt.harness.graphs.table import GraphCell, GraphRow, GraphTable
from cccopt.harness.result import Times, Traffic
from cccopt.workers.queue import HERE

FORMS = ("plain", "queue", "pull")
COUNTED = Traffic(1000, 16_000, 15_000, sectors=80)


def timed(*inputs: str, launches: int = 7) -> GraphTable:
    """A run of `bfs` at size `full` in which `pull` was wrong."""
    rows = (
        GraphRow("plain", iterations=7, launches=7, times=Times((4.0,))),
        GraphRow("queue", iterations=7, launches=launches, times=Times((2.0,))),
        GraphRow("pull", "3 wrong levels", failed=True),
    )
    cells = tuple(GraphCell("bfs", input, "full", 60, rows) for input in inputs)
    return GraphTable("a GPU", "sm_90", 3, cells)


def counted(
    table: GraphTable, monkeypatch: pytest.MonkeyPatch, answers: Mapping[str, Traffic], why: str = ""
) -> tuple[GraphTable, list[ncu.ProfiledRun], list[GraphTable]]:
    """The table with counts, the runs that ncu was asked about, and what was told after each."""
    runs: list[ncu.ProfiledRun] = []
    told: list[GraphTable] = []

    def profile(run: ncu.ProfiledRun, seconds: float) -> ncu.Profiled:
        assert seconds == len(run.builds) * counters.SECONDS
        assert (run.cubins / "bfs.queue.cubin").read_bytes() == b"code of queue"
        runs.append(run)
        return ncu.Profiled(answers, why)

    monkeypatch.setattr(counters.ncu, "profile", profile)
    inputs = tuple(cell.input for cell in table.cells)
    todo = jobs(GraphPlan(("bfs",), inputs, FORMS, on=Platform.GPU))
    codes = [{form: f"code of {form}".encode() for form in FORMS}] * len(todo)
    return counters.with_counts(table, todo, codes, 2, HERE, told.append), runs, told


def test_forms_that_were_right_are_counted_at_the_size_that_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    table, runs, told = counted(timed("rmat", "road"), monkeypatch, dict.fromkeys(FORMS[:2], COUNTED))
    assert [(run.size, run.builds, run.seed) for run in runs] == [("full", ["plain", "queue"], 3)] * 2
    assert runs[1].options == ("--graph", "road", "--sources", "2", "--unchecked")
    assert runs[0].metrics == ncu.TRAFFIC
    for cell in table.cells:
        assert (cell.counted_size, cell.uncounted) == ("full", "")
        assert [row.counted for row in cell.rows] == [COUNTED, COUNTED, None]
        # Times stay what rows are held against each other by.
        assert cell.speedups == {"plain": 1, "queue": 2}
    assert [[cell.counted_size for cell in one.cells] for one in told] == [["full", ""], ["full", "full"]]


def test_many_launches_are_counted_at_size_small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "graph.el"
    file.write_text("0 1\n")
    many = timed("road", str(file), launches=counters.COUNTED_LAUNCHES + 1)
    table, (run,), _ = counted(many, monkeypatch, dict.fromkeys(FORMS[:2], COUNTED))
    assert (run.size, run.options[1]) == ("small", "road")
    road, of_file = table.cells
    assert (road.size, road.counted_size) == ("full", "small")
    assert of_file.counted_size == ""
    assert of_file.uncounted == "more than 256 launches, and a file has no smaller size"


def test_what_is_not_counted_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    (cell,) = counted(timed("rmat"), monkeypatch, {}, "no ncu on PATH")[0].cells
    assert (cell.counted_size, cell.uncounted) == ("", "no ncu on PATH")
    (cell,) = counted(timed("rmat"), monkeypatch, {"plain": COUNTED})[0].cells
    assert (cell.counted_size, cell.uncounted) == ("full", "the run ended at `queue`")
