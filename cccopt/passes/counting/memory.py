"""The memory of counters, and the code that adds to it.

A function's counters are 64-bit numbers in global memory, in several copies, one for about each processor: all blocks
add to them. Where there is room, a block collects its counts in 32-bit words of shared memory first. A counter that is
in a register has two words: the folds of the low and of the high 16 bits of all lanes, so that neither overflows.

    kernel: [threads that left][a word for each counter][a second word for each register]
    function: [a word for each counter][a second word for each register]

A word that is added to over and over is emptied into global memory when it has come half way to overflowing:

        @%leader atom.shared.add.u32 %old, [word], %lanes;
        add.u32                      %new, %old, %lanes;
        setp.ge.and.u32              %half, %new, 0x80000000, %leader;
        @%half atom.shared.exch.b32  %all, [word], 0;
        cvt.u64.u32                  %wide, %all;
        @%half red.global.add.u64    [counter], %wide;

The exchange follows the addition within a warp's next few instructions, and before it others would have to add 2^31.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cccopt.ccc.function.code import at, op, predicate
from cccopt.ccc.function.names import Names
from cccopt.passes.counting.layout import OWN
from cccopt.ptx.ir import (
    Address,
    Guard,
    Literal,
    Operand,
    Register,
    SpecialRegister,
    Statement,
    Symbol,
    Variable,
)

COUNTS = "ccc_profile_counts"
HALF_WORD = 16
MASK = Literal("0xFFFF")


@dataclass(frozen=True, slots=True)
class Memory:
    """Where the counters of one function are.

    ``name`` is the shared array, None where they are in global memory alone; ``kernel`` tells whose they are.
    ``first`` is the function's first counter, ``counters`` how many it has, ``registers`` of them in registers.
    ``counts`` is the array of all counters, ``row`` how many a copy of it has.
    """

    name: str | None
    kernel: bool
    first: int
    counters: int
    registers: int
    counts: str
    row: int
    copies: int
    limit: int = 1 << 31

    @property
    def own(self) -> int:
        """Counters ahead of those that the code adds to."""
        return OWN if self.kernel else 0

    @property
    def words(self) -> int:
        """The words of the shared array."""
        return int(self.kernel) + self.counters - self.own + self.registers

    @property
    def plain(self) -> int:
        """The word of the first counter."""
        return int(self.kernel)

    @property
    def high(self) -> int:
        """The first word of high halves."""
        return self.plain + self.counters - self.own

    def variable(self) -> Variable:
        """The declaration of the shared array."""
        assert self.name is not None
        return Variable("shared", ".b32", self.name, (max(self.words, 1),), 4)

    def word(self, number: int) -> Address:
        """A word of the shared array."""
        assert self.name is not None
        return Address(Symbol(self.name), Literal(str(4 * number)) if number else None)

    def in_copy(self, base: Register, counter: int) -> Address:
        """A counter of the function, in the copy at ``base``."""
        return at(base, 8 * (self.first + counter))


@dataclass(frozen=True, slots=True)
class Fold:
    """Who adds registers together: the lanes of ``mask``, those that ``among`` is true of; ``leader`` is the first of
    them. Without ``redux`` each adds its own. ``repeated`` where a thread may do so any number of times.
    """

    mask: Register
    leader: Guard
    among: Guard | None
    redux: bool
    repeated: bool


@dataclass
class Adder:
    """Writes the code that adds to counters. ``base`` is the address of this thread's copy of the global counters;
    ``lower`` holds the mask of the lanes before its own.
    """

    memory: Memory
    names: Names
    base: Register | None
    lower: Register

    def copy_address(self) -> Iterator[Statement]:
        """Sets ``base``."""
        assert self.base is not None
        yield from copy_address(self.memory, self.names, self.base)

    def leader(self, mask: Register, leader: Register, among: Guard | None = None) -> Iterator[Statement]:
        """Whether a lane is the first of ``mask``; and of those for which ``among`` holds, which ``mask`` is of."""
        before = self.names.register("b32")
        yield op("and.b32", before, mask, self.lower)
        if among is None:
            yield op("setp.eq.u32", leader, before, 0)
        else:
            yield op("setp.eq.and.u32", leader, before, 0, predicate(among))

    def add(self, counter: int, amount: Operand, leader: Guard, repeated: bool) -> Iterator[Statement]:
        """The lane that ``leader`` is true of adds ``amount``; ``repeated`` where a thread may do so any number of
        times.
        """
        if self.memory.name is None:
            wide: Operand = amount
            if isinstance(amount, Register):
                wide = self.names.register("b64")
                yield op("cvt.u64.u32", wide, amount)
            yield self.to_global(counter, wide, leader)
            return
        word = self.memory.plain + counter - self.memory.own
        yield from self._to_word(word, counter, amount, leader, repeated, 0)

    def fold(self, counter: int, of: Register, who: Fold) -> Iterator[Statement]:
        """All lanes add their counts in the register ``of`` to a counter."""
        low, high = self.names.register("b32"), self.names.register("b32")
        yield op("and.b32", low, of, MASK)
        yield op("shr.u32", high, of, HALF_WORD)
        leader = who.leader
        if who.redux:
            for half in (low, high):
                yield op("redux.sync.add.u32", half, half, who.mask, guard=who.among)
        else:
            leader = Guard(self.names.register("pred"))
            among = () if who.among is None else (predicate(who.among),)
            opcode = "setp.ne.and.u32" if among else "setp.ne.u32"
            yield op(opcode, leader.register, of, 0, *among)
        if self.memory.name is None:
            wide, top = self.names.register("b64"), self.names.register("b64")
            yield op("cvt.u64.u32", wide, low)
            yield op("cvt.u64.u32", top, high)
            yield op("shl.b64", top, top, HALF_WORD)
            yield op("add.u64", wide, wide, top)
            yield self.to_global(counter, wide, leader)
            return
        index = counter - self.memory.own
        yield from self._to_word(self.memory.plain + index, counter, low, leader, who.repeated, 0)
        more = Guard(self.names.register("pred"))
        yield op("setp.ne.and.u32", more.register, high, 0, leader.register)
        yield from self._to_word(self.memory.high + index, counter, high, more, who.repeated, HALF_WORD)

    def to_global(self, counter: int, amount: Operand, who: Guard) -> Statement:
        """Adds to a counter in global memory."""
        assert self.base is not None
        return op("red.global.add.u64", self.memory.in_copy(self.base, counter), amount, guard=who)

    def _to_word(
        self, word: int, counter: int, amount: Operand, who: Guard, repeated: bool, shift: int
    ) -> Iterator[Statement]:
        place = self.memory.word(word)
        if not repeated:
            yield op("red.shared.add.u32", place, amount, guard=who)
            return
        old, new, everything = (self.names.register("b32") for _ in range(3))
        half, wide = self.names.register("pred"), self.names.register("b64")
        yield op("atom.shared.add.u32", old, place, amount, guard=who)
        yield op("add.u32", new, old, amount)
        yield op("setp.ge.and.u32", half, new, Literal(str(self.memory.limit)), who.register)
        yield op("atom.shared.exch.b32", everything, place, 0, guard=Guard(half))
        yield op("cvt.u64.u32", wide, everything)
        if shift:
            yield op("shl.b64", wide, wide, shift)
        # Rare: any copy will do, and an address that is no register costs nothing until then.
        counted = Address(Symbol(self.memory.counts), Literal(str(8 * (self.memory.first + counter))))
        yield op("red.global.add.u64", counted, wide, guard=Guard(half))


def copy_address(memory: Memory, names: Names, base: Register) -> Iterator[Statement]:
    """Sets ``base`` to this processor's copy of the counters."""
    if memory.copies == 1:
        yield op("mov.u64", base, Symbol(memory.counts))
        return
    number, offset = names.register("b32"), names.register("b64")
    yield op("mov.u32", number, SpecialRegister("%smid"))
    yield op("and.b32", number, number, memory.copies - 1)
    yield op("mul.wide.u32", offset, number, 8 * memory.row)
    yield op("mov.u64", base, Symbol(memory.counts))
    yield op("add.u64", base, base, offset)
