"""What the counters of an instrumented module count: a text that travels with the code.

The counts are ``copies`` rows of ``counters`` 64-bit numbers, which are added up; those of a function begin at
``first``. If one warp in ``every`` is sampled (`sampling`), each row is for a random group of them, and a warp's counts
are multiplied by the number of warps that it represents.

A function's body is cut into *units*, runs of statements that the same warps and lanes execute: its basic blocks, cut
after calls that may end the thread. Lanes are counted only on some units and edges; the others follow, because as many
lanes leave each place as reach it (`cccopt.profiling.counts`). Counts of warps are sums and differences of counters.

The text is JSON, compressed by zlib. Positions in the lists are part of the format: `FORMAT` changes with them.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

FORMAT = 5

OUTSIDE = -1
"""Stands in for a unit: the outside, from which control enters the function and to which it returns."""

UNKNOWN = -1
"""Instead of a counter: there is none."""

BEGUN, ENDED, THREADS, WARPS, OWN = range(5)
"""The first counters of a kernel: blocks that began, blocks that ended, their threads and warps. Those of its units
follow. In a sample the first two are about warps: how many were counted, and the squares of how many each represents.
"""

Sum = tuple[int, ...]
"""Counters that are added; ``-1 - c`` if counter ``c`` is subtracted. Numbers are relative to the function's first."""


@dataclass(frozen=True, slots=True)
class Spot:
    """Instructions of a unit at one place of the source; ``file`` is an index into the layout's files."""

    file: int
    line: int
    column: int
    instructions: int = 1


@dataclass(frozen=True, slots=True)
class Unit:
    """The statements ``start`` to ``stop`` of the plain function; ``lanes`` is a counter or `UNKNOWN`."""

    start: int
    stop: int
    warps: Sum
    lanes: int
    spots: tuple[Spot, ...] = ()


@dataclass(frozen=True, slots=True)
class Edge:
    """Control goes from one unit to another. ``warps`` is empty if they are not known. The lanes of a ``loose`` edge
    are not known, and nothing follows from it.
    """

    source: int
    target: int
    warps: Sum = ()
    lanes: int = UNKNOWN
    loose: bool = False


@dataclass(frozen=True, slots=True)
class Branch:
    """A conditional branch that ends ``unit``: the edges of lanes that jump and of lanes that do not. If there is a
    histogram, it is in the 32 counters from ``histogram`` on: executions in which 1, 2, ... lanes jumped.
    """

    spot: Spot
    unit: int
    taken: int
    other: int
    histogram: int = UNKNOWN


@dataclass(frozen=True, slots=True)
class Access:
    """An access to global memory (``instructions`` is 1), with the counters of its executions by groups of lanes and of
    the 32-byte sectors that they touched.
    """

    spot: Spot
    requests: int
    sectors: int


@dataclass(frozen=True, slots=True)
class LoopUnits:
    """A loop: the unit with which an iteration begins, and the edges to it from outside and from inside."""

    spot: Spot
    header: int
    entries: tuple[int, ...]
    back: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FunctionLayout:
    """A function. ``why`` says why it has no counters, if it has none. With ``shared``, its counters are in shared
    memory while a block runs.
    """

    name: str
    kernel: bool
    why: str = ""
    first: int = 0
    counters: int = 0
    shared: bool = False
    units: tuple[Unit, ...] = ()
    edges: tuple[Edge, ...] = ()
    branches: tuple[Branch, ...] = ()
    loops: tuple[LoopUnits, ...] = ()
    accesses: tuple[Access, ...] = ()

    @property
    def counted(self) -> bool:
        """Whether it has counters."""
        return not self.why


