"""The profile of marked regions from a run of the program as it was before it was annotated.

    run:       app.cu  12 for: 320 warps, 3000 lanes       12 if (...): 320 warps        13 f(): 90 warps, 700 lanes
    marked:    app.cu  12 #pragma ccc for
                       13 for (...)                        region 1: for, 320 warps, 3000 lanes
                       14 #pragma ccc if
                       15   if (...) f();                  region 2: if, 90 warps, 700 lanes

What was counted goes by lines without annotations. It is carried over to the statements of the marked PTX, which needs
line information for that (`transfer`), and then counted by region as if that had run. Lines that have moved are found
by their hashes; a region of which lines have changed is *stale*: nothing is known of it.

Not known is also a path that was compiled without a branch: its code ran for all lanes, and only they know who needed
it. A kernel marked ``grid`` begins one iteration in each entry: how many blocks share the work is not decided yet.
Sectors are never known.
"""

from __future__ import annotations

import os.path
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from cccopt.analysis.cfg import build
from cccopt.ccc.function.annotations import Annotation, annotations_of, is_annotation
from cccopt.ccc.function.view import View, view_of
from cccopt.ccc.outcome import refusal
from cccopt.ccc.outcome.refusal import Refusal
from cccopt.ccc.profitability.profile import Count, RegionProfile, RunProfile, measure, paths_in
from cccopt.ccc.regions.marked_loops import find, loops_of
from cccopt.clauses import Kind, MarkedShape
from cccopt.diagnostic import Diagnostic
from cccopt.profiling.names import shown
from cccopt.profiling.run_file import BranchCount, FunctionRun, LineCount, LoopCount, RunFile
from cccopt.profiling.sources import Source
from cccopt.profiling.transfer import Place, Transfer
from cccopt.ptx import isa
from cccopt.ptx.ir import Function, Instruction, Module
from cccopt.ptx.isa import Control
from cccopt.ptx.lines import source_lines
from cccopt.ptx.scopes import with_unique_names
from cccopt.text import Place as SourcePlace

_SHOWN = 4
"""So many lines are named in a message."""

