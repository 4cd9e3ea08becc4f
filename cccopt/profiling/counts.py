"""From the raw counts of an instrumented module to warps and lanes, by statement, source line, branch and loop.

The counts are the numbers of `cccopt.passes.counting.layout.Layout`, one row per copy. What was not counted follows
from them: as many lanes leave each place as reach it. That holds once all threads have ended, so not for a launch
that a trap has cut short.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from cccopt.ccc.profitability.elapsed import Elapsed
from cccopt.ccc.profitability.profile import RunProfile
from cccopt.ccc.profitability.region_counts import measure
from cccopt.passes.counting.layout import (
    BEGUN,
    ENDED,
    OUTSIDE,
    UNKNOWN,
    WARPS,
    Branch,
    Edge,
    FunctionLayout,
    Layout,
    LoopUnits,
    Spot,
    Sum,
)
from cccopt.profiling.names import shown
from cccopt.profiling.run_file import LANES, BranchCount, FunctionRun, LineCount, LoopCount
from cccopt.profiling.sample import Sample
from cccopt.ptx.ir import Module


@dataclass(frozen=True, slots=True)
class WarpsAndLanes:
    """How often some lanes of a warp ran something together, and the total number of these lanes."""

    warps: int = 0
    lanes: int = 0


@dataclass(frozen=True)
class FunctionCounts:
    """The counts of a function. ``edge_warps`` holds None for an edge whose warps are not known.

    ``blocks`` of a kernel began; ``lost`` of them have not ended, so their counts are missing. In a sample, ``blocks``
    is the number of counted warps, which stand for ``warps`` warps; ``squares`` is the sum of the squares of how many
    each stands for. ``histograms`` are by branch, ``accesses`` (requests, sectors) by access. Counts are ``torn`` if a
    derived number of lanes would be negative: the counters were read or cut off while the kernel ran.
    """

    layout: FunctionLayout
    units: tuple[WarpsAndLanes, ...]
    edge_lanes: tuple[int, ...]
    edge_warps: tuple[int | None, ...]
    blocks: int = 0
    lost: int = 0
    warps: int = 0
    squares: int = 0
    histograms: tuple[tuple[int, ...] | None, ...] = ()
    accesses: tuple[tuple[int, int], ...] = ()
    torn: bool = False


def counts_of(layout: Layout, raw: bytes | Sequence[int]) -> tuple[FunctionCounts, ...]:
    """The counts of each counted function. Raises ValueError if the size of ``raw`` does not match the layout."""
    return _functions(layout, _rows(layout, raw).sum(axis=0, dtype=np.uint64))


def groups_of(layout: Layout, raw: bytes | Sequence[int]) -> tuple[tuple[FunctionCounts, ...], ...]:
    """The same for each random group of a sample's warps; empty if all warps were counted."""
    return tuple(_functions(layout, row) for row in _rows(layout, raw)) if layout.every > 1 else ()


def _rows(layout: Layout, raw: bytes | Sequence[int]) -> np.ndarray[Any, Any]:
    numbers = np.frombuffer(raw, "<u8") if isinstance(raw, bytes) else np.asarray(raw, np.uint64)
    if numbers.size != layout.copies * layout.counters:
        raise ValueError(f"{numbers.size} counts, not {layout.copies * layout.counters}")
    return numbers.reshape(layout.copies, layout.counters)


def _functions(layout: Layout, row: np.ndarray[Any, Any]) -> tuple[FunctionCounts, ...]:
    counters = row.tolist()
    return tuple(
        _function(
            function, counters[function.first : function.first + function.counters], sampled=layout.every > 1
        )
        for function in layout.functions
        if function.counted
    )


def _function(layout: FunctionLayout, counters: Sequence[int], *, sampled: bool) -> FunctionCounts:
    lanes, edges = _lanes(layout, counters)
    torn = any(n < 0 for n in (*lanes, *edges))
    lanes, edges = ([max(n, 0) for n in found] for found in (lanes, edges))
    units = [WarpsAndLanes(_sum(u.warps, counters), n) for u, n in zip(layout.units, lanes, strict=True)]
    known = (_sum(edge.warps, counters) if edge.warps else None for edge in layout.edges)
    began = counters[BEGUN] if layout.kernel else 0
    return FunctionCounts(
        layout,
        tuple(units),
        tuple(edges),
        tuple(known),
        began,
        began - counters[ENDED] if layout.kernel and not sampled else 0,
        counters[WARPS] if layout.kernel else 0,
        counters[ENDED] if layout.kernel and sampled else 0,
        tuple(_histogram(branch, units[branch.unit], counters) for branch in layout.branches),
        tuple((counters[access.requests], counters[access.sectors]) for access in layout.accesses),
        torn,
    )


