"""The switches of mutants (`bench.mutation`), copied into the package that holds them all."""

from __future__ import annotations

active = -1
"""The mutant that is on."""

reached: set[int] = set()
"""The mutants that could have changed something since this was cleared."""


def on(number: int) -> bool:
    """Whether a mutant's change takes place here."""
    reached.add(number)
    return number == active


def value(number: int, plain: object, changed: bool) -> object:
    """A part of a condition, or what a mutant makes of it."""
    if plain is not changed:
        reached.add(number)
    return changed if number == active else plain
