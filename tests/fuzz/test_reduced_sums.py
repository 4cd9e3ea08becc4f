"""`reduce` variables that are updated in several places of an iteration: a part of what `reduced_sums` can make."""

from __future__ import annotations

from functools import cache

import pytest

from tests.fuzz.judge import Pair, alone, compile_pair, judge
from tests.fuzz.reduced_sums import LAUNCHES, Case, cases

pytestmark = pytest.mark.nvcc

CHOSEN = (
    Case("+ unsigned", "if", "one", ("before", "path", "after")),
    Case("- int", "if", "each", ("before", "path", "after", "nested", "if after")),
    Case("+ float", "if else", "one", ("path", "else", "after", "if after")),
    Case("^ unsigned", "if else", "each", ("before", "else", "if after", "loop after")),
    Case("max float", "if else", "each", ("before", "path", "else", "after")),
    Case("+ long", "switch", "each", ("before", "path", "else", "after", "nested")),
    Case("min int", "switch", "one", ("before", "path", "after", "if after")),
    Case("* unsigned", "while", "each", ("before", "path", "after")),
    Case("| long", "while", "one", ("before", "path", "after", "loop after")),
    Case("+ double", "for variable", "each", ("before", "path", "after")),
    Case("& unsigned", "for variable", "one", ("before", "path", "if after")),
    Case("max unsigned", "if in while", "each", ("before", "path", "after", "nested")),
    Case("+ int", "if in for variable", "one", ("before", "path", "after", "nested")),
    Case("- float", "while in if", "one", ("before", "path", "after", "nested")),
    Case("^ unsigned", "for variable in if", "each", ("path", "after", "nested", "if after")),
    Case("| bool", "if", "each", ("before", "path", "after")),
    Case("| bool of int", "while in if", "each", ("path", "nested", "if after")),
    Case("or bool", "if in while", "each", ("path", "nested", "loop after")),
    Case("set bool", "switch", "each", ("path", "else", "nested")),
    Case("and bool", "if else", "each", ("before", "else", "if after")),
    Case("unset bool", "for variable", "each", ("path", "after")),
    Case("set short", "if in for variable", "each", ("before", "nested")),
    Case("set float", "while", "each", ("path", "if after")),
    Case("set always", "while", "each", ("nested",)),
)


@cache
def compiled() -> Pair:
    return compile_pair("\n".join(case.cuda() for case in CHOSEN))


FORMS = ("split", "idle lanes")


@pytest.mark.parametrize("number", range(len(CHOSEN)), ids=lambda number: CHOSEN[number].name)
def test_all_updates_count(number: int) -> None:
    """Expanded and with stacks, in lock-step and shuffled, hazards reported; in the forms by turns."""
    case = CHOSEN[number]
    verdict = judge(
        alone(compiled(), case.name), case.name, case.arguments, LAUNCHES[:1], forms=FORMS[number % 2 :][:1]
    )
    assert not verdict.wrong
    assert all(counts.get("take") or counts.get("trip") for counts in verdict.ran.values())


def test_nothing_of_a_kind_is_left_out() -> None:
    everything = list(cases())
    assert len({case.name for case in everything}) == len(everything) > 10_000
    assert {case.kind for case in CHOSEN} == {case.kind for case in everything}
    assert set(CHOSEN) <= set(everything)
