"""Which registers a task takes along (DESIGN 4.1): the context of a path, chosen from its live-ins.

A live-in is left out only if it has one value in all lanes and all later iterations and its definition runs in all 32
lanes: it is uniform, defined once before the marked loop, or rebuilt there by the whole warp from such values. All
others are collected, even warp-uniform loop counters, which change between push and pop.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cccopt.analysis import effects
from cccopt.analysis.constancy import UNIFORM_SPECIAL_REGISTERS
from cccopt.analysis.invariance import rematerialization_slice
from cccopt.analysis.liveness import upward_exposed
from cccopt.analysis.reaching import ENTRY
from cccopt.ccc.function.view import View
from cccopt.ccc.legality.reductions import Reduction
from cccopt.ccc.outcome import refusal
from cccopt.ccc.outcome.refusal import refuse
from cccopt.ccc.regions.marked_loops import Region
from cccopt.ccc.regions.paths import Path
from cccopt.ccc.regions.values import definitions_at_end
from cccopt.choice import Choice
from cccopt.ptx import isa
from cccopt.ptx.ir import Instruction, Register
from cccopt.ptx.isa import width
from cccopt.ptx.special import THREAD_IDENTITY


class Placement(Choice):
    """What becomes of a live-in: stored in the context; used as it is; computed once by all lanes before the loop;
    computed again by each task; kept as a task's part of a reduction.
    """

    COLLECTED = "collected"
    LEFT_OUT = "left out"
    REBUILT = "rebuilt"
    RECOMPUTED = "recomputed"
    REDUCED = "reduced"


@dataclass(frozen=True, slots=True)
class LiveIn:
    """One register that a path reads before it writes it, and what becomes of it.

    ``slice`` are the statements with which the whole warp rebuilds it; ``reason`` says why this was decided.
    """

    name: str
    type: str
    decision: Placement
    reason: str
    slice: tuple[int, ...] = ()


def live_ins(
    view: View,
    region: Region,
    path: Path,
    sunk: Sequence[int] = (),
    around: frozenset[str] = frozenset(),
    sums: Sequence[Reduction] = (),
) -> tuple[LiveIn, ...]:
    """The live-ins of ``path`` and of the ``sunk`` statements that run after it in the task, sorted by name.

    ``around`` are registers that paths around it write: their tasks' own copies do not last. Tasks have their own parts
    of ``sums``.

    Raises Refusal for a value that cannot wait on a stack.
    """
    begin = view.cfg.blocks[view.block_of_name[path.begin]].start
    inside = view.blocks_of(path.nodes)
    stops = [block.start for block in view.cfg.blocks if block.index not in inside]
    names = {
        name
        for name in upward_exposed(view.cfg, view.body, begin, stops)
        if not any(r.holds(view, begin, name) for r in sums)
    }
    updated = {index: r.updates[index][1] for r in sums for index in sunk if index in r.updates}
    own = set(view.statements(path.nodes))
    written = {name for i in own for name in effects.writes(view.body[i])}
    surely = {name for name in written if definitions_at_end(view, path, name) <= own}
    for index in sunk:
        names |= effects.needs(view.body[index]) - surely - {updated.get(index, "")}
        surely |= effects.kills(view.body[index])
        written |= effects.writes(view.body[index])
    code = [*view.statements(path.nodes), *sunk]
    found = [decide(view, region, path, begin, name, name in written | around) for name in sorted(names)]
    return (*found, *identities(view, code))


def identities(view: View, code: Iterable[int]) -> tuple[LiveIn, ...]:
    """The special registers read by ``code`` that distinguish lanes, sorted by name."""
    found: set[str] = set()
    for index in code:
        statement = view.body[index]
        if isinstance(statement, Instruction):
            found |= {n for n in effects.special_registers(statement) if n.startswith(THREAD_IDENTITY)}
    return tuple(_identity(name) for name in sorted(found))


def _identity(name: str) -> LiveIn:
    return LiveIn(
        name,
        "b32",
        Placement.COLLECTED,
        "identifies the lane: the task keeps the value of the lane that made it",
    )


def decide(view: View, region: Region, path: Path, begin: int, name: str, written: bool) -> LiveIn:
    """What becomes of the value that ``name`` holds where ``path`` begins, at statement ``begin``; ``written`` says
    whether the path overwrites it.
    """
    type = view.types[name]
    definitions = view.reaching.reaching(begin, name)

    def available(definition: int, register: str) -> bool:
        return _same_in_whole_warp(view, region, definition, register)

    # A register that the path overwrites has to be a copy, whatever it held.
    if not written and len(definitions) == 1 and all(available(d, name) for d in definitions):
        return LiveIn(
            name, type, Placement.LEFT_OUT, "the same in all lanes and iterations, computed before the loop"
        )
    slice = None if written else rematerialization_slice(view.function, view.reaching, begin, name, available)
    # An empty slice means a register that a guarded instruction may have written once more.
    if slice and all(_uniform_source(view, index) for index in slice):
        return LiveIn(
            name,
            type,
            Placement.REBUILT,
            "the same in all lanes and iterations: the whole warp computes it before the loop",
            slice,
        )
    if type != "pred" and width(type) not in (16, 32, 64):
        raise refuse(refusal.CONTEXT_TYPE, path.annotation.place, name, type)
    reason = "the path overwrites it" if written else _why_collected(view, region, begin, name)
    return LiveIn(name, type, Placement.COLLECTED, reason)


def rebuilt(view: View, live: LiveIn) -> tuple[list[Instruction], Register]:
    """The code with which the whole warp computes a live-in before the loop, and the register that then holds it."""
    fresh: dict[str, Register] = {}
    code: list[Instruction] = []
    for index in live.slice:
        statement = view.body[index]
        assert isinstance(statement, Instruction)
        new = {name: view.names.register(view.types[name]) for name in sorted(effects.writes(statement))}
        code.append(isa.rename(statement, fresh, new))
        fresh.update(new)
    return code, fresh[live.name]


def _same_in_whole_warp(view: View, region: Region, definition: int, register: str) -> bool:
    """Whether a definition gives all 32 lanes that enter the region one value that lasts through it."""
    if definition == ENTRY:
        return False
    block = view.cfg.block_of(definition)
    select = view.block_of_name[region.select]
    if block in view.blocks_of(region.nodes | region.preheader) or not view.dominators.dominates(
        block, select
    ):
        return False
    # Lanes that meet at the region may be in different iterations of a loop around it.
    if any(block in loop.blocks and select in loop.blocks for loop in view.loops):
        return False
    # After a loop that lanes leave in different iterations, a value that was uniform in it no longer is.
    meets = view.cfg.blocks[select].start
    uniformity = view.uniformity
    return uniformity.is_uniform_definition(definition, register) and uniformity.is_uniform_use(
        meets, register
    )


def _uniform_source(view: View, index: int) -> bool:
    """Whether a statement computes the same in each lane if the registers that it reads are the same in each."""
    statement = view.body[index]
    assert isinstance(statement, Instruction)
    # Each lane that calls a function passes it arguments of its own.
    argument = isa.facts(statement).space == "param" and view.function.kind != "entry"
    return not argument and effects.special_registers(statement) <= UNIFORM_SPECIAL_REGISTERS


def _why_collected(view: View, region: Region, begin: int, name: str) -> str:
    inside = view.blocks_of(region.nodes)
    definitions = view.reaching.reaching(begin, name)
    in_loop = [d for d in definitions if d != ENTRY and view.cfg.block_of(d) in inside]
    if not view.uniformity.is_uniform_use(begin, name):
        return "differs between lanes" + (" and iterations" if in_loop else "")
    return (
        "the same in all lanes, but changes between push and pop"
        if in_loop
        else "not proven to be the same in all lanes"
    )
