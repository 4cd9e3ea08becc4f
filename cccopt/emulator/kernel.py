"""A kernel ready to run: its pieces, the Python code made from them, and the layout of its variables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cccopt.emulator.access import MemoryAccess
from cccopt.emulator.launch_memory import MemorySizes
from cccopt.emulator.layout import ParameterVariable
from cccopt.emulator.pieces import Piece, Slot
from cccopt.ptx.ir import Variable


@dataclass
class KernelCode:
    """What the generator makes from a kernel: the source, the names it uses, the memory accesses."""

    source: str
    names: dict[str, Any]
    accesses: list[MemoryAccess]
    specials: list[str]
    exposed: frozenset[int]


@dataclass(frozen=True)
class LoadedKernel:
    """A kernel ready to run.

    ``make`` binds ``code`` to a launch's registers. ``entries`` are the first pieces of all functions, ``entry`` that
    of the kernel; ``deep`` are the recursive functions; ``formals`` are the results and parameters of each function.
    """

    name: str
    pieces: tuple[Piece, ...]
    slots: tuple[Slot, ...]
    code: KernelCode
    make: Callable[..., Any]
    entries: dict[str, int]
    deep: frozenset[str]
    formals: dict[str, tuple[tuple[object, ...], tuple[object, ...]]]
    shared_variables: dict[str, int]
    parameters: tuple[tuple[int, Variable], ...]
    parameter_variables: tuple[ParameterVariable, ...]
    sizes: MemorySizes

    @property
    def entry(self) -> int:
        """The kernel's first piece."""
        return self.entries[self.name]

    def shared_variable(self, offset: int) -> tuple[str, int]:
        """The name of the shared variable at ``offset``, and the offset in it; "" before the first variable."""
        found = [(start, name) for name, start in self.shared_variables.items() if start <= offset]
        if not found:
            return "", offset
        start, name = max(found)
        return name.rpartition(":")[2], offset - start
