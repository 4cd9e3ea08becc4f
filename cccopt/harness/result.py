"""What a measurement found, as plain data: frozen, comparable, and the same whichever machine it ran on.

Counts of several launches are added before anything is divided, so an efficiency over launches is a ratio of sums and
never a mean of ratios. DESIGN chapter 8.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

SCHEMA = 1
LANES = 32

Kind = TypeVar("Kind", bound="Issues")


@dataclass(frozen=True, slots=True)
class Issues:
    """Instruction counts of one launch or of several.

    ``warp_instructions`` counts one for each instruction that a warp issues. The others add up lanes over these
    instructions: the active lanes, and those whose guard was true.
    """

    warp_instructions: int = 0
    active_lanes: int = 0
    guarded_on_lanes: int = 0

    def __add__(self: Kind, other: Kind) -> Kind:
        """The sum of two counts of the same kind."""
        return type(self)(*map(operator.add, dataclasses.astuple(self), dataclasses.astuple(other)))

    def _share(self, lanes: int) -> float:
        return lanes / (LANES * self.warp_instructions) if self.warp_instructions else 0.0

    @property
    def warp_efficiency(self) -> float:
        """The average share of active lanes, 0 to 1."""
        return self._share(self.active_lanes)

    @property
    def warp_efficiency_pred_on(self) -> float:
        """The average share of active lanes that no guard switched off, 0 to 1."""
        return self._share(self.guarded_on_lanes)


@dataclass(frozen=True, slots=True)
class Traffic(Issues):
    """`Issues` with the 32-byte ``sectors`` of global memory that requests of warps touched."""

    sectors: int = 0


@dataclass(frozen=True, slots=True)
class Counts(Traffic):
    """`Traffic` with ``useful_lanes``: the active lanes of original instructions, not of those that a pass added."""

    useful_lanes: int = 0

    @property
    def useful_efficiency(self) -> float:
        """Active lanes on the original instructions over all slots: what CCC adds counts as zero."""
        return self._share(self.useful_lanes)


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds of one launch over the repeats, in the order of the repeats."""

    milliseconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle repeat, or the mean of the two middle ones."""
        ordered = sorted(self.milliseconds)
        middle = len(ordered) // 2
        return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2

    @property
    def noise(self) -> float:
        """The spread of the repeats, relative to the median."""
        return (max(self.milliseconds) - min(self.milliseconds)) / self.median if self.median else 0.0

    def __add__(self, other: Times) -> Times:
        return Times(tuple(a + b for a, b in zip(self.milliseconds, other.milliseconds, strict=True)))


@dataclass(frozen=True, slots=True)
class LaunchResult:
    """One launch of one build: counts from the emulator or times from a GPU."""

    label: str
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    counts: Counts | None = None
    times: Times | None = None


@dataclass(frozen=True, slots=True)
class KernelResources:
    """What a thread (registers, spills) or a block (shared memory) needs, in bytes except for registers."""

    kernel: str
    registers: int
    shared_bytes: int
    spill_bytes: int


@dataclass(frozen=True, slots=True)
class Phase:
    """How many warps, over all launches, ran a phase of a region's rewritten code: ``push``, ``take``, ``original``."""

    kernel: str
    region: int
    name: str
    warps: int


@dataclass(frozen=True, slots=True)
class BuildResult:
    """One build's launches. ``wrong`` says what is wrong with the build or its results, which voids them. ``run_times``
    are the times of whole runs, if their launches differ from run to run and have no times of their own. ``elapsed`` is
    the time from the first launch of a run to the end of the last one, including the host's part, if that was measured.
    """

    name: str
    launches: tuple[LaunchResult, ...]
    resources: tuple[KernelResources, ...]
    wrong: str = ""
    phases: tuple[Phase, ...] = ()
    run_times: Times | None = None
    elapsed: Times | None = None

    @property
    def counts(self) -> Counts:
        """The sum over the launches."""
        return sum((launch.counts for launch in self.launches if launch.counts is not None), Counts())

    @property
    def times(self) -> Times | None:
        """The repeats' times summed over the launches, or None if nothing was timed."""
        if self.run_times is not None:
            return self.run_times
        timed = [launch.times for launch in self.launches if launch.times is not None]
        return sum(timed[1:], timed[0]) if timed else None


@dataclass(frozen=True, slots=True)
class RewrittenRegion:
    """A rewritten loop or path: the pragma's ``kind``, its place, and the labels of its phases in the PTX.

    A path has a stack, on which a task's context takes ``context_bytes``; for a loop that is None. Without
    compression it would take ``uncompressed_bytes``.
    """

    kernel: str
    region: int
    kind: str
    place: str
    context_bytes: int | None = None
    labels: tuple[tuple[str, tuple[str, ...]], ...] = ()
    uncompressed_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Measurement:
    """One workload before and after: the same kernels, inputs and launches, all in one run."""

    workload: str
    size: str
    seed: int
    arch: str
    on: str
    builds: tuple[BuildResult, ...]
    regions: tuple[RewrittenRegion, ...] = ()
    remarks: tuple[str, ...] = ()
    schema: int = SCHEMA

    def build(self, name: str) -> BuildResult:
        """The build called ``name``. Raises `KeyError` if there is none."""
        for build in self.builds:
            if build.name == name:
                return build
        raise KeyError(name)

    @property
    def right(self) -> bool:
        """Whether the results of all builds are as the reference says."""
        return not any(build.wrong for build in self.builds)


def as_json(measurements: Iterable[Measurement]) -> dict[str, Any]:
    """The measurements as JSON values, with the ratios beside the counts so that a reader need not divide."""
    return {"schema": SCHEMA, "measurements": [json_of(m) for m in measurements]}


def json_of(value: Any) -> Any:
    """The JSON value of a dataclass (including its properties), of a tuple, or of a plain value."""
    if isinstance(value, tuple):
        return [json_of(v) for v in value]
    if not dataclasses.is_dataclass(value):
        return value
    fields = [field.name for field in dataclasses.fields(value)]
    properties = [name for name in dir(type(value)) if isinstance(getattr(type(value), name), property)]
    return {name: json_of(getattr(value, name)) for name in fields + properties}
