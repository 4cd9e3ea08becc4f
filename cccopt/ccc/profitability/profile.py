"""How often warps and lanes came to each marked region in runs on the emulator or a GPU, and the file that holds it.

    {"schema": 1, "cccopt": "0.1.0",
     "kernels": {"bfs": {"1": {"kind": "for", "entries": ..., "lanes": ...}, "2": {"kind": "if", ...}}}}

Run files (`cccopt.profiling.run_file`, schema 2) hold the same ``kernels`` beside counts by line. Regions go by the
number that their marks have in the file that was annotated, so a profile fits the marked PTX of the same source for any
target. Profiles of several launches add up.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Protocol

from cccopt.analysis.affine import access_size
from cccopt.analysis.cost import Costs
from cccopt.ccc.function.annotations import is_annotation
from cccopt.ccc.function.view import View, view_of
from cccopt.ccc.outcome.refusal import Refusal
from cccopt.ccc.profitability.model import LANES, any_of
from cccopt.ccc.regions.marked_loops import Region, find
from cccopt.ccc.regions.paths import Path
from cccopt.ccc.regions.points import marked_code
from cccopt.clauses import Kind
from cccopt.diagnostic import CccError, error
from cccopt.files import read_text, write_text
from cccopt.ptx import isa
from cccopt.ptx.ir import Function, Instruction, Module
from cccopt.ptx.scopes import with_unique_names
from cccopt.version import __version__

SCHEMA = 1
"""The layout that is written here."""

_MAKE_ONE = "make one with `cccopt profile -- PROGRAM` or `cccopt emulate FILE.ptx KERNEL ... --profile=FILE`"

SCHEMAS = (1, 2)
"""The layouts whose ``kernels`` can be read."""


class Count(Protocol):
    """Issues of one instruction: by warps, and the lanes active in them."""

    @property
    def warps(self) -> int: ...
    @property
    def lanes(self) -> int: ...


SECTOR_BYTES = 32


@dataclass(frozen=True, slots=True)
class KernelTime:
    """What a GPU had in the time of a kernel: issue ``slots``, and ``cycles`` of all the warps that it ran at once."""

    slots: float = 0.0
    cycles: float = 0.0

    def __add__(self, other: KernelTime) -> KernelTime:
        return KernelTime(self.slots + other.slots, self.cycles + other.cycles)

    def __mul__(self, part: float) -> KernelTime:
        return KernelTime(self.slots * part, self.cycles * part)


Issues = Mapping[tuple[str, int], Count]
"""Counts by function and statement index, as `cccopt.emulator.Profile.issues`."""


@dataclass(frozen=True, slots=True)
class RegionProfile:
    """One marked region, all its copies and launches together.

    ``warps`` and ``lanes`` ran it: iterations of a loop, runs of a path. ``entries`` and ``entered`` are the warps and
    lanes that came to a loop, the same as those for a path. ``issued`` are the issue slots of its own code
    (inner marked regions aside), ``packed`` those that it would take if only full warps began it. ``sectors`` is the
    32-byte pieces of global memory that a marked loop touched, with all inside it. ``elapsed`` are the issue slots that
    the GPU had in the time of a marked loop, and ``resident`` the cycles that it had for warps, as many as it holds at
    once or a launch has: both are 0 if that time is not known.
    """

    kind: str
    entries: int = 0
    entered: int = 0
    warps: int = 0
    lanes: int = 0
    issued: float = 0.0
    packed: float = 0.0
    sectors: float = 0.0
    elapsed: float = 0.0
    resident: float = 0.0

    def __add__(self, other: RegionProfile) -> RegionProfile:
        mine, theirs = asdict(self), asdict(other)
        total = RegionProfile(self.kind, **{k: mine[k] + theirs[k] for k in mine if k != "kind"})
        # The time of some runs says nothing of the counts of all.
        known = all(one.elapsed or not one.warps for one in (self, other))
        return total if known else total.untimed()

    def untimed(self) -> RegionProfile:
        """The same without a time."""
        return replace(self, elapsed=0.0, resident=0.0)


@dataclass(frozen=True, slots=True)
class RunProfile:
    """The regions of each function by their numbers."""

    functions: Mapping[str, Mapping[int, RegionProfile]] = field(default_factory=dict)

    def __add__(self, other: RunProfile) -> RunProfile:
        return RunProfile(
            {
                name: _summed(self.functions.get(name, {}), other.functions.get(name, {}))
                for name in {**self.functions, **other.functions}
            }
        )

    def without(self, regions: Collection[int], parents: Mapping[int, int | None]) -> RunProfile:
        """The profile of the text without the marks of some ``regions``, whose code then belongs to what is around
        them: ``parents`` say what that is.
        """
        return RunProfile({name: _without(found, regions, parents) for name, found in self.functions.items()})


def _without(
    found: Mapping[int, RegionProfile], regions: Collection[int], parents: Mapping[int, int | None]
) -> dict[int, RegionProfile]:
    kept = {number: region for number, region in found.items() if number not in regions}
    for number in found.keys() & {*regions}:
        around = parents.get(number)
        while around is not None and around in regions:
            around = parents.get(around)
        if around in kept:
            own, issued = kept[around], found[number].issued
            # A full warp that comes there runs as much of it as a warp does now.
            packed = issued * _part(own.lanes / LANES, own.warps) if own.packed else 0.0
            kept[around] = replace(own, issued=own.issued + issued, packed=own.packed + packed)
    return kept


def _summed(a: Mapping[int, RegionProfile], b: Mapping[int, RegionProfile]) -> dict[int, RegionProfile]:
    found = dict(a)
    for number, region in b.items():
        found[number] = found[number] + region if number in found else region
    return found


# --- the file ---


def write(path: str | os.PathLike[str], profile: RunProfile) -> None:
    """Write a profile. Raises CccError (CCC086)."""
    write_text(path, as_text(profile))


def as_text(profile: RunProfile) -> str:
    """What the file of a profile holds."""
    data = {"schema": SCHEMA, "cccopt": __version__, "kernels": kernels_of(profile)}
    return json.dumps(data, indent=1) + "\n"


def read(path: str | os.PathLike[str]) -> RunProfile:
    """Read a profile. Raises CccError for a file that cannot be read (CCC086) or is no profile (CCC069)."""
    text = read_text(path)
    with as_bad_profile(path):
        data = json.loads(text)
        require_schema(data["schema"])
        return regions_in(data["kernels"])


def require_schema(schema: object) -> None:
    """Raise ValueError for a layout that is not known."""
    if isinstance(schema, bool) or schema not in SCHEMAS:
        known = " and ".join(map(str, SCHEMAS))
        raise ValueError(f"its layout has version {schema}; cccopt {__version__} reads versions {known}")


@contextmanager
def as_bad_profile(
    path: str | os.PathLike[str], what: str = "profile", help: str = _MAKE_ONE
) -> Iterator[None]:
    """What goes wrong in reading the content of ``path`` as the CccError for what is no profile (CCC069), or nothing
    else that it should be.
    """
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        why = f"it has no `{problem.args[0]}`" if isinstance(problem, KeyError) else str(problem)
        raise CccError(
            error(
                "CCC069",
                f"`{os.fspath(path)}` is not a {what}",
                why=why,
                help=help,
            )
        ) from problem


def regions_in(kernels: Mapping[str, Mapping[str, Mapping[str, object]]]) -> RunProfile:
    """The profile that ``kernels`` of a file holds. Raises what `as_bad_profile` catches."""
    return RunProfile(
        {
            str(name): {int(number): _region(entry) for number, entry in regions.items()}
            for name, regions in kernels.items()
        }
    )


def kernels_of(profile: RunProfile) -> dict[str, dict[str, dict[str, object]]]:
    """What a file holds as ``kernels``."""
    return {
        name: {str(number): asdict(region) for number, region in regions.items()}
        for name, regions in profile.functions.items()
    }


def _region(entry: Mapping[str, object]) -> RegionProfile:
    numbers: dict[str, float] = {}
    for name in (f.name for f in fields(RegionProfile) if f.name != "kind"):
        # Files of earlier versions have no times.
        value = entry.get(name, 0.0) if name in ("elapsed", "resident") else entry[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise ValueError(f"`{name}` is {value!r}, not a count")
        numbers[name] = value
    return RegionProfile(str(entry["kind"]), **numbers)  # type: ignore[arg-type]


# --- from counts ---


def measure(
    module: Module,
    issues: Issues,
    sectors: Mapping[str, float] | None = None,
    times: Mapping[str, KernelTime] | None = None,
) -> RunProfile:
    """The profile of launches of marked PTX: ``issues`` go by the statements of ``module``. By function, ``sectors``
    are those of all its accesses to global memory, and ``times`` what the GPU had while it ran. Where sectors were not
    counted, each lane is taken to touch one of its own, but where lanes are known to touch places side by side.
    Sectors of functions that a loop calls are none of its own. Functions that are refused have no profile.
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
            KernelTime() if times is None else times.get(function.name, KernelTime()),
        )
        try:
            regions = find(view, with_unfit=True).regions
        except Refusal:
            continue
        own: dict[int, RegionProfile] = {}
        for region in regions:
            own = _summed(own, launch.region(region))
        if any(profile.warps for profile in own.values()):
            found[function.name] = own
    return RunProfile(found)


