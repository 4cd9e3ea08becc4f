"""The thesis' costs of decompositions against what runs: ``python bench/cte_model.py [line|quad ...]``.

F. Khorasani's thesis (UC Riverside 2016) gives equations 4.1 to 4.3 for the time of a warp with 32 coarse tasks, in
section 4.2.2, and measures tasks whose sizes grow with the lane, LINE and QUAD, in section 4.2.4. Here, for each build
of ``bench/cte/line_quad`` and relative to one task a lane:

    equation        4.1, 4.2 or 4.3 as printed
    with all        the same with the reductions that it leaves out
    multiply-adds   what the maps and reductions of a run on the emulator are made of
    instructions    all of the run's warp instructions
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import ceil, log2

import numpy as np
from rich.console import Console
from rich.table import Table

from cccopt import driver
from cccopt.emulator import Program
from cccopt.harness.batch import side_by_side
from cccopt.harness.choices import Platform
from cccopt.harness.cte.workload import CteWorkload, load, options
from cccopt.harness.workload import arrays, base_state, fresh_state
from cccopt.ptx.ir import Instruction

LANES = 32
WORKLOAD, ARCH, SIZE = "line_quad", "sm_90", "small"

Sizes = Sequence[int]
"""Fine tasks of a warp's 32 coarse tasks."""


@dataclass(frozen=True, slots=True)
class UnitCosts:
    """What one run of the map and one of the reduction cost, in any unit."""

    map: float
    reduce: float


Model = Callable[[Sizes, UnitCosts], float]


def one_per_lane(sizes: Sizes, cost: UnitCosts) -> float:
    """Equation 4.1. Nothing is left out."""
    return max(sizes) * (cost.map + cost.reduce)


def sub_warp(width: int, sizes: Sizes, cost: UnitCosts) -> float:
    """Equation 4.2, of sub-warps of ``width`` lanes: in each round the longest of 32 / ``width`` tasks counts."""
    return width * log2(width) * cost.reduce + sum(_steps(width, sizes)) * cost.map


def sub_warp_any_order(width: int, sizes: Sizes, cost: UnitCosts) -> float:
    """Equation 4.2, and a reduction at each step, by which what a lane mapped joins what it had, or ``init``."""
    return sub_warp(width, sizes, cost) + sum(_steps(width, sizes)) * cost.reduce


def sub_warp_in_order(width: int, sizes: Sizes, cost: UnitCosts) -> float:
    """The same where only neighbours may be joined: the lanes reduce their values at each step."""
    return sum(_steps(width, sizes)) * (cost.map + (log2(width) + 1) * cost.reduce)


def warp(sizes: Sizes, cost: UnitCosts) -> float:
    """Equation 4.3."""
    return _rounds(sizes) * (cost.map + log2(LANES) * cost.reduce)


def warp_with_all(sizes: Sizes, cost: UnitCosts) -> float:
    """Equation 4.3, and a reduction in each round, by which what it came to joins what the owner had, or ``init``."""
    return warp(sizes, cost) + (_rounds(sizes) + 1) * cost.reduce


def _steps(width: int, sizes: Sizes) -> Iterator[int]:
    """How often the sub-warps map, in each of their ``width`` rounds."""
    groups = LANES // width
    for first in range(0, LANES, groups):
        yield ceil(max(sizes[first : first + groups]) / width)


def _rounds(sizes: Sizes) -> int:
    return ceil(sum(sizes) / LANES)


@dataclass(frozen=True, slots=True)
class ModelCase:
    """A build: a policy, an operator that is known to commute or not, and its models."""

    policy: str
    commutes: bool = False
    equation: Model | None = None
    with_all: Model | None = None


