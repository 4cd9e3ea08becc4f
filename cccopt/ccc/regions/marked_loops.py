"""Marked loops and paths, found in the control flow graph from the markers (DESIGN 3 and 4).

A *region* is a marked loop with the code that leads to it from its ``for.begin`` marker (nvcc's rotated guard, the
preheader) and the marked *paths* in it. nvcc may have duplicated a marked piece: each copy is a path of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from cccopt.analysis.loops import Loop
from cccopt.ccc.function.annotations import Annotation
from cccopt.ccc.function.graph import Jump, Leave, Node, balanced, reachable, targets
from cccopt.ccc.function.view import View
from cccopt.ccc.outcome import refusal
from cccopt.ccc.outcome.refusal import refuse
from cccopt.diagnostic import Diagnostic
from cccopt.ptx.ir import Instruction, Marker


@dataclass(frozen=True, slots=True)
class Path:
    """A divergent path: a task begins at node ``begin`` and ends where control goes on at ``end``.

    ``nodes`` are all its blocks. Of an `if` it is the marked branch, of a ``for variable`` the loop, whose task
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


@dataclass(frozen=True, slots=True)
class Region:
    """A marked loop: ``select`` is the node that begins at its ``for.begin`` marker, ``preheader`` the nodes from
    there to the ``header``, ``nodes`` the loop's own.
    """

    annotation: Annotation
    select: str
    preheader: frozenset[str]
    header: str
    nodes: frozenset[str]
    paths: tuple[Path, ...]

    def all_paths(self) -> tuple[Path, ...]:
        """All paths, outer before inner."""
        return tuple(p for path in self.paths for p in path.tree())

    def loops_around(self, path: Path) -> Mapping[str, frozenset[str]]:
        """The nodes, by header, of the loops whose trips may part ``path`` from its next run: the marked one, and those
        whose trips are tasks.
        """
        inner = {p.begin: p.nodes for p in self.all_paths() if p.is_loop and path.nodes < p.nodes}
        return {self.header: self.nodes, **inner}


@dataclass(frozen=True, slots=True)
class Found:
    """The regions of a function, inner loops first, and what there is to say about markers that are in none."""

    regions: tuple[Region, ...]
    remarks: tuple[Diagnostic, ...]


def annotations_in_loops(view: View) -> frozenset[int]:
    """The annotated paths of which a copy stands in a marked loop of this function."""
    plain = [a for a in view.annotations.values() if a.event == "for" and not a.variable]
    around = [loop for annotation in plain for loop in loops_of(view, annotation)]
    begins = {
        a.region: view.markers(_body(a) if a.variable else "if.begin", a.region)
        for a in view.annotations.values()
        if a not in plain
    }
    return frozenset(
        region
        for region, found in begins.items()
        if any(view.cfg.block_of(i) in loop.blocks for i in found for loop in around)
    )


def find(view: View, settled: frozenset[int] = frozenset(), elsewhere: frozenset[int] = frozenset()) -> Found:
    """The regions of a function, but for ``settled`` annotations, which have been rewritten; those in ``elsewhere``
    have a copy in a marked loop of another function.

    Raises Refusal where a marked piece is not what its pragma promises.
    """
    marked = {a.region: loops_of(view, a) for a in view.annotations.values() if a.event == "for"}
    remarks: list[Diagnostic] = []
    regions: list[Region] = []
    for annotation in view.annotations.values():
        if annotation.event == "for" and not annotation.variable:
            for loop in marked[annotation.region]:
                region = _region(view, annotation, loop, marked, remarks)
                if region is not None:
                    regions.append(region)
    _check_placed(view, marked, regions, settled, elsewhere, remarks)
    return Found(tuple(sorted(regions, key=lambda r: len(r.nodes))), tuple(remarks))


def _body(annotation: Annotation) -> str:
    """The marker in a trip of the loop. A recursion is a loop only once the compiler has made one of it."""
    return "recursive.begin" if annotation.kind == "recursive" else "body.begin"


def loops_of(view: View, annotation: Annotation) -> list[Loop]:
    """The copies of a marked loop: the innermost loops around its body markers that it begins outside of."""
    recursive = annotation.kind == "recursive"
    begins = {view.cfg.block_of(i) for i in view.markers("for.begin", annotation.region)}
    others = (
        a for a in view.annotations.values() if recursive and a.event == "for" and a.kind != "recursive"
    )
    taken = {loop.header for other in others for loop in loops_of(view, other)}
    found: dict[int, Loop] = {}
    for index in view.markers(_body(annotation), annotation.region):
        loop = view.innermost(view.cfg.block_of(index))
        # A trip that was peeled out of the loop has another loop around it, or none.
        if loop is not None and not begins & loop.blocks and loop.header not in taken:
            found[loop.header] = loop
    return list(found.values())


