"""The one instruction table: operand roles, types, effects, throughput class (PTX ISA 9.0, chapter 9).

A new opcode is one row. An opcode that is not here parses and prints, reads and writes everything it names, and is
convergent; a pass that would have to understand it declines.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Role(Enum):
    """What an instruction does with an operand."""

    DEF = "def"
    USE = "use"
    DEF_USE = "def+use"
    ADDRESS = "address"  # a memory operand: its registers are read
    LABEL = "label"
    NAME = "name"  # a function, prototype, barrier or texture name: not a register


class Memory(Enum):
    """How an instruction touches memory."""

    NONE = "none"
    LOAD = "load"
    STORE = "store"
    ATOMIC = "atomic"  # reads and writes: atom, red, cas loops


class Control(Enum):
    """How an instruction moves the program counter."""

    NEXT = "next"
    BRANCH = "branch"  # bra
    INDEXED = "indexed"  # brx.idx
    CALL = "call"
    RETURN = "return"  # ret
    EXIT = "exit"  # exit, trap


@dataclass(frozen=True, slots=True)
class Facts:
    """What the table says of one instruction (its modifiers taken into account).

    ``roles`` and ``types`` run parallel to the operands; a type is spelled without dot (``u32``), None where the
    operand has none. ``space`` is ``global``, ``shared``, ``local``, ``param``, ``const`` or ``generic``.
    ``synchronises``: barriers, fences, ``.sync`` collectives, acquire/release/volatile accesses. ``convergent``: the
    set of lanes that run it together matters. ``aligned``: an ``.aligned`` form, mma or elect. ``pure``: the result is a
    function of the operands alone. ``slots`` is the number of issue slots a warp needs (1 is full throughput).
    """

    known: bool
    roles: tuple[Role, ...]
    types: tuple[str | None, ...]
    memory: Memory = Memory.NONE
    space: str | None = None
    control: Control = Control.NEXT
    synchronises: bool = False
    convergent: bool = False
    aligned: bool = False
    pure: bool = False
    volatile: bool = False
    slots: float = 1.0
