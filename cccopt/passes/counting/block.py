"""What threads do first and last in a function: a block first clears its counters in shared memory, each thread finally
adds its own to them, and the last thread of a block adds these to the global ones.

At the entry of a kernel all threads of the block are present, so a barrier is legal there in any kernel: the threads
clear the counters and synchronize. At the end there is no barrier, because threads leave at any time, even while others
wait at a barrier of the program. Each adds itself to the number of threads that have left; the thread that finds that
all others have left has the block's final counts and adds them to the global ones. Every thread adds its counts before
it registers as having left, and the last thread registers after all others, so it sees all counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from cccopt.ccc.function.code import at, number, op
from cccopt.ccc.function.names import Names
from cccopt.passes.counting.folding import Folding
from cccopt.passes.counting.layout import BEGUN, ENDED, THREADS, WARPS
from cccopt.passes.counting.memory import HALF_WORD, Memory, copy_address, each_word, lanes_from
from cccopt.passes.counting.sampling import count, linear_index
from cccopt.ptx.ir import (
    Function,
    Guard,
    Label,
    Literal,
    Register,
    SpecialRegister,
    Statement,
    Symbol,
    Variable,
)

_LANE_31 = Literal("31")
_OWN = Register("%ccc_own")
"""The address of a thread's own counters."""
_ENTERED = Register("%ccc_entered")
"""The nests that a thread has entered."""


def begin(kernel: Memory, names: Names) -> Iterator[Statement]:
    """A block begins: it clears its counters, and one thread counts the block."""
    thread, threads = names.register("b32"), names.register("b32")
    first, base = names.register("pred"), names.register("b64")
    yield from _thread(names, thread)
    yield from _threads(names, threads)
    if kernel.name is not None:
        yield from each_word(
            names, thread, threads, number(kernel.words), "clear", partial(_clear, names, kernel)
        )
    yield op("setp.eq.u32", first, thread, 0)
    yield from copy_address(kernel, names, base)
    yield op("red.global.add.u64", kernel.in_copy(base, BEGUN), 1, guard=Guard(first))
    if kernel.name is not None:
        yield op("bar.sync", 0)
        return
    # Without shared counters, threads are not counted off.
    yield from _count_block(kernel, names, base, threads, Guard(first))


def begin_warp(kernel: Memory, names: Names, base: Register, weight: Register) -> Iterator[Statement]:
    """A warp of a sample begins: `BEGUN` counts it, `ENDED` adds the square of how many warps it represents."""
    mask, lower, before, lanes = (names.register("b32") for _ in range(4))
    wide, leader = names.register("b64"), names.register("pred")
    who = Guard(leader)
    yield op("activemask.b32", mask)
    yield op("mov.u32", lower, SpecialRegister("%lanemask_lt"))
    yield op("and.b32", before, lower, mask)
    yield op("setp.eq.u32", leader, before, 0)
    square = names.register("b64")
    yield op("mul.wide.u32", square, weight, weight)
    yield op("red.global.add.u64", kernel.in_copy(base, BEGUN), 1, guard=who)
    yield op("red.global.add.u64", kernel.in_copy(base, ENDED), square, guard=who)
    yield op("cvt.u64.u32", wide, weight)
    yield op("red.global.add.u64", kernel.in_copy(base, WARPS), wide, guard=who)
    threads = names.register("b64")
    yield from lanes_from(names, mask, lower, lanes)
    yield op("mul.wide.u32", threads, lanes, weight)
    yield op("red.global.add.u64", kernel.in_copy(base, THREADS), threads, guard=who)


def leaving(
    memory: Memory, names: Names, array: Register | Symbol, entered: Register, redux: bool
) -> Iterator[Statement]:
    """What a thread does before it leaves the function, if anything; threads that come there together leave together.
    ``array`` is where its counters are, ``entered`` shows which nests it has entered; ``redux``: the target has
    reductions over a warp.
    """
    if not memory.private and memory.name is None:
        return
    mask, lower, before = (names.register("b32") for _ in range(3))
    leader, base = names.register("pred"), names.register("b64")
    yield op("activemask.b32", mask)
    yield op("bar.warp.sync", mask)
    yield op("mov.u32", lower, SpecialRegister("%lanemask_lt"))
    yield op("and.b32", before, mask, lower)
    yield op("setp.eq.u32", leader, before, 0)
    weight = names.register("b32") if memory.every > 1 else None
    yield from copy_address(memory, names, base, weight)
    if memory.private:
        counters = names.register("b64")
        yield op("mov.u64", counters, array)
        sums = names.register("b32" if memory.name is not None else "b64")
        folding = Folding(memory, names, base, counters, mask, lower, weight, redux, sums)
        yield from folding.all(entered)
        # All threads have added their counts before the first of them counts them all off.
        yield op("bar.warp.sync", mask)
    if memory.name is not None:
        yield from _count_off(names, memory, base, mask, lower, before, leader)


