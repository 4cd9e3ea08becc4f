"""The marked paths of a loop, as its markers and the control flow graph show them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from cccopt.analysis import effects
from cccopt.analysis.loops import Loop
from cccopt.ccc.function.annotations import Annotation
from cccopt.ccc.function.graph import Jump, Leave, Node, reachable, targets
from cccopt.ccc.function.origins import Note
from cccopt.ccc.function.view import View
from cccopt.ccc.outcome import refusal
from cccopt.ccc.outcome.refusal import refuse
from cccopt.clauses import MarkedShape
from cccopt.ptx.ir import Instruction, Marker


@dataclass(frozen=True, slots=True)
class Path:
    """A divergent path: a task begins at node ``begin`` and ends when control reaches ``end``.

    ``nodes`` are all its blocks: the marked branch of an `if`, or the loop of a ``for variable``, where a task
    begins at the header. ``children`` are the marked paths inside it.
    """

    annotation: Annotation
    begin: str
    nodes: frozenset[str]
    end: str
    children: tuple[Path, ...] = ()

    @property
    def is_loop(self) -> bool:
        return self.annotation.variable

    def tree(self) -> tuple[Path, ...]:
        """The path and all paths inside it, outer first."""
        found, waiting = [], [self]
        while waiting:
            path = waiting.pop()
            found.append(path)
            waiting += reversed(path.children)
        return tuple(found)


def paths_of(view: View, loop: Loop, header: str, marked: Mapping[int, list[Loop]]) -> tuple[Path, ...]:
    """The marked paths of a loop, nested like their blocks, in the order in which an iteration reaches them."""
    variable = {
        inner.header: (view.annotations[number], inner)
        for number, copies in marked.items()
        if view.annotations[number].variable
        for inner in copies
        if inner.header in loop.blocks and inner.header != loop.header
    }
    plain = [copy for n, copies in marked.items() if not view.annotations[n].variable for copy in copies]
    found: list[Path] = []
    for annotation, inner in variable.values():
        if marked_for_around(view, inner.parent, plain) is not loop:
            continue
        _require_direct(view, annotation, inner.parent, loop, variable)
        found.append(_variable_path(view, annotation, inner, loop))
    for annotation in view.annotations.values():
        if annotation.event != MarkedShape.PATH:
            continue
        for index in view.markers("if.begin", annotation.region):
            block = view.cfg.block_of(index)
            number = view.loop_of.get(block)
            if block not in loop.blocks or marked_for_around(view, number, plain) is not loop:
                continue
            _require_direct(view, annotation, number, loop, variable)
            found.append(_if_path(view, annotation, view.name(block), loop))
    for path in found:
        _require_own_traps(view, path, loop)
    return _nest(view, found)


def marked_for_around(view: View, number: int | None, plain: list[Loop]) -> Loop | None:
    """The innermost loop marked ``for`` around the loop ``number`` of the function (itself included)."""
    by_header = {loop.header: loop for loop in plain}
    while number is not None:
        if view.loops[number].header in by_header:
            return by_header[view.loops[number].header]
        number = view.loops[number].parent
    return None


def _require_direct(
    view: View,
    annotation: Annotation,
    number: int | None,
    loop: Loop,
    variable: Mapping[int, tuple[Annotation, Loop]],
) -> None:
    """Require that the inner iterations of all loops between a path and its marked loop are tasks. Raises Refusal."""
    while number is not None and view.loops[number].header != loop.header:
        if view.loops[number].header not in variable:
            raise refuse(refusal.INNER_LOOP, annotation.place)
        number = view.loops[number].parent


def _require_own_traps(view: View, path: Path, loop: Loop) -> None:
    """Code that lanes of a path share with others before they trap may not read what differs between iterations: it
    has the values of the lane, not those of its task.
    """
    shared = view.blocks_of(view.with_traps(path.nodes) - path.nodes)
    if not shared:
        return
    read = frozenset[str]().union(*(view.liveness.live_in[block] for block in shared))
    statements = (view.body[i] for block in loop.blocks for i in view.cfg.blocks[block].statements())
    written = {name for s in statements if isinstance(s, Instruction) for name in effects.writes(s)}
    if read & written:
        raise refuse(
            refusal.OTHER_EXIT, path.annotation.place, notes=_jump(view, path.nodes, view.names_of(shared))
        )


def _variable_path(view: View, annotation: Annotation, inner: Loop, loop: Loop) -> Path:
    nodes = view.names_of(inner.blocks)
    exits = _exits(view, nodes)
    if len(exits) > 1:
        nodes |= _landings(view, inner, loop, exits)
        exits = _exits(view, nodes)
    if len(exits) != 1 or any(t not in view.block_of_name for t in exits):
        raise refuse(
            refusal.OTHER_EXIT,
            annotation.place,
            why="a `return` or `goto` inside the loop leads somewhere other than to its end, but its inner"
            " iterations may run later and in another lane",
            notes=_jump(view, nodes, exits),
        )
    return Path(annotation, view.name(inner.header), view.with_own_traps(nodes, inner.header), exits.pop())


def _exits(view: View, nodes: frozenset[str]) -> set[str]:
    """Where control continues after ``nodes``, except for lanes that trap."""
    ways = {t for n in nodes for t in targets(view.graph.nodes[n].end) if t not in nodes}
    return {forward(view, t) for t in ways - view.traps}


def _landings(view: View, inner: Loop, loop: Loop, exits: set[str]) -> frozenset[str]:
    """The blocks that lanes pass on different paths out of the loop ``inner`` (a `break`) before these paths meet in
    ``loop``: they belong to ``inner``. Empty if the paths do not meet there.
    """
    blocks = view.blocks_of(exits)
    if len(blocks) < len(exits):
        return frozenset()
    meet = view.post_dominators.nearest_common(blocks)
    if meet not in loop.blocks or meet == loop.header:
        return frozenset()
    found: set[int] = set()
    work = [block for block in blocks if block != meet]
    while work:
        block = work.pop()
        if block not in found and view.dominators.dominates(inner.header, block):
            found.add(block)
            work += [target for target in view.cfg.successors[block] if target != meet]
    return view.names_of(found)


def _if_path(view: View, annotation: Annotation, begin: str, loop: Loop) -> Path:
    graph, header = view.graph.nodes, view.name(loop.header)
    first = view.block_of_name[begin]
    inside: set[str] = set()
    ends: set[str] = set()
    others: set[str] = set()
    work = [begin]
    while work:
        name = work.pop()
        if name in inside:
            continue
        inside.add(name)
        if isinstance(graph[name].end, Leave):
            raise refuse(refusal.OTHER_EXIT, annotation.place, notes=_jump(view, inside, [name]))
        at_end = _holds(graph[name], "if.end", annotation.region)
        for target in targets(graph[name].end):
            if target in view.traps:
                continue
            block = view.block_of_name.get(target)
            if at_end:
                ends.add(forward(view, target))
            elif (
                block is None
                or target == header
                or block not in loop.blocks  # a jump out of the loop, or code that never ends
                or not view.dominators.dominates(first, block)
            ):
                others.add(target)
            else:
                work.append(target)
    stray = {t for t in others if forward(view, t) not in ends}
    if any(_reaches_end(view, t, begin, header, annotation.region) for t in stray):
        raise refuse(refusal.OTHER_ENTRY, annotation.place)
    if stray or len(ends) != 1 or ends & inside:
        raise refuse(refusal.OTHER_EXIT, annotation.place, notes=_jump(view, inside, stray or ends))
    return Path(annotation, begin, view.with_own_traps(frozenset(inside), first), ends.pop())


def _jump(view: View, nodes: Iterable[str], ways: Collection[str]) -> tuple[Note, ...]:
    """The source line at which control goes from ``nodes`` to one of ``ways``: the first line that shows a jump, or
    else the first line. A node without a block is a guarded return, found at the line of its branch.
    """
    found: list[Note] = []
    for name in sorted(nodes, key=lambda n: view.block_of_name.get(n, -1)):
        block = view.block_of_name.get(name)
        leads_to = {*targets(view.graph.nodes[name].end)}
        leaves = name in ways or any(t in ways or forward(view, t) in ways for t in leads_to)
        if block is not None and leaves:
            found += view.origins.jump(max(view.cfg.blocks[block].statements()))
    return tuple(sorted(found, key=lambda note: not note[0].startswith("this")))[:1]


def _reaches_end(view: View, start: str, begin: str, header: str, region: int) -> bool:
    """Whether ``start`` reaches an end marker of the path without passing its beginning or the header."""
    found = reachable(view.graph.nodes, [start], stop=(begin, header)) - {begin, header}
    return any(_holds(view.graph.nodes[n], "if.end", region) for n in found)


def _holds(node: Node, event: str, region: int) -> bool:
    return any(isinstance(s, Marker) and s.event == event and s.region == region for s in node.code)


def forward(view: View, name: str) -> str:
    """The first node from ``name`` onwards that does something, heads a loop or begins marked code."""
    seen: set[str] = set()
    while name not in seen and name not in view.headers:
        seen.add(name)
        node = view.graph.nodes[name]
        begins = any(isinstance(s, Marker) and s.event.endswith(".begin") for s in node.code)
        if begins or any(isinstance(s, Instruction) for s in node.code) or not isinstance(node.end, Jump):
            break
        name = node.end.target
    return name


def _nest(view: View, flat: list[Path]) -> tuple[Path, ...]:
    """``flat`` as a forest by containment, siblings in reverse postorder."""
    rank = {block: position for position, block in enumerate(view.cfg.reverse_postorder)}
    ordered = sorted(flat, key=lambda p: (len(p.nodes), rank[view.block_of_name[p.begin]]))
    nested: list[Path] = []
    for path in ordered:
        inner = tuple(p for p in nested if p.nodes <= path.nodes)
        if any(p.nodes & path.nodes and p not in inner for p in nested):
            raise refuse(refusal.OTHER_ENTRY, path.annotation.place)
        nested = [p for p in nested if p not in inner]
        children = tuple(sorted(inner, key=lambda p: rank[view.block_of_name[p.begin]]))
        nested.append(replace(path, children=children))
    return tuple(sorted(nested, key=lambda p: rank[view.block_of_name[p.begin]]))