def _histogram(branch: Branch, unit: WarpsAndLanes, counters: Sequence[int]) -> tuple[int, ...] | None:
    if branch.histogram == UNKNOWN:
        return None
    some = counters[branch.histogram : branch.histogram + LANES]
    return (max(unit.warps - sum(some), 0), *some)


def _sum(terms: Sum, counters: Sequence[int]) -> int:
    return sum(counters[c] if c >= 0 else -counters[-1 - c] for c in terms)


def _lanes(layout: FunctionLayout, counters: Sequence[int]) -> tuple[list[int], list[int]]:
    """The lanes of all units and edges: the counted ones, then those that follow at a vertex with one unknown flow.

    Flows meet at vertices: the beginning and the end of a unit, and the outside. A loose edge merges its two vertices.
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
        # This flow carries out what else came in, or brings in what else went out.
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


def regions_of(
    module: Module,
    layout: Layout,
    counts: Sequence[FunctionCounts],
    times: Mapping[str, Elapsed] | None = None,
    launches: Mapping[str, int] | None = None,
) -> RunProfile:
    """The profile of the marked regions of ``module``, which was instrumented with its markers. ``times`` are what the
    GPU offered while each kernel ran, ``launches`` how often it ran.
    """
    sectors = {c.layout.name: sum(s for _, s in c.accesses) for c in counts} if layout.watched else None
    return measure(module, issues_of(counts), sectors, times, launches)


# --- the source ----------------------------------------------------------------------------------------------------


def functions_of(
    layout: Layout,
    counts: Sequence[FunctionCounts],
    unit: str,
    groups: Sequence[Sequence[FunctionCounts]] = (),
) -> tuple[FunctionRun, ...]:
    """The functions of ``unit``, a compiled file, that ran. ``groups`` are the counts of a sample's random groups."""
    samples = [_sample(function) for function in counts] if groups else [None] * len(counts)
    # It is not known which kernels called a device function: assume the sample that leaves out most.
    kernels = [sample for sample in samples if sample is not None]
    most = max(kernels, key=lambda sample: sample.left_out, default=None)
    return tuple(
        _function_run(layout, function, unit, [group[i] for group in groups], samples[i], most)
        for i, function in enumerate(counts)
        if any(found.warps for found in function.units)
    )


def _function_run(
    layout: Layout,
    function: FunctionCounts,
    unit: str,
    groups: Sequence[FunctionCounts],
    sample: Sample | None,
    most: Sample | None,
) -> FunctionRun:
    kernel = function.layout.kernel
    sample = sample if kernel else most
    groups = groups if sample is not None else ()
    return FunctionRun(
        function.layout.name,
        shown(function.layout.name),
        kernel,
        unit,
        sample=sample,
        lines=tuple(_lines(layout, function, groups)),
        branches=tuple(
            _with_groups(_branch(layout, function, n), [_branch(layout, group, n) for group in groups])
            for n, branch in enumerate(function.layout.branches)
            if function.units[branch.unit].warps
        ),
        loops=tuple(
            _with_groups(_loop(layout, function, n), [_loop(layout, group, n) for group in groups])
            for n, loop in enumerate(function.layout.loops)
            if function.units[loop.header].warps
        ),
    )


def _sample(function: FunctionCounts) -> Sample | None:
    """The sample that a kernel's counts come from; None if all warps were counted, or if it is not a kernel."""
    sample = Sample(function.warps, function.squares)
    return sample if sample.left_out > 0 else None


