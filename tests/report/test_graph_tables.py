"""What a reader is told of graph algorithms: rates, gains, and what is wrong."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from cccopt.harness.graphs.table import GraphCell, GraphRow, GraphTable
from cccopt.harness.result import Times, Traffic, json_of
from cccopt.harness.table import EMULATED
from cccopt.report.graph_figures import draw_graphs
from cccopt.report.graphs import print_graphs

CELL = GraphCell(
    "bfs",
    "rmat",
    "full",
    6_000_000,
    (
        GraphRow("plain", iterations=7, launches=7, times=Times((4.0, 4.0, 4.4)), elapsed=Times((9.0,))),
        GraphRow("ccc", "CCC030: not so"),
        GraphRow("queue", iterations=7, launches=14, times=Times((2.0,) * 3)),
        GraphRow("pull", "3 wrong levels", failed=True),
        GraphRow("mask", iterations=7, launches=7, times=Times((8.0,) * 3)),
    ),
)


def shown(table: GraphTable, width: int) -> list[str]:
    """The lines that are printed, with one blank between words."""
    stream = io.StringIO()
    print_graphs(table, Console(file=stream, width=width))
    return [" ".join(line.split()) for line in stream.getvalue().splitlines()]


def test_rates_are_of_edges_that_count_and_gains_over_plain() -> None:
    lines = shown(GraphTable("a GPU", "sm_90", 1, (CELL,)), 132)
    assert lines[2:7] == [
        "bfs rmat plain 7 7 4.000 10.0 9.000 1,500 1.00x right",
        "ccc - none",
        "queue 7 14 2.000 0.0 - 3,000 2.00x right",
        "pull - WRONG",
        "mask 7 7 8.000 0.0 - 750 0.50x right",
    ]
    assert any("without the gaps between launches" in line for line in lines)
    assert any("bc counts those twice" in line for line in lines)
    assert "bfs rmat ccc: CCC030: not so" in lines
    assert "bfs rmat pull: 3 wrong levels" in lines


def test_counts_stand_beside_times_and_say_their_size() -> None:
    counted = Traffic(1_000_000, 16_000_000, 15_200_000, sectors=500_000)
    rows = (replace(CELL.rows[0], counted=counted), *CELL.rows[1:])
    cells = (
        replace(CELL, rows=rows, counted_size="full", uncounted="the run ended at `queue`"),
        replace(CELL, input="road", rows=rows, counted_size="small"),
        replace(CELL, input="g.mtx", uncounted="no ncu on PATH"),
        replace(CELL, input="h.mtx", uncounted="no ncu on PATH"),
    )
    lines = shown(GraphTable("a GPU", "sm_90", 1, cells), 190)
    assert lines[2:5] == [
        "bfs rmat plain 7 7 4.000 10.0 9.000 1,500 50.0/47.5 1,000,000 16,000 1.00x right",
        "ccc - none",
        "queue 7 14 2.000 0.0 - 3,000 2.00x right",
    ]
    assert "50.0/47.5s 1,000,000s 16,000s 1.00x right" in lines[7]
    assert any("counted by ncu (SASS); s: at size small" in line for line in lines)
    assert "no counts from ncu of bfs rmat: the run ended at `queue`" in lines
    assert "no counts from ncu of bfs g.mtx, bfs h.mtx: no ncu on PATH" in lines
    # A reason that holds for all is told once, and there are no columns without counts.
    lines = shown(GraphTable("a GPU", "sm_90", 1, cells[2:]), 190)
    assert "no counts from ncu: no ncu on PATH" in lines
    assert not any("active/on" in line for line in lines)


def test_json_has_the_ratios() -> None:
    (cell,) = json_of(GraphTable("a GPU", "sm_90", 1, (CELL,)))["cells"]
    assert cell["mteps"] == {"plain": 1500, "queue": 3000, "mask": 750}
    assert cell["speedups"] == {"plain": 1, "queue": 2, "mask": 0.5}


def test_figures_show_gains_and_whole_runs(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    table = GraphTable("a GPU", "sm_90", 1, (CELL,))
    (path,) = draw_graphs(table, tmp_path / "new")
    text = path.read_text(encoding="utf-8")
    assert path.name == "graphs-bfs.svg"
    assert all(f">{word}</text>" in text for word in ("bfs, a GPU", "rmat", "queue", "mask", "whole run, ms"))
    # Forms without a time have no bar.
    assert not any(f">{word}</text>" in text for word in ("ccc", "pull"))
    (again,) = draw_graphs(table, tmp_path / "again")
    assert again.read_bytes() == path.read_bytes()
    counted = GraphRow("plain", iterations=7, launches=7, counted=Traffic(100, 1600, 800))
    cell = GraphCell("bfs", "rmat", "small", 60, (counted,))
    (path,) = draw_graphs(GraphTable(EMULATED, "sm_90", 1, (cell,)), tmp_path)
    assert ">warp execution efficiency, %</text>" in path.read_text(encoding="utf-8")
