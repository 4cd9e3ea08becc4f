"""The straight-line code after a path that may run with the path's tasks: the path's *continuation*.

Code that reads a value of the path must move into the tasks, together with the pure code that it also needs; nothing
else may read what such code computes. A branch may be part of the continuation if all the code that it skips moves too
(`cccopt.ccc.regions.hammocks`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from cccopt.analysis import effects
from cccopt.ccc.function.graph import Jump
from cccopt.ccc.function.view import View
from cccopt.ccc.legality.lost_values import lost_value
from cccopt.ccc.legality.recomputation import repeatable
from cccopt.ccc.legality.reductions import Reductions, no_reduction
from cccopt.ccc.outcome import refusal
from cccopt.ccc.outcome.refusal import Refusal, refuse
from cccopt.ccc.regions.hammocks import Hammock, hammock_at
from cccopt.ccc.regions.marked_loops import Region
from cccopt.ccc.regions.paths import Path, forward
from cccopt.ccc.regions.values import definitions_at_end, live_outs
from cccopt.ptx import isa
from cccopt.ptx.ir import Instruction
from cccopt.ptx.isa import Control

_Definition = tuple[int, str]
"""A statement and a register that it writes."""


@dataclass(frozen=True)
class Continuation:
    """What follows one path in its iteration, within the nodes ``around`` it. Statements are given by index."""

    view: View
    region: Region
    path: Path
    around: frozenset[str]
    reductions: Reductions

    def readers(self, outs: Collection[str]) -> tuple[frozenset[int], set[_Definition]]:
        """The statements that depend on the registers ``outs`` of the path, and the definitions that they depend on.

        Raises Refusal if one of the statements cannot move.
        """
        view = self.view
        tainted = {(d, name) for name in outs for d in self._own_definitions(name)}
        readers: set[int] = set()
        changed = True
        while changed:
            changed = False
            for index, read in self._dependent(readers, tainted):
                if index not in self.order:
                    raise self.live_out(read)
                hammock = self.hammock_of.get(index)
                found = (index,) if hammock is None else (hammock.branch, *hammock.statements)
                for moving in found:
                    self._check_movable(moving, read, in_hammock=hammock is not None)
                    if self.reductions.updating(moving) is None:
                        tainted |= {(moving, name) for name in effects.writes(view.body[moving])}
                readers |= set(found)
                changed = True
        self._check_updates(readers, tainted)
        return frozenset(readers), tainted

    def helpers(self, readers: Collection[int], tainted: Collection[_Definition]) -> frozenset[int]:
        """The pure statements of the continuation that ``readers`` also need. Raises Refusal if they need anything
        else.
        """
        # A task has everything that its path writes, including what the lane recomputes for itself.
        outs = live_outs(self.view, self.path)
        own = {*tainted, *((d, name) for name in outs for d in self._own_definitions(name))}
        straight = [index for index in self.statements if index not in self.hammock_of]
        found: set[int] = set()
        for index in sorted(readers):
            found |= self.operands(index, own, straight, self.reductions)
            if index in self.hammock_of:
                self._check_inside(index, set(self.hammock_of[index].statements))
        return frozenset(found)

    def operands(
        self, index: int, own: Collection[_Definition], straight: Collection[int], reductions: Reductions
    ) -> set[int]:
        """The pure statements among ``straight`` that a moved statement needs, given that its task has the definitions
        ``own``. Raises Refusal if it needs anything else that is computed after the path.
        """
        view = self.view
        begin = view.cfg.blocks[view.block_of_name[self.path.begin]].start
        updated = reductions.updating(index)
        # A task has its own part of a reduction.
        accumulator = "" if updated is None else updated.updates[index][1]
        found: set[int] = set()
        work = [(use, name) for use, name in self._needed(index) if name != accumulator]
        while work:
            use, name = work.pop()
            definitions = view.reaching.reaching(use, name)
            if definitions.isdisjoint(straight):
                # Only the way through this path counts, whatever other paths write.
                definitions = definitions_at_end(view, self.path, name)
            if self._reached(use, name, own) or definitions == view.reaching.reaching(begin, name):
                continue
            if len(definitions) != 1:
                raise self.live_out(name)
            (definition,) = definitions
            statement = view.body[definition] if definition >= 0 else None
            pure = isinstance(statement, Instruction) and repeatable(view, statement)
            if definition not in straight or not pure:
                raise self.live_out(name)
            if definition not in found:
                found.add(definition)
                work += self._needed(definition)
        return found

    # --- the code ---

    @cached_property
    def statements(self) -> tuple[int, ...]:
        """The statements that run right after the path, up to the first branch that does not begin a hammock."""
        return self._walk[0]

    @cached_property
    def hammocks(self) -> tuple[Hammock, ...]:
        return self._walk[1]

    @cached_property
    def hammock_of(self) -> Mapping[int, Hammock]:
        return {i: h for h in self.hammocks for i in (h.branch, *h.statements)}

    @cached_property
    def order(self) -> Mapping[int, int]:
        """The position of each statement in execution order."""
        return {index: position for position, index in enumerate(self.statements)}

    @cached_property
    def _walk(self) -> tuple[tuple[int, ...], tuple[Hammock, ...]]:
        view = self.view
        begins = {p.begin for p in self.region.all_paths()}
        found: list[int] = []
        hammocks: list[Hammock] = []
        name = self.path.end
        seen: set[str] = set()
        while name in self.around and name not in begins | seen | {self.region.header}:
            seen.add(name)
            found += view.statements([name])
            end = view.graph.nodes[name].end
            if isinstance(end, Jump):
                name = forward(view, end.target)
                continue
            hammock = hammock_at(view, self.region, name, self.around - begins)
            if hammock is None:
                break
            hammocks.append(hammock)
            found += hammock.statements
            name = hammock.join
        return tuple(found), tuple(hammocks)

    @cached_property
    def _inside(self) -> frozenset[int]:
        """The statements of the path."""
        return frozenset(self.view.statements(self.path.nodes))

    # --- what must hold ---

    def _check_movable(self, index: int, read: str, *, in_hammock: bool) -> None:
        statement = self.view.body[index]
        if not isinstance(statement, Instruction) or not _movable(statement, in_hammock):
            raise self.live_out(read)
        if self.reductions.updating(index) is not None:
            if in_hammock or not self.reductions.movable(self.view, index):
                raise self.live_out(read)
            return
        carried = (name for name in sorted(effects.writes(statement)) if self._carries(index, name))
        name = next(carried, None)
        if name is not None:
            raise no_reduction(self.view, self.region, self.path, name, self.reductions)

    def _check_updates(self, moved: Collection[int], tainted: Collection[_Definition]) -> None:
        """Check that moved updates continue the part of a reduction that tasks keep in one register."""
        end = self.view.block_of_name[self.path.end]
        own = self.reductions.of(self.view, self.path)
        for index in sorted(moved):
            reduction = self.reductions.updating(index)
            if reduction is None:
                continue
            updated = reduction.updates[index][1]
            # That part does not include what the path itself adds to another register, and tasks of an enclosing path
            # that keep the value in another register would overwrite what is added to it.
            elsewhere = reduction not in own and not self._inside.isdisjoint(reduction.updates)
            alone = reduction.live(self.view, end) == {reduction.register}
            if elsewhere or self._reached(index, updated, tainted) or not alone:
                raise no_reduction(self.view, self.region, self.path, updated, self.reductions)

    def _check_inside(self, index: int, own: set[int]) -> None:
        """Check that what a statement of a hammock reads comes from the hammock on all ways, or from outside on all."""
        for name in sorted(effects.needs(self.view.body[index])):
            definitions = self.view.reaching.reaching(index, name)
            if definitions & own and not definitions <= own:
                raise self.live_out(name)

    def live_out(self, name: str) -> Refusal:
        """The refusal for a register of the path that is read after it, by code that cannot move."""
        value = lost_value(self.view, self.path, name, carried=False)
        return refuse(
            refusal.LIVE_OUT,
            self.path.annotation.place,
            value.name,
            notes=value.notes,
            help="move the use of the value into the path; if the path only reads the value again (a loop bound, say),"
            " read it into a local variable before the path",
        )

    # --- data flow ---

    def _own_definitions(self, name: str) -> frozenset[int]:
        """The definitions of a register in the path that reach its end."""
        return definitions_at_end(self.view, self.path, name) & self._inside

    def _dependent(
        self, readers: Collection[int], tainted: Collection[_Definition]
    ) -> Iterator[tuple[int, str]]:
        """Statements that are not among ``readers`` yet and read a tainted definition, with the register."""
        for index, statement in enumerate(self.view.body):
            if index in self._inside or index in readers or not isinstance(statement, Instruction):
                continue
            for name in sorted(effects.needs(statement)):
                if self._reached(index, name, tainted):
                    yield index, name
                    break

    def _reached(self, index: int, name: str, definitions: Collection[_Definition]) -> bool:
        return any((d, name) in definitions for d in self.view.reaching.reaching(index, name))

    def _needed(self, index: int) -> list[tuple[int, str]]:
        """What a statement reads, as a stack from which the first name is popped first."""
        return [(index, name) for name in sorted(effects.needs(self.view.body[index]), reverse=True)]

    def _carries(self, index: int, name: str) -> bool:
        """Whether a later iteration of a loop around the path may read what statement ``index`` writes to ``name``."""
        view = self.view
        for begin, nodes in self.region.loops_around(self.path).items():
            header = view.block_of_name[begin]
            latches = [b for b in view.cfg.predecessors[header] if view.name(b) in nodes]
            carried = (index in view.reaching.reaching_end(latch, name) for latch in latches)
            if name in view.liveness.live_in[header] and any(carried):
                return True
        return False


def _movable(instruction: Instruction, in_hammock: bool) -> bool:
    facts = isa.facts(instruction)
    flows = facts.control is Control.NEXT and instruction.guard is None
    # A hammock moves as a whole.
    flows = flows or (in_hammock and facts.control in (Control.NEXT, Control.BRANCH))
    plain = facts.known and flows
    # Parameters of a call are useless without the call, and so is the carry flag without what sets or reads it.
    plain = plain and facts.space != "param" and not (facts.carries or facts.sets_carry)
    return plain and not (facts.synchronises or facts.convergent or facts.volatile)
