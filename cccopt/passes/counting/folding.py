"""How the threads that leave a function together add up their own counters: a few at a time, one thread for all.

The loads of these do not wait for each other, nor do the sums: a launch of few warps takes as long as the slowest does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from cccopt.ccc.function.code import at, op, predicate
from cccopt.ccc.function.names import Names
from cccopt.passes.counting.memory import HALF_WORD, Memory, each_word
from cccopt.ptx.ir import Guard, Label, Literal, Not, Register, Statement, Symbol

_LOW_HALF = Literal("0xFFFF")
_MOST_OF_32 = Literal("0x7FFFFFF")
"""The sum of 32 numbers of at most this size has 32 bits."""


@dataclass(frozen=True, slots=True)
class Folding:
    """Adds up the counters of the threads of ``mask``, which are at address ``counters`` of each, in ``memory``.

    ``base`` is the address of the copy of the global counters, ``lower`` the mask of the lanes before a thread's own,
    ``leader`` tells the first thread of ``mask``. ``weight`` is how many warps one of a sample stands for; ``redux``:
    there are reductions over a warp. ``sums`` becomes the address of what is added to.
    """

    memory: Memory
    names: Names
    base: Register
    counters: Register
    mask: Register
    lower: Register
    leader: Register
    weight: Register | None
    redux: bool
    sums: Register

    def all(self, entered: Register) -> Iterator[Statement]:
        """Adds up those that each thread has, and those of the nests that ``entered`` says some thread came to."""
        yield from self._sums_by_lane()
        yield from self._range(0, self.memory.common, None)
        for bit, nest in enumerate(self.memory.nests):
            here, came, any_ = self._new("b32"), self._new("pred"), self._new("pred")
            after = self.names.label("folded")
            yield op("and.b32", here, entered, 1 << bit)
            yield op("setp.ne.u32", came, here, 0)
            yield op("vote.sync.any.pred", any_, came, self.mask)
            yield op("bra", Symbol(after), guard=Guard(any_, negated=True))
            yield from self._range(nest.start, nest.stop, came)
            yield Label(after)

    def _new(self, kind: str) -> Register:
        return self.names.register(kind)

    def _sums_by_lane(self) -> Iterator[Statement]:
        """Sets ``sums``, computed so that ptxas takes it for another address in each lane: groups of a warp that fold
        at the same time may meet, each at a word of its own (docs/decisions/0036-groups-that-fold-at-once.md).
        """
        bit, nothing = self._new("b32"), self._new("b32")
        yield op("add.u32", bit, self.lower, 1)
        yield op("not.b32", nothing, self.mask)
        yield op("and.b32", nothing, nothing, bit)
        if self.memory.name is not None:
            yield op("mov.u32", self.sums, Symbol(self.memory.name))
            yield op("add.u32", self.sums, self.sums, nothing)
            return
        yield op("cvt.u64.u32", self.sums, nothing)
        yield op("add.u64", self.sums, self.sums, self.base)

    def _range(self, start: int, stop: int, counted: Register | None) -> Iterator[Statement]:
        """Adds up counters ``start`` to ``stop``. Threads where ``counted`` does not hold have none of these."""
        first, step = self._new("b32"), self._new("b32")
        yield op("mov.u32", first, start)
        yield op("mov.u32", step, self.memory.folded)
        yield from each_word(self.names, first, step, stop, "fold", partial(self._fold, stop, counted))

    def _fold(self, stop: int, counted: Register | None, first: Register) -> Iterator[Statement]:
        """Adds up counters, from ``first`` on: one thread for all, if just they run together and no sum may
        overflow. Otherwise, and without reductions, each thread adds for itself.

        The last ones of a range are loaded with some that are added already, and count as 0 here: a larger array would
        take more of the stack that functions which call themselves need.
        """
        found = [self._new("b32") for _ in range(min(self.memory.folded, stop))]
        start = self._new("b32")
        yield op("min.u32", start, first, stop - len(found))
        yield from self._counts(found, start, first, counted)
        nothing, adds = self.names.label("nothing"), None
        if self.redux:
            any_, some, much, adds = self._new("b32"), *(self._new("pred") for _ in range(3))
            yield op("mov.b32", any_, found[0])
            for word in found[1:]:
                yield op("or.b32", any_, any_, word)
            yield op("setp.ne.u32", some, any_, 0)
            yield op("setp.gt.u32", much, any_, _MOST_OF_32)
            # Groups of lanes may meet in a vote, so that the lanes are asked for only after a branch behind it.
            for said in (much, some):
                yield op("vote.sync.any.pred", said, said, self.mask)
            yield op("bra", Symbol(nothing), guard=Guard(some, negated=True))
            yield from self._reduced(found, much, adds)
        amounts = []
        for word in found:
            some = self._new("pred")
            if adds is None:
                yield op("setp.ne.u32", some, word, 0)
            else:
                yield op("setp.ne.and.u32", some, word, 0, adds)
            amounts.append((word, Guard(some)))
        add = self._add_to_all if self.memory.name is None else self._add_to_block
        yield from add(amounts, start)
        yield Label(nothing)

    def _counts(
        self, found: Sequence[Register], start: Register, first: Register, counted: Register | None
    ) -> Iterator[Statement]:
        """Sets ``found`` to the counters from ``start`` on, those before ``first`` to 0."""
        address, before = self._new("b64"), self._new("b32")
        yield op("mad.wide.u32", address, start, 4, self.counters)
        # All lanes load: around a load of some ptxas would have lanes branch and meet again.
        for index, word in enumerate(found):
            yield op("ld.local.u32", word, at(address, 4 * index))
        yield op("sub.u32", before, first, start)
        for index, word in enumerate(found):
            new = self._new("pred")
            if counted is None:
                yield op("setp.le.u32", new, before, index)
            else:
                yield op("setp.le.and.u32", new, before, index, counted)
            yield op("selp.b32", word, word, 0, new)

    def _reduced(self, found: Sequence[Register], much: Register, adds: Register) -> Iterator[Statement]:
        """Adds up each of ``found``, unless these are too ``much`` for that; ``adds`` becomes whether a thread is to
        add what is there then.
        """
        active, together = self._new("b32"), self._new("pred")
        yield op("activemask.b32", active)
        yield op("setp.eq.and.u32", together, active, self.mask, Not(much))
        yield op("not.pred", adds, together)
        yield op("or.pred", adds, adds, self.leader)
        for word in found:
            yield op("redux.sync.add.u32", word, word, self.mask, guard=Guard(together))

    def _add_to_block(
        self, amounts: Sequence[tuple[Register, Guard]], start: Register
    ) -> Iterator[Statement]:
        """Adds the halves of counts to their sums in shared memory."""
        place = self._new("b32")
        yield op("mad.lo.u32", place, start, 4, self.sums)
        for index, (amount, who) in enumerate(amounts):
            low, high, more = self._new("b32"), self._new("b32"), self._new("pred")
            yield op("and.b32", low, amount, _LOW_HALF)
            yield op("shr.u32", high, amount, HALF_WORD)
            yield op("setp.ne.and.u32", more, high, 0, predicate(who))
            for word, half, adds in ((self.memory.plain, low, who), (self.memory.high, high, Guard(more))):
                yield op("red.shared.add.u32", at(place, 4 * (word + index)), half, guard=adds)

    def _add_to_all(self, amounts: Sequence[tuple[Register, Guard]], start: Register) -> Iterator[Statement]:
        """Adds counts to their sums in global memory, each as often as the warp stands for others."""
        place = self._new("b64")
        yield op("mad.wide.u32", place, start, 8, self.sums)
        for index, (amount, who) in enumerate(amounts):
            wide = self._new("b64")
            if self.weight is None:
                yield op("cvt.u64.u32", wide, amount)
            else:
                yield op("mul.wide.u32", wide, amount, self.weight)
            counter = self.memory.in_copy(place, self.memory.own + index)
            yield op("red.global.add.u64", counter, wide, guard=who)
