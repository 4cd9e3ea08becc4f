"""Logic, shifts and bit fields (PTX ISA 9.7.1, 9.7.8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cccopt.emulator.semantics.operation import TYPES, Array, Modifiers, Operation, Type, bits, unsigned

_BITS = ("b16", "b32", "b64")
_U4: Type = np.dtype("u4")


def _logic(function: Callable[..., Any]) -> Callable[[Modifiers], Operation]:
    def build(m: Modifiers) -> Operation:
        t = TYPES[m.type_of("pred", *_BITS)]
        return Operation(function, (t, t), (t,))

    return build


and_ = _logic(np.bitwise_and)
or_ = _logic(np.bitwise_or)
xor = _logic(np.bitwise_xor)


def not_(m: Modifiers) -> Operation:
    """``not.type d, a``."""
    t = TYPES[m.type_of("pred", *_BITS)]
    return Operation(np.invert, (t,), (t,))


def cnot(m: Modifiers) -> Operation:
    """``cnot.type d, a``: a == 0."""
    t = TYPES[m.type_of(*_BITS)]
    return Operation(lambda a: (a == 0).astype(t), (t,), (t,))


def lop3(m: Modifiers) -> Operation:
    """``lop3.b32 d, a, b, c, table``: any function of three bits."""
    m.type_of("b32")
    return Operation(_lop3, (_U4,) * 4, (_U4,))


def _lop3(a: Array, b: Array, c: Array, table: Array) -> Array:
    result = np.zeros_like(a | b | c)
    # The table is usually a constant; then most rows are left out.
    rows = [row for row in range(8) if table.ndim or int(table) >> row & 1]
    for row in rows:
        chosen = ((table >> np.uint32(row)) & np.uint32(1)) * np.uint32(0xFFFFFFFF)
        term = (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
        result = result | (term & chosen)
    return result


def shl(m: Modifiers) -> Operation:
    """``shl.type d, a, b``: a shift by the width or more gives zero."""
    t = TYPES[m.type_of(*_BITS)]
    return Operation(lambda a, b: _shift_left(a, b, t), (t, _U4), (t,))


def _shift_left(a: Array, b: Array, t: Type) -> Array:
    width = bits(t)
    if b.ndim == 0:
        return a << t.type(b) if int(b) < width else np.zeros_like(a)
    return np.where(b < width, a << np.minimum(b, np.uint32(width - 1)).astype(t), t.type(0))


def shr(m: Modifiers) -> Operation:
    """``shr.type d, a, b``: signed types fill with the sign; the amount is clamped to the width."""
    t = TYPES[m.type_of(*_BITS, "u16", "u32", "u64", "s16", "s32", "s64")]
    return Operation(lambda a, b: _shift_right(a, b, t), (t, _U4), (t,))


def _shift_right(a: Array, b: Array, t: Type) -> Array:
    width = bits(t)
    if b.ndim == 0:
        if int(b) >= width:
            return a >> t.type(width - 1) if t.kind == "i" else np.zeros_like(a)
        return a >> t.type(b)
    shifted: Array = a >> np.minimum(b, np.uint32(width - 1)).astype(t)
    return shifted if t.kind == "i" else np.where(b < width, shifted, t.type(0))


def shf(m: Modifiers) -> Operation:
    """``shf.{l,r}.{clamp,wrap}.b32 d, a, b, c``: a funnel shift of b:a by c."""
    left = m.choice("l", "r") == "l"
    clamp = m.choice("clamp", "wrap") == "clamp"
    m.type_of("b32")

    def run(a: Array, b: Array, c: Array) -> Array:
        amount = (np.minimum(c, np.uint32(32)) if clamp else c & np.uint32(31)).astype(np.uint64)
        both = (b.astype(np.uint64) << np.uint64(32)) | a.astype(np.uint64)
        moved = (both << amount) >> np.uint64(32) if left else both >> amount
        return moved.astype(np.uint32)

    return Operation(run, (_U4,) * 3, (_U4,))


def bfe(m: Modifiers) -> Operation:
    """``bfe.type d, a, position, length``."""
    t = TYPES[m.type_of("u32", "u64", "s32", "s64")]
    u = unsigned(t)
    top = u.type(bits(t) - 1)

    def run(a: Array, position: Array, length: Array) -> Array:
        p, n = _bit_count(position, u), _bit_count(length, u)
        ua = a.view(u)
        field = np.where(p <= top, ua >> np.minimum(p, top), u.type(0)) & _low_ones(n, u)
        if t.kind == "u":
            return field
        sign_at = np.minimum(np.where(n == 0, u.type(0), p + n - u.type(1)), top)
        negative = (((ua >> sign_at) & u.type(1)) == 1) & (n != 0)
        there = np.minimum(n, np.where(p <= top, top - np.minimum(p, top) + u.type(1), u.type(0)))
        return np.where(negative, field | ~_low_ones(there, u), field).view(t)

    return Operation(run, (t, _U4, _U4), (t,))


def _bit_count(value: Array, u: Type) -> Array:
    """A position or length of a bit field: a byte in the 32-bit form, any number in the 64-bit one (as on hardware)."""
    if u.itemsize == 4:
        return value & np.uint32(0xFF)
    return np.minimum(value, np.uint32(0xFF)).astype(u)


def _low_ones(count: Array, u: Type) -> Array:
    """A mask of the lowest ``count`` bits."""
    width = bits(u)
    some = (u.type(1) << np.minimum(count, u.type(width - 1))) - u.type(1)
    return np.where(count >= width, ~u.type(0), some)


def bfi(m: Modifiers) -> Operation:
    """``bfi.type f, a, b, position, length``: a's low bits put into b."""
    u = TYPES[m.type_of("b32", "b64")]

    def run(a: Array, b: Array, position: Array, length: Array) -> Array:
        p = _bit_count(position, u)
        mask = _low_ones(_bit_count(length, u), u)
        inside = p < bits(u)
        shift = np.minimum(p, u.type(bits(u) - 1))
        mask_there = np.where(inside, mask << shift, u.type(0))
        return (b & ~mask_there) | (np.where(inside, a << shift, u.type(0)) & mask_there)

    return Operation(run, (u, u, _U4, _U4), (u,))