Line = tuple[str, int]
"""A file, and the number of a line of it without annotations."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """The regions of each marked function that a run tells of, and what there is to say of the others."""

    profile: RunProfile
    remarks: tuple[Diagnostic, ...] = ()


def files_in(module: Module) -> frozenset[str]:
    """The source files of the marked functions of ``module``."""
    return frozenset(
        line.file for f in _marked(module) for line in source_lines(module, f) if line is not None
    )


def fitted(run: RunFile, module: Module, sources: Mapping[str, Source], unit: str = "") -> Fitted:
    """What ``run`` tells of the regions of ``module``, which is marked, prepared and has line information.

    ``sources`` are the texts of its files, ``unit`` is the file that it was compiled from. Of functions whose regions
    were counted as such these counts are taken. Functions that did not run have none.
    """
    named = with_unique_names(module)
    views = {f.name: view_of(named, f) for f in named.functions() if f.body is not None}
    issues: dict[tuple[str, int], Count] = {}
    found: dict[str, _Function] = {}
    for function in _marked(module):
        ran = _run_of(run, function.name, unit)
        if ran is not None:
            here = _Function(module, function, views[function.name], _Moved(run, sources), ran)
            found[function.name] = here
            issues |= {(function.name, i): count for i, count in here.transfer.issues().items()}
    derived = measure(module, issues).functions
    profiles: dict[str, Mapping[int, RegionProfile]] = {}
    remarks: list[Diagnostic] = []
    for function in _marked(module):
        name = function.name
        counted = run.kernels.functions.get(name, {})
        kinds = {n: a.kind for n, a in annotations_of(function.body or ()).items()}
        known = {n: r.kind for n, r in counted.items()} == kinds
        if name not in found or not found[name].is_by_line:
            if counted or name in found:
                profiles[name] = counted
            if name in found and not known:
                remarks.append(found[name].elsewhere())
            continue
        unknown = {**found[name].stale(), **({} if known else found[name].unbranched())}
        regions = counted if known else derived.get(name, {})
        profiles[name] = {n: region for n, region in regions.items() if n not in unknown}
        remarks += unknown.values()
    return Fitted(RunProfile(profiles), tuple(remarks))


def _marked(module: Module) -> Iterator[Function]:
    return (f for f in module.functions() if any(is_annotation(s) for s in f.body or ()))


def _run_of(run: RunFile, name: str, unit: str) -> FunctionRun | None:
    """The counts of a function: those of its own file, or else of the one where it ran most. A static function may have
    another name in each compilation, but is shown with the same.
    """
    counted = [f for f in run.functions if f.counted and f.warps]
    same = [f for f in counted if f.name == name] or [f for f in counted if f.shown == shown(name)]
    here = [f for f in same if unit and os.path.basename(f.unit) == os.path.basename(unit)]
    return max(here or same, key=lambda f: f.warps, default=None)


_C = TypeVar("_C", LineCount, BranchCount, LoopCount)


@dataclass(frozen=True)
class _Moved:
    """Where the lines of a run are now."""

    run: RunFile
    sources: Mapping[str, Source]

    @cached_property
    def files(self) -> Mapping[str, str]:
        """The files of now by the names that the run has for them: another folder is no other file."""
        named = {name for f in self.run.functions for name in _files(f)}
        found = {name: name for name in named if name in self.sources}
        for name in sorted(named - found.keys()):
            same = [n for n in self.sources if os.path.basename(n) == os.path.basename(name)]
            if len(same) == 1 and same[0] not in found.values():
                found[name] = same[0]
        return found

    @cached_property
    def lines(self) -> Mapping[str, Mapping[int, int] | None]:
        """By the run's files, where lines have gone; None where all are in their places."""
        found: dict[str, Mapping[int, int] | None] = {}
        for name, now in self.files.items():
            source, digest = self.sources[now], self.run.sources.get(name)
            same = digest is None or digest == source.digest
            found[name] = None if same else source.places_of(self.run.line_hashes.get(name, ""))
        return found

    def now(self, file: str, line: int) -> Line | None:
        """Where a line of the run is; None if it is no longer there."""
        if file not in self.files:
            return file, line
        moved = self.lines[file]
        number = line if moved is None else moved.get(line)
        return None if number is None else (self.files[file], number)

    def counts(self, counts: Iterable[_C]) -> tuple[_C, ...]:
        """Those counts whose lines are still there."""
        found = ((count, self.now(count.file, count.line)) for count in counts)
        return tuple(replace(c, file=at[0], line=at[1]) for c, at in found if at is not None)

    def is_new(self, line: Line) -> bool:
        """Whether a line of now was not there in the run; not for files of which that knows nothing."""
        return line[0] in self._old and line[1] not in self._old[line[0]]

    @cached_property
    def _old(self) -> Mapping[str, Collection[int]]:
        return {self.files[n]: frozenset(m.values()) for n, m in self.lines.items() if m is not None}

    def gone(self, function: FunctionRun, file: str, first: int, last: int) -> list[int]:
        """The lines of the run that counted something between two lines of now and are no longer there, by their old
        numbers.
        """
        found: set[int] = set()
        for name, moved in self.lines.items():
            if moved is None or self.files[name] != file:
                continue
            old = [a for a, b in moved.items() if first <= b <= last]
            lines = {c.line for c in function.lines if c.file == name}
            found |= {n for n in lines if old and min(old) < n < max(old) and n not in moved}
        return sorted(found)


def _files(function: FunctionRun) -> frozenset[str]:
    found = {c.file for c in function.lines}
    return frozenset(found.union((c.file for c in function.branches), (c.file for c in function.loops)))


