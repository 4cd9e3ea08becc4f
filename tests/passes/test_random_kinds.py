"""Random kernels of further kinds are rewritten, and do to memory what they did before: loops with reductions, kernels
marked ``grid``, functions marked ``recursive``.

`pytest tests/passes/test_random_kinds.py --hypothesis-profile=long` tries some thousands of each.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from cccopt.ccc.function.call_sequences import self_calls
from cccopt.emulator import Program
from cccopt.ptx.parser import parse
from tests import slow
from tests.kernels.generators.judging import differing, judge, launch, rewritten, times
from tests.kernels.generators.kernels import from_seed, kernels
from tests.passes.test_random_kernels import LONG

EXAMPLES = 3
KINDS = {"reductions": range(8), "grid": range(10), "recursive": range(10)}
"""Seeds of each kind of which it is asserted what they reach."""

PROFILE = settings() if LONG else settings(max_examples=slow.drawn(EXAMPLES), derandomize=True, database=None)


@pytest.mark.parametrize("kind", KINDS)
@PROFILE
@given(st.data())
def test_legal_kernels_are_rewritten_and_keep_their_results(kind: str, data: st.DataObject) -> None:
    case = data.draw(kernels(kind))
    note(case.ptx)
    judge(case)


def _reached(kind: str) -> Counter[str]:
    """What the kernels of the seeds come to, with equal results: phases that run, forms of reductions and so on."""
    reached: Counter[str] = Counter()
    for seed in KINDS[kind]:
        case = from_seed(seed, kind)
        before, _ = launch(Program(case.unmarked), case)
        form = ("split", "idle lanes")[seed % 2]
        result = rewritten(parse(case.ptx), form, resident=case.resident)
        args, profile = launch(Program(result.module), case)
        assert not differing(before, args), (seed, form)
        for report in result.regions:
            phases = times(result, profile, report.region)
            reached.update(phase for phase, count in phases.items() if count)
            reached.update(
                "any lane" if "whichever lane" in entry.reason else "owner"
                for entry in report.context
                if entry.decision == "reduced"
            )
        for function in parse(case.ptx).functions():
            if function.name.startswith("walk"):
                reached["calls itself" if self_calls(function) else "loops"] += 1
        reached["turns"] += case.resident is not None and case.resident * case.threads < case.total
    return reached


def test_reductions_of_both_forms_are_reached() -> None:
    reached = _reached("reductions")
    assert all(reached[what] >= 3 for what in ("any lane", "owner", "push", "take", "drain")), reached


def test_blocks_take_several_turns() -> None:
    reached = _reached("grid")
    assert all(reached[what] >= 3 for what in ("turns", "whole", "original", "push", "take", "drain")), (
        reached
    )


def test_recursions_of_both_shapes_run_as_tasks() -> None:
    reached = _reached("recursive")
    assert all(reached[what] >= 3 for what in ("calls itself", "loops", "push", "take", "trip", "drain")), (
        reached
    )
