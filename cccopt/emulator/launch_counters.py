"""The counters of a run, per launch or summed over several (DESIGN 7, 8)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

_K = TypeVar("_K")
_C = TypeVar("_C", "IssueCount", "BranchCount", "AccessCount")

SOURCE = "emulator (PTX)"
"""Where the counts come from: PTX instructions, which ptxas may turn into fewer or more machine instructions."""


@dataclass(frozen=True, slots=True)
class IssueCount:
    """Warp issues of some instructions, the lanes active in them and those whose guard held."""

    warps: int = 0
    lanes: int = 0
    lanes_pred_on: int = 0

    def __add__(self, other: IssueCount) -> IssueCount:
        return IssueCount(
            self.warps + other.warps, self.lanes + other.lanes, self.lanes_pred_on + other.lanes_pred_on
        )

    @property
    def efficiency(self) -> float:
        """The share of active lanes, 0 to 1."""
        return self.lanes / (32 * self.warps) if self.warps else 0.0


@dataclass(frozen=True, slots=True)
class BranchCount:
    """A conditional branch: warps that ran it, warps that diverged at it, lanes that ran it and lanes that took it.

    ``jumped[k]`` is the number of executions in which k lanes took it; it is all zeros for an indexed branch.
    """

    warps: int = 0
    divergent: int = 0
    lanes: int = 0
    taken: int = 0
    jumped: tuple[int, ...] = (0,) * 33

    def __add__(self, other: BranchCount) -> BranchCount:
        return BranchCount(
            self.warps + other.warps,
            self.divergent + other.divergent,
            self.lanes + other.lanes,
            self.taken + other.taken,
            tuple(a + b for a, b in zip(self.jumped, other.jumped, strict=True)),
        )


@dataclass(frozen=True, slots=True)
class AccessCount:
    """An access to global memory: groups of lanes that made it, and the 32-byte sectors that they touched."""

    requests: int = 0
    sectors: int = 0

    def __add__(self, other: AccessCount) -> AccessCount:
        return AccessCount(self.requests + other.requests, self.sectors + other.sectors)


@dataclass(frozen=True)
class Profile:
    """The counters of a run. Adding two profiles gives the counters of both runs: ratios are ratios of sums.

    Attributes:
        kernel: The name of the kernel, or the names of several, separated by commas.
        launches: The number of launches.
        total: All instructions.
        overhead: The instructions that a pass added.
        issues: Instructions by (function, statement index).
        by_line: Instructions by (file, line): CUDA lines if `.loc` gives them, else PTX lines.
        by_branch: Conditional branches by (function, statement index).
        by_label: How often, and with how many lanes, warps ran the block that begins at a (function, label).
        active_lanes_histogram: Entry k is the number of warp instructions with k lanes active (W1 to W32; entry 0 is
            empty).
        global_accesses: Accesses of warps to global memory.
        global_transactions: The 32-byte sectors that they touched.
        shared_accesses: Accesses of warps to shared memory.
        shared_bank_conflicts: The extra passes over the banks of shared memory.
        steps: The number of pieces of code that groups of lanes ran, which ``max_steps`` limits.
        by_access: Accesses to global memory by (function, statement index).
    """

    kernel: str = ""
    launches: int = 0
    total: IssueCount = IssueCount()
    overhead: IssueCount = IssueCount()
    issues: Mapping[tuple[str, int], IssueCount] = field(default_factory=dict)
    by_line: Mapping[tuple[str, int], IssueCount] = field(default_factory=dict)
    by_branch: Mapping[tuple[str, int], BranchCount] = field(default_factory=dict)
    by_label: Mapping[tuple[str, str], IssueCount] = field(default_factory=dict)
    active_lanes_histogram: tuple[int, ...] = (0,) * 33
    global_accesses: int = 0
    global_transactions: int = 0
    shared_accesses: int = 0
    shared_bank_conflicts: int = 0
    steps: int = 0
    by_access: Mapping[tuple[str, int], AccessCount] = field(default_factory=dict)

    @property
    def sectors_by_function(self) -> dict[str, int]:
        """The sectors of global memory that accesses touched, by the function of the access."""
        found: dict[str, int] = defaultdict(int)
        for (function, _), access in self.by_access.items():
            found[function] += access.sectors
        return dict(found)

    @property
    def warp_instructions(self) -> int:
        """Warp issues of all instructions."""
        return self.total.warps

    @property
    def thread_instructions(self) -> int:
        """Active lanes over all warp instructions."""
        return self.total.lanes

    @property
    def thread_instructions_pred_on(self) -> int:
        """Active lanes whose guard held, over all warp instructions."""
        return self.total.lanes_pred_on

    @property
    def overhead_warp_instructions(self) -> int:
        """Warp issues of instructions that a pass marked as its own."""
        return self.overhead.warps

    @property
    def overhead_thread_instructions(self) -> int:
        """Active lanes over the instructions that a pass marked as its own."""
        return self.overhead.lanes

    @property
    def warp_efficiency(self) -> float:
        """Active lanes / (32 x warp instructions), 0 to 1."""
        return self.total.efficiency

    @property
    def warp_efficiency_pred_on(self) -> float:
        """The same, without the lanes whose guard is false."""
        return self.total.lanes_pred_on / (32 * self.total.warps) if self.total.warps else 0.0

    @property
    def useful_efficiency(self) -> float:
        """Like `warp_efficiency`, but the lanes of instructions that a pass added count as idle."""
        useful = self.total.lanes - self.overhead.lanes
        return useful / (32 * self.total.warps) if self.total.warps else 0.0

    def __add__(self, other: Profile) -> Profile:
        if not isinstance(other, Profile):
            return NotImplemented
        return Profile(
            self.kernel if self.kernel == other.kernel or not other.kernel else (
                other.kernel if not self.kernel else f"{self.kernel}, {other.kernel}"
            ),
            self.launches + other.launches,
            self.total + other.total,
            self.overhead + other.overhead,
            _summed(self.issues, other.issues, IssueCount()),
            _summed(self.by_line, other.by_line, IssueCount()),
            _summed(self.by_branch, other.by_branch, BranchCount()),
            _summed(self.by_label, other.by_label, IssueCount()),
            tuple(
                a + b
                for a, b in zip(self.active_lanes_histogram, other.active_lanes_histogram, strict=True)
            ),
            self.global_accesses + other.global_accesses,
            self.global_transactions + other.global_transactions,
            self.shared_accesses + other.shared_accesses,
            self.shared_bank_conflicts + other.shared_bank_conflicts,
            self.steps + other.steps,
            _summed(self.by_access, other.by_access, AccessCount()),
        )  # fmt: skip


def _summed(a: Mapping[_K, _C], b: Mapping[_K, _C], zero: _C) -> dict[_K, _C]:
    return {key: a.get(key, zero) + b.get(key, zero) for key in {**a, **b}}
