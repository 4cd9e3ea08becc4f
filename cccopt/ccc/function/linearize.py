"""Turn a graph of blocks back into a list of statements: thread jumps, lay out blocks, write branches.

A block that does nothing but jump is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from cccopt.ccc.function.graph import (
    UNIFORM,
    Branch,
    End,
    Graph,
    IndexedJump,
    Jump,
    Leave,
    Node,
    Nodes,
    retarget,
    targets,
)
from cccopt.ccc.function.layout import layout
from cccopt.ccc.function.names import Names
from cccopt.ptx.ir import (
    Body,
    BranchTargets,
    Instruction,
    Label,
    Location,
    Marker,
    Pragma,
    Statement,
    Symbol,
)

_Place: TypeAlias = tuple[int, int, int]
"""The file, line and column of a location."""


def to_body(graph: Graph, names: Names) -> Body:
    """The statements of the nodes that the entry reaches, with fall-throughs where possible and overhead bracketed."""
    nodes = _thread_jumps(graph)
    order = layout(graph.entry, nodes)
    writer = _Writer(nodes[name] for name in order)
    referenced: set[str] = set()
    for position, name in enumerate(order):
        following = order[position + 1] if position + 1 < len(order) else None
        referenced |= set(_printed_targets(nodes[name].end, following))
    for position, name in enumerate(order):
        following = order[position + 1] if position + 1 < len(order) else None
        node = nodes[name]
        # Debug information may name any of the program's own labels.
        if node.phase or name in referenced or not names.made(name):
            writer.label(name)
        writer.own(node.overhead, node.code)
        _write_end(writer, node, following, names)
    writer.finish()
    return (*graph.declarations, *writer.out)


class _Writer:
    """Appends statements, opening and closing overhead brackets where they change."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        locations = (s for node in nodes for s in node.code if isinstance(s, Location))
        self._calls = _calls(locations)
        self.out: list[Statement] = []
        self._written: set[_Place] = set()
        self._overhead: int | None = None
        self._location: Location | None = None

    def label(self, name: str) -> None:
        self.out.append(Label(name))

    def own(self, overhead: int | None, statements: Iterable[Statement]) -> None:
        for statement in statements:
            if isinstance(statement, Location):
                if statement != self._location:
                    self._append_location(statement)
                continue
            if overhead != self._overhead:
                self._bracket(overhead)
            self.out.append(statement)

    def _append_location(self, location: Location) -> None:
        """Append a `.loc`; ptxas requires the `.loc` of the call that it was inlined at before it."""
        call = location.inlined_at
        if call is not None and call not in self._written:
            self._append_location(self._calls.get(call, Location(*call)))
        self._written.add(_place(location))
        self._location = location
        self.out.append(location)

    def _bracket(self, overhead: int | None) -> None:
        if self._overhead is not None:
            self.out.append(Marker("overhead.end", self._overhead))
        if overhead is not None:
            self.out.append(Marker("overhead.begin", overhead))
        self._overhead = overhead

    def finish(self) -> None:
        self._bracket(None)


def _calls(locations: Iterable[Location]) -> Mapping[_Place, Location]:
    """For each place, a location there whose own chain of calls ends. Places of recursive templates may be inlined at
    each other: only some of their locations then lead out of the recursion.
    """
    unique = dict.fromkeys(locations)
    places = {_place(location) for location in unique}
    inlined: dict[_Place, list[Location]] = {}
    for location in unique:
        if location.inlined_at in places:
            inlined.setdefault(location.inlined_at, []).append(location)
    found: dict[_Place, Location] = {}
    work = [location for location in unique if location.inlined_at not in places]
    for location in work:
        place = _place(location)
        if place not in found:
            found[place] = location
            work += inlined.get(place, ())
    return found


def _place(location: Location) -> _Place:
    return location.file, location.line, location.column


def _write_end(writer: _Writer, node: Node, following: str | None, names: Names) -> None:
    match node.end:
        case Jump(target):
            if target != following:
                # If blocks fell through here in the source, a jump that the layout needs is ours.
                writer.own(node.overhead if node.overhead is not None else 0, [_bra(target, UNIFORM)])
        case Branch(guard, taken, otherwise, opcode):
            if taken == following:
                guard, taken, otherwise = replace(guard, negated=not guard.negated), otherwise, taken
            writer.own(node.overhead, [replace(_bra(taken, opcode), guard=guard)])
            if otherwise != following:
                writer.own(node.overhead if node.overhead is not None else 0, [_bra(otherwise, UNIFORM)])
        case IndexedJump(opcode, index, goals):
            label = names.label("targets")
            writer.own(
                node.overhead,
                [BranchTargets(label, ".branchtargets", goals), Instruction(opcode, (index, Symbol(label)))],
            )
        case Leave(instruction):
            writer.own(node.overhead, [instruction if instruction is not None else Instruction("ret")])


def _bra(target: str, opcode: str) -> Instruction:
    return Instruction(opcode, (Symbol(target),))


def _printed_targets(end: End, following: str | None) -> Iterator[str]:
    if isinstance(end, IndexedJump):
        yield from end.targets
    else:
        yield from (name for name in targets(end) if name != following)


def _does_nothing(node: Node) -> bool:
    return not node.phase and all(isinstance(s, Location | Pragma) for s in node.code)


def _thread_jumps(graph: Graph) -> Mapping[str, Node]:
    """The nodes with jumps to empty nodes redirected to where those lead, and branches with one target made jumps."""

    def final(name: str) -> str:
        seen = {name}
        node = graph.nodes[name]
        while _does_nothing(node) and isinstance(node.end, Jump) and node.end.target not in seen:
            seen.add(node.end.target)
            node = graph.nodes[node.end.target]
        return node.name

    threaded: Nodes = {}
    for node in graph.nodes.values():
        end = retarget(node.end, final)
        if isinstance(end, Branch) and end.taken == end.otherwise:
            end = Jump(end.taken)
        threaded[node.name] = replace(node, end=end)
    return threaded