def _region(
    view: View,
    annotation: Annotation,
    loop: Loop,
    marked: Mapping[int, list[Loop]],
    remarks: list[Diagnostic],
) -> Region | None:
    nodes = view.names_of(loop.blocks)
    header = view.name(loop.header)
    paths = _paths(view, loop, header, marked)
    if not paths:
        remarks.append(
            refusal.remark(
                "CCC054", "no marked path is in this marked loop: it stays as it is", annotation.place
            )
        )
        return None
    inner = (
        view.annotations[number]
        for number, copies in marked.items()
        if not view.annotations[number].variable
        for copy in copies
        if copy.header in loop.blocks and copy.header != loop.header
    )
    for inside in inner:
        raise refuse(refusal.NESTED_LOOP, inside.place)
    if any(a in loop.blocks or b in loop.blocks for a, b in view.irreducible):
        raise refuse(refusal.IRREDUCIBLE, annotation.place)
    heads = [view.cfg.block_of(i) for i in view.markers("for.begin", annotation.region)]
    heads = [h for h in heads if view.dominators.dominates(h, loop.header)]
    if not heads:
        raise refuse(refusal.OTHER_ENTRY, annotation.place)
    select = max(heads, key=lambda h: len(view.dominators.chain(h)))
    preheader = _preheader(view, view.name(select), header, nodes)
    others = (copy for copies in marked.values() for copy in copies if copy.header != loop.header)
    if any(view.name(other.header) in preheader for other in others):
        remarks.append(
            refusal.remark(
                "CCC051",
                "a copy of the marked loop that the compiler made stays as it is",
                annotation.place,
                "another copy runs ahead of it, and only one of them can begin with a whole warp",
            )
        )
        return None
    for name in (*nodes, *preheader):
        if not balanced(view.graph.nodes[name]):
            raise refuse(refusal.SCOPES, annotation.place)
    return Region(annotation, view.name(select), preheader, header, nodes, paths)


def _preheader(view: View, select: str, header: str, loop: Collection[str]) -> frozenset[str]:
    """The nodes on the way from ``select`` to the loop, once: a loop around both does not count."""
    ahead: set[str] = set()
    work = [header]
    while work:
        new = {n for n in view.sources[work.pop()] if n != select and n not in loop} - ahead
        ahead |= new
        work += new
    nodes = {name: view.graph.nodes[name] for name in {select, *ahead}}
    return frozenset(reachable(nodes, [select]))


def _paths(view: View, loop: Loop, header: str, marked: Mapping[int, list[Loop]]) -> tuple[Path, ...]:
    """The marked paths of a loop, nested as their blocks are, in the order in which an iteration meets them."""
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
        if _home(view, inner.parent, plain) is not loop:
            continue
        _require_direct(view, annotation, inner.parent, loop, variable)
        found.append(_variable_path(view, annotation, inner, loop))
    for annotation in view.annotations.values():
        if annotation.event != "if":
            continue
        for index in view.markers("if.begin", annotation.region):
            block = view.cfg.block_of(index)
            place = view.loop_of.get(block)
            if block not in loop.blocks or _home(view, place, plain) is not loop:
                continue
            _require_direct(view, annotation, place, loop, variable)
            found.append(_if_path(view, annotation, view.name(block), header))
    return _nest(view, found)


def _home(view: View, place: int | None, plain: list[Loop]) -> Loop | None:
    """The innermost loop marked ``for`` around the loop at ``place`` (itself included)."""
    by_header = {loop.header: loop for loop in plain}
    while place is not None:
        if view.loops[place].header in by_header:
            return by_header[view.loops[place].header]
        place = view.loops[place].parent
    return None


def _require_direct(
    view: View,
    annotation: Annotation,
    place: int | None,
    loop: Loop,
    variable: Mapping[int, tuple[Annotation, Loop]],
) -> None:
    """Between a path and the marked loop it belongs to there may only be loops whose trips are tasks themselves."""
    while place is not None and view.loops[place].header != loop.header:
        if view.loops[place].header not in variable:
            raise refuse(refusal.INNER_LOOP, annotation.place)
        place = view.loops[place].parent


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
            why="a `return` or `goto` inside the loop leads to another place than its end, but its trips may run later"
            " and in another lane",
        )
    return Path(annotation, view.name(inner.header), nodes, exits.pop())


def _exits(view: View, nodes: frozenset[str]) -> set[str]:
    """Where control goes on behind ``nodes``, lanes that trap aside."""
    ways = {t for n in nodes for t in targets(view.graph.nodes[n].end) if t not in nodes}
    return {forward(view, t) for t in ways - view.traps}


