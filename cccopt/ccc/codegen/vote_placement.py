"""What code generation requires of a form of tasks: where the warp votes on paths.

`cccopt.ccc.codegen.votes_at_joins` places each vote where its path ends and the rest of the iteration begins, so a task
is only the path (the detached form). Another form would place votes elsewhere, and cut tasks accordingly.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from cccopt.ccc.function.graph import Nodes
from cccopt.ccc.plan.plan import PathPlan
from cccopt.ptx.ir import Guard


@dataclass(frozen=True, slots=True)
class Entry:
    """The new node ``name``, through which all 32 lanes of a warp enter a piece of code together. It leads to
    ``begin``; if ``alive`` is given, lanes without it go straight to ``end``.
    """

    name: str
    begin: str
    end: str
    alive: Guard | None = None


class VotePlacement(Protocol):
    """Places the votes on paths."""

    def place(
        self,
        nodes: Nodes,
        entry: Entry,
        paths: tuple[PathPlan, ...],
        given: Collection[str] = (),
        read_after: Collection[str] = (),
    ) -> Nodes:
        """The code ``nodes`` with its entry, and with votes in place of ``paths``.

        Registers ``given`` have a value at the entry in all lanes, and keep it; ``read_after`` are those that are read
        after the code.
        """
