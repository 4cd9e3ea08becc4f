"""Conversions between types (PTX ISA, `cvt`)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from cccopt.emulator.semantics.floating import canonical, flush
from cccopt.emulator.semantics.operation import (
    TYPES,
    Array,
    Modifiers,
    Operation,
    Type,
    UnsupportedError,
    is_float,
)
from cccopt.emulator.semantics.rounding import F8, MODES, narrow, round_fraction

_TO_INTEGER: dict[str, Callable[..., Any]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}


def cvt(m: Modifiers) -> Operation:
    """``cvt{.irnd|.frnd}{.ftz}{.sat}.dtype.atype d, a``."""
    whole = m.choice(*_TO_INTEGER, default="")
    mode = m.choice(*MODES, default="")
    ftz, sat = m.flag("ftz"), m.flag("sat")
    to, of = m.types(2)
    if to == "pred" or of == "pred" or to.startswith("b") or of.startswith("b"):
        raise UnsupportedError(f"`{m.opcode}`: cannot convert between these types")
    run = _conversion(m, whole, mode, to, of)
    if ftz:
        run = _flushing(run, to, of)
    if sat and is_float(to):
        run = _saturating(run, TYPES[to])
    elif sat and not is_float(of):
        run = _clamping(TYPES[to], TYPES[of])
    return Operation(run, (TYPES[of],), (TYPES[to],))


def _conversion(m: Modifiers, whole: str, mode: str, to: str, of: str) -> Callable[..., Any]:
    d, a = TYPES[to], TYPES[of]
    if is_float(to) and is_float(of):
        if whole:
            return lambda x: canonical(np.asarray(_TO_INTEGER[whole](x)).astype(d), to)
        if mode in ("", "rn") or d.itemsize >= a.itemsize:
            return lambda x: _quiet(x.astype(d), to, of)
        return lambda x: _quiet(_narrow(x, mode, d), to, of)
    if is_float(to):
        return (lambda x: x.astype(d)) if mode in ("", "rn") else _integer_to_float(mode, d)
    if is_float(of):
        if not whole:
            raise UnsupportedError(
                f"`{m.opcode}`: a conversion from floating point to an integer needs a rounding modifier, such as .rzi"
            )
        return _float_to_integer(_TO_INTEGER[whole], d, a)
    return lambda x: x.astype(d)


def _quiet(result: Array, to: str, of: str) -> Array:
    """A NaN from a double keeps what fits of its payload; others become the canonical NaN of the format."""
    return result if of == "f64" else canonical(result, to)


def _narrow(x: Array, mode: str, d: Type) -> Array:
    value = x.astype(F8)
    return np.where(np.isfinite(value), narrow(value, np.zeros_like(value), mode, d), value.astype(d))


def _integer_to_float(mode: str, d: Type) -> Callable[..., Any]:
    def run(x: Array) -> Array:
        near = x.astype(d)
        # An integer of up to 32 bits is exact as a double, so one rounding gives the result.
        if x.dtype.itemsize < 8 and d.itemsize < 8:
            return narrow(x.astype(F8), np.zeros(np.shape(x)), mode, d)
        return np.array(
            [round_fraction(Fraction(int(v)), mode, d) if v else d.type(0) for v in np.atleast_1d(x)],
            near.dtype,
        )

    return run


def _float_to_integer(rounding: Callable[..., Any], d: Type, a: Type) -> Callable[..., Any]:
    limits = np.iinfo(d)
    # The largest integer itself may not be a double; the first number beyond it is.
    above = float(limits.max) + 1.0
    # For NaN, hardware gives the highest bit if either type has 64 bits, else zero.
    highest = 1 << (8 * d.itemsize - 1) if max(a.itemsize, d.itemsize) == 8 else 0
    not_a_number = np.asarray(highest, f"u{d.itemsize}").view(d)

    def run(x: Array) -> Array:
        value = np.asarray(rounding(x)).astype(F8)
        inside = (value >= float(limits.min)) & (value < above)
        result = np.where(inside, value, 0.0).astype(d)
        result = np.where(value >= above, d.type(limits.max), result)
        result = np.where(value < float(limits.min), d.type(limits.min), result)
        return np.where(np.isnan(value), not_a_number, result).astype(d)

    return run


def _flushing(run: Callable[..., Any], to: str, of: str) -> Callable[..., Any]:
    def flushed(x: Array) -> Array:
        result = run(flush(x) if of == "f32" else x)
        return flush(result) if to == "f32" else np.asarray(result)

    return flushed


def _saturating(run: Callable[..., Any], d: Type) -> Callable[..., Any]:
    def saturated(x: Array) -> Array:
        result = run(x)
        return np.where(result > 0, np.minimum(result, d.type(1)), d.type(0)).astype(d)

    return saturated


def _clamping(d: Type, a: Type) -> Callable[..., Any]:
    low = max(int(np.iinfo(d).min), int(np.iinfo(a).min))
    high = min(int(np.iinfo(d).max), int(np.iinfo(a).max))
    return lambda x: np.clip(x, a.type(low), a.type(high)).astype(d)
