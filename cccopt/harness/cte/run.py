"""One run of ``cccopt bench cte``: compile all builds in parallel, make the inputs, then measure input by input.

A workload on an input is measured in a process of its own, so a fault there voids one row and nothing else. Timed runs
have a GPU to themselves; Nsight Compute looks at the builds that were right, in a run of its own.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from cccopt.device.gpu import Gpu, open_gpu
from cccopt.harness import ncu
from cccopt.harness.batch import clock, kernel_rows, side_by_side, without_those_that_fail
from cccopt.harness.bench import EMULATED_ARCH
from cccopt.harness.builds import Build, NoBuild, cubin_file, first_of
from cccopt.harness.choices import Platform
from cccopt.harness.cte.plan import CtePlan, Job, jobs, size_of
from cccopt.harness.cte.preparation import Crew, Made, prepare
from cccopt.harness.cte.table import Cell, Copy, Counted, CteRow, CteTable
from cccopt.harness.cte.vendor import Library
from cccopt.harness.cte.workload import ONE_PER_LANE, SMALL, BuildKind, load
from cccopt.harness.on_emulator import run_on_emulator
from cccopt.harness.on_gpu import REPEATS, WARM_UPS, run_on_gpu
from cccopt.harness.result import BuildResult, Issues, Times
from cccopt.harness.table import EMULATED, PROFILED
from cccopt.harness.workload import base_state
from cccopt.workers import apart
from cccopt.workers.queue import HERE, Item, Worker, WorkerEnded, answers

EMULATION_SECONDS, TIMING_SECONDS, PROFILE_SECONDS = 300.0, 240.0, 120.0
"""The time limits of a job: on the emulator, on the GPU and under Nsight Compute."""

COPIED_BYTES = 1 << 30
PROFILED_LAUNCHES = 32
"""A run with more launches is profiled at size `SMALL`: Nsight Compute takes tens of milliseconds for each."""


@dataclass(frozen=True, slots=True)
class JobResults:
    """What the process of a job returns."""

    results: tuple[BuildResult, ...]
    least_bytes: int


@dataclass(slots=True)
class _Found:
    """A job with what the phases found, by build."""

    job: Job
    made: Mapping[str, Made]
    size: str
    ran: dict[str, BuildResult] = field(default_factory=dict)
    has_run: bool = False
    least_bytes: int = 0
    counted: dict[str, Counted] = field(default_factory=dict)
    uncounted: str = ""

    def runnable(self) -> dict[str, Build | Library]:
        """The builds that exist."""
        return {name: made for name, made in self.made.items() if not isinstance(made, NoBuild)}

    def compiled(self) -> dict[str, Build]:
        """The builds that exist and are not libraries."""
        return {name: made for name, made in self.made.items() if isinstance(made, Build)}

    def right(self) -> list[str]:
        """The builds that are not libraries, ran, and were right."""
        return [name for name in self.compiled() if self.has_run and not self.ran[name].wrong]

    def take(self, results: dict[str, BuildResult]) -> None:
        """Keep the results of the first run, which is the one that is measured."""
        if not self.has_run:
            self.ran, self.has_run = results, True


def run(
    plan: CtePlan,
    on_progress: Callable[[CteTable], None] = lambda table: None,
    workers: Sequence[Worker] | None = None,
) -> CteTable:
    """Measure. ``on_progress`` gets the table so far after each job. On GPUs, each of ``workers`` takes whole jobs, so
    that the builds of one job take turns on one GPU. Raises `CccError` for what concerns all rows: an unknown name, no
    GPU, no nvcc.
    """
    todo, size = jobs(plan), size_of(plan)
    on, arch, copy = EMULATED, plan.arch or EMULATED_ARCH, None
    seconds: dict[str, float] = {}
    if plan.on == Platform.GPU:
        with open_gpu() as gpu:
            on, arch = gpu.name, plan.arch or gpu.arch
            copy = measure_copy(gpu)
    with (
        tempfile.TemporaryDirectory(prefix="cccopt-") as name,
        ThreadPoolExecutor(side_by_side(plan.on, workers)) as threads,
        apart.Running() as running,
    ):
        folder, crew = Path(name), Crew(threads, running)
        with clock(seconds, "build and inputs"):
            made, problems = prepare(plan, todo, size, arch, folder, crew)
        found = [_Found(job, {b: made[job.name, b] for b in job.builds}, size) for job in todo]
        for one in found:
            why = problems.get((one.job.name, one.job.input))
            if why:
                one.take({b: BuildResult(b, (), (), f"its input failed: {why}") for b in one.runnable()})
        well = [one for one in found if not one.has_run]

        def table() -> CteTable:
            cells = tuple(_cell(one, arch) for one in found if one.has_run)
            return CteTable(on, arch, plan.seed, cells, copy, tuple(seconds.items()))

        def done() -> None:
            on_progress(table())

        if plan.on == Platform.GPU:
            _on_gpu(plan, well, folder, crew, workers or HERE, seconds, done)
        else:
            with clock(seconds, "count"):
                _emulate(well, plan.seed, size, crew, done)
    return table()


def measure_copy(gpu: Gpu) -> Copy:
    """How fast ``gpu`` copies `COPIED_BYTES` from one place of its memory to another."""
    source, target = gpu.zeros(COPIED_BYTES), gpu.zeros(COPIED_BYTES)
    times = [gpu.copy(target, source) for _ in range(WARM_UPS + REPEATS)]
    return Copy(COPIED_BYTES, Times(tuple(times[WARM_UPS:])))


# --- emulator -----------------------------------------------------------------------------------------------------


def _emulate(found: Sequence[_Found], seed: int, size: str, crew: Crew, done: Callable[[], None]) -> None:
    """Run the builds on the emulator, several jobs in parallel, and take their counts."""
    for _ in crew.threads.map(lambda one: _emulate_apart(one, seed, size, crew.running), found):
        done()


def _emulate_apart(one: _Found, seed: int, size: str, running: apart.Running) -> None:
    def emulated(codes: Mapping[str, str]) -> tuple[BuildResult, ...]:
        job = one.job
        given = (job.name, job.input, dict(codes), size, seed)
        ran = apart.call(_emulate_here, *given, seconds=EMULATION_SECONDS, running=running)
        one.least_bytes = one.least_bytes or ran.least_bytes
        return ran.results

    codes = {name: made.ptx for name, made in one.compiled().items()}
    results = without_those_that_fail(emulated, codes, ONE_PER_LANE)
    for name, result in results.items():
        if not result.wrong:
            counts = result.counts
            issues = Issues(counts.warp_instructions, counts.active_lanes, counts.guarded_on_lanes)
            one.counted[name] = Counted(issues, EMULATED, size)
    one.take(results)


def _emulate_here(
    began: apart.Began, name: str, input: str, codes: Mapping[str, str], size: str, seed: int
) -> JobResults:
    workload = load(name)
    instance = workload.sample(input).instance(size, seed)
    results = run_on_emulator(
        instance,
        codes,
        on_failure=lambda build, problem: BuildResult(build, (), (), first_of(problem)),
        began=began,
    )
    return JobResults(results, workload.module.least_bytes(base_state(instance.inputs)))


# --- GPU ----------------------------------------------------------------------------------------------------------


def _on_gpu(
    plan: CtePlan,
    found: Sequence[_Found],
    folder: Path,
    crew: Crew,
    workers: Sequence[Worker],
    seconds: dict[str, float],
    done: Callable[[], None],
) -> None:
    with clock(seconds, "time"):
        _time(found, plan.seed, workers, done)
    if not plan.profile:
        return
    with clock(seconds, "count"):
        _profile(found, folder, plan.seed, workers, done)
        # If Nsight Compute counted nothing, the emulator counts, at the size that it can run.
        _emulate([one for one in found if one.right() and not one.counted], plan.seed, SMALL, crew, done)


def _time(found: Sequence[_Found], seed: int, workers: Sequence[Worker], done: Callable[[], None]) -> None:
    items = [
        Item(_name(one), _timed, (one.job.name, one.job.input, _codes(one), one.size, seed)) for one in found
    ]
    with answers(items, workers) as all_timed:
        for one, answer in zip(found, all_timed, strict=True):
            try:
                results, one.least_bytes = answer.result()
            except WorkerEnded as problem:
                why = first_of(problem)
                results = {name: BuildResult(name, (), (), why) for name in one.runnable()}
            one.take(results)
            done()


def _name(one: _Found) -> str:
    return f"`{one.job.workload.name}` on `{one.job.input}`"


def _codes(one: _Found) -> dict[str, bytes | Library]:
    return {name: made if isinstance(made, Library) else made.cubin for name, made in one.runnable().items()}


def _timed(
    name: str, input: str, codes: Mapping[str, bytes | Library], size: str, seed: int
) -> tuple[dict[str, BuildResult], int]:
    """The results by build, and the fewest bytes that they must move."""
    least_bytes = 0

    def timed(codes: Mapping[str, bytes | Library]) -> tuple[BuildResult, ...]:
        nonlocal least_bytes
        ran = apart.call(_time_here, name, input, dict(codes), size, seed, seconds=TIMING_SECONDS)
        least_bytes = ran.least_bytes
        return ran.results

    return without_those_that_fail(timed, codes, ONE_PER_LANE), least_bytes


def _time_here(
    began: apart.Began, name: str, input: str, codes: Mapping[str, bytes | Library], size: str, seed: int
) -> JobResults:
    workload = load(name)
    instance = workload.sample(input).instance(size, seed)
    with open_gpu() as gpu:
        results = run_on_gpu(gpu, instance, codes, began)
    return JobResults(results, workload.module.least_bytes(base_state(instance.inputs)))


def _profile(
    found: Sequence[_Found], folder: Path, seed: int, workers: Sequence[Worker], done: Callable[[], None]
) -> None:
    """Count the instructions of the builds that were right."""
    whole = [one for one in found if ONE_PER_LANE in one.right()]
    for one in found:
        one.uncounted = "" if one in whole else f"{ONE_PER_LANE} failed"
        for name, made in one.compiled().items():
            cubin_file(folder, one.job.workload.name, name).write_bytes(made.cubin)
    runs = [_profiled_run(one, folder, seed) for one in whole]
    items = [
        Item(_name(one), ncu.profile, (run, PROFILE_SECONDS)) for one, run in zip(whole, runs, strict=True)
    ]
    with answers(items, workers) as all_profiled:
        for one, run, answer in zip(whole, runs, all_profiled, strict=True):
            try:
                profiled = answer.result()
            except WorkerEnded as problem:
                profiled = ncu.Profiled(why=first_of(problem))
            one.uncounted = profiled.why
            one.counted = {
                name: Counted(issues, PROFILED, run.size) for name, issues in profiled.counts.items()
            }
            done()


def _profiled_run(one: _Found, folder: Path, seed: int) -> ncu.ProfiledRun:
    right = one.right()
    many = max(len(one.ran[name].launches) for name in right) > PROFILED_LAUNCHES
    # They were right when they were timed.
    options = ("--input", one.job.input, "--unchecked")
    return ncu.ProfiledRun(one.job.name, right, folder, SMALL if many else one.size, seed, options)


# --- rows ---------------------------------------------------------------------------------------------------------


def _cell(one: _Found, arch: str) -> Cell:
    rows = tuple(_row(one, name, arch) for name in one.made)
    return Cell(one.job.workload.name, one.job.input, one.size, rows, one.least_bytes, one.uncounted)


def _row(one: _Found, name: str, arch: str) -> CteRow:
    made, kind = one.made[name], one.job.workload.kind(name)
    if isinstance(made, NoBuild):
        # A refusal by the headers and a library that is not installed are results; all other builds must exist.
        failed = not made.by_headers and kind != BuildKind.VENDOR
        return CteRow(name, kind, made.why, failed=failed)
    ran = one.ran[name]
    if ran.wrong:
        return CteRow(name, kind, ran.wrong, failed=True)
    return CteRow(
        name,
        kind,
        launches=len(ran.launches),
        times=ran.times,
        counted=one.counted.get(name),
        kernels=tuple(kernel_rows(ran.launches, made, arch)) if isinstance(made, Build) else (),
    )
