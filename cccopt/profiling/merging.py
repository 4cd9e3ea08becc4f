"""Several runs of a program as one: their counts are added."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from cccopt.diagnostic import CccError, error
from cccopt.profiling.run_file import (
    BranchCount,
    FunctionRun,
    LineCount,
    LoopCount,
    RunFile,
    Sampled,
    UncountedKernel,
)
from cccopt.profiling.sample import Sample, together
from cccopt.version import __version__


def merged(runs: Iterable[RunFile]) -> RunFile:
    """A run of all ``runs``: counts of the same code are added (functions match by name and unit), the rest is joined.

    Raises CccError if a source differs between them in more than its `#pragma ccc` lines (CCC068).
    """
    total = RunFile()
    for run in runs:
        total = _both(total, run)
    return total


def _both(a: RunFile, b: RunFile) -> RunFile:
    changed = sorted(
        name for name in a.sources.keys() & b.sources.keys() if a.sources[name] != b.sources[name]
    )
    if changed:
        raise CccError(
            error(
                "CCC068",
                f"the runs are of different versions of `{changed[0]}`",
                why="more than its `#pragma ccc` lines changed between them, so their line numbers do not"
                " match",
                help="profile the program again, into a separate file",
            )
        )
    return RunFile(
        __version__,
        a.runs + b.runs,
        _union(a.devices, b.devices),
        {**a.sources, **b.sources},
        a.kernels + b.kernels,
        _joined(a.functions, b.functions, lambda f: (f.name, f.unit), _both_functions),
        _joined(a.uncounted, b.uncounted, lambda k: k.name, _both_uncounted),
        _union(a.notes, b.notes),
        _union(a.hardware, b.hardware),
        _joined(a.candidates, b.candidates, lambda c: (c.unit, c.packed), lambda c, d: c + d),
    )


_Item = TypeVar("_Item")
_Addend = TypeVar("_Addend", int, Sample)


def _union(a: Sequence[_Item], b: Sequence[_Item]) -> tuple[_Item, ...]:
    return tuple(dict.fromkeys((*a, *b)))


def _joined(
    a: Sequence[_Item],
    b: Sequence[_Item],
    key: Callable[[_Item], object],
    both: Callable[[_Item, _Item], _Item],
) -> tuple[_Item, ...]:
    """All items of ``a`` and ``b``, with equal keys combined: the first in ``a`` with the first in ``b``, and so on."""
    found: dict[object, _Item] = {}
    for items in (a, b):
        seen: dict[object, int] = {}
        for item in items:
            nth = seen[key(item)] = seen.get(key(item), 0) + 1
            here = (key(item), nth)
            found[here] = both(found[here], item) if here in found else item
    return tuple(found.values())


def _both_functions(a: FunctionRun, b: FunctionRun) -> FunctionRun:
    return FunctionRun(
        a.name,
        a.shown,
        a.kernel,
        a.unit,
        _sum(a.launches, b.launches),
        _sum(a.time_ns, b.time_ns),
        a.counted or b.counted,
        _most(a.registers, b.registers),
        _most(a.registers_counted, b.registers_counted),
        _most(a.shared, b.shared),
        _most(a.shared_counted, b.shared_counted),
        _sum(a.launched, b.launched),
        largest([f.block or () for f in (a, b) if f.launches != 0]) or None,
        _most(a.dynamic_shared, b.dynamic_shared),
        _sum(a.sample, b.sample),
        _joined(a.lines, b.lines, _place, added),
        _joined(a.branches, b.branches, _place, _both_branches),
        _joined(a.loops, b.loops, _place, _both_loops),
    )


def _place(count: LineCount | BranchCount | LoopCount) -> tuple[str, int, int]:
    return count.file, count.line, count.column


def _sum(a: _Addend | None, b: _Addend | None) -> _Addend | None:
    """The sum of what is known."""
    if a is None or b is None:
        return b if a is None else a
    return a + b


def largest(blocks: Collection[tuple[int, ...]]) -> tuple[int, ...]:
    """The largest size of these blocks in each direction; empty if one of them is not known (empty)."""
    return tuple(map(max, itertools.zip_longest(*blocks, fillvalue=1))) if all(blocks) else ()


def _most(a: int | None, b: int | None) -> int | None:
    return max((value for value in (a, b) if value is not None), default=None)


def added(a: LineCount, b: LineCount) -> LineCount:
    """The sum of two counts, at the place of the first."""
    return replace(
        a,
        warps=a.warps + b.warps,
        lanes=a.lanes + b.lanes,
        requests=_sum(a.requests, b.requests),
        sectors=_sum(a.sectors, b.sectors),
        groups=_both_groups(a, b),
    )


def _both_groups(a: Sampled, b: Sampled) -> tuple[int, ...] | None:
    return a.groups if b.groups is None else together(a.groups or (), b.groups)


def _both_branches(a: BranchCount, b: BranchCount) -> BranchCount:
    histogram = None
    # A histogram of only some executions would not add up to the number of all.
    if a.histogram is not None and b.histogram is not None:
        histogram = tuple(x + y for x, y in zip(a.histogram, b.histogram, strict=True))
    return replace(
        a,
        warps=a.warps + b.warps,
        lanes=a.lanes + b.lanes,
        taken=a.taken + b.taken,
        split=a.split + b.split,
        histogram=histogram,
        groups=_both_groups(a, b),
    )


def _both_loops(a: LoopCount, b: LoopCount) -> LoopCount:
    return replace(
        a,
        entries=a.entries + b.entries,
        entered=a.entered + b.entered,
        warps=a.warps + b.warps,
        lanes=a.lanes + b.lanes,
        groups=_both_groups(a, b),
    )


def _both_uncounted(a: UncountedKernel, b: UncountedKernel) -> UncountedKernel:
    return replace(a, launches=a.launches + b.launches, time_ns=a.time_ns + b.time_ns)
