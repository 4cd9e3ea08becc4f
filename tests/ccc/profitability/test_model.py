"""The model of gains against what was measured on an H200, and the choice among paths."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import pytest

from cccopt.ccc.profitability import model
from cccopt.ccc.profitability.elapsed import Elapsed
from cccopt.ccc.profitability.flows import (
    FOUND,
    LANES,
    TAKEN,
    LoopFlow,
    PathFlow,
    SortedGroup,
    any_of,
    longest,
    slowest,
)
from cccopt.ccc.profitability.model import Limit, break_even, choose, gain, slots
from tests.ccc.profitability.measured import SENSITIVITY, reaches_the_bar

ALL = frozenset(range(4))
SLOTS = {1: 23.0, 5: 27.0, 20: 81.0, 80: 261.0, 320: 981.0}


def if_path(
    key: int, cost: float, share: float, *, parent: int | None = None, context: float = 4.0
) -> PathFlow:
    often = any_of(share)
    return PathFlow(key, parent, often, share, often, share, cost, cost, context)


def loop_path(cost: float, mean: float, longest: float, chunk: int = 1) -> PathFlow:
    return PathFlow(0, None, 1.0, 1.0, longest, mean, cost, cost, 16.0, is_loop=True, chunk=chunk)


def loop(*paths: PathFlow, own: float = 29.0, memory: float = 0.0, form: str = "split") -> LoopFlow:
    return LoopFlow(own, memory, form, paths)


@pytest.mark.parametrize(("length", "lanes", "speedup"), SENSITIVITY)
def test_the_gain_is_near_what_was_measured(length: int, lanes: int, speedup: float) -> None:
    flow = loop(if_path(0, SLOTS[length], lanes / 32))
    assert gain(flow, {0}) == pytest.approx(speedup, rel=0.11)
    assert reaches_the_bar(choose(flow) == {0}, speedup)


@pytest.mark.parametrize(("absorption", "chunk", "speedup"), [(0.02, 16, 3.2), (0.1, 4, 2.5), (0.3, 1, 1.8)])
def test_a_random_walk_gains_as_measured(absorption: float, chunk: int, speedup: float) -> None:
    # Steps are distributed geometrically: the longest of 32 walks has as many as the harmonic number says.
    longest = sum(1 / i for i in range(1, 33)) / absorption
    flow = loop(loop_path(100.0, 1 / absorption, longest, chunk))
    assert gain(flow, {0}) == pytest.approx(speedup, rel=0.35)


def test_short_trips_need_chunks() -> None:
    # Mandelbrot, 0.42 / 1.05 / 1.32 by chunks of 1 / 8 / 32 trips.
    gains = [gain(loop(loop_path(11.0, 500.0, 850.0, chunk)), {0}) for chunk in (1, 8, 32)]
    assert gains[0] < 0.7 < 1.0 < gains[1] < gains[2]


def test_idle_lanes_cost_a_little_more_than_split() -> None:
    one, other = (gain(loop(if_path(0, 400.0, 0.125), form=form), {0}) for form in ("split", "idle lanes"))
    assert 0.75 < other / one < 0.97


def test_what_tasks_rebuild_and_what_contexts_hold_costs() -> None:
    light = if_path(0, 261.0, 0.25)
    before, after = slots(loop(light), ()), slots(loop(light), {0})
    for heavy, more in (
        (replace(light, extra=8.0), 0.25 * 8),
        (replace(light, context=light.context + 8), 8 * light.warps),
    ):
        assert slots(loop(heavy), ()) == before
        assert slots(loop(heavy), {0}) == pytest.approx(after + more)


def test_memory_bounds_the_gain() -> None:
    path = if_path(0, 261.0, 0.125)
    before = slots(loop(path), ())
    gains = [gain(loop(path, memory=share * before), {0}) for share in (0.0, 0.5, 1.0, 2.0)]
    assert gains == sorted(gains, reverse=True)
    assert gains[0] > 2.5
    assert gains[1] == pytest.approx(2.0, rel=0.05)
    assert gains[2] == pytest.approx(1.12, rel=0.01)
    assert gains[3] == pytest.approx(1.0, abs=0.01)
    assert choose(loop(path, memory=2 * before)) == set()
    assert choose(loop(path, memory=before)) == {0}


def test_the_parts_of_a_time() -> None:
    """What is added is not code, and the longer of issue and memory decides."""
    flow = loop(if_path(0, 320.0, 4 / 32), memory=100.0)
    before, after = model.parts(flow, ()), model.parts(flow, {0})
    assert (before.overhead, before.memory, after.memory) == (0.0, 100.0, 100.0)
    # All but a warp in a hundred runs the path before; after, full warps run it in one of eight iterations.
    assert before.code == pytest.approx(29 + 320 * any_of(4 / 32))
    assert after.code == pytest.approx(29 + 320 / 8)
    assert after.overhead == pytest.approx(slots(flow, {0}) - after.code)
    assert after.overhead > 0
    for part in (before, after):
        issued = part.code + part.overhead
        assert max(issued, part.memory) <= part.total <= issued + part.memory
    assert gain(flow, {0}) == before.total / after.total


@pytest.mark.parametrize("share", [0.03, 0.25, 0.9])
def test_a_path_at_its_break_even_gains_nothing(share: float) -> None:
    flow = loop(if_path(0, 100.0, share))
    even = break_even(flow, flow.paths[0])
    assert even is not None
    assert gain(loop(if_path(0, even, share)), {0}) == pytest.approx(1.0)
    assert gain(loop(if_path(0, 2 * even, share)), {0}) > 1.0 > gain(loop(if_path(0, even / 2, share)), {0})


def test_a_path_that_all_lanes_take_never_pays() -> None:
    flow = loop(if_path(0, 1e6, 1.0))
    assert break_even(flow, flow.paths[0]) is None
    assert choose(flow) == set()


def test_each_path_is_chosen_by_itself() -> None:
    flow = loop(if_path(0, 10.0, 0.2), if_path(1, 400.0, 0.2), if_path(2, 400.0, 0.99))
    assert choose(flow) == {1}
    assert choose(flow, kept={0}) == {0, 1}
    assert choose(loop(if_path(0, 10.0, 0.2)), kept={0}) == {0}


def test_the_costliest_and_rarest_stay() -> None:
    flow = loop(if_path(0, 500.0, 0.1), if_path(1, 300.0, 0.1), if_path(2, 500.0, 0.7), if_path(3, 90.0, 0.1))
    assert [choose(flow, limits=[Limit(ALL, n)]) for n in (4, 3, 2, 1)] == [
        {0, 1, 2, 3},
        {0, 1, 2},
        {0, 1},
        {0},
    ]
    # `collect(k)` limits what `always` keeps, too.
    assert choose(flow, kept=ALL, limits=[Limit(ALL, 2)]) == {0, 1}
    # The cases of a switch may have a limit of their own.
    assert choose(flow, limits=[Limit(frozenset({0, 1}), 1)]) == {0, 2, 3}


def test_what_is_collected_around_a_path_lets_its_lanes_come_together() -> None:
    outer = if_path(0, 300.0, 0.1)
    # Nearly all lanes that take the outer path take the inner one: with the outer collected, it is whole by itself.
    inner = PathFlow(1, 0, outer.warps, 0.099, outer.warps, 0.099, 300.0, 300.0, 4.0)
    flow = loop(outer, inner)
    assert choose(flow) == {0}
    assert gain(flow, {0}) > gain(flow, {0, 1}) > gain(flow, {1}) > 1.0


def test_a_path_in_a_loop_of_tasks_goes_with_it() -> None:
    tasks = loop_path(20.0, 8.0, 8.5)
    inner = PathFlow(1, 0, 8.0, 0.8, 8.0, 0.8, 40.0, 40.0, 4.0)
    for chosen in (
        choose(loop(tasks, inner)),
        choose(loop(tasks, inner), kept=()),
        choose(loop(tasks, inner), limits=[Limit(ALL, 1)]),
    ):
        assert 0 in chosen or 1 not in chosen
    assert choose(loop(tasks, inner), kept={1}) == {0, 1}
    assert choose(loop(tasks, inner), kept={1}, limits=[Limit(frozenset({0}), 0)]) == set()


def test_a_region_that_never_runs_is_left_alone() -> None:
    assert choose(loop(if_path(0, 400.0, 0.0))) == set()
    assert gain(loop(own=0.0), set()) == 1.0
    assert model.time(loop(own=0.0), set()) == 0.0


def cases(*costs: float, own: float = 100.0, fewest: int = 3) -> LoopFlow:
    """Cases of a switch, equally likely, that can share a site."""
    paths = tuple(if_path(key, cost, 1 / len(costs), context=8.0) for key, cost in enumerate(costs))
    return replace(
        loop(*paths, own=own), groups=(SortedGroup(frozenset(range(len(costs))), fewest, 16.0, 40960),)
    )


def parted(flow: LoopFlow, chosen: Collection[int]) -> float:
    return flow.groups[0].diverged([path for path in flow.paths if path.key in chosen])


@pytest.mark.parametrize("count", [3, 4, 5, 10])
def test_a_site_is_paid_once_for_all_its_paths(count: int) -> None:
    flow = cases(*[80.0] * count)
    few = count <= 4
    # A comparison asks for each of a few paths; among more, each task is found, and each lane's path by a jump table.
    service = TAKEN + (0.0 if few else FOUND) + 8 / 2
    agree = model.AGREE + (0.0 if few else model.JUMP)
    asked = count * model.ASKED if few else 0.0
    sort = model.SORT + count.bit_length() * model.SORT_BIT + 16 / 2 + asked
    share = parted(flow, range(count))
    assert slots(flow, range(count)) == pytest.approx(100 + 80 + agree + share * (sort + service))
    assert slots(flow, range(count)) < slots(replace(flow, groups=()), range(count))


def test_a_site_is_for_three_paths_or_more() -> None:
    flow = cases(*[80.0] * 10)
    # Two of them vote each for itself.
    assert slots(flow, {0, 1}) == slots(replace(flow, groups=()), {0, 1})
    assert slots(flow, range(10)) < 0.6 * slots(replace(flow, groups=()), range(10))


def test_a_path_that_stays_beside_a_site() -> None:
    """It is run by nearly each warp, whose lanes go there and come back."""
    flow = cases(*[80.0] * 10)
    service = TAKEN + FOUND + 8 / 2
    sort = model.SORT + 4 * model.SORT_BIT + 16 / 2
    before, after = (parted(flow, range(count)) * (sort + count / 10 * service) for count in (10, 9))
    more = slots(flow, range(9)) - slots(flow, range(10))
    assert more == pytest.approx(any_of(0.1) * (80 + model.APART) - 0.1 * 80 + after - before)


def flows(visits: Sequence[Mapping[int, int]]) -> list[PathFlow]:
    """Paths from the lanes that come to each in each visit."""
    found = []
    for key in sorted({key for visit in visits for key in visit}):
        warps = sum(key in visit for visit in visits) / len(visits)
        full = sum(visit.get(key, 0) for visit in visits) / len(visits) / LANES
        found.append(PathFlow(key, None, warps, full, warps, full, 80.0, 80.0))
    return found


def really(visits: Sequence[Mapping[int, int]]) -> float:
    """The share of visits whose lanes come to more than one path."""
    return sum(len(visit) > 1 for visit in visits) / len(visits)


SITE = SortedGroup(frozenset(range(9)), 3, 16.0, 0)
TOGETHER = [{0: 30, 1: 1, 2: 1}, *[{0: 32}] * 9]
ASIDE = [{0: 31, 1: 1}, {0: 31, 2: 1}, *[{0: 32}] * 8]
"""Two rare paths, in the same visits or not: all numbers of a profile are the same."""


def test_warps_part_half_way_between_the_fewest_and_the_most_visits() -> None:
    assert flows(TOGETHER) == flows(ASIDE)
    assert [really(TOGETHER), really(ASIDE)] == [0.1, 0.2]
    assert SITE.diverged(flows(TOGETHER)) == pytest.approx((0.1 + 0.2) / 2)


@pytest.mark.parametrize("seed", range(8))
def test_how_often_warps_part_is_within_its_bounds(seed: int) -> None:
    """For visits of any kind to paths that all lanes come to."""
    rng = random.Random(seed)
    visits = []
    for _ in range(rng.randrange(1, 12)):
        lanes = Counter(rng.choices(range(5), weights=[20, *rng.choices([0, 0, 1, 9], k=4)], k=LANES))
        visits.append(lanes)
    share = SITE.diverged(flows(visits))
    often = sorted((path.warps for path in flows(visits)), reverse=True)
    # No more visits part than those that come to a second path for each path but the most frequent one.
    most = min(sum(often) - 1, 1.0)
    fewest = max(often[0] + [*often[1:], 0.0][0] - 1, 0.0)
    assert fewest - 1e-9 <= really(visits) <= most + 1e-9
    assert share == pytest.approx((fewest + most) / 2)


def test_no_path_parts_no_warp() -> None:
    assert SITE.diverged([]) == 0.0
    assert SITE.diverged(flows([{}, {}])) == 0.0
    assert SITE.diverged([if_path(0, 80.0, 0.0)]) == 0.0


def test_one_path_parts_warps_that_do_not_take_it_as_a_whole() -> None:
    assert SITE.diverged([if_path(0, 80.0, 1.0)]) == 0.0
    assert SITE.diverged(flows([{0: 32}])) == 0.0
    # Lanes by themselves: some take it and some do not.
    assert SITE.diverged([if_path(0, 80.0, 0.25)]) == pytest.approx(any_of(0.25) + any_of(0.75) - 1)


def test_all_warps_part_at_most() -> None:
    assert SITE.diverged(flows([{0: 10, 1: 10, 2: 12}])) == 1.0
    assert parted(cases(*[80.0] * 10), range(10)) <= 1.0


def test_a_warp_that_agrees_does_not_sort() -> None:
    """One case in nearly all visits, another in each hundredth, for half of the lanes."""
    paths = (
        replace(if_path(0, 80.0, 1.0, context=8.0), warps=1.0, full=0.995),
        replace(if_path(1, 80.0, 0.0, context=8.0), warps=0.01, full=0.005),
        if_path(2, 80.0, 0.0, context=8.0),
    )
    flow = replace(cases(80.0, 80.0, 80.0), paths=paths)
    sort = model.SORT + 2 * model.SORT_BIT + 16 / 2 + 3 * model.ASKED + TAKEN + 8 / 2
    assert slots(flow, range(3)) == pytest.approx(100 + 80 + model.AGREE + 0.01 * sort)
    # Lanes that come to none part the warp too.
    fewer = replace(flow, paths=(replace(paths[0], full=0.5), *paths[1:]))
    share = parted(fewer, range(3))
    assert share > 0.99
    less = 0.495 * (TAKEN + 8 / 2)
    assert slots(fewer, range(3)) == pytest.approx(100 + 0.505 * 80 + model.AGREE + share * (sort - less))


def test_cheap_cases_come_along_with_costly_ones() -> None:
    costs = (0.0, 20.0, 25.0, 45.0, *[84.0] * 5, 270.0)
    assert choose(cases(*costs)) == frozenset(range(10))
    # Each with a vote of its own, they would not.
    assert choose(replace(cases(*costs), groups=())) == frozenset(range(3, 10))


def test_a_site_that_does_not_pay_goes_as_a_whole() -> None:
    flow = cases(20.0, 20.0, 20.0, 20.0)
    beside = if_path(4, 400.0, 0.125)
    assert choose(flow) == set()
    # Without one of its paths the site costs more yet; the path beside it stays.
    assert slots(flow, {0, 1, 2}) > slots(flow, range(4)) > slots(flow, ())
    assert choose(replace(flow, paths=(*flow.paths, beside))) == {4}
    # What must stay, stays.
    assert choose(flow, kept={2}) == {2}


def test_tasks_that_are_left_cost_runs_that_are_not_full() -> None:
    few = replace(loop_path(100.0, 10.0, 40.0), late=2.0)
    assert slots(loop(few), {0}) == pytest.approx(slots(loop(replace(few, late=0.0)), {0}) + 200, rel=0.1)
    assert slots(loop(few), ()) == slots(loop(replace(few, late=0.0)), ())


def test_tasks_that_are_left_run_as_warps_come_now() -> None:
    """The code of a full warp is that of all ways through the path, here three times that of one lane's."""
    few = replace(loop_path(3e4, 3.0, 12.0), packed=9e4, late=9.0)
    assert slots(loop(few), {0}) - slots(loop(replace(few, late=0.0)), {0}) == pytest.approx(
        9 * 3e4, rel=0.01
    )


