"""Marked loops and paths, found in the control flow graph from the markers (DESIGN 3 and 4).

A *region* is a marked loop with the code that leads to it from its ``for.begin`` marker (nvcc's rotated guard, the
preheader) and the marked *paths* in it. nvcc may have duplicated a marked piece: each copy is a path of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from cccopt.analysis.loops import Loop
from cccopt.ccc.function.annotations import Annotation
from cccopt.ccc.function.graph import reachable
from cccopt.ccc.function.view import View
from cccopt.ccc.outcome import refusal
from cccopt.ccc.outcome.refusal import Refusal, refuse
from cccopt.ccc.regions.paths import Path, paths_of
from cccopt.ccc.regions.points import Point, points_of
from cccopt.clauses import Kind, MarkedShape
from cccopt.diagnostic import Diagnostic
from cccopt.text import Place


@dataclass(frozen=True, slots=True)
class Region:
    """A marked loop: ``select`` is the node that begins at its ``for.begin`` marker, ``preheader`` the nodes from
    there to the ``header``, ``nodes`` the loop's own. If the paths have a shape that cannot be deferred alone,
    ``paths`` is empty and ``unfit`` says why; ``points`` exist in any case.
    """

    annotation: Annotation
    select: str
    preheader: frozenset[str]
    header: str
    nodes: frozenset[str]
    paths: tuple[Path, ...]
    points: tuple[Point, ...] = ()
    unfit: Refusal | None = None

    def all_paths(self) -> tuple[Path, ...]:
        """All paths, outer before inner."""
        return tuple(p for path in self.paths for p in path.tree())

    def loops_around(self, path: Path) -> Mapping[str, frozenset[str]]:
        """The nodes, by header, of the loops whose iterations may separate ``path`` from its next run: the marked loop,
        and the loops around ``path`` whose inner iterations are tasks.
        """
        inner = {p.begin: p.nodes for p in self.all_paths() if p.is_loop and path.nodes < p.nodes}
        return {self.header: self.nodes, **inner}


@dataclass(frozen=True, slots=True)
class Found:
    """The regions of a function, inner loops first, and remarks about marked code that is in none."""

    regions: tuple[Region, ...]
    remarks: tuple[Diagnostic, ...]


def annotations_in_loops(view: View) -> frozenset[int]:
    """The region numbers of annotated paths that have a copy in a marked loop of this function."""
    plain = [a for a in view.annotations.values() if a.event == MarkedShape.LOOP and not a.variable]
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


def find(
    view: View,
    rewritten: frozenset[int] = frozenset(),
    elsewhere: frozenset[int] = frozenset(),
    *,
    with_unfit: bool = False,
) -> Found:
    """The regions of a function. ``rewritten`` annotations, whose loops have been rewritten, need no region; those in
    ``elsewhere`` have a copy in a marked loop of another function.

    Raises Refusal if marked code is not what its pragma promises. ``with_unfit`` accepts a loop whose paths have a
    shape that cannot be deferred.
    """
    marked = {a.region: loops_of(view, a) for a in view.annotations.values() if a.event == MarkedShape.LOOP}
    remarks: list[Diagnostic] = []
    regions: list[Region] = []
    for annotation in view.annotations.values():
        if annotation.event == MarkedShape.LOOP and not annotation.variable:
            for loop in marked[annotation.region]:
                region = _region(view, annotation, loop, marked, remarks, with_unfit)
                if region is not None:
                    regions.append(region)
    _check_in_loops(view, marked, regions, rewritten, elsewhere, remarks)
    return Found(tuple(sorted(regions, key=lambda r: len(r.nodes))), tuple(remarks))


def related(view: View, place: Place | None) -> frozenset[int]:
    """The annotations at ``place``, the marked loops that they mark or are in, and all annotations in these loops."""
    found = frozenset(number for number, a in view.annotations.items() if a.place == place is not None)
    blocks = {
        number: frozenset(view.cfg.block_of(i) for i in view.all_markers(number))
        for number in view.annotations
    }
    loops = {
        number: frozenset[int]().union(blocks[number], *(loop.blocks for loop in loops_of(view, a)))
        for number, a in view.annotations.items()
        if a.event == MarkedShape.LOOP and not a.variable
    }
    around = frozenset(n for n in loops for inner in found if not loops[n].isdisjoint(blocks[inner]))
    return found | around | {n for n in blocks for loop in around if not loops[loop].isdisjoint(blocks[n])}


def _body(annotation: Annotation) -> str:
    """The marker in an iteration of the loop. A recursion is a loop only after the compiler has made it one."""
    return "recursive.begin" if annotation.kind == Kind.RECURSIVE else "body.begin"


def loops_of(view: View, annotation: Annotation) -> list[Loop]:
    """The copies of a marked loop: the innermost loops around its body markers that do not contain its beginning."""
    recursive = annotation.kind == Kind.RECURSIVE
    begins = {view.cfg.block_of(i) for i in view.markers("for.begin", annotation.region)}
    others = (
        a
        for a in view.annotations.values()
        if recursive and a.event == MarkedShape.LOOP and a.kind != Kind.RECURSIVE
    )
    taken = {loop.header for other in others for loop in loops_of(view, other)}
    found: dict[int, Loop] = {}
    for index in view.markers(_body(annotation), annotation.region):
        loop = view.innermost(view.cfg.block_of(index))
        # An iteration that was peeled out of the loop is in another loop, or in none.
        if loop is not None and not begins & loop.blocks and loop.header not in taken:
            found[loop.header] = loop
    return list(found.values())


def _region(
    view: View,
    annotation: Annotation,
    loop: Loop,
    marked: Mapping[int, list[Loop]],
    remarks: list[Diagnostic],
    with_unfit: bool,
) -> Region | None:
    nodes = view.names_of(loop.blocks)
    header = view.name(loop.header)
    points, unfit = points_of(view, loop, marked), None
    try:
        paths = paths_of(view, loop, header, marked)
    except Refusal as problem:
        if not with_unfit or not points:
            raise
        paths, unfit = (), problem
    if not points and not annotation.alone:
        remarks.append(
            refusal.remark(
                "CCC054",
                "this marked loop contains no marked path of its own: it stays as it is",
                annotation.place,
                f"`{annotation.kind}` says only that iterations may be reordered, not which code diverges",
                "mark a divergent `if` in it with `#pragma ccc if`, or an inner loop with `#pragma ccc for variable` or"
                " `while`",
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
        raise refuse(refusal.LOOP_ENTRY, annotation.place)
    select = max(heads, key=lambda h: len(view.dominators.chain(h)))
    preheader = _preheader(view, view.name(select), header, nodes)
    others = (copy for copies in marked.values() for copy in copies if copy.header != loop.header)
    if any(view.name(other.header) in preheader for other in others):
        remarks.append(
            refusal.remark(
                "CCC051",
                "a copy of the marked loop that the compiler made stays as it is",
                annotation.place,
                "another copy runs before it, and only one of them can begin with a whole warp",
            )
        )
        return None
    if not view.balanced:
        raise refuse(refusal.SCOPES, annotation.place)
    nodes = view.with_own_traps(nodes, loop.header)
    return Region(annotation, view.name(select), preheader, header, nodes, paths, points, unfit)


def _preheader(view: View, select: str, header: str, loop: Collection[str]) -> frozenset[str]:
    """The nodes on the way from ``select`` to the loop, without going around a loop that contains both."""
    found: set[str] = set()
    work = [header]
    while work:
        new = {n for n in view.sources[work.pop()] if n != select and n not in loop} - found
        found |= new
        work += new
    nodes = {name: view.graph.nodes[name] for name in {select, *found}}
    return frozenset(reachable(nodes, [select]))


def _check_in_loops(
    view: View,
    marked: Mapping[int, list[Loop]],
    regions: list[Region],
    rewritten: frozenset[int],
    elsewhere: frozenset[int],
    remarks: list[Diagnostic],
) -> None:
    """Each annotation must have a copy in a marked loop; a copy outside of one stays as it is."""
    in_loops = {point.annotation.region for region in regions for point in region.points}
    for annotation in view.annotations.values():
        if annotation.region in rewritten:
            continue
        is_path = annotation.event == MarkedShape.PATH or annotation.variable
        if not is_path and not marked[annotation.region]:
            raise refuse(refusal.VANISHED, annotation.place)
        if not is_path or annotation.region in in_loops:
            continue
        if annotation.variable and not marked[annotation.region]:
            raise refuse(refusal.VANISHED, annotation.place)
        if annotation.region in elsewhere:
            remarks.append(_copy_outside(annotation))
            continue
        if _leaves_loop(view, annotation, marked):
            place = annotation.place
            notes = () if place is None else view.origins.jump_from(place)
            raise refuse(refusal.OTHER_EXIT, place, notes=notes)
        raise refuse(
            refusal.NO_LOOP,
            annotation.place,
            _noun(annotation),
            annotation.pragma,
        )
    points = [point.annotation for region in regions for point in region.points]
    for annotation in points:
        copies = sum(other.region == annotation.region for other in points)
        if len(view.markers(f"{annotation.event}.begin", annotation.region)) > copies:
            remarks.append(_copy_outside(annotation))


def _noun(annotation: Annotation) -> str:
    """What a pragma marks."""
    if annotation.kind == Kind.RECURSIVE:
        return "function"
    return "path" if annotation.event == MarkedShape.PATH else "loop"


def _leaves_loop(view: View, path: Annotation, marked: Mapping[int, list[Loop]]) -> bool:
    """Whether the path begins in the body of a marked loop and only leads out of it (``return``, ``break``)."""
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
        "CCC051", "a copy of the marked path outside the marked loop stays as it is", annotation.place
    )
