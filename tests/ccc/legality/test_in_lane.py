"""Where no task may move to another lane, lanes wait for each other, or the loop is refused.

    for (EACH) {                                for (EACH) {
      m = a[i];                                   m = a[i];
      while (m) {                       ->        while (m) { vote: lanes at the end of an iteration go first
        seed = next(seed);                          seed = next(seed);
        ...                                         ...

The kernels are in `tests/kernels/cuda/in_lane.cu`, each with its answer above it.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from cccopt.ccc.legality.in_lane import _Rules
from cccopt.ccc.outcome.choices import Form, Outcome
from cccopt.ccc.outcome.refusal import Refusal
from cccopt.ccc.profitability.decision import TOO_LITTLE_IN_LANE
from cccopt.ccc.profitability.model import IN_LANE_GAIN
from cccopt.harness.workload import Launch as Launched
from cccopt.passes import in_lane_form
from cccopt.passes.pipeline import Options, run
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from cccopt.region_profiles import profile_of
from tests.fuzz.judge import Pair, alone, compile_pair, judge
from tests.fuzz.trial import together
from tests.kernels.ptx_loops import IF, begins_with_path
from tests.kernels.running import CUDA, Arguments, Launch

pytestmark = pytest.mark.nvcc

TEXT = (CUDA / "in_lane.cu").read_text()
EXPECTED = {name: said for said, name in re.findall(r"^// (right|CCC\d+): .*\n.*\) (\w+)\(", TEXT, re.M)}
RIGHT = [name for name, said in EXPECTED.items() if said == "right"]
ELSEWHERE = (
    "loops",
    "calls",
    "reads",
    "updates",
    "claims",
    "chunks",
    "short_ones",
    "much_after",
    "paths_of_two_visits",
    "then_moving",
)
"""Kernels that other forms need not refuse."""

LAUNCHES = (Launch(2, 48, 130), Launch(1, 32, 40), Launch(3, 64, 250))


@pytest.fixture(scope="module")
def compiled() -> Pair:
    return compile_pair(TEXT, "sm_90")


def arguments(launch: Launch) -> Arguments:
    """``n, a, out, count``."""
    a = np.random.default_rng(launch.trips).integers(0, 1 << 32, 1024).astype(np.uint32)
    return [launch.trips, a, np.zeros(4096, np.uint32), np.zeros(1024, np.uint32)]


def test_each_kernel_says_what_becomes_of_it() -> None:
    assert len(EXPECTED) == TEXT.count("__global__")


@pytest.mark.parametrize("name", RIGHT)
def test_lanes_do_what_they_did(name: str, compiled: Pair) -> None:
    pair = alone(compiled, name)
    verdict = judge(pair, name, arguments, LAUNCHES, forms=("in lane",), seeds=(1,), assembler="sm_90")
    assert not verdict.wrong
    assert all(ran["enter"] and ran["done"] and ran["serve"] for ran in verdict.ran.values()), verdict.ran


@pytest.mark.parametrize("name", RIGHT)
def test_lanes_that_begin_together_do_what_they_did(
    name: str, compiled: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_lane_form, "make_in_lane_plan", together)
    pair = alone(compiled, name)
    verdict = judge(pair, name, arguments, LAUNCHES, forms=("in lane",), seeds=(2,), assembler="sm_90")
    assert not verdict.wrong
    assert all(ran["enter"] and ran["done"] and ran["serve"] for ran in verdict.ran.values()), verdict.ran


@pytest.mark.parametrize("name", [name for name in RIGHT if name not in ELSEWHERE])
def test_it_is_chosen_where_no_task_may_move(name: str, compiled: Pair) -> None:
    result = run(alone(compiled, name).marked, Options(mode="always"))
    assert {(report.form, report.outcome) for report in result.regions} == {(Form.IN_LANE, Outcome.REWRITTEN)}
    assert not any(report.shared_bytes for report in result.regions)


@pytest.mark.parametrize("name", [name for name, said in EXPECTED.items() if said != "right"])
def test_what_depends_on_the_order_of_lanes_is_refused(name: str, compiled: Pair) -> None:
    with pytest.raises(Refusal) as caught:
        run(alone(compiled, name).marked, Options(mode="always"))
    assert caught.value.diagnostics[0].code == EXPECTED[name]


def test_lanes_that_wait_do_not_see_what_others_show(compiled: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is why they may not hand values to one another, be it by a function that they call."""
    monkeypatch.setattr(_Rules, "no_exchange", lambda _: None)
    pair = alone(compiled, "shown_by_callee")
    verdict = judge(pair, "shown_by_callee", arguments, LAUNCHES[:1], forms=("in lane",), seeds=())
    assert "memory differs" in verdict.wrong


def test_an_unknown_instruction_is_refused_by_its_name(compiled: Pair) -> None:
    text = print_module(alone(compiled, "state").marked)
    marked = re.sub(r"(// ccc body.begin .*)", r"\1\nfrobnicate.u32 %r1, %r1;", text, count=1)
    with pytest.raises(Refusal) as caught:
        run(parse(marked), Options(mode="always", form="in lane"))
    (said,) = caught.value.diagnostics
    assert said.code == "CCC044"
    assert "`frobnicate.u32`" in said.message


