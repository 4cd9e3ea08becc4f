"""What is known about the results of single instructions as numbers, and about special registers."""

from __future__ import annotations

import math

from cccopt.analysis.cost import integer
from cccopt.analysis.polynomials import Atom
from cccopt.ptx import isa
from cccopt.ptx.ir import Function, Instruction
from cccopt.ptx.isa import Arithmetic, Memory

_MOST_THREADS = {"x": 1024, "y": 1024, "z": 64}
_MOST_BLOCKS = (1 << 31) - 1


def types_of(instruction: Instruction) -> list[str]:
    """The types in an opcode, in order."""
    return [part for part in instruction.parts if part in isa.WIDTHS]


def bounds_of(instruction: Instruction) -> tuple[int | None, int | None, bool]:
    """The least and the largest number that a result may be, and whether it is a 32-bit value with neither known."""
    facts = isa.facts(instruction)
    types = types_of(instruction)
    if facts.memory is Memory.LOAD:
        return _of_type(types[-1]) if types else (None, None, False)
    literals = [n for o in instruction.operands[1:] if (n := integer(o)) is not None]
    # The distance of a shift, or a divisor.
    by = (integer(instruction.operands[-1]) if instruction.operands else None) or 0
    width = isa.WIDTHS[types[0]] if types else 64
    match facts.arithmetic:
        case Arithmetic.CONJUNCTION if literals and literals[-1] >= 0:
            return 0, literals[-1], False
        case Arithmetic.RIGHT_SHIFT if 0 < by < width and types[0][0] == "u":
            return 0, (1 << width - by) - 1, False
        case Arithmetic.REMAINDER if by > 0:
            return (0 if types[0][0] == "u" else 1 - by), by - 1, False
        case Arithmetic.SELECTION if len(literals) == 2:
            return min(literals), max(literals), False
    if instruction.base == "cvt" and len(types) > 1 and isa.WIDTHS[types[1]] < 32:
        return _of_type(types[1])
    return None, None, width == 32


def _of_type(type: str) -> tuple[int | None, int | None, bool]:
    width = isa.WIDTHS[type]
    if type[0] not in "bsu" or width >= 32:
        return None, None, width == 32
    low = -(1 << width - 1) if type[0] == "s" else 0
    return low, low + (1 << width) - 1, False


def special(name: str, function: Function) -> Atom | None:
    """A special register that keeps its value; None for others, about which nothing is known."""
    what, _, axis = name.removeprefix("%").partition(".")
    key = ("special", name)
    if what in ("tid", "ntid") and axis in _MOST_THREADS:
        exact, most = _threads(function, axis)
        if what == "ntid":
            return Atom(key, most if exact else 1, most)
        return Atom(key, 0, most - 1, lanes=True)
    if what in ("ctaid", "nctaid") and axis in _MOST_THREADS:
        if what == "nctaid":
            return Atom(key, 1, _MOST_BLOCKS)
        return Atom(key, 0, _MOST_BLOCKS - 1, blocks=True)
    return Atom(key, 0, 31, lanes=True) if name == "%laneid" else None


def _threads(function: Function, axis: str) -> tuple[bool, int]:
    """Whether a block always has the same number of threads along an axis, and the most that it may have."""
    most = _MOST_THREADS[axis]
    for directive in function.directives:
        if directive.name not in (".reqntid", ".maxntid"):
            continue
        sizes = [int(size) for size in directive.arguments] + [1, 1]
        if directive.name == ".reqntid":
            return True, sizes["xyz".index(axis)]
        most = min(most, math.prod(sizes))
    return False, most
