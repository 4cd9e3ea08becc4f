"""Branches around a few pure instructions before marked paths become selects: if-conversion.

        @%p1 bra  T;                        (the arms, each into registers of its own)
        neg.f32   %f2, %f1;                 neg.f32   %f3, %f1;
        bra       J;                  ->    add.f32   %f4, %f1, %f1;
    T:  add.f32   %f2, %f1, %f1;            selp.b32  %f2, %f4, %f3, %p1;
    J:

Tasks can compute a value with one definition again, or only for themselves (`cccopt.ccc.plan.compression`,
`cccopt.ccc.plan.sinking`); after a branch it has two. The special cases of functions like `atan2f` are such branches.

The branches that are converted are in a marked loop's iteration, outside its paths and before one of them. Arms are
straight-line code of pure instructions on registers, at most `MOST_SLOTS` together with the selects; inner branches are
converted first. PTX arithmetic does not trap, so it is harmless that lanes run both arms.

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
from cccopt.ccc.function.view import View, view_of
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
"""The most issue slots of both arms and the selects; a warp whose lanes diverge there runs both arms anyway."""

SELECTED = (16, 32, 64)
"""The widths in bits of what ``selp`` selects."""


@dataclass(frozen=True, slots=True)
class _Arm:
    """What a lane runs on one way from a branch to its join: the statements of the body that are removed, their code
    with renamed results, and the new registers by their old names.
    """

    gone: frozenset[int] = frozenset()
    code: tuple[Statement, ...] = ()
    renamed: Mapping[str, Register] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Select:
    """A branch, the statement with index ``statement``, that is replaced by ``code``, together with the statements
    ``gone`` of its arms.
    """

    statement: int
    code: tuple[Statement, ...]
    gone: frozenset[int]


def run(module: Module, options: Options) -> PassResult:
    """Convert the branches before the paths of all marked functions; EXACT."""
    return PassResult(each_marked(module, options, _converted))


def _converted(module: Module, function: Function, options: Options) -> Function:
    body = function.body or ()
    names = Names(body, isa.register_types(function), prefix="selected")
    while True:
        function = replace(function, body=(*names.declarations(), *body))
        view = view_of(module, function)
        try:
            regions = find(view, frozenset(view.annotations)).regions
        except Refusal:
            return function  # collect-contexts reports it
        found = _selects(view, regions, names)
        if not found:
            return function
        body = _replaced(view, body, found)


def _replaced(view: View, body: Body, found: Sequence[_Select]) -> Body:
    """The body, all of whose statements are in the view, without the branches."""
    code = {id(view.body[select.statement]): select.code for select in found}
    gone = {id(view.body[i]) for select in found for i in select.gone}
    return tuple(new for old in body if id(old) not in gone for new in code.get(id(old), (old,)))


def _selects(view: View, regions: Sequence[Region], names: Names) -> list[_Select]:
    """Branches that can be converted together: each arm has one head."""
    sources = predecessors(view.graph.nodes)
    before = frozenset[str]().union(*(_before_paths(view, region) for region in regions))
    ends = ((name, view.graph.nodes[name].end) for name in sorted(before))
    found = (
        _select(view, name, end, before, sources, names) for name, end in ends if isinstance(end, Branch)
    )
    return [select for select in found if select is not None]


def _before_paths(view: View, region: Region) -> frozenset[str]:
    """The nodes of an iteration that are in no path and lead to one."""
    inside = {name for path in region.paths for name in path.nodes}
    nodes = view.graph.nodes
    iteration = {name: nodes[name] for name in region.nodes if name != region.header}
    begins = {path.begin for path in region.paths}
    return frozenset({region.header, *leading(iteration, begins)} - inside)


def _select(
    view: View,
    head: str,
    end: Branch,
    before: Collection[str],
    sources: Mapping[str, Sequence[str]],
    names: Names,
) -> _Select | None:
    """Both arms of the branch that ends ``head``, and selects; None if that is not possible, or too much."""
    ways = [_way(view, start, sources) for start in (end.taken, end.otherwise)]
    joins = {way[1] for way in ways}
    if end.taken == end.otherwise or len(joins) > 1:
        return None
    (join,) = joins
    if join not in before or join == head or view.names.made(join):
        return None
    arms = [arm for blocks, _ in ways if (arm := _arm(view, blocks, names)) is not None]
    if len(arms) < len(ways):
        return None
    taken, otherwise = (arm.renamed for arm in arms)
    live = view.liveness.live_in[view.block_of_name[join]]
    code = [statement for arm in arms for statement in arm.code]
    for name in sorted((taken.keys() | otherwise.keys()) & live):
        bits = 0 if view.types[name] == "pred" else isa.width(view.types[name])
        if bits not in SELECTED:
            return None
        own = Register(name)
        values = taken.get(name, own), otherwise.get(name, own)
        code.append(op(f"selp.b{bits}", own, *values, predicate(end.guard)))
    if sum(isa.facts(s).slots for s in code if isinstance(s, Instruction)) > MOST_SLOTS:
        return None
    branch = view.cfg.blocks[view.block_of_name[head]].stop - 1
    gone = frozenset(index for arm in arms for index in arm.gone)
    return _Select(branch, (*code, *_location(view, head), op("bra.uni", Symbol(join))), gone)


def _location(view: View, head: str) -> tuple[Location, ...]:
    """The ``.loc`` in force at the end of a node, which the code of the arms has changed."""
    found = [s for s in view.graph.nodes[head].code if isinstance(s, Location)]
    return tuple(found[-1:])


def _way(view: View, start: str, sources: Mapping[str, Sequence[str]]) -> tuple[list[str], str]:
    """The chain of nodes from ``start``, each with the one before as its only predecessor, and what follows it."""
    found: list[str] = []
    name = start
    while len(sources[name]) == 1 and name not in found:
        end = view.graph.nodes[name].end
        if not isinstance(end, Jump):
            break
        found.append(name)
        name = end.target
    return found, name


def _arm(view: View, nodes: Sequence[str], names: Names) -> _Arm | None:
    """The arm, of pure instructions; None if the nodes have others. Each ``.loc`` is kept for what follows."""
    renamed: dict[str, Register] = {}
    gone: set[int] = set()
    code: list[Statement] = []
    for name in nodes:
        block = view.cfg.blocks[view.block_of_name[name]]
        end = ending(view.body, block)
        for index in block.statements():
            statement = view.body[index]
            if isinstance(statement, Location):
                code.append(statement)
                continue
            gone.add(index)
            if statement is end or (isinstance(statement, Label) and _is_own(view, statement, name)):
                continue
            if not isinstance(statement, Instruction) or not is_computation(statement):
                return None
            (result,) = effects.writes(statement)
            fresh = names.register(view.types[result])
            code.append(isa.rename(statement, renamed, {result: fresh}))
            renamed[result] = fresh
    return _Arm(frozenset(gone), tuple(code), renamed)


def _is_own(view: View, label: Label, block: str) -> bool:
    """Whether the label names the block only for branches, and not for debug information."""
    return label.name == block or view.names.made(label.name)
