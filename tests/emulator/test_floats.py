"""Floating-point semantics: every rounding against exact fractions, NaN, zeros and flushing as the ISA says."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cccopt.emulator.semantics import TYPES, UnsupportedError, resolve
from tests.slow import drawn

ROWS = settings(max_examples=drawn(60), deadline=None)
MODES = ["rn", "rz", "rm", "rp"]
U = {"f16": np.uint16, "f32": np.uint32, "f64": np.uint64}


def numbers(type_name: str) -> st.SearchStrategy[float]:
    """Finite numbers of a format by their bits, so that all exponents come up; and some by value."""
    t = TYPES[type_name]
    by_bits = st.integers(0, (1 << 8 * t.itemsize) - 1).map(
        lambda p: float(np.asarray(p, U[type_name]).view(t))
    )
    near_one = st.integers(-(2**20), 2**20).map(lambda k: float(t.type(1 + k * float(np.finfo(t).eps))))
    edge = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 3.0, float(np.finfo(t).max), float(np.finfo(t).tiny)])
    return st.one_of(by_bits.filter(math.isfinite), near_one, edge)


def apply(opcode: str, *operands: float) -> Any:
    operation = resolve(opcode.split("."), sources=len(operands))
    columns = [np.array([x], t) for x, t in zip(operands, operation.inputs, strict=True)]
    with np.errstate(all="ignore"):
        return np.asarray(operation.function(*columns))[0]


def assert_rounded(result: Any, exact: Fraction, mode: str) -> None:
    """``result`` is the number of its format that ``mode`` makes of ``exact``."""
    t = result.dtype
    largest = Fraction(float(np.finfo(t).max))
    with np.errstate(over="ignore"):
        below, above = np.nextafter(result, t.type(-np.inf)), np.nextafter(result, t.type(np.inf))
    if np.isinf(result):
        half_up = (
            largest + Fraction(float(np.finfo(t).max) - float(np.nextafter(np.finfo(t).max, t.type(0)))) / 2
        )
        assert abs(exact) >= (half_up if mode == "rn" else largest)
        assert mode in ("rn", "rp" if result > 0 else "rm")
        assert (result > 0) == (exact > 0)
        return
    value = Fraction(float(result))
    if mode == "rn":
        for neighbour in (below, above):
            if np.isfinite(neighbour):
                far, near = abs(Fraction(float(neighbour)) - exact), abs(value - exact)
                assert near < far or (near == far and int(result.view(U[f"f{8 * t.itemsize}"])) % 2 == 0)
        return
    toward_zero = mode == "rz"
    if mode == "rm" or (toward_zero and exact > 0):
        assert value <= exact
        assert not np.isfinite(above) or Fraction(float(above)) > exact
    elif mode == "rp" or (toward_zero and exact < 0):
        assert value >= exact
        assert not np.isfinite(below) or Fraction(float(below)) < exact


EXACT: dict[str, Callable[..., Fraction]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "fma": lambda a, b, c: a * b + c,
}


@pytest.mark.parametrize("type_name", ["f32", "f64"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", EXACT)
@ROWS
@given(data=st.data())
def test_results_are_rounded_once(name: str, mode: str, type_name: str, data: st.DataObject) -> None:
    row = [data.draw(numbers(type_name)) for _ in range(3 if name == "fma" else 2)]
    exact = EXACT[name](*(Fraction(x) for x in row))
    result = apply(f"{name}.{mode}.{type_name}", *row)
    if exact != 0:
        assert_rounded(result, exact, mode)
    else:
        assert result == 0


@ROWS
@given(numbers("f32"), numbers("f32"), st.floats(2.0**-30, 2.0**-20))
@example(1.0 + 2.0**-12, 1.0 + 2.0**-12, 2.0**-80)
def test_fma_of_nearly_cancelling_terms(a: float, b: float, scale: float) -> None:
    with np.errstate(over="ignore"):
        c = float(np.float32(-a * b * (1 + scale)))
    if math.isfinite(c):
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        if exact != 0:
            assert_rounded(apply("fma.rn.f32", a, b, c), exact, "rn")


@pytest.mark.parametrize(
    ("a", "b", "c"),
    [
        (1 + 2**-23, 1 + 2**-23, 2.0**-60),  # double rounding would lose the addend
        (1 + 2**-12, 1 + 2**-12, 2.0**-100),
        (2.0**-75, 2.0**-74, 2.0**-149),  # a subnormal midpoint
        (3.5, 2.0**-149, 0.0),
        (-(1 + 2**-23), 1 - 2**-24, 1.0),
    ],
)
def test_fma_in_single_precision_does_not_round_twice(a: float, b: float, c: float) -> None:
    assert_rounded(apply("fma.rn.f32", a, b, c), Fraction(a) * Fraction(b) + Fraction(c), "rn")


@pytest.mark.parametrize(
    ("a", "b", "c"),
    [
        (1 + 2**-52, 1 + 2**-52, 2.0**-120),
        (1e308, 10.0, -1e308),
        (5e-324, 0.5, 5e-324),
        (2.0**-600, 2.0**-500, 2.0**-1074),
        (1e200, 1e200, -1e300),
        (1 + 2**-30, 1 - 2**-30, -1.0),
    ],
)
def test_fma_in_double_precision(a: float, b: float, c: float) -> None:
    assert_rounded(apply("fma.rn.f64", a, b, c), Fraction(a) * Fraction(b) + Fraction(c), "rn")


@pytest.mark.parametrize("type_name", ["f32", "f64"])
@pytest.mark.parametrize("mode", MODES)
@ROWS
@given(data=st.data())
def test_quotients_and_roots(mode: str, type_name: str, data: st.DataObject) -> None:
    a, b = data.draw(numbers(type_name)), data.draw(numbers(type_name))
    if b:
        if a:
            assert_rounded(apply(f"div.{mode}.{type_name}", a, b), Fraction(a) / Fraction(b), mode)
        assert_rounded(apply(f"rcp.{mode}.{type_name}", b), 1 / Fraction(b), mode)
    if type_name == "f32" or mode == "rn":
        root = apply(f"sqrt.{mode}.{type_name}", abs(a))
        square, t = Fraction(a) * (1 if a > 0 else -1), root.dtype
        below, above = (Fraction(float(np.nextafter(root, t.type(x)))) for x in (-np.inf, np.inf))
        exact = Fraction(float(root))
        if a == 0 or exact**2 == square:
            return
        if mode == "rn":
            assert ((exact + below) / 2) ** 2 <= square <= ((exact + above) / 2) ** 2
        elif mode == "rp":
            assert below**2 < square < exact**2
        else:
            assert exact**2 < square < above**2


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("opcode", "row", "expected"),
    [
        ("min.f32", (NAN, 1.0), 1.0),
        ("max.f32", (1.0, NAN), 1.0),
        ("min.NaN.f32", (NAN, 1.0), NAN),
        ("min.f32", (0.0, -0.0), -0.0),
        ("min.f32", (-0.0, 0.0), -0.0),
        ("max.f64", (-0.0, 0.0), 0.0),
        ("max.f64", (0.0, -0.0), 0.0),
        ("min.xorsign.abs.f32", (-2.0, 1.0), -1.0),
        ("add.f32", (INF, -INF), NAN),
        ("add.sat.f32", (2.0, 3.0), 1.0),
        ("add.sat.f32", (-2.0, 1.0), 0.0),
        ("add.sat.f32", (INF, -INF), 0.0),
        ("add.rm.f32", (1.0, -1.0), -0.0),
        ("add.rn.f32", (1.0, -1.0), 0.0),
        ("add.rm.f64", (1.0, -1.0), -0.0),
        ("add.rm.f64", (0.0, 0.0), 0.0),
        ("add.rm.f64", (0.0, -0.0), -0.0),
        ("mul.rm.f64", (3.0, 0.0), 0.0),
        ("mul.rn.ftz.f32", (-(2.0**-126), 1 - 2.0**-24), -0.0),
        ("fma.rn.f32", (0.5, -0.0, -0.0), -0.0),
        ("fma.rn.f64", (-1.7976931348623157e308, 2.0, INF), INF),
        ("fma.rz.f64", (-1.7976931348623157e308, 2.0, INF), INF),
        ("div.approx.f32", (1.0, -3e38), -0.0),
        ("neg.f32", (NAN,), NAN),
        ("fma.rm.f32", (1.0, 1.0, -1.0), -0.0),
        ("add.ftz.f32", (1e-39, 1e-39), 0.0),
        ("mul.ftz.f32", (-1e-20, 1e-20), -0.0),
        ("mul.f32", (-1e-20, 1e-20), float(np.float32(-1e-40))),
        ("fma.rn.ftz.f32", (1e-39, 1e30, 0.0), 0.0),
        ("neg.f32", (0.0,), -0.0),
        ("abs.f64", (-3.5,), 3.5),
        ("copysign.f32", (-0.0, 2.0), -2.0),
        ("rcp.rn.f32", (0.0,), INF),
        ("rcp.approx.ftz.f32", (1e-39,), INF),
        ("div.rn.f32", (0.0, 0.0), NAN),
        ("sqrt.rn.f32", (-1.0,), NAN),
        ("rsqrt.approx.f32", (4.0,), 0.5),
        ("ex2.approx.f32", (10.0,), 1024.0),
        ("ex2.approx.ftz.f32", (-140.0,), 0.0),
        ("lg2.approx.f32", (8.0,), 3.0),
        ("lg2.approx.f32", (0.0,), -INF),
        ("lg2.approx.f32", (-1.0,), NAN),
        ("sin.approx.f32", (0.0,), 0.0),
        ("cos.approx.f32", (0.0,), 1.0),
        ("tanh.approx.f32", (INF,), 1.0),
        ("mad.rn.f32", (2.0, 3.0, 4.0), 10.0),
        ("fma.rn.f16", (2.0, 3.0, 4.0), 10.0),
        ("add.f16", (1.0, 2.0**-11), 1.0),
        ("slct.f32.s32", (1.0, 2.0, -1), 2.0),
        ("slct.f32.f32", (1.0, 2.0, -0.0), 1.0),
    ],
)
def test_special_values(opcode: str, row: tuple[float, ...], expected: float) -> None:
    result = apply(opcode, *row)
    if math.isnan(expected):
        assert math.isnan(result)
        assert result.dtype != np.float32 or int(result.view(np.uint32)) == 0x7FFFFFFF
    else:
        assert float(result) == expected
        assert math.copysign(1.0, result) == math.copysign(1.0, expected)


@pytest.mark.parametrize(
    ("name", "ordered", "with_nan"),
    [("eq", lambda a, b: a == b, False), ("ne", lambda a, b: a != b, False), ("lt", lambda a, b: a < b, False),
     ("ge", lambda a, b: a >= b, False), ("equ", lambda a, b: a == b, True), ("neu", lambda a, b: a != b, True),
     ("ltu", lambda a, b: a < b, True), ("leu", lambda a, b: a <= b, True), ("gtu", lambda a, b: a > b, True),
     ("geu", lambda a, b: a >= b, True), ("num", lambda a, b: True, False), ("nan", lambda a, b: False, True)],
)  # fmt: skip
def test_comparisons_of_floats(name: str, ordered: Callable[[float, float], bool], with_nan: bool) -> None:
    for a in (1.0, -1.0, 0.0, INF):
        for b in (1.0, 2.0, -0.0, INF):
            assert bool(apply(f"setp.{name}.f32", a, b)) == ordered(a, b)
        assert bool(apply(f"setp.{name}.f32", a, NAN)) == with_nan
    assert bool(apply("setp.eq.ftz.f32", 1e-39, 0.0))


@pytest.mark.parametrize("combine", ["and", "or", "xor"])
def test_comparison_with_a_second_predicate(combine: str) -> None:
    python = {"and": lambda x, y: x and y, "or": lambda x, y: x or y, "xor": lambda x, y: x != y}[combine]
    operation = resolve(["setp", "lt", combine, "s32"], pair=True, sources=3)
    a, b = np.array([1, 2, 1, 2], np.int32), np.array([2, 1, 2, 1], np.int32)
    c = np.array([True, True, False, False])
    p, q = operation.function(a, b, c)
    assert p.tolist() == [python(bool(x < y), bool(z)) for x, y, z in zip(a, b, c, strict=True)]
    assert q.tolist() == [python(not x < y, bool(z)) for x, y, z in zip(a, b, c, strict=True)]


def test_properties_of_numbers() -> None:
    numbers_of = {
        "finite": 1.0,
        "infinite": INF,
        "number": 1e-40,
        "notanumber": NAN,
        "normal": 2.0,
        "subnormal": 1e-40,
    }
    expected = {
        "finite": {"finite", "number", "normal", "subnormal"},
        "infinite": {"infinite"},
        "number": {"finite", "infinite", "number", "normal", "subnormal"},
        "notanumber": {"notanumber"},
        "normal": {"finite", "normal"},  # and zero, below
        "subnormal": {"number", "subnormal"},
    }
    for name, holds in expected.items():
        assert {k for k, x in numbers_of.items() if apply(f"testp.{name}.f32", x)} == holds
    assert bool(apply("testp.normal.f32", -0.0))


# --- conversions ------------------------------------------------------------------------------------------------

INTEGERS = ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"]
ROUND: dict[str, Callable[[Fraction], int]] = {
    "rni": round,
    "rzi": math.trunc,
    "rmi": math.floor,
    "rpi": math.ceil,
}


def limits(type_name: str) -> tuple[int, int]:
    info = np.iinfo(TYPES[type_name])
    return int(info.min), int(info.max)


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("target", INTEGERS)
def test_integers_convert_by_extension_or_truncation(source: str, target: str) -> None:
    low, high = limits(target)
    t = TYPES[source]
    for value in sorted({*limits(source), 0, 1, 100, 127, limits(source)[1] // 3}):
        column = np.array([value], t)
        wrapped = int(resolve(["cvt", target, source]).function(column)[0])
        assert (wrapped - value) % (high - low + 1) == 0
        clamped = int(resolve(["cvt", "sat", target, source]).function(column)[0])
        assert clamped == min(max(value, low), high)


@pytest.mark.parametrize("source", ["f32", "f64"])
@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("mode", ROUND)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_floats_convert_to_integers(mode: str, target: str, source: str, data: st.DataObject) -> None:
    low, high = limits(target)
    near = st.integers(-(2**40), 2**40).map(lambda k: float(TYPES[source].type(k / 2**9)))
    value = data.draw(st.one_of(numbers(source), near, st.sampled_from([float(high), float(low), high / 2])))
    value = float(TYPES[source].type(value))
    exact = min(max(ROUND[mode](Fraction(value)), low), high)
    assert int(apply(f"cvt.{mode}.{target}.{source}", value)) == exact


def test_infinities_and_nan_convert_to_integers() -> None:
    assert int(apply("cvt.rzi.s32.f32", NAN)) == 0
    assert int(apply("cvt.rzi.u32.f32", INF)) == 2**32 - 1
    assert int(apply("cvt.rzi.s32.f64", -INF)) == -(2**31)
    assert int(apply("cvt.rzi.s64.f32", NAN)) == -(2**63)
    assert int(apply("cvt.rzi.u32.f64", NAN)) == 2**31


@pytest.mark.parametrize("target", ["f32", "f64"])
@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_integers_convert_to_floats(mode: str, target: str, data: st.DataObject) -> None:
    for source in ("u32", "s32", "u64", "s64"):
        low, high = limits(source)
        value = data.draw(
            st.one_of(st.integers(low, high), st.sampled_from([low, high, high - 1, 2**24 + 1]))
        )
        operation = resolve(["cvt", mode, target, source])
        with np.errstate(all="ignore"):
            result = operation.function(np.array([value], TYPES[source]))[0]
        if value:
            assert_rounded(result, Fraction(value), mode)
        else:
            assert result == 0


@pytest.mark.parametrize(("target", "source"), [("f32", "f64"), ("f16", "f32")])
@pytest.mark.parametrize("mode", ["rn", "rz"])
@ROWS
@given(data=st.data())
def test_floats_convert_to_shorter_ones(mode: str, target: str, source: str, data: st.DataObject) -> None:
    value = data.draw(numbers(source))
    result = apply(f"cvt.{mode}.{target}.{source}", value)
    if value:
        assert_rounded(result, Fraction(value), mode)


@pytest.mark.parametrize(
    ("opcode", "value", "expected"),
    [
        ("cvt.rni.f32.f32", 2.5, 2.0),
        ("cvt.rzi.f32.f32", -2.5, -2.0),
        ("cvt.rmi.f64.f64", -2.5, -3.0),
        ("cvt.rpi.f32.f32", -0.5, -0.0),
        ("cvt.sat.f32.f32", 1.5, 1.0),
        ("cvt.sat.f32.f32", NAN, 0.0),
        ("cvt.ftz.f64.f32", 1e-39, 0.0),
        ("cvt.f64.f32", 1e-39, float(np.float32(1e-39))),
        ("cvt.rn.ftz.f32.f64", 1e-39, 0.0),
    ],
)
def test_other_conversions(opcode: str, value: float, expected: float) -> None:
    result = float(apply(opcode, value))
    assert result == expected
    assert math.copysign(1, result) == math.copysign(1, expected)


# --- two numbers in a register ---

PAIRS = st.tuples(*[st.integers(0, 2**16 - 1)] * 2)


@pytest.mark.parametrize(
    "opcode",
    [
        "add",
        "sub.sat",
        "mul",
        "fma.rn",
        "neg",
        "abs",
        "min",
        "max.NaN",
        "ex2.approx",
        "tanh.approx",
        "set.gt.f16",
    ],
)
@ROWS
@given(data=st.data())
def test_each_half_is_a_number_of_its_own(opcode: str, data: st.DataObject) -> None:
    one = resolve(f"{opcode}.f16".split("."))
    packed = resolve(f"{opcode.replace('f16', 'f16x2')}.f16x2".split("."))
    operands = [data.draw(PAIRS) for _ in packed.inputs]
    with np.errstate(all="ignore"):
        halves = [
            int(np.asarray(one.function(*(np.array([x[k]], np.uint16).view(np.float16) for x in operands)))
                .astype(np.float16).view(np.uint16)[0])
            for k in (0, 1)
        ]  # fmt: skip
        word = packed.function(*(np.array([low | high << 16], np.uint32) for low, high in operands))
    assert int(word[0]) == halves[0] | halves[1] << 16


def test_a_comparison_of_both_halves_gives_masks() -> None:
    operation = resolve(["set", "gt", "u32", "f16x2"])
    (word,) = operation.function(*(np.array([x], np.uint32) for x in (0x40003C00, 0x3C003C00)))
    assert word == 0xFFFF0000


def test_two_numbers_are_converted_into_one_register() -> None:
    operation = resolve(["cvt", "rn", "f16x2", "f32"])
    upper, lower = (np.array(x, np.float32) for x in ([1.0, -2.0], [0.5, 65504.0]))
    assert [hex(word) for word in operation.function(upper, lower)] == ["0x3c003800", "0xc0007bff"]


@pytest.mark.parametrize(
    "opcode", ["div.rn.f16x2", "fma.rn.relu.f16x2", "set.gt.f32.f16x2", "cvt.rn.relu.f16x2.f32"]
)
def test_what_is_not_known_of_them_is_named(opcode: str) -> None:
    with pytest.raises(UnsupportedError):
        resolve(opcode.split("."))
