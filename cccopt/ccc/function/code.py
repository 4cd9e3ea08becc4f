"""Shorthand for the instructions that a pass adds."""

from __future__ import annotations

from cccopt.ptx.ir import Address, Guard, Instruction, Literal, Not, Operand, Register

FULL_WARP = Literal("-1")
"""The mask of all 32 lanes."""


def op(opcode: str, *operands: Operand | int, guard: Guard | None = None) -> Instruction:
    """``@guard opcode operands;``; an int becomes a literal."""
    return Instruction(opcode, tuple(number(o) if isinstance(o, int) else o for o in operands), guard)


def number(value: int) -> Literal:
    """The literal for ``value``."""
    return Literal(str(value))


def at(base: Register, offset: int = 0) -> Address:
    """``[base]`` or ``[base+offset]``."""
    return Address(base, number(offset) if offset else None)


def predicate(flag: Guard) -> Register | Not:
    """The flag as a predicate operand: ``p`` or ``!p``."""
    return Not(flag.register) if flag.negated else flag.register


def negated(flag: Guard) -> Guard:
    """The opposite flag."""
    return Guard(flag.register, not flag.negated)


def flag_op(target: Register, flag: Guard) -> Instruction:
    """The instruction that copies a flag into ``target``."""
    return op("not.pred" if flag.negated else "mov.pred", target, flag.register)