def _by_index(view: View, function: Function, issues: Issues) -> dict[int, Count]:
    """The counts by the statements of the view, which has more labels than the function."""
    before = [i for i, s in enumerate(function.body or ()) if isinstance(s, Instruction)]
    now = [i for i, s in enumerate(view.body) if isinstance(s, Instruction)]
    pairs = zip(now, before, strict=True)
    return {i: issues[function.name, old] for i, old in pairs if (function.name, old) in issues}


@dataclass(frozen=True)
class _CountedFunction:
    """A function with the counts of a launch by statement, its sectors (None: not counted), and its time."""

    view: View
    counts: Mapping[int, Count]
    sectors: float | None
    time: KernelTime

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
            )
        }
        for path in tree:
            found = _summed(found, {path.annotation.region: self._path(path)})
        return found

    def _path(self, path: Path) -> RegionProfile:
        own = path.nodes - frozenset().union(*(child.nodes for child in path.children))
        warps, lanes = self._at_node(path.begin)
        entries, entered = (warps, lanes)
        if path.is_loop:
            entries, entered = self._entries(path.annotation.region, warps, lanes)
            if path.annotation.kind == Kind.RECURSIVE:
                # It has no such marker: what leads to its loop counts, or past it.
                header = self.view.block_of_name[path.begin]
                entering = self.view.names_of(self.view.cfg.predecessors[header]) - path.nodes
                begins = [self._at_node(name) for name in sorted(entering)]
                entries, entered = _at_most(begins, warps, lanes)
        packed = self._packed(own, warps, lanes)
        return RegionProfile(path.annotation.kind, entries, entered, warps, lanes, self._issued(own), packed)

    def _entries(self, region: int, warps: int, lanes: int) -> tuple[int, int]:
        """Warps and lanes that came to a loop which ``warps`` and ``lanes`` ran."""
        begins = [self._at(i) for i in self.view.markers("for.begin", region)]
        return _at_most(begins, warps, lanes)

    def _issued(self, nodes: Collection[str]) -> float:
        return sum(
            self._costs.of_statement(i) * count.warps
            for i, _ in self.view.instructions(nodes)
            if (count := self.counts.get(i)) is not None
        )

    def _sectors(self, nodes: Collection[str]) -> float:
        """The sectors of global memory that ``nodes`` touched, of all that were counted as large a part as by
        `_touched`.
        """
        touched = self._touched(nodes)
        if self.sectors is None:
            return touched
        return self.sectors * _part(touched, self._touched(self.view.block_of_name))

    def _touched(self, nodes: Collection[str]) -> float:
        """About the sectors of global memory that ``nodes`` touched, by how far apart lanes beside one another access
        it.
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

    def _packed(self, nodes: Collection[str], warps: int, lanes: int) -> float:
        """The issue slots of ``nodes`` if their ``lanes`` began in full warps instead of ``warps``.

        Code that only some of them run is run if any of a warp's lanes does; in a loop the inner iterations of a warp
        stay as many as they were, or as a lane makes on average.
        """
        total = 0.0
        for index, _ in self.view.instructions(nodes) if lanes else ():
            count = self.counts.get(index)
            if count is not None:
                share = count.lanes / lanes
                times = any_of(share) if share < 1 else max(share, count.warps / warps)
                total += self._costs.of_statement(index) * times
        return total * lanes / LANES

    def _at_node(self, name: str) -> tuple[int, int]:
        """Warps and lanes that came to a node."""
        return self._at(self.view.cfg.blocks[self.view.block_of_name[name]].start)

    def _at(self, index: int) -> tuple[int, int]:
        """Warps and lanes of the first instruction from statement ``index`` on."""
        for statement in range(index, len(self.view.body)):
            if isinstance(self.view.body[statement], Instruction):
                count = self.counts.get(statement)
                return (0, 0) if count is None else (count.warps, count.lanes)
        return 0, 0

    @cached_property
    def _costs(self) -> Costs:
        return costs_of(self.view)


def _part(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _at_most(begins: Iterable[tuple[int, int]], warps: int, lanes: int) -> tuple[int, int]:
    found = list(begins)
    return min(sum(w for w, _ in found), warps), min(sum(n for _, n in found), lanes)


def _by_points(view: View, region: Region) -> tuple[Path, ...]:
    """The paths of a loop in which some cannot be deferred alone: each with its own code."""
    codes = {point: marked_code(view, point, region.nodes) for point in region.points}
    inner = {p: [c for c in codes.values() if c < code] for p, code in codes.items()}
    return tuple(
        Path(point.annotation, point.begin, code.difference(*inner[point]), region.header)
        for point, code in codes.items()
    )


def costs_of(view: View) -> Costs:
    """The static costs of a view's statements."""
    return view.costs
