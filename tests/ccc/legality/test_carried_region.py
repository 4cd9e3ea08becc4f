"""Where a path cannot be deferred alone, its task is the rest of the iteration, or the loop is refused.

    for (EACH) {                                for (EACH) {
      x = a[i];                                   x = a[i];
      if (x & 1) out[i] = work(x);      ->        if (x & 1) { token = (i, x); goto advance; }
      count[i] = out[i];                          count[i] = out[i];
    }                                             advance: ;
                                                }       tokens: out[i] = work(x); count[i] = out[i];

The kernels are in `tests/kernels/cuda/carried.cu`, each with its answer above it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cccopt.ccc.function.view import View, view_of
from cccopt.ccc.legality.rules import _Rules
from cccopt.ccc.outcome.choices import Form, Outcome
from cccopt.ccc.outcome.refusal import Refusal
from cccopt.ccc.outcome.report import Cost
from cccopt.ccc.plan.in_lane import InLanePlan, make_in_lane_plan
from cccopt.ccc.profitability.in_lane_estimate import InLaneEstimate
from cccopt.ccc.profitability.model import SAFE_GAIN
from cccopt.ccc.profitability.profile import RegionProfile, RunProfile
from cccopt.ccc.regions.marked_loops import find
from cccopt.passes import in_lane_form
from cccopt.passes.pipeline import Options, run
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from tests.fuzz.judge import Pair, alone, compile_pair, judge
from tests.kernels.ptx_loops import IF, begins_with_path
from tests.kernels.running import CUDA, Arguments, Launch

pytestmark = pytest.mark.nvcc

SOURCE = CUDA / "carried.cu"
TEXT = SOURCE.read_text()
EXPECTED = {
    name: said
    for said, name in re.findall(r"^// (right|CCC\d+): .*\n(?:#pragma.*\n)?.*\) (\w+)\(", TEXT, re.M)
}
LAUNCHES = (Launch(2, 48, 250), Launch(1, 32, 77), Launch(3, 64, 600))


@pytest.fixture(scope="module")
def compiled() -> Pair:
    return compile_pair(TEXT, "sm_90")


def arguments(launch: Launch) -> Arguments:
    """``n, a, out, count``."""
    a = np.random.default_rng(launch.trips).integers(0, 1 << 32, 1024).astype(np.uint32)
    return [launch.trips, a, np.zeros(16 * 1024, np.uint32), np.zeros(1024, np.uint32)]


def test_each_kernel_says_what_becomes_of_it() -> None:
    assert len(EXPECTED) == TEXT.count("__global__")


@pytest.mark.parametrize("name", [name for name, said in EXPECTED.items() if said == "right"])
def test_tokens_do_what_their_iterations_did(name: str, compiled: Pair) -> None:
    pair = alone(compiled, name)
    verdict = judge(pair, name, arguments, LAUNCHES, forms=("carried",), seeds=(1,), assembler="sm_90")
    assert not verdict.wrong
    assert all(ran["push"] and ran["take"] for ran in verdict.ran.values()), verdict.ran


@pytest.mark.parametrize("name", [name for name, said in EXPECTED.items() if said == "right"])
def test_it_is_chosen_where_the_path_alone_is_refused(
    name: str, compiled: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_lane_form, "LONG", 0.0)
    module = alone(compiled, name).marked
    detached = True
    try:
        run(module, Options(mode="always", form=Form.SPLIT))
    except Refusal:
        detached = False
    reports = run(module, Options(mode="always")).regions
    assert all(report.outcome == Outcome.REWRITTEN for report in reports)
    assert {report.form == Form.CARRIED for report in reports} == {not detached}


@pytest.mark.parametrize("name", [name for name, said in EXPECTED.items() if said != "right"])
def test_what_could_change_results_is_refused(name: str, compiled: Pair) -> None:
    with pytest.raises(Refusal) as caught:
        run(alone(compiled, name).marked, Options(mode="always", form=Form.CARRIED))
    assert caught.value.diagnostics[0].code == EXPECTED[name]


CUCKOO = """
__device__ bool placed(unsigned long long* table, unsigned long long item) {
  unsigned place = item % 1021;
#pragma ccc while independent
  for (int tries = 0; tries < 40; ++tries) {
    item = atomicExch(&table[place], item);
    if (item == 0) return true;
    place = (place * 7 + item) % 1021;
  }
  return false;
}
#pragma ccc grid block(64)
__global__ void fill(const unsigned long long* items, unsigned long long* table, bool* failed) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (!placed(table, items[i])) *failed = true;
}
"""


def test_no_clause_is_suggested_that_does_not_help() -> None:
    """No promise about memory keeps a task that waits from holding what others try to take."""
    with pytest.raises(Refusal) as caught:
        run(compile_pair(CUCKOO, "sm_90").marked, Options(mode="always", form=Form.CARRIED))
    (said,) = caught.value.diagnostics
    assert said.code == "CCC032"
    assert "CCC039" in said.why
    assert "let no atomic" in said.help
    assert "independent" not in said.help


def test_a_lane_that_does_not_see_what_its_token_stores_goes_on(
    compiled: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which is why no task may write what the loop's own test reads."""
    monkeypatch.setattr(_Rules, "no_worklist", lambda *_: None)
    pair = alone(compiled, "ended_by_path")
    verdict = judge(pair, "ended_by_path", arguments, LAUNCHES[:1], forms=("carried",), seeds=())
    assert "memory differs" in verdict.wrong


