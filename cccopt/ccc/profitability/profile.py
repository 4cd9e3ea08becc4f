"""How often warps and lanes reached each marked region in runs on the emulator or a GPU, and the profile's file.

    {"schema": 1, "cccopt": "0.1.0",
     "kernels": {"bfs": {"1": {"kind": "for", "entries": ..., "lanes": ...}, "2": {"kind": "if", ...}}}}

Run files (`cccopt.profiling.run_file`, schema 2) hold the same ``kernels`` in addition to counts by line. Regions go by
the number that their marks have in the annotated file, so a profile fits the marked PTX of the same source for any
target. Profiles of several launches add up.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace

from cccopt.ccc.profitability.elapsed import Elapsed
from cccopt.ccc.profitability.flows import LANES
from cccopt.ccc.profitability.launches import Launches, launches_in
from cccopt.clauses import Kind
from cccopt.diagnostic import CccError, error
from cccopt.files import read_text, write_text
from cccopt.version import __version__

SCHEMA = 1
"""The version of the layout that is written here."""

_ADDED = ("elapsed", "resident", "launches", "atomics", "packed_atomics")
"""Fields that files of earlier versions do not have."""

_MAKE_ONE = "make one with `cccopt profile -- PROGRAM` or `cccopt emulate FILE.ptx KERNEL ... --profile=FILE`"

SCHEMAS = (1, 2)
"""The versions of layouts whose ``kernels`` can be read."""


@dataclass(frozen=True, slots=True)
class RegionProfile:
    """One marked region, with all its copies and launches together.

    ``warps`` and ``lanes`` count its runs by warps and lanes: iterations of a loop, runs of a path. ``entries`` and
    ``entered`` are the warps and lanes that reached a loop; for a path they are the same as the runs. ``issued`` is the
    issue slots of its own code (without inner marked regions), ``packed`` those that it would take if only full warps
    began it. ``sectors`` is the 32-byte pieces of global memory that a marked loop touched, with everything inside it.
    ``elapsed`` is the issue slots that the GPU had in the time of a marked loop, and ``resident`` the warp cycles of
    that time: its clock cycles times the warps that the GPU holds at once, or the warps of a launch if these are fewer;
    both are 0 if that time is not known. ``launches`` are those of a kernel marked ``grid``, 0 if their number is not
    known. ``atomics`` counts the combined atomic operations (`combined_atomics`) in its own code by warps,
    ``packed_atomics`` those that full warps would make.
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
    launches: int = 0
    atomics: float = 0.0
    packed_atomics: float = 0.0

    def __add__(self, other: RegionProfile) -> RegionProfile:
        mine, theirs = asdict(self), asdict(other)
        total = RegionProfile(self.kind, **{k: mine[k] + theirs[k] for k in mine if k != "kind"})
        # The time of some runs says nothing about the counts of all.
        known = all(one.elapsed or not one.warps for one in (self, other))
        return total if known else total.untimed()

    @property
    def time(self) -> Elapsed:
        """What the GPU offered in the time of a marked loop."""
        return Elapsed(self.elapsed, self.resident)

    def untimed(self) -> RegionProfile:
        """The same without a time."""
        return replace(self, elapsed=0.0, resident=0.0)


@dataclass(frozen=True, slots=True)
class RunProfile:
    """The regions of each function by their numbers, and the ``launches`` of kernels that were timed."""

    functions: Mapping[str, Mapping[int, RegionProfile]] = field(default_factory=dict)
    launches: Mapping[str, Launches] = field(default_factory=dict)

    def __add__(self, other: RunProfile) -> RunProfile:
        return RunProfile(
            {
                name: summed(self.functions.get(name, {}), other.functions.get(name, {}))
                for name in {**self.functions, **other.functions}
            },
            {**other.launches, **self.launches},
        )

    def without(self, regions: Collection[int], parents: Mapping[int, int | None]) -> RunProfile:
        """The profile without the marks of some ``regions``, whose code then belongs to the regions around them, as
        ``parents`` say.
        """
        kept = {name: _without(found, regions, parents) for name, found in self.functions.items()}
        return replace(self, functions=kept)


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
            fuller = own.lanes / LANES / own.warps if own.packed else 0.0
            atomics = found[number].atomics
            kept[around] = replace(
                own,
                issued=own.issued + issued,
                packed=own.packed + issued * fuller,
                atomics=own.atomics + atomics,
                packed_atomics=own.packed_atomics + atomics * fuller,
            )
    return kept


