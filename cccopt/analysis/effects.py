"""Which registers a statement reads and writes, with PTX's guards taken into account.

A guarded write is a may-write: it does not end the life of the old value, so it also *needs* that value.

        mov.u32 %r1, 5;             reads {}                writes {%r1}   kills {%r1}
        @%p1 mov.u32 %r1, 5;        reads {%p1}             writes {%r1}   kills {}
                                    needs {%p1, %r1}

PTX ISA 9.0, 9.3 (predicated execution).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from cccopt.ptx import isa
from cccopt.ptx.ir import Component, Instruction, Register, SpecialRegister, Statement
from cccopt.ptx.isa import Control, Memory

_KEPT = 1 << 16
"""The number of instructions whose effects are cached: analyses ask for them again for each view."""


@dataclass(frozen=True, slots=True)
class Effects:
    """The answers of the functions below for one statement."""

    writes: frozenset[str] = frozenset()
    kills: frozenset[str] = frozenset()
    reads: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()
    special: frozenset[str] = frozenset()


_NONE = Effects()


def of(statement: Statement) -> Effects:
    """All effects at once, for walks over whole bodies."""
    return _effects(statement) if isinstance(statement, Instruction) else _NONE


def writes(statement: Statement) -> frozenset[str]:
    """The registers that the statement may write."""
    return _effects(statement).writes if isinstance(statement, Instruction) else _NONE.writes


def kills(statement: Statement) -> frozenset[str]:
    """The registers whose old value is surely gone afterwards."""
    return _effects(statement).kills if isinstance(statement, Instruction) else _NONE.kills


def reads(statement: Statement) -> frozenset[str]:
    """The registers whose values the statement computes with, its guard among them."""
    return _effects(statement).reads if isinstance(statement, Instruction) else _NONE.reads


def needs(statement: Statement) -> frozenset[str]:
    """The registers whose values before the statement can matter to it or after it: reads and may-writes."""
    return _effects(statement).needs if isinstance(statement, Instruction) else _NONE.needs


def special_registers(statement: Statement) -> frozenset[str]:
    """The special registers that the statement reads: ``%tid.x``."""
    return _effects(statement).special if isinstance(statement, Instruction) else _NONE.special


def is_pure(statement: Statement) -> bool:
    """Whether the statement does nothing but write registers; false for what the instruction table does not know."""
    if not isinstance(statement, Instruction):
        return False
    facts = isa.facts(statement)
    return facts.known and facts.pure and facts.memory is Memory.NONE and facts.control is Control.NEXT


def _effects(instruction: Instruction) -> Effects:
    known: Effects | None = instruction.__dict__.get("_effects")
    if known is None:
        # As in `isa.facts`: looking an instruction up by its value takes longer.
        known = instruction.__dict__["_effects"] = _effects_of(instruction)
    return known


@lru_cache(maxsize=_KEPT)
def _effects_of(instruction: Instruction) -> Effects:
    writes = frozenset([register.name for register in isa.definitions(instruction)])
    # A written component leaves the others of its vector as they were.
    parts = [operand.register.name for operand in instruction.operands if isinstance(operand, Component)]
    kills = frozenset[str]() if isa.is_conditional_write(instruction) else writes.difference(parts)
    named = isa.reads(instruction)
    reads = frozenset([read.name for read in named if isinstance(read, Register)])
    special = frozenset([read.name for read in named if isinstance(read, SpecialRegister)])
    return Effects(writes, kills, reads, reads | (writes - kills), special)
