"""Which units and edges of a function get counters; all other counts follow from these.

*Lanes.* As many lanes leave a place as reach it; the outside of the function is such a place. So one edge of each
cycle in the graph of units (undirected, each unit an edge from its start to its end) has to be counted. These are the
edges outside a spanning tree, which holds what is run most often and what costs most to count. D. E. Knuth, F. R.
Stevenson, "Optimal measurement points for program frequency counts", BIT 13, 1973; T. Ball, J. R. Larus, "Optimally
profiling and tracing programs", TOPLAS 16(4), 1994.

*Warps.* No such rule holds: if lanes diverge, one warp leaves a branch twice, and ptxas chooses whether the lanes
reconverge at a join. A unit has as many executions as its only predecessor if control goes nowhere else from there. All
other units have a counter: arms of branches, joins, headers of loops. The back edge of a loop with one latch and one
edge from outside needs none. Lanes that diverged before the loop reconverge at the source of the outside edge, lanes
that diverged in the loop at the latch, and none at the header. So each execution of the header came by one of the two
edges. The count of a branch's edge to a join or out of a loop follows from the branch's source and its other edge if it
is known how often lanes diverged at the branch (`Split`). The unit that the other edge leads to then has only some of
the lanes of the source. If this cannot be determined, the edge has a counter.

A kernel's threads and warps are known from the shape of its blocks.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from cccopt.passes.counting.flow import Flow, FlowEdge, Way
from cccopt.passes.counting.layout import OUTSIDE, OWN, THREADS, UNKNOWN, WARPS, Sum
from cccopt.passes.counting.nests import Nest, sorted_by_nest

_CONDITIONAL = (Way.TAKEN, Way.OTHER)


@dataclass(frozen=True, slots=True)
class Place:
    """Where counters are: before the end of ``edge``'s source, for lanes that take this edge, or at the head of
    ``unit``; at the very beginning of a function if both are `OUTSIDE`.
    """

    unit: int = OUTSIDE
    edge: int = OUTSIDE


@dataclass(slots=True)
class Counters:
    """The numbers of the counters at one place: of executions and of lanes."""

    warps: int = UNKNOWN
    lanes: int = UNKNOWN


@dataclass(frozen=True, slots=True)
class Split:
    """A branch at the end of unit ``source``: ``counter`` counts how often some of its lanes jump and others do not, in
    unit ``target``, to which one of its edges leads. If that is a loop header, ``entry`` is the edge to it from
    outside.
    """

    source: int
    target: int
    counter: int
    entry: int = UNKNOWN


@dataclass
class Choice:
    """The counters of a function, numbered from 0, or in a kernel from `OWN`. The first ``private`` are those in loops,
    which each thread has for itself: ``registers`` of them in registers, the others in its local memory, those of
    ``nests`` last.

    ``unit_warps`` and ``edge_warps`` are sums of counters, ``unit_lanes`` and ``edge_lanes`` a counter or `UNKNOWN`;
    ``depths`` says how many loops the code of each counter is in, ``units`` which unit.
    """

    first: int
    places: dict[Place, Counters] = field(default_factory=dict)
    splits: list[Split] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    units: list[int] = field(default_factory=list)
    private: int = 0
    registers: int = 0
    nests: tuple[Nest, ...] = ()
    unit_warps: list[Sum] = field(default_factory=list)
    edge_warps: list[Sum] = field(default_factory=list)
    unit_lanes: list[int] = field(default_factory=list)
    edge_lanes: list[int] = field(default_factory=list)

    @property
    def end(self) -> int:
        """The number after the last counter's."""
        return self.first + len(self.depths)

    def new(self, depth: int, unit: int) -> int:
        """A new counter whose code is in ``depth`` loops, in ``unit`` or outside all units."""
        self.depths.append(depth)
        self.units.append(unit)
        return self.end - 1

    def at(self, place: Place) -> Counters:
        """The counters at a place, none at first."""
        return self.places.setdefault(place, Counters())


