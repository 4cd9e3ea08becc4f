"""What a rewrite in the in-lane form needs to know about a region: its points, and which of them are served first.

Nothing moves between lanes. A lane that reaches a point waits there, and the warp votes on the point to serve next.
Point 0 is the header of the marked loop, where an iteration begins. A path, or expensive code after the inner loop, is
served early if `WAIT` lanes wait there. Otherwise, the warp serves the first of these at which any lane waits:

    flattened   point 0, then loops without a mark around points, outer ones first
                an inner loop, later ones first
                what follows the inner loop, then a path, later ones first
    in step     whatever comes first in the program; the header of a loop comes after all that is in the loop

Lanes at a path *wait* until `WAIT` of them are there, or until no other lane can go on. If the marked loop is
*flattened*, a lane that has ended an inner loop begins its next iteration while others still run theirs. The rest of an
iteration is then run by few lanes at a time, and lanes in different iterations no longer access memory side by side:
that pays off if the rest is short (`LITTLE`). Otherwise, lanes begin their iterations together.

Marked code at which waiting gains nothing runs in place, in the lanes that come there:

    paths, and loops in other inner loops, that are cheaper than a visit to the dispatcher, unless nothing else is
    marked; a path in an inner loop takes two visits, because its lanes come back to the loop
    if lanes begin their iterations together, loops without paths at which lanes wait: the last lane to leave one
    holds up the others whether they vote or not

The headers of all loops around a point are points: otherwise, a lane that has waited in a loop would reach its header
by a second way, past the dispatcher.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from math import inf

from cccopt.analysis.cost import Costs
from cccopt.ccc.function.annotations import Annotation
from cccopt.ccc.function.graph import reachable, targets
from cccopt.ccc.function.view import View
from cccopt.ccc.outcome import refusal
from cccopt.ccc.outcome.refusal import refuse
from cccopt.ccc.plan.chunks import IN_LANE, chunk_of
from cccopt.ccc.regions.marked_loops import Region
from cccopt.ccc.regions.points import Point, marked_code
from cccopt.ptx.ir import Register

WAIT = 16
"""Lanes for which an expensive point waits. On an H100, a path of 320 multiply-adds that 1, 4, 8 of 32 lanes take
gained 2.3, 2.5, 1.7 with it.
"""

LITTLE = 64.0
"""Without a profile, the marked loop is flattened if a lane runs at most this many issue slots from the header until it
waits. On an H100, 23 kernels of other people's programs with more slots run at 0.86 of plain's speed if lanes begin
together, at 0.69 if flattened. Among those with fewer, a prime test runs at 1.92 flattened, at 0.89 with lanes
together.
"""

DEAR = 96.0
"""Lanes wait for others before they run what follows the only inner loop if that takes at least this many issue slots.
With several loops, each additional test of the dispatcher costs more than it gains: on an H100, kernels that ran at
0.85 and 0.52 of the plain speed then ran at 0.63 and 0.37.
"""

CHEAP = 24.0
"""A path, or an inner iteration, of at most this many issue slots runs in place: a visit to the dispatcher takes more.
On an H100, a kernel whose inner iterations are a path of 37 slots ran at 0.45 of plain's speed when lanes waited for
it, at 1.01 in place.
"""


class Role(Enum):
    """What lanes that wait at a point are about to run."""

    ITERATION = "iteration"
    AROUND = "around"  # an unmarked loop around other points
    LOOP = "loop"
    AFTER = "after"  # what follows an inner loop
    PATH = "path"


@dataclass(frozen=True)
class LanePoint:
    """One point: ``number`` is the state of lanes that wait there; ``here`` says in each lane whether it does. A marked
    point has an ``annotation``. The point is served early if ``least`` lanes wait there. ``loop`` is the nodes of a
    marked inner loop. Lanes run ``chunk`` inner iterations of it before they vote again; more than one are counted in
    ``left``. ``code`` is the nodes of the loop that they run before they reach another point.
    """

    role: Role
    begin: str
    number: int
    here: Register
    annotation: Annotation | None = None
    least: int = 1
    loop: frozenset[str] = frozenset()
    code: frozenset[str] = frozenset()
    chunk: int = 1
    left: Register | None = None

    @property
    def phase(self) -> str:
        """The name in labels of what the warp does when it serves the point."""
        return f"serve_{self.number}"


@dataclass(frozen=True)
class InLanePlan:
    """One region in the in-lane form: point 0, and its other points in the order in which an iteration reaches them.

    ``in_place`` are the marked points at which no lane waits. ``order`` is what the warp tests, one after the other: a
    point, and how many lanes must wait there for it to be served. ``lanes`` holds the mask of the lanes that vote.
    ``state`` is the number of the point at which a lane waits; larger numbers are those of the exits through which
    lanes leave. ``visit`` is the fewest issue slots that a lane runs at a marked point before it may wait again, if
    lanes wait at all of these points; 0 if cheap ones run in place.
    """

    region: Region
    points: tuple[LanePoint, ...]
    in_place: tuple[LanePoint, ...]
    flattened: bool
    order: tuple[tuple[LanePoint, int], ...]
    lanes: Register
    state: Register
    visit: float

    def marked(self) -> tuple[tuple[LanePoint, Annotation], ...]:
        """The points with their annotations: the marked loop, and the paths and inner loops in it."""
        points = (*self.points, *self.in_place)
        return tuple((point, point.annotation) for point in points if point.annotation is not None)


def make_in_lane_plan(view: View, region: Region, *, flattened: bool | None = None) -> InLanePlan:
    """The plan of a region, ``flattened`` or not (None: by cost). Raises Refusal if a lane reaches no point other than
    the next iteration.
    """
    return _Planner(view, region, flattened).plan()


@dataclass(frozen=True)
class _Planner:
    view: View
    region: Region
    asked: bool | None

    def plan(self) -> InLanePlan:
        """The points and their order."""
        view, region = self.view, self.region
        marked = {p.begin: p for p in reversed(region.points) if p.begin != region.header}
        if not marked and not region.annotation.alone:
            raise refuse(refusal.BEGINS_ITERATION, region.points[0].annotation.place)
        cheap = {begin: p for begin, p in marked.items() if self._is_cheap(p, marked)}
        if len(cheap) == len(marked):
            cheap = {}
        apart = {begin: p for begin, p in marked.items() if begin not in cheap}
        flattened = self.asked
        if flattened is None:
            flattened = self._cost(self._until(region.header, apart)) <= LITTLE
        roles = self._roles(apart, flattened)
        visit = 0.0 if cheap or not marked else self._visit(roles)
        if not flattened:
            cheap |= {begin: p for begin, p in apart.items() if self._is_without_paths(p, apart)}
            apart = {begin: p for begin, p in apart.items() if begin not in cheap}
            roles = self._roles(apart, flattened)
        points = tuple(self._point(number, begin, roles, flattened) for number, begin in enumerate(roles))
        register = view.names.register
        in_place = tuple(
            LanePoint(self._role(p), p.begin, number, register("pred"), p.annotation)
            for number, p in enumerate((p for p in region.points if cheap.get(p.begin) is p), len(points))
        )
        order = self._flattened(points) if flattened else self._in_step(points)
        return InLanePlan(region, points, in_place, flattened, order, register("b32"), register("b32"), visit)

    def _roles(
        self, apart: Mapping[str, Point], flattened: bool
    ) -> dict[str, tuple[Role, Annotation | None]]:
        """What lanes wait for at which node, if they wait at the marked points ``apart``, which have annotations."""
        region = self.region
        after = dict.fromkeys(self._after(apart, flattened))
        roles: dict[str, tuple[Role, Annotation | None]] = {
            region.header: (Role.ITERATION, region.annotation)
        }
        roles |= dict.fromkeys(self._headers_around({*apart, *after}), (Role.AROUND, None))
        roles |= {name: (Role.AFTER, None) for name in after if name not in roles}
        for point in region.points:
            if apart.get(point.begin) is point:
                roles[point.begin] = self._role(point), point.annotation
        return roles

    def _visit(self, roles: Mapping[str, tuple[Role, Annotation | None]]) -> float:
        """The fewest issue slots that a lane runs at a marked point before it may wait again."""
        visits = []
        for begin, (role, annotation) in roles.items():
            if role is Role.PATH:
                visits.append(self._cost(self._until(begin, roles)))
            elif role is Role.LOOP and annotation is not None:
                _, code = self._loop(begin, annotation, roles)
                chunk = chunk_of(self.view, annotation, begin, code, IN_LANE)
                visits.append(chunk * self._cost_of_one(begin, code))
        return min(visits)

    def _is_without_paths(self, point: Point, apart: Mapping[str, Point]) -> bool:
        """Whether the marked code is a loop that contains no path among the points ``apart``, at which lanes wait."""
        code = marked_code(self.view, point, self.region.nodes)
        paths = (other.begin for other in apart.values() if not other.annotation.variable)
        return point.annotation.variable and code.isdisjoint(paths)

    @staticmethod
    def _flattened(points: Iterable[LanePoint]) -> tuple[tuple[LanePoint, int], ...]:
        """The order that lets lanes begin their next iteration as soon as they can."""
        roles = (Role.PATH, Role.AFTER, Role.LOOP)
        paths, after, loops = ([p for p in points if p.role is role][::-1] for role in roles)
        begins = [p for p in points if p.role in (Role.ITERATION, Role.AROUND)]
        early = ((p, p.least) for p in (*paths, *after))
        return (*early, *((p, 1) for p in (*begins, *loops, *after, *paths)))

    def _in_step(self, points: Iterable[LanePoint]) -> tuple[tuple[LanePoint, int], ...]:
        """The order that makes lanes wait for those that are behind them in the program."""
        view = self.view
        around = {view.name(loop.header): loop for loop in view.loops}

        def place(point: LanePoint) -> tuple[int, int]:
            if point.role not in (Role.ITERATION, Role.AROUND):
                return view.block_of_name[point.begin], 0
            blocks = around[point.begin].blocks
            return max(blocks), len(blocks)

        ordered = sorted(points, key=place)
        early = ((p, p.least) for p in reversed(ordered) if p.least > 1)
        return (*early, *((p, 1) for p in ordered))

    def _point(
        self,
        number: int,
        begin: str,
        roles: Mapping[str, tuple[Role, Annotation | None]],
        flattened: bool,
    ) -> LanePoint:
        view = self.view
        role, annotation = roles[begin]
        here = view.names.register("pred")
        if role is not Role.LOOP or annotation is None:
            waits = (Role.PATH, Role.AFTER) if flattened else (Role.PATH,)
            least = WAIT if role in waits else 1
            return LanePoint(role, begin, number, here, annotation, least)
        loop, code = self._loop(begin, annotation, roles)
        # Lanes that begin together have nothing else to run: a vote only shows that all have left the loop or wait.
        chunk = chunk_of(view, annotation, begin, code, IN_LANE if flattened else inf)
        left = view.names.register("b32") if chunk > 1 else None
        return LanePoint(role, begin, number, here, annotation, 1, loop, code, chunk, left)

    def _loop(
        self, begin: str, annotation: Annotation, roles: Collection[str]
    ) -> tuple[frozenset[str], frozenset[str]]:
        """The nodes of a marked loop, and those that lanes run before they reach another point."""
        loop = marked_code(self.view, Point(annotation, begin), self.region.nodes)
        return loop, self._until(begin, roles) & loop

    @staticmethod
    def _role(point: Point) -> Role:
        return Role.LOOP if point.annotation.variable else Role.PATH

    def _is_cheap(self, point: Point, marked: Mapping[str, Point]) -> bool:
        """Whether marked code is cheap enough to run in place: a path, or a loop in another inner loop."""
        code = marked_code(self.view, point, self.region.nodes)
        blocks = self.view.blocks_of(code)
        begin = self.view.block_of_name[point.begin]
        inner = any(loop.header in blocks for loop in self.view.loops if loop.header != begin)
        if inner or any(other in code for other in marked if other != point.begin):
            return False
        loops = (
            marked_code(self.view, p, self.region.nodes) for p in marked.values() if p.annotation.variable
        )
        nested = any(code < loop for loop in loops)
        if point.annotation.variable:
            return nested and self._costs.of_blocks(blocks, blocks, begin) <= CHEAP
        return self._cost(code) <= (2 * CHEAP if nested else CHEAP)

    def _after(self, apart: Mapping[str, Point], flattened: bool) -> Iterator[str]:
        """Where lanes wait when they leave an inner loop: in step, wherever more than a vote follows; ``flattened``,
        only if there is no other loop and at least `DEAR` slots follow.
        """
        graph, region = self.view.graph.nodes, self.region
        loops = [point for point in apart.values() if point.annotation.variable]
        if flattened and len(loops) > 1:
            return
        least = DEAR if flattened else CHEAP
        for loop in (marked_code(self.view, point, region.nodes) for point in loops):
            ways = dict.fromkeys(way for name in sorted(loop) for way in targets(graph[name].end))
            for way in ways:
                outside = way in region.nodes and way not in loop
                if outside and self._cost(self._until(way, {region.header, *apart})) >= least:
                    yield way

    def _until(self, begin: str, points: Collection[str]) -> frozenset[str]:
        """The nodes that a lane runs from ``begin`` until it reaches one of ``points``."""
        nodes = self.view.graph.nodes
        between = {n: nodes[n] for n in self.region.nodes if n == begin or n not in points}
        return frozenset(reachable(between, [begin]))

    def _cost(self, nodes: Collection[str]) -> float:
        blocks = self.view.blocks_of(nodes)
        return self._costs.of_blocks(blocks, blocks)

    def _cost_of_one(self, begin: str, code: Collection[str]) -> float:
        """The issue slots of an inner iteration."""
        blocks = self.view.blocks_of(code)
        return self._costs.of_blocks(blocks, blocks, self.view.block_of_name[begin])

    @cached_property
    def _costs(self) -> Costs:
        view = self.view
        return Costs(view.module, view.body, view.cfg, view.reaching, view.loops)

    def _headers_around(self, begins: Iterable[str]) -> Iterator[str]:
        """The headers of loops inside the marked one that contain some of the nodes ``begins``, outer loops first."""
        view = self.view
        blocks = view.blocks_of(begins)
        nest = view.blocks_of(self.region.nodes)
        own = view.block_of_name[self.region.header]
        for loop in view.loops:
            if loop.blocks <= nest and loop.header != own and not blocks.isdisjoint(loop.blocks):
                yield view.name(loop.header)
