"""The memory of counters, and the code that adds to it.

A function's counters are 64-bit numbers in global memory, in several copies, one for about each processor: all blocks
add to them. Where there is room, a block collects its counts in 32-bit words of shared memory first. A counter that is
in a register has two words: the folds of the low and of the high 16 bits of all lanes, so that neither overflows.

    kernel: [threads that left][a word for each counter][a second word for each register]
    function: [a word for each counter][a second word for each register]

A word of 32 bits must be emptied into global memory in time. A thread comes to a kernel's code outside loops once.
Loops with counters in shared memory have each lane count its iterations, all loops together, in a register, and empty
all words and the lane's own registers every `Memory.period` of them. Then a word has at most what all lanes have added
since each emptied it last, 1024 x 2^16. Lanes call a device function any number of times: every 512th time that its
entry runs in a block empties all its words, which have by then at most 512 x 32 x 2^16 of what its loops left in them.

Where no loop has counters in shared memory nothing is emptied: a lane would need 2^32 iterations to overflow a
register, at four cycles for an addition that waits for the one before it about ten seconds in one loop.
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
    period: int = 1 << 16

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

    def word_of(self, counter: int) -> int:
        """The word of a counter."""
        return self.plain + counter - self.own

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
    them. Without ``redux`` each adds its own.
    """

    mask: Register
    leader: Guard
    among: Guard | None
    redux: bool


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

    def add(self, counter: int, amount: Operand, leader: Guard) -> Iterator[Statement]:
        """The lane that ``leader`` is true of adds ``amount``."""
        if self.memory.name is not None:
            yield op(
                "red.shared.add.u32", self.memory.word(self.memory.word_of(counter)), amount, guard=leader
            )
            return
        wide: Operand = amount
        if isinstance(amount, Register):
            wide = self.names.register("b64")
            yield op("cvt.u64.u32", wide, amount)
        yield self.to_global(counter, wide, leader)

    def add_one_of_many(self, counter: int, leader: Guard, many: int, due: Register) -> Iterator[Statement]:
        """The lane that ``leader`` is true of adds 1; ``due`` is true of it each time that makes it a multiple."""
        old = self.names.register("b32")
        word = self.memory.word(self.memory.word_of(counter))
        yield op("mov.u32", old, 0)
        yield op("atom.shared.add.u32", old, word, 1, guard=leader)
        yield op("and.b32", old, old, many - 1)
        yield op("setp.eq.and.u32", due, old, many - 1, leader.register)

    def empty(self, counter: int) -> Iterator[Statement]:
        """Moves the word of a counter to global memory."""
        found, wide, some = (
            self.names.register("b32"),
            self.names.register("b64"),
            self.names.register("pred"),
        )
        yield op("atom.shared.exch.b32", found, self.memory.word(self.memory.word_of(counter)), 0)
        yield op("setp.ne.u32", some, found, 0)
        yield op("cvt.u64.u32", wide, found)
        yield op("red.global.add.u64", self._in_any_copy(counter), wide, guard=Guard(some))

    def empty_register(self, counter: int, register: Register) -> Iterator[Statement]:
        """Moves what is in a register to global memory."""
        wide = self.names.register("b64")
        yield op("cvt.u64.u32", wide, register)
        yield op("red.global.add.u64", self._in_any_copy(counter), wide)
        yield op("mov.u32", register, 0)

    def _in_any_copy(self, counter: int) -> Address:
        """A counter in global memory, for what is done rarely: an address that is no register costs nothing else."""
        offset = 8 * (self.memory.first + counter)
        return Address(Symbol(self.memory.counts), Literal(str(offset)) if offset else None)

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
        word = self.memory.word_of(counter)
        yield op("red.shared.add.u32", self.memory.word(word), low, guard=leader)
        more = Guard(self.names.register("pred"))
        yield op("setp.ne.and.u32", more.register, high, 0, leader.register)
        word += self.memory.high - self.memory.plain
        yield op("red.shared.add.u32", self.memory.word(word), high, guard=more)

    def to_global(self, counter: int, amount: Operand, who: Guard) -> Statement:
        """Adds to a counter in global memory."""
        assert self.base is not None
        return op("red.global.add.u64", self.memory.in_copy(self.base, counter), amount, guard=who)


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
