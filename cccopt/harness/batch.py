"""What measurements of many workloads share: parallel processes, times of phases, failed builds, and rows of tables."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from cccopt.harness.builds import Build
from cccopt.harness.choices import Platform
from cccopt.harness.result import BuildResult, LaunchResult
from cccopt.harness.table import KernelRow
from cccopt.toolchain.occupancy import occupancy
from cccopt.workers import apart
from cccopt.workers.queue import Worker

T = TypeVar("T")


def side_by_side(on: str, workers: Sequence[Worker] | None) -> int:
    """How many builds and emulations run at once: one per emulator worker if there are any, else one per core."""
    return len(workers) if workers is not None and on == Platform.EMULATOR else os.cpu_count() or 1


@contextmanager
def clock(seconds: dict[str, float], phase: str) -> Iterator[None]:
    """Store the duration of the ``with`` block in ``seconds[phase]``."""
    start = time.perf_counter()
    yield
    seconds[phase] = time.perf_counter() - start


def without_those_that_fail(
    run: Callable[[Mapping[str, T]], Iterable[BuildResult]], codes: Mapping[str, T], plain: str
) -> dict[str, BuildResult]:
    """The results of ``run`` by build. ``run`` takes codes by build and raises `apart.Failed` with the build at fault;
    it is then run again without that build. Nothing is run without the build ``plain``.
    """
    left, void = dict(codes), dict[str, BuildResult]()
    while plain in left:
        try:
            results = run(left)
        except apart.Failed as problem:
            guilty = problem.stage or plain
            void[guilty] = BuildResult(guilty, (), (), problem.why)
            del left[guilty]
        else:
            return {**void, **{result.name: result for result in results}}
    why = f"the {plain} build failed: {void[plain].wrong}" if plain in void else f"there is no {plain} build"
    return {**{name: BuildResult(name, (), (), why) for name in left}, **void}


def kernel_rows(launches: Sequence[LaunchResult], made: Build, arch: str) -> Iterator[KernelRow]:
    """A row for each kernel that was launched, with the size of its largest block."""
    total = sum(map(_cost, launches)) or 1.0
    for kernel in dict.fromkeys(launch.kernel for launch in launches):
        ours = [launch for launch in launches if launch.kernel == kernel]
        threads = max(x * y * z for x, y, z in (launch.block for launch in ours))
        needs = made.resources[kernel]
        fits = occupancy(needs.registers, needs.shared_bytes, threads, arch)
        yield KernelRow(
            kernel,
            sum(map(_cost, ours)) / total,
            threads,
            needs.registers,
            needs.shared_bytes,
            needs.spill_bytes,
            fits.share if fits is not None else None,
            fits.limited_by if fits is not None else (),
        )


def _cost(launch: LaunchResult) -> float:
    if launch.times is not None:
        return launch.times.median
    return float(launch.counts.warp_instructions) if launch.counts is not None else 0.0
