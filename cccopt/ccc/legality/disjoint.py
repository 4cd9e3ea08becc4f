"""Whether accesses of two iterations are disjoint: their addresses are numbers whose digits distinguish the iterations.

        4 * (%tid.x + %ntid.x * (%ctaid.x + k * %nctaid.x))         digits %tid.x, %ctaid.x, k

The distance between two addresses is a sum over digits: the factor of each times its difference. If each factor is at
least what all smaller terms can add up to plus the bytes of an access, addresses with different digits are at least
that many bytes apart. What the smaller terms can add up to follows from the bounds of each digit, or from guards such
as x < width.

Maslov, "Delinearization", PLDI 1992.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from cccopt.analysis.polynomials import ZERO, Polynomial, Symbols, constant
from cccopt.ccc.legality.symbolic_values import Value

_Factors = Mapping[int, Polynomial]
"""The factors of the moving atoms of an address."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an access is: its ``address``, its ``size`` in bytes, and the ``guards`` that hold there."""

    address: Polynomial
    size: int
    guards: Sequence[Value]

    def seen_by(self, how: Digits) -> PartedPlace | None:
        """The place for comparisons with others; None if moving atoms are multiplied in its address."""
        parts = self.address.parts(how.moving)
        if parts is None:
            return None
        bounds = (_bound(guard, how) for guard in self.guards)
        return PartedPlace(
            *parts, self.size, frozenset(self.guards), tuple(b for b in bounds if b is not None)
        )


@dataclass(frozen=True, slots=True)
class Digits:
    """What distinguishes two iterations: atoms that are ``moving`` may differ between them; if all ``digits`` are
    equal, they are the same iteration. ``extents`` gives how many values a digit has, if the launch determines that.
    """

    moving: Callable[[int], bool]
    digits: frozenset[int]
    extents: Mapping[int, Polynomial]


@dataclass(frozen=True, slots=True)
class _Bound:
    """A ``guard`` as a bound: its ``moving`` part is at most the ``still`` one."""

    guard: Value
    moving: Polynomial
    still: Polynomial


@dataclass(frozen=True, slots=True)
class PartedPlace:
    """A place in parts: that of the address that does not move, the factors of what moves, and the guards as bounds."""

    still: Polynomial
    factors: _Factors
    size: int
    guards: frozenset[Value]
    bounds: tuple[_Bound, ...]


def _bound(guard: Value, how: Digits) -> _Bound | None:
    parts = guard.number.parts(how.moving)
    return None if parts is None else _Bound(guard, parts[0] - guard.number, parts[0])


@dataclass
class _Sum:
    """The part of an address examined so far: the terms of its atoms, and its least and largest value."""

    total: Polynomial = ZERO
    low: Polynomial | None = ZERO
    high: Polynomial | None = ZERO
    used: set[int] = field(default_factory=set)


