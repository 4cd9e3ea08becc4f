"""Exact roundings that numpy does not offer: directed modes and fused multiply-add.

A single-precision result is computed in double precision together with the sign of what double precision lost, then
rounded once. Double-precision results in directed modes, and those near the ends of the exponent range, are computed
as fractions, lane by lane. Boldo, Melquiond, "Emulation of a FMA and correctly rounded sums: proved algorithms
using rounding to odd", IEEE Trans. Computers 57(4), 2008.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from cccopt.emulator.semantics.operation import Array, Type

F4: Type = np.dtype("f4")
F8: Type = np.dtype("f8")
MODES = ("rn", "rz", "rm", "rp")
_SPLIT = 134217729.0  # 2**27 + 1: Dekker's splitter for 53 bits


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded sum and its error, exactly (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded product and its error, exactly, unless something overflows or underflows (Dekker)."""
    product = a * b
    a_big, b_big = a * _SPLIT, b * _SPLIT
    a_high, b_high = a_big - (a_big - a), b_big - (b_big - b)
    a_low, b_low = a - a_high, b - b_high
    return product, a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


def to_odd(value: Array, error: Array) -> Array:
    """``value + error`` rounded to odd: the last bit is sticky, so a second rounding is right."""
    pattern = np.array(value, F8, ndmin=1).view(np.int64)
    even = (pattern & 1) == 0
    outward = (error > 0) == (np.asarray(value) > 0)
    inexact = (error > 0) | (error < 0)
    step = np.where(outward, 1, -1) * (inexact & even)
    return (pattern + step).view(F8)


def narrow(value: Array, error: Array, mode: str, target: Type = F4) -> Array:
    """``value + error`` (doubles, the error below half a unit of the value) rounded once to a shorter format."""
    if mode == "rn":
        return to_odd(value, error).astype(target)
    rounded = np.asarray(value.astype(target))
    difference = value - rounded.astype(F8)
    rest = np.where(difference != 0, difference, error)
    rest = np.where(np.isinf(rounded) & np.isfinite(value), -np.sign(value), rest)
    return _directed(rounded, rest, mode, np.asarray(value))


def _directed(rounded: Array, rest: Array, mode: str, value: Array) -> Array:
    """Moves a result that was rounded to nearest to its neighbor if ``rest`` requires it."""
    t = rounded.dtype
    infinity = t.type(np.inf)
    down = (rest < 0) & ((mode == "rm") | ((mode == "rz") & (value > 0)))
    up = (rest > 0) & ((mode == "rp") | ((mode == "rz") & (value < 0)))
    lower = np.nextafter(rounded, -infinity)
    upper = np.nextafter(rounded, infinity)
    return np.where(down, lower, np.where(up, upper, rounded)).astype(t)


def fma32(a: Array, b: Array, c: Array, mode: str) -> Array:
    """Single-precision fused multiply-add: the product is exact in double precision."""
    # A scalar operand must not decide the type, as it does in numpy 1.
    product = np.multiply(a, b, dtype=F8)
    addend = c.astype(F8)
    total = product + addend
    if mode == "rn":
        # Rounding twice is wrong only at a midpoint of two single-precision numbers.
        pattern = np.asarray(total).view(np.uint64)
        doubtful = ((pattern & np.uint64(0x1FFFFFFF)) == 0x10000000) | (np.abs(total) < 2.0**-125)
        if not doubtful.any():
            return np.asarray(total.astype(F4))
    exact, error = two_sum(product, addend)
    if mode in ("rm", "rp"):
        exact = zero_sign(exact, product, addend, mode)
    return np.where(np.isfinite(exact), narrow(exact, error, mode), exact.astype(F4))


def zero_sign(total: Array, a: Array, b: Array, mode: str) -> Array:
    """The sign of an exact zero sum: negative when rounding down, unless both terms are +0."""
    if mode != "rm":
        return total
    both_positive = (a == 0) & (b == 0) & ~np.signbit(a) & ~np.signbit(b)
    return np.where((total == 0) & ~both_positive, -0.0, total)


def fma64(a: Array, b: Array, c: Array, mode: str) -> Array:
    """Double-precision fused multiply-add."""
    a, b, c = np.broadcast_arrays(a, b, c)
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    # The exact product is finite even if it overflows here, so an infinite `c` is the result.
    infinite = np.isinf(c) & np.isfinite(a) & np.isfinite(b)
    trivial = ~finite | (a == 0) | (b == 0)
    if mode == "rn":
        result, safe = _fma_near(a, b, c)
        rest = np.flatnonzero(~(safe | trivial))
    else:
        result, rest = a * b + c, np.flatnonzero(~trivial)
    result = np.where(infinite, c, np.where(trivial, zero_sign(a * b + c, a * b, c, mode), result))
    if rest.size:
        result[rest] = lanes(lambda x, y, z: x * y + z, mode, F8, a[rest], b[rest], c[rest])
    return np.asarray(result)


def _fma_near(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """The result of Boldo and Melquiond's algorithm, and where it holds: far from overflow and underflow."""
    high, low = two_product(a, b)
    sum_low, error_low = two_sum(c, low)
    sum_high, error_high = two_sum(high, sum_low)
    result = sum_high + to_odd(*two_sum(error_low, error_high))
    big, small = np.maximum(np.abs(a), np.abs(b)), np.minimum(np.abs(a), np.abs(b))
    product, addend = np.abs(high), np.abs(c)
    safe = (big < 2.0**500) & (small > 2.0**-500) & (product < 2.0**1000) & (product > 2.0**-900)
    safe &= (addend < 2.0**1000) & ((addend > 2.0**-900) | (c == 0)) & (np.abs(result) > 2.0**-900)
    return result, safe


def lanes(function: Callable[..., Fraction], mode: str, target: Type, *operands: Array) -> Array:
    """A function of exact fractions of finite operands, rounded in ``mode``, lane by lane.

    A zero result is negative in mode rm, like the sum of two terms that cancel.
    """
    found = []
    for row in zip(*operands, strict=True):
        exact = function(*(Fraction(float(x)) for x in row))
        zero = target.type(-0.0 if mode == "rm" else 0.0)
        found.append(round_fraction(exact, mode, target) if exact else zero)
    return np.array(found, target)


def round_fraction(exact: Fraction, mode: str, target: Type) -> Any:
    """A non-zero fraction in a floating-point format, rounded once."""
    info = np.finfo(target)
    precision, lowest = info.nmant + 1, int(info.minexp)
    magnitude = abs(exact)
    exponent = _floor_log2(magnitude)
    unit = Fraction(2) ** (max(exponent, lowest) - precision + 1)
    scaled = magnitude / unit
    whole = scaled.numerator // scaled.denominator
    rest = scaled - whole
    negative = exact < 0
    up = {
        "rn": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1),
        "rz": False,
        "rm": negative and rest > 0,
        "rp": not negative and rest > 0,
    }[mode]
    rounded = (whole + up) * unit
    if rounded > Fraction(float(info.max)):
        grows = mode == "rn" or (mode == "rp" and not negative) or (mode == "rm" and negative)
        value = math.inf if grows else float(info.max)
    else:
        value = float(rounded)
    return target.type(-value if negative else value)


def _floor_log2(value: Fraction) -> int:
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if Fraction(2) ** guess <= value else guess - 1
