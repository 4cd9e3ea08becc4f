"""Values of a path that a lane recomputes for itself, because that is cheaper than moving what reads them.

if (v > 0.5f) { w = a[i]; f(w); }      nvcc merges the two loads of a[i]: the path has one, and hands w on
out[i] = w;                            the lane loads a[i] again, and the store does not move
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cccopt.analysis import effects
from cccopt.analysis.constancy import reads_unchanging_memory
from cccopt.ccc.function.view import View
from cccopt.ccc.regions.paths import Path
from cccopt.ccc.regions.values import definitions_at_end
from cccopt.ptx import isa
from cccopt.ptx.ir import Instruction
from cccopt.ptx.isa import Control, Memory


@dataclass(frozen=True, slots=True)
class Recomputation:
    """The registers that the lane writes again after the path, and the statements of the path that do so, in order."""

    registers: frozenset[str] = frozenset()
    statements: tuple[int, ...] = ()


def recomputation(view: View, path: Path, outs: Iterable[str], most: float) -> Recomputation:
    """The registers among ``outs`` that a lane recomputes for at most ``most`` issue slots each."""
    slices = {name: _slice(view, path, name) for name in sorted(outs)}
    chosen = {name: s for name, s in slices.items() if s is not None and _cost(view, s) <= most}
    rank = {block: position for position, block in enumerate(view.cfg.reverse_postorder)}
    found = {index for s in chosen.values() for index in s}
    ordered = tuple(sorted(found, key=lambda index: (rank[view.cfg.block_of(index)], index)))
    written = [name for index in ordered for name in effects.writes(view.body[index])]
    if len(written) != len(set(written)):
        return Recomputation()
    return Recomputation(frozenset(chosen), ordered)


def repeatable(view: View, instruction: Instruction) -> bool:
    """Whether running an instruction twice gives the same result: it is pure, or loads what nothing writes."""
    facts = isa.facts(instruction)
    if not facts.known or facts.control is not Control.NEXT or isa.is_conditional_write(instruction):
        return False
    constant = facts.memory is Memory.LOAD and reads_unchanging_memory(instruction, view.function)
    return facts.pure or constant


def _slice(view: View, path: Path, name: str) -> tuple[int, ...] | None:
    """The statements of the path that compute ``name`` from the path's live-ins, if they always run and are pure."""
    inside = set(view.statements(path.nodes))
    ends = view.ends(path.nodes)
    found: set[int] = set()
    work = [definitions_at_end(view, path, name)]
    while work:
        definitions = work.pop()
        if not definitions & inside:
            continue
        # A single definition dominates its uses, so there are no cycles.
        if len(definitions) != 1:
            return None
        (index,) = definitions
        if index in found:
            continue
        statement = view.body[index]
        if not isinstance(statement, Instruction) or not repeatable(view, statement):
            return None
        if not all(view.dominators.dominates(view.cfg.block_of(index), end) for end in ends):
            return None
        found.add(index)
        work += [view.reaching.reaching(index, needed) for needed in effects.needs(statement)]
    return tuple(sorted(found))


def _cost(view: View, statements: Iterable[int]) -> float:
    """The issue slots of the statements."""
    return sum(isa.facts(s).slots for i in statements if isinstance(s := view.body[i], Instruction))
