"""Branches around a few pure instructions ahead of marked paths become selects: if-conversion.

        @%p1 bra  T;                        (the arms, each into registers of its own)
        neg.f32   %f2, %f1;                 neg.f32   %f3, %f1;
        bra       J;                  ->    add.f32   %f4, %f1, %f1;
    T:  add.f32   %f2, %f1, %f1;            selp.b32  %f2, %f4, %f3, %p1;
    J:

A value with one definition is one that tasks can compute again, or for themselves alone (`cccopt.ccc.plan.compression`,
`cccopt.ccc.plan.sinking`); behind a branch it has two. The special cases of `atan2f` and its like are such branches.

Converted are branches of a marked loop's iteration, outside of its paths and with one of them behind. Arms are straight
code of one block each, pure instructions on registers, `MOST_SLOTS` together with the selects; inner branches go first.
PTX arithmetic does not trap, so that what the other lanes would not have run is harmless.

Safety: EXACT. J. R. Allen, K. Kennedy, C. Porterfield, J. Warren, "Conversion of control dependence to data
dependence", POPL 1983.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cccopt.analysis import effects
from cccopt.analysis.cfg import ending
from cccopt.ccc.function.code import op, predicate
from cccopt.ccc.function.graph import Branch, Jump, leading, predecessors
from cccopt.ccc.function.names import Names
from cccopt.ccc.function.view import View, view
from cccopt.ccc.outcome.refusal import Refusal
from cccopt.ccc.plan.sinking import is_computation
from cccopt.ccc.regions.marked_loops import Region, find
from cccopt.passes.options import Options
from cccopt.passes.preparing import each_marked
from cccopt.passes.result import PassResult
from cccopt.ptx import isa
from cccopt.ptx.ir import (
    Body,
    Function,
    Instruction,
    Label,
    Location,
    Module,
    Register,
    Statement,
    Symbol,
)

MOST_SLOTS = 24.0
"""Issue slots of both arms and the selects; a warp whose lanes part there runs both arms anyway."""

SELECTED = (16, 32, 64)
"""The widths in bits of what ``selp`` selects."""


@dataclass(frozen=True, slots=True)
class _Arm:
    """What a lane runs on one way from a branch to where its ways meet: the statements of the body that go, their code
    with what it writes renamed, and the new registers by the name before.
    """

    gone: frozenset[int] = frozenset()
    code: tuple[Statement, ...] = ()
    renamed: Mapping[str, Register] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Select:
    """A branch at statement ``place`` that goes, with the statements ``gone`` of its arms, for ``code``."""

    place: int
    code: tuple[Statement, ...]
    gone: frozenset[int]


def run(module: Module, options: Options) -> PassResult:
    """Convert the branches ahead of the paths of all marked functions; EXACT."""
    return PassResult(each_marked(module, options, _converted))


def _converted(module: Module, function: Function, options: Options) -> Function:
    body = function.body or ()
    names = Names(body, isa.register_types(function), prefix="selected")
    while True:
        function = replace(function, body=(*names.declarations(), *body))
        seen = view(module, function)
        try:
            regions = find(seen, frozenset(seen.annotations)).regions
        except Refusal:
            return function  # collect-contexts tells of it
        found = _selects(seen, regions, names)
        if not found:
            return function
        body = _replaced(seen, body, found)


def _replaced(seen: View, body: Body, found: Sequence[_Select]) -> Body:
    """The body, of which the view has all statements, with the branches gone."""
    code = {id(seen.body[select.place]): select.code for select in found}
    gone = {id(seen.body[i]) for select in found for i in select.gone}
    return tuple(new for old in body if id(old) not in gone for new in code.get(id(old), (old,)))


def _selects(seen: View, regions: Sequence[Region], names: Names) -> list[_Select]:
    """Branches that can go together: each arm has one head."""
    sources = predecessors(seen.graph.nodes)
    ahead = frozenset[str]().union(*(_ahead(seen, region) for region in regions))
    ends = ((name, seen.graph.nodes[name].end) for name in sorted(ahead))
    found = (_select(seen, name, end, ahead, sources, names) for name, end in ends if isinstance(end, Branch))
    return [select for select in found if select is not None]


def _ahead(seen: View, region: Region) -> frozenset[str]:
    """The nodes of an iteration that are in no path and have one behind them."""
    inside = {name for path in region.paths for name in path.nodes}
    nodes = seen.graph.nodes
    iteration = {name: nodes[name] for name in region.nodes if name != region.header}
    begins = {path.begin for path in region.paths}
    return frozenset({region.header, *leading(iteration, begins)} - inside)


def _select(
    seen: View,
    head: str,
    end: Branch,
    ahead: Collection[str],
    sources: Mapping[str, Sequence[str]],
    names: Names,
) -> _Select | None:
    """Both arms of the branch that ends ``head``, and selects; None if that cannot be, or is too much."""
    ways = [_way(seen, start, sources) for start in (end.taken, end.otherwise)]
    joins = {way[1] for way in ways}
    if end.taken == end.otherwise or len(joins) > 1:
        return None
    (join,) = joins
    if join not in ahead or join == head or seen.names.made(join):
        return None
    arms = [arm for blocks, _ in ways if (arm := _arm(seen, blocks, names)) is not None]
    if len(arms) < len(ways):
        return None
    taken, otherwise = (arm.renamed for arm in arms)
    live = seen.liveness.live_in[seen.block_of_name[join]]
    code = [statement for arm in arms for statement in arm.code]
    for name in sorted((taken.keys() | otherwise.keys()) & live):
        bits = 0 if seen.types[name] == "pred" else isa.width(seen.types[name])
        if bits not in SELECTED:
            return None
        own = Register(name)
        values = taken.get(name, own), otherwise.get(name, own)
        code.append(op(f"selp.b{bits}", own, *values, predicate(end.guard)))
    if sum(isa.facts(s).slots for s in code if isinstance(s, Instruction)) > MOST_SLOTS:
        return None
    branch = seen.cfg.blocks[seen.block_of_name[head]].stop - 1
    gone = frozenset(place for arm in arms for place in arm.gone)
    return _Select(branch, (*code, *_location(seen, head), op("bra.uni", Symbol(join))), gone)


def _location(seen: View, head: str) -> tuple[Location, ...]:
    """The ``.loc`` in force where a node ends, which the code of the arms has changed."""
    found = [s for s in seen.graph.nodes[head].code if isinstance(s, Location)]
    return tuple(found[-1:])


def _way(seen: View, start: str, sources: Mapping[str, Sequence[str]]) -> tuple[list[str], str]:
    """The nodes that straight lead on from ``start``, each from the one before alone, and what follows them."""
    found: list[str] = []
    name = start
    while len(sources[name]) == 1 and name not in found:
        end = seen.graph.nodes[name].end
        if not isinstance(end, Jump):
            break
        found.append(name)
        name = end.target
    return found, name


def _arm(seen: View, nodes: Sequence[str], names: Names) -> _Arm | None:
    """Pure instructions; None if there is anything else in the nodes. Their ``.loc`` stay for what follows."""
    renamed: dict[str, Register] = {}
    gone: set[int] = set()
    code: list[Statement] = []
    for name in nodes:
        block = seen.cfg.blocks[seen.block_of_name[name]]
        end = ending(seen.body, block)
        for place in block.statements():
            statement = seen.body[place]
            if isinstance(statement, Location):
                code.append(statement)
                continue
            gone.add(place)
            if statement is end or (isinstance(statement, Label) and _is_own(seen, statement, name)):
                continue
            if not isinstance(statement, Instruction) or not is_computation(statement):
                return None
            (result,) = effects.writes(statement)
            fresh = names.register(seen.types[result])
            code.append(isa.rename(statement, renamed, {result: fresh}))
            renamed[result] = fresh
    return _Arm(frozenset(gone), tuple(code), renamed)


def _is_own(seen: View, label: Label, block: str) -> bool:
    """Whether the label names the block for branches alone, and not for debug information."""
    return label.name == block or seen.names.made(label.name)
