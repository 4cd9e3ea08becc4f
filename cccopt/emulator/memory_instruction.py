"""A memory instruction, independent of any launch: kind, state space, element type."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from cccopt.emulator.pieces import Decoded
from cccopt.emulator.semantics import Type


class AccessKind(Enum):
    """What an instruction does to memory; the values are the words used in messages."""

    LOAD = "load"
    STORE = "store"
    ATOMIC = "atomic"


@dataclass(frozen=True)
class MemoryInstruction:
    """A load, store or atomic of ``count`` elements of ``dtype`` in one state space.

    ``strong`` instructions (volatile, relaxed, acquire, release, atomic) do not race with one another.
    """

    item: Decoded
    space: str
    dtype: Type
    count: int
    kind: AccessKind
    strong: bool

    @property
    def size(self) -> int:
        """The bytes that each lane accesses."""
        return int(self.dtype.itemsize) * self.count
