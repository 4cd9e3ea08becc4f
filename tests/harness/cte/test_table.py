"""What a row of `cccopt bench cte` gains over others, and how fast it moves data."""

from __future__ import annotations

from cccopt.harness.cte.table import Cell, Copy, Counted, CteRow
from cccopt.harness.result import Issues, Times


def test_costs_and_gains_of_a_cell() -> None:
    def row(build: str, *milliseconds: float, kind: str = "policy", void: str = "") -> CteRow:
        counted = Counted(Issues(100, 1600, 1600), "emulator (PTX)", "small")
        return CteRow(build, kind, void, times=Times(milliseconds) if milliseconds else None, counted=counted)

    cell = Cell(
        "spmv",
        "rmat",
        "full",
        (
            row("one_per_lane", 8.0, 9.0, 8.0),
            row("sub_warp<2>", 2.0),
            row("sub_warp<4>", 1.0, void="wrong"),
            row("automatic", 1.6),
            row("edge_parallel", 0.5, kind="kernel form"),
            row("cusparse_alg1", 0.8, kind="vendor"),
        ),
        least_bytes=8_000_000,
    )
    best = (cell.best_sub_warp(), cell.best_policy(), cell.best_form(), cell.best_vendor())
    assert [one.build for one in best if one] == [
        "sub_warp<2>",
        "automatic",
        "edge_parallel",
        "cusparse_alg1",
    ]
    assert cell.speedups["automatic"] == 5.0
    assert "sub_warp<4>" not in cell.speedups
    assert cell.speedups_over_sub_warp["automatic"] == 1.25
    assert cell.gigabytes["one_per_lane"] == 1.0
    assert Copy(1_000_000_000, Times((0.5,))).gigabytes == 4000
    assert row("warp").cost == 100
