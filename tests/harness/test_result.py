"""Sums before ratios, and JSON that says the ratios too."""

from __future__ import annotations

import json

import pytest

from cccopt.harness.choices import BuildName
from cccopt.harness.result import BuildResult, Counts, LaunchResult, Measurement, Times, as_json

SHAPE = ((1, 1, 1), (32, 1, 1))


def launch(counts: Counts | None = None, times: Times | None = None) -> LaunchResult:
    return LaunchResult("a", "kernel", *SHAPE, counts=counts, times=times)


def test_efficiency_over_launches_is_a_ratio_of_sums() -> None:
    build = BuildResult(
        BuildName.PLAIN,
        (launch(Counts(10, 320, 300, useful_lanes=160)), launch(Counts(90, 90, 90, useful_lanes=45))),
        (),
    )
    assert build.counts == Counts(100, 410, 390, useful_lanes=205)
    assert build.counts.warp_efficiency == pytest.approx(410 / 3200)
    assert build.counts.warp_efficiency_pred_on == pytest.approx(390 / 3200)
    assert build.counts.useful_efficiency == pytest.approx(205 / 3200)
    assert Counts().warp_efficiency == 0.0


def test_times_are_summed_repeat_by_repeat_before_the_median() -> None:
    build = BuildResult(
        BuildName.PLAIN, (launch(times=Times((1.0, 5.0, 2.0))), launch(times=Times((10.0, 1.0, 3.0)))), ()
    )
    assert build.times == Times((11.0, 6.0, 5.0))
    assert build.times is not None
    assert build.times.median == 6.0
    assert build.times.noise == pytest.approx(1.0)
    assert Times((4.0, 1.0, 3.0, 2.0)).median == 2.5


def test_repeats_that_do_not_match_are_an_error() -> None:
    with pytest.raises(ValueError, match="zip"):
        Times((1.0,)) + Times((1.0, 2.0))


def test_json_has_a_schema_version_and_the_ratios() -> None:
    wrong = BuildResult(BuildName.CCC, (), (), wrong="levels[3] is 2, not 1")
    right = BuildResult(
        BuildName.PLAIN,
        (launch(Counts(10, 320, 300, useful_lanes=160)), launch(times=Times((1.0, 2.0, 3.0)))),
        (),
    )
    measurement = Measurement("bfs", "small", 1, "sm_90", "emulator", (right, wrong))
    assert not measurement.right
    assert measurement.build(BuildName.CCC) is wrong
    data = json.loads(json.dumps(as_json([measurement])))
    assert data["schema"] == 1
    plain, ccc = data["measurements"][0]["builds"]
    assert plain["launches"][0]["counts"]["useful_efficiency"] == 0.5
    assert plain["launches"][1]["times"]["median"] == 2.0
    assert plain["counts"]["warp_instructions"] == 10
    assert ccc["wrong"] == "levels[3] is 2, not 1"
