"""The mutants of `bench.mutation`: what is found in a text, what the switches do, and the reasons that are kept."""

from __future__ import annotations

import ast

import pytest

from bench import mutation_probe as probe
from bench.mutation import ORDER, Switches, mutants
from bench.mutation_equivalent import EQUIVALENT

RULE = """
def rule(a, b):
    if a and b:
        raise refuse("no")
    return "passes"
"""
CODE = """
def code(names):
    return [op("bar.warp.sync", MASK), op("add", 1, guard=7), *(clear(n) for n in names)]
"""


def run(file: str, source: str, function: str, *arguments: object) -> list[object]:
    """What the function gives without a mutant and with each, exceptions as text."""
    switches = Switches(file, source)
    tree = ast.fix_missing_locations(switches.visit(ast.parse(source)))
    found: list[object] = []
    names = {
        "_probe": probe,
        "refuse": ValueError,
        "MASK": -1,
        "op": lambda *a, **k: (*a, *k.values()),
        "clear": lambda name: ("clear", name),
    }
    exec(compile(tree, file, "exec"), names)
    try:
        for number in range(-1, len(switches.found)):
            probe.active = number
            try:
                found.append(names[function](*arguments))  # type: ignore[operator]
            except ValueError as refused:
                found.append(str(refused))
    finally:
        probe.active = -1
    return found


def test_a_rule_and_each_part_of_its_condition_are_switched_off() -> None:
    kinds = Switches(ORDER[0], RULE)
    kinds.visit(ast.parse(RULE))
    assert [mutant.kind for mutant in kinds.found] == ["condition", "condition", "rule"]
    assert run(ORDER[0], RULE, "rule", True, True) == ["no", "no", "no", "passes"]
    assert run(ORDER[0], RULE, "rule", False, True) == ["passes", "no", "passes", "passes"]


def test_a_barrier_a_guard_and_a_cleared_register_are_left_out() -> None:
    barrier, guarded, cleared = ("bar.warp.sync", -1), ("add", 1, 7), ("clear", "r")
    assert sorted(map(str, run("ccc/codegen/drain.py", CODE, "code", ["r"]))) == sorted(
        map(
            str,
            (
                [barrier, guarded, cleared],
                [guarded, cleared],
                [barrier, ("add", 1), cleared],
                [barrier, guarded],
            ),
        )
    )


@pytest.mark.parametrize(
    ("given", "changed", "came"), [(True, False, True), (False, False, False), ((), False, True)]
)
def test_a_test_comes_to_a_mutant_that_sees_another_value(given: object, changed: bool, came: bool) -> None:
    probe.reached.clear()
    assert probe.value(5, given, changed) == given
    assert (5 in probe.reached) == came
    probe.reached.clear()


def test_names_tell_mutants_apart_and_reasons_are_about_some_of_them() -> None:
    found, texts = mutants()
    names = [mutant.name for mutant in found]
    assert len(names) == len(set(names))
    assert EQUIVALENT.keys() <= set(names)
    assert all(EQUIVALENT.values())
    for file, text in texts.items():
        compile(text, file, "exec")
    kinds = {mutant.kind for mutant in found}
    assert kinds == {"rule", "condition", "barrier", "guard", "clear"}
