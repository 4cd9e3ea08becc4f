"""The sweep: points from labels, tables by length and lanes, figures that hold every point."""

from __future__ import annotations

import io
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from cccopt.diagnostic import CccError
from cccopt.harness.result import Counts, LaunchResult, Times
from cccopt.harness.sweep import SweepPoint, plan, points
from cccopt.harness.table import BuildRow, SampleRows, Table
from cccopt.report.figures import draw
from cccopt.report.sweep import print_sweep

SHAPE = ((1, 1, 1), (32, 1, 1))
PLACES = [(n, k) for n in (5, 20, 320) for k in (8, 24)]


def row(build: str, cost: dict[tuple[int, int], int], *, timed: bool = True) -> BuildRow:
    labels = [(f"N={n} k={k}", value) for (n, k), value in cost.items()]
    counts = [
        (label, Counts(value, 16 * value, 16 * value, useful_lanes=8 * value)) for label, value in labels
    ]
    launches = [
        LaunchResult(label, "path", *SHAPE, times=Times((float(value),) * 9))
        if timed
        else LaunchResult(label, "path", *SHAPE, counts=count)
        for (label, value), (_, count) in zip(labels, counts, strict=True)
    ]
    return BuildRow(build, launches=tuple(launches), emulated_launches=tuple(counts))


def table(*, timed: bool = True) -> Table:
    rows = (
        row("plain", dict.fromkeys(PLACES, 100), timed=timed),
        row("always", {(n, k): 1000 // n for n, k in PLACES}, timed=timed),
        row("auto", {(n, k): 100 if n == 5 else 60 for n, k in PLACES}, timed=timed),
        BuildRow("handwritten", void="there is no bench/handwritten/sensitivity.cu"),
    )
    return Table("sensitivity", "a GPU", "sm_90", 1, "sweep", (SampleRows("sensitivity", "full", rows),))


@pytest.mark.parametrize("timed", [True, False])
def test_points_are_over_plain_at_the_same_place(timed: bool) -> None:
    found = points(table(timed=timed))
    assert len(found) == 3 * len(PLACES)
    speedups = {(p.build, p.length, p.lanes): p.speedup for p in found}
    assert speedups["plain", 20, 8] == 1.0
    assert speedups["always", 5, 24] == 0.5
    assert speedups["always", 320, 8] == pytest.approx(100 / 3)
    assert {p.milliseconds is None for p in found} == {not timed}


def test_the_table_has_a_row_for_each_length_and_build_and_tells_where_auto_falls_short() -> None:
    stream = io.StringIO()
    print_sweep(table(), points(table()), Console(file=stream, width=132))
    lines = [" ".join(line.split()) for line in stream.getvalue().splitlines()]
    assert "5 always 0.50 0.50" in lines
    assert "auto 1.00 1.00" in lines
    assert "320 plain 50/25 50/25" in lines
    assert "handwritten: there is no bench/handwritten/sensitivity.cu" in lines
    said = " ".join(lines)
    assert (
        "auto reaches 0.97 of the better of plain and always except at N=20 k=8 0.83, N=20 k=24 0.83, "
        in said
    )
    assert said.endswith("N=320 k=8 0.05, N=320 k=24 0.05")


def drawn(path: Path) -> list[str]:
    """The texts of a figure."""
    return [text.text or "" for text in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]


def test_figures_show_the_builds_that_there_are(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    lanes, lengths = draw(points(table()), "a GPU", tmp_path / "new")
    assert {"plain", "always", "auto", "milliseconds"} <= set(drawn(lanes))
    assert "handwritten" not in drawn(lanes)
    assert {"always", "auto", "8 of 32 lanes take the path (dashed: 32/8)"} <= set(drawn(lengths))
    assert "plain" not in drawn(lengths)
    before = lanes.read_bytes()
    assert draw(points(table()), "a GPU", tmp_path / "new")[0].read_bytes() == before
    assert "warp instructions (emulator)" in drawn(draw(points(table(timed=False)), "x", tmp_path)[0])


def test_no_matplotlib_is_one_clear_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(CccError, match=r"CCC092.*matplotlib(?s:.*)figures"):
        draw([SweepPoint("plain", 20, 8, 1.0, 0.0, None, 1.0)], "x", tmp_path)


def test_auto_at_a_point_is_the_build_for_its_lanes() -> None:
    whole = table()
    (sample,) = whole.samples
    # One is right at 8 lanes and the other at 24; elsewhere they are not looked at.
    eight, more = (
        row(f"auto k={k}", {(n, lanes): 50 if lanes == k else 400 for n, lanes in PLACES}) for k in (8, 24)
    )
    plain, always, _, none = sample.rows
    for autos in ((eight, more), (more, eight)):
        found = points(replace(whole, samples=(replace(sample, rows=(plain, always, *autos, none)),)))
        assert {(p.length, p.lanes): p.speedup for p in found if p.build == "auto"} == dict.fromkeys(
            PLACES, 2.0
        )
    void = BuildRow("auto k=24", void="CCC030: no")
    found = points(replace(whole, samples=(replace(sample, rows=(plain, always, eight, void)),)))
    assert {p.lanes for p in found if p.build == "auto"} == {8}


def test_a_sweep_builds_auto_for_each_number_of_lanes() -> None:
    autos = tuple(f"auto k={k}" for k in (1, 4, 8, 16, 24, 31))
    assert plan("gpu").builds == ("plain", "always", *autos, "handwritten")
    assert plan(size="small").builds == ("plain", "always", "auto k=4", "auto k=16", "handwritten")


def test_a_sweep_runs_the_size_it_is_told() -> None:
    assert (plan().size, plan().counted_size) == ("sweep", "sweep")
    assert plan(size="demo").size == "demo"
    assert plan("gpu").size is None


def test_a_sweep_does_not_ask_nsight_compute() -> None:
    assert not plan("gpu").profile
