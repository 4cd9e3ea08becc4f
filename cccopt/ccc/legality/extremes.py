"""Minima and maxima of integers as a comparison and a choice, as nvcc emits `if (c) best = max(best, v)`:

setp.lt.s32 %p4, %r37, %r32;
and.pred    %p5, %p3, %p4;              %p3 does not depend on it
selp.b32    %r37, %r32, %r37, %p5;
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cccopt.analysis import effects
from cccopt.analysis.comparisons import is_comparison
from cccopt.ccc.function.view import View
from cccopt.ptx.ir import Instruction, Operand, Register

_LESS, _GREATER = ("lt", "le", "lo", "ls"), ("gt", "ge", "hi", "hs")
_TYPES = ("s32", "u32", "s64", "u64")


@dataclass(frozen=True, slots=True)
class Extremes:
    """``choices`` are the statements that choose, each with `min` or `max`, the type, and the registers of which it
    updates one. ``compares`` are the comparisons read only for a choice, each with that choice.
    """

    choices: Mapping[int, tuple[str, str, frozenset[str]]] = field(default_factory=dict)
    compares: Mapping[int, int] = field(default_factory=dict)


def extremes(view: View, inside: frozenset[int]) -> Extremes:
    """The minima and maxima among the statements ``inside``."""
    choices: dict[int, tuple[str, str, frozenset[str]]] = {}
    compares: dict[int, int] = {}
    for index in sorted(inside):
        found = _choice(view, index)
        if found is not None:
            choices[index], compare = found
            compares[compare] = index
    return Extremes(choices, compares)


def _choice(view: View, index: int) -> tuple[tuple[str, str, frozenset[str]], int] | None:
    choice = view.body[index]
    if not isinstance(choice, Instruction) or choice.base != "selp" or choice.guard is not None:
        return None
    _, first, second, condition = choice.operands
    source = _definition(view, index, condition)
    joined = source is not None and _opcode(view, source) == "and.pred"
    if source is None or not _only_use(view, source, index):
        return None
    if joined:
        statement = view.body[source]
        assert isinstance(statement, Instruction)
        parts = [_definition(view, source, operand) for operand in statement.operands[1:]]
        sources = [p for p in parts if p is not None and _only_use(view, p, source)]
    else:
        sources = [source]
    for compare in sources:
        statement = view.body[compare]
        assert isinstance(statement, Instruction)
        if not is_comparison(statement) or len(statement.parts) != 3 or statement.parts[2] not in _TYPES:
            continue
        _, how, type = statement.parts
        if how not in (*_LESS, *_GREATER):
            continue
        a, b = statement.operands[1:]
        changed = {n for i in range(compare, index) for n in effects.writes(view.body[i])}
        if (
            {a, b} != {first, second}
            or a == b
            or {o.name for o in (a, b) if isinstance(o, Register)} & changed
        ):
            continue
        # The first is chosen if the comparison holds.
        larger = (first == b) == (how in _LESS)
        kept = (second,) if joined else (first, second)
        names = frozenset(o.name for o in kept if isinstance(o, Register))
        return ("max" if larger else "min", type, names), compare
    return None


def _opcode(view: View, index: int) -> str:
    statement = view.body[index]
    return statement.opcode if isinstance(statement, Instruction) else ""


def _definition(view: View, index: int, operand: Operand) -> int | None:
    """The one unguarded statement in the same block that computes an operand."""
    if not isinstance(operand, Register):
        return None
    definitions = view.reaching.reaching(index, operand.name)
    definition = next(iter(definitions), -1)
    if len(definitions) != 1 or definition < 0 or view.cfg.block_of(definition) != view.cfg.block_of(index):
        return None
    statement = view.body[definition]
    return definition if isinstance(statement, Instruction) and statement.guard is None else None


def _only_use(view: View, definition: int, use: int) -> bool:
    """Whether only ``use``, a later statement of the same block, reads what a statement writes."""
    names = effects.writes(view.body[definition])
    between = range(definition + 1, view.cfg.blocks[view.cfg.block_of(definition)].stop)
    readers = {
        i
        for i in between
        for n in effects.needs(view.body[i]) & names
        if definition in view.reaching.reaching(i, n)
    }
    last = view.cfg.block_of(definition)
    left = names & view.liveness.live_out[last]
    lives = any(definition in view.reaching.reaching_end(last, n) for n in left)
    return readers == {use} and not lives
