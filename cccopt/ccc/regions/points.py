"""Resumption points: where an iteration of a marked loop may stop and wait, to be resumed in another lane.

A *token* is one iteration. It reaches a point at the entry of a marked path, and at the header of a marked inner loop
whenever one of its inner iterations starts:

        for (i ...) {                   A
          if (c) {  <- point 1          P
            ...
          }                             C
          while (d) {  <- point 2       W
            ...
          }
        }                               D

A *segment* is the code from a point to the next one or to the end of the iteration: P C for point 1; W for point 2,
and D if the loop ends there. Unlike a path (`cccopt.ccc.regions.paths`), a segment may end anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cccopt.analysis.loops import Loop
from cccopt.ccc.function.annotations import Annotation
from cccopt.ccc.function.view import View
from cccopt.ccc.regions.paths import marked_for_around


@dataclass(frozen=True, slots=True)
class Point:
    """The entry ``begin`` of one copy of the marked path of ``annotation``, or the header of its loop."""

    annotation: Annotation
    begin: str


def points_of(view: View, loop: Loop, marked: Mapping[int, list[Loop]]) -> tuple[Point, ...]:
    """The points of a marked loop in the order in which an iteration reaches them (reverse postorder)."""
    plain = [copy for n, copies in marked.items() if not view.annotations[n].variable for copy in copies]
    found = [
        Point(view.annotations[number], view.name(inner.header))
        for number, copies in marked.items()
        if view.annotations[number].variable
        for inner in copies
        if inner.header in loop.blocks
        and inner.header != loop.header
        and marked_for_around(view, inner.parent, plain) is loop
    ]
    for annotation in view.annotations.values():
        if annotation.event == "if":
            blocks = (view.cfg.block_of(index) for index in view.markers("if.begin", annotation.region))
            found += [
                Point(annotation, view.name(block))
                for block in blocks
                if block in loop.blocks and marked_for_around(view, view.loop_of.get(block), plain) is loop
            ]
    rank = {block: place for place, block in enumerate(view.cfg.reverse_postorder)}
    return tuple(sorted(found, key=lambda point: rank[view.block_of_name[point.begin]]))


def marked_code(view: View, point: Point, loop: frozenset[str]) -> frozenset[str]:
    """The nodes, in the ``loop`` around it, of the marked path or inner loop of a point: for a path, those that lanes
    reach only through its entry.
    """
    begin = view.block_of_name[point.begin]
    if point.annotation.variable:
        return frozenset[str]().union(*(view.names_of(x.blocks) for x in view.loops if x.header == begin))
    blocks = view.blocks_of(loop)
    return view.names_of(b for b in blocks if view.dominators.dominates(begin, b))
