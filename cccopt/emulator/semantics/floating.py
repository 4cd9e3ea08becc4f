"""Floating-point arithmetic (PTX ISA 9.7.3, 9.7.4).

`.approx` results are correctly rounded or nearly so, which is within the error that the ISA states.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
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
    unsigned,
)
from cccopt.emulator.semantics.rounding import (
    F4,
    F8,
    MODES,
    fma32,
    fma64,
    lanes,
    narrow,
    two_sum,
    zero_sign,
)

_FLOATS = ("f16", "f32", "f64")
_F2: Type = np.dtype("f2")
_NAN = {"f16": np.uint16(0x7FFF), "f32": np.uint32(0x7FFFFFFF)}


def flush(a: Array) -> Array:
    """Subnormal numbers become zeros of the same sign."""
    tiny = np.finfo(a.dtype).tiny
    return np.where(np.abs(a) < tiny, a * a.dtype.type(0), a)


def finish(
    function: Callable[..., Any],
    type_name: str,
    *,
    ftz: bool,
    sat: bool,
    wide: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """``function`` with operands and result flushed (``ftz``), clamped to [0, 1] (``sat``), and NaN as on hardware.

    ``wide`` gives the result before rounding: hardware flushes a result that is too small at that point, even if
    it would be rounded up to the smallest normal number.
    """
    t = TYPES[type_name]

    def run(*operands: Array) -> Array:
        if ftz:
            operands = tuple(flush(x) for x in operands)
        result = np.asarray(function(*operands))
        if ftz:
            result = flush(result)
            if wide is not None:
                least = np.abs(result) == np.finfo(t).tiny
                if least.any():
                    below = np.abs(wide(*(x.astype(F8) for x in operands))) < np.finfo(t).tiny
                    result = np.where(least & below, result * t.type(0), result)
        if sat:  # NaN becomes +0, and so does -0
            return np.where(result > 0, np.minimum(result, t.type(1)), t.type(0)).astype(t)
        return canonical(result, type_name)

    return run


def canonical(result: Array, type_name: str) -> Array:
    """``result`` with every NaN of a short format replaced by the one that hardware gives."""
    if type_name in _NAN:
        wrong = result != result
        if wrong.any():
            pattern = _NAN[type_name]
            return (
                np.where(wrong, pattern, result.view(pattern.dtype)).astype(pattern.dtype).view(result.dtype)
            )
    return result


def _mode(m: Modifiers) -> tuple[str, bool, bool]:
    return m.choice(*MODES, default="rn"), m.flag("ftz"), m.flag("sat")


def _row(
    m: Modifiers,
    operands: int,
    build: Callable[[str, str], Callable[..., Any]],
    wide: Callable[..., Any] | None = None,
) -> Operation:
    mode, ftz, sat = _mode(m)
    name = m.type_of(*_FLOATS)
    t = TYPES[name]
    if name == "f16" and mode != "rn":
        raise UnsupportedError(f"`{m.opcode}`: .{mode} with .f16 is not supported")
    return Operation(finish(build(name, mode), name, ftz=ftz, sat=sat, wide=wide), (t,) * operands, (t,))


def add(m: Modifiers) -> Operation:
    """``add{.rnd}{.ftz}{.sat}.type d, a, b``."""
    return _row(m, 2, lambda name, mode: _sum(name, mode, np.add))


def sub(m: Modifiers) -> Operation:
    """``sub{.rnd}{.ftz}{.sat}.type d, a, b``."""
    return _row(m, 2, lambda name, mode: _sum(name, mode, np.subtract))


def _sum(name: str, mode: str, function: Callable[..., Any]) -> Callable[..., Any]:
    if mode == "rn":
        return function
    sign = 1 if function is np.add else -1
    if name == "f64":
        return lambda a, b: fma64(np.ones_like(a), a, sign * b, mode)

    def run(a: Array, b: Array) -> Array:
        x, y = a.astype(F8), b.astype(F8) * sign
        total, error = two_sum(x, y)
        total = zero_sign(total, x, y, mode)
        return np.where(np.isfinite(total), narrow(total, error, mode), total.astype(F4))

    return run


def mul(m: Modifiers) -> Operation:
    """``mul{.rnd}{.ftz}{.sat}.type d, a, b``."""
    return _row(m, 2, _product, np.multiply)


def _product(name: str, mode: str) -> Callable[..., Any]:
    if mode == "rn":
        return np.multiply
    if name == "f64":
        return lambda a, b: _by_fractions(np.multiply, lambda x, y: x * y, mode, a, b)

    def run(a: Array, b: Array) -> Array:
        product = np.multiply(a, b, dtype=F8)
        zero = np.zeros_like(product)
        return np.where(np.isfinite(product), narrow(product, zero, mode), product.astype(F4))

    return run


def fma(m: Modifiers) -> Operation:
    """``fma.rnd{.ftz}{.sat}.type d, a, b, c``; ``mad`` on floating-point types is the same."""
    return _row(m, 3, _fused)


def _fused(name: str, mode: str) -> Callable[..., Any]:
    if name == "f32":
        return lambda a, b, c: fma32(a, b, c, mode)
    if name == "f64":
        return lambda a, b, c: fma64(a, b, c, mode)
    return _fma16


def _fma16(a: Array, b: Array, c: Array) -> Array:
    total, error = two_sum(np.multiply(a, b, dtype=F8), c.astype(F8))
    return np.where(np.isfinite(total), narrow(total, error, "rn", _F2), total.astype(_F2))


def _by_fractions(
    near: Callable[..., Any], exact: Callable[..., Fraction], mode: str, a: Array, b: Array
) -> Array:
    """A product or quotient, rounded exactly lane by lane if both operands are finite and not zero."""
    a, b = np.broadcast_arrays(a, b)
    result = np.array(near(a, b))
    numbers = np.flatnonzero((a != 0) & (b != 0) & np.isfinite(a) & np.isfinite(b))
    if numbers.size:
        result[numbers] = lanes(exact, mode, result.dtype, a[numbers], b[numbers])
    return result


def div(m: Modifiers) -> Operation:
    """``div{.rnd|.approx|.full}{.ftz}.type d, a, b``; `.approx` gives zero for the largest divisors."""
    m.drop("full")
    approximate = m.flag("approx")

    def build(name: str, mode: str) -> Callable[..., Any]:
        return _quotient_unscaled if approximate else _quotient(name, mode)

    return _row(m, 2, build)


def _quotient_unscaled(a: Array, b: Array) -> Array:
    large = (np.abs(b) > 2.0**126) & np.isfinite(b)
    return np.where(large, a * np.copysign(b.dtype.type(0), b), a / b)


def _quotient(name: str, mode: str) -> Callable[..., Any]:
    if mode == "rn":
        return np.divide
    return lambda a, b: _by_fractions(np.divide, lambda x, y: x / y, mode, a, b)


def _unary(function: Callable[..., Any]) -> Callable[[Modifiers], Operation]:
    def build(m: Modifiers) -> Operation:
        m.drop("approx")
        return _row(m, 1, lambda name, mode: _nearest_only(m, mode, function))

    return build


def _nearest_only(m: Modifiers, mode: str, function: Callable[..., Any]) -> Callable[..., Any]:
    if mode != "rn":
        raise UnsupportedError(f"`{m.opcode}`: .{mode} is not supported")
    return function


def _in_double(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(a: Array) -> Array:
        return np.asarray(function(a.astype(F8)).astype(a.dtype))

    return run


def rcp(m: Modifiers) -> Operation:
    """``rcp{.approx|.rnd}{.ftz}.type d, a``."""
    m.drop("approx")
    return _row(m, 1, lambda name, mode: lambda a: _quotient(name, mode)(np.ones_like(a), a))


def sqrt(m: Modifiers) -> Operation:
    """``sqrt{.approx|.rnd}{.ftz}.type d, a``."""
    m.drop("approx")
    return _row(m, 1, _root)


def _root(name: str, mode: str) -> Callable[..., Any]:
    if mode == "rn":
        return np.sqrt
    if name != "f32":
        raise UnsupportedError(f"`sqrt.{mode}.{name}` is not supported")

    def run(a: Array) -> Array:
        x = a.astype(F8)
        root = np.sqrt(x)
        near = np.asarray(root.astype(F4))
        # The square of a single-precision number is exact in double precision.
        rest = np.sign(x - near.astype(F8) ** 2)
        return np.where(np.isfinite(root) & (root > 0), _nudge(near, rest, mode), near)

    return run


def _nudge(near: Array, rest: Array, mode: str) -> Array:
    down = (rest < 0) & (mode in ("rm", "rz"))
    up = (rest > 0) & (mode == "rp")
    return np.where(
        down, np.nextafter(near, F4.type(0)), np.where(up, np.nextafter(near, F4.type(np.inf)), near)
    )


rsqrt = _unary(_in_double(lambda a: 1.0 / np.sqrt(a)))
sin = _unary(_in_double(np.sin))
cos = _unary(_in_double(np.cos))
lg2 = _unary(_in_double(np.log2))
ex2 = _unary(_in_double(np.exp2))
tanh = _unary(_in_double(np.tanh))


def neg(m: Modifiers) -> Operation:
    """``neg{.ftz}.type d, a``."""
    return _bitwise(m, lambda bits, sign: bits ^ sign)


def absolute(m: Modifiers) -> Operation:
    """``abs{.ftz}.type d, a``."""
    return _bitwise(m, lambda bits, sign: bits & ~sign)


def _bitwise(m: Modifiers, function: Callable[[Array, Any], Array]) -> Operation:
    ftz = m.flag("ftz")
    name = m.type_of(*_FLOATS)
    t = TYPES[name]
    u = unsigned(t)
    sign = u.type(1 << (8 * t.itemsize - 1))

    def run(a: Array) -> Array:
        a = flush(a) if ftz else a
        result = np.asarray(function(a.view(u), sign).view(t))
        return np.where(a != a, a, result) if name == "f64" else canonical(result, name)

    return Operation(run, (t,), (t,))


def minimum(m: Modifiers) -> Operation:
    """``min{.ftz}{.NaN}{.xorsign.abs}.type d, a, b``: the number when one is NaN; -0 is below +0."""
    return _extreme(m, np.fmin, np.bitwise_or)


def maximum(m: Modifiers) -> Operation:
    """``max{.ftz}{.NaN}{.xorsign.abs}.type d, a, b``: the number when one is NaN; -0 is below +0."""
    return _extreme(m, np.fmax, np.bitwise_and)


def _extreme(m: Modifiers, function: Callable[..., Any], of_equals: Callable[..., Any]) -> Operation:
    ftz, nan, xorsign = m.flag("ftz"), m.flag("NaN"), m.flag("xorsign")
    magnitude = m.flag("abs")
    if xorsign != magnitude:
        raise UnsupportedError(f"`{m.opcode}`: .xorsign and .abs must be used together")
    name = m.type_of(*_FLOATS)
    t = TYPES[name]
    u = unsigned(t)
    sign = u.type(1 << (8 * t.itemsize - 1))

    def run(a: Array, b: Array) -> Array:
        if ftz:
            a, b = flush(a), flush(b)
        signs = (a.view(u) ^ b.view(u)) & sign
        if xorsign:
            a, b = np.abs(a), np.abs(b)
        result = np.where(a == b, of_equals(a.view(u), b.view(u)).view(t), function(a, b))
        if nan:
            result = np.where((a != a) | (b != b), t.type(np.nan), result)
        if xorsign:
            result = np.where(result == result, (result.view(u) ^ signs).view(t), result)
        return canonical(result, name)

    return Operation(run, (t, t), (t,))


def copysign(m: Modifiers) -> Operation:
    """``copysign.type d, a, b``: b with the sign of a."""
    t = TYPES[m.type_of("f32", "f64")]
    return Operation(lambda a, b: np.copysign(b, a), (t, t), (t,))


def testp(m: Modifiers) -> Operation:
    """``testp.property.type p, a``."""
    what = m.choice("finite", "infinite", "number", "notanumber", "normal", "subnormal")
    t = TYPES[m.type_of("f32", "f64")]
    tiny = np.finfo(t).tiny
    tests: dict[str, Callable[..., Any]] = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda a: ~np.isnan(a),
        "notanumber": np.isnan,
        "normal": lambda a: np.isfinite(a) & ((np.abs(a) >= tiny) | (a == 0)),
        "subnormal": lambda a: (a != 0) & (np.abs(a) < tiny),
    }
    return Operation(tests[what], (t,), (PRED,))
