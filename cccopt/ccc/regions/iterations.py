"""Where the iterations that the user declares independent begin and end, in marked code before any rewrite.

    for.begin        the thread reaches the loop
    body.begin       its next iteration begins; it ends at the next one, condition and increment included
    for.end          it is out of the loop
    grid.begin       the thread is one iteration, to its end

Markers of ``while`` and ``recursive`` do not count: their inner iterations keep their order. If an exit edge of the
loop passes no ``for.end`` (a ``return`` in an inlined function), the loop ends at the head of the edge's target.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cccopt.analysis import cfg as control_flow
from cccopt.analysis.loops import innermost, loops
from cccopt.ccc.function.annotations import Annotation, annotations_of
from cccopt.clauses import Kind
from cccopt.ptx.ir import Body, Marker

ENTER, ITERATE, LEAVE = "enter", "iterate", "leave"
VOUCHED = frozenset({"for", "for variable", "grid"})
"""The pragmas that declare iterations independent."""


@dataclass(frozen=True, slots=True)
class Boundary:
    """Before ``statement``, threads enter the marked loop ``region`` (`ENTER`), begin its next iteration (`ITERATE`)
    or have left the loop (`LEAVE`).
    """

    statement: int
    event: str
    region: int


def vouched(body: Body) -> dict[int, Annotation]:
    """The marked loops of a body, by region, whose iterations the user declares independent, except those that are
    switched off.
    """
    return {n: a for n, a in annotations_of(body).items() if a.kind in VOUCHED and a.mode != "off"}


def boundaries(body: Body) -> tuple[Boundary, ...]:
    """The boundaries of iterations of a body's marked loops, in file order (`ITERATE` last at one statement)."""
    found: list[Boundary] = []
    for region, annotation in vouched(body).items():
        of_region = [(i, s.event) for i, s in enumerate(body) if isinstance(s, Marker) and s.region == region]
        if annotation.kind == Kind.GRID:
            begins = [i for i, event in of_region if event == "grid.begin"]
            found += (Boundary(i, event, region) for i in begins for event in (ENTER, ITERATE))
            continue
        kinds = {"for.begin": ENTER, "body.begin": ITERATE, "for.end": LEAVE}
        found += (Boundary(i, kinds[event], region) for i, event in of_region if event in kinds)
        statements = {event: [i for i, e in of_region if e == event] for event in kinds}
        found += (
            Boundary(i, LEAVE, region)
            for i in _ways_out(body, statements["for.begin"], statements["body.begin"])
        )
    return tuple(sorted(found, key=lambda b: (b.statement, b.event == ITERATE)))


def _ways_out(body: Body, heads: list[int], bodies: list[int]) -> Iterator[int]:
    """The first statements of the targets of the loop's exit edges, except targets that lead back into a copy of its
    body, which was peeled off.
    """
    graph = control_flow.build(body)
    nest = loops(graph)
    begins = {graph.block_of(i) for i in heads}
    inside = {graph.block_of(i) for i in bodies}
    targets: set[int] = set()
    for block in inside:
        loop = innermost(nest, block)
        if loop is not None and not begins & loop.blocks:
            targets |= {outside for _, outside in loop.exits}
    for target in sorted(targets):
        if not inside & _reached(graph, target, begins):
            yield graph.blocks[target].start


def _reached(graph: control_flow.ControlFlowGraph, start: int, stops: set[int]) -> set[int]:
    """The blocks that ``start`` reaches without passing ``stops``."""
    found, todo = {start}, [start]
    while todo:
        block = todo.pop()
        todo += (b for b in graph.successors[block] if b not in found | stops)
        found |= set(graph.successors[block]) - stops
    return found
