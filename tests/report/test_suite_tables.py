"""What a reader is told of all builds: means, what falls short, where counters differ."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from cccopt.harness.result import Counts, Issues, LaunchResult, Times
from cccopt.harness.table import BuildRow, Context, KernelRow, SampleRows, Table
from cccopt.report.suite import geometric_mean, print_suite

SHAPE = ((1, 1, 1), (32, 1, 1))


def row(
    build: str,
    *milliseconds: float,
    counts: tuple[int, int] = (100, 1600),
    profiled: Issues | None = None,
    as_timed: Issues | None = None,
    same: bool = False,
) -> BuildRow:
    instructions, lanes = counts
    emulated = Counts(instructions, lanes, lanes, useful_lanes=lanes // 2)
    launch = LaunchResult("one", "k", *SHAPE, times=Times(milliseconds) if milliseconds else None)
    if not milliseconds:
        launch = LaunchResult("one", "k", *SHAPE, counts=emulated)
    return BuildRow(
        build,
        launches=(launch,),
        emulated_launches=(("one", emulated),),
        profiled=profiled,
        profiled_as_timed=as_timed,
        kernels=(
            KernelRow("small", 0.1, 64, 255, 0, 0, 0.1, ("registers",)),
            KernelRow("k", 0.9, 256, 40, 4096, 8, 0.75, ("registers", "shared memory")),
        ),
        contexts=(Context("k", "k.cu:7", "if", 8, 4), Context("k", "k.cu:9", "if", 12, 12)),
        same_as_plain=same,
    )


def printed(*samples: SampleRows) -> list[str]:
    stream = io.StringIO()
    table = Table("CCC", "a GPU", "sm_90", 1, "small", samples, (("build", 1.0),))
    print_suite(table, Console(file=stream, width=132))
    return [" ".join(line.split()) for line in stream.getvalue().splitlines()]


def test_rows_say_what_each_build_costs() -> None:
    lines = printed(
        SampleRows(
            "bfs",
            "full",
            (
                row("plain", *[4.0] * 8, 4.4),
                row("marked", *[4.0] * 9, profiled=Issues(1000, 31000, 30000)),
                row("always", *[2.0] * 9, profiled=Issues(1, 2, 3), as_timed=Issues(3000, 93000, 90000)),
                row("auto", *[5.0] * 3, same=True),
                BuildRow("handwritten", void="CCC046: a marked path"),
            ),
        )
    )
    needs = "40+8s 16 75 reg+smem 8→4+12"
    # Counted by the emulator: an e. By ncu, but at the small size: an s.
    assert f"bfs plain 4.000 10.0 1.00x 50.0/50.0e 25.0 100e {needs} right" in lines
    assert f"marked 4.000 0.0 1.00x 96.9/93.8s 25.0 1,000s {needs} right" in lines
    assert f"always 2.000 0.0 2.00x 96.9/93.8 25.0 3,000 {needs} right" in lines
    assert (
        "active/on, warp instr.: ncu (SASS) at the timed size (full); s: ncu (SASS) at size small; "
        "e: emulator (PTX) at size small."
    ) in lines
    assert "useful: emulator (PTX) at size small." in lines
    # Fewer repeats than nine are marked, equal code is told, and a loss is one.
    assert f"auto 5.000* 0.0 0.80x LOSS 50.0/50.0e 25.0 100e {needs} = plain" in lines
    assert "handwritten - CCC046" in lines
    assert "bfs handwritten: CCC046: a marked path" in lines
    assert "bfs: auto reaches 0.40 of always" in lines


def test_means_are_over_the_thesis_programs_that_are_there() -> None:
    def sample(name: str, always: float) -> SampleRows:
        fast = row("always", always, counts=(100, 3000))
        # The mean of both is 24 of 32 lanes; what was counted at the small size has no part in it.
        hand = row("handwritten", 2.0, profiled=Issues(1, 1, 1), as_timed=Issues(10, 280, 200))
        return SampleRows(name, "full", (row("plain", 4.0), fast, hand))

    lines = printed(sample("bfs", 2.0), sample("ff", 0.5), sample("walk", 0.1))
    assert (
        "always over plain (time), 2 of the thesis' 8 programs: geometric mean 4.00x, arithmetic 5.00x, 2.00x to 8.00x"
        in lines
    )
    small = "over 2 of the thesis' 8 programs; 2 of them counted at size small"
    assert f"plain: warp efficiency 50.0 % (mean of `active` and `on`, {small})" in lines
    assert f"always: warp efficiency 93.8 % (mean of `active` and `on`, {small})" in lines
    assert (
        "handwritten: warp efficiency 75.0 % (mean of `active` and `on`, over 2 of the thesis' 8 programs)"
        in lines
    )
    assert not any("reaches" in line for line in lines)
    slow = SampleRows("ff", "full", (row("plain", 4.0), row("always", 2.1), row("handwritten", 2.0)))
    assert "ff: always reaches 0.95 of handwritten" in printed(slow)
    assert geometric_mean([1.0, 4.0, 16.0]) == pytest.approx(4.0)


def test_counters_that_differ_by_more_than_five_points_are_told() -> None:
    rows = (
        row("plain", 1.0, profiled=Issues(100, 1600, 1440), as_timed=Issues(9000, 90000, 90000)),
        row("always", 1.0, counts=(100, 1600), profiled=Issues(100, 1600, 1792)),
    )
    lines = printed(SampleRows("bfs", "full", rows))
    assert "ncu minus emulator, predicated-on lanes, points, size small" in lines
    assert "bfs -5.0 +6.0 FAR" in lines


def test_on_the_emulator_instructions_stand_in_for_time() -> None:
    rows = (row("plain"), row("always", counts=(40, 1200)))
    lines = printed(SampleRows("bfs", "small", rows))
    assert "always 2.50x 93.8/93.8 46.9 40 40+8s 16 75 reg+smem 8→4+12 right" in lines
    assert not any("warp instr.:" in line or "of them" in line for line in lines)
    assert not any("minus emulator" in line for line in lines)
