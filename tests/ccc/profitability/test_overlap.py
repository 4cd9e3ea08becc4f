"""What a measured time says of issue, memory traffic and waiting, and what becomes of it."""

from __future__ import annotations

import pytest

from cccopt.ccc.profitability.elapsed import Elapsed
from cccopt.ccc.profitability.overlap import (
    ADDED_WAITING,
    CACHED,
    EARLY,
    FEW,
    MOST,
    Needs,
    Scales,
    scales,
    together,
)


def test_parts_that_overlap_take_about_as_long_as_the_largest() -> None:
    assert together(100.0, 10.0) == pytest.approx(100.0, rel=1e-3)
    assert together(100.0, 100.0) == pytest.approx(100.0 * 2 ** (1 / 6))
    assert together(0.0, 0.0) == 0.0
    assert together(50.0, 100.0, 100.0) == together(100.0, 50.0, 100.0)


def timed(slots: float, needs: Needs, resident: float = 1.0) -> Scales:
    """With warps resident for ``resident`` times the cycles that the code has them wait."""
    return scales(Elapsed(slots, resident * needs.waiting), needs)


@pytest.mark.parametrize(
    "needs",
    [
        Needs(30.0, 0.0, 20.0, 500.0),
        Needs(90.0, 0.0, 0.0, 1.0),
        Needs(1.0, 0.0, 94.0, 9000.0),
        Needs(0.0, 0.0, 0.0, 7.0),
    ],
)
def test_what_explains_less_than_the_time_is_filled_by_waiting(needs: Needs) -> None:
    time = timed(100.0, needs).time(needs)
    assert time.total == pytest.approx(100.0)
    assert (time.code, time.memory) == pytest.approx((needs.code, needs.memory), rel=0.3)
    assert time.waiting > 0
    # The less code and memory explain, the more it is.
    assert (time.waiting > max(needs.code, needs.memory)) == (max(needs.code, needs.memory) < 70)


def test_a_time_bounds_what_code_issues_and_memory_delivers() -> None:
    needs = Needs(300.0, 0.0, 500.0, 1000.0)
    time = timed(100.0, needs).time(needs)
    assert time.total == pytest.approx(100.0)
    assert time.code == time.memory < MOST * 100
    assert time.waiting == 0.0


def test_without_a_time_waiting_is_not_known() -> None:
    needs = Needs(30.0, 10.0, 20.0, 500.0)
    assert scales(Elapsed(), needs) == Scales()
    assert Scales().time(needs).waiting == 0.0
    assert Scales().time(needs).total == together(40.0, 20.0)


def test_what_waits_gains_by_the_runs_of_what_it_waits_for() -> None:
    before, after = Needs(10.0, 0.0, 5.0, 400.0), Needs(5.0, 8.0, 5.0, 100.0 - 8.0 * ADDED_WAITING)
    scaled = timed(100.0, before)
    assert scaled.time(before).total / scaled.time(after).total == pytest.approx(4.0, rel=0.01)
    busy = timed(10.5, before)
    assert busy.time(before).total / busy.time(after).total < 1.0  # it issues all the time


@pytest.mark.parametrize(
    ("resident", "waits"),
    [(4.0, 450.0), (1.0, 500.0), (0.5, 600.0), (0.1, 1400.0), (0.01, 400.0 + 100.0 / EARLY)],
)
def test_what_is_added_waits_as_long_if_loads_return_early(resident: float, waits: float) -> None:
    before, after = Needs(1.0, 0.0, 0.0, 400.0), Needs(1.0, 100.0 / ADDED_WAITING, 0.0, 400.0)
    scaled = timed(1000.0, before, resident)
    assert scaled.time(after).waiting / scaled.time(before).waiting == pytest.approx(waits / 400.0)


@pytest.mark.parametrize(("resident", "share"), [(2.0, 1.0), (0.8, 0.8), (0.1, CACHED)])
def test_loads_that_return_early_come_from_caches(resident: float, share: float) -> None:
    needs = Needs(1.0, 0.0, 30.0, 1000.0)
    assert timed(100.0, needs, resident).time(needs).memory == pytest.approx(30.0 * share, rel=0.05)


def test_the_time_of_few_slow_warps_stays_unless_lanes_share_it() -> None:
    before, after = Needs(1.0, 0.0, 1.0, 4000.0), Needs(0.5, 0.5, 1.0, 1000.0)
    for resident, gains in ((1.0, (4.0, 4.0)), (FEW * 2, (1.0, 4.0))):
        scaled = timed(100.0, before, resident)
        assert scaled.time(before).total == pytest.approx(100.0)
        found = [100.0 / scaled.time(after, expanded=expanded).total for expanded in (False, True)]
        assert found == pytest.approx(gains, rel=0.01)


@pytest.mark.parametrize("resident", [1.0, 4.0, 9.0, 25.0])
def test_what_warps_wait_for_one_another_stays(resident: float) -> None:
    before, after = Needs(0.0, 0.0, 0.0, 400.0), Needs(0.0, 0.0, 0.0, 100.0)
    scaled = timed(100.0, before, resident)
    explained = 100.0 / resident**0.5
    assert scaled.time(after).waiting == pytest.approx(explained / 4 + 100.0 - explained)
    assert scaled.time(after, expanded=True).waiting == pytest.approx(25.0)


def test_needs_of_several_iterations() -> None:
    assert Needs(4.0, 8.0, 12.0, 16.0) / 4 == Needs(1.0, 2.0, 3.0, 4.0)
    assert Elapsed(4.0, 8.0) / 4 == Elapsed(1.0, 2.0)


def test_few_slow_warps_take_as_long_in_parts_of_a_loop_as_in_all_of_it() -> None:
    needs, elapsed = Needs(10.0, 0.0, 10.0, 40.0), Elapsed(100.0, 40.0 * FEW * 2)
    assert scales(elapsed / 10, needs / 10).time(needs / 10).total == pytest.approx(10.0)
