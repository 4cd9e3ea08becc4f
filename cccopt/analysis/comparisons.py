"""Comparisons of two operands, as analyses follow them from a predicate to what it says of numbers.

setp.lt.s32 %p1, %r1, %r2;          %p1 says that %r1 < %r2
setp.lt.s32 %p1|%p2, %r1, %r2;      %p2 says the opposite: not followed
setp.lt.and.s32 %p1, %r1, %r2, %p3; %p1 says more than that: not followed
"""

from __future__ import annotations

from cccopt.ptx.ir import Instruction, Register


def is_comparison(instruction: Instruction) -> bool:
    """Whether the instruction compares two operands and does nothing else, so its one result says how they compare."""
    operands = instruction.operands
    return instruction.base == "setp" and len(operands) == 3 and isinstance(operands[0], Register)
