"""Values that nothing but some paths reads: where their tasks compute them, the code before the branch is dead.

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
    """Which statements before ``paths`` compute what only these read, or the ``sunk`` statements that run after them in
    their tasks alone. The paths exclude each other, or are one.
    """

    view: View
    region: Region
    paths: tuple[Path, ...]
    sunk: frozenset[int] = frozenset()
    _known: dict[int, bool] = field(default_factory=dict, compare=False, repr=False)

    def holds(self, statement: int) -> bool:
        """Whether all that the statement computes ends in the paths, by way of such statements."""
        if statement not in self._known:
            self._known[statement] = False  # no value of a cycle
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
        """Whether the path that holds the statement begins with that value alone, or all those that leave it to sunk
        code do.
        """
        if reader in self.sunk:
            leaving = (p for p in self.paths if definition in definitions_at_end(self.view, p, name))
            begins = (self.view.cfg.blocks[self.view.block_of_name[p.begin]].start for p in leaving)
            return all(self.view.reaching.reaching(begin, name) == {definition} for begin in begins)
        begin = self._path_begins.get(self.view.cfg.block_of(reader))
        return begin is not None and self.view.reaching.reaching(begin, name) == {definition}

    @cached_property
    def _path_begins(self) -> dict[int, int]:
        """The first statement of the path of each block that is in one of the paths."""
        return {
            block: self.view.cfg.blocks[self.view.block_of_name[path.begin]].start
            for path in self.paths
            for block in self.view.blocks_of(path.nodes)
        }

    @cached_property
    def _before_paths(self) -> frozenset[int]:
        """The blocks of the loop that are in no path but those around."""
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

    None for a loop of tasks, where each pop would compute it, for a path around others, whose tasks have it from their
    own, and for one of which its lane may compute something again for itself.
    """
    if any(path.is_loop or path.children for path in paths) or (
        len(paths) == 1 and live_outs(view, paths[0])
    ):
        return None
    return Sinking(view, region, tuple(paths), sunk)


def is_computation(instruction: Instruction, given: Collection[str] = ()) -> bool:
    """Whether it computes one register from registers, constants and the special registers ``given`` alone, in any lane
    at any time alike.
    """
    facts = isa.facts(instruction)
    plain = facts.known and facts.pure and facts.memory is Memory.NONE and facts.control is Control.NEXT
    return (
        plain
        and len(isa.definitions(instruction)) == 1
        and effects.special_registers(instruction) <= {*given}
        and not isa.is_conditional_write(instruction)
    )