@pytest.mark.parametrize("chunk", [1, 4, 16])
def test_a_loop_never_runs_more_inner_iterations_than_now(chunk: int) -> None:
    """Where no lane gets a second task, the rewritten loop ends with its slowest lane, too."""
    alone = replace(loop_path(1e4, 1.5, 4.0, chunk), late=2.5)
    assert slots(loop(alone), {0}) == pytest.approx(4.0 * 1e4, rel=0.02)


def test_lanes_that_began_apart_share_the_loops_own_code() -> None:
    path = if_path(0, 100.0, 0.5)
    apart = replace(loop(path, own=60.0), begun=0.25)
    assert slots(apart, ()) == slots(loop(path, own=60.0), ())
    assert slots(loop(path, own=60.0), {0}) - slots(apart, {0}) >= 45.0


def test_a_kernel_that_waits_gains_by_its_latencies() -> None:
    path = replace(if_path(0, 20.0, 0.1), waiting=800.0, packed_waiting=800.0)
    flow = replace(loop(path, own=20.0), waiting=10.0)
    assert gain(flow, {0}) < 1.1
    timed = replace(flow, elapsed=Elapsed(1000.0, 1000.0))
    assert gain(timed, {0}) > 3.0
    assert model.parts(timed, ()).total == pytest.approx(1000.0)