def test_a_path_with_which_iterations_begin_is_no_point() -> None:
    with pytest.raises(Refusal) as caught:
        run(begins_with_path(), Options(mode="always", form=Form.CARRIED))
    (said,) = caught.value.diagnostics
    assert (said.code, said.place and said.place.position.line) == ("CCC031", 10 * IF)
    assert "begins with the marked path" in said.message


@pytest.mark.parametrize(("long", "form"), [(0.0, Form.CARRIED), (1e9, Form.IN_LANE)])
def test_where_little_is_run_between_votes_lanes_wait_instead(
    long: float, form: Form, compiled: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_lane_form, "LONG", long)
    done = run(alone(compiled, "memory").marked, Options(mode="always"))
    assert {report.form for report in done.regions} == {form}
    (remark,) = (r for r in done.remarks if r.code == "CCC028")
    assert "CCC036" in remark.why
    assert ("--ccc-form=carried" in remark.why) == (form == Form.IN_LANE)


PARTLY_EMPTY = """
extern "C" __global__ void __launch_bounds__(64) k(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i], rest = 0;
    out[i] = x;
#pragma ccc if
    if (x & 1) out[i] = work(x);
#pragma ccc else
    else rest = x;
    count[i] = out[i] + rest;
  }
}
"""


def test_a_path_of_which_nothing_is_left_stays_where_it_is() -> None:
    """nvcc selects the value of `rest`."""
    pair = compile_pair(TEXT[: TEXT.index("// right")] + PARTLY_EMPTY, "sm_90")
    verdict = judge(pair, "k", arguments, LAUNCHES, forms=("carried",), seeds=(1,), assembler="sm_90")
    assert not verdict.wrong
    done = run(pair.marked, Options(mode="always", form=Form.CARRIED))
    declined = [report.place for report in done.regions if report.outcome == Outcome.DECLINED]
    assert declined == [r.place for r in done.remarks if r.code == "CCC054"]
    assert len(declined) == 1


def test_a_chunk_spares_votes(compiled: Pair) -> None:
    marked = print_module(alone(compiled, "after_while").marked)
    votes = [
        print_module(run(parse(text), Options(mode="always", form=Form.CARRIED)).module).count("$ccc_again")
        for text in (marked.replace("kind=while", f"kind=while chunk={count}") for count in (1, 4))
    ]
    assert votes[0] == 0 < votes[1]


def test_auto_takes_the_form_by_a_profile_alone(compiled: Pair) -> None:
    done = run(alone(compiled, "after_while").marked, Options(mode="auto"))
    assert {report.outcome for report in done.regions} == {Outcome.DECLINED}
    assert [(r.code, "no profile shows" in r.why) for r in done.remarks] == [("CCC050", True)]


