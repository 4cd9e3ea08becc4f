"""Numbers over the iterations of a loop: how much they grow from one iteration to the next, and what else varies.

An abstract interpretation of integer arithmetic; `cccopt.ccc.legality.thread_memory` runs it over the code of an
iteration. Cousot, Cousot, "Abstract interpretation", POPL 1977.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cccopt.analysis.affine import may_recur
from cccopt.ptx import isa
from cccopt.ptx.ir import Instruction, Operand
from cccopt.ptx.isa import Arithmetic

SYMBOLIC = math.inf
"""The growth of what advances by a register that is the same in all iterations: not zero, and above any span."""

UNBOUNDED = math.inf

_LANES = 32
"""In a warp."""

MIXED = -1
"""In place of a statement: which one computes the number depends on a condition."""

_RANGE = float(1 << 24)
"""What a quotient spans, times its divisor, at least: an offset that spans less does not make up for growth."""

_WIDE = 1 << 16
"""A mask below this gives an offset. Others, of high bits above all, give the rest of a number without one."""


@dataclass(frozen=True, slots=True)
class Scrambled:
    """A number contains ``factor`` times what statement ``of`` computes from an iteration's number, by arithmetic that
    is not followed: a quotient, for example. ``rest`` is the growth of what was added to that: of `i` in the remainder
    `i - i / 3 * 3`. ``counter`` is as in `Number`.
    """

    of: int
    factor: float = 1
    rest: float = 0
    counter: str = ""


@dataclass(frozen=True, slots=True)
class Number:
    """What is known about a register over the iterations of one thread (`cccopt.ccc.legality.thread_memory`).

    ``growth`` is from one iteration to the next, ``span`` is the range of whatever else varies. ``apart`` is the
    distance between neighboring lanes in what is fixed over the iterations (`UNBOUNDED` if unknown), and ``value`` the
    number itself if it is a constant. A ``scrambled`` number is computed from one that grows, but does not grow with
    it. One that grows is a multiple of the register ``counter``, plus what is no thread's own; empty if not known.
    """

    growth: float = 0
    span: float = 0
    apart: float = 0
    value: int | None = None
    scrambled: Scrambled | None = None
    counter: str = ""

    @property
    def fixed(self) -> bool:
        """Whether the number is the same in all iterations."""
        return self.growth == 0 and self.span == 0


DATA = Number(span=UNBOUNDED)
"""What is loaded from memory, or computed by arithmetic that is not followed."""


def additions(statement: Instruction) -> Sequence[tuple[Operand, tuple[Operand, ...]]]:
    """The ways to see a result as an operand plus an amount that is the product of other operands."""
    sources = statement.operands[1:]
    match isa.facts(statement).arithmetic, sources:
        case Arithmetic.SUM, (a, b):
            return ((a, (b,)), (b, (a,)))
        case Arithmetic.PRODUCT_SUM, (a, b, c) if "hi" not in statement.parts:
            return ((c, (a, b)),)
        case Arithmetic.DIFFERENCE, (a, b):
            return ((a, (b,)),)
        case Arithmetic.COPY, (a,):
            return ((a, ()),)
    return ()


def combined(statement: Instruction, sources: Sequence[Number], index: int = 0) -> Number:
    """The result of a pure instruction, statement ``index``, from its operands."""
    found = _combined(statement, sources, index)
    recurs = found is not None and found.growth and may_recur(statement, found.growth)
    return _opaque(statement, sources, index) if found is None or recurs else found


def _combined(statement: Instruction, sources: Sequence[Number], index: int) -> Number | None:
    """The result of arithmetic that is followed."""
    high = "hi" in statement.parts
    types = [part for part in statement.parts if part in isa.WIDTHS]
    if not all(type[0] in "bsu" and isa.WIDTHS[type] >= 16 for type in types):
        return None
    match isa.facts(statement).arithmetic, sources:
        case Arithmetic.COPY, [a]:
            return a if a.growth or a.fixed else replace(a, span=min(a.span, *map(values_of, types)))
        case (Arithmetic.SUM | Arithmetic.DISJUNCTION, [a, b]):
            return _sum(a, b, index)
        case Arithmetic.DIFFERENCE, [a, b]:
            return _sum(a, _product(b, Number(value=-1), index), index)
        case Arithmetic.NEGATION, [a]:
            return _product(a, Number(value=-1), index)
        case Arithmetic.PRODUCT, [a, b] if not high:
            return _product(a, b, index)
        case Arithmetic.PRODUCT_SUM, [a, b, c] if not high:
            return _sum(_product(a, b, index), c, index)
        case Arithmetic.LEFT_SHIFT, [a, b]:
            by = b.value if b.value is None else 1 << (b.value & 63)
            return _product(a, replace(b, value=by), index)
        case (Arithmetic.RIGHT_SHIFT | Arithmetic.QUOTIENT as how, [a, b]) if (
            b.value is not None and 0 < b.value < 64
        ):
            by = 1 << b.value if how is Arithmetic.RIGHT_SHIFT else b.value
            if a.growth and a.growth % by == 0:
                return _quotient(a, by)
        case Arithmetic.SELECTION, [a, b, _]:
            return joined([a, b], 0)
    return None


def _sum(a: Number, b: Number, index: int) -> Number:
    for one, other in ((a, b), (b, a)):
        if one.scrambled is not None and other.growth and one.span >= _RANGE:
            # A remainder, for example: `i - i / 3 * 3` comes back, and like `i / 3` it belongs to no thread. What is
            # subtracted from another counter may leave what is the thread's own in that.
            own = 0 if one.scrambled.counter and one.scrambled.counter == other.counter else other.apart
            kept = (
                replace(one.scrambled, rest=other.growth)
                if not one.scrambled.rest
                else _scrambled(index, one)
            )
            return Number(span=UNBOUNDED, apart=_added(one.apart, own), scrambled=kept)
    apart = _added(a.apart, b.apart)
    if a.scrambled is not None and b.scrambled is not None:
        return _both_scrambled(a.scrambled, b.scrambled, apart, index)
    if {a.growth, b.growth} == {SYMBOLIC, -SYMBOLIC}:
        # The difference of two counters may stay the same.
        return replace(DATA, apart=apart, scrambled=_scrambled(index, a, b))
    value = None if a.value is None or b.value is None else a.value + b.value
    return Number(
        a.growth + b.growth,
        a.span + b.span,
        apart,
        value,
        a.scrambled or b.scrambled,
        _counter(a, b),
    )


def _added(a: float, b: float) -> float:
    """The sum of two distances; infinity less infinity is not a number."""
    return UNBOUNDED if UNBOUNDED in (abs(a), abs(b)) else a + b


def _counter(*numbers: Number) -> str:
    """The register that all growing ones of some numbers count with, unless others are the thread's own."""
    found = {number.counter for number in numbers if number.growth}
    own = any(number.apart and not number.growth for number in numbers)
    return found.pop() if len(found) == 1 and not own else ""


