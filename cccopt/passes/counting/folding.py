"""How the threads that leave a function together add up their own counters: a few at a time, each sum in one thread.

The loads of such a group of counters do not wait for one another, nor do their sums. That matters because a launch of
few warps takes as long as its slowest warp.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from cccopt.ccc.function.code import at, number, op, predicate
from cccopt.ccc.function.names import Names
from cccopt.passes.counting.memory import HALF_WORD, Memory, each_word
from cccopt.ptx.ir import Guard, Label, Literal, Not, Operand, Pragma, Register, Statement, Symbol

_LOW_HALF = Literal("0xFFFF")
_INLINE = 4
"""The most ranges of counters that have code of their own."""
_MOST_OF_32 = Literal("0x7FFFFFF")
"""The sum of 32 numbers of at most this size fits into 32 bits."""


@dataclass(frozen=True, slots=True)
class Folding:
    """Adds up the counters of the threads of ``mask``, each of which has them at address ``counters``, in ``memory``.

    ``base`` is the address of the copy of the global counters, ``lower`` the mask of the lanes before a thread's own.
    ``weight`` is how many warps one of a sample represents; ``redux``: the target has reductions over a warp. ``sums``
    becomes the address of the sums.
    """

    memory: Memory
    names: Names
    base: Register
    counters: Register
    mask: Register
    lower: Register
    weight: Register | None
    redux: bool
    sums: Register

    def all(self, entered: Register) -> Iterator[Statement]:
        """Adds up the counters that each thread has, and those of the nests that some thread has entered (``entered``).

        If there are many ranges, they share one loop, since code that only a few warps run once is not in the
        instruction cache. If there are few, each has its own code with constant bounds, so that ptxas can keep a small
        number of counters in registers.
        """
        yield from self._sums_by_lane()
        ranges = [(0, self.memory.common), *((nest.start, nest.stop) for nest in self.memory.nests)]
        if len(ranges) > _INLINE:
            yield from self._in_a_loop(ranges, entered)
            return
        yield from self._range(number(0), number(self.memory.common), None)
        for bit, nest in enumerate(self.memory.nests):
            here, came = self._new("b32"), self._new("pred")
            yield op("and.b32", here, entered, 1 << bit)
            yield op("setp.ne.u32", came, here, 0)
            yield from self._range_of_some(came, number(nest.start), number(nest.stop))

    def _in_a_loop(self, ranges: Sequence[tuple[int, int]], entered: Register) -> Iterator[Statement]:
        """Adds up the counters in ``ranges``, the first for all threads, the others for the nests in ``entered``."""
        index, start, stop = (self._new("b32") for _ in range(3))
        more, came = self._new("pred"), self._new("pred")
        again = self.names.label("fold_range")
        yield op("mov.u32", index, 0)
        yield Label(again)
        yield Pragma(("nounroll",))
        yield from self._comes(index, entered, came)
        yield from self._range_of_some(came, start, stop, self._choose(index, ranges, start, stop))
        yield op("add.u32", index, index, 1)
        yield op("setp.lt.u32", more, index, len(ranges))
        yield op("bra", Symbol(again), guard=Guard(more))

    def _range_of_some(
        self, came: Register, start: Operand, stop: Operand, first: Iterable[Statement] = ()
    ) -> Iterator[Statement]:
        """If ``came`` holds for some threads, runs the code ``first`` and adds up the counters of these threads."""
        any_, after = self._new("pred"), self.names.label("range_end")
        yield op("vote.sync.any.pred", any_, came, self.mask)
        yield op("bra", Symbol(after), guard=Guard(any_, negated=True))
        yield from first
        yield from self._range(start, stop, came)
        yield Label(after)

    def _choose(
        self, index: Register, ranges: Sequence[tuple[int, int]], start: Register, stop: Register
    ) -> Iterator[Statement]:
        """Sets ``start`` and ``stop`` to the bounds of range ``index``."""
        yield op("mov.u32", start, 0)
        yield op("mov.u32", stop, ranges[0][1])
        for nest, (first, end) in enumerate(ranges[1:], 1):
            here = self._new("pred")
            yield op("setp.eq.u32", here, index, nest)
            yield op("selp.b32", start, first, start, here)
            yield op("selp.b32", stop, end, stop, here)

    def _comes(self, index: Register, entered: Register, came: Register) -> Iterator[Statement]:
        """Sets ``came`` to whether a thread has counters in range ``index``: in the first one all do."""
        bit, first = self._new("b32"), self._new("pred")
        yield op("sub.u32", bit, index, 1)
        yield op("shr.u32", bit, entered, bit)
        yield op("and.b32", bit, bit, 1)
        yield op("setp.eq.u32", first, index, 0)
        yield op("setp.ne.or.u32", came, bit, 0, first)

    def _new(self, kind: str) -> Register:
        return self.names.register(kind)

    def _sums_by_lane(self) -> Iterator[Statement]:
        """Sets ``sums``, computed so that ptxas assumes another address in each lane. Groups of a warp that fold at the
        same time may reconverge, each at a word of its own (docs/decisions/0036-groups-that-fold-at-once.md).
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

    def _range(self, start: Operand, stop: Operand, counted: Register | None) -> Iterator[Statement]:
        """Adds up counters ``start`` to ``stop``. Threads for which ``counted`` does not hold have none of these."""
        first, step, end = (self._new("b32") for _ in range(3))
        yield op("mov.u32", first, start)
        yield op("mov.u32", step, self.memory.folded)
        yield op("mov.u32", end, stop)
        if counted is not None:
            yield op("selp.b32", end, end, 0, counted)
        yield from each_word(self.names, first, step, stop, "fold", partial(self._fold, end))

    def _fold(self, end: Register, first: Register) -> Iterator[Statement]:
        """Adds up the counters from ``first`` to before ``end``. If exactly the threads of the mask run together, at
        least as many as counters, and no sum may overflow, each of the first threads adds one sum. Otherwise, and
        without reductions, each thread adds for itself.

        The last counters of the array are loaded together with some that are added already, which count as 0: a larger
        array would take more of the stack.
        """
        found = [self._new("b32") for _ in range(min(self.memory.folded, self.memory.private))]
        start = self._new("b32")
        yield op("min.u32", start, first, self.memory.private - len(found))
        yield from self._counts(found, start, first, end)
        done = self.names.label("folded")
        if self.redux:
            yield from self._together(found, start, done)
        for index, word in enumerate(found):
            some = self._new("pred")
            yield op("setp.ne.u32", some, word, 0)
            yield from self._add(word, start, index, Guard(some))
        yield Label(done)

    def _together(self, found: Sequence[Register], start: Register, done: str) -> Iterator[Statement]:
        """Adds the sums of ``found`` if possible; then, or if there is nothing to add, jumps to ``done``."""
        any_, active, threads, rank = (self._new("b32") for _ in range(4))
        some, much, together = (self._new("pred") for _ in range(3))
        yield op("mov.b32", any_, found[0])
        for word in found[1:]:
            yield op("or.b32", any_, any_, word)
        # Computed anew each time: registers are few if all blocks are to run.
        yield op("popc.b32", threads, self.mask)
        yield op("setp.lt.u32", much, threads, len(found))
        yield op("setp.gt.or.u32", much, any_, _MOST_OF_32, much)
        yield op("setp.ne.u32", some, any_, 0)
        # Groups of lanes may reconverge in a vote, so the active lanes are read only after a branch that follows it.
        for said in (much, some):
            yield op("vote.sync.any.pred", said, said, self.mask)
        yield op("bra", Symbol(done), guard=Guard(some, negated=True))
        yield op("activemask.b32", active)
        yield op("setp.eq.and.u32", together, active, self.mask, Not(much))
        for word in found:
            yield op("redux.sync.add.u32", word, word, self.mask, guard=Guard(together))
        mine, place, adds = self._new("b32"), self._new("b32"), self._new("pred")
        yield op("and.b32", rank, self.mask, self.lower)
        yield op("popc.b32", rank, rank)
        yield op("mov.b32", mine, found[0])
        for index, word in enumerate(found[1:], 1):
            here = self._new("pred")
            yield op("setp.eq.u32", here, rank, index)
            yield op("selp.b32", mine, word, mine, here)
        yield op("setp.lt.and.u32", adds, rank, len(found), together)
        yield op("setp.ne.and.u32", adds, mine, 0, adds)
        yield op("add.u32", place, start, rank)
        yield from self._add(mine, place, 0, Guard(adds))
        yield op("bra", Symbol(done), guard=Guard(together))

    def _counts(
        self, found: Sequence[Register], start: Register, first: Register, end: Register
    ) -> Iterator[Statement]:
        """Sets ``found`` to the counters from ``start`` onwards, or to 0 if before ``first`` or not before ``end``."""
        address, index = self._new("b64"), self._new("b32")
        yield op("mad.wide.u32", address, start, 4, self.counters)
        # All lanes load: if only some did, ptxas would make lanes branch around the load and reconverge.
        for offset, word in enumerate(found):
            yield op("ld.local.u32", word, at(address, 4 * offset))
        for offset, word in enumerate(found):
            new = self._new("pred")
            yield op("add.u32", index, start, offset)
            yield op("setp.ge.u32", new, index, first)
            yield op("setp.lt.and.u32", new, index, end, new)
            yield op("selp.b32", word, word, 0, new)

    def _add(self, amount: Register, start: Register, index: int, who: Guard) -> Iterator[Statement]:
        """The threads for which ``who`` holds add ``amount`` to the sums of their counter ``start + index``."""
        if self.memory.name is None:
            yield from self._add_to_all(amount, start, index, who)
        else:
            yield from self._add_to_block(amount, start, index, who)

    def _add_to_block(self, amount: Register, start: Register, index: int, who: Guard) -> Iterator[Statement]:
        """Adds the halves of a count to their sums in shared memory."""
        place, low, high, more = *(self._new("b32") for _ in range(3)), self._new("pred")
        yield op("mad.lo.u32", place, start, 4, self.sums)
        yield op("and.b32", low, amount, _LOW_HALF)
        yield op("shr.u32", high, amount, HALF_WORD)
        yield op("setp.ne.and.u32", more, high, 0, predicate(who))
        for word, half, adds in ((self.memory.plain, low, who), (self.memory.high, high, Guard(more))):
            yield op("red.shared.add.u32", at(place, 4 * (word + index)), half, guard=adds)

    def _add_to_all(self, amount: Register, start: Register, index: int, who: Guard) -> Iterator[Statement]:
        """Adds a count to its sum in global memory, times the number of warps that this one represents."""
        place, wide = self._new("b64"), self._new("b64")
        yield op("mad.wide.u32", place, start, 8, self.sums)
        if self.weight is None:
            yield op("cvt.u64.u32", wide, amount)
        else:
            yield op("mul.wide.u32", wide, amount, self.weight)
        counter = self.memory.in_copy(place, self.memory.own + index)
        yield op("red.global.add.u64", counter, wide, guard=who)