@pytest.mark.parametrize(
    ("moved", "waiting", "visit", "waits"),
    [
        (2.0, 1.0, 0.0, False),
        (1.1, 3.0, 1e9, True),
        # Both gain much: by cost.
        (2.0, 1.7, 1e9, False),
        (2.0, 1.7, 0.0, True),
        # Neither is sure to gain: by cost.
        (1.2, 0.1, 0.0, True),
        (0.9, 1.2, 1e9, False),
    ],
)
def test_a_profile_decides_between_moving_and_waiting_where_one_is_sure_to_gain(
    moved: float, waiting: float, visit: float, waits: bool, compiled: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    (function,) = (module := alone(compiled, "memory").marked).functions()
    (region,) = find(view := view_of(module, function)).regions
    plan = replace(make_in_lane_plan(view, region), visit=visit)
    numbers = InLaneEstimate(Cost(1.0, 1.0, waiting, None, False), ())
    monkeypatch.setattr(in_lane_form, "_planned", lambda *_: (plan, numbers))
    chosen = in_lane_form.preferred(view, region, function, Options(), moved)
    assert (chosen is plan) is waits


def test_what_is_sure_to_gain_by_moving_is_not_left_because_waiting_would_cost_less(compiled: Pair) -> None:
    (function,) = (module := alone(compiled, "three").marked).functions()
    (region,) = find(view_of(module, function), with_unfit=True).regions
    warps, taken, cost, own = 100_000, 8, 250.0, 25.0
    entered = round(warps * (1 - (1 - taken / 32) ** 32))
    packed = cost * warps * taken / 32
    path = RegionProfile("if", entered, warps * taken, entered, warps * taken, cost * entered, packed)
    loop = RegionProfile("for", warps // 100, warps // 100 * 32, warps, warps * 32, own * warps, own * warps)
    counts = {point.annotation.region: path for point in region.points} | {region.annotation.region: loop}
    seen: list[float | None] = []

    def preferred(*given: Any) -> InLanePlan | None:
        seen.append(given[-1])
        return make_in_lane_plan(view_of(module, function), region)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_lane_form, "preferred", preferred)
        waiting = InLaneEstimate(numbers := Cost(1.0, 1.0, 1.1, None, False), (numbers,) * len(region.points))
        patch.setattr(in_lane_form, "_numbers", lambda *_: waiting)
        done = run(module, Options(mode="auto", profile=RunProfile({function.name: counts})))
    (moved,) = seen
    assert moved is not None
    assert moved >= SAFE_GAIN
    assert {report.form for report in done.regions} == {Form.CARRIED}


def test_a_path_that_gains_nothing_keeps_the_others_and_is_named(compiled: Pair) -> None:
    """All marked paths of a loop in this form are collected or none."""
    (function,) = (module := alone(compiled, "three").marked).functions()
    (region,) = find(view_of(module, function), with_unfit=True).regions
    warps, cost = 100_000, 250.0
    rare = RegionProfile("if", warps, 8 * warps, warps, 8 * warps, cost * warps, cost * warps / 4)
    always = RegionProfile("if", warps, 32 * warps, warps, 32 * warps, 9.0 * warps, 9.0 * warps)
    loop = RegionProfile(
        "for", warps // 100, warps // 100 * 32, warps, warps * 32, 25.0 * warps, 25.0 * warps
    )
    first, *others = region.points
    counts = {point.annotation.region: rare for point in others} | {region.annotation.region: loop}
    counts[first.annotation.region] = always
    options = Options(mode="auto", form="carried", profile=RunProfile({function.name: counts}))
    done = run(module, options)
    assert {report.outcome for report in done.regions} == {Outcome.DECLINED}
    (said,) = (remark for remark in done.remarks if remark.code == "CCC050")
    place = first.annotation.place
    assert place is not None
    assert f"nothing is gained at the `{first.annotation.kind}` at line {place.position.line}" in said.why


@pytest.mark.parametrize(
    ("by_cost", "flattened", "chosen"), [(0.3, 1.2, False), (0.9, 2.0, True), (1.9, 2.0, False)]
)
def test_a_profile_flattens_only_where_that_is_sure_to_gain(
    by_cost: float, flattened: float, chosen: bool, compiled: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    (function,) = (module := alone(compiled, "memory").marked).functions()
    (region,) = find(view := view_of(module, function)).regions
    own = make_in_lane_plan(view, region, flattened=False)
    made = iter([own, make_in_lane_plan(view, region, flattened=True), own])
    gains = {False: by_cost, True: flattened}

    def numbers(_: View, plan: InLanePlan, *__: object) -> InLaneEstimate:
        return InLaneEstimate(Cost(1.0, 1.0, gains[plan.flattened], None, False), ())

    monkeypatch.setattr(in_lane_form, "make_in_lane_plan", lambda *_, **__: next(made))
    monkeypatch.setattr(in_lane_form, "_numbers", numbers)
    plan, _ = in_lane_form._planned(view, region, function, Options())
    assert plan.flattened is chosen
