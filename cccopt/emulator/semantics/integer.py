"""Integer arithmetic (PTX ISA 9.7.1, 9.7.2). Results wrap, like those of numpy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cccopt.emulator.semantics.operation import (
    PRED,
    TYPES,
    Array,
    Modifiers,
    Operation,
    Type,
    UnsupportedError,
    bits,
    unsigned,
    wider,
)

_WORDS = ("u16", "u32", "u64", "s16", "s32", "s64", "b16", "b32", "b64")
_LETTERS = {"u32": "u", "s32": "i"}
"""numpy's letters for the types of packed values."""


def add(m: Modifiers) -> Operation:
    """``add{.sat|.cc}.type d, a, b``."""
    if m.flag("cc"):
        return _carry(m, _add_carry, carry_in=False, carry_out=True)
    return _linear(m, np.add)


def sub(m: Modifiers) -> Operation:
    """``sub{.sat|.cc}.type d, a, b``."""
    if m.flag("cc"):
        return _carry(m, _sub_borrow, carry_in=False, carry_out=True)
    return _linear(m, np.subtract)


def addc(m: Modifiers) -> Operation:
    """``addc{.cc}.type d, a, b``: plus the carry flag."""
    return _carry(m, _add_carry, carry_in=True, carry_out=m.flag("cc"))


def subc(m: Modifiers) -> Operation:
    """``subc{.cc}.type d, a, b``: minus the borrow, which the carry flag holds."""
    return _carry(m, _sub_borrow, carry_in=True, carry_out=m.flag("cc"))


def _linear(m: Modifiers, function: Callable[..., Any]) -> Operation:
    saturates = m.flag("sat")
    t = TYPES[m.type_of(*_WORDS)]
    if not saturates:
        return Operation(function, (t, t), (t,))
    if t != TYPES["s32"]:
        raise UnsupportedError(f"`{m.opcode}`: .sat needs .s32")
    return Operation(lambda a, b: _clip_s32(function(a, b, dtype=np.int64)), (t, t), (t,))


def _clip_s32(a: Array) -> Array:
    return np.clip(a, -(2**31), 2**31 - 1).astype(np.int32)


def _add_carry(a: Array, b: Array, carry: Array | None) -> tuple[Array, Array]:
    total = a + b
    out = total < a
    if carry is not None:
        total = total + carry.astype(a.dtype)
        out = out | (carry & (total == 0))
    return total, out


def _sub_borrow(a: Array, b: Array, borrow: Array | None) -> tuple[Array, Array]:
    difference = a - b
    out = a < b
    if borrow is not None:
        out = out | (borrow & (difference == 0))
        difference = difference - borrow.astype(a.dtype)
    return difference, out


def _carry(m: Modifiers, function: Callable[..., Any], *, carry_in: bool, carry_out: bool) -> Operation:
    t = unsigned(TYPES[m.type_of("u32", "s32", "u64", "s64", "b32", "b64")])
    inputs = (t, t, PRED) if carry_in else (t, t)

    def run(a: Array, b: Array, carry: Array | None = None) -> Any:
        result, out = function(a, b, carry)
        return (result, out) if carry_out else result

    return Operation(run, inputs, (t, PRED) if carry_out else (t,), carry_in, carry_out)


def mul(m: Modifiers) -> Operation:
    """``mul.{lo,hi,wide}.type d, a, b``."""
    half = m.choice("lo", "hi", "wide")
    t = TYPES[m.type_of(*_WORDS)]
    if half == "lo":
        return Operation(np.multiply, (t, t), (t,))
    if half == "hi":
        return Operation(high_product, (t, t), (t,))
    w = _wide(m, t)
    return Operation(lambda a, b: np.multiply(a, b, dtype=w), (t, t), (w,))


def mad(m: Modifiers) -> Operation:
    """``mad.{lo,hi,wide}{.sat|.cc}.type d, a, b, c``."""
    if m.flag("cc"):
        return _mad_carry(m, carry_in=False, carry_out=True)
    half = m.choice("lo", "hi", "wide")
    saturates = m.flag("sat")
    t = TYPES[m.type_of(*_WORDS)]
    if saturates:
        if half != "hi" or t != TYPES["s32"]:
            raise UnsupportedError(f"`{m.opcode}`: .sat needs .hi and .s32")
        return Operation(
            lambda a, b, c: _clip_s32(np.add(high_product(a, b), c, dtype=np.int64)), (t, t, t), (t,)
        )
    if half == "lo":
        return Operation(lambda a, b, c: a * b + c, (t, t, t), (t,))
    if half == "hi":
        return Operation(lambda a, b, c: high_product(a, b) + c, (t, t, t), (t,))
    w = _wide(m, t)
    return Operation(lambda a, b, c: np.multiply(a, b, dtype=w) + c, (t, t, w), (w,))


def madc(m: Modifiers) -> Operation:
    """``madc.{lo,hi}{.cc}.type d, a, b, c``: plus the carry flag."""
    return _mad_carry(m, carry_in=True, carry_out=m.flag("cc"))


def _mad_carry(m: Modifiers, *, carry_in: bool, carry_out: bool) -> Operation:
    high = m.choice("lo", "hi") == "hi"
    signed = TYPES[m.type_of("u32", "s32", "u64", "s64")]
    t = unsigned(signed)

    def run(a: Array, b: Array, c: Array, carry: Array | None = None) -> Any:
        product = high_product(a.view(signed), b.view(signed)).view(t) if high else a * b
        result, out = _add_carry(product, c, carry)
        return (result, out) if carry_out else result

    inputs = (t, t, t, PRED) if carry_in else (t, t, t)
    return Operation(run, inputs, (t, PRED) if carry_out else (t,), carry_in, carry_out)


