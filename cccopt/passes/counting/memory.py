"""The memory of counters, and the code that adds to it.

A function's counters are 64-bit numbers in global memory, in several copies, one for about each processor: all blocks
add to them. Where there is room, a block of a kernel collects its counts in 32-bit words of shared memory first.

Counters in loops belong to the thread, a few in registers and the others in its local memory: a loop that had an atomic
operation on shared memory would not run as the plain one does. Into such a loop ptxas puts a ``YIELD``, by which lanes
that wait for others behind it go on without them (docs/decisions/0026-no-atomics-in-loops.md). When the thread leaves
the function, it adds what it has to the counters of the block. A counter of a thread has two words in shared memory,
the sums of the low and of the high 16 bits of all threads, so that neither overflows.

    [threads that left][a word for each counter][a second word for each counter of a thread]

A thread comes to code outside loops once: no word overflows. A lane would need 2^32 iterations to overflow its own
counter, at four cycles for an addition that waits for the one before it about ten seconds in one loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cccopt.ccc.function.code import at, number, op, predicate
from cccopt.ccc.function.names import Names
from cccopt.passes.counting.layout import OWN
from cccopt.passes.counting.nests import Nest
from cccopt.passes.counting.sampling import sampled
from cccopt.ptx.ir import (
    Address,
    Guard,
    Label,
    Literal,
    Operand,
    Pragma,
    Register,
    SpecialRegister,
    Statement,
    Symbol,
    Variable,
    Vector,
)

COUNTS = "ccc_profile_counts"
HALF_WORD = 16
_VECTOR = 4  # words that are stored at once


@dataclass(frozen=True, slots=True)
class Memory:
    """Where the counters of one function are.

    ``name`` is the shared array, None where they are in global memory alone; ``kernel`` tells whose they are.
    ``first`` is the function's first counter, ``counters`` how many it has. Of these a thread has ``private`` for
    itself, the first that the code adds to, ``registers`` of them in registers, all in the array ``local`` when it
    leaves; those of ``nests``, the last, only if it came there. ``folded`` of them are added up at once.
    With ``by_all`` all lanes add to global counters, zero if they have nothing to add: no code is branched around.
    ``counts`` is the array of all counters, ``row`` how many a copy of it has. One warp in ``every`` is counted.
    """

    name: str | None
    kernel: bool
    first: int
    counters: int
    private: int
    registers: int
    local: str
    counts: str
    row: int
    copies: int
    every: int = 1
    nests: tuple[Nest, ...] = ()
    folded: int = 1
    by_all: bool = False

    @property
    def common(self) -> int:
        """How many counters of its own each thread adds up wherever it came."""
        return self.nests[0].start if self.nests else self.private

    @property
    def own(self) -> int:
        """Counters ahead of those that the code adds to."""
        return OWN if self.kernel else 0

    @property
    def words(self) -> int:
        """The words of the shared array."""
        return int(self.kernel) + self.counters - self.own + self.private

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

    def local_variable(self) -> Variable:
        """The declaration of the thread's array."""
        return Variable("local", ".b32", self.local, (self.private,), 4 * _VECTOR)

    def cleared(self, start: int, stop: int, zero: Register, among: Guard | None) -> Iterator[Statement]:
        """The lanes that ``among`` holds for clear numbers ``start`` to ``stop`` of the thread's own counters."""
        yield initial(zero)
        while start < stop:
            place = _element(self.local, start)
            if start % _VECTOR == 0 and start + _VECTOR <= stop:
                yield op(f"st.local.v{_VECTOR}.u32", place, Vector((zero,) * _VECTOR), guard=among)
                start += _VECTOR
            else:
                yield op("st.local.u32", place, zero, guard=among)
                start += 1

    def come(self, bit: int, entered: Register, zero: Register, among: Guard | None) -> Iterator[Statement]:
        """The lanes that ``among`` holds for come to a nest, whose ``bit`` of ``entered`` says so."""
        yield from self.cleared(self.nests[bit].start, self.nests[bit].stop, zero, among)
        yield op("or.b32", entered, entered, Literal(str(1 << bit)), guard=among)

    def word(self, number: int) -> Address:
        """A word of the shared array."""
        assert self.name is not None
        return _element(self.name, number)

    def in_local(self, counter: int) -> Address:
        """A counter of the thread."""
        return _element(self.local, counter - self.own)

    def in_copy(self, base: Register, counter: int) -> Address:
        """A counter of the function, in the copy at ``base``."""
        return at(base, 8 * (self.first + counter))


def _element(array: str, number: int) -> Address:
    return Address(Symbol(array), Literal(str(4 * number)) if number else None)


