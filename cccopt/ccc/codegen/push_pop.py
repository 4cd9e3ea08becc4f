"""The traffic of one path's stack: lanes push their tasks, or idle lanes pop tasks from its top (DESIGN 4.2).

    push:   lanes with a task store its context at top + rank;      top += popc(lanes with a task)
    pop:    lanes without one load slot top - 1 - rank;             top -= popc(lanes without one)

The rank of a lane is the number of lanes below it that do the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from cccopt.ccc.codegen.builder import Builder
from cccopt.ccc.function.code import FULL_WARP, negated, op, predicate
from cccopt.ccc.plan.plan import PathPlan
from cccopt.ccc.plan.stack import SLOTS, Lookup
from cccopt.ptx.ir import Guard, Instruction, Register


@dataclass(frozen=True, slots=True)
class Ballot:
    """The outcome of a vote in registers: the mask of the lanes without a task, and how many tasks are missing."""

    idle: Register
    missing: Register

    @classmethod
    def fresh(cls, builder: Builder) -> Ballot:
        """A ballot in fresh registers."""
        return cls(builder.register(), builder.register())

    def vote(self, flag: Guard) -> Instruction:
        """The vote, in which lanes with ``flag`` have a task."""
        return op("vote.sync.ballot.b32", self.idle, predicate(negated(flag)), FULL_WARP)

    def count(self) -> Instruction:
        """Counts the tasks that are missing."""
        return op("popc.b32", self.missing, self.idle)


@dataclass(frozen=True, slots=True)
class StackTraffic:
    """Pushes and pops after a vote. ``lanes_before`` is the register with the mask of the lanes below this one."""

    path: PathPlan
    ballot: Ballot
    lanes_before: Register
    builder: Builder

    def push(self, flag: Guard, source: Lookup) -> list[Instruction]:
        """Lanes with ``flag`` store the context that ``source`` names."""
        path, rank, slot = self.path, self.builder.register(), self.builder.register()
        return [
            # The truth table of ~idle & lanes_before.
            op("lop3.b32", rank, self.ballot.idle, self.lanes_before, 0, 0x0C),
            op("popc.b32", rank, rank),
            op("add.s32", slot, path.top, rank),
            *path.stack.push(source, slot, flag),
            op("sub.s32", path.top, path.top, self.ballot.missing),
            op("add.s32", path.top, path.top, SLOTS),
        ]

    def pop(self, flag: Guard, source: Lookup) -> list[Instruction]:
        """Lanes without ``flag`` load a context into the task's registers; the others move theirs from ``source``."""
        path, rank, slot = self.path, self.builder.register(), self.builder.register()
        return [
            op("and.b32", rank, self.ballot.idle, self.lanes_before),
            op("popc.b32", rank, rank),
            op("sub.s32", slot, path.top, rank),
            *path.stack.pop(source, path.registers.of, slot, negated(flag), below=1),
            *path.context.restore,
            op("sub.s32", path.top, path.top, self.ballot.missing),
        ]
