"""What a reader is told of CTE's policies: gains, rates, where counts come from, what falls short."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from cccopt.harness.cte.table import Cell, Copy, Counted, CteRow, CteTable
from cccopt.harness.result import Issues, Times
from cccopt.harness.table import EMULATED, PROFILED, KernelRow
from cccopt.report.cte import print_cte
from cccopt.report.cte_figures import draw_cte

COPY = Copy(1_000_000_000, Times((0.5,) * 9))


def row(build: str, *milliseconds: float, kind: str = "policy", counted: Counted | None = None) -> CteRow:
    return CteRow(
        build,
        kind,
        launches=2,
        times=Times(milliseconds) if milliseconds else None,
        counted=counted,
        kernels=(KernelRow("fix_up", 0.1, 256, 90, 0, 0), KernelRow("k", 0.9, 256, 40, 4096, 8)),
    )


def counts(source: str = PROFILED, size: str = "full", lanes: int = 1600) -> Counted:
    return Counted(Issues(1000, 20 * lanes, 19 * lanes), source, size)


def lines_of(*cells: Cell, copy: Copy | None = COPY) -> list[str]:
    stream = io.StringIO()
    print_cte(CteTable("a GPU", "sm_90", 1, cells, copy, (("time", 1.0),)), Console(file=stream, width=170))
    return [" ".join(line.split()) for line in stream.getvalue().splitlines()]


CELL = Cell(
    "spmv",
    "rmat",
    "full",
    (
        row("one_per_lane", *[8.0] * 8, 8.8, counted=counts()),
        row("sub_warp<2>", *[4.0] * 9, counted=counts(EMULATED, "small")),
        row("sub_warp<4>", *[2.0] * 3, counted=counts(PROFILED, "small")),
        CteRow("warp", "policy", "3 wrong y", failed=True),
        CteRow("block", "policy", "scans take no blocks"),
        row("automatic", *[2.5] * 9),
        row("edge_parallel", *[1.0] * 9, kind="kernel form"),
        row("cusparse_alg1", *[1.25] * 9, kind="vendor"),
    ),
    least_bytes=8_000_000_000,
)


def test_rows_have_rates_gains_and_where_counts_come_from() -> None:
    lines = lines_of(CELL)
    # 8 GB in 8 ms, of a copy that reads and writes 4,000 GB a second.
    assert (
        "spmv rmat one_per_lane 8.000 10.0 1,000 25.0 1.00x 0.25x 100.0/95.0 1,000 40+8s 4,096 right" in lines
    )
    assert "sub_warp<2> 4.000 0.0 2,000 50.0 2.00x 0.50x 100.0/95.0e 1,000e 40+8s 4,096 right" in lines
    assert "sub_warp<4> 2.000- 0.0 4,000 100.0 4.00x 1.00x 100.0/95.0s 1,000s 40+8s 4,096 right" in lines
    assert "warp - WRONG" in lines
    assert "block - none" in lines
    assert "edge_parallel * 1.000 0.0 8,000 200.0 8.00x 2.00x 40+8s 4,096 right" in lines
    copied = "of the 4,000 GB/s (bytes read plus bytes written) that a copy of 1.0 GB reached"
    assert any(copied in line for line in lines)
    assert {"spmv warp: 3 wrong y", "spmv block: scans take no blocks"} < set(lines)


def test_automatic_stands_beside_the_best_of_each_kind() -> None:
    lines = lines_of(CELL)
    kinds = "sub_warp<4> 2.000 0.80x sub_warp<4> 2.000 0.80x edge_parallel 1.000 cusparse_alg1 1.250 1.25x"
    assert f"spmv rmat 2.500 3.20x {kinds}" in lines
    assert lines.count("spmv rmat: automatic reaches 0.80 of sub_warp<4>") == 2
    near = (row("one_per_lane", 1.0), row("sub_warp<2>", 0.98), row("warp", 0.96), row("automatic", 1.0))
    said = lines_of(Cell("spmv", "rmat", "full", near))
    assert not any("reaches" in line for line in said)
    assert "automatic: at least 0.97 of the best sub-warp width, 0.95 of the best policy" in said


def test_what_is_void_on_some_inputs_says_where() -> None:
    def cell(input: str, void: str) -> Cell:
        rows = (
            row("one_per_lane", 1.0),
            CteRow("warp", "policy", void, failed=True) if void else row("warp", 1.0),
        )
        return Cell("spmv", input, "full", rows)

    lines = lines_of(cell("a", "wrong y"), cell("b", ""), cell("c", "wrong y"), cell("d", "CCC095: a fault"))
    assert "spmv warp on a, c: wrong y" in lines
    assert "spmv warp on d: CCC095: a fault" in lines
    assert "warp - CCC095" in lines


def test_the_emulator_has_no_times() -> None:
    cell = Cell("spmv", "rmat", "small", (row("one_per_lane", counted=counts(EMULATED, "small")),))
    lines = lines_of(cell, copy=None)
    assert "spmv rmat one_per_lane 1.00x 100.0/95.0 1,000 40+8s 4,096 right" in lines


def test_a_figure_a_workload(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    other = Cell("bfs", "road", "full", (row("one_per_lane", 1.0),))
    table = CteTable("a GPU", "sm_90", 1, (CELL, other), COPY)
    paths = draw_cte(table, tmp_path / "new")
    assert [path.name for path in paths] == ["cte-spmv.svg", "cte-bfs.svg"]
    text = paths[0].read_text()
    assert all(f">{word}<" in text for word in ("rmat", "automatic", "cusparse_alg1", "speedup over 1-D"))
    assert ">warp<" not in text
    again = draw_cte(table, tmp_path / "again")
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in paths]
