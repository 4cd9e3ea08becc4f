"""What the threads of a block do with its counters in shared memory: clear them first, and add them to the global ones
last.

At the entry of a kernel all threads of the block are there, so that a barrier is legal there, in any kernel: the
threads clear the counters and meet. At the end there is none, for threads leave when they like, even while others wait
at a barrier of the program. Each counts itself off; who sees that all have left has the block's last counts, and adds
them to the global ones. What the others counted was before their own counting off, of which that of the last is after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from cccopt.ccc.function.code import at, op
from cccopt.ccc.function.names import Names
from cccopt.passes.counting.layout import BEGUN, ENDED, THREADS, WARPS
from cccopt.passes.counting.memory import HALF_WORD, Memory, copy_address
from cccopt.ptx.ir import (
    Function,
    Guard,
    Label,
    Literal,
    Register,
    SpecialRegister,
    Statement,
    Symbol,
)

_LANE_31 = Literal("31")


def begin(kernel: Memory, arrays: Sequence[Memory], names: Names) -> Iterator[Statement]:
    """The block begins: clears ``arrays``; one thread counts the block."""
    thread, threads = names.register("b32"), names.register("b32")
    first, base = names.register("pred"), names.register("b64")
    yield from _thread(names, thread)
    yield from _threads(names, threads)
    for memory in arrays:
        yield from _each_word(names, thread, threads, memory.words, "clear", partial(_clear, names, memory))
    yield op("setp.eq.u32", first, thread, 0)
    yield from copy_address(kernel, names, base)
    yield op("red.global.add.u64", kernel.in_copy(base, BEGUN), 1, guard=Guard(first))
    if arrays:
        yield op("bar.sync", 0)
        return
    # Nobody counts threads off where there is no shared counter.
    yield from _count_block(kernel, names, base, threads, Guard(first))


def leaving(kernel: Memory, arrays: Sequence[Memory], name: str) -> Function:
    """The function that threads call last: those that run it together leave together."""
    names = Names((), ())
    mask, lower, before, rank, here = (names.register("b32") for _ in range(5))
    threads, left, lane, reversed_ = (names.register("b32") for _ in range(4))
    leader, others, base = names.register("pred"), names.register("pred"), names.register("b64")
    code: list[Statement] = [
        op("activemask.b32", mask),
        op("bar.warp.sync", mask),
        op("mov.u32", lower, SpecialRegister("%lanemask_lt")),
        op("and.b32", before, mask, lower),
        op("popc.b32", rank, before),
        op("popc.b32", here, mask),
        op("setp.eq.u32", leader, rank, 0),
        op("brev.b32", reversed_, mask),
        op("clz.b32", lane, reversed_),
        op("mov.u32", left, 0),
        op("fence.acq_rel.cta"),
        op("atom.shared.add.u32", left, kernel.word(0), here, guard=Guard(leader)),
        op("fence.acq_rel.cta"),
        op("shfl.sync.idx.b32", left, left, lane, _LANE_31, mask),
        op("add.u32", left, left, here),
        *_threads(names, threads),
        op("setp.ne.u32", others, left, threads),
        op("bra", Symbol("$ccc_left"), guard=Guard(others)),
        *copy_address(kernel, names, base),
        *_count_block(kernel, names, base, threads, Guard(leader)),
    ]
    for memory in arrays:
        code += _flush_all(names, memory, base, rank, here)
    code += [Label("$ccc_left"), op("ret")]
    return Function("func", name, body=(*names.declarations(), *code))


def emptying(memory: Memory, name: str) -> Function:
    """The function that moves all words of a device function's counters to global memory."""
    names = Names((), ())
    start, step, base = names.register("b32"), names.register("b32"), names.register("b64")
    code: list[Statement] = [op("mov.u32", start, 0), op("mov.u32", step, 1)]
    code += copy_address(memory, names, base)
    code += _flush_all(names, memory, base, start, step)
    return Function("func", name, body=(*names.declarations(), *code, op("ret")))


def _flush_all(
    names: Names, memory: Memory, base: Register, first: Register, step: Register
) -> Iterator[Statement]:
    """Adds all words to their counters."""
    low = partial(_flush, names, memory, base, memory.plain, 0)
    high = partial(_flush, names, memory, base, memory.high, HALF_WORD)
    yield from _each_word(names, first, step, memory.counters - memory.own, "add", low)
    yield from _each_word(names, first, step, memory.registers, "add", high)


def _thread(names: Names, thread: Register) -> Iterator[Statement]:
    """The number of a thread in its block."""
    x, y, z, along, deep = (names.register("b32") for _ in range(5))
    yield op("mov.u32", x, SpecialRegister("%tid.x"))
    yield op("mov.u32", y, SpecialRegister("%tid.y"))
    yield op("mov.u32", z, SpecialRegister("%tid.z"))
    yield op("mov.u32", along, SpecialRegister("%ntid.x"))
    yield op("mov.u32", deep, SpecialRegister("%ntid.y"))
    yield op("mad.lo.u32", thread, z, deep, y)
    yield op("mad.lo.u32", thread, thread, along, x)


def _threads(names: Names, threads: Register) -> Iterator[Statement]:
    """The threads of a block."""
    y, z = names.register("b32"), names.register("b32")
    yield op("mov.u32", threads, SpecialRegister("%ntid.x"))
    yield op("mov.u32", y, SpecialRegister("%ntid.y"))
    yield op("mov.u32", z, SpecialRegister("%ntid.z"))
    yield op("mul.lo.u32", threads, threads, y)
    yield op("mul.lo.u32", threads, threads, z)


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


def _each_word(
    names: Names,
    first: Register,
    step: Register,
    count: int,
    what: str,
    body: Callable[[Register], Iterator[Statement]],
) -> Iterator[Statement]:
    """``body`` for each number below ``count``, shared among threads: from ``first`` on, every ``step``."""
    if not count:
        return
    word, done = names.register("b32"), names.register("pred")
    loop, after = names.label(what), names.label(f"{what}_end")
    yield op("mov.u32", word, first)
    yield Label(loop)
    yield op("setp.ge.u32", done, word, count)
    yield op("bra", Symbol(after), guard=Guard(done))
    yield from body(word)
    yield op("add.u32", word, word, step)
    yield op("bra", Symbol(loop))
    yield Label(after)


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
    """Adds a word to its counter."""
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
