"""How sensitive CCC is to the length of a path and the lanes that take it: the sample ``sensitivity``, point by point.

F. Khorasani's thesis, section 4.1.5. A point is a launch of the sample, whose label gives N (multiply-adds in the path)
and k (how many of 32 lanes take it on average). `auto` is built for each k, with a profile of the launches with that k:
a single build would be decided by the mean of all launches.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from cccopt.harness.builds import auto_for, split_name
from cccopt.harness.choices import BuildName, Platform
from cccopt.harness.result import Counts
from cccopt.harness.sample_profile import SWEPT_SIZE
from cccopt.harness.suite import SuitePlan
from cccopt.harness.table import SampleRows, Table
from cccopt.harness.workload import load

SAMPLE, SIZE = "sensitivity", SWEPT_SIZE
BUILDS = (BuildName.PLAIN, BuildName.ALWAYS, BuildName.AUTO, BuildName.HANDWRITTEN)


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """One build at one point. ``milliseconds`` is the median (None on the emulator), ``counts`` are the emulator's."""

    build: str
    length: int
    lanes: int
    milliseconds: float | None
    noise: float | None
    counts: Counts | None
    speedup: float | None
    """The time of plain nvcc's build divided by this build's; on the emulator, the same ratio of warp instructions."""


def plan(
    on: Platform = Platform.EMULATOR, *, size: str | None = None, seed: int = 1, arch: str | None = None
) -> SuitePlan:
    """What `cccopt.harness.suite.run` measures for a sweep. Raises CccError for an unknown size."""
    pairs = np.asarray(load(SAMPLE).inputs(size or SIZE, seed)["pairs"])
    autos = tuple(auto_for(f"k={k}") for k in sorted({int(k) for k in pairs[:, 1]}))
    builds = [autos if name == BuildName.AUTO else (name,) for name in BUILDS]
    return SuitePlan(
        "sensitivity",
        (SAMPLE,),
        on,
        size if on == Platform.GPU else size or SIZE,
        counted_size=SIZE,
        seed=seed,
        arch=arch,
        builds=tuple(name for names in builds for name in names),
        profile=False,
    )


def points(table: Table) -> tuple[SweepPoint, ...]:
    """The points of a run over the sample, sorted by build, length and lanes; void builds have none."""
    (sample,) = table.samples
    return tuple(sorted(_points(sample), key=lambda p: (BUILDS.index(p.build), p.length, p.lanes)))


def _points(sample: SampleRows) -> list[SweepPoint]:
    before: dict[str, float] = {}
    found = []
    for row in sorted(
        (row for row in sample.rows if not row.void), key=lambda row: row.build != BuildName.PLAIN
    ):
        counts = dict(row.emulated_launches)
        build, ending = split_name(row.build)
        for launch in row.launches:
            if not launch.label.endswith(ending):
                continue
            length, lanes = map(int, re.findall(r"\d+", launch.label))
            count = counts.get(launch.label)
            median = launch.times.median if launch.times is not None else None
            cost = median if median is not None else count and float(count.warp_instructions)
            if row.build == BuildName.PLAIN and cost:
                before[launch.label] = cost
            plain = before.get(launch.label)
            speedup = plain / cost if plain and cost else None
            noise = launch.times.noise if launch.times is not None else None
            found.append(SweepPoint(build, length, lanes, median, noise, count, speedup))
    return found
