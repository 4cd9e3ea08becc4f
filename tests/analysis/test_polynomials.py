"""Sums of products of atoms, and what bounds of atoms tell of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cccopt.analysis.polynomials import Atom, Polynomial, Symbols, constant, polynomial

SYMBOLS = Symbols()
X = SYMBOLS.of(Atom(("x",), 0, 7))
N = SYMBOLS.of(Atom(("n",), 1, None))
Z = SYMBOLS.of(Atom(("z",), -3, 3))
FREE = SYMBOLS.of(Atom(("free",)))

polynomials = st.dictionaries(
    st.lists(st.integers(0, 3), max_size=2).map(lambda atoms: tuple(sorted(atoms))),
    st.integers(-9, 9),
    max_size=4,
).map(polynomial)


def value(p: Polynomial, atoms: list[int]) -> int:
    total = 0
    for product, factor in p.terms:
        for atom in product:
            factor *= atoms[atom]
        total += factor
    return total


values = st.tuples(st.integers(0, 7), st.integers(1, 50), st.integers(-3, 3), st.integers(-50, 50)).map(list)


@given(polynomials, polynomials, values)
def test_arithmetic_is_that_of_the_values(p: Polynomial, q: Polynomial, atoms: list[int]) -> None:
    assert value(p + q, atoms) == value(p, atoms) + value(q, atoms)
    assert value(p - q, atoms) == value(p, atoms) - value(q, atoms)
    assert value(p * q, atoms) == value(p, atoms) * value(q, atoms)
    assert value(p.with_value(1, q), atoms) == value(p, [atoms[0], value(q, atoms), *atoms[2:]])


@given(polynomials, values)
def test_bounds_hold(p: Polynomial, atoms: list[int]) -> None:
    low, high = SYMBOLS.bounds(p)
    assert low is None or low <= value(p, atoms)
    assert high is None or value(p, atoms) <= high
    if SYMBOLS.is_never_negative(p, {}):
        assert value(p, atoms) >= 0


@pytest.mark.parametrize(
    ("p", "lows", "expected"),
    [
        (N * X, {}, True),
        (N - constant(1), {}, True),
        (N - constant(2), {}, False),
        (N - constant(2), {1: 2}, True),
        (N * N - N, {}, True),
        (Z + constant(3), {}, True),
        (FREE * FREE, {}, False),
        (FREE, {3: 0}, True),
        (constant(7) - X, {}, True),
    ],
)
def test_what_is_never_negative(p: Polynomial, lows: dict[int, int], expected: bool) -> None:
    assert SYMBOLS.is_never_negative(p, lows) is expected


def test_parts_of_what_moves() -> None:
    p = constant(3) * X * N + N + constant(4)
    moves = {0}
    assert p.parts(lambda atom: atom in moves) == (N + constant(4), {0: constant(3) * N})
    assert (X * X).parts(lambda atom: atom in moves) is None
