"""Which warps of a launch are counted if not all are, and how many warps each of them represents.

Warps form sets of 2^s with consecutive numbers in the grid. A hash of the set's number and the launch's (``%gridid``)
picks the one that is counted. 2^s is at most ``every``, and less for small launches, of which at least 128 warps are
counted. All values computed here are the same in all lanes of a warp, and wherever in the program they are
computed.

The hash also draws the group, a copy of the counters, to which the warp belongs. The differences of the groups' sums
show how exact the sum of all of them is: K. M. Wolter, "Introduction to Variance Estimation", 2nd ed., 2007, ch. 2
(random groups).
"""

from __future__ import annotations

from collections.abc import Iterator

from cccopt.ccc.function.code import op
from cccopt.ccc.function.names import Names
from cccopt.ptx.ir import Guard, Register, SpecialRegister, Statement, Symbol

_LOG_LEAST = 7
_WARP_SHIFT = 5

# Multipliers and shifts of finalizers of 32 bits (C. Wellons, "Prospecting for hash functions", 2018).
_RUN, _LAUNCH = 0x9E3779B1, 0x85EBCA6B
_MIX = ((16, 0x7FEB352D), (15, 0x846CA68B))
_LAST_SHIFT = 16
_GROUP_SHIFT = 20  # above the bits that draw the warp


def sampled(
    names: Names, every: int, group: Register, weight: Register | None, left_out: Symbol | None
) -> Iterator[Statement]:
    """Sets ``group`` to a random number, and ``weight`` to how many warps this one represents. Warps that are not in
    the sample jump to ``left_out``. ``every`` is a power of two.
    """
    thread, threads, block, blocks, all_, zeros, log, ones, run, drawn = (
        names.register("b32") for _ in range(10)
    )
    launch = names.register("b64")
    yield from linear_index(names, thread, "tid", "ntid")
    yield from count(names, threads, "ntid")
    yield from linear_index(names, block, "ctaid", "nctaid")
    yield from count(names, blocks, "nctaid")
    # The numbers of warps in a block and in the grid; the number of this one.
    yield op("add.u32", threads, threads, 31)
    yield op("shr.u32", threads, threads, _WARP_SHIFT)
    yield op("mul.hi.u32", zeros, blocks, threads)
    yield op("min.u32", zeros, zeros, 1)
    yield op("neg.s32", zeros, zeros)
    yield op("mul.lo.u32", all_, blocks, threads)
    yield op("or.b32", all_, all_, zeros)  # all ones if there are more than 32 bits hold
    yield op("shr.u32", thread, thread, _WARP_SHIFT)
    yield op("mad.lo.u32", thread, block, threads, thread)
    yield op("clz.b32", zeros, all_)
    yield op("sub.s32", log, 31 - _LOG_LEAST, zeros)
    yield op("max.s32", log, log, 0)
    yield op("min.s32", log, log, every.bit_length() - 1)
    if weight is not None:
        yield op("mov.u32", weight, 1)
        yield op("shl.b32", weight, weight, log)
    yield op("shr.u32", run, thread, log)
    yield op("mov.u64", launch, SpecialRegister("%gridid"))
    yield op("cvt.u32.u64", drawn, launch)
    yield op("mul.lo.u32", drawn, drawn, _LAUNCH)
    yield op("mul.lo.u32", run, run, _RUN)
    yield op("xor.b32", drawn, drawn, run)
    for shift, factor in _MIX:
        yield from _folded(names, drawn, shift)
        yield op("mul.lo.u32", drawn, drawn, factor)
    yield from _folded(names, drawn, _LAST_SHIFT)
    yield op("shr.u32", group, drawn, _GROUP_SHIFT)
    if left_out is not None:
        other = names.register("pred")
        yield op("mov.u32", ones, 1)
        yield op("shl.b32", ones, ones, log)
        yield op("sub.u32", ones, ones, 1)
        yield op("xor.b32", drawn, drawn, thread)
        yield op("and.b32", drawn, drawn, ones)
        yield op("setp.ne.u32", other, drawn, 0)
        yield op("bra", left_out, guard=Guard(other))


def _folded(names: Names, value: Register, shift: int) -> Iterator[Statement]:
    high = names.register("b32")
    yield op("shr.u32", high, value, shift)
    yield op("xor.b32", value, value, high)


def linear_index(names: Names, number: Register, index: str, sizes: str) -> Iterator[Statement]:
    """Sets ``number`` to that of a thread in its block, or of a block in the grid, with x running fastest."""
    x, y, along, deep = (names.register("b32") for _ in range(4))
    yield op("mov.u32", x, SpecialRegister(f"%{index}.x"))
    yield op("mov.u32", y, SpecialRegister(f"%{index}.y"))
    yield op("mov.u32", number, SpecialRegister(f"%{index}.z"))
    yield op("mov.u32", along, SpecialRegister(f"%{sizes}.x"))
    yield op("mov.u32", deep, SpecialRegister(f"%{sizes}.y"))
    yield op("mad.lo.u32", number, number, deep, y)
    yield op("mad.lo.u32", number, number, along, x)


def count(names: Names, number: Register, sizes: str) -> Iterator[Statement]:
    """Sets ``number`` to how many threads a block has, or how many blocks the grid has."""
    y, z = names.register("b32"), names.register("b32")
    yield op("mov.u32", number, SpecialRegister(f"%{sizes}.x"))
    yield op("mov.u32", y, SpecialRegister(f"%{sizes}.y"))
    yield op("mov.u32", z, SpecialRegister(f"%{sizes}.z"))
    yield op("mul.lo.u32", number, number, y)
    yield op("mul.lo.u32", number, number, z)