@dataclass
class Adder:
    """Writes the code that adds to counters. ``base`` is the address of this thread's copy of the global counters;
    ``lower`` holds the mask of the lanes before its own, ``weight`` how many warps a sampled one stands for.
    """

    memory: Memory
    names: Names
    base: Register | None
    lower: Register
    weight: Register | None = None

    def copy_address(self, left_out: Symbol | None = None) -> Iterator[Statement]:
        """Sets ``base`` and ``weight``. Warps that are not in the sample go to ``left_out``."""
        assert self.base is not None
        yield from copy_address(self.memory, self.names, self.base, self.weight, left_out)

    def leader(self, mask: Register, leader: Register, among: Guard | None = None) -> Iterator[Statement]:
        """Whether a lane is the first of ``mask``; and of those for which ``among`` holds, which ``mask`` is of."""
        before = self.names.register("b32")
        yield op("and.b32", before, mask, self.lower)
        if among is None:
            yield op("setp.eq.u32", leader, before, 0)
        else:
            yield op("setp.eq.and.u32", leader, before, 0, predicate(among))

    def add(
        self, counter: int, amount: Operand, leader: Guard, *, in_loop: bool = False
    ) -> Iterator[Statement]:
        """The lane that ``leader`` is true of adds ``amount`` for the block, or for all where that is in a loop."""
        if self.memory.name is not None and not in_loop:
            word = self.memory.word(self.memory.plain + counter - self.memory.own)
            yield op("red.shared.add.u32", word, amount, guard=leader)
            return
        if self.base is None:
            place = Address(Symbol(self.memory.counts), Literal(str(8 * (self.memory.first + counter))))
        else:
            place = self.memory.in_copy(self.base, counter)
        yield from self._add_global(place, amount, leader)

    def add_to_one_of(
        self, first: int, index: Register, amount: Operand, leader: Guard
    ) -> Iterator[Statement]:
        """The lane that ``leader`` is true of adds ``amount`` to counter ``first + index`` in global memory."""
        assert self.base is not None
        place = self.names.register("b64")
        yield op("mul.wide.u32", place, index, 8)
        yield op("add.u64", place, place, self.base)
        yield from self._add_global(self.memory.in_copy(place, first), amount, leader)

    def _add_global(self, place: Address, amount: Operand, leader: Guard) -> Iterator[Statement]:
        if self.weight is not None:
            counted, amount = amount, self.names.register("b32")
            yield op("mul.lo.u32", amount, self.weight, counted)
        wide: Operand = amount
        if isinstance(amount, Register):
            wide = self.names.register("b64")
            yield op("cvt.u64.u32", wide, amount)
        if self.memory.by_all:
            counted, wide = wide, self.names.register("b64")
            yield op("selp.b64", wide, counted, 0, predicate(leader))
            yield op("red.global.add.u64", place, wide)
        else:
            yield op("red.global.add.u64", place, wide, guard=leader)

    def add_one(self, counter: int, register: Register | None, who: Guard | None) -> Iterator[Statement]:
        """Each lane that ``who`` is true of adds 1 to its own counter, in a ``register`` if it has one."""
        if register is not None:
            yield op("add.u32", register, register, 1, guard=who)
            return
        # All lanes load and store: around a load of some ptxas would have lanes branch and meet again.
        found, word = self.names.register("b32"), self.memory.in_local(counter)
        yield op("ld.local.u32", found, word)
        yield op("add.u32", found, found, 1, guard=who)
        yield op("st.local.u32", word, found)

    def loaded_pair(self, counter: int) -> tuple[Vector, Statement]:
        """Registers for two counters of the thread in its local memory, ``counter`` and the next, and the load."""
        pair = Vector((self.names.register("b32"), self.names.register("b32")))
        return pair, op("ld.local.v2.u32", pair, self.memory.in_local(counter))


def lanes_from(
    names: Names, mask: Register, lower: Register, lanes: Register, less: Register | None = None
) -> Iterator[Statement]:
    """Sets ``lanes`` to how many lanes of ``mask`` are not before this one, ``less`` another number: in the first lane
    these are all.

    ptxas takes what it computes of ``activemask`` for the same in all lanes that run together, and of an atomic
    operation on that number makes one on a multiple of it. Groups that asked for their masks apart may have met by
    then, and their numbers differ (docs/decisions/0035-amounts-of-leaders.md).
    """
    upper = names.register("b32")
    yield op("not.b32", upper, lower)
    yield op("and.b32", upper, upper, mask)
    yield op("popc.b32", lanes, upper)
    if less is not None:
        yield op("sub.u32", lanes, lanes, less)


def initial(register: Register) -> Statement:
    """A value for a register that only some write: without it, it would be live in the whole function."""
    return op("mov.u32", register, 0)


def copy_address(
    memory: Memory,
    names: Names,
    base: Register,
    weight: Register | None = None,
    left_out: Symbol | None = None,
) -> Iterator[Statement]:
    """Sets ``base`` to this processor's copy of the counters; in a sample to that of the warp's group, and ``weight``
    to how many warps it stands for. Warps that are not in the sample go to ``left_out``.
    """
    number, offset = names.register("b32"), names.register("b64")
    if memory.every > 1:
        yield from sampled(names, memory.every, number, weight, left_out)
    elif memory.copies == 1:
        yield op("mov.u64", base, Symbol(memory.counts))
        return
    else:
        yield op("mov.u32", number, SpecialRegister("%smid"))
    yield op("and.b32", number, number, memory.copies - 1)
    yield op("mul.wide.u32", offset, number, 8 * memory.row)
    yield op("mov.u64", base, Symbol(memory.counts))
    yield op("add.u64", base, base, offset)


def each_word(
    names: Names,
    first: Register,
    step: Register,
    count: Operand,
    what: str,
    body: Callable[[Register], Iterator[Statement]],
) -> Iterator[Statement]:
    """``body`` for each number below ``count``, shared among threads: from ``first`` on, every ``step``."""
    if count == number(0):
        return
    word, done = names.register("b32"), names.register("pred")
    loop, after = names.label(what), names.label(f"{what}_end")
    yield op("mov.u32", word, first)
    yield Label(loop)
    yield Pragma(("nounroll",))
    yield op("setp.ge.u32", done, word, count)
    yield op("bra", Symbol(after), guard=Guard(done))
    yield from body(word)
    yield op("add.u32", word, word, step)
    yield op("bra", Symbol(loop))
    yield Label(after)
