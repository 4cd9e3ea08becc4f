"""From the raw counts of an instrumented module to warps and lanes, by statement, source line, branch and loop.

The counts are the numbers of `cccopt.passes.counting.layout.Layout`, one row for each copy. What was not counted
follows: as many lanes leave each place as come to it. That holds once all threads have ended, so not for a launch that
a trap has cut short.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cccopt.ccc.profitability.profile import RunProfile, measure
from cccopt.passes.counting.layout import (
    BEGUN,
    ENDED,
    OUTSIDE,
    UNKNOWN,
    Edge,
    FunctionLayout,
    Layout,
    LoopUnits,
    Spot,
    Sum,
)
from cccopt.profiling.names import shown
from cccopt.profiling.run_file import BranchCount, FunctionRun, LineCount, LoopCount
from cccopt.ptx.ir import Module


@dataclass(frozen=True, slots=True)
class WarpsAndLanes:
    """How often some lanes of a warp ran something together, and the sum of these lanes."""

    warps: int = 0
    lanes: int = 0


@dataclass(frozen=True)
class FunctionCounts:
    """What was counted of a function; of an edge, ``warps`` is None where it is not known.

    ``blocks`` of a kernel began, ``lost`` of them have not ended, so that their counts are missing.
    """

    layout: FunctionLayout
    units: tuple[WarpsAndLanes, ...]
    edge_lanes: tuple[int, ...]
    edge_warps: tuple[int | None, ...]
    blocks: int = 0
    lost: int = 0


def counts_of(layout: Layout, raw: bytes | Sequence[int]) -> tuple[FunctionCounts, ...]:
    """The counts of each counted function. Raises ValueError where ``raw`` has another size than the layout says."""
    numbers = np.frombuffer(raw, "<u8") if isinstance(raw, bytes) else np.asarray(raw, np.uint64)
    if numbers.size != layout.copies * layout.counters:
        raise ValueError(f"{numbers.size} counts, not {layout.copies * layout.counters}")
    totals = [int(n) for n in numbers.reshape(layout.copies, layout.counters).sum(axis=0, dtype=np.uint64)]
    return tuple(
        _function(function, totals[function.first : function.first + function.counters])
        for function in layout.functions
        if function.counted
    )


def _function(layout: FunctionLayout, counters: Sequence[int]) -> FunctionCounts:
    units, edges = _lanes(layout, counters)
    known = (_sum(edge.warps, counters) if edge.warps else None for edge in layout.edges)
    began = counters[BEGUN] if layout.kernel else 0
    return FunctionCounts(
        layout,
        tuple(WarpsAndLanes(_sum(u.warps, counters), n) for u, n in zip(layout.units, units, strict=True)),
        tuple(edges),
        tuple(known),
        began,
        began - counters[ENDED] if layout.kernel else 0,
    )


def _sum(terms: Sum, counters: Sequence[int]) -> int:
    return sum(counters[c] if c >= 0 else -counters[-1 - c] for c in terms)


def _lanes(layout: FunctionLayout, counters: Sequence[int]) -> tuple[list[int], list[int]]:
    """The lanes of all units and edges: those counted, then from each vertex with one unknown flow that one.

    A vertex is where flows meet: the begin and the end of a unit, and the outside; loose edges make one of two.
    """
    count = len(layout.units)
    vertex = list(range(2 * count + 1))

    def root(v: int) -> int:
        while vertex[v] != v:
            v = vertex[v]
        return v

    def ends(edge: Edge) -> tuple[int, int]:
        source = 2 * count if edge.source == OUTSIDE else 2 * edge.source + 1
        target = 2 * count if edge.target == OUTSIDE else 2 * edge.target
        return source, target

    for edge in layout.edges:
        if edge.loose:
            a, b = (root(v) for v in ends(edge))
            vertex[a] = b
    # Units come first among the flows, then edges.
    flows = [(root(2 * i), root(2 * i + 1)) for i in range(count)]
    flows += [(root(a), root(b)) for a, b in map(ends, layout.edges)]
    which = [unit.lanes for unit in layout.units] + [edge.lanes for edge in layout.edges]
    loose = {count + i for i, edge in enumerate(layout.edges) if edge.loose}
    lanes = [counters[c] if c != UNKNOWN else 0 for c in which]
    surplus: dict[int, int] = defaultdict(int)
    unknown: dict[int, set[int]] = defaultdict(set)
    for i, (a, b) in enumerate(flows):
        if i in loose or a == b:
            continue
        if which[i] == UNKNOWN:
            unknown[a].add(i)
            unknown[b].add(i)
        else:
            surplus[a] -= lanes[i]
            surplus[b] += lanes[i]
    work = [v for v, found in unknown.items() if len(found) == 1]
    while work:
        v = work.pop()
        if len(unknown[v]) != 1:
            continue
        (i,) = unknown[v]
        a, b = flows[i]
        # What came in and has not gone out goes along this flow, or came along it.
        lanes[i] = surplus[v] if v == a else -surplus[v]
        surplus[a] -= lanes[i]
        surplus[b] += lanes[i]
        for end in (a, b):
            unknown[end].discard(i)
            if len(unknown[end]) == 1:
                work.append(end)
    return lanes[:count], lanes[count:]


# --- statements ----------------------------------------------------------------------------------------------------


def issues_of(counts: Iterable[FunctionCounts]) -> dict[tuple[str, int], WarpsAndLanes]:
    """The counts by function and statement of the plain module that was instrumented."""
    return {
        (function.layout.name, statement): found
        for function in counts
        for unit, found in zip(function.layout.units, function.units, strict=True)
        if found.warps
        for statement in range(unit.start, unit.stop)
    }


def regions_of(module: Module, counts: Iterable[FunctionCounts]) -> RunProfile:
    """The profile of the marked regions of ``module``, which was instrumented with its markers."""
    return measure(module, issues_of(counts))


# --- the source ----------------------------------------------------------------------------------------------------


def functions_of(layout: Layout, counts: Iterable[FunctionCounts], unit: str) -> tuple[FunctionRun, ...]:
    """The functions of ``unit``, a file that was compiled, that ran."""
    return tuple(
        FunctionRun(
            function.layout.name,
            shown(function.layout.name),
            function.layout.kernel,
            unit,
            lines=tuple(_lines(layout, function)),
            branches=tuple(_branches(layout, function)),
            loops=tuple(_loops(layout, function)),
        )
        for function in counts
        if any(found.warps for found in function.units)
    )


def notes_of(layout: Layout, counts: Iterable[FunctionCounts]) -> tuple[str, ...]:
    """What is missing, in sentences."""
    refused = [f"`{shown(f.name)}` is timed only: {f.why}" for f in layout.functions if not f.counted]
    lost = [
        f"the counts of {f.lost} of {f.blocks} blocks of `{shown(f.layout.name)}` are lost"
        for f in counts
        if f.lost
    ]
    return (*refused, *lost)


def _lines(layout: Layout, function: FunctionCounts) -> Iterator[LineCount]:
    found: dict[tuple[str, int, int], list[int]] = defaultdict(lambda: [0, 0])
    for unit, count in zip(function.layout.units, function.units, strict=True):
        for spot in unit.spots if count.warps else ():
            total = found[_place(layout, spot)]
            total[0] += spot.instructions * count.warps
            total[1] += spot.instructions * count.lanes
    for place, (warps, lanes) in sorted(found.items()):
        yield LineCount(*place, warps, lanes)


def _branches(layout: Layout, function: FunctionCounts) -> Iterator[BranchCount]:
    for branch in function.layout.branches:
        here = function.units[branch.unit]
        if not here.warps:
            continue
        ways = [function.edge_warps[edge] for edge in (branch.taken, branch.other)]
        # Each execution goes one way, or both ways if its lanes part. Groups of lanes that came to the branch apart
        # may have met again where the ways are counted.
        split = max(sum(w for w in ways if w is not None) - here.warps, 0) if None not in ways else 0
        taken = function.edge_lanes[branch.taken]
        yield BranchCount(*_place(layout, branch.spot), here.warps, here.lanes, taken, split)


def _loops(layout: Layout, function: FunctionCounts) -> Iterator[LoopCount]:
    for loop in function.layout.loops:
        header = function.units[loop.header]
        if header.warps:
            entries, entered = _entries(function, loop, header)
            yield LoopCount(*_place(layout, loop.spot), entries, entered, header.warps, header.lanes)


def _entries(function: FunctionCounts, loop: LoopUnits, header: WarpsAndLanes) -> tuple[int, int]:
    """The warps and lanes that came to a loop from outside."""
    lanes = header.lanes - sum(function.edge_lanes[edge] for edge in loop.back)
    back = [function.edge_warps[edge] for edge in loop.back]
    if None not in back:
        return header.warps - sum(w for w in back if w is not None), lanes
    outside = [function.edge_warps[edge] for edge in loop.entries]
    came = None if None in outside else sum(w for w in outside if w is not None)
    return header.warps if came is None else min(came, header.warps), lanes


def _place(layout: Layout, spot: Spot) -> tuple[str, int, int]:
    return layout.files[spot.file], spot.line, spot.column


def by_name(counts: Iterable[FunctionCounts]) -> Mapping[str, FunctionCounts]:
    """The counts by the function's name."""
    return {function.layout.name: function for function in counts}
