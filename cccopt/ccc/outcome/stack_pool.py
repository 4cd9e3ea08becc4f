"""The pool of entries in global memory that holds stacks (`cccopt.ccc.plan.pool`), as reports describe it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StackPool:
    """``entries`` of ``entry_bytes`` each, in one variable of the module. Loops with equal pools share it."""

    entries: int
    entry_bytes: int

    @property
    def name(self) -> str:
        """The name of the variable."""
        return f"$ccc_stacks_{self.entries}x{self.entry_bytes}"

    @property
    def bytes(self) -> int:
        """The bytes of all entries."""
        return self.entries * self.entry_bytes