@dataclass(frozen=True)
class _Function:
    """A marked function beside what a run counted of it."""

    module: Module
    function: Function
    view: View
    moved: _Moved
    ran: FunctionRun

    @cached_property
    def run(self) -> FunctionRun:
        """The counts at the lines of now."""
        counts = self.moved.counts
        return replace(
            self.ran,
            lines=counts(self.ran.lines),
            branches=counts(self.ran.branches),
            loops=counts(self.ran.loops),
        )

    @cached_property
    def transfer(self) -> Transfer:
        body = self.function.body or ()
        return Transfer(body, self._places(self.module, self.function), self.run, self._once)

    def _places(self, module: Module, function: Function) -> Sequence[Place | None]:
        """The places of statements as runs name them. What is ahead of the first goes by that one."""
        lines = source_lines(module, function)
        first = next((line for line in lines if line is not None), None)
        return [
            None if line is None else (line.file, self._numbered(line.file, line.line), line.column)
            for line in (first if line is None else line for line in lines)
        ]

    def _numbered(self, file: str, line: int) -> int:
        source = self.moved.sources.get(file)
        return line if source is None else source.numbered(line)

    @cached_property
    def _once(self) -> frozenset[int]:
        """The headers of the loops over blocks."""
        grids = [a for a in self.view.annotations.values() if a.kind == Kind.GRID]
        headers = [loop.header for a in grids for loop in loops_of(self.view, a)]
        if not headers:
            return frozenset()
        before = [i for i, s in enumerate(self.function.body or ()) if isinstance(s, Instruction)]
        now = [i for i, s in enumerate(self.view.body) if isinstance(s, Instruction)]
        index = dict(zip(now, before, strict=True))
        cfg = self.view.cfg
        firsts = (min((i for i in cfg.blocks[h].statements() if i in index), default=None) for h in headers)
        blocks = build(self.function.body or ())
        return frozenset(blocks.block_of(index[i]) for i in firsts if i is not None)

    # --- what is not known ---

    @property
    def is_by_line(self) -> bool:
        """Whether any counts are at lines of this function."""
        here = {_line(place) for place in self._view_places if place is not None}
        # Where all lines have changed the counts are gone, but of this source all the same.
        return any((c.file, c.line) in here for c in self.run.lines) or len(self.run.lines) < len(
            self.ran.lines
        )

    def elsewhere(self) -> Diagnostic:
        """What to say of counts that go by other lines: those of the PTX, say."""
        files = ", ".join(f"`{os.path.basename(name)}`" for name in sorted({c.file for c in self.ran.lines}))
        return refusal.remark(
            "CCC068",
            f"the profile does not fit `{self.function.name}`",
            next(iter(self.view.annotations.values())).place,
            f"its counts go by lines of {files}",
            "profile a program that was compiled with `-lineinfo` or by `ccc-nvcc --ccc-instrument`",
        )

    @cached_property
    def _pieces(self) -> Sequence[tuple[Annotation, str, frozenset[str]]]:
        """The marked pieces: where they begin, and the nodes that are theirs alone."""
        try:
            regions = find(self.view, with_unfit=True).regions
        except Refusal:
            return ()
        found: list[tuple[Annotation, str, frozenset[str]]] = []
        for region in regions:
            tree = paths_in(self.view, region)
            own = region.nodes.difference(*(p.nodes for p in tree))
            found.append((region.annotation, region.header, own))
            found += [
                (p.annotation, p.begin, p.nodes.difference(*(c.nodes for c in p.children))) for p in tree
            ]
        return found

    @cached_property
    def _view_places(self) -> Sequence[Place | None]:
        return self._places(self.view.module, self.view.function)

    def stale(self) -> dict[int, Diagnostic]:
        """The regions of which lines have changed since the run, with what to say."""
        lines: dict[int, set[Line]] = {}
        annotations: dict[int, Annotation] = {}
        for annotation, _, nodes in self._pieces:
            annotations[annotation.region] = annotation
            here = lines.setdefault(annotation.region, set())
            here |= {
                _line(p) for i, _ in self.view.instructions(nodes) if (p := self._view_places[i]) is not None
            }
            head = self._head(annotation.place)
            here |= set() if head is None else {head}
        found: dict[int, Diagnostic] = {}
        told: list[tuple[str, int, int]] = []
        # Inner regions first: what is gone from one was not its loop's.
        for number, own in sorted(lines.items(), key=lambda item: _span(item[1])):
            annotation = annotations[number]
            head = self._head(annotation.place)
            changed = sorted(line for line in own if self.moved.is_new(line))
            file, first, last = _ends(own, head)
            inner = any(name == file and first <= a and b <= last for name, a, b in told)
            gone = [] if inner else self.moved.gone(self.ran, file, first, last)
            if changed or gone:
                why = f"{self._told(changed)} since the program was profiled" if changed else _told_gone(gone)
                found[number] = _unknown(annotation, why)
                told.append((file, first, last))
        return found

    def _head(self, place: SourcePlace | None) -> Line | None:
        """The line of a pragma's statement."""
        if place is None:
            return None
        known = self.moved.sources
        file = place.file if place.file in known else os.path.abspath(place.file)
        return file, self._numbered(file, place.position.line)

    def _told(self, lines: Sequence[Line]) -> str:
        """Lines by the numbers that they have in the file."""
        names = [f"{os.path.basename(f)}:{self.moved.sources[f].shown(n)}" for f, n in lines[:_SHOWN]]
        more = " and others" if len(lines) > _SHOWN else ""
        return f"{', '.join(names)}{more} {'has' if len(lines) == 1 else 'have'} changed"

    def unbranched(self) -> dict[int, Diagnostic]:
        """The paths that lanes went without a branch in the run, with what to say."""
        branched = {(b.file, b.line) for b in self.run.branches}
        ran = {(c.file, c.line) for c in self.run.lines}
        found: dict[int, Diagnostic] = {}
        for annotation, begin, _ in self._pieces:
            if annotation.event != MarkedShape.PATH or annotation.kind == Kind.SWITCH:
                continue
            ways = self._ways(begin)
            lines = {_line(p) for i in ways if (p := self._view_places[i]) is not None}
            head = self._head(annotation.place)
            lines |= set() if head is None else {head}
            if ways and lines & ran and not lines & branched:
                why = "there was no branch in the program that was profiled: nothing tells how many lanes come to it"
                found[annotation.region] = _unknown(annotation, why)
        return found

    def _ways(self, begin: str) -> list[int]:
        """The branches that lead to a path; none where one is indexed."""
        view, found = self.view, list[int]()
        seen: set[int] = set()
        work = [view.block_of_name[begin]]
        while work:
            for block in view.cfg.predecessors[work.pop()]:
                if block in seen:
                    continue
                seen.add(block)
                if len(view.cfg.successors[block]) == 1:
                    work.append(block)
                    continue
                last = view.body[view.cfg.blocks[block].stop - 1]
                if not isinstance(last, Instruction) or isa.facts(last).control is not Control.BRANCH:
                    return []
                if last.guard is None:
                    return []
                found.append(view.cfg.blocks[block].stop - 1)
        return found


