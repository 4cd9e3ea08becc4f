"""Values that only some paths read: if their tasks compute them, the code before the branch is dead.

        sqrt.rn.f32 %f3, %f2;       only the path reads %f3: if each task computes it from %f2, no lane does so before
        @!%p1 bra   J;              the branch (ptxas drops it), and no more tasks compute it than lanes did

The computation moves from each iteration into each task: Knoop, Rüthing, Steffen, "Partial dead code elimination", PLDI
1994.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from cccopt.analysis import effects
from cccopt.analysis.reaching import ENTRY
from cccopt.ccc.function.view import View
from cccopt.ccc.regions.marked_loops import Region
from cccopt.ccc.regions.paths import Path
from cccopt.ccc.regions.values import definitions_at_end, live_outs
from cccopt.ptx import isa
from cccopt.ptx.ir import Instruction
from cccopt.ptx.isa import Control, Memory


@dataclass(frozen=True)
class Sinking:
    """Which statements before ``paths`` compute values that only these read, or only the ``sunk`` statements that run
    after them in their tasks. The paths exclude each other, or there is only one.
    """

    view: View
    region: Region
    paths: tuple[Path, ...]
    sunk: frozenset[int] = frozenset()
    _known: dict[int, bool] = field(default_factory=dict, compare=False, repr=False)

    def holds(self, statement: int) -> bool:
        """Whether the statement's result is used only in the paths, directly or through other such statements."""
        if statement not in self._known:
            self._known[statement] = False  # values on a cycle do not sink
            self._known[statement] = self._holds(statement)
        return self._known[statement]

    def _holds(self, index: int) -> bool:
        if index == ENTRY or self.view.cfg.block_of(index) not in self._before_paths:
            return False
        statement = self.view.body[index]
        if not isinstance(statement, Instruction) or not is_computation(statement):
            return False
        (name,) = effects.writes(statement)
        return all(
            self._reads_in_path(reader, name, index)
            or (self.view.reaching.reaching(reader, name) == {index} and self.holds(reader))
            for reader in self._readers.get(name, ())
            if index in self.view.reaching.reaching(reader, name)
        )

    def _reads_in_path(self, reader: int, name: str, definition: int) -> bool:
        """Whether only this definition of the value reaches the beginning of the path that holds the reader, or, if
        sunk code reads it, of all paths that leave it to that code.
        """
        if reader in self.sunk:
            leaving = (p for p in self.paths if definition in definitions_at_end(self.view, p, name))
            begins = (self.view.cfg.blocks[self.view.block_of_name[p.begin]].start for p in leaving)
            return all(self.view.reaching.reaching(begin, name) == {definition} for begin in begins)
        begin = self._path_begins.get(self.view.cfg.block_of(reader))
        return begin is not None and self.view.reaching.reaching(begin, name) == {definition}

    @cached_property
    def _path_begins(self) -> dict[int, int]:
        """For each block in one of the paths, the first statement of its path."""
        return {
            block: self.view.cfg.blocks[self.view.block_of_name[path.begin]].start
            for path in self.paths
            for block in self.view.blocks_of(path.nodes)
        }

    @cached_property
    def _before_paths(self) -> frozenset[int]:
        """The blocks of the loop that are in no path except those around ``paths``."""
        others = (p for p in self.region.all_paths() if not all(path.nodes < p.nodes for path in self.paths))
        inside = frozenset(block for p in others for block in self.view.blocks_of(p.nodes))
        return self.view.blocks_of(self.region.nodes) - inside

    @cached_property
    def _readers(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for index, statement in enumerate(self.view.body):
            for name in effects.needs(statement):
                found.setdefault(name, []).append(index)
        return found


def sinking(
    view: View, region: Region, paths: Sequence[Path], sunk: frozenset[int] = frozenset()
) -> Sinking | None:
    """What may sink into ``paths`` and the ``sunk`` code of all their tasks.

    None for a loop of tasks, where each pop would compute it; for a path around others, whose tasks get it from its
    task; and for a path from which its lane may compute something again for itself.
    """
    if any(path.is_loop or path.children for path in paths) or (
        len(paths) == 1 and live_outs(view, paths[0])
    ):
        return None
    return Sinking(view, region, tuple(paths), sunk)


def is_computation(instruction: Instruction, given: Collection[str] = ()) -> bool:
    """Whether an instruction computes one register only from registers, constants and the special registers ``given``,
    with the same result in any lane at any time.
    """
    facts = isa.facts(instruction)
    plain = facts.known and facts.pure and facts.memory is Memory.NONE and facts.control is Control.NEXT
    return (
        plain
        and len(isa.definitions(instruction)) == 1
        and effects.special_registers(instruction) <= {*given}
        and not isa.is_conditional_write(instruction)
    )