def _both_scrambled(a: Scrambled, b: Scrambled, apart: float, index: int) -> Number:
    """The sum of two scrambled numbers. A quotient and the remainder of the same division grow together, as a row and a
    column do, if the factor of the quotient is at least what it was subtracted with.
    """
    if a.of == b.of != MIXED and bool(a.rest) != bool(b.rest):
        remainder, quotient = (a, b) if a.rest else (b, a)
        if abs(quotient.factor) >= abs(remainder.factor):
            return Number(remainder.rest, UNBOUNDED, apart)
    counter = a.counter if a.counter == b.counter else ""
    return Number(span=UNBOUNDED, apart=apart, scrambled=Scrambled(index, counter=counter))


def _product(a: Number, b: Number, index: int) -> Number:
    if a.value is not None:
        a, b = b, a
    if b.value is not None:
        # Infinity times zero is not a number.
        if b.value == 0:
            return Number(value=0)
        value = None if a.value is None else a.value * b.value
        return Number(
            a.growth * b.value,
            a.span * abs(b.value),
            a.apart * b.value,
            value,
            _times(a.scrambled, b.value),
            a.counter,
        )
    apart = UNBOUNDED if a.apart or b.apart else 0
    if a.fixed and b.fixed:
        return Number(apart=apart)
    if not (a.fixed or b.fixed):
        return replace(DATA, apart=0 if a.growth or b.growth else apart, scrambled=_scrambled(index, a, b))
    varying = b if a.fixed else a
    growth, span = SYMBOLIC if varying.growth else 0, UNBOUNDED if varying.span else 0
    found = varying.scrambled
    if found is not None:
        # By how much a remainder grows within its division is not known any more.
        found = _scrambled(index, varying) if found.rest else replace(found, factor=SYMBOLIC)
    return Number(growth, span, apart, None, found, varying.counter)


