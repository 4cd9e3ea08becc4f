"""What a reader is told of graph algorithms: rates, gains, and what is wrong."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from cccopt.harness.graphs.table import GraphCell, GraphRow, GraphTable
from cccopt.harness.result import Issues, Times, json_of
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


def test_rates_are_of_edges_that_count_and_gains_over_plain() -> None:
    stream = io.StringIO()
    print_graphs(GraphTable("a GPU", "sm_90", 1, (CELL,)), Console(file=stream, width=132))
    lines = [" ".join(line.split()) for line in stream.getvalue().splitlines()]
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
    counted = GraphRow("plain", iterations=7, launches=7, counted=Issues(100, 1600, 800))
    cell = GraphCell("bfs", "rmat", "small", 60, (counted,))
    (path,) = draw_graphs(GraphTable(EMULATED, "sm_90", 1, (cell,)), tmp_path)
    assert ">warp execution efficiency, %</text>" in path.read_text(encoding="utf-8")