class Separation:
    """The attempt to prove that two accesses of different iterations are disjoint, assuming that numbers do not wrap
    around at the statements ``used``.
    """

    def __init__(self, symbols: Symbols, how: Digits, a: PartedPlace, b: PartedPlace) -> None:
        self.symbols = symbols
        self.how = how
        self.places = (a, b)
        self.used: set[int] = set()
        self.lows: dict[int, int] = {}
        self.tight = False
        """Whether guards may also replace bounds that follow from those of atoms."""
        self.sums = (_Sum(), _Sum())

    def holds(self) -> bool:
        """Whether the two accesses are surely disjoint."""
        a, b = self.places
        apart, mine, yours = a.still - b.still, a.factors, b.factors
        for self.tight in (False, True):
            if self._parted(apart, mine, yours):
                return True
        self._learn()
        return bool(self.lows) and self._parted(apart, mine, yours)

    def _parted(self, apart: Polynomial, mine: _Factors, yours: _Factors) -> bool:
        found = self._separated(apart, mine, yours)
        return found or (not apart.number and self._beyond(apart, mine, yours))

    def _separated(self, apart: Polynomial, mine: _Factors, yours: _Factors) -> bool:
        """Whether different digits make numbers that are far enough apart."""
        number, digits = apart.number, self.how.digits
        if number is None or any(
            mine.get(digit) is None or mine[digit] != yours.get(digit) for digit in digits
        ):
            return False
        a, b = self.places
        spread = constant(max(a.size + number, b.size - number))
        others = sorted((mine.keys() | yours.keys()) - digits, key=lambda x: (not self._bounded(x), x))
        return any(self._in_order(others[:some], spread, mine, yours) for some in range(len(others) + 1))

    def _in_order(self, blended: Sequence[int], spread: Polynomial, mine: _Factors, yours: _Factors) -> bool:
        """Whether all atoms except the ``blended`` ones, whose sum is only bounded, are digits of one number."""
        self.sums = (_Sum(), _Sum())
        for atom in blended:
            self._take([atom], mine, yours)
        left = {x: mine.get(x) or yours[x] for x in mine.keys() | yours.keys() if x not in blended}
        if any(mine.get(x, factor) != yours.get(x, factor) for x, factor in left.items()):
            return False
        while left:
            found = self._next(left, spread)
            if found is None:
                return False
            same = [x for x, factor in left.items() if factor in (left[found], -left[found])]
            # A digit that shares its factor with another atom does not distinguish iterations.
            if len(same) > 1 and self.how.digits & {*same}:
                return False
            left = {x: factor for x, factor in left.items() if x not in same}
            if left:
                self._take(same, mine, yours)
        return True

    def _next(self, left: Mapping[int, Polynomial], spread: Polynomial) -> int | None:
        """The atom with the smallest factor that is at least the range of the sums so far."""
        widths = self._widths()
        if widths is None:
            return None
        fit = [
            x for x, factor in left.items() if all(self._at_least(factor, width + spread) for width in widths)
        ]
        return next(
            (
                x
                for x in fit
                if all(self._at_least(self._positive(left[y]), self._positive(left[x])) for y in fit)
            ),
            None,
        )

    def _widths(self) -> tuple[Polynomial, Polynomial] | None:
        """How much larger the examined part of one address may be than that of the other, in both directions."""
        a, b = self.sums
        if a.low is None or a.high is None or b.low is None or b.high is None:
            return None
        return a.high - b.low, b.high - a.low

    def _at_least(self, factor: Polynomial, least: Polynomial) -> bool:
        return self._never_negative(self._positive(factor) - least)

    def _positive(self, factor: Polynomial) -> Polynomial:
        """A factor without its sign, if the sign is known."""
        return -factor if self._never_negative(-factor) else factor

    def _never_negative(self, p: Polynomial) -> bool:
        return self.symbols.is_never_negative(p, self.lows)

    def _bounded(self, atom: int) -> bool:
        known = self.symbols.atoms[atom]
        return known.low is not None and known.high is not None

    def _take(self, atoms: Collection[int], mine: _Factors, yours: _Factors) -> None:
        """Add atoms to the sums, and update the bounds of the sums."""
        for part, place, factors in zip(self.sums, self.places, (mine, yours), strict=True):
            for atom in atoms:
                if atom in factors:
                    self._add(part, atom, factors[atom])
            self._tighten(part, place)

    def _add(self, part: _Sum, atom: int, factor: Polynomial) -> None:
        term = Polynomial((((atom,), 1),))
        part.total += factor * term
        known = self.symbols.atoms[atom]
        extent = self.how.extents.get(atom)
        high = constant(known.high) if extent is None and known.high is not None else None
        high = extent - constant(1) if extent is not None else high
        low = None if known.low is None else constant(known.low)
        if self._never_negative(factor):
            ends = low, high
        elif self._never_negative(-factor):
            ends = high, low
        else:
            ends = None, None
        part.low = None if part.low is None or ends[0] is None else part.low + factor * ends[0]
        part.high = None if part.high is None or ends[1] is None else part.high + factor * ends[1]

    def _tighten(self, part: _Sum, place: PartedPlace) -> None:
        """Tighten the bounds of a sum with guards: if x < width, 4 * x is at most 4 * (width - 1)."""
        for bound in place.bounds:
            times = _quotient(part.total, bound.moving)
            if times is None:
                continue
            if not self._never_negative(times):
                if self._never_negative(-times) and part.low is None:
                    part.low = times * bound.still
                    self.used |= bound.guard.widened
                continue
            most = times * bound.still
            if part.high is None or (self.tight and not self._never_negative(most - part.high)):
                part.high = most
                self.used |= bound.guard.widened

    def _learn(self) -> None:
        """Find the least values of numbers that guards bound from below: if x < width and x is not negative, width is
        at least 1.
        """
        for bound in self.places[0].bounds:
            if bound.guard not in self.places[1].guards:
                continue
            still = bound.still
            atoms = [m[0] for m, f in still.terms if len(m) == 1 and f == 1]
            others = still - Polynomial(tuple(((atom,), 1) for atom in atoms[:1]))
            least, _ = self.symbols.bounds(bound.moving)
            if len(atoms) == 1 and others.number is not None and least is not None:
                number = atoms[0]
                self.lows[number] = max(self.lows.get(number, least - others.number), least - others.number)
                self.used |= bound.guard.widened

    def _beyond(self, apart: Polynomial, mine: _Factors, yours: _Factors) -> bool:
        """Whether one address is beyond all that the other may reach: `a[i]` and `a[n + i]` if i < n."""
        self.sums = (_Sum(), _Sum())
        for atom in sorted(mine.keys() | yours.keys(), key=lambda x: len((mine.get(x) or yours[x]).terms)):
            self._take([atom], mine, yours)
        widths = self._widths()
        if widths is None:
            return False
        a, b = (constant(place.size) for place in self.places)
        # The second may be ``widths[1]`` higher, and the first ``widths[0]``.
        return self._never_negative(apart - widths[1] - b) or self._never_negative(-apart - widths[0] - a)


def _quotient(p: Polynomial, divisor: Polynomial) -> Polynomial | None:
    """The single product by which ``divisor`` must be multiplied to give ``p``; None if there is none."""
    # A product with one term has as many terms as the other factor.
    if not p.terms or len(p.terms) != len(divisor.terms):
        return None
    # The lowest term is usually a single atom with the factor 1.
    product, factor = min(divisor.terms, key=lambda term: (len(term[0]), term[0]))
    for whole, times in p.terms:
        rest = list(whole)
        if times % factor or any(rest.count(atom) < product.count(atom) for atom in product):
            continue
        for atom in product:
            rest.remove(atom)
        found = Polynomial(((tuple(rest), times // factor),))
        if found * divisor == p:
            return found
    return None
