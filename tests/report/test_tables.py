"""What a reader of the table is told: totals, losses and wrong results."""

from __future__ import annotations

import io

from rich.console import Console

from cccopt.harness.choices import BuildName
from cccopt.harness.result import (
    BuildResult,
    Counts,
    KernelResources,
    LaunchResult,
    Measurement,
    RewrittenRegion,
    Times,
)
from cccopt.report.tables import print_measurement

SHAPE = ((1, 1, 1), (32, 1, 1))


def build(name: str, *launches: tuple[str, str, Counts | Times], registers: int = 16) -> BuildResult:
    return BuildResult(
        name,
        tuple(
            LaunchResult(
                label,
                kernel,
                *SHAPE,
                counts=value if isinstance(value, Counts) else None,
                times=value if isinstance(value, Times) else None,
            )
            for label, kernel, value in launches
        ),
        tuple(
            KernelResources(kernel, registers, 0 if name == BuildName.PLAIN else 1024, 0)
            for kernel in dict.fromkeys(kernel for _, kernel, _ in launches)
        ),
    )


def printed(*builds: BuildResult, remarks: tuple[str, ...] = ()) -> str:
    regions = (
        RewrittenRegion("k", 1, "for", "k.cu:6"),
        RewrittenRegion("k", 2, "if", "k.cu:7", 4),
        RewrittenRegion("k", 3, "for variable", "k.cu:9", 12),
    )
    measurement = Measurement("w", "small", 1, "sm_90", "emulator (PTX)", builds, regions, remarks)
    stream = io.StringIO()
    print_measurement(measurement, Console(file=stream, width=130))
    return stream.getvalue()


def line(text: str, start: str) -> str:
    return next(" ".join(x.split()) for x in text.splitlines() if x.strip().startswith(start))


def test_a_row_that_issues_more_is_a_loss_whatever_its_efficiency() -> None:
    before = build(
        BuildName.PLAIN,
        ("one", "k", Counts(1000, 3200, 3200, useful_lanes=3200)),
        ("two", "k", Counts(100, 3200, 3200, useful_lanes=3200)),
    )
    after = build(
        BuildName.CCC,
        ("one", "k", Counts(500, 16000, 16000, useful_lanes=9600)),
        ("two", "k", Counts(200, 6400, 6400, useful_lanes=3200)),
    )
    text = printed(before, after, remarks=("remark[CCC041]: something",))
    assert line(text, "one") == "one 1,000 → 500 -50.0 % 10.0 → 100.0 10.0 → 100.0 10.0 → 60.0"
    assert "200 +100.0 % LOSS" in line(text, "two")
    assert line(text, "total").startswith("total 1,100 → 700 -36.4 % 18.2 → 100.0")
    assert line(text, "total").endswith("4 + 12 0 → 1024 16 → 16")
    assert "remark[CCC041]: something" in text


def test_kernels_that_differ_have_their_own_resources_and_no_total() -> None:
    rows = (
        ("N=5", "path_5", Counts(10, 10, 10, useful_lanes=10)),
        ("N=80", "k", Counts(10, 10, 10, useful_lanes=10)),
    )
    text = printed(build(BuildName.PLAIN, *rows), build(BuildName.CCC, *rows, registers=24))
    assert line(text, "N=5").endswith("- 0 → 1024 16 → 24")
    assert line(text, "N=80").endswith("4 + 12 0 → 1024 16 → 24")
    assert "+0.0 %" in line(text, "N=5")
    assert not any(x.strip().startswith("total") for x in text.splitlines())


def test_times_give_a_speedup_and_a_slower_kernel_is_a_loss() -> None:
    before = build(
        BuildName.PLAIN, ("fast", "k", Times((2.0, 2.0, 2.2))), ("slow", "k", Times((1.0, 1.0, 1.0)))
    )
    after = build(
        BuildName.CCC, ("fast", "k", Times((1.0, 1.0, 1.0))), ("slow", "k", Times((1.25, 1.25, 1.25)))
    )
    text = printed(before, after)
    assert line(text, "fast") == "fast 2.000 → 1.000 2.00x 10.0 %"
    assert line(text, "slow") == "slow 1.000 → 1.250 0.80x LOSS 0.0 %"
    assert line(text, "total").startswith("total 3.000 → 2.250 1.33x")
    assert "Times are medians, measured with CUDA events" in text


def test_a_wrong_result_voids_the_table() -> None:
    before = build(BuildName.PLAIN, ("one", "k", Counts(1000, 3200, 3200, useful_lanes=3200)))
    text = printed(before, BuildResult(BuildName.CCC, (), (), wrong="levels[3] is 2, not 1"))
    assert "wrong result of the ccc build: levels[3] is 2, not 1" in text
    assert "1,000" not in text