def test_a_loop_whose_iterations_begin_with_its_only_path_is_refused() -> None:
    with pytest.raises(Refusal) as caught:
        run(begins_with_path(), Options(mode="always", form="in lane"))
    (said,) = caught.value.diagnostics
    assert (said.code, said.place and said.place.position.line) == ("CCC031", 10 * IF)
    assert "begins with the marked path" in said.message


@pytest.mark.parametrize("form", ["split", "idle lanes", "carried"])
def test_other_forms_never_become_it(form: str, compiled: Pair) -> None:
    with pytest.raises(Refusal):
        run(alone(compiled, "state").marked, Options(mode="always", form=form))


def test_a_loop_whose_tasks_move_may_follow(compiled: Pair) -> None:
    reports = run(alone(compiled, "then_moving").marked, Options(mode="always")).regions
    assert [report.form for report in reports if report.kind == "for"] == [Form.IN_LANE, Form.CARRIED]


def test_short_paths_are_no_points(compiled: Pair) -> None:
    result = run(alone(compiled, "short_ones").marked, Options(mode="always"))
    (remark,) = result.remarks
    assert remark.why.count("run in place") == 2
    assert remark.help == "remove the pragmas of code that is run in place"
    body = print_module(result.module)
    assert len(re.findall(r"^\$ccc\w*serve_\d+\w*:", body, re.M)) == 2
    assert {report.form for report in result.regions} == {Form.IN_LANE}


def test_a_path_in_an_inner_loop_takes_two_visits(compiled: Pair) -> None:
    result = run(alone(compiled, "paths_of_two_visits").marked, Options(mode="always"))
    (remark,) = result.remarks
    assert remark.why.count("run in place") == 1
    in_loop = remark.why.split("at line ")[1].split()[0]
    lines = TEXT.splitlines()
    # The statement below the pragma is meant.
    assert "sum + x" in "".join(lines[int(in_loop) - 1 : int(in_loop) + 1])


def test_lanes_that_begin_together_wait_in_no_loop_without_paths(compiled: Pair) -> None:
    pair = alone(compiled, "begun_together")
    result = run(pair.marked, Options(mode="always"))
    (remark,) = result.remarks
    assert "lanes begin them together" in remark.message
    assert remark.why.count("run in place") == 2
    assert not remark.help  # without these marks, the loop would not be rewritten
    body = print_module(result.module)
    # Both loops are marked and have labels, and the iteration alone heads the dispatcher's ways.
    assert re.findall(r"^\$ccc\w*serve_(\d+)\w*:", body, re.M).count("0") == 1
    assert body.count("vote.sync") == 1
    asked = run(pair.marked, Options(mode="always", form="in lane"))
    assert print_module(asked.module).count("vote.sync") > 1


def test_lanes_wait_before_long_code_that_follows_the_inner_loop(compiled: Pair) -> None:
    body = print_module(run(alone(compiled, "much_after").marked, Options(mode="always")).module)
    # The iteration, the loop, what follows it, and the path.
    assert len(re.findall(r"^\$ccc\w*serve_\d+\w*:", body, re.M)) == 4
    assert body.count("setp.ge.u32") >= 4


def test_older_targets_are_refused(compiled: Pair) -> None:
    text = print_module(alone(compiled, "state").marked).replace(".target sm_90", ".target sm_60")
    with pytest.raises(Refusal) as caught:
        run(parse(text), Options(mode="always", form="in lane"))
    assert caught.value.diagnostics[0].code == "CCC108"


def test_auto_leaves_what_it_knows_nothing_of(compiled: Pair) -> None:
    result = run(alone(compiled, "state").marked, Options(mode="auto"))
    assert {report.outcome for report in result.regions} == {Outcome.DECLINED}
    (remark,) = result.remarks
    assert remark.code == "CCC050"
    assert "profile" in remark.help


def test_clauses_without_effect_are_told(compiled: Pair) -> None:
    text = print_module(alone(compiled, "state").marked)
    marked = re.sub(r"(ccc for.begin 1 .*)(file=)", r"\1collect=1 \2", text)
    (remark,) = run(parse(marked), Options(mode="always", form="in lane")).remarks
    assert remark.code == "CCC028"
    assert "collect" in remark.why


@pytest.mark.parametrize(
    ("name", "least", "outcome"),
    [
        ("partial", 1.05, Outcome.REWRITTEN),
        ("partial", IN_LANE_GAIN, Outcome.DECLINED),
        ("state", 1.05, Outcome.DECLINED),
    ],
)
def test_a_profile_decides_for_auto(
    name: str, least: float, outcome: Outcome, compiled: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inner iterations of 80 issue slots gain a little, those of 30 lose."""
    monkeypatch.setattr(in_lane_form, "IN_LANE_GAIN", least)
    marked = alone(compiled, name).marked
    launch = Launched(name, (1, 1, 1), (64, 1, 1), tuple(arguments(Launch(1, 64, 3000))))
    profile = profile_of(print_module(marked), [launch])
    result = run(marked, Options(mode="auto", profile=profile))
    assert {report.outcome for report in result.regions} == {outcome}
    assert all(report.cost is not None and not report.cost.assumed for report in result.regions)
    said = any(TOO_LITTLE_IN_LANE in (remark.why or "") for remark in result.remarks)
    assert said is (name == "partial" and outcome is Outcome.DECLINED)