def choose(flow: Flow, kernel: bool, registers: int, private: bool = True) -> Choice:
    """The counters that the function needs. If ``private``, each thread has those in loops for itself, at most
    ``registers`` of them in registers: those of inner loops.
    """
    chooser = _Chooser(flow, kernel)
    chooser.warps()
    chooser.lanes()
    return _numbered(flow, chooser.choice, registers, private)


def loose(flow: Flow, edge: FlowEdge) -> bool:
    """Whether the lanes of an edge cannot be counted."""
    return edge.way is Way.LOST or (edge.way is Way.INDEXED and len(flow.into[edge.target]) > 1)


class _Chooser:
    def __init__(self, flow: Flow, kernel: bool) -> None:
        self.flow = flow
        self.kernel = kernel
        self.choice = Choice(OWN if kernel else 0)
        self._edges: dict[int, Sum] = {}

    # --- warps -------------------------------------------------------------------------------------------------

    def warps(self) -> None:
        flow, choice = self.flow, self.choice
        for unit in range(len(flow.units)):
            choice.unit_warps.append(self._unit_warps(unit))
        choice.edge_warps = [self._warps_along(index) for index in range(len(flow.edges))]

    def _unit_warps(self, unit: int) -> Sum:
        """The executions of a unit: those of its only predecessor if that comes before it in the text, or a counter."""
        edges = [self.flow.edges[i] for i in self.flow.into[unit]]
        if len(edges) == 1 and edges[0].way is Way.ENTRY and self.kernel:
            return (WARPS,)
        if len(edges) == 1 and self._passes_all(edges[0]) and edges[0].source < unit:
            return self.choice.unit_warps[edges[0].source]
        counters = self.choice.at(Place(unit))
        counters.warps = self._new(Place(unit))
        return (counters.warps,)

    def _passes_all(self, edge: FlowEdge) -> bool:
        """Whether all lanes that reach the source of an edge take this edge."""
        return edge.way is Way.ALWAYS and len(self.flow.out[edge.source]) == 1

    @cached_property
    def _lone_back_edges(self) -> dict[int, int]:
        """For each back edge to a header with one other incoming edge, that other edge."""
        found: dict[int, int] = {}
        for loop in self.flow.loops:
            edges = self.flow.into[self.flow.first[loop.header]]
            inside = [i for i in edges if self.flow.is_in(self.flow.edges[i], loop.blocks)]
            outside = [i for i in edges if i not in inside]
            if len(inside) == len(outside) == 1:
                found[inside[0]] = outside[0]
        return found

    def _warps_along(self, index: int) -> Sum:
        """The executions of an edge; empty if they are not known, or are being determined."""
        if index not in self._edges:
            self._edges[index] = ()
            self._edges[index] = self._edge_warps(index)
        return self._edges[index]

    def _edge_warps(self, index: int) -> Sum:
        flow, choice = self.flow, self.choice
        edge = flow.edges[index]
        if edge.way is Way.LOST or (edge.target == OUTSIDE and edge.way in _CONDITIONAL):
            return ()
        if edge.way is Way.ENTRY and self.kernel:
            return (WARPS,)
        if edge.way is Way.ALWAYS and self._passes_all(edge):
            return choice.unit_warps[edge.source]
        alone = edge.target != OUTSIDE and len(flow.into[edge.target]) == 1
        if alone and not flow.leaves_loop(edge):
            return choice.unit_warps[edge.target]
        other = self._lone_back_edges.get(index)
        if other is not None and (entered := self._warps_along(other)):
            return (*choice.unit_warps[edge.target], *_negative(entered))
        if by_split := self._by_split(index):
            return by_split
        if edge.way is Way.ENTRY or edge.way in _CONDITIONAL:
            place = Place() if edge.way is Way.ENTRY else Place(edge=index)
            counters = choice.at(place)
            counters.warps = self._new(place)
            return (counters.warps,)
        return ()

    def _by_split(self, index: int) -> Sum:
        """The executions of a branch's edge from how often its lanes diverge; empty if that is not known."""
        flow, choice = self.flow, self.choice
        source = flow.edges[index].source
        others = [i for i in flow.out[source] if i != index] if source != OUTSIDE else []
        if len(others) != 1 or not self._has_lasting_mask(source):
            return ()
        other = flow.edges[others[0]]
        entry = self._lone_back_edges.get(others[0], UNKNOWN)
        if other.way not in _CONDITIONAL or other.target == OUTSIDE or flow.only_leaves(other.target):
            return ()
        if entry == UNKNOWN and (len(flow.into[other.target]) > 1 or flow.leaves_loop(other)):
            return ()
        if not (along_other := self._warps_along(others[0])):
            return ()
        counter = self._new(Place(other.target))
        choice.splits.append(Split(source, other.target, counter, entry))
        return (*choice.unit_warps[source], *_negative(along_other), counter)

    def _has_lasting_mask(self, unit: int) -> bool:
        """Whether the lanes counted at the head of a unit are the same that are together at its end."""
        counters = self.choice.places.get(Place(unit))
        return counters is not None and counters.warps != UNKNOWN and not self.flow.may_meet(unit)

    # --- lanes -------------------------------------------------------------------------------------------------

    def lanes(self) -> None:
        flow, choice = self.flow, self.choice
        choice.unit_lanes = [UNKNOWN] * len(flow.units)
        choice.edge_lanes = [UNKNOWN] * len(flow.edges)
        tree = _Tree(2 * len(flow.units) + 1)
        for edge in flow.edges:
            if loose(flow, edge):
                tree.join(*ends(edge, len(flow.units)))
        for cost, is_unit, index in sorted(self._candidates(), key=lambda c: -c[0]):
            pair = (2 * index, 2 * index + 1) if is_unit else ends(flow.edges[index], len(flow.units))
            if cost and tree.join(*pair):
                continue
            if is_unit:
                choice.unit_lanes[index] = self._counter(Place(index))
            elif cost:
                choice.edge_lanes[index] = self._counter(self._place(index))
            else:
                choice.edge_lanes[index] = THREADS

    def _counter(self, place: Place) -> int:
        counters = self.choice.at(place)
        counters.lanes = self._new(place)
        return counters.lanes

    def _new(self, place: Place) -> int:
        """A new counter at a place: lanes that leave a loop are counted in the loop."""
        unit = place.unit if place.edge == OUTSIDE else self.flow.edges[place.edge].source
        return self.choice.new(self.flow.units[unit].depth if unit != OUTSIDE else 0, unit)

    def _candidates(self) -> Iterator[tuple[float, bool, int]]:
        """Units and edges with the cost of counting them, 0 if their count is known."""
        flow = self.flow
        for unit in range(len(flow.units)):
            yield self._cost(Place(unit)), True, unit
        for index, edge in enumerate(flow.edges):
            if edge.way is Way.ENTRY and self.kernel:
                yield 0, False, index
            elif not loose(flow, edge):
                yield self._cost(self._place(index)), False, index

    def _place(self, index: int) -> Place:
        """Where the lanes of an edge are counted."""
        edge = self.flow.edges[index]
        if edge.target != OUTSIDE and len(self.flow.into[edge.target]) == 1:
            return Place(edge.target)
        if edge.way is Way.ALWAYS and self._passes_all(edge):
            return Place(edge.source)
        return Place() if edge.way is Way.ENTRY else Place(edge=index)

    def _cost(self, place: Place) -> float:
        """About how often lanes reach a place, times the cost of counting: less if their mask is read anyway."""
        asked = self.choice.places.get(place, Counters()).warps != UNKNOWN
        if place.edge != OUTSIDE:
            return (3 if asked else 4) * 8.0 ** self.flow.edge_depth(self.flow.edges[place.edge])
        depth = self.flow.units[place.unit].depth if place.unit != OUTSIDE else 0
        return (1 if asked else 2) * 8.0**depth