def _wide(m: Modifiers, t: Type) -> Type:
    if t.itemsize == 8:
        raise UnsupportedError(f"`{m.opcode}`: .wide needs a type of 16 or 32 bits")
    return wider(t)


def high_product(a: Array, b: Array) -> Array:
    """The high half of the product of two integers of the same type."""
    if a.dtype.itemsize < 8:
        w = wider(a.dtype)
        return (np.multiply(a, b, dtype=w) >> w.type(bits(a.dtype))).astype(a.dtype)
    ua, ub = a.view(np.uint64), b.view(np.uint64)
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = ua & low, ua >> shift, ub & low, ub >> shift
    middle = a1 * b0 + ((a0 * b0) >> shift)
    other = a0 * b1 + (middle & low)
    high = a1 * b1 + (middle >> shift) + (other >> shift)
    if a.dtype.kind == "i":
        high = high - np.where(a < 0, ub, np.uint64(0)) - np.where(b < 0, ua, np.uint64(0))
    return np.asarray(high).view(a.dtype)


def mul24(m: Modifiers) -> Operation:
    """``mul24.{lo,hi}.type d, a, b``."""
    return _product24(m, with_addend=False)


def mad24(m: Modifiers) -> Operation:
    """``mad24.{lo,hi}.type d, a, b, c``."""
    return _product24(m, with_addend=True)


def _product24(m: Modifiers, *, with_addend: bool) -> Operation:
    shift = 16 if m.choice("lo", "hi") == "hi" else 0
    t = TYPES[m.type_of("u32", "s32")]
    w = wider(t)

    def product(a: Array, b: Array) -> Array:
        low_a, low_b = ((x << t.type(8)).astype(w) >> w.type(8) for x in (a, b))
        return ((low_a * low_b) >> w.type(shift)).astype(t)

    if with_addend:
        return Operation(lambda a, b, c: product(a, b) + c, (t, t, t), (t,))
    return Operation(product, (t, t), (t,))


def div(m: Modifiers) -> Operation:
    """``div.type d, a, b``: truncates; division by zero gives all ones, as on hardware."""
    t = TYPES[m.type_of(*_WORDS[:6])]
    return Operation(_divide, (t, t), (t,))


def rem(m: Modifiers) -> Operation:
    """``rem.type d, a, b``: has the sign of ``a``; division by zero gives all ones, as on hardware."""
    t = TYPES[m.type_of(*_WORDS[:6])]
    return Operation(lambda a, b: np.where(b == 0, ~np.zeros_like(a), np.fmod(a, b)), (t, t), (t,))


def _divide(a: Array, b: Array) -> Array:
    quotient = (a - np.fmod(a, b)) // b
    return np.where(b == 0, ~np.zeros_like(quotient), quotient)


def absolute(m: Modifiers) -> Operation:
    """``abs.type d, a``."""
    t = TYPES[m.type_of("s16", "s32", "s64")]
    return Operation(np.abs, (t,), (t,))


def neg(m: Modifiers) -> Operation:
    """``neg.type d, a``."""
    t = TYPES[m.type_of("s16", "s32", "s64")]
    return Operation(np.negative, (t,), (t,))


def minimum(m: Modifiers) -> Operation:
    """``min.type d, a, b``, and ``.relu`` (not below zero)."""
    return _extreme(m, np.minimum)


def maximum(m: Modifiers) -> Operation:
    """``max.type d, a, b``, and ``.relu`` (not below zero)."""
    return _extreme(m, np.maximum)


def _extreme(m: Modifiers, function: Callable[..., Any]) -> Operation:
    relu = m.flag("relu")
    t = TYPES[m.type_of(*_WORDS[:6])]
    if relu:
        return Operation(lambda a, b: np.maximum(function(a, b), t.type(0)), (t, t), (t,))
    return Operation(function, (t, t), (t,))


def sad(m: Modifiers) -> Operation:
    """``sad.type d, a, b, c``: |a - b| + c."""
    t = TYPES[m.type_of(*_WORDS[:6])]
    return Operation(lambda a, b, c: np.where(a < b, b - a, a - b) + c, (t, t, t), (t,))


def dp4a(m: Modifiers) -> Operation:
    """``dp4a.atype.btype d, a, b, c``: the sum of four products of bytes, plus c."""
    return _dot_product(*m.types(2), size=1, first=0)


def dp2a(m: Modifiers) -> Operation:
    """``dp2a.{lo,hi}.atype.btype d, a, b, c``: the sum of two products of a half of a and a byte of b, plus c."""
    first = 0 if m.choice("lo", "hi") == "lo" else 2
    return _dot_product(*m.types(2), size=2, first=first)


def _dot_product(a_type: str, b_type: str, *, size: int, first: int) -> Operation:
    """The sum of c and the products of ``size``-byte values of a and bytes of b, starting at byte ``first`` of b."""
    u4 = np.dtype("u4")
    count = 4 // size

    def run(a: Array, b: Array, c: Array) -> Array:
        a, b = (np.ascontiguousarray(x) for x in np.broadcast_arrays(a, b))
        x = a.view(f"{_LETTERS[a_type]}{size}").reshape(-1, count).astype(np.int64)
        y = b.view(f"{_LETTERS[b_type]}1").reshape(-1, 4)[:, first : first + count].astype(np.int64)
        return (x * y).sum(axis=1).astype(np.uint32) + c

    return Operation(run, (u4, u4, u4), (u4,))
