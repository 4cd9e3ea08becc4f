"""Whether the iterations of a marked loop are independent in memory, as far as can be determined: advice, not a rule.

*Proven*: every store goes to places that differ between any two iterations, of one thread or of two
(`cccopt.ccc.legality.disjoint`), and no other iteration loads there. *Contradicted*: two accesses meet in any run that
has two iterations (`cccopt.ccc.legality.conflicts`). *Open*: everything else, with the conditions under which it is
proven, or with the accesses that could not be decided:

        out[i] = f(in[i]);          proven if `out` and `in` do not overlap; `__restrict__` says so
        a[i + 1] = a[i];            contradicted: a thread uses what the one beside it uses
        sum[0] += x;                contradicted: all iterations of a thread use one place
        levels[u] = next;           open: the address depends on loaded data

The analysis assumes that a launch has fewer than 2^31 threads along each axis, and one along an axis whose index the
kernel does not read; and that loop counters do not wrap around. If other 32-bit indices could wrap around, it is a
condition that they do not. Iterations in different blocks are compared for ``grid`` only: those of other loops stay in
their warp.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement

from cccopt.analysis import effects
from cccopt.analysis.loops import Loop
from cccopt.analysis.memory import MemoryAliasing
from cccopt.analysis.polynomials import Polynomial
from cccopt.ccc.function.view import View
from cccopt.ccc.legality.conflicts import Conflicts
from cccopt.ccc.legality.disjoint import Digits, PartedPlace, Place, Separation
from cccopt.ccc.legality.guards import Guards
from cccopt.ccc.legality.iteration_accesses import Access, accesses_of, sums_as
from cccopt.ccc.legality.local_scratch import strays
from cccopt.ccc.legality.symbolic_values import SymbolicValues
from cccopt.choice import Choice
from cccopt.clauses import Kind
from cccopt.ptx import isa
from cccopt.ptx.ir import Address, Instruction
from cccopt.ptx.isa import Control, Memory
from cccopt.text import Place as SourcePlace

_MOST_PAIRS = 3000
_MOST_NAMED = 3
_DOES = {Memory.LOAD: "loads", Memory.STORE: "stores", Memory.ATOMIC: "updates"}


class State(Choice):
    """What is known about the independence of iterations."""

    PROVEN = "proven"
    CONTRADICTED = "contradicted"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class NamedAccess:
    """An access: what it does (``loads``, ``stores``, ``updates``, ``calls``), its CUDA line if that is known, and the
    text of the line or of the instruction.
    """

    does: str
    place: SourcePlace | None
    text: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is known about the independence of a loop's iterations, and ``why``. If it is open, all of ``conditions``
    together would make it proven; if there are none, the ``accesses`` are those to check. If it is contradicted, they
    meet. ``sums`` says that atomics add floating-point numbers, whose last digits depend on the order.
    """

    state: State
    why: str
    accesses: tuple[NamedAccess, ...] = ()
    conditions: tuple[str, ...] = ()
    sums: bool = False


def judged(
    view: View, loop: Loop, kind: Kind, *, restricted: Collection[int] = (), names: Sequence[str] = ()
) -> Judgement:
    """What is known about a loop that is marked `for`, `for variable` or `grid`. ``restricted`` are the positions of
    the kernel's ``__restrict__`` parameters, ``names`` the names of its parameters in the source.
    """
    return _Judge(view, loop, kind, restricted, names).judgement()


@dataclass(frozen=True, slots=True)
class _Located:
    """Where an access is, and the pointers in its address (`_Judge._bases`)."""

    place: Place
    bases: frozenset[tuple[object, ...]]


_Condition = str | tuple[str, str]
"""A condition in words, or two pointers that must not overlap, of which the first is written through."""


