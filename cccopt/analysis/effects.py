"""Which registers a statement reads and writes, with PTX's guards taken into account.

A guarded write is a may-write: it does not end the life of the old value, so it also reads it.

        mov.u32 %r1, 5;             reads {}                writes {%r1}   kills {%r1}
        @%p1 mov.u32 %r1, 5;        reads {%p1}             writes {%r1}   kills {}
                                    needs {%p1, %r1}

PTX ISA 9.0, 9.3 (predicated execution).
"""

from __future__ import annotations

from cccopt.ptx import isa
from cccopt.ptx.ir import Component, Instruction, Register, SpecialRegister, Statement

_NOTHING: frozenset[str] = frozenset()


def writes(statement: Statement) -> frozenset[str]:
    """The registers that the statement may write."""
    if not isinstance(statement, Instruction):
        return _NOTHING
    return frozenset([register.name for register in isa.definitions(statement)])


def kills(statement: Statement) -> frozenset[str]:
    """The registers whose old value is surely gone afterwards."""
    if not isinstance(statement, Instruction) or isa.is_conditional_write(statement):
        return _NOTHING
    # A written component leaves the others of its vector as they were.
    parts = [operand.register.name for operand in statement.operands if isinstance(operand, Component)]
    return writes(statement).difference(parts)


def reads(statement: Statement) -> frozenset[str]:
    """The registers whose values the statement computes with, its guard among them."""
    if not isinstance(statement, Instruction):
        return _NOTHING
    return frozenset([read.name for read in isa.reads(statement) if isinstance(read, Register)])


def needs(statement: Statement) -> frozenset[str]:
    """The registers whose values before the statement can matter to it or behind it: reads and may-writes."""
    if not isinstance(statement, Instruction):
        return _NOTHING
    # Most instructions kill all that they write.
    kept = statement.guard is not None or Component in map(type, statement.operands)
    return reads(statement) | (writes(statement) - kills(statement)) if kept else reads(statement)


def special_registers(statement: Statement) -> frozenset[str]:
    """The special registers that the statement reads: ``%tid.x``."""
    if not isinstance(statement, Instruction):
        return _NOTHING
    return frozenset([read.name for read in isa.reads(statement) if isinstance(read, SpecialRegister)])
