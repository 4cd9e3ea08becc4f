"""Local memory in a context (`cccopt.ccc.legality.local_context`): how its words are named, reported and declared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from cccopt.ccc.function.code import number
from cccopt.ccc.legality.local_context import LocalWord
from cccopt.ccc.plan.context import LiveIn, Placement
from cccopt.ccc.plan.stack import Value
from cccopt.ptx.ir import Address, Statement, Symbol, Variable
from cccopt.ptx.isa import width


def local_value(word: LocalWord) -> Value:
    """A word of local memory as a value of a context."""
    address = Address(Symbol(word.variable), number(word.offset) if word.offset else None)
    return Value(f"{word.variable}+{word.offset}", f"b{word.size * 8}", address)


def local_live_ins(words: Iterable[LocalWord]) -> tuple[LiveIn, ...]:
    """What reports say about the words: an entry for each contiguous range of bytes, named after its bounds
    (half-open).
    """
    stretches: list[tuple[str, int, int]] = []
    for word in words:
        variable, start, stop = stretches.pop() if stretches else (word.variable, word.offset, word.offset)
        if (variable, stop) != (word.variable, word.offset):
            stretches.append((variable, start, stop))
            start = word.offset
        stretches.append((word.variable, start, word.offset + word.size))
    reason = "the rest of the iteration loads what the iteration has stored there"
    return tuple(
        LiveIn(f"{_named(variable)} [{start}, {stop})", f"b8[{stop - start}]", Placement.COLLECTED, reason)
        for variable, start, stop in stretches
    )


def _named(variable: str) -> str:
    """The name of a local variable in reports: nvcc puts all local variables of a function into one."""
    return "local memory" if variable.startswith("__local_depot") else variable


def realigned(declarations: Iterable[Statement], alignments: Mapping[str, int]) -> tuple[Statement, ...]:
    """``declarations`` with local variables aligned to their words, and their sizes rounded up accordingly."""
    return tuple(
        _realigned(s, alignments[s.name]) if isinstance(s, Variable) and s.name in alignments else s
        for s in declarations
    )


def _realigned(variable: Variable, alignment: int) -> Variable:
    natural = size = width(variable.type.lstrip(".")) // 8
    for extent in variable.dimensions:
        size *= extent or 0
    rounded = (size + alignment - 1) // alignment * alignment
    aligned = replace(variable, alignment=max(variable.alignment or natural, alignment))
    # Only the size of the variable depends on its type.
    return aligned if rounded == size else replace(aligned, type=".b8", dimensions=(rounded,))