def test_few_slow_warps_gain_by_an_expanded_loop_alone() -> None:
    slow = Elapsed(1e6, 1e6)
    path = replace(loop_path(20.0, 4.0, 30.0), waiting=100.0, packed_waiting=100.0)
    for expanded, least, most in ((False, 0.99, 1.01), (True, 2.0, 30.0)):
        flow = replace(loop(replace(path, expanded=expanded)), elapsed=slow, waiting=10.0)
        assert least < gain(flow, {0}) < most


def test_code_that_runs_with_the_tasks_costs_what_their_ends_cost() -> None:
    path = loop_path(100.0, 4.0, 12.0)
    tail = replace(path, tail=50.0)
    # A task in each lane ends after four of the rounds, so some lane ends in nearly each of them.
    rounds = slots(loop(tail), {0}) - slots(loop(path), {0})
    assert 0.9 * 4.0 * 50.0 < rounds < 6.0 * 50.0
    assert slots(loop(tail), ()) == slots(loop(path), ())
    once = slots(loop(replace(if_path(0, 100.0, 0.25), tail=50.0)), {0})
    assert once - slots(loop(if_path(0, 100.0, 0.25)), {0}) == pytest.approx(0.25 * 50.0)


def test_code_is_spared_only_if_all_paths_before_it_are_collected() -> None:
    flow = loop(if_path(0, 100.0, 0.1), if_path(1, 100.0, 0.1))
    spared = replace(flow, spared={frozenset({0, 1}): 7.0})
    assert slots(spared, {0}) == slots(flow, {0})
    assert slots(spared, {0, 1}) == pytest.approx(slots(flow, {0, 1}) - 7.0)


def test_the_slowest_of_more_lanes_takes_longer() -> None:
    assert longest(10.0, 10.0, 4.0, 32.0) == 10.0
    assert longest(10.0, 10.0 * slowest(4.0), 4.0, 32.0) == pytest.approx(10.0 * slowest(32.0))
    assert longest(10.0, 30.0, 32.0, 32.0) == 30.0
    assert longest(10.0, 10.0, 1.0, 32.0) == 10.0
    inner = PathFlow(1, 0, 1.0, 0.25, 20.0, 2.0, 40.0, 40.0, 4.0, is_loop=True)
    flow = loop(if_path(0, 100.0, 0.25), inner)
    # Eight lanes a warp take the path, and the slowest of them makes 20 inner iterations of 8 on average.
    grown = longest(8.0, 20.0, 8.0, 32.0)
    assert grown > 25.0
    assert slots(flow, {0}) == pytest.approx(slots(loop(if_path(0, 100.0, 0.25)), {0}) + 0.25 * grown * 40.0)