def notes_of(layout: Layout, counts: Sequence[FunctionCounts]) -> tuple[str, ...]:
    """Sentences on what is missing."""
    refused = [f"`{shown(f.name)}` is only timed: {f.why}" for f in layout.functions if not f.counted]
    lost = [
        f"the counts of {f.lost} of {f.blocks} blocks of `{shown(f.layout.name)}` are lost"
        for f in counts
        if f.lost
    ]
    torn = [
        f"some counts of `{shown(f.layout.name)}` contradict each other: the kernel was still running when"
        " they were read"
        for f in counts
        if f.torn
    ]
    few = f"one warp in {layout.every} is counted, more in small launches"
    why = f"`{shown(layout.crowded)}` has too many branches (--ccc-instrument=all counts all warps)"
    crowded = [f"{few}: {why}"] if layout.crowded else []
    deep = [
        f"`{shown(name)}` is recursive, and its instrumented copy takes more stack: if that exceeds the program's"
        " cudaLimitStackSize, the results of this run are wrong"
        for name in layout.recursive
    ]
    return (*refused, *crowded, *deep, *lost, *torn)


_Place = tuple[str, int, int]


@dataclass
class _Line:
    warps: int = 0
    lanes: int = 0
    requests: int = 0
    sectors: int = 0


def _lines(layout: Layout, function: FunctionCounts, groups: Sequence[FunctionCounts]) -> Iterator[LineCount]:
    by_group = [_by_place(layout, group) for group in groups]
    for place, line in sorted(_by_place(layout, function).items()):
        requests, sectors = (line.requests, line.sectors) if layout.watched else (None, None)
        here = [group.get(place, _Line()) for group in by_group]
        pairs = tuple(n for group in here for n in (group.warps, group.lanes)) or None
        yield LineCount(*place, line.warps, line.lanes, requests, sectors, pairs)


def _by_place(layout: Layout, function: FunctionCounts) -> dict[_Place, _Line]:
    found: dict[_Place, _Line] = defaultdict(_Line)
    for unit, count in zip(function.layout.units, function.units, strict=True):
        for spot in unit.spots if count.warps else ():
            line = found[_place(layout, spot)]
            line.warps += spot.instructions * count.warps
            line.lanes += spot.instructions * count.lanes
    for access, (requests, sectors) in zip(function.layout.accesses, function.accesses, strict=True):
        if requests:
            line = found[_place(layout, access.spot)]
            line.requests += requests
            line.sectors += sectors
    return found


_C = TypeVar("_C", BranchCount, LoopCount)


def _with_groups(count: _C, groups: Sequence[_C]) -> _C:
    """The count with the numbers of a sample's random groups."""
    if not groups:
        return count
    return replace(count, groups=tuple(getattr(group, name) for group in groups for name in count.GROUPED))


def _branch(layout: Layout, function: FunctionCounts, number: int) -> BranchCount:
    branch = function.layout.branches[number]
    here = function.units[branch.unit]
    ways = [function.edge_warps[edge] for edge in (branch.taken, branch.other)]
    # Each execution goes one way, or both ways if its lanes diverge. Groups of lanes that reached the branch
    # separately may have reconverged where the ways are counted.
    split = max(sum(w for w in ways if w is not None) - here.warps, 0) if None not in ways else 0
    taken = function.edge_lanes[branch.taken]
    histogram = function.histograms[number] if function.histograms else None
    return BranchCount(*_place(layout, branch.spot), here.warps, here.lanes, taken, split, histogram)


def _loop(layout: Layout, function: FunctionCounts, number: int) -> LoopCount:
    loop = function.layout.loops[number]
    header = function.units[loop.header]
    entries, entered = _entries(function, loop, header)
    return LoopCount(*_place(layout, loop.spot), entries, entered, header.warps, header.lanes)


def _entries(function: FunctionCounts, loop: LoopUnits, header: WarpsAndLanes) -> tuple[int, int]:
    """The warps and lanes that entered a loop."""
    lanes = max(header.lanes - sum(function.edge_lanes[edge] for edge in loop.back), 0)
    back = [function.edge_warps[edge] for edge in loop.back]
    if None not in back:
        return max(header.warps - sum(w for w in back if w is not None), 0), lanes
    outside = [function.edge_warps[edge] for edge in loop.entries]
    came = None if None in outside else sum(w for w in outside if w is not None)
    return header.warps if came is None else min(came, header.warps), lanes


def _place(layout: Layout, spot: Spot) -> _Place:
    return layout.files[spot.file], spot.line, spot.column


def by_name(counts: Iterable[FunctionCounts]) -> Mapping[str, FunctionCounts]:
    """The counts by the function's name."""
    return {function.layout.name: function for function in counts}
