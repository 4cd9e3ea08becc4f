"""What `auto` does with small predicted gains (docs/decisions/0031-a-margin-for-predictions.md)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cccopt.ccc.function.view import view_of
from cccopt.ccc.outcome.choices import Mode
from cccopt.ccc.profitability import decision as decision_module
from cccopt.ccc.profitability.decision import TOO_LITTLE, decide, remarks
from cccopt.ccc.profitability.estimate import Estimate
from cccopt.ccc.profitability.flows import PathFlow
from cccopt.ccc.profitability.model import LEAST_GAIN, SAFE_GAIN, Limit, gain
from cccopt.ccc.regions.marked_loops import find
from cccopt.ptx.parser import parse
from tests.ccc.profitability.test_model import cases, loop
from tests.kernels.ptx_loops import loop as loop_of
from tests.kernels.ptx_switch import switch


@pytest.mark.parametrize(("cost", "taken"), [(45.0, False), (60.0, True)])
def test_a_gain_that_predictions_are_too_inexact_for_is_left(cost: float, taken: bool) -> None:
    (region,) = find(view_of(parsed := parse(loop_of(body=switch(4))), next(parsed.functions()))).regions
    flow = cases(*[cost] * 4)
    predicted = gain(flow, range(4))
    assert (predicted >= SAFE_GAIN) is taken
    assert predicted > LEAST_GAIN
    decision = decide(region, Estimate(flow, False), "auto", dict.fromkeys(range(4), 0), 1 << 20)
    assert decision.chosen == frozenset(range(4) if taken else ())
    assert decision.limited == ("" if taken else TOO_LITTLE)
    # Who insists gets it.
    decision = decide(region, Estimate(flow, False), "always", dict.fromkeys(range(4), 0), 1 << 20)
    assert decision.chosen == frozenset(range(4))


def test_a_small_gain_is_taken_where_an_expanded_loop_makes_it_sure() -> None:
    text = loop_of(body=switch(4))
    (region,) = find(view_of(parsed := parse(text), next(parsed.functions()))).regions
    path, inner, *_ = cases(*[66.0] * 4).paths
    inner = replace(
        inner,
        parent=path.key,
        is_loop=True,
        expanded=True,
        entries=path.warps,
        entered=path.full,
        warps=2.0,
        full=0.25,
    )
    flow = loop(path, inner, own=400.0)
    room = dict.fromkeys(range(4), 0)
    assert LEAST_GAIN < gain(flow, [0, 1]) < SAFE_GAIN
    assert decide(region, Estimate(flow, False), "auto", room, 1 << 20).chosen == {0, 1}
    # Nothing is sure if there is no room for the stacks, or if the loop is not expanded.
    assert not decide(region, Estimate(flow, False), "auto", dict.fromkeys(range(4), 99), 100).chosen
    apart = replace(flow, paths=(path, replace(inner, expanded=False)))
    assert LEAST_GAIN < gain(apart, [0, 1]) < SAFE_GAIN
    assert not decide(region, Estimate(apart, False), "auto", room, 1 << 20).chosen


def expanded(path: PathFlow, cost: float, warps: float, full: float) -> PathFlow:
    """A loop that is laid side by side: sure to gain, whatever its lanes do, but for what it costs."""
    once = replace(path, is_loop=True, expanded=True, entries=1.0, entered=1.0)
    return replace(once, warps=warps, full=full, slots=cost, packed=cost)


def test_of_sure_paths_those_go_that_lose_or_that_a_limit_forbids(monkeypatch: pytest.MonkeyPatch) -> None:
    (region,) = find(view_of(parsed := parse(loop_of(body=switch(4))), next(parsed.functions()))).regions
    one, other, *_ = cases(*[66.0] * 4).paths
    room = dict.fromkeys(range(4), 0)
    costly = loop(expanded(one, 220.0, 2.0, 0.5), expanded(other, 20.0, 2.0, 1.9), own=800.0)
    assert LEAST_GAIN < gain(costly, [0]) < SAFE_GAIN
    assert gain(costly, [0, 1]) < gain(costly, [0])
    assert decide(region, Estimate(costly, False), "auto", room, 1 << 20).chosen == {0}
    both = loop(expanded(one, 320.0, 2.0, 0.5), expanded(other, 300.0, 2.0, 0.5), own=1500.0)
    assert gain(both, [0, 1]) < SAFE_GAIN
    assert decide(region, Estimate(both, False), "auto", room, 1 << 20).chosen == {0, 1}
    # What nvcc would unroll is not sure, and nothing is in the carried form.
    assert decide(region, Estimate(both, False), "auto", room, 1 << 20, None, {1: "unrolled"}).chosen == {0}
    carried = replace(both, form="carried")
    assert not decide(region, Estimate(carried, False), "auto", room, 1 << 20).chosen
    monkeypatch.setattr(decision_module, "_limits", lambda _: (Limit(frozenset({0, 1}), 1),))
    assert decide(region, Estimate(both, False), "auto", room, 1 << 20).chosen == {0}


def test_what_is_predicted_of_all_paths_is_told_where_all_are_left() -> None:
    (region,) = find(view_of(parsed := parse(loop_of(body=switch(4))), next(parsed.functions()))).regions
    flow = cases(*[45.0] * 4)
    decision = decide(region, Estimate(flow, False), "auto", dict.fromkeys(range(4), 0), 1 << 20)
    (said,) = remarks(region, decision, Mode.AUTO)
    assert f"{gain(flow, range(4)):.2f}x" in said.message
    assert TOO_LITTLE in said.why
    # In an inner loop, a lane takes a path more than once.
    often = replace(decision, costs=tuple(replace(cost, taken=2.5) for cost in decision.costs))
    (said,) = remarks(region, often, Mode.AUTO)
    assert "per iteration, a lane takes the path 2.50 times, at 45 issue slots each time" in said.why
