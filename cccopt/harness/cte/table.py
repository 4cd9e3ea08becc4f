"""What ``cccopt bench cte`` finds: a row for each build of each workload on each input, as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cccopt.harness.choices import SUB_WARPS
from cccopt.harness.cte.workload import AUTOMATIC, ONE_PER_LANE, BuildKind
from cccopt.harness.result import Issues, Times
from cccopt.harness.table import KernelRow

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Counted:
    """Instruction counts of a run: from ``source`` (`cccopt.harness.table.EMULATED` or ``PROFILED``) at ``size``."""

    issues: Issues
    source: str
    size: str


@dataclass(frozen=True, slots=True)
class CteRow:
    """One build on one input.

    ``void`` says why there is nothing to compare; a wrong result, a fault and a missing build that must exist are
    ``failed``. ``launches`` is how many kernels a run launches, ``times`` what they took together, on a GPU.
    """

    build: str
    kind: BuildKind
    void: str = ""
    failed: bool = False
    launches: int = 0
    times: Times | None = None
    counted: Counted | None = None
    kernels: tuple[KernelRow, ...] = ()

    @property
    def cost(self) -> float | None:
        """The median of the times in milliseconds, or the warp instructions if nothing was timed."""
        if self.void:
            return None
        if self.times is not None:
            return self.times.median
        return float(self.counted.issues.warp_instructions) if self.counted is not None else None

    @property
    def main_kernel(self) -> KernelRow | None:
        """The kernel that takes most of the run."""
        return max(self.kernels, key=lambda kernel: kernel.share, default=None)


@dataclass(frozen=True, slots=True)
class Cell:
    """All builds of a workload on an input. ``least_bytes`` is what a run must move; ``uncounted`` says why Nsight
    Compute counted nothing.
    """

    workload: str
    input: str
    size: str
    rows: tuple[CteRow, ...]
    least_bytes: int = 0
    uncounted: str = ""

    def row(self, build: str) -> CteRow | None:
        """The row of ``build`` if there is one that is not void."""
        return next((row for row in self.rows if row.build == build and not row.void), None)

    def best(self, wanted: Callable[[CteRow], bool]) -> CteRow | None:
        """The cheapest of the rows that are ``wanted``."""
        costs = [(row.cost, row) for row in self.rows if row.cost and wanted(row)]
        return min(costs, key=lambda one: one[0] or 0.0)[1] if costs else None

    def best_sub_warp(self) -> CteRow | None:
        """The best width of `SUB_WARPS`."""
        return self.best(lambda row: row.build in SUB_WARPS)

    def best_policy(self) -> CteRow | None:
        """The best in-kernel policy."""
        return self.best(lambda row: row.kind == BuildKind.POLICY)

    def best_form(self) -> CteRow | None:
        """The best kernel-level form."""
        return self.best(lambda row: row.kind == BuildKind.FORM)

    def best_vendor(self) -> CteRow | None:
        """The best of NVIDIA's libraries."""
        return self.best(lambda row: row.kind == BuildKind.VENDOR)

    def automatic(self) -> CteRow | None:
        """The row of the policy that chooses for itself."""
        return self.row(AUTOMATIC)

    @property
    def speedups(self) -> dict[str, float]:
        """Speedups over `ONE_PER_LANE`, by build."""
        return self._over(self.row(ONE_PER_LANE))

    @property
    def speedups_over_sub_warp(self) -> dict[str, float]:
        """Speedups over the best sub-warp width, by build."""
        return self._over(self.best_sub_warp())

    def _over(self, base: CteRow | None) -> dict[str, float]:
        return {row.build: ratio for row in self.rows if (ratio := speedup(row, base)) is not None}

    @property
    def gigabytes(self) -> dict[str, float]:
        """The least bytes divided by the time, in GB/s, by build."""
        return {
            row.build: self.least_bytes / row.times.median / 1e6
            for row in self.rows
            if not row.void and row.times is not None and row.times.median
        }


def speedup(row: CteRow | None, over: CteRow | None) -> float | None:
    """The cost of ``over`` divided by that of ``row``, or None if one of them has none."""
    ours, theirs = (one.cost if one is not None else None for one in (row, over))
    return theirs / ours if ours and theirs else None


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy within the GPU's memory: its ``bytes`` are read once and written once."""

    bytes: int
    times: Times

    @property
    def gigabytes(self) -> float:
        """Bytes read and written, in GB/s."""
        return 2 * self.bytes / self.times.median / 1e6


@dataclass(frozen=True, slots=True)
class CteTable:
    """One run. ``copy`` gives the bandwidth that its percentages refer to; ``seconds`` is what it took, by phase."""

    on: str
    arch: str
    seed: int
    cells: tuple[Cell, ...]
    copy: Copy | None = None
    seconds: tuple[tuple[str, float], ...] = ()
    schema: int = SCHEMA
