"""Which registers a statement reads and writes, with PTX's guards taken into account.

A guarded write is a may-write: it does not end the life of the old value, so it also reads it.

        mov.u32 %r1, 5;             reads {}                writes {%r1}   kills {%r1}
        @%p1 mov.u32 %r1, 5;        reads {%p1}             writes {%r1}   kills {}
                                    needs {%p1, %r1}

PTX ISA 9.0, 9.3 (predicated execution).
"""

from __future__ import annotations

from typing import NamedTuple

from cccopt.ptx import isa
from cccopt.ptx.ir import Component, Instruction, Register, SpecialRegister, Statement

_NOTHING: frozenset[str] = frozenset()


class _Effects(NamedTuple):
    reads: frozenset[str]
    writes: frozenset[str]
    kills: frozenset[str]
    needs: frozenset[str]


def writes(statement: Statement) -> frozenset[str]:
    """The registers that the statement may write."""
    return _effects(statement).writes if isinstance(statement, Instruction) else _NOTHING


def kills(statement: Statement) -> frozenset[str]:
    """The registers whose old value is surely gone afterwards."""
    return _effects(statement).kills if isinstance(statement, Instruction) else _NOTHING


def reads(statement: Statement) -> frozenset[str]:
    """The registers whose values the statement computes with, its guard among them."""
    return _effects(statement).reads if isinstance(statement, Instruction) else _NOTHING


def needs(statement: Statement) -> frozenset[str]:
    """The registers whose values before the statement can matter to it or behind it: reads and may-writes."""
    return _effects(statement).needs if isinstance(statement, Instruction) else _NOTHING


def _effects(instruction: Instruction) -> _Effects:
    """What the instruction reads and writes. Analyses ask many times, so that it keeps the answer."""
    known: _Effects | None = instruction.__dict__.get("_effects")
    if known is None:
        known = instruction.__dict__["_effects"] = _found(instruction)
    return known


def _found(instruction: Instruction) -> _Effects:
    writes = frozenset([register.name for register in isa.definitions(instruction)])
    reads = frozenset([read.name for read in isa.reads(instruction) if isinstance(read, Register)])
    if not writes:
        return _Effects(reads, writes, writes, reads)
    # A written component leaves the others of its vector as they were.
    parts = [operand.register.name for operand in instruction.operands if isinstance(operand, Component)]
    kills = _NOTHING if instruction.guard is not None else writes.difference(parts)
    return _Effects(reads, writes, kills, reads if kills == writes else reads | (writes - kills))


def special_registers(statement: Statement) -> frozenset[str]:
    """The special registers that the statement reads: ``%tid.x``."""
    if not isinstance(statement, Instruction):
        return _NOTHING
    return frozenset([read.name for read in isa.reads(statement) if isinstance(read, SpecialRegister)])
