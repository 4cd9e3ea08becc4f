"""What branches say about numbers where a statement runs: after `if (x >= width) return;`, x < width holds.

A *guard* is a number that is not negative there: width - 1 - x. Guards come from comparisons of integers whose branch
control must have passed to reach the block. They also come from comparisons by which a loop continues, if these held
when control entered it: `for (i = first; i < n; i += step)` keeps i < n.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from cccopt.analysis import cfg as control_flow
from cccopt.analysis.comparisons import is_comparison
from cccopt.analysis.loops import Loop
from cccopt.analysis.polynomials import Atom, Polynomial, constant
from cccopt.analysis.reaching import ENTRY
from cccopt.ccc.function.view import View
from cccopt.ccc.legality.symbolic_values import LEAST, SymbolicValues, Value
from cccopt.ptx import isa
from cccopt.ptx.ir import Instruction, Operand, Register
from cccopt.ptx.isa import Control

_ORDERS = {
    "lt": "lt",
    "le": "le",
    "gt": "gt",
    "ge": "ge",
    "lo": "lt",
    "ls": "le",
    "hi": "gt",
    "hs": "ge",
    "eq": "eq",
}
_OPPOSITE = {
    "lt": "ge",
    "le": "gt",
    "gt": "le",
    "ge": "lt",
    "ne": "eq",
    "lo": "hs",
    "ls": "hi",
    "hi": "ls",
    "hs": "lo",
}
_UNSIGNED = ("lo", "ls", "hi", "hs")
_ONE = constant(1)
_DEEPEST = 6


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of the integers ``a`` and ``b`` that holds; ``order`` is a comparison of `setp`."""

    order: str
    a: Value
    b: Value