@dataclass(frozen=True, slots=True)
class Layout:
    """The counters of a module. ``marked`` is its PTX if that has markers of annotations, otherwise empty. At least one
    warp in ``every`` is counted; ``crowded`` is a function with too many counters to count all warps, or empty. In a
    ``watched`` module, branches have histograms and accesses have counters. ``recursive`` are counted functions that
    may call themselves, whose copies take more stack.
    """

    copies: int = 1
    counters: int = 0
    files: tuple[str, ...] = ()
    functions: tuple[FunctionLayout, ...] = field(default=())
    marked: str = ""
    every: int = 1
    watched: bool = False
    crowded: str = ""
    recursive: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """The bytes of the counts."""
        return 8 * self.copies * self.counters


# --- as text ---


def as_bytes(layout: Layout) -> bytes:
    """The text that the module carries."""
    data = {
        "format": FORMAT,
        "copies": layout.copies,
        "counters": layout.counters,
        "files": layout.files,
        "functions": [_function(f) for f in layout.functions],
        "marked": layout.marked,
        "every": layout.every,
        "watched": layout.watched,
        "crowded": layout.crowded,
        "recursive": layout.recursive,
    }
    return zlib.compress(json.dumps(data, separators=(",", ":")).encode(), 9)


def of_bytes(text: bytes) -> Layout:
    """The layout that ``text`` encodes; trailing zeros are ignored. Raises ValueError for anything else."""
    try:
        data = json.loads(zlib.decompressobj().decompress(text))
        if data["format"] != FORMAT:
            raise ValueError(f"its format is {data['format']}, not {FORMAT}")
        return Layout(
            int(data["copies"]),
            int(data["counters"]),
            tuple(data["files"]),
            tuple(_of_function(entry) for entry in data["functions"]),
            str(data["marked"]),
            int(data["every"]),
            bool(data["watched"]),
            str(data["crowded"]),
            tuple(map(str, data["recursive"])),
        )
    except (zlib.error, ValueError, KeyError, TypeError, IndexError) as problem:
        raise ValueError(f"not a layout of counters: {problem}") from problem


def _function(f: FunctionLayout) -> dict[str, Any]:
    if not f.counted:
        return {"name": f.name, "kernel": f.kernel, "why": f.why}
    return {
        "name": f.name,
        "kernel": f.kernel,
        "first": f.first,
        "counters": f.counters,
        "shared": f.shared,
        "units": [[u.start, u.stop, u.warps, u.lanes, [_spot(s) for s in u.spots]] for u in f.units],
        "edges": [[e.source, e.target, e.warps, e.lanes, int(e.loose)] for e in f.edges],
        "branches": [[_spot(b.spot), b.unit, b.taken, b.other, b.histogram] for b in f.branches],
        "loops": [[_spot(p.spot), p.header, p.entries, p.back] for p in f.loops],
        "accesses": [[_spot(a.spot), a.requests, a.sectors] for a in f.accesses],
    }


def _of_function(entry: dict[str, Any]) -> FunctionLayout:
    name, kernel = str(entry["name"]), bool(entry["kernel"])
    if "why" in entry:
        return FunctionLayout(name, kernel, str(entry["why"]))
    return FunctionLayout(
        name,
        kernel,
        "",
        int(entry["first"]),
        int(entry["counters"]),
        bool(entry["shared"]),
        tuple(Unit(u[0], u[1], tuple(u[2]), u[3], _spots(u[4])) for u in entry["units"]),
        tuple(Edge(e[0], e[1], tuple(e[2]), e[3], bool(e[4])) for e in entry["edges"]),
        tuple(Branch(Spot(*b[0]), *b[1:]) for b in entry["branches"]),
        tuple(LoopUnits(Spot(*p[0]), p[1], tuple(p[2]), tuple(p[3])) for p in entry["loops"]),
        tuple(Access(Spot(*a[0]), *a[1:]) for a in entry["accesses"]),
    )


def _spot(spot: Spot) -> list[int]:
    return [spot.file, spot.line, spot.column, spot.instructions]


def _spots(entries: Iterable[Sequence[int]]) -> tuple[Spot, ...]:
    return tuple(Spot(*entry) for entry in entries)