def cases() -> tuple[ModelCase, ...]:
    """The builds, the one that others are held against first."""
    found = [ModelCase("one_per_lane", equation=one_per_lane, with_all=one_per_lane)]
    for commutes, in_full in ((True, sub_warp_any_order), (False, sub_warp_in_order)):
        for width in (2, 4, 8, 16, 32):
            models = partial(sub_warp, width), partial(in_full, width)
            found.append(ModelCase(f"sub_warp<{width}>", commutes, *models))
    return (*found, ModelCase("warp", equation=warp, with_all=warp_with_all), ModelCase("warp_chunked"))


@dataclass(frozen=True, slots=True)
class WarpInstructions:
    """Warp instructions of a run."""

    multiply_adds: int
    all: int


def ptx_of(workload: CteWorkload, case: ModelCase) -> str:
    """The build's PTX."""
    flags = (*options(workload, case.policy), *(["-DLINE_QUAD_COMMUTATIVE"] if case.commutes else []))
    return driver.compile(workload.source, arch=ARCH, ccc="off", nvcc_options=flags).ptx


def count(workload: CteWorkload, pattern: str, ptx: str) -> WarpInstructions:
    """Run a build on the emulator. Raises `SystemExit` where its result is wrong."""
    program, sample = Program(ptx), workload.sample(pattern)
    inputs = sample.inputs(SIZE, seed=1)
    state = fresh_state(inputs)
    (launch,) = sample.workload.launches(state)
    profile = program.launch(launch.kernel, launch.grid, launch.block, launch.arguments)
    if wrong := sample.workload.check(state, sample.workload.reference(inputs)):
        raise SystemExit(f"{pattern}: {wrong}")
    bodies = {function.name: function.body or () for function in program.module.functions()}
    multiply_adds = sum(
        issued.warps
        for (function, index), issued in profile.issues.items()
        if isinstance(statement := bodies[function][index], Instruction) and statement.base == "fma"
    )
    return WarpInstructions(multiply_adds, profile.warp_instructions)


def sizes_of(workload: CteWorkload, pattern: str) -> list[int]:
    """The sizes of a warp's tasks."""
    begins = arrays(base_state(workload.sample(pattern).inputs(SIZE, seed=1)))["pattern"]
    return [int(size) for size in np.diff(begins)]


def rows(
    workload: CteWorkload, pattern: str, built: Sequence[tuple[ModelCase, str]]
) -> Iterator[tuple[str, ...]]:
    """The table's cells; ``built`` has cases with their PTX, the one that others are held against first."""
    sizes, cost = sizes_of(workload, pattern), UnitCosts(1, 1)
    counts = [count(workload, pattern, ptx) for _, ptx in built]
    for (case, _), counted in zip(built, counts, strict=True):
        models = (case.equation, case.with_all)
        predicted = (m(sizes, cost) / one_per_lane(sizes, cost) if m else None for m in models)
        measured = counted.multiply_adds / counts[0].multiply_adds, counted.all / counts[0].all
        yield case.policy, "any" if case.commutes else "kept", *map(_shown, (*predicted, *measured))


def _shown(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table for each pattern."""
    workload = load(WORKLOAD)
    known = workload.module.INPUTS
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "patterns", nargs="*", metavar="PATTERN", help=f"{' or '.join(known)} (default: both)"
    )
    patterns = parser.parse_args(arguments).patterns or known
    if unknown := set(patterns) - set(known):
        parser.error(f"no pattern {', '.join(sorted(unknown))}")
    with ThreadPoolExecutor(side_by_side(Platform.EMULATOR, None)) as pool:
        built = list(zip(cases(), pool.map(partial(ptx_of, workload), cases()), strict=True))
    for pattern in patterns:
        sizes = sizes_of(workload, pattern)
        table = Table(
            "policy",
            "order",
            title=f"{pattern}: {sum(sizes)} fine tasks a warp, the longest {max(sizes)}",
            box=None,
        )
        for heading in ("equation", "with all", "multiply-adds", "instructions"):
            table.add_column(heading, justify="right")
        for row in rows(workload, pattern, built):
            table.add_row(*row)
        Console(width=100).print(table)


if __name__ == "__main__":
    main()
