"""Comparisons and selections (PTX ISA 9.7.7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cccopt.emulator.semantics.floating import flush
from cccopt.emulator.semantics.operation import (
    PRED,
    TYPES,
    Array,
    Modifiers,
    Operation,
    UnsupportedError,
    is_float,
    unsigned,
)

_ORDERED: dict[str, Callable[..., Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_UNSIGNED_ONLY = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_UNORDERED = {"equ": "ne", "neu": "eq", "ltu": "ge", "leu": "gt", "gtu": "le", "geu": "lt"}
_COMPARISONS = (*_ORDERED, *_UNSIGNED_ONLY, *_UNORDERED, "num", "nan")
_COMBINE: dict[str, Callable[..., Any]] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def _comparison(m: Modifiers, name: str, type_name: str, ftz: bool) -> Callable[..., Any]:
    """The function that compares two arrays; an ordered comparison is false for NaN, an unordered one true."""
    if ftz and type_name != "f32":
        raise UnsupportedError(f"`{m.opcode}`: .ftz needs .f32")
    if not is_float(type_name):
        if name in _ORDERED:
            return _ORDERED[name]
        if name in _UNSIGNED_ONLY:
            return _ORDERED[_UNSIGNED_ONLY[name]]
        raise UnsupportedError(f"`{m.opcode}`: .{name} needs a floating-point type")
    plain = _float_comparison(m, name)
    return (lambda a, b: plain(flush(a), flush(b))) if ftz else plain


def _float_comparison(m: Modifiers, name: str) -> Callable[..., Any]:
    if name == "ne":  # numpy's != is true for NaN, PTX's .ne is ordered
        return lambda a, b: (a != b) & (a == a) & (b == b)
    if name in _ORDERED:
        return _ORDERED[name]
    if name in _UNORDERED:
        opposite = _float_comparison(m, _UNORDERED[name])
        return lambda a, b: ~opposite(a, b)
    if name == "num":
        return lambda a, b: (a == a) & (b == b)
    if name == "nan":
        return lambda a, b: (a != a) | (b != b)
    raise UnsupportedError(f"`{m.opcode}`: .{name} needs an unsigned type")


def setp(m: Modifiers, *, pair: bool, combines: bool) -> Operation:
    """``setp.cmp{.op}{.ftz}.type p{|q}, a, b{, c}``."""
    name = m.choice(*_COMPARISONS)
    op = m.choice(*_COMBINE) if combines else ""
    ftz = m.flag("ftz")
    type_name = m.type_of()
    t = TYPES[type_name]
    compare = _comparison(m, name, type_name, ftz)
    if not combines:
        if pair:
            return Operation(lambda a, b: _both(compare(a, b)), (t, t), (PRED, PRED))
        return Operation(compare, (t, t), (PRED,))
    combine = _COMBINE[op]
    if not pair:
        return Operation(lambda a, b, c: combine(compare(a, b), c), (t, t, PRED), (PRED,))

    def run(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
        result = compare(a, b)
        return combine(result, c), combine(~result, c)

    return Operation(run, (t, t, PRED), (PRED, PRED))


def _both(result: Array) -> tuple[Array, Array]:
    return result, ~result


def set_(m: Modifiers, *, combines: bool) -> Operation:
    """``set.cmp{.op}{.ftz}.dtype.stype d, a, b{, c}``: all ones or 1.0 if true."""
    name = m.choice(*_COMPARISONS)
    op = m.choice(*_COMBINE) if combines else ""
    ftz = m.flag("ftz")
    to, of = m.types(2)
    d, t = TYPES[to], TYPES[of]
    true = d.type(1.0) if is_float(to) else d.type(~unsigned(d).type(0).astype(d))
    compare = _comparison(m, name, of, ftz)
    if not combines:
        return Operation(lambda a, b: np.where(compare(a, b), true, d.type(0)), (t, t), (d,))
    combine = _COMBINE[op]
    return Operation(lambda a, b, c: np.where(combine(compare(a, b), c), true, d.type(0)), (t, t, PRED), (d,))


def selp(m: Modifiers) -> Operation:
    """``selp.type d, a, b, p``."""
    t = TYPES[m.type_of()]
    return Operation(lambda a, b, p: np.where(p, a, b), (t, t, PRED), (t,))


def slct(m: Modifiers) -> Operation:
    """``slct{.ftz}.dtype.{s32,f32} d, a, b, c``: a if c >= 0, else b (also for NaN)."""
    ftz = m.flag("ftz")
    to, by = m.types(2)
    t, c_type = TYPES[to], TYPES[by]
    if ftz:
        return Operation(lambda a, b, c: np.where(flush(c) >= 0, a, b), (t, t, c_type), (t,))
    return Operation(lambda a, b, c: np.where(c >= 0, a, b), (t, t, c_type), (t,))