def leave_function(memory: Memory, name: str, redux: bool) -> Function:
    """`leaving` as a function, for threads that leave by a branch that others do not take."""
    names = Names((), ())
    code = [*leaving(memory, names, _OWN, _ENTERED, redux), op("ret")]
    own, entered = Variable("reg", ".b64", _OWN.name), Variable("reg", ".b32", _ENTERED.name)
    parameters = (own, entered) if memory.private else ()
    return Function("func", name, parameters, body=(*names.declarations(), *code))


def _count_off(
    names: Names,
    kernel: Memory,
    base: Register,
    mask: Register,
    lower: Register,
    before: Register,
    leader: Register,
) -> Iterator[Statement]:
    """The threads of ``mask`` count themselves off; the last ones of the block add its counters to the global ones."""
    rank, here, amount, threads, left, lane, reversed_ = (names.register("b32") for _ in range(7))
    others, first = names.register("pred"), Guard(leader)
    gone = names.label("gone")
    yield op("popc.b32", rank, before)
    yield op("popc.b32", here, mask)
    yield op("brev.b32", reversed_, mask)
    yield op("clz.b32", lane, reversed_)
    yield op("mov.u32", left, 0)
    # Not a fence: with one, ptxas uses ATOMG for all of the program's atomics whose results are not read.
    yield from lanes_from(names, mask, lower, amount)
    yield op("atom.acq_rel.cta.shared.add.u32", left, kernel.word(0), amount, guard=first)
    yield op("shfl.sync.idx.b32", left, left, lane, _LANE_31, mask)
    yield op("add.u32", left, left, here)
    yield from _threads(names, threads)
    yield op("setp.ne.u32", others, left, threads)
    yield op("bra", Symbol(gone), guard=Guard(others))
    yield from _count_block(kernel, names, base, threads, first)
    yield from _flush_all(names, kernel, base, rank, here)
    yield Label(gone)


def _flush_all(
    names: Names, memory: Memory, base: Register, first: Register, step: Register
) -> Iterator[Statement]:
    """Adds all words to their global counters."""
    low = partial(_flush, names, memory, base, memory.plain, 0)
    high = partial(_flush, names, memory, base, memory.high, HALF_WORD)
    yield from each_word(names, first, step, number(memory.counters - memory.own), "add", low)
    yield from each_word(names, first, step, number(memory.private), "add", high)


def _thread(names: Names, thread: Register) -> Iterator[Statement]:
    """Sets ``thread`` to the number of a thread in its block."""
    yield from linear_index(names, thread, "tid", "ntid")


def _threads(names: Names, threads: Register) -> Iterator[Statement]:
    """Sets ``threads`` to the number of threads in a block."""
    yield from count(names, threads, "ntid")


def _count_block(
    kernel: Memory, names: Names, base: Register, threads: Register, who: Guard
) -> Iterator[Statement]:
    warps, wide = names.register("b32"), names.register("b64")
    yield op("red.global.add.u64", kernel.in_copy(base, ENDED), 1, guard=who)
    yield op("cvt.u64.u32", wide, threads)
    yield op("red.global.add.u64", kernel.in_copy(base, THREADS), wide, guard=who)
    yield op("add.u32", warps, threads, 31)
    yield op("shr.u32", warps, warps, 5)
    wide = names.register("b64")
    yield op("cvt.u64.u32", wide, warps)
    yield op("red.global.add.u64", kernel.in_copy(base, WARPS), wide, guard=who)


def _address(
    names: Names, memory: Memory, word: Register, first: int, address: Register
) -> Iterator[Statement]:
    start = names.register("b32")
    assert memory.name is not None
    yield op("mov.u32", start, Symbol(memory.name))
    yield op("mad.lo.u32", address, word, 4, start)
    if first:
        yield op("add.u32", address, address, 4 * first)


def _clear(names: Names, memory: Memory, word: Register) -> Iterator[Statement]:
    address = names.register("b32")
    yield from _address(names, memory, word, 0, address)
    yield op("st.shared.u32", at(address), 0)


def _flush(
    names: Names, memory: Memory, base: Register, first: int, shift: int, word: Register
) -> Iterator[Statement]:
    """Adds a word to its global counter."""
    address, found, some = names.register("b32"), names.register("b32"), names.register("pred")
    place, wide = names.register("b64"), names.register("b64")
    yield from _address(names, memory, word, first, address)
    yield op("atom.shared.exch.b32", found, at(address), 0)
    yield op("setp.ne.u32", some, found, 0)
    yield op("cvt.u64.u32", wide, found)
    if shift:
        yield op("shl.b64", wide, wide, shift)
    yield op("mul.wide.u32", place, word, 8)
    yield op("add.u64", place, place, base)
    yield op("red.global.add.u64", memory.in_copy(place, memory.own), wide, guard=Guard(some))