def _negative(terms: Sum) -> Sum:
    return tuple(-1 - c for c in terms)


def ends(edge: FlowEdge, units: int) -> tuple[int, int]:
    """The vertices that an edge joins: a unit's start is twice its number, its end one more; the outside is last."""
    return (
        2 * units if edge.source == OUTSIDE else 2 * edge.source + 1,
        2 * units if edge.target == OUTSIDE else 2 * edge.target,
    )


class _Tree:
    """Disjoint sets of vertices (union-find)."""

    def __init__(self, vertices: int) -> None:
        self._parent = list(range(vertices))

    def _root(self, vertex: int) -> int:
        while self._parent[vertex] != vertex:
            self._parent[vertex] = self._parent[self._parent[vertex]]
            vertex = self._parent[vertex]
        return vertex

    def join(self, a: int, b: int) -> bool:
        """Merges the sets of two vertices; returns whether they were separate."""
        a, b = self._root(a), self._root(b)
        self._parent[a] = b
        return a != b


def _numbered(flow: Flow, choice: Choice, registers: int, private: bool) -> Choice:
    """The choice with the counters in loops numbered first if ``private``: those in registers, which are those of inner
    loops, and then the others.
    """
    # Both counters of a place together, so that neither needs the mask only because of the other.
    listed = [c - choice.first for p in choice.places.values() for c in (p.warps, p.lanes) if c != UNKNOWN]
    listed += [split.counter - choice.first for split in choice.splits]
    order = sorted(listed, key=lambda i: -choice.depths[i])
    own = [i for i in order if choice.depths[i]] if private else []
    rest = own[registers:]
    by_nest, choice.nests = sorted_by_nest(flow, [choice.units[i] for i in rest], len(own) - len(rest))
    own = [*own[:registers], *(rest[i] for i in by_nest)]
    pairs = {p.warps - choice.first: p.lanes - choice.first for p in choice.places.values()}
    starts = [min(registers, len(own)), *(nest.start for nest in choice.nests)]
    for start, stop in itertools.pairwise([*starts, len(own)]):
        own[start:stop] = in_pairs(own[start:stop], pairs, start)
    order = [*own, *sorted(set(range(len(choice.depths))).difference(own))]
    new = {choice.first + old: choice.first + now for now, old in enumerate(order)}

    def number(counter: int) -> int:
        return new.get(counter, counter)

    def signed(terms: Sum) -> Sum:
        return tuple(-1 - number(-1 - c) if c < 0 else number(c) for c in terms)

    for counters in choice.places.values():
        counters.warps, counters.lanes = number(counters.warps), number(counters.lanes)
    choice.splits = [replace(split, counter=number(split.counter)) for split in choice.splits]
    choice.depths = [choice.depths[old] for old in order]
    choice.units = [choice.units[old] for old in order]
    choice.private = len(own)
    choice.registers = min(len(own), registers)
    choice.unit_warps = [signed(terms) for terms in choice.unit_warps]
    choice.edge_warps = [signed(terms) for terms in choice.edge_warps]
    choice.unit_lanes = [number(c) for c in choice.unit_lanes]
    choice.edge_lanes = [number(c) for c in choice.edge_lanes]
    return choice


def in_pairs(counters: Sequence[int], pairs: Mapping[int, int], start: int) -> list[int]:
    """``counters``, numbered from ``start``, in an order in which as many ``pairs`` as possible have an even number and
    the next one: these are loaded and stored together.
    """
    here = frozenset(counters)
    both = [(c, pairs[c]) for c in counters if pairs.get(c) in here]
    in_pairs = frozenset(itertools.chain(*both))
    others = [c for c in counters if c not in in_pairs]
    if start % 2 and both and not others:
        others = list(both.pop())
    before = others[: start % 2]
    return [*before, *itertools.chain(*both), *others[start % 2 :]]
