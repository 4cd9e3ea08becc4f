"""What instructions compute: only values, one row per family. Memory, control flow and collectives are elsewhere.

`resolve` turns an opcode's dotted parts into an `Operation` on lanes, or raises an error that names the unknown part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from cccopt.emulator.semantics import bits, compare, convert, floating, integer, packed
from cccopt.emulator.semantics.operation import (
    PRED,
    TYPES,
    Array,
    Modifiers,
    Operation,
    Type,
    UnsupportedError,
)

__all__ = ["PRED", "PURE", "TYPES", "Array", "Operation", "Type", "UnsupportedError", "resolve"]

_Row = Callable[[Modifiers], Operation]


def _by_type(of_integers: _Row, of_floats: _Row) -> _Row:
    def build(m: Modifiers) -> Operation:
        return (of_floats if m.opcode.rsplit(".", 1)[-1].startswith("f") else of_integers)(m)

    return build


_ROWS: dict[str, _Row] = {
    "add": _by_type(integer.add, floating.add),
    "sub": _by_type(integer.sub, floating.sub),
    "mul": _by_type(integer.mul, floating.mul),
    "mad": _by_type(integer.mad, floating.fma),
    "div": _by_type(integer.div, floating.div),
    "abs": _by_type(integer.absolute, floating.absolute),
    "neg": _by_type(integer.neg, floating.neg),
    "min": _by_type(integer.minimum, floating.minimum),
    "max": _by_type(integer.maximum, floating.maximum),
    "rem": integer.rem,
    "addc": integer.addc,
    "subc": integer.subc,
    "madc": integer.madc,
    "mul24": integer.mul24,
    "mad24": integer.mad24,
    "sad": integer.sad,
    "dp4a": integer.dp4a,
    "dp2a": integer.dp2a,
    "and": bits.and_,
    "or": bits.or_,
    "xor": bits.xor,
    "not": bits.not_,
    "cnot": bits.cnot,
    "lop3": bits.lop3,
    "shl": bits.shl,
    "shr": bits.shr,
    "shf": bits.shf,
    "bfe": bits.bfe,
    "bfi": bits.bfi,
    "bfind": bits.bfind,
    "brev": bits.brev,
    "popc": bits.popc,
    "clz": bits.clz,
    "prmt": bits.prmt,
    "fns": bits.fns,
    "bmsk": bits.bmsk,
    "fma": floating.fma,
    "rcp": floating.rcp,
    "sqrt": floating.sqrt,
    "rsqrt": floating.rsqrt,
    "sin": floating.sin,
    "cos": floating.cos,
    "lg2": floating.lg2,
    "ex2": floating.ex2,
    "tanh": floating.tanh,
    "copysign": floating.copysign,
    "testp": floating.testp,
    "cvt": convert.cvt,
    "selp": compare.selp,
    "slct": compare.slct,
}

PURE = frozenset(_ROWS) | {"setp", "set"}
"""The opcodes (first parts) that `resolve` knows."""


def resolve(parts: Sequence[str], *, pair: bool = False, sources: int = 2) -> Operation:
    """The operation of an opcode with one destination or two (``pair``: ``p|q``) and ``sources`` source operands.

    Raises UnsupportedError, which names the unknown opcode or modifier.
    """
    if packed.is_packed(parts):
        return packed.resolve(parts, partial(resolve, pair=pair, sources=sources))
    m = Modifiers(parts)
    if parts[0] == "setp":
        return compare.setp(m, pair=pair, combines=sources == 3)
    if parts[0] == "set":
        return compare.set_(m, combines=sources == 3)
    row = _ROWS.get(parts[0])
    if row is None:
        raise UnsupportedError(f"`{m.opcode}` is not an instruction that the emulator supports")
    return row(m)