def bfind(m: Modifiers) -> Operation:
    """``bfind{.shiftamt}.type d, a``: the highest bit that differs from the sign, or all ones."""
    amount = m.flag("shiftamt")
    t = TYPES[m.type_of("u32", "u64", "s32", "s64")]
    u = unsigned(t)

    def run(a: Array) -> Array:
        value = np.where(a < 0, ~a, a).view(u) if t.kind == "i" else a
        place = bits(t) - 1 - leading_zeros(value).astype(np.int64)
        found = bits(t) - 1 - place if amount else place
        return np.where(place < 0, -1, found).astype(np.int32).view(np.uint32)

    return Operation(run, (t,), (_U4,))


def leading_zeros(a: Array) -> Array:
    """The number of zero bits above the highest one bit, of an unsigned integer."""
    width = bits(a.dtype)
    smeared = a
    step = 1
    while step < width:
        smeared = smeared | (smeared >> a.dtype.type(step))
        step *= 2
    return (width - population(smeared)).astype(np.uint32)


_BYTE_COUNTS = np.array([bin(i).count("1") for i in range(256)], np.uint32)
_BYTE_REVERSED = np.array([int(f"{i:08b}"[::-1], 2) for i in range(256)], np.uint8)


def _as_bytes(a: Array) -> Array:
    return np.ascontiguousarray(a).reshape(-1).view(np.uint8).reshape(-1, a.dtype.itemsize)


def population(a: Array) -> Array:
    """The number of one bits."""
    return _BYTE_COUNTS[_as_bytes(a)].sum(axis=1, dtype=np.uint32)