class Guards:
    """The guards of one function's blocks; they show which numbers fit into 32 bits."""

    def __init__(self, view: View, values: SymbolicValues) -> None:
        self.view = view
        self.values = values
        self._known: dict[int, Sequence[Value]] = {}

    def at(self, block: int) -> Sequence[Value]:
        """The numbers that are not negative where a block runs."""
        if block not in self._known:
            self._known[block] = ()  # queries made meanwhile do without them
            around = frozenset(loop.header for loop in self.view.loops if block in loop.blocks)
            found = [g for edge in self._edges(block) for c in self._comparisons(*edge) for g in _guards(c)]
            found += [g for loop in self.view.loops if block in loop.blocks for g in self._kept(loop)]
            self._known[block] = tuple(dict.fromkeys(g for g in found if self._is_of(g.number, around)))
        return self._known[block]

    def _is_of(self, p: Polynomial, around: frozenset[int]) -> bool:
        """Whether all loops with whose iterations ``p`` changes are in ``around``."""
        return all(self.values.symbols.atoms[number].loops <= around for number in p.atoms)

    def _edges(self, block: int) -> Iterator[tuple[int, int]]:
        """The edges of branches that control must have passed to reach a block."""
        cfg = self.view.cfg
        for head in self.view.dominators.chain(block):
            sources = cfg.predecessors[head]
            if len(sources) == 1 and len(cfg.successors[sources[0]]) > 1:
                yield sources[0], head

    def _comparisons(self, source: int, target: int) -> Iterator[Comparison]:
        """The comparisons that hold when control passes an edge."""
        end = control_flow.ending(self.view.body, self.view.cfg.blocks[source])
        kinds = self.view.cfg.kinds[source, target]
        if end is None or end.guard is None or len(kinds) > 1 or isa.facts(end).control is Control.INDEXED:
            return
        taken = control_flow.EdgeKind.TAKEN in kinds
        last = self.view.cfg.blocks[source].stop - 1
        yield from self._holding(last, end.guard.register, taken != end.guard.negated, _DEEPEST)

    def _holding(self, use: int, predicate: Operand, holds: bool, depth: int) -> Iterator[Comparison]:
        """The comparisons that follow if a predicate is true, or if it is not."""
        definitions = (
            self.view.reaching.reaching(use, predicate.name)
            if isinstance(predicate, Register)
            else frozenset()
        )
        if len(definitions) != 1 or ENTRY in definitions or not depth:
            return
        (index,) = definitions
        s = self.view.body[index]
        if not isinstance(s, Instruction) or isa.is_conditional_write(s):
            return
        if s.base == "not":
            yield from self._holding(index, s.operands[1], not holds, depth - 1)
        elif s.base in ("and", "or") and s.parts[-1] == "pred" and holds == (s.base == "and"):
            for operand in s.operands[1:3]:
                yield from self._holding(index, operand, holds, depth - 1)
        elif is_comparison(s) and len(s.parts) == 3:
            found = self._compared(index, s, holds)
            if found is not None:
                yield found

    def _compared(self, index: int, s: Instruction, holds: bool) -> Comparison | None:
        _, word, type = s.parts
        if type[0] not in "bsu" or isa.WIDTHS.get(type) not in (32, 64) or word not in (*_ORDERS, "ne"):
            return None
        order = word if holds else _OPPOSITE.get(word, "ne")
        a, b = (self.values.of_operand(index, o) for o in s.operands[1:3])
        if isa.WIDTHS[type] == 32:
            a, b = (self._read(index, v, s, unsigned=type[0] != "s" or word in _UNSIGNED) for v in (a, b))
        return Comparison(_ORDERS.get(order, "ne"), a, b)

    def _read(self, index: int, value: Value, s: Instruction, *, unsigned: bool) -> Value:
        return self.values.read(index, value, "u" if unsigned else "s", s.operands[1:3])

    def _kept(self, loop: Loop) -> Iterator[Value]:
        """What holds in each iteration of a loop: it holds in the first one, and the end of each checks it."""
        cfg = self.view.cfg
        entries = [b for b in cfg.predecessors[loop.header] if b not in loop.blocks]
        if len(loop.latches) != 1 or len(entries) != 1:
            return
        (number,) = self.values.iteration(loop).atoms or (-1,)
        before = [*self.at(entries[0])]
        before += [g for c in self._comparisons(entries[0], loop.header) for g in _guards(c)]
        symbols = self.values.symbols
        for comparison in self._comparisons(loop.latches[0], loop.header):
            for guard in _guards(comparison):
                others = guard.number.atoms - {number}
                if any(loop.header in symbols.atoms[atom].loops for atom in others):
                    continue
                step = Polynomial((((number,), 1),)) - _ONE
                kept = guard.number.with_value(number, step)
                first = kept.with_value(number, constant(0))
                for known in before:
                    more = (first - known.number).number
                    if more is not None and more >= 0:
                        yield guard.combined(known, kept)
                        break

    # --- whether numbers fit ---

    def may_wrap(self, statement: int) -> bool:
        """Whether a value that ``statement`` reads as a number may have wrapped around."""
        if statement not in self._wraps:
            sign, operands = self.values.read_as[statement]
            values = [self.values.of_operand(statement, operand) for operand in operands]
            self._wraps[statement] = not all(self._fits(statement, v.number, sign) for v in values)
        return self._wraps[statement]

    @cached_property
    def _wraps(self) -> dict[int, bool]:
        return {}

    def _fits(self, statement: int, p: Polynomial, sign: str) -> bool:
        """Whether ``p`` is surely in the range of 32 bits. A counter is if it starts there, because counters are
        assumed not to wrap around.
        """
        if len(p.terms) == 1 and p.terms[0][1] == 1 and len(p.terms[0][0]) == 1:
            (number,) = p.terms[0][0]
            if self.values.symbols.atoms[number].narrow:
                return True
        start = self.values.starts.get(p)
        if start is not None and start.number != p:
            return self._fits(statement, start.number, sign) and not any(map(self.may_wrap, start.widened))
        return self._in_range(statement, self.values.signed(p, sign), LEAST[sign])

    def _in_range(self, statement: int, p: Polynomial, low: int) -> bool:
        guards = [
            g.number
            for g in self.at(self.view.cfg.block_of(statement))
            if not any(i in self._asking or self._asked(i) for i in g.widened)
        ]
        top = constant(low + (1 << 32) - 1)
        return self._never_negative(p - constant(low), guards) and self._never_negative(top - p, guards)

    def _asked(self, statement: int) -> bool:
        self._asking.add(statement)
        found = self.may_wrap(statement)
        self._asking.discard(statement)
        return found

    @cached_property
    def _asking(self) -> set[int]:
        """The statements being examined: none may justify itself."""
        return set()

    def _never_negative(self, p: Polynomial, guards: Sequence[Polynomial]) -> bool:
        """Whether a number is 0 or more because of the bounds of its atoms, or of a guard that it contains."""
        symbols = self.values.symbols
        for guard in (constant(0), *guards):
            for times in _multiples(p, guard):
                rest = self._thread_numbers(p - constant(times) * guard)
                least, _ = symbols.bounds(rest)
                if (least is not None and least >= 0) or symbols.is_never_negative(rest, {}):
                    return True
        return False

    def _thread_numbers(self, p: Polynomial) -> Polynomial:
        """``p`` with atoms for the indices in the grid of a thread and of its block's first thread, and for the number
        of threads: each below 2^31.
        """
        for axis in "xyz":
            t, b, n, m = (
                self.values.special(f"%{name}.{axis}") for name in ("tid", "ctaid", "ntid", "nctaid")
            )
            for key, low, whole in (
                ("thread", 0, b * n + t),
                ("first thread", 0, b * n),
                ("threads", 1, m * n),
            ):
                atom = self.values.symbols.of(Atom((key, axis), low, (1 << 31) - 1, lanes=True, blocks=True))
                terms = dict(p.terms)
                product, times = max(whole.terms, key=lambda term: len(term[0]))
                factor, rest = divmod(terms.get(product, 0), times)
                parts = [(m, f * factor) for m, f in whole.terms]
                if factor and not rest and all(terms.get(m) == f for m, f in parts):
                    p = p + constant(factor) * (atom - whole)
        return p


def _multiples(p: Polynomial, guard: Polynomial) -> set[int]:
    """How many times a guard may be contained in a number."""
    factors = dict(guard.terms)
    found = {f // factors[m] for m, f in p.terms if m and m in factors and f % factors[m] == 0}
    return {times for times in found if times > 0} or ({0} if guard.number == 0 else set())


def _guards(comparison: Comparison) -> Iterator[Value]:
    """The numbers that are not negative if a comparison holds."""
    a, b = comparison.a, comparison.b
    if comparison.order in ("lt", "le", "eq"):
        yield a.combined(b, b.number - a.number - (_ONE if comparison.order == "lt" else constant(0)))
    if comparison.order in ("gt", "ge", "eq"):
        yield a.combined(b, a.number - b.number - (_ONE if comparison.order == "gt" else constant(0)))
