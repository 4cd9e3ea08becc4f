"""What becomes of a rewrite whose kernel takes so many registers that its blocks run in more waves."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import pytest

from cccopt.ccc.outcome.choices import Form, Mode, Outcome
from cccopt.ccc.outcome.report import Cost, PredictedTime, RegionReport
from cccopt.ccc.profitability.launches import Launches
from cccopt.ccc.profitability.profile import RegionProfile, RunProfile
from cccopt.driver import occupancy, transform
from cccopt.passes.options import Options
from cccopt.ptx.parser import parse
from cccopt.text import Place, Position
from cccopt.toolchain.ptxas import Resources
from tests.kernels.ptx_loops import loop

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
OTHER = ".visible .entry other()\n{\nret;\n}\n"
CALLED = ".func called()\n{\nret;\n}\n"
TEXT = f"{HEAD}{CALLED}{OTHER}.visible .entry k()\n{{\n// ccc for.begin 1 {{}}\nret;\n}}\n"

# 4.4 blocks for each multiprocessor, of which 8 fit with 32 registers and 4 with 64.
LAUNCHES = Launches(processors=132, blocks=586, threads=256, registers=32, shared=0)
BEFORE = PredictedTime(20.0, 0.0, 10.0, 100.0, 100.0)
AFTER = PredictedTime(20.0, 5.0, 10.0, 50.0, 50.0)
PLACE = Place("k.cu", Position(3))


def report(**fields: object) -> RegionReport:
    cost = Cost(20.0, 1.0, 2.0, None, False, BEFORE, AFTER)
    given = {"form": Form.SPLIT, "cost": cost, **fields}
    return RegionReport("k", 1, "for", PLACE, Outcome.REWRITTEN, **given)  # type: ignore[arg-type]


Asked = list[str]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """The texts that ptxas is asked about; it says that kernel k takes 64 registers."""
    texts: Asked = []

    def resources(text: str, arch: str) -> Mapping[str, Resources]:
        assert arch == "sm_90"
        texts.append(text)
        return {"k": Resources(64, 0, 0, 0, 0)}

    monkeypatch.setattr(occupancy, "resources", resources)
    return texts


def timed(
    *reports: RegionReport,
    mode: Mode = Mode.AUTO,
    launches: Launches | None = LAUNCHES,
    most: int | None = None,
    built: Collection[str] = (),
) -> occupancy.Timed:
    profile = RunProfile({}, {} if launches is None else {"k": launches})
    options = Options(mode=mode, profile=profile, builds=dict.fromkeys(built))  # type: ignore[arg-type]
    return occupancy.timed(reports or (report(),), lambda: TEXT, parse(TEXT, "k.ptx"), options, most)


def cost_of(found: occupancy.Timed) -> Cost:
    (cost,) = (each.cost for each in found.reports)
    assert cost is not None
    return cost


def test_warps_wait_in_each_wave(asked: Asked) -> None:
    found = timed()
    cost = cost_of(found)
    assert cost.after is not None
    assert cost.after.waiting == 2 * AFTER.waiting
    assert cost.after.total == pytest.approx(100.0, rel=0.01)
    assert cost.gain == pytest.approx(1.0, rel=0.01)
    assert len(asked) == 1


def test_only_the_kernel_and_what_it_may_call_is_compiled(asked: Asked) -> None:
    timed()
    assert CALLED in asked[0]
    assert OTHER not in asked[0]
    assert ".entry k()" in asked[0]


def test_a_kernel_that_no_longer_gains_is_left_alone(asked: Asked) -> None:
    found = timed()
    assert set(found.crowded) == {"k"}
    (remark,) = occupancy.remarks(found.crowded)
    assert (remark.code, remark.place) == ("CCC050", PLACE)
    assert remark.message.endswith("collecting would make it 1.00x as fast")
    assert "64 registers per thread instead of 32" in remark.why
    assert "in 2 waves instead of 1" in remark.why
    assert "`__launch_bounds__`" in remark.help


def test_not_if_the_user_asks_for_the_rewrite_or_a_measurement_has_decided(asked: Asked) -> None:
    assert timed(mode=Mode.ALWAYS).crowded == {}
    assert timed(built=["k"]).crowded == {}


def test_not_if_another_loop_of_the_kernel_gains_enough(asked: Asked) -> None:
    much = replace(AFTER, waiting=10.0, total=25.0)
    other = report(cost=Cost(20.0, 1.0, 4.0, None, False, BEFORE, much))
    assert timed(report(), other).crowded == {}


def test_a_loop_without_a_margin_needs_only_to_gain(asked: Asked) -> None:
    before = replace(BEFORE, total=55.0, waiting=50.0)
    expanded = report(cost=Cost(20.0, 1.0, 1.1, None, False, before, AFTER))
    fewer = replace(LAUNCHES, blocks=132 * 60)
    assert set(timed(expanded, launches=fewer).crowded) == {"k"}
    barely = replace(LAUNCHES, blocks=132 * 4)
    assert timed(expanded, launches=barely).crowded == {}


def test_the_users_limit_holds(asked: Asked) -> None:
    found = timed(most=32)
    assert found.reports == (report(),)
    assert found.crowded == {}


def test_stacks_count_like_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(occupancy, "resources", lambda text, arch: {"k": Resources(32, 0, 0, 0, 0)})
    found = timed(report(shared_bytes=50_000, code=object()))
    cost = cost_of(found)
    assert cost.after is not None
    assert cost.after.waiting == 2 * AFTER.waiting


@pytest.mark.parametrize(
    ("changed", "launches"),
    [
        ({}, None),
        ({}, replace(LAUNCHES, blocks=132)),
        ({"outcome": Outcome.DECLINED}, LAUNCHES),
        ({"cost": None}, LAUNCHES),
        ({"cost": Cost(20.0, 1.0, 2.0, None, True, BEFORE, replace(AFTER, waiting=0.0))}, LAUNCHES),
    ],
    ids=["not timed", "one block each", "declined", "no cost", "nothing waits"],
)
def test_ptxas_is_asked_only_if_that_may_matter(
    asked: Asked, changed: Mapping[str, object], launches: Launches | None
) -> None:
    given = replace(report(), **changed)  # type: ignore[arg-type]
    assert timed(given, launches=launches) == occupancy.Timed((given,), {})
    assert asked == []


@pytest.mark.parametrize(("registers", "outcome"), [(32, Outcome.REWRITTEN), (255, Outcome.DECLINED)])
def test_auto_decides_by_what_ptxas_says(
    monkeypatch: pytest.MonkeyPatch, registers: int, outcome: Outcome
) -> None:
    monkeypatch.setattr(occupancy, "resources", lambda text, arch: {"k": Resources(registers, 0, 0, 0, 0)})
    warps = 100_000
    lanes = 4 * warps
    path = RegionProfile("if", warps, lanes, warps, lanes, 900.0 * warps, 900.0 * lanes / 32)
    region = RegionProfile("for", 1000, 32_000, warps, 32 * warps, 20.0 * warps, sectors=8.0 * warps)
    region = replace(region, elapsed=4000.0 * warps, resident=3000.0 * warps)
    profile = RunProfile({"k": {1: region, 2: path}}, {"k": replace(LAUNCHES, blocks=1056.0)})
    text = loop()
    done = transform(text, profile=profile)
    (unit,) = done.report["units"]
    assert {found["outcome"] for found in unit["regions"]} == {outcome}
    assert (done.ptx == text) == (outcome is Outcome.DECLINED)
    whys = [remark["why"] for remark in unit["remarks"]]
    assert any("255 registers per thread instead of 32" in why for why in whys) == (registers == 255)


@pytest.mark.nvcc
def test_code_that_is_linked_later_is_not_known() -> None:
    text = TEXT.replace(CALLED, ".extern .func called();\n").replace("ret;", "call called;\nret;")
    options = Options(profile=RunProfile({}, {"k": LAUNCHES}))
    found = occupancy.timed((report(),), lambda: text, parse(text, "k.ptx"), options)
    assert found == occupancy.Timed((report(),), {})


@pytest.mark.nvcc
def test_ptxas_answers() -> None:
    found = timed(mode=Mode.ALWAYS)
    # An empty kernel needs few registers.
    assert found.reports == (report(),)