def brev(m: Modifiers) -> Operation:
    """``brev.type d, a``."""
    t = TYPES[m.type_of("b32", "b64")]
    return Operation(
        lambda a: np.ascontiguousarray(_BYTE_REVERSED[_as_bytes(a)][:, ::-1]).view(t).reshape(-1), (t,), (t,)
    )


def popc(m: Modifiers) -> Operation:
    """``popc.type d, a``."""
    return Operation(population, (TYPES[m.type_of("b32", "b64")],), (_U4,))


def clz(m: Modifiers) -> Operation:
    """``clz.type d, a``."""
    return Operation(leading_zeros, (TYPES[m.type_of("b32", "b64")],), (_U4,))


def prmt(m: Modifiers) -> Operation:
    """``prmt.b32{.mode} d, a, b, c``: four bytes picked out of b:a."""
    mode = m.choice("f4e", "b4e", "rc8", "ecl", "ecr", "rc16", default="")
    m.type_of("b32")

    def run(a: Array, b: Array, c: Array) -> Array:
        a, b, c = np.broadcast_arrays(a, b, c)
        source = np.concatenate([_as_bytes(a), _as_bytes(b)], axis=1)
        if mode == "":
            pick = (c[:, None] >> np.array([0, 4, 8, 12], np.uint32)) & np.uint32(15)
        else:
            pick = _PERMUTE[mode][c & np.uint32(3)]
        chosen = np.take_along_axis(source, (pick & np.uint32(7)).astype(np.intp), axis=1)
        signs = np.where(chosen & 0x80, np.uint8(0xFF), np.uint8(0))
        return np.ascontiguousarray(np.where(pick & np.uint32(8), signs, chosen)).view(np.uint32).reshape(-1)

    return Operation(run, (_U4,) * 3, (_U4,))


_PERMUTE = {
    "f4e": np.array([[i + k for k in range(4)] for i in range(4)], np.uint32),
    "b4e": np.array([[(i - k) % 8 for k in range(4)] for i in range(4)], np.uint32),
    "rc8": np.array([[i] * 4 for i in range(4)], np.uint32),
    "ecl": np.array([[max(k, i) for k in range(4)] for i in range(4)], np.uint32),
    "ecr": np.array([[min(k, i) for k in range(4)] for i in range(4)], np.uint32),
    "rc16": np.array([[2 * (i % 2) + k % 2 for k in range(4)] for i in range(4)], np.uint32),
}


def fns(m: Modifiers) -> Operation:
    """``fns.b32 d, mask, base, offset``: the position of the n-th set bit from a base."""
    m.type_of("b32")
    return Operation(
        lambda mask, base, offset: np.array(
            [_nth_set(int(k), int(b), int(o)) for k, b, o in np.broadcast(mask, base, offset)], np.uint32
        ),
        (_U4, _U4, np.dtype("i4")),
        (_U4,),
    )


def _nth_set(mask: int, base: int, offset: int) -> int:
    if offset == 0:
        return base if base < 32 and mask >> base & 1 else 0xFFFFFFFF
    positions = range(base, 32) if offset > 0 else range(min(base, 31), -1, -1)
    found = [i for i in positions if mask >> i & 1]
    return found[abs(offset) - 1] if len(found) >= abs(offset) else 0xFFFFFFFF


def bmsk(m: Modifiers) -> Operation:
    """``bmsk.{clamp,wrap}.b32 d, position, length``: a run of ones."""
    clamp = m.choice("clamp", "wrap") == "clamp"
    m.type_of("b32")

    def run(position: Array, length: Array) -> Array:
        p = position.astype(np.uint64)
        n = length.astype(np.uint64)
        most, low = np.uint64(32), np.uint64(31)
        p, n = (np.minimum(p, most), np.minimum(n, most)) if clamp else (p & low, n & low)
        ones = (np.uint64(1) << n) - np.uint64(1)
        return (ones << p).astype(np.uint32)

    return Operation(run, (_U4, _U4), (_U4,))
