"""Branches and accesses of a detailed sample, counted one by one, with code that is too slow for all warps.

For a branch: in how many executions 1, 2, ... 32 lanes jumped. For an access to global memory: how often a group of
lanes made it, and how many different sectors of 32 bytes it touched; lanes of one sector find each other with
``match.any``.

        @%p activemask.b32 %m;                          activemask.b32 %m;
        popc.b32 %k, %m;                                shr.u64 %s, %address, 5;
        @%first red.global.add.u64 [h + 8*%k], ...      match.any.sync.b64 %same, %s, %m;
        @%p bra L;                                      and.b32 %t, %same, %lower;
                                                        setp.eq.u32 %new, %t, 0;
                                                        vote.sync.ballot.b32 %sectors, %new, %m;

Atomic operations on global memory without a result may be in loops (docs/decisions/0026-no-atomics-in-loops.md). For an
access by generic addresses, only lanes whose addresses are in global memory are counted (``isspacep.global``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from cccopt.ccc.function.code import flag_op, number, op
from cccopt.passes.counting.flow import Flow, branches
from cccopt.passes.counting.memory import Adder, initial, lanes_from
from cccopt.ptx.ir import Address, Guard, Instruction, Literal, Register, Statement
from cccopt.ptx.isa import Memory, facts

LANES = 32
_SECTOR_SHIFT = 5
_GENERIC = "generic"
_SPACES = ("global", _GENERIC)


@dataclass(frozen=True, slots=True)
class Watched:
    """``branches`` maps a unit that ends with a branch to the first of its counters, ``accesses`` a statement to those
    of its executions and of its sectors. ``end`` is the number after the last counter's.
    """

    end: int
    branches: Mapping[int, int] = field(default_factory=dict)
    accesses: Mapping[int, tuple[int, int]] = field(default_factory=dict)


def watch(flow: Flow, first: int, *, wanted: bool) -> Watched:
    """What is watched in a function, with counters from ``first`` onwards; nothing unless ``wanted``."""
    if not wanted:
        return Watched(first)
    end = first
    histograms, accesses = {}, {}
    for unit, _, _ in branches(flow):
        histograms[unit] = end
        end += LANES
    for unit_ in flow.units:
        for index in range(unit_.start, unit_.stop):
            if _address(flow.body[index]) is not None:
                accesses[index] = (end, end + 1)
                end += 2
    return Watched(end, histograms, accesses)


def _address(statement: Statement) -> Address | None:
    """The address of an access that may be to global memory, if it may differ between lanes."""
    if not isinstance(statement, Instruction):
        return None
    known = facts(statement)
    if known.memory is Memory.NONE or known.space not in _SPACES:
        return None
    found = [operand for operand in statement.operands if isinstance(operand, Address)]
    if len(found) != 1 or not isinstance(found[0].base, Register):
        return None
    return found[0] if found[0].offset is None or isinstance(found[0].offset, Literal) else None


def histogram_code(adder: Adder, first: int, jumps: Guard) -> Iterator[Statement]:
    """Before a branch: counts its execution by how many lanes will jump, from counter ``first`` onwards, if any do."""
    names = adder.names
    mask, lanes, leader = names.register("b32"), names.register("b32"), names.register("pred")
    yield initial(mask)
    yield op("activemask.b32", mask, guard=jumps)
    yield from adder.leader(mask, leader, jumps)
    yield from lanes_from(names, mask, adder.lower, lanes)
    yield from adder.add_to_one_of(first - 1, lanes, number(1), Guard(leader))


def access_code(adder: Adder, instruction: Instruction, counters: tuple[int, int]) -> Iterator[Statement]:
    """Before an access: counts it, and the sectors that it touches."""
    names = adder.names
    address = _address(instruction)
    assert address is not None
    assert isinstance(address.base, Register)
    mask, same, other, several = (names.register("b32") for _ in range(4))
    sector, new, leader = names.register("b64"), names.register("pred"), names.register("pred")
    yield op("add.s64", sector, address.base, address.offset or number(0))
    who = instruction.guard
    if facts(instruction).space == _GENERIC:
        who = Guard(names.register("pred"))
        yield from _in_global(sector, who.register, instruction.guard)
    yield op("shr.u64", sector, sector, _SECTOR_SHIFT)
    if who is not None:
        yield initial(mask)
        yield initial(several)
        yield op("setp.ne.u32", new, mask, mask)
    yield op("activemask.b32", mask, guard=who)
    yield op("match.any.sync.b64", same, sector, mask, guard=who)
    yield op("and.b32", other, same, adder.lower, guard=who)
    yield op("setp.eq.u32", new, other, 0, guard=who)
    yield op("vote.sync.ballot.b32", several, new, mask, guard=who)
    yield from adder.leader(mask, leader, who)
    sectors, all_, own = names.register("b32"), names.register("b32"), names.register("b32")
    yield op("popc.b32", sectors, several)
    yield op("popc.b32", all_, mask)
    yield from lanes_from(names, mask, adder.lower, own, less=all_)
    yield op("add.u32", sectors, sectors, own)
    requests, touched = counters
    yield from adder.add(requests, number(1), Guard(leader), in_loop=True)
    yield from adder.add(touched, sectors, Guard(leader), in_loop=True)


def _in_global(address: Register, found: Register, among: Guard | None) -> Iterator[Statement]:
    """Sets ``found`` in the lanes for which ``among`` holds and whose generic ``address`` is in global memory."""
    if among is not None:
        yield flag_op(found, among)
    yield op("isspacep.global", found, address, guard=None if among is None else Guard(found))
