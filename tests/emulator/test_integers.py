"""Integer semantics against Python's integers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cccopt.emulator.semantics import TYPES, resolve

EDGES = {
    bits: [
        0,
        1,
        2,
        3,
        7,
        31,
        32,
        33,
        (1 << bits) - 1,
        (1 << bits) - 2,
        1 << (bits - 1),
        (1 << (bits - 1)) - 1,
    ]
    for bits in (8, 16, 32, 64)
}


def patterns(bits: int) -> st.SearchStrategy[int]:
    return st.one_of(st.sampled_from(EDGES[bits]), st.integers(0, (1 << bits) - 1))


def width(type_name: str) -> int:
    return int(type_name[1:])


def value(pattern: int, type_name: str) -> int:
    """A bit pattern as a number of the type."""
    bits = width(type_name)
    pattern &= (1 << bits) - 1
    return pattern - (1 << bits) if type_name[0] == "s" and pattern >> (bits - 1) else pattern


def compute(
    opcode: str, types: list[str], rows: list[tuple[int, ...]], *, sources: int | None = None
) -> list[int]:
    """Result patterns of a one-result opcode for rows of operand patterns of the given types."""
    operation = resolve(opcode.split("."), sources=len(types) if sources is None else sources)
    assert [t.itemsize for t in operation.inputs] == [TYPES[t].itemsize for t in types]
    columns = [
        np.array([pattern & ((1 << width(name)) - 1) for pattern in column], f"u{width(name) // 8}").view(
            dtype
        )
        for column, name, dtype in zip(zip(*rows, strict=True), types, operation.inputs, strict=True)
    ]
    with np.errstate(all="ignore"):
        result = np.asarray(operation.function(*columns))
    assert result.dtype.itemsize == operation.outputs[0].itemsize
    return [int(x) for x in np.atleast_1d(result.view(f"u{result.dtype.itemsize}"))]


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a: int, b: int) -> int:
    return a - b * truncated(a, b)


def sad(a: int, b: int, c: int) -> int:
    return abs(a - b) + c


Reference = Callable[..., int]
ARITHMETIC: dict[str, tuple[int, Reference]] = {
    "add": (2, lambda a, b: a + b),
    "sub": (2, lambda a, b: a - b),
    "mul.lo": (2, lambda a, b: a * b),
    "mad.lo": (3, lambda a, b, c: a * b + c),
    "min": (2, min),
    "max": (2, max),
    "div": (2, lambda a, b: truncated(a, b) if b else -1),
    "rem": (2, lambda a, b: remainder(a, b) if b else -1),
    "sad": (3, sad),
}
ROWS = settings(max_examples=12, deadline=None)


@pytest.mark.parametrize("opcode", ARITHMETIC)
@pytest.mark.parametrize("type_name", ["u16", "s16", "u32", "s32", "u64", "s64"])
@ROWS
@given(data=st.data())
def test_arithmetic_wraps(opcode: str, type_name: str, data: st.DataObject) -> None:
    count, reference = ARITHMETIC[opcode]
    bits = width(type_name)
    rows = data.draw(st.lists(st.tuples(*[patterns(bits)] * count), min_size=1, max_size=6))
    expected = [reference(*(value(p, type_name) for p in row)) & ((1 << bits) - 1) for row in rows]
    assert compute(f"{opcode}.{type_name}", [type_name] * count, rows) == expected


@pytest.mark.parametrize("type_name", ["u16", "s16", "u32", "s32", "u64", "s64"])
@ROWS
@given(data=st.data())
def test_high_and_wide_products(type_name: str, data: st.DataObject) -> None:
    bits = width(type_name)
    rows = data.draw(st.lists(st.tuples(*[patterns(bits)] * 3), min_size=1, max_size=6))
    numbers = [[value(p, type_name) for p in row] for row in rows]
    mask = (1 << bits) - 1
    two = [type_name] * 2
    assert compute(f"mul.hi.{type_name}", two, [r[:2] for r in rows]) == [
        (a * b >> bits) & mask for a, b, _ in numbers
    ]
    assert compute(f"mad.hi.{type_name}", [type_name] * 3, rows) == [
        ((a * b >> bits) + c) & mask for a, b, c in numbers
    ]
    if bits < 64:
        wide = (1 << 2 * bits) - 1
        assert compute(f"mul.wide.{type_name}", two, [r[:2] for r in rows]) == [
            a * b & wide for a, b, _ in numbers
        ]
        of_sum = f"{type_name[0]}{2 * bits}"
        assert compute(f"mad.wide.{type_name}", [*two, of_sum], rows) == [
            (a * b + value(r[2], of_sum)) & wide for (a, b, _), r in zip(numbers, rows, strict=True)
        ]


@ROWS
@given(st.lists(st.tuples(patterns(32), patterns(32), patterns(32)), min_size=1, max_size=6))
def test_saturating_forms(rows: list[tuple[int, int, int]]) -> None:
    def clipped(x: int) -> int:
        return max(-(2**31), min(2**31 - 1, x)) & 0xFFFFFFFF

    signed = [[value(p, "s32") for p in row] for row in rows]
    assert compute("add.sat.s32", ["s32"] * 2, [r[:2] for r in rows]) == [
        clipped(a + b) for a, b, _ in signed
    ]
    assert compute("sub.sat.s32", ["s32"] * 2, [r[:2] for r in rows]) == [
        clipped(a - b) for a, b, _ in signed
    ]
    assert compute("mad.hi.sat.s32", ["s32"] * 3, rows) == [clipped((a * b >> 32) + c) for a, b, c in signed]


@pytest.mark.parametrize("bits", [32, 64])
@ROWS
@given(data=st.data())
def test_carry_chains_add_long_numbers(bits: int, data: st.DataObject) -> None:
    a0, a1, b0, b1 = (data.draw(patterns(bits)) for _ in range(4))
    u = np.dtype(f"u{bits // 8}")
    columns = [np.array([x], u) for x in (a0, b0, a1, b1)]
    for first, second, exact in (("add.cc", "addc.cc", (a1 << bits | a0) + (b1 << bits | b0)),
                                 ("sub.cc", "subc.cc", (a1 << bits | a0) - (b1 << bits | b0))):  # fmt: skip
        with np.errstate(all="ignore"):
            low, carry = resolve([*first.split("."), f"u{bits}"]).function(*columns[:2])
            high, out = resolve([*second.split("."), f"u{bits}"]).function(*columns[2:], carry)
        assert int(low[0]) | int(high[0]) << bits == exact & ((1 << 2 * bits) - 1)
        assert bool(out[0]) == (exact < 0 or exact >> 2 * bits > 0)


@ROWS
@given(patterns(32), patterns(32), patterns(32), st.booleans())
def test_multiply_add_with_carry(a: int, b: int, c: int, carry: bool) -> None:
    columns = [np.array([x], np.uint32) for x in (a, b, c)]
    for half, product in (("lo", a * b & 0xFFFFFFFF), ("hi", a * b >> 32)):
        with np.errstate(all="ignore"):
            result, out = resolve(["madc", half, "cc", "u32"]).function(*columns, np.array([carry]))
        assert int(result[0]) | int(out[0]) << 32 == product + c + carry


SHIFTS: dict[str, Reference] = {
    "shl.b16": lambda a, n: a << n,
    "shl.b32": lambda a, n: a << n,
    "shl.b64": lambda a, n: a << n,
    "shr.u16": lambda a, n: a >> n,
    "shr.u32": lambda a, n: a >> n,
    "shr.b64": lambda a, n: a >> n,
    "shr.s16": lambda a, n: a >> n,
    "shr.s32": lambda a, n: a >> n,
    "shr.s64": lambda a, n: a >> n,
}


@pytest.mark.parametrize("opcode", SHIFTS)
@ROWS
@given(data=st.data())
def test_shifts_clamp_their_amount(opcode: str, data: st.DataObject) -> None:
    type_name = opcode.split(".")[1]
    bits = width(type_name)
    amounts = st.one_of(st.integers(0, 70), st.sampled_from([255, 256, 2**31, 2**32 - 1]))
    rows = data.draw(st.lists(st.tuples(patterns(bits), amounts), min_size=1, max_size=6))
    expected = [SHIFTS[opcode](value(a, type_name), min(n, 80)) & ((1 << bits) - 1) for a, n in rows]
    assert compute(opcode, [type_name, "u32"], rows) == expected
    # A literal amount comes as a scalar.
    operation = resolve(opcode.split("."))
    a, n = rows[0]
    column = np.array([a & ((1 << bits) - 1)], f"u{bits // 8}").view(operation.inputs[0])
    assert int(operation.function(column, np.uint32(n)).view(f"u{bits // 8}")[0]) == expected[0]


def in_field(number: int, bits: int) -> int:
    """A position or length: its low byte counts in the 32-bit forms, all of it in the 64-bit ones."""
    return number & 255 if bits == 32 else number


def bit_field(a: int, position: int, length: int, type_name: str) -> int:
    """`bfe` word by word as the ISA spells it."""
    bits = width(type_name)
    position, length = in_field(position, bits), in_field(length, bits)
    sign = a >> min(position + length - 1, bits - 1) & 1 if type_name[0] == "s" and length else 0
    result = 0
    for i in range(bits):
        there = i < length and position + i < bits
        result |= (a >> (position + i) & 1 if there else sign) << i
    return result


@pytest.mark.parametrize("type_name", ["u32", "s32", "u64", "s64"])
@ROWS
@given(data=st.data())
def test_bit_field_extract(type_name: str, data: st.DataObject) -> None:
    places = st.one_of(st.integers(0, 70), st.integers(0, 300))
    rows = data.draw(st.lists(st.tuples(patterns(width(type_name)), places, places), min_size=1, max_size=6))
    assert compute(f"bfe.{type_name}", [type_name, "u32", "u32"], rows) == [
        bit_field(*row, type_name) for row in rows
    ]


@pytest.mark.parametrize("bits", [32, 64])
@ROWS
@given(data=st.data())
def test_bit_field_insert(bits: int, data: st.DataObject) -> None:
    places = st.one_of(st.integers(0, 70), st.integers(0, 300))
    rows = data.draw(
        st.lists(st.tuples(patterns(bits), patterns(bits), places, places), min_size=1, max_size=6)
    )

    def reference(a: int, b: int, position: int, length: int) -> int:
        position, length = in_field(position, bits), in_field(length, bits)
        for i in range(min(length, bits)):
            if position + i < bits:
                b = b & ~(1 << (position + i)) | (a >> i & 1) << (position + i)
        return b

    types = [f"b{bits}", f"b{bits}", "u32", "u32"]
    assert compute(f"bfi.b{bits}", types, rows) == [reference(*row) for row in rows]


def highest(a: int, type_name: str) -> int:
    number = value(a, type_name)
    return (~number if number < 0 else number).bit_length() - 1


@pytest.mark.parametrize("bits", [32, 64])
@ROWS
@given(data=st.data())
def test_bit_counts(bits: int, data: st.DataObject) -> None:
    rows = [(p,) for p in data.draw(st.lists(patterns(bits), min_size=1, max_size=6))]
    plain = [row[0] for row in rows]
    assert compute(f"popc.b{bits}", [f"b{bits}"], rows) == [bin(a).count("1") for a in plain]
    assert compute(f"clz.b{bits}", [f"b{bits}"], rows) == [bits - a.bit_length() for a in plain]
    assert compute(f"brev.b{bits}", [f"b{bits}"], rows) == [int(f"{a:0{bits}b}"[::-1], 2) for a in plain]
    for type_name in (f"u{bits}", f"s{bits}"):
        places = [highest(a, type_name) for a in plain]
        assert compute(f"bfind.{type_name}", [type_name], rows) == [p & 0xFFFFFFFF for p in places]
        amounts = [bits - 1 - p if p >= 0 else -1 for p in places]
        assert compute(f"bfind.shiftamt.{type_name}", [type_name], rows) == [p & 0xFFFFFFFF for p in amounts]


@ROWS
@given(patterns(32), patterns(32), patterns(32), st.integers(0, 255))
def test_any_function_of_three_bits(a: int, b: int, c: int, table: int) -> None:
    expected = sum(
        (table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1) & 1) << i for i in range(32)
    )
    assert compute("lop3.b32", ["b32"] * 4, [(a, b, c, table)]) == [expected]


@ROWS
@given(patterns(32), patterns(32), st.integers(0, 100))
def test_funnel_shifts(a: int, b: int, n: int) -> None:
    both = b << 32 | a
    for mode, amount in (("clamp", min(n, 32)), ("wrap", n & 31)):
        assert compute(f"shf.l.{mode}.b32", ["b32"] * 3, [(a, b, n)]) == [(both << amount >> 32) & 0xFFFFFFFF]
        assert compute(f"shf.r.{mode}.b32", ["b32"] * 3, [(a, b, n)]) == [(both >> amount) & 0xFFFFFFFF]


@ROWS
@given(patterns(32), patterns(32), patterns(32))
def test_byte_permutation(a: int, b: int, c: int) -> None:
    source = [(b << 32 | a) >> 8 * i & 255 for i in range(8)]

    def picked(selectors: list[int]) -> int:
        found = [(255 if source[s & 7] >> 7 else 0) if s & 8 else source[s & 7] for s in selectors]
        return sum(byte << 8 * i for i, byte in enumerate(found))

    i = c & 3
    expected = {
        "": [c >> 4 * k & 15 for k in range(4)],
        ".f4e": [i + k for k in range(4)],
        ".b4e": [(i - k) % 8 for k in range(4)],
        ".rc8": [i] * 4,
        ".ecl": [max(k, i) for k in range(4)],
        ".ecr": [min(k, i) for k in range(4)],
        ".rc16": [2 * (i & 1), 2 * (i & 1) + 1] * 2,
    }
    for mode, selectors in expected.items():
        assert compute(f"prmt.b32{mode}", ["b32"] * 3, [(a, b, c)]) == [picked(selectors)]


@ROWS
@given(patterns(32), patterns(32), patterns(32))
def test_dot_product_of_bytes(a: int, b: int, c: int) -> None:
    for a_type in ("u32", "s32"):
        for b_type in ("u32", "s32"):
            total = sum(
                value(a >> 8 * i, f"{a_type[0]}8") * value(b >> 8 * i, f"{b_type[0]}8") for i in range(4)
            )
            found = compute(f"dp4a.{a_type}.{b_type}", ["b32"] * 3, [(a, b, c)])
            assert found == [(total + c) & 0xFFFFFFFF]


@ROWS
@given(patterns(32), patterns(32), patterns(32))
def test_dot_product_of_halves_and_bytes(a: int, b: int, c: int) -> None:
    for (mode, first), a_type, b_type in itertools.product(
        {"lo": 0, "hi": 2}.items(), ("u32", "s32"), ("u32", "s32")
    ):
        total = sum(
            value(a >> 16 * i, f"{a_type[0]}16") * value(b >> 8 * (first + i), f"{b_type[0]}8")
            for i in range(2)
        )
        found = compute(f"dp2a.{mode}.{a_type}.{b_type}", ["b32"] * 3, [(a, b, c)])
        assert found == [(total + c) & 0xFFFFFFFF]


@pytest.mark.parametrize(
    ("opcode", "expected"),
    [
        ("dp2a.lo.u32.u32", 0xFFFF * 0x7F + 0x8000 * 0x80 + 5),
        ("dp2a.hi.u32.u32", 0xFFFF * 0xFF + 0x8000 * 0x01 + 5),
        ("dp2a.lo.s32.s32", -1 * 127 + -32768 * -128 + 5),
        ("dp2a.hi.s32.s32", -1 * -1 + -32768 * 1 + 5),
        ("dp2a.lo.s32.u32", -1 * 127 + -32768 * 128 + 5),
        ("dp2a.hi.u32.s32", 0xFFFF * -1 + 32768 * 1 + 5),
    ],
)
def test_which_halves_and_bytes_are_multiplied(opcode: str, expected: int) -> None:
    found = compute(opcode, ["b32"] * 3, [(0x8000FFFF, 0x01FF807F, 5)])
    assert found == [expected & 0xFFFFFFFF]


@pytest.mark.parametrize(
    ("opcode", "types", "row", "expected"),
    [
        ("abs.s32", ["s32"], (0xFFFFFFF9,), 7),
        ("abs.s32", ["s32"], (0x80000000,), 0x80000000),
        ("neg.s64", ["s64"], (1,), 2**64 - 1),
        ("not.b16", ["b16"], (0x00FF,), 0xFF00),
        ("cnot.b32", ["b32"], (0,), 1),
        ("cnot.b32", ["b32"], (5,), 0),
        ("mul24.lo.u32", ["u32"] * 2, (0xFF000003, 0xFF000005), 15),
        ("mul24.hi.u32", ["u32"] * 2, (0xFFFFFF, 0xFFFFFF), 0xFFFFFE00),
        ("mad24.lo.s32", ["s32"] * 3, (0x00FFFFFF, 5, 7), 2),
        ("bmsk.clamp.b32", ["u32"] * 2, (4, 8), 0xFF0),
        ("bmsk.clamp.b32", ["u32"] * 2, (40, 8), 0),
        ("fns.b32", ["b32", "u32", "s32"], (0b10110, 0, 2), 2),
        ("fns.b32", ["b32", "u32", "s32"], (0b10110, 4, -2), 2),
        ("fns.b32", ["b32", "u32", "s32"], (0b10110, 3, 0), 0xFFFFFFFF),
        ("min.relu.s32", ["s32"] * 2, (0xFFFFFFFF, 5), 0),
    ],
)
def test_single_values(opcode: str, types: list[str], row: tuple[int, ...], expected: int) -> None:
    assert compute(opcode, types, [row]) == [expected]


COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


@pytest.mark.parametrize("type_name", ["u16", "s16", "u32", "s32", "u64", "s64"])
@ROWS
@given(data=st.data())
def test_comparisons(type_name: str, data: st.DataObject) -> None:
    bits = width(type_name)
    rows = data.draw(st.lists(st.tuples(patterns(bits), patterns(bits)), min_size=1, max_size=6))
    for name, reference in COMPARE.items():
        expected = [int(reference(value(a, type_name), value(b, type_name))) for a, b in rows]
        assert compute(f"setp.{name}.{type_name}", [type_name] * 2, rows) == expected
        ones = [e * 0xFFFFFFFF for e in expected]
        assert compute(f"set.{name}.u32.{type_name}", [type_name] * 2, rows) == ones
    assert compute("setp.lo.u32", ["u32"] * 2, [(1, 2**31)]) == [1]
    assert compute("setp.hs.u32", ["u32"] * 2, [(1, 2**31)]) == [0]
