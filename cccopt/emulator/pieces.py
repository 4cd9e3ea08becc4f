"""A kernel ready for code generation: *pieces*, runs of instructions that a warp executes from first to last.

Operands are resolved: a register is a `Slot` of the register file, a variable a `SymbolAddress`. Literals, special
registers and `_` stay as the parser made them. `decode` makes pieces, `codegen` turns them into Python.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from cccopt.emulator.iterations import Event
from cccopt.emulator.semantics import Type
from cccopt.ptx.ir import Instruction

NO_PIECE = -1


@dataclass(frozen=True)
class Slot:
    """A register: its index in the register file and how its values are stored."""

    index: int
    dtype: Type
    name: str


@dataclass(frozen=True)
class MemoryOperand:
    """A resolved memory operand: a base and a byte offset."""

    base: object
    offset: int


@dataclass(frozen=True)
class OperandList:
    """A resolved list: a vector, a pair, or the arguments of a call."""

    elements: tuple[object, ...]


class Modifier(Enum):
    """What is done to an operand before it is used."""

    NOT = "!"
    NEGATIVE = "-"


@dataclass(frozen=True)
class Modified:
    """A resolved ``!p`` or ``-r``."""

    modifier: Modifier
    operand: object


@dataclass(frozen=True)
class Decoded:
    """An instruction with resolved operands; ``statement`` is its index in its function's body."""

    function: str
    statement: int
    instruction: Instruction
    operands: tuple[object, ...]
    guard: Slot | None
    negated: bool
    overhead: bool

    @property
    def parts(self) -> tuple[str, ...]:
        """The opcode's dotted parts."""
        return self.instruction.parts


class PieceEnd(Enum):
    """Where lanes go after a piece. The last three are the ends of pieces that hold only this instruction."""

    NEXT = "next"
    """To ``following``."""
    BRANCH = "branch"
    """To ``target`` or ``following``, depending on the guard of ``ending``."""
    INDEXED = "indexed"
    """To one of ``targets``."""
    CALL = "call"
    RETURN = "return"
    EXIT = "exit"
    TRAP = "trap"
    COLLECTIVE = "collective"
    BARRIER = "barrier"
    ACTIVEMASK = "activemask"


@dataclass
class Piece:
    """A run of instructions and how it ends.

    ``counted`` are the instructions that a pass through it issues; ``join`` is the piece where lanes that diverge at
    its end reconverge. ``straight`` includes the watched events, where they happen.
    """

    index: int
    function: str
    label: str | None = None
    straight: list[Decoded | Event] = field(default_factory=list)
    counted: list[Decoded] = field(default_factory=list)
    end: PieceEnd = PieceEnd.NEXT
    ending: Decoded | None = None
    following: int = NO_PIECE
    target: int = NO_PIECE
    targets: tuple[int, ...] = ()
    join: int = NO_PIECE
    callee: str = ""