def _times(found: Scrambled | None, factor: float) -> Scrambled | None:
    """What is scrambled in a number that is multiplied by a constant."""
    return found and replace(found, factor=found.factor * factor, rest=found.rest * factor)


def _quotient(a: Number, by: int) -> Number:
    """A number divided, with rounding, by a constant of which its growth is a multiple."""
    apart = a.apart / by if a.apart % by == 0 else UNBOUNDED
    return Number(a.growth / by, a.span / by + bool(a.span), apart)


def _opaque(statement: Instruction, sources: Sequence[Number], index: int) -> Number:
    """The result of an operation that scrambles its operands. What is computed from an iteration's number belongs to no
    thread, whichever thread runs that iteration.
    """
    apart = UNBOUNDED if any(number.apart and not number.growth for number in sources) else 0
    if all(number.fixed for number in sources):
        return Number(apart=apart)
    literals = [number.value for number in sources if number.value is not None]
    span = UNBOUNDED
    arithmetic = isa.facts(statement).arithmetic
    if arithmetic is Arithmetic.CONJUNCTION and literals and literals[-1] >= 0:
        mask = literals[-1]
        span = mask if mask < _WIDE or mask & (mask + 1) == 0 else UNBOUNDED
    elif arithmetic is Arithmetic.REMAINDER and sources[-1].value:
        span = abs(sources[-1].value)
    if span != UNBOUNDED:
        own = apart if _parts_lanes(span, sources) else 0
        return Number(span=span, apart=own, scrambled=_scrambled(index, *sources) if span >= _WIDE else None)
    unsigned = statement.parts[-1] in ("u32", "u64")
    if arithmetic is Arithmetic.RIGHT_SHIFT and sources[-1].value is not None and unsigned:
        span = float((1 << max(isa.width(statement.parts[-1]) - sources[-1].value, 0)) - 1)
    elif arithmetic is Arithmetic.BIT_FIELD and sources[-1].value is not None:
        span = float((1 << (sources[-1].value & 63)) - 1)
    elif statement.base == "cvt":
        span = min(values_of(part) for part in statement.parts[1:])
    return Number(span=span, apart=apart, scrambled=_scrambled(index, *sources))


def _scrambled(index: int, *sources: Number, growing: bool = True) -> Scrambled | None:
    """What statement ``index`` scrambles: numbers that grow, unless not ``growing``, and what is computed from them."""
    found = (n for n in sources if n.scrambled or (growing and n.growth))
    counters = {n.scrambled.counter if n.scrambled else n.counter for n in found}
    return Scrambled(index, counter=counters.pop() if len(counters) == 1 else "") if counters else None


def _parts_lanes(span: float, sources: Sequence[Number]) -> bool:
    """Whether all lanes of a warp may find places of their own in ``span``, as in a ring that they share: of fewer
    remainders, threads have the same ones.
    """
    distances = [abs(number.apart) for number in sources if number.apart and not number.growth]
    known = [distance for distance in distances if distance != UNBOUNDED]
    return span >= (_LANES - 1) * min(known, default=1)


def joined(numbers: Sequence[Number], spread: float) -> Number:
    """One of several numbers, plus up to ``spread``."""
    if not numbers:
        return DATA
    apart = max(abs(number.apart) for number in numbers)
    values = [number.value for number in numbers if number.value is not None]
    if len(values) == len(numbers):
        return Number(span=max(values) - min(values) + spread, apart=apart)
    scrambled = numbers[0].scrambled if len(numbers) == 1 else _scrambled(MIXED, *numbers, growing=False)
    if len({number.growth for number in numbers}) > 1:
        return replace(DATA, apart=apart, scrambled=scrambled)
    span = max(number.span for number in numbers) + (spread if len(numbers) == 1 else UNBOUNDED)
    return Number(numbers[0].growth, span, apart, scrambled=scrambled)


def values_of(type: str | None) -> float:
    """The span of all values of a type; types of 32 bits and more count as unbounded."""
    narrow = type is not None and type[0] in "bsu" and isa.WIDTHS.get(type, 64) < 32
    return float((1 << isa.WIDTHS[type]) - 1) if narrow and type is not None else UNBOUNDED
