"""Polynomials with integer coefficients over *atoms*, numbers that are not literals: addresses as code computes them.

        4 * %ntid.x * k + 4 * %tid.x + out

An `Atom` knows its bounds, the loops with whose iterations it changes, and whether it differs between threads. Atoms
are given by number, so a monomial is a sorted tuple. `Symbols` gives each key one atom.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

Monomial = tuple[int, ...]
"""The atoms of a product, each as often as it occurs."""

_NOWHERE: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Polynomial:
    """A sum of products; ``terms`` are sorted, and none has the coefficient 0."""

    terms: tuple[tuple[Monomial, int], ...] = ()

    @cached_property
    def atoms(self) -> frozenset[int]:
        """The atoms that occur in it."""
        return frozenset(atom for product, _ in self.terms for atom in product)

    @property
    def number(self) -> int | None:
        """The value of the polynomial, if no atom occurs."""
        if not self.terms:
            return 0
        return self.terms[0][1] if self.terms[0][0] == () and len(self.terms) == 1 else None

    def __add__(self, other: Polynomial) -> Polynomial:
        found = dict(self.terms)
        for product, factor in other.terms:
            found[product] = found.get(product, 0) + factor
        return polynomial(found)

    def __neg__(self) -> Polynomial:
        return Polynomial(tuple((product, -factor) for product, factor in self.terms))

    def __sub__(self, other: Polynomial) -> Polynomial:
        found = dict(self.terms)
        for product, factor in other.terms:
            found[product] = found.get(product, 0) - factor
        return polynomial(found)

    def __mul__(self, other: Polynomial) -> Polynomial:
        found: dict[Monomial, int] = {}
        for a, x in self.terms:
            for b, y in other.terms:
                product = tuple(sorted(a + b))
                found[product] = found.get(product, 0) + x * y
        return polynomial(found)

    def renamed(self, new: Callable[[int], int]) -> Polynomial:
        """The polynomial with other atoms."""
        found: dict[Monomial, int] = {}
        for product, factor in self.terms:
            key = tuple(sorted(map(new, product)))
            found[key] = found.get(key, 0) + factor
        return polynomial(found)

    def with_value(self, atom: int, value: Polynomial) -> Polynomial:
        """The polynomial with ``value`` in place of an atom."""
        if atom not in self.atoms:
            return self
        total = ZERO
        for product, factor in self.terms:
            term = Polynomial(((tuple(a for a in product if a != atom), factor),))
            for _ in range(product.count(atom)):
                term *= value
            total += term
        return total

    def parts(self, moving: Callable[[int], bool]) -> tuple[Polynomial, Mapping[int, Polynomial]] | None:
        """The part without ``moving`` atoms, and the factor of each of these; None if two of them are multiplied."""
        still: dict[Monomial, int] = {}
        factors: dict[int, dict[Monomial, int]] = {}
        for product, factor in self.terms:
            found = [atom for atom in product if moving(atom)]
            if len(found) > 1:
                return None
            if not found:
                still[product] = factor
                continue
            rest = list(product)
            rest.remove(found[0])
            factors.setdefault(found[0], {})[tuple(rest)] = factor
        return polynomial(still), {atom: polynomial(terms) for atom, terms in factors.items()}


def polynomial(terms: Mapping[Monomial, int]) -> Polynomial:
    """The polynomial with these terms."""
    return Polynomial(tuple(sorted([term for term in terms.items() if term[1]])))


def constant(number: int) -> Polynomial:
    """A number as a polynomial."""
    return Polynomial((((), number),) if number else ())


ZERO = Polynomial()


@dataclass(frozen=True, slots=True)
class Atom:
    """A number that is not a literal; ``key`` identifies it.

    It is between ``low`` and ``high`` (None: not known). ``narrow`` is a value of 32 bits that is not a number yet:
    its reader decides whether it is signed. ``loops`` are the headers of the loops with whose iterations it may
    change; it may differ between threads of a warp (``lanes``) and between ``blocks``.
    """

    key: tuple[Any, ...]
    low: int | None = None
    high: int | None = None
    narrow: bool = False
    loops: frozenset[int] = _NOWHERE
    lanes: bool = False
    blocks: bool = False


@dataclass
class Symbols:
    """The atoms of one function, by number."""

    atoms: list[Atom] = field(default_factory=list)
    _numbers: dict[tuple[Any, ...], int] = field(default_factory=dict)

    def number(self, atom: Atom) -> int:
        """The number of the atom with this key; if several are given for one key, the first counts."""
        if atom.key not in self._numbers:
            self._numbers[atom.key] = len(self.atoms)
            self.atoms.append(atom)
        return self._numbers[atom.key]

    def of(self, atom: Atom) -> Polynomial:
        """The atom as a polynomial."""
        return Polynomial((((self.number(atom),), 1),))

    def joined(self, numbers: Iterable[int]) -> tuple[frozenset[int], bool, bool]:
        """The ``loops``, ``lanes`` and ``blocks`` of what is computed from some atoms."""
        found = [self.atoms[number] for number in numbers]
        loops = frozenset[int]().union(*(atom.loops for atom in found))
        return loops, any(atom.lanes for atom in found), any(atom.blocks for atom in found)

    def bounds(self, p: Polynomial, lows: Mapping[int, int] | None = None) -> tuple[int | None, int | None]:
        """The least and the largest value of ``p``, from the bounds of its atoms; ``lows`` are better lower bounds."""
        least: int | None = 0
        largest: int | None = 0
        for product, factor in p.terms:
            low: int | None = factor
            high: int | None = factor
            for number in product:
                atom = self.atoms[number]
                a = atom.low if lows is None else max_of(atom.low, lows.get(number))
                low, high = _times((low, high), (a, atom.high))
            least = None if least is None or low is None else least + low
            largest = None if largest is None or high is None else largest + high
        return least, largest

    def is_never_negative(self, p: Polynomial, lows: Mapping[int, int]) -> bool:
        """Whether ``p`` is surely 0 or more: with each atom as its least value plus a rest, no term is negative; or its
        bounds say so.
        """
        shifted = p
        bounded = True
        for number in p.atoms:
            low = max_of(self.atoms[number].low, lows.get(number))
            if low is None:
                bounded = False
            elif low:
                rest = Polynomial((((number,), 1),)) + constant(low)
                shifted = shifted.with_value(number, rest)
        if bounded and all(factor >= 0 for _, factor in shifted.terms):
            return True
        least, _ = self.bounds(p, lows)
        return least is not None and least >= 0


def max_of(a: int | None, b: int | None) -> int | None:
    """The larger of two bounds."""
    return a if b is None else b if a is None else max(a, b)


def _times(
    a: tuple[int | None, int | None], b: tuple[int | None, int | None]
) -> tuple[int | None, int | None]:
    """The bounds of a product."""
    if a == (0, 0) or b == (0, 0):
        return 0, 0
    if None not in (*a, *b):
        found = [x * y for x in a for y in b if x is not None and y is not None]
        return min(found), max(found)
    low = 0 if a[0] is not None and b[0] is not None and a[0] >= 0 and b[0] >= 0 else None
    if low is not None and a[0] is not None and b[0] is not None:
        low = int(a[0] * b[0])
    high = 0 if low is None and _opposite(a, b) else None
    return low, high


def _opposite(a: tuple[int | None, int | None], b: tuple[int | None, int | None]) -> bool:
    """Whether one factor is never positive and the other never negative."""
    return (a[1] is not None and a[1] <= 0 and b[0] is not None and b[0] >= 0) or (
        b[1] is not None and b[1] <= 0 and a[0] is not None and a[0] >= 0
    )
