"""The registers of a reduction are merged into one, so that paths begin and end with the one that the loop keeps.

        add.s32 %r39, %r14, %r40;               add.s32 %r40, %r14, %r40;
        @%p5 bra J;                             @%p5 bra J;
        add.s32 %r39, %r35, %r39;       ->      add.s32 %r40, %r35, %r40;       the path
    J:  add.s32 %r40, %r39, -5;             J:  add.s32 %r40, %r40, -5;

nvcc writes each update of a variable to a register of its own unless a phi joins them. A task's part of a reduction
(`cccopt.ccc.plan.partials`) lives in one register, so all values must be in it wherever a path begins or ends.

Two registers interfere if one is written while the other is live, except by a copy of the other. Registers of the same
reduction and type that do not interfere are merged, first those that are live where paths begin and end. Interfering
registers keep their names; `cccopt.ccc.legality.sunk_code` refuses them if that matters.

Safety: EXACT. G. Chaitin, "Register allocation & spilling via graph coloring", SIGPLAN 1982.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from cccopt.analysis import effects
from cccopt.ccc.function.view import View, view_of
from cccopt.ccc.legality.reductions import Reduction, reductions
from cccopt.ccc.outcome.refusal import Refusal
from cccopt.ccc.regions.marked_loops import Region, find
from cccopt.passes.options import Options
from cccopt.passes.preparing import each_marked
from cccopt.passes.result import PassResult
from cccopt.ptx import isa
from cccopt.ptx.ir import Function, Instruction, Module, Register, Statement


def run(module: Module, options: Options) -> PassResult:
    """Coalesce the reductions of all marked functions; EXACT."""
    return PassResult(each_marked(module, options, _coalesced))


def _coalesced(module: Module, function: Function, options: Options) -> Function:
    view = view_of(module, function)
    if not any(annotation.reductions for annotation in view.annotations.values()):
        return function
    try:
        regions = find(view, frozenset(view.annotations)).regions
    except Refusal:
        return function  # collect-contexts reports it
    webs = [(region, made) for region in regions for made in reductions(view, region).found]
    merged = _merged(view, webs)
    if not merged:
        return function
    renamed = (_renamed(statement, merged) for statement in function.body or ())
    return replace(function, body=tuple(s for s in renamed if not _copies_itself(s)))


def _merged(view: View, webs: Iterable[tuple[Region, Reduction]]) -> Mapping[str, Register]:
    """For each register that is replaced, its replacement."""
    found = [(region, made.register, {name for _, name in made.values}) for region, made in webs]
    names = frozenset(name for _, _, web in found for name in web)
    clashes = _interferences(view, names)
    members = {name: {name} for name in names}
    leader = {name: name for name in names}
    for region, register, web in found:
        for name in _by_need(view, region, web):
            goal, other = leader[register], leader[name]
            alike = view.types[goal] == view.types[other]
            if goal == other or not alike or any(clashes[n] & members[goal] for n in members[other]):
                continue
            members[goal] |= members.pop(other)
            leader.update(dict.fromkeys(members[goal], goal))
    return {name: Register(chosen) for name, chosen in leader.items() if name != chosen}


def _by_need(view: View, region: Region, names: Collection[str]) -> list[str]:
    """The names, first those that are live where a path begins or ends."""
    places = {view.block_of_name[place] for path in region.all_paths() for place in (path.begin, path.end)}
    live = frozenset[str]().union(*(view.liveness.live_in[block] for block in places))
    return sorted(names, key=lambda name: (name not in live, name))


def _interferences(view: View, names: Collection[str]) -> Mapping[str, set[str]]:
    found: dict[str, set[str]] = {name: set() for name in names}
    for index, statement in enumerate(view.body):
        written = effects.writes(statement) & found.keys()
        if not written:
            continue
        live = view.liveness.live_after(index) & found.keys()
        for name in written:
            for other in (live | written) - {name, _copied(statement)}:
                found[name].add(other)
                found[other].add(name)
    return found


def _copied(statement: Statement) -> str:
    """The register that the statement copies; empty if it does anything else."""
    if not isinstance(statement, Instruction) or statement.base != "mov" or statement.guard is not None:
        return ""
    source = statement.operands[-1]
    return source.name if isinstance(source, Register) and isinstance(statement.operands[0], Register) else ""


def _renamed(statement: Statement, merged: Mapping[str, Register]) -> Statement:
    return isa.rename(statement, merged, merged) if isinstance(statement, Instruction) else statement


def _copies_itself(statement: Statement) -> bool:
    copied = _copied(statement)
    return bool(copied) and effects.writes(statement) == {copied}
