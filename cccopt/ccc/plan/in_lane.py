"""What a rewrite in the in-lane form needs to know of one region: its points, and which of them the warp serves first.

Nothing moves between lanes. A lane that comes to a point waits there, and the warp votes which point it serves next.
Point 0 is the header of the marked loop, where an iteration begins. Served is the first of these:

    a path at which `WAIT` lanes wait (with fewer it would be dear), later paths first
    point 0, if any lane waits there, then loops without a mark around points, outer ones first
    an inner loop, if any lane waits there, later ones first
    a path, if any lane waits there, later ones first

Lanes at an inner loop wait for those that can still come there: it is *flattened* into the marked loop. Lanes at a
path *wait* for `WAIT` of them, or until no other lane can go on. The headers of all loops around a point are points: a
lane that has waited in a loop would come there past the dispatcher, by a second way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cccopt.ccc.function.annotations import Annotation
from cccopt.ccc.function.view import View
from cccopt.ccc.outcome import refusal
from cccopt.ccc.outcome.refusal import refuse
from cccopt.ccc.regions.marked_loops import Region
from cccopt.ccc.regions.points import Point, marked_code
from cccopt.ptx.ir import Register

WAIT = 16
"""Lanes that a path waits for. On an H100 a path of 320 multiply-adds that 1, 4, 8 of 32 lanes take gained 2.3, 2.5,
1.7 by it.
"""


@dataclass(frozen=True)
class LanePoint:
    """One point: ``number`` is the state of lanes that wait there, and ``here`` tells in each lane whether it does. A
    loop around other points need have no ``annotation``. Lanes run ``chunk`` inner iterations of a marked ``loop``, by
    its nodes, before they vote again; more than one are counted in ``left``.
    """

    annotation: Annotation | None
    begin: str
    number: int
    here: Register
    loop: frozenset[str] = frozenset()
    chunk: int = 1
    left: Register | None = None

    @property
    def is_path(self) -> bool:
        """Whether lanes wait here for others."""
        return self.number > 0 and self.annotation is not None and not self.loop

    @property
    def phase(self) -> str:
        """The name in labels of what the warp does when it serves the point."""
        return f"serve_{self.number}"


@dataclass(frozen=True)
class InLanePlan:
    """One region in the in-lane form: point 0, and its other points in the order in which an iteration comes to them.

    ``lanes`` holds the mask of the lanes that vote. ``state`` is the number of the point at which a lane waits; larger
    numbers are those of the exits by which lanes leave. With ``ignored_chunk`` a clause `chunk` has no effect.
    """

    region: Region
    points: tuple[LanePoint, ...]
    lanes: Register
    state: Register
    ignored_chunk: bool

    def marked(self) -> tuple[tuple[LanePoint, Annotation], ...]:
        """The points with their annotations: the marked loop, and the paths and inner loops in it."""
        return tuple((point, point.annotation) for point in self.points if point.annotation is not None)

    def order(self) -> tuple[tuple[LanePoint, int], ...]:
        """What the warp asks for, one after the other: a point, and how many lanes must wait there to be served."""
        first, *others = self.points
        around = [point for point in others if point.annotation is None]
        loops = [point for point in reversed(others) if point.annotation is not None and point.loop]
        paths = [point for point in reversed(others) if point.is_path]
        any_lanes = ((point, 1) for point in (first, *around, *loops, *paths))
        return (*((point, WAIT) for point in paths), *any_lanes)


def make_in_lane_plan(view: View, region: Region) -> InLanePlan:
    """The plan of a region. Raises Refusal where a lane comes to no other point than the next iteration."""
    apart = {p.begin: p for p in reversed(region.points) if p.begin != region.header}
    if not apart:
        raise refuse(refusal.OTHER_ENTRY, region.points[0].annotation.place)
    names = view.names
    found = {region.header: region.annotation, **dict.fromkeys(_headers_around(view, region, apart))}
    found |= {p.begin: p.annotation for p in region.points if apart.get(p.begin) is p}

    def lane_point(number: int, begin: str, annotation: Annotation | None) -> LanePoint:
        here = names.register("pred")
        if annotation is None or not annotation.variable:
            return LanePoint(annotation, begin, number, here)
        loop = marked_code(view, Point(annotation, begin), region.nodes)
        # A lane that has waited inside the loop would come to its header past the dispatcher.
        chunk = 1 if any(other in loop for other in found if other != begin) else annotation.chunk
        left = names.register("b32") if chunk > 1 else None
        return LanePoint(annotation, begin, number, here, loop, chunk, left)

    points = tuple(lane_point(number, *point) for number, point in enumerate(found.items()))
    ignored = any(p.annotation is not None and p.chunk < p.annotation.chunk for p in points)
    return InLanePlan(region, points, names.register("b32"), names.register("b32"), ignored)


def _headers_around(view: View, region: Region, begins: Iterable[str]) -> Iterator[str]:
    """The headers of loops in the marked one around some of the nodes ``begins``, outer loops first."""
    blocks = view.blocks_of(begins)
    nest = view.blocks_of(region.nodes)
    return (view.name(x.header) for x in view.loops if x.blocks < nest and not blocks.isdisjoint(x.blocks))
