"""Which form of the loop fits: *split* where trip counts differ by at most one over the lanes, else *idle lanes*.

Both are right for any loop; the choice is one of speed (DESIGN 4.2). A grid-stride loop runs from a start that special
registers alone decide, in steps of a uniform stride, to a uniform bound.
"""

from __future__ import annotations

from cccopt.analysis import effects
from cccopt.analysis.reaching import ENTRY
from cccopt.ccc.regions import Region
from cccopt.ccc.view import View
from cccopt.ptx import isa
from cccopt.ptx.ir import Instruction
from cccopt.ptx.isa import Memory


def is_split(view: View, region: Region) -> bool:
    """Whether the loop has one way out, by a test that only special registers and uniform values decide."""
    inside = view.blocks_of(region.nodes)
    leaving = [
        block
        for block in inside
        if any(target not in inside for target in view.cfg.successors[block]) or block in view.cfg.exits
    ]
    if len(leaving) != 1:
        return False
    last = view.cfg.blocks[leaving[0]].stop - 1
    statement = view.body[last]
    if not isinstance(statement, Instruction) or statement.guard is None:
        return False
    return _regular(view, last, statement.guard.register.name, set())


def _regular(view: View, use: int, register: str, asked: set[tuple[int, str]]) -> bool:
    """Whether no load, atomic, call or varying branch decides the value of ``register`` at ``use``.

    Loads of what is uniform and constant count as uniform values.
    """
    for definition in view.reaching.reaching(use, register):
        if definition == ENTRY:
            return False
        if (definition, register) in asked:
            continue
        asked.add((definition, register))
        if view.uniformity.is_uniform_definition(definition, register):
            continue
        statement = view.body[definition]
        assert isinstance(statement, Instruction)
        facts = isa.facts(statement)
        # `mov %r, %tid.x` is not a function of registers, but of the thread alone.
        if facts.memory is not Memory.NONE or not (facts.pure or effects.special_registers(statement)):
            return False
        if not all(_regular(view, definition, name, asked) for name in effects.needs(statement)):
            return False
    return True
