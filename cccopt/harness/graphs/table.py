"""What ``cccopt bench graphs`` finds: a row for each form of each algorithm on each graph, as data."""

from __future__ import annotations

from dataclasses import dataclass

from cccopt.harness.graphs.workload import PLAIN
from cccopt.harness.result import Times, Traffic

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class GraphRow:
    """One form on one graph.

    ``void`` says why there is nothing to compare; a wrong result and a fault are ``failed``, a refusal is not.
    ``iterations`` is how many levels or rounds the host saw, each of one or more ``launches``. ``times`` is what the
    kernels took together, on a GPU, and ``elapsed`` what whole runs took, including the host's part. ``counted`` is
    what the kernels issued and touched, as counted by the emulator or Nsight Compute.
    """

    form: str
    void: str = ""
    failed: bool = False
    iterations: int = 0
    launches: int = 0
    times: Times | None = None
    elapsed: Times | None = None
    counted: Traffic | None = None

    @property
    def cost(self) -> float | None:
        """The median of the times in milliseconds, or the warp instructions if nothing was timed."""
        if self.void:
            return None
        if self.times is not None:
            return self.times.median
        return float(self.counted.warp_instructions) if self.counted is not None else None


@dataclass(frozen=True, slots=True)
class GraphCell:
    """All forms of an algorithm on a graph; ``edges`` is the number of edges that a run traverses, the same for all
    forms. With several ``sources``, rows and edges are sums over the searches from each. ``counted_size`` is the size
    of the graph that was counted, empty if nothing was; ``uncounted`` says why Nsight Compute did not count all rows.
    """

    algorithm: str
    input: str
    size: str
    edges: int
    rows: tuple[GraphRow, ...]
    sources: int = 1
    counted_size: str = ""
    uncounted: str = ""

    def row(self, form: str) -> GraphRow:
        """The row of ``form``. Raises `KeyError` if there is none."""
        return {row.form: row for row in self.rows}[form]

    @property
    def speedups(self) -> dict[str, float]:
        """Speedups over `PLAIN`, by form."""
        costs = {row.form: row.cost for row in self.rows if row.cost}
        plain = costs.get(PLAIN)
        return {form: plain / cost for form, cost in costs.items() if cost} if plain else {}

    @property
    def mteps(self) -> dict[str, float]:
        """Millions of traversed edges per second of kernel time, by form."""
        return {
            row.form: self.edges / row.times.median / 1e3
            for row in self.rows
            if not row.void and row.times is not None and row.times.median
        }


@dataclass(frozen=True, slots=True)
class GraphTable:
    """One run."""

    on: str
    arch: str
    seed: int
    cells: tuple[GraphCell, ...]
    schema: int = SCHEMA
