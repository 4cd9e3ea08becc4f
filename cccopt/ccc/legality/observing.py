"""Instructions through which a thread sees what others have written, or shows them something."""

from __future__ import annotations

from cccopt.ptx import isa
from cccopt.ptx.ir import Instruction
from cccopt.ptx.isa import Memory

_FRESH = frozenset(("relaxed", "acquire", "cv", "cg"))
"""Modifiers of loads with which programs request what other threads have written."""


def observes(instruction: Instruction) -> bool:
    """Whether the result of an instruction may be what another thread has just written."""
    facts = isa.facts(instruction)
    if facts.memory is Memory.NONE or not isa.definitions(instruction):
        return False
    fresh = facts.volatile or not _FRESH.isdisjoint(instruction.parts)
    return facts.memory is Memory.ATOMIC or fresh


def loads_common(instruction: Instruction) -> bool:
    """Whether an instruction loads from memory that other threads may write."""
    facts = isa.facts(instruction)
    private = facts.space in ("local", "param", "const") or "nc" in instruction.parts
    return facts.memory is Memory.LOAD and not private
