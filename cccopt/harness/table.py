"""What ``cccopt bench ccc`` and ``cccopt bench sensitivity`` find: a row for each build of each sample, as data."""

from __future__ import annotations

from dataclasses import dataclass

from cccopt.harness.choices import BuildName
from cccopt.harness.result import Counts, Issues, LaunchResult, Times

SCHEMA = 3

EMULATED, PROFILED = "emulator (PTX)", "ncu (SASS)"
"""Where counts come from."""

FEWEST_REPEATS = 9
"""Builds with fewer are marked: a repeat was so long that no more fit (`cccopt.harness.on_gpu.repeats_for`)."""

THESIS = ("bfs", "dqg", "emies", "ff", "hash", "iefa", "rt", "sssp")
"""The samples that F. Khorasani's thesis also has: means are taken over these."""


@dataclass(frozen=True, slots=True)
class KernelRow:
    """A kernel that was launched: what a thread or a block of it needs, and how many of them fit.

    ``share`` is the part of the run that it takes: of the time on a GPU, else of the warp instructions. ``occupancy``
    (0 to 1) is theoretical, and None for an unknown architecture; ``limited_by`` names what limits it.
    """

    kernel: str
    share: float
    threads: int
    registers: int
    shared_bytes: int
    spill_bytes: int
    occupancy: float | None = None
    limited_by: tuple[str, ...] = ()

    @property
    def shared_bytes_a_thread(self) -> float:
        """A block's static shared memory divided by its number of threads."""
        return self.shared_bytes / self.threads


@dataclass(frozen=True, slots=True)
class Context:
    """A path's context in bytes per task, and what it would be without compression."""

    kernel: str
    place: str
    kind: str
    uncompressed_bytes: int
    bytes: int


@dataclass(frozen=True, slots=True)
class BuildRow:
    """One build of a sample.

    ``void`` says why there is nothing to compare: no such build, a refusal, a wrong result, a fault; the last two are
    ``failed``, and so is a missing plain build. ``launches`` hold times if a GPU ran them, else counts. The emulator
    (label and counts by launch) and Nsight Compute (``profiled``) count at the counted size, which makes them
    comparable; the latter also counts at the timed size (``profiled_as_timed``). ``uncounted`` says why the emulator
    counted nothing. ``same_as_plain``: the build's PTX is plain nvcc's, byte for byte.
    """

    build: str
    void: str = ""
    failed: bool = False
    launches: tuple[LaunchResult, ...] = ()
    emulated_launches: tuple[tuple[str, Counts], ...] = ()
    profiled: Issues | None = None
    profiled_as_timed: Issues | None = None
    uncounted: str = ""
    kernels: tuple[KernelRow, ...] = ()
    contexts: tuple[Context, ...] = ()
    same_as_plain: bool = False
    remarks: tuple[str, ...] = ()

    @property
    def times(self) -> Times | None:
        """The repeats' times summed over the launches, or None if nothing was timed."""
        timed = [launch.times for launch in self.launches if launch.times is not None]
        return sum(timed[1:], timed[0]) if timed else None

    @property
    def emulated(self) -> Counts | None:
        """The emulator's counts summed over the launches, or None if there are none."""
        counts = [count for _, count in self.emulated_launches]
        return sum(counts[1:], counts[0]) if counts else None

    @property
    def main_kernel(self) -> KernelRow | None:
        """The kernel that takes most of the run."""
        return max(self.kernels, key=lambda kernel: kernel.share, default=None)

    @property
    def counted(self) -> Issues | None:
        """Nsight Compute's counts at the timed size, else at the counted size, or else the emulator's."""
        found = (self.profiled_as_timed, self.profiled, self.emulated)
        return next((counts for counts in found if counts is not None), None)


@dataclass(frozen=True, slots=True)
class SampleRows:
    """All builds of a sample at ``size``.

    ``uncounted`` says why Nsight Compute counted nothing at the counted size, and so was not asked at ``size``;
    ``uncounted_as_timed`` says why it counted nothing at ``size`` only.
    """

    name: str
    size: str
    rows: tuple[BuildRow, ...]
    uncounted: str = ""
    uncounted_as_timed: str = ""

    def row(self, build: str) -> BuildRow | None:
        """The row of ``build`` if there is one that is not void."""
        return next((row for row in self.rows if row.build == build and not row.void), None)

    def speedup(self, build: str, over: str = BuildName.PLAIN) -> float | None:
        """The time of ``over`` divided by that of ``build`` (medians), or on the emulator the warp instructions."""
        ours, theirs = _cost(self.row(build)), _cost(self.row(over))
        return theirs / ours if ours and theirs else None

    @property
    def speedups(self) -> dict[str, float | None]:
        """The `speedup` over plain nvcc, by build."""
        return {row.build: self.speedup(row.build) for row in self.rows}


def _cost(row: BuildRow | None) -> float | None:
    if row is None:
        return None
    if row.times is not None:
        return row.times.median
    return float(row.emulated.warp_instructions) if row.emulated is not None else None


@dataclass(frozen=True, slots=True)
class Table:
    """One run over several samples. ``seconds`` is what it took, by phase."""

    suite: str
    on: str
    arch: str
    seed: int
    counted_size: str
    samples: tuple[SampleRows, ...]
    seconds: tuple[tuple[str, float], ...] = ()
    schema: int = SCHEMA
