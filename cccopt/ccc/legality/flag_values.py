"""What is known about the value that an instruction computes from flags: a few numbers, not zero, or nothing.

    selp.u16 %rs1, 1, 0, %p1;       {0, 1}
    or.b32   %r1, %r2, %r3;         not zero, where %r2 is
    setp.ne.s32 %p2, %r1, 0;        {1} then, else {0, 1}
    shr.u32  %r4, %r5, 31;          {0, 1}

Predicates are 0 or 1; other values are the bits of the register.

P. Cousot, R. Cousot, "Abstract interpretation", POPL 1977.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

from cccopt.analysis.comparisons import is_comparison
from cccopt.ptx.ir import Instruction, Literal, Operand, Register
from cccopt.ptx.isa import width


class Unknown(Enum):
    """Values that cannot be listed."""

    ANY = "any"
    NONZERO = "not zero"


Values = frozenset[int] | Unknown
"""The values that a register may hold."""

BOOLEAN = frozenset({0, 1})
KEPT = -1
"""In a list of values, one value about which nothing is known."""

_MOST = 4
"""Longer lists are not kept."""

FLAG_OPCODES = frozenset({"mov", "selp", "setp", "and", "or", "xor", "not", "cvt"})
"""The opcodes that may handle a flag; `result` models each of them."""

_LOGIC: Mapping[str, Callable[[int, int], int]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}
_INTEGERS = frozenset(f"{sign}{bits}" for sign in "bsu" for bits in (8, 16, 32, 64))


def bits_of(literal: Literal, size: int) -> int:
    """The bits of a literal in a register of ``size`` bits."""
    spelling = literal.spelling
    number = int(spelling[2:], 16) if spelling[:2].lower() in ("0f", "0d") else int(spelling.rstrip("Uu"), 0)
    return number & ((1 << size) - 1)


def result(instruction: Instruction, known: Mapping[str, Values], types: Mapping[str, str]) -> Values:
    """What ``instruction`` leaves in the one register that it writes, given the ``known`` values of others."""
    made = _made(instruction, known, types)
    if types.get(_name(instruction.operands[0])) == "pred" and isinstance(made, Unknown):
        made = BOOLEAN
    if instruction.guard is None:
        return made
    return either(made, _value(instruction.operands[0], 0, known, types))


def either(*values: Values) -> Values:
    """What is known about one of several values, whichever it is."""
    lists = [value for value in values if isinstance(value, frozenset)]
    if len(lists) == len(values):
        made = frozenset[int]().union(*lists)
        return made if len(made) <= _MOST else Unknown.ANY
    return Unknown.NONZERO if all(map(is_nonzero, values)) else Unknown.ANY


def is_nonzero(value: Values) -> bool:
    """Whether a value is surely not 0."""
    return value is Unknown.NONZERO or (isinstance(value, frozenset) and not value & {0, KEPT})


def is_among(value: Values, others: frozenset[int]) -> bool:
    """Whether a value is surely one of ``others``."""
    return isinstance(value, frozenset) and value <= others


def _made(instruction: Instruction, known: Mapping[str, Values], types: Mapping[str, str]) -> Values:
    _, *sources = instruction.operands
    kind = instruction.parts[-1]
    size = 1 if kind == "pred" else width(kind) if kind[1:].isdigit() else 0
    if not size or any(not isinstance(s, Register | Literal) for s in sources):
        return Unknown.ANY
    values = [_value(s, size, known, types) for s in sources]
    match instruction.base, values:
        case "mov", [value]:
            return value
        case "selp", [first, second, frozenset() as condition] if condition <= BOOLEAN:
            chosen = [(second, first)[k] for k in condition]
            return chosen[0] if len(chosen) == 1 else either(*chosen)
        case "setp", [first, second] if _is_equality(instruction) and kind in _INTEGERS:
            return _compared(first, second, equal=instruction.parts[1] == "eq")
        case ("and" | "or" | "xor") as sign, [first, second]:
            return _combined(sign, first, second)
        case "not", [frozenset() as value] if kind == "pred" and value <= BOOLEAN:
            return frozenset(1 - v for v in value)
        case "cvt", [frozenset() as value] if KEPT not in value and _is_of_integers(instruction, types):
            return frozenset(_converted(v, *instruction.parts[1:]) for v in value)
        case "shr", [_, frozenset() as count] if kind[0] == "u" and count == {size - 1}:
            return BOOLEAN
    return Unknown.ANY


def _is_equality(instruction: Instruction) -> bool:
    return is_comparison(instruction) and instruction.parts[1] in ("eq", "ne")


def _is_of_integers(convert: Instruction, types: Mapping[str, str]) -> bool:
    """Whether a `cvt` converts an integer to an integer as wide as the register that it writes."""
    _, *kinds = convert.parts
    integers = len(kinds) == 2 and {*kinds} <= _INTEGERS
    return integers and width(kinds[0]) == width(types[_name(convert.operands[0])])


def _converted(value: int, goal: str, source: str) -> int:
    """The bits of an integer of type ``source``, which may be the low bits of a register, as type ``goal``."""
    size = width(source)
    value &= (1 << size) - 1
    if source[0] == "s" and value >> (size - 1):
        value -= 1 << size
    return value & ((1 << width(goal)) - 1)


def _value(operand: Operand, size: int, known: Mapping[str, Values], types: Mapping[str, str]) -> Values:
    if isinstance(operand, Literal):
        return frozenset({bits_of(operand, size)})
    unknown: Values = BOOLEAN if types.get(_name(operand)) == "pred" else Unknown.ANY
    return known.get(_name(operand), unknown)


def _name(operand: Operand) -> str:
    return operand.name if isinstance(operand, Register) else ""


def _compared(first: Values, second: Values, *, equal: bool) -> Values:
    if isinstance(first, frozenset) and isinstance(second, frozenset) and KEPT not in first | second:
        return frozenset(int((a == b) == equal) for a in first for b in second)
    apart = any(is_nonzero(a) and b == frozenset({0}) for a, b in ((first, second), (second, first)))
    return frozenset({int(not equal)}) if apart else BOOLEAN


def _combined(sign: str, first: Values, second: Values) -> Values:
    if isinstance(first, frozenset) and isinstance(second, frozenset) and KEPT not in first | second:
        made = frozenset(_LOGIC[sign](a, b) for a in first for b in second)
        return made if len(made) <= _MOST else Unknown.ANY
    pair = (first, second)
    if sign == "and" and frozenset({0}) in pair:
        return frozenset({0})
    if sign == "and" and frozenset({1}) in pair:
        return BOOLEAN
    return Unknown.NONZERO if sign == "or" and any(map(is_nonzero, pair)) else Unknown.ANY
