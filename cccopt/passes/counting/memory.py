"""The memory of counters, and the code that adds to it.

A function's counters are 64-bit numbers in global memory, in several copies, about one for each multiprocessor: all
blocks add to them. If there is room, a block of a kernel first collects its counts in 32-bit words of shared memory.

Counters in loops belong to the thread, a few in registers and the others in its local memory: with an atomic operation
on shared memory, a loop would not run like the plain one. ptxas puts a ``YIELD`` into such a loop, which lets lanes
that wait for others after it go on without them (docs/decisions/0026-no-atomics-in-loops.md). When the thread leaves
the function, it adds its counts to the counters of the block. A counter of a thread has two words in shared memory, the
sums of the low and of the high 16 bits of all threads, so that neither overflows.

    [threads that left][a word for each counter][a second word for each counter of a thread]

A thread reaches code outside loops once: no word overflows. A lane would need 2^32 iterations to overflow its own
counter: about ten seconds in one loop, at four cycles for each dependent addition.
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

    ``name`` is the shared array, None if they are only in global memory; ``kernel`` says whether it is a kernel.
    ``first`` is its first counter, ``counters`` how many it has. The first ``private`` of those that the code adds to
    are each thread's own: ``registers`` of them are in registers, and all are in the array ``local`` when it leaves.
    Those of ``nests``, the last, are only there if it has entered them. ``folded`` of them are added up at once. With
    ``by_all``, all lanes add to global counters, zero if they have nothing to add: no code is branched around.
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
        """How many of its own counters each thread adds up, whichever nests it has entered."""
        return self.nests[0].start if self.nests else self.private

    @property
    def own(self) -> int:
        """The number of counters before those that the code adds to."""
        return OWN if self.kernel else 0

    @property
    def words(self) -> int:
        """The number of words in the shared array."""
        return int(self.kernel) + self.counters - self.own + self.private

    @property
    def plain(self) -> int:
        """The number of the first counter's word."""
        return int(self.kernel)

    @property
    def high(self) -> int:
        """The number of the first word of high halves."""
        return self.plain + self.counters - self.own

    def variable(self) -> Variable:
        """The declaration of the shared array."""
        assert self.name is not None
        return Variable("shared", ".b32", self.name, (max(self.words, 1),), 4)

    def local_variable(self) -> Variable:
        """The declaration of the thread's array."""
        return Variable("local", ".b32", self.local, (self.private,), 4 * _VECTOR)

    def cleared(self, start: int, stop: int, zero: Register, among: Guard | None) -> Iterator[Statement]:
        """The lanes for which ``among`` holds clear numbers ``start`` to ``stop`` of the thread's own counters."""
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
        """Lanes for which ``among`` holds enter a nest: clears its counters and sets its ``bit`` in ``entered``."""
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
    ``lower`` holds the mask of the lanes before its own, ``weight`` how many warps a sampled one represents.
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
        """Sets ``leader`` to whether a lane is the first of ``mask``, and one of those for which ``among`` holds."""
        before = self.names.register("b32")
        yield op("and.b32", before, mask, self.lower)
        if among is None:
            yield op("setp.eq.u32", leader, before, 0)
        else:
            yield op("setp.eq.and.u32", leader, before, 0, predicate(among))

    def add(
        self, counter: int, amount: Operand, leader: Guard, *, in_loop: bool = False
    ) -> Iterator[Statement]:
        """The lane for which ``leader`` is true adds ``amount`` to the block's counter or, in a loop or if the block
        has none, to the global one.
        """
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
        """The lane for which ``leader`` is true adds ``amount`` to counter ``first + index`` in global memory."""
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
        """Each lane for which ``who`` is true adds 1 to its own counter, in a ``register`` if it has one."""
        if register is not None:
            yield op("add.u32", register, register, 1, guard=who)
            return
        # All lanes load and store: if only some did, ptxas would make lanes branch around the load and reconverge.
        found, word = self.names.register("b32"), self.memory.in_local(counter)
        yield op("ld.local.u32", found, word)
        yield op("add.u32", found, found, 1, guard=who)
        yield op("st.local.u32", word, found)

    def loaded_pair(self, counter: int) -> tuple[Vector, Statement]:
        """Registers for two counters in the thread's local memory, ``counter`` and the next, and the load."""
        pair = Vector((self.names.register("b32"), self.names.register("b32")))
        return pair, op("ld.local.v2.u32", pair, self.memory.in_local(counter))


def lanes_from(
    names: Names, mask: Register, lower: Register, lanes: Register, less: Register | None = None
) -> Iterator[Statement]:
    """Sets ``lanes`` to how many lanes of ``mask`` are not before this one (in the first lane, all of them), minus
    ``less``.

    ptxas assumes that a value computed from ``activemask`` is the same in all lanes that run together, and turns an
    atomic operation on that number into one on a multiple of it. Groups that read their masks separately may have
    reconverged by then, and their numbers differ (docs/decisions/0035-amounts-of-leaders.md).
    """
    upper = names.register("b32")
    yield op("not.b32", upper, lower)
    yield op("and.b32", upper, upper, mask)
    yield op("popc.b32", lanes, upper)
    if less is not None:
        yield op("sub.u32", lanes, lanes, less)


def initial(register: Register) -> Statement:
    """A value for a register that only some lanes write, which would otherwise be live in the whole function."""
    return op("mov.u32", register, 0)


def copy_address(
    memory: Memory,
    names: Names,
    base: Register,
    weight: Register | None = None,
    left_out: Symbol | None = None,
) -> Iterator[Statement]:
    """Sets ``base`` to this multiprocessor's copy of the counters; in a sample to that of the warp's group, and
    ``weight`` to how many warps it represents. Warps that are not in the sample go to ``left_out``.
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
    """Runs ``body`` for each number below ``count``, shared among threads: from ``first``, in steps of ``step``."""
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
