"""How often warps and lanes reached each marked region, from counts for each statement of launched marked PTX."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from cccopt.analysis.affine import access_size
from cccopt.analysis.cost import Costs
from cccopt.ccc.function.annotations import is_annotation
from cccopt.ccc.function.view import View, view_of
from cccopt.ccc.outcome.refusal import Refusal
from cccopt.ccc.profitability.combined_atomics import is_combined
from cccopt.ccc.profitability.elapsed import Elapsed
from cccopt.ccc.profitability.estimate import begun_together
from cccopt.ccc.profitability.flows import LANES
from cccopt.ccc.profitability.full_warps import FullWarps
from cccopt.ccc.profitability.profile import RegionProfile, RunProfile, summed
from cccopt.ccc.regions.marked_loops import Region, find
from cccopt.ccc.regions.paths import Path
from cccopt.ccc.regions.points import marked_code
from cccopt.clauses import Kind
from cccopt.ptx import isa
from cccopt.ptx.ir import Function, Instruction, Module
from cccopt.ptx.scopes import with_unique_names


class Count(Protocol):
    """How often warps issued one instruction, and the lanes that were active then."""

    @property
    def warps(self) -> int: ...
    @property
    def lanes(self) -> int: ...


SECTOR_BYTES = 32


Issues = Mapping[tuple[str, int], Count]
"""Counts by function and statement index, like `cccopt.emulator.Profile.issues`."""


def measure(
    module: Module,
    issues: Issues,
    sectors: Mapping[str, float] | None = None,
    times: Mapping[str, Elapsed] | None = None,
    launches: Mapping[str, int] | None = None,
) -> RunProfile:
    """The profile of launches of marked PTX; ``issues`` are keyed by the statements of ``module``. For each function,
    ``sectors`` are those of all its accesses to global memory, ``times`` what the GPU offered while it ran, and
    ``launches`` the launches of a kernel. If sectors were not counted, each lane is taken to touch a sector of its own,
    except where lanes are known to touch neighboring places. Sectors of functions that a loop calls do not count for
    the loop. Functions that are refused have no profile.
    """
    named = with_unique_names(module)
    renamed = {f.name: f for f in named.functions() if f.body is not None}
    found: dict[str, Mapping[int, RegionProfile]] = {}
    for function in module.functions():
        if not any(is_annotation(s) for s in function.body or ()):
            continue
        view = view_of(named, renamed[function.name])
        launch = _CountedFunction(
            view,
            _by_index(view, function, issues),
            None if sectors is None else sectors.get(function.name, 0.0),
            Elapsed() if times is None else times.get(function.name, Elapsed()),
            0 if launches is None else launches.get(function.name, 0),
        )
        try:
            regions = find(view, with_unfit=True).regions
        except Refusal:
            continue
        own: dict[int, RegionProfile] = {}
        for region in regions:
            own = summed(own, launch.region(region))
        if any(profile.warps for profile in own.values()):
            found[function.name] = own
    return RunProfile(found)


def _by_index(view: View, function: Function, issues: Issues) -> dict[int, Count]:
    """The counts by the statement indices of the view, which has more labels than the function."""
    before = [i for i, s in enumerate(function.body or ()) if isinstance(s, Instruction)]
    now = [i for i, s in enumerate(view.body) if isinstance(s, Instruction)]
    pairs = zip(now, before, strict=True)
    return {i: issues[function.name, old] for i, old in pairs if (function.name, old) in issues}


@dataclass(frozen=True)
class _CountedFunction:
    """A function with the counts of its launches by statement, its sectors (None: not counted), its time and the number
    of launches.
    """

    view: View
    counts: Mapping[int, Count]
    sectors: float | None
    time: Elapsed
    launches: int

    def region(self, region: Region) -> dict[int, RegionProfile]:
        """The profiles of a marked loop and its paths."""
        tree = region.all_paths() or _by_points(self.view, region)
        own = region.nodes - frozenset().union(*(p.nodes for p in tree))
        warps, lanes = self._at_node(region.header)
        entries, entered = self._entries(region.annotation.region, warps, lanes)
        number = region.annotation.region
        time = self.time * _part(self._issued(region.nodes), self._issued(self.view.block_of_name))
        found = {
            number: RegionProfile(
                region.annotation.kind,
                entries,
                entered,
                warps,
                lanes,
                self._issued(own),
                0.0,
                self._sectors(region.nodes),
                time.slots,
                time.cycles,
                self.launches if region.annotation.kind == Kind.GRID else 0,
                self._combined(own),
            )
        }
        if region.annotation.kind == Kind.GRID:
            found[number] = _begun_by_all(found[number])
        for path in tree:
            found = summed(found, {path.annotation.region: self._path(path)})
        return found

    def _path(self, path: Path) -> RegionProfile:
        own = path.nodes - frozenset().union(*(child.nodes for child in path.children))
        warps, lanes = self._at_node(path.begin)
        entries, entered = (warps, lanes)
        if path.is_loop:
            entries, entered = self._entries(path.annotation.region, warps, lanes)
            if path.annotation.kind == Kind.RECURSIVE:
                # It has no such marker: the blocks that lead to its loop count, even if they also lead past it.
                header = self.view.block_of_name[path.begin]
                entering = self.view.names_of(self.view.cfg.predecessors[header]) - path.nodes
                begins = [self._at_node(name) for name in sorted(entering)]
                entries, entered = _at_most(begins, warps, lanes)
        times, full = self._by_full_warps(path, own), lanes / LANES
        return RegionProfile(
            path.annotation.kind,
            entries,
            entered,
            warps,
            lanes,
            self._issued(own),
            full * sum(self._costs.of_statement(index) * often for index, often in times.items()),
            atomics=self._combined(own),
            packed_atomics=full * sum(often for i, often in times.items() if is_combined(self.view, i)),
        )

    def _entries(self, region: int, warps: int, lanes: int) -> tuple[int, int]:
        """Warps and lanes that reached a loop; ``warps`` and ``lanes`` ran it."""
        begins = [self._at(i) for i in self.view.markers("for.begin", region)]
        return _at_most(begins, warps, lanes)

    def _issued(self, nodes: Collection[str]) -> float:
        return sum(
            self._costs.of_statement(i) * count.warps
            for i, _ in self.view.instructions(nodes)
            if (count := self.counts.get(i)) is not None
        )

    def _sectors(self, nodes: Collection[str]) -> float:
        """The sectors of global memory that ``nodes`` touched: the same part of all that were counted as of
        `_touched`.
        """
        touched = self._touched(nodes)
        if self.sectors is None:
            return touched
        return self.sectors * _part(touched, self._touched(self.view.block_of_name))

    def _touched(self, nodes: Collection[str]) -> float:
        """An estimate of the sectors of global memory that ``nodes`` touched, from how far apart neighboring lanes
        access it.
        """
        total = 0.0
        for index, instruction in self.view.instructions(nodes):
            facts, count = isa.facts(instruction), self.counts.get(index)
            if count is None or facts.memory is isa.Memory.NONE or facts.space not in ("global", "generic"):
                continue
            stride = self.view.lane_strides.of_access(index)
            apart = SECTOR_BYTES if stride is None else max(abs(stride), access_size(instruction))
            total += count.warps if stride == 0 else count.lanes * min(apart, SECTOR_BYTES) / SECTOR_BYTES
        return total

    def _by_full_warps(self, path: Path, own: Collection[str]) -> dict[int, float]:
        """How often a full warp that begins a path runs each instruction of its ``own`` code."""
        view, inside = self.view, self.view.blocks_of(path.nodes)
        full = FullWarps(view, view.block_of_name[path.begin], inside, self._at_block)
        return {
            index: full.times(view.cfg.block_of(index), (count.warps, count.lanes))
            for index, _ in view.instructions(own)
            if (count := self.counts.get(index)) is not None
        }

    def _combined(self, nodes: Collection[str]) -> float:
        """How often warps ran atomic operations of ``nodes`` that ptxas combines."""
        return sum(
            count.warps
            for index, _ in self.view.instructions(nodes)
            if (count := self.counts.get(index)) is not None and is_combined(self.view, index)
        )

    def _at_node(self, name: str) -> tuple[int, int]:
        """Warps and lanes that reached a node."""
        return self._at_block(self.view.block_of_name[name])

    def _at_block(self, block: int) -> tuple[int, int]:
        """Warps and lanes that reached a block."""
        return self._at(self.view.cfg.blocks[block].start)

    def _at(self, index: int) -> tuple[int, int]:
        """Warps and lanes of the first instruction at or after statement ``index``."""
        for statement in range(index, len(self.view.body)):
            if isinstance(self.view.body[statement], Instruction):
                count = self.counts.get(statement)
                return (0, 0) if count is None else (count.warps, count.lanes)
        return 0, 0

    @cached_property
    def _costs(self) -> Costs:
        return self.view.costs


def _begun_by_all(loop: RegionProfile) -> RegionProfile:
    """A loop over blocks, with its own code run as without it: the warps of each block begin with all their lanes."""
    begun = begun_together(loop)
    return replace(
        loop,
        warps=round(loop.warps * begun),
        issued=loop.issued * begun,
        atomics=loop.atomics * begun,
    )


def _part(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _at_most(begins: Iterable[tuple[int, int]], warps: int, lanes: int) -> tuple[int, int]:
    found = list(begins)
    return min(sum(w for w, _ in found), warps), min(sum(n for _, n in found), lanes)


def _by_points(view: View, region: Region) -> tuple[Path, ...]:
    """The paths of a loop in which some paths cannot be deferred by themselves, each with only its own code."""
    codes = {point: marked_code(view, point, region.nodes) for point in region.points}
    inner = {p: [c for c in codes.values() if c < code] for p, code in codes.items()}
    return tuple(
        Path(point.annotation, point.begin, code.difference(*inner[point]), region.header)
        for point, code in codes.items()
    )