def _span(lines: Collection[Line]) -> int:
    """How many lines there are from the first to the last, in the file where that is most."""
    numbers = ([n for file, n in lines if file == name] for name in {file for file, _ in lines})
    return max((max(found) - min(found) for found in numbers), default=0)


def _ends(lines: Collection[Line], head: Line | None) -> tuple[str, int, int]:
    """The file of a region, and its first and last line there."""
    file = "" if head is None else head[0]
    inside = [n for name, n in lines if name == file]
    return file, min(inside, default=0), max(inside, default=0)


def _line(place: Place) -> Line:
    return place[0], place[1]


def _told_gone(lines: Sequence[int]) -> str:
    count = "a line" if len(lines) == 1 else f"{len(lines)} lines"
    return (
        f"{count} that had been in it when the program was profiled {'is' if len(lines) == 1 else 'are'} gone"
    )


def _unknown(annotation: Annotation, why: str) -> Diagnostic:
    what = "loop" if annotation.event == MarkedShape.LOOP else "path"
    return refusal.remark(
        "CCC068",
        f"the profile does not tell of this marked {what}",
        annotation.place,
        f"{why}; how often lanes come to it is assumed",
        "profile the program anew: `ccc-nvcc --ccc-instrument`, then `cccopt profile`",
    )