def _landings(view: View, inner: Loop, loop: Loop, exits: set[str]) -> frozenset[str]:
    """The blocks that lanes pass on the different ways out of the loop ``inner`` (a `break`) before these meet in
    ``loop``: they belong to it. None where the ways do not meet there.
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


def _if_path(view: View, annotation: Annotation, begin: str, header: str) -> Path:
    graph = view.graph.nodes
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
            raise refuse(refusal.OTHER_EXIT, annotation.place)
        at_end = _holds(graph[name], "if.end", annotation.region)
        for target in targets(graph[name].end):
            if target in view.traps:
                continue
            block = view.block_of_name.get(target)
            if at_end:
                ends.add(forward(view, target))
            elif block is None or target == header or not view.dominators.dominates(first, block):
                others.add(target)
            else:
                work.append(target)
    stray = {t for t in others if forward(view, t) not in ends}
    if any(_reaches_end(view, t, begin, header, annotation.region) for t in stray):
        raise refuse(refusal.OTHER_ENTRY, annotation.place)
    if stray or len(ends) != 1 or ends & inside:
        raise refuse(refusal.OTHER_EXIT, annotation.place)
    return Path(annotation, begin, frozenset(inside), ends.pop())


def _reaches_end(view: View, start: str, begin: str, header: str, region: int) -> bool:
    """Whether an end marker of the path can be reached without going through its beginning."""
    found = reachable(view.graph.nodes, [start], stop=(begin, header)) - {begin, header}
    return any(_holds(view.graph.nodes[n], "if.end", region) for n in found)


def _holds(node: Node, event: str, region: int) -> bool:
    return any(isinstance(s, Marker) and s.event == event and s.region == region for s in node.code)


def forward(view: View, name: str) -> str:
    """The first node from ``name`` on that does something, heads a loop, or begins a marked piece."""
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
    rank = {block: place for place, block in enumerate(view.cfg.reverse_postorder)}
    ordered = sorted(flat, key=lambda p: (len(p.nodes), rank[view.block_of_name[p.begin]]))
    placed: list[Path] = []
    for path in ordered:
        inner = tuple(p for p in placed if p.nodes <= path.nodes)
        if any(p.nodes & path.nodes and p not in inner for p in placed):
            raise refuse(refusal.OTHER_ENTRY, path.annotation.place)
        placed = [p for p in placed if p not in inner]
        children = tuple(sorted(inner, key=lambda p: rank[view.block_of_name[p.begin]]))
        placed.append(replace(path, children=children))
    return tuple(sorted(placed, key=lambda p: rank[view.block_of_name[p.begin]]))


def _check_placed(
    view: View,
    marked: Mapping[int, list[Loop]],
    regions: list[Region],
    settled: frozenset[int],
    elsewhere: frozenset[int],
    remarks: list[Diagnostic],
) -> None:
    """Each annotation must have a copy in a marked loop; a copy outside of one stays as it is."""
    in_loops = {p.annotation.region for region in regions for p in region.all_paths()}
    for annotation in view.annotations.values():
        if annotation.region in settled:
            continue
        is_path = annotation.event == "if" or annotation.variable
        if not is_path and not marked[annotation.region]:
            raise refuse(refusal.VANISHED, annotation.place, "loop")
        if not is_path or annotation.region in in_loops:
            continue
        if annotation.variable and not marked[annotation.region]:
            raise refuse(refusal.VANISHED, annotation.place, "loop")
        if annotation.region in elsewhere:
            remarks.append(_copy_outside(annotation))
            continue
        if _leaves_loop(view, annotation, marked):
            raise refuse(refusal.OTHER_EXIT, annotation.place)
        raise refuse(
            refusal.NO_LOOP, annotation.place, f"`{annotation.event}`" if annotation.event == "if" else "loop"
        )
    for path in (p for region in regions for p in region.all_paths()):
        if len(view.markers(f"{path.annotation.event}.begin", path.annotation.region)) > sum(
            p.annotation.region == path.annotation.region for region in regions for p in region.all_paths()
        ):
            remarks.append(_copy_outside(path.annotation))


def _leaves_loop(view: View, path: Annotation, marked: Mapping[int, list[Loop]]) -> bool:
    """Whether the path begins in the body of a marked loop and leads out of it alone (``return``, ``break``)."""
    dominates = view.dominators.dominates
    begins = [view.cfg.block_of(i) for i in view.markers(f"{path.event}.begin", path.region)]

    def blocks(event: str, region: int) -> list[int]:
        return [view.cfg.block_of(i) for i in view.markers(event, region)]

    return bool(begins) and all(
        any(
            any(dominates(body, begin) for body in blocks(_body(view.annotations[region]), region))
            and not any(dominates(end, begin) for end in blocks("for.end", region))
            for region, loops in marked.items()
            if loops
        )
        for begin in begins
    )


def _copy_outside(annotation: Annotation) -> Diagnostic:
    return refusal.remark(
        "CCC051", "a copy of the marked path outside of the marked loop stays as it is", annotation.place
    )