class _Judge:
    def __init__(
        self, view: View, loop: Loop, kind: Kind, restricted: Collection[int], names: Sequence[str]
    ) -> None:
        self.view = view
        self.loop = loop
        self.kind = kind
        self.values = SymbolicValues(view)
        self.guards = Guards(view, self.values)
        self.parameters = {p.name: i for i, p in enumerate(view.function.parameters)}
        known = frozenset(name for name, i in self.parameters.items() if i in restricted)
        self.names = names
        self.memory = MemoryAliasing(view.module, view.function, view.reaching, known)
        self.conflicts = Conflicts(view, loop, self.values, self._same, self._cross)

    def judgement(self) -> Judgement:
        """What is known about the loop."""
        if self.view.irreducible:
            return Judgement(State.OPEN, "the kernel has a loop with several entries")
        accesses, unclear = accesses_of(self.view, self.loop)
        if self.kind is not Kind.GRID:  # a thread's local memory is its own
            unclear += strays(self.view, self.loop)
        sums = any(sums_as(self.view, access.index) for access in accesses)
        conditions: dict[_Condition, None] = {}
        unproven: list[tuple[Access, Access]] = []
        pairs = list(self._pairs(accesses))
        for a, b in pairs[:_MOST_PAIRS]:
            needed = self._needed(a, b)
            if needed is None:
                why = self.conflicts.why(a, b)
                if why:
                    named = self._named(dict.fromkeys((a.index, b.index)))
                    return Judgement(State.CONTRADICTED, why, named, sums=sums)
                unproven.append((a, b))
            else:
                conditions |= dict.fromkeys(needed)
        if unproven or unclear or len(pairs) > _MOST_PAIRS:
            told = [i for pair in unproven for i in self._telling(*pair)]
            named = self._named(dict.fromkeys([*unclear, *told]))
            return Judgement(State.OPEN, self._open(unproven, unclear), named, sums=sums)
        if conditions:
            return Judgement(
                State.OPEN, "it is proven if all of the conditions hold", (), _in_words(conditions), sums
            )
        return Judgement(State.PROVEN, self._proven(accesses), sums=sums)

    # --- pairs of accesses ---

    def _pairs(self, accesses: Sequence[Access]) -> Iterator[tuple[Access, Access]]:
        """The pairs of accesses that may meet, if that matters, each once; the first one writes."""
        writers = [a for a in accesses if a.writes]
        loads = [a for a in accesses if not a.writes]
        for a, b in (*((a, b) for a in writers for b in loads), *combinations_with_replacement(writers, 2)):
            if not self._agree(a, b) and self._may_clash(a, b):
                yield a, b

    def _may_clash(self, a: Access, b: Access) -> bool:
        return self.memory.may_clash(self.memory.access(a.index), self.memory.access(b.index))

    def _agree(self, a: Access, b: Access) -> bool:
        """Whether their order makes no difference: both are atomics that commute, or store the same value, whichever
        iterations run them.
        """
        if a.update:
            return a.update == b.update
        if not a.memory is b.memory is Memory.STORE or a.size != b.size:
            return False
        values = [self._stored(access.index) for access in (a, b)]
        how = self._cross or self._same
        assert how is not None
        return values[0] is not None and values[0] == values[1] and not any(map(how.moving, values[0].atoms))

    def _stored(self, index: int) -> Polynomial | None:
        """The one value that a store stores."""
        if index not in self._values:
            self._values[index] = self._value_of(self._instruction(index), index)
        return self._values[index]

    @cached_property
    def _values(self) -> dict[int, Polynomial | None]:
        """A cache for `_stored`: each store is compared with many others."""
        return {}

    def _value_of(self, store: Instruction, index: int) -> Polynomial | None:
        values = [o for o in store.operands if not isinstance(o, Address)]
        if len(values) != 1 or effects.writes(store):
            return None
        value = self.values.of_operand(index, values[0])
        return None if value.widened else value.number

    def _needed(self, a: Access, b: Access) -> tuple[_Condition, ...] | None:
        """The conditions under which two accesses of different iterations are surely disjoint; None if no known ones
        would be enough.
        """
        roots = [self.memory.access(access.index).roots for access in (a, b)]
        bases = [self._located(access).bases for access in (a, b)]
        if all(len(found) == 1 for found in (*roots, *bases)) and bases[0] != bases[1]:
            words = [self._pointer(min(base)) for base in bases]
            known = all(root.kind in ("parameter", "variable") for found in roots for root in found)
            return ((words[0], words[1]),) if known and all(words) else None
        widened = {i for access in (a, b) for i in self.values.of_address(access.index).widened}
        threads = False
        for how in (self._same, self._cross):
            if how is None:
                continue
            mine, other = (self._seen(access, how) for access in (a, b))
            tried = (
                None if mine is None or other is None else Separation(self.values.symbols, how, mine, other)
            )
            if tried is not None and tried.holds():
                widened |= tried.used
            elif how is self._cross and self._same is not None:
                threads = True
            else:
                return None
        wrapping = sorted(i for i in widened if self.guards.may_wrap(i))
        found: list[_Condition] = [
            f"the 32-bit index {self._where(i)} does not wrap around" for i in wrapping
        ]
        if threads:
            found.append(f"no two threads of a warp access the same location {self._where(a.index)}")
        return tuple(found)

    def _located(self, access: Access) -> _Located:
        if access not in self._places:
            guards = self.guards.at(self.view.cfg.block_of(access.index))
            place = Place(self.values.of_address(access.index).number, access.size, guards)
            self._places[access] = _Located(place, self._bases(place.address))
        return self._places[access]

    def _seen(self, access: Access, how: Digits) -> PartedPlace | None:
        key = access, how is self._cross
        if key not in self._parted:
            self._parted[key] = self._located(access).place.seen_by(how)
        return self._parted[key]

    @cached_property
    def _places(self) -> dict[Access, _Located]:
        return {}

    @cached_property
    def _parted(self) -> dict[tuple[Access, bool], PartedPlace | None]:
        """A cache for `_seen`: each access is compared with many others."""
        return {}

    def _bases(self, address: Polynomial) -> frozenset[tuple[object, ...]]:
        """The pointers that an address contains: 64-bit parameters and variables that occur unscaled."""
        atoms = self.values.symbols.atoms
        single = (atoms[m[0]] for m, factor in address.terms if len(m) == 1 and factor == 1)
        return frozenset(
            a.key for a in single if not a.narrow and a.key[0] in ("load", "variable") and not a.loops
        )

    def _pointer(self, key: tuple[object, ...]) -> str:
        """A pointer in words; empty if it is not one of the kernel's own."""
        if key[0] == "variable":
            return f"`{key[1]}`"
        address = key[2]
        if not isinstance(address, Polynomial):
            return ""
        names = [self.values.symbols.atoms[n].key[1] for n in address.atoms]
        position = self.parameters.get(str(names[0])) if len(names) == 1 else None
        if position is None:
            return ""
        name = f"`{self.names[position]}`" if position < len(self.names) else f"parameter {position + 1}"
        offset = dict(address.terms).get((), 0)
        return f"{name} at byte {offset}" if offset else name

    # --- what distinguishes iterations ---

    @cached_property
    def _headers(self) -> frozenset[int]:
        return frozenset(x.header for x in self.view.loops if x.blocks <= self.loop.blocks)

    def _changes(self, number: int) -> bool:
        return bool(self.values.symbols.atoms[number].loops & self._headers)

    @cached_property
    def _same(self) -> Digits | None:
        """What distinguishes iterations of one thread; None for ``grid``."""
        if self.kind is Kind.GRID:
            return None
        return Digits(self._changes, self.values.iteration(self.loop).atoms, {})

    @cached_property
    def _cross(self) -> Digits | None:
        """The same for iterations of two threads; None for ``for variable``."""
        if self.kind is Kind.FOR_VARIABLE:
            return None
        grid = self.kind is Kind.GRID
        atoms = self.values.symbols.atoms

        def moving(number: int) -> bool:
            atom = atoms[number]
            return self._changes(number) or atom.lanes or (grid and atom.blocks)

        digits: set[int] = set() if grid else {*self.values.iteration(self.loop).atoms}
        extents: dict[int, Polynomial] = {}
        for axis in "xyz":
            for index, extent in (("tid", "ntid"), ("ctaid", "nctaid"))[: 1 + grid]:
                if axis == "x" or self._reads(f"%{index}.{axis}"):
                    for number in self.values.special(f"%{index}.{axis}").atoms:
                        digits.add(number)
                        extents[number] = self.values.special(f"%{extent}.{axis}")
        return Digits(moving, frozenset(digits), extents)

    def _reads(self, name: str) -> bool:
        """Whether the kernel, or what it calls, reads an index; a loop over blocks itself keeps all three block
        indices.
        """
        if name.startswith("%ctaid"):
            return self.values.loops.reads_block_index(name)
        whole = name.partition(".")[0]
        return any(
            {name, whole} & effects.special_registers(i)
            for s in self.view.body
            if isinstance(s, Instruction)
            for i in self.view.with_callees(s)
        )

    # --- words ---

    def _telling(self, a: Access, b: Access) -> list[int]:
        """The accesses of a pair to name: those whose address is not followed, or both."""
        lost = [x.index for x in (a, b) if self._lost(x)]
        return lost or [a.index, b.index]

    def _lost(self, access: Access) -> bool:
        """Whether an address contains numbers whose differences between iterations are not known."""
        how = self._same or self._cross
        assert how is not None
        atoms = self.values.of_address(access.index).number.atoms
        known = how.digits | {
            n for n in atoms if self.values.symbols.atoms[n].key[0] in ("iteration", "special")
        }
        return any(how.moving(n) and n not in known for n in atoms)

    def _open(self, pairs: Sequence[tuple[Access, Access]], unclear: Sequence[int]) -> str:
        if unclear:
            return "it is not known which memory this uses"
        if any(self._lost(x) for pair in pairs for x in pair):
            return "these addresses are loaded, or computed in a way that is not analyzed"
        return "iterations may access the same location here"

    def _proven(self, accesses: Sequence[Access]) -> str:
        words = {Kind.FOR_VARIABLE: "inner iteration", Kind.GRID: "thread"}
        writers = [access for access in accesses if access.writes]
        met = [
            a
            for a, b in combinations_with_replacement(writers, 2)
            if self._agree(a, b) and self._may_clash(a, b) and self._needed(a, b) != ()
        ]
        exceptions = []
        if any(a.update for a in met):
            exceptions.append("by atomics whose order makes no difference")
        if not all(a.update for a in met):
            exceptions.append("to store the same value")
        but = f", except {' or '.join(exceptions)}" if exceptions else ""
        return f"no {words.get(self.kind, 'iteration')} writes to memory that another one accesses{but}"

    def _named(self, indices: Collection[int]) -> tuple[NamedAccess, ...]:
        """Accesses in words: writes come first, and each line occurs once."""
        order = sorted(indices, key=lambda i: (not self.memory.may_write(i), i))
        found = [
            NamedAccess(self._does(i), self.view.origins.own_place(i), self.view.origins.own_text(i))
            for i in order
        ]
        return tuple(dict.fromkeys(found))[:_MOST_NAMED]

    def _does(self, index: int) -> str:
        facts = isa.facts(self._instruction(index))
        return "calls" if facts.control is Control.CALL else _DOES.get(facts.memory, "uses memory")

    def _where(self, index: int) -> str:
        place = self.view.origins.own_place(index)
        return f"at {place}" if place is not None else f"of `{self.view.origins.own_text(index)}`"

    def _instruction(self, index: int) -> Instruction:
        statement = self.view.body[index]
        assert isinstance(statement, Instruction)
        return statement


def _in_words(conditions: Iterable[_Condition]) -> tuple[str, ...]:
    """Conditions as clauses; one clause per pointer names all that it must not overlap."""
    others: dict[str, list[str]] = {}
    words: list[str] = []
    for condition in conditions:
        if isinstance(condition, str):
            words.append(condition)
        elif condition[0] not in others.get(condition[1], ()):
            others.setdefault(condition[0], []).append(condition[1])
    for written, found in others.items():
        *first, last = found
        words.append(f"{written} does not overlap {', '.join(first)}{' or ' if first else ''}{last}")
    return tuple(dict.fromkeys(words))