def summed(a: Mapping[int, RegionProfile], b: Mapping[int, RegionProfile]) -> dict[int, RegionProfile]:
    """The regions of two runs of a function; those with the same number are added up."""
    found = dict(a)
    for number, region in b.items():
        found[number] = found[number] + region if number in found else region
    return found


def shared_by(regions: Mapping[int, RegionProfile], at_once: int) -> dict[int, RegionProfile]:
    """The regions of a kernel as if, in each launch, ``at_once`` warps reached its loop over blocks, if it has one, and
    shared its iterations. In the profiled run, each iteration had a warp of its own.
    """
    return {
        number: _shared_by(region, at_once) if region.kind == Kind.GRID else region
        for number, region in regions.items()
    }


def _shared_by(loop: RegionProfile, at_once: int) -> RegionProfile:
    entries = min(loop.entries, max(loop.launches, 1) * at_once)
    share = entries / loop.entries if loop.entries else 1.0
    return replace(loop, entries=entries, entered=round(loop.entered * share))


# --- the file ---


def write(path: str | os.PathLike[str], profile: RunProfile) -> None:
    """Write a profile. Raises CccError (CCC086)."""
    write_text(path, as_text(profile))


def as_text(profile: RunProfile) -> str:
    """The content of a profile's file."""
    data = {"schema": SCHEMA, "cccopt": __version__, "kernels": kernels_of(profile)}
    return json.dumps(data, indent=1) + "\n"


def read(path: str | os.PathLike[str]) -> RunProfile:
    """Read a profile. Raises CccError for a file that cannot be read (CCC086) or is not a profile (CCC069)."""
    text = read_text(path)
    with as_bad_profile(path):
        data = json.loads(text)
        require_schema(data["schema"])
        return replace(regions_in(data["kernels"]), launches=launches_in(data))


def require_schema(schema: object) -> None:
    """Raise ValueError for an unknown version of the layout."""
    if isinstance(schema, bool) or schema not in SCHEMAS:
        known = " and ".join(map(str, SCHEMAS))
        raise ValueError(f"its layout is version {schema}; cccopt {__version__} reads versions {known}")


@contextmanager
def as_bad_profile(
    path: str | os.PathLike[str], what: str = "profile", help: str = _MAKE_ONE
) -> Iterator[None]:
    """Turn errors from reading the content of ``path`` into a CccError saying that it is not a profile, or not whatever
    else ``what`` names (CCC069).
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
    """The profile in the ``kernels`` of a file. Raises what `as_bad_profile` catches."""
    return RunProfile(
        {
            str(name): {int(number): _region(entry) for number, entry in regions.items()}
            for name, regions in kernels.items()
        }
    )


def kernels_of(profile: RunProfile) -> dict[str, dict[str, dict[str, object]]]:
    """The ``kernels`` of a profile's file."""
    return {
        name: {str(number): asdict(region) for number, region in regions.items()}
        for name, regions in profile.functions.items()
    }


def _region(entry: Mapping[str, object]) -> RegionProfile:
    numbers: dict[str, float] = {}
    for name in (f.name for f in fields(RegionProfile) if f.name != "kind"):
        value = entry.get(name, 0) if name in _ADDED else entry[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise ValueError(f"`{name}` is {value!r}, not a count")
        numbers[name] = value
    return RegionProfile(str(entry["kind"]), **numbers)  # type: ignore[arg-type]
