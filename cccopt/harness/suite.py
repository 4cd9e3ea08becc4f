"""One run over several samples and all their builds: compile, count, time, and put the results into one table.

Builds are made and counted in parallel; timed runs have a GPU to themselves. A build that fails voids its own row and
nothing else.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from cccopt.device.gpu import open_gpu
from cccopt.harness import ncu
from cccopt.harness.batch import clock, kernel_rows, side_by_side, without_those_that_fail
from cccopt.harness.bench import EMULATED_ARCH
from cccopt.harness.builds import ALL_BUILDS, Build, NoBuild, build, cubin_file, first_of, split_name
from cccopt.harness.choices import BuildName, Platform
from cccopt.harness.on_emulator import run_on_emulator
from cccopt.harness.on_gpu import run_on_gpu
from cccopt.harness.result import BuildResult
from cccopt.harness.table import EMULATED, BuildRow, Context, SampleRows, Table
from cccopt.harness.workload import FULL, Sample, load, names
from cccopt.workers import apart
from cccopt.workers.queue import HERE, Item, Worker, WorkerEnded, answers

CCC_SAMPLES = ("bfs", "sssp", "walk", "ff", "hash", "iefa", "rt", "escape", "dqg", "emies")
"""The samples of `cccopt bench ccc`, in the order of the table."""

EMULATION_SECONDS, PROFILE_SECONDS, TIMING_SECONDS = 240.0, 120.0, 90.0
"""The time limits of one build on the emulator, and of one sample under Nsight Compute (at one size) and on the GPU."""


@dataclass(frozen=True, slots=True)
class SuitePlan:
    """What to measure: ``samples`` (names or folders) with ``builds``.

    ``size`` is the size to run; None means the largest on a GPU and ``counted_size`` on the emulator. ``counted_size``
    is the size at which the emulator counts when a GPU measures times. ``profile``: also ask Nsight Compute, at both
    sizes. Loops must take the ``form`` (`cccopt.toolchain.options.FORMS`).
    """

    suite: str
    samples: tuple[str, ...]
    on: Platform = Platform.EMULATOR
    size: str | None = None
    counted_size: str = "small"
    seed: int = 1
    arch: str | None = None
    builds: tuple[str, ...] = ALL_BUILDS
    profile: bool = True
    form: str = "auto"


def samples_of_ccc() -> tuple[str, ...]:
    """Those of `CCC_SAMPLES` that this installation has."""
    here = names()
    return tuple(name for name in CCC_SAMPLES if name in here)


def run(plan: SuitePlan, workers: Sequence[Worker] | None = None) -> Table:
    """Measure. On GPUs, each of ``workers`` takes whole samples, so that the builds of one sample take turns on one
    GPU. Raises `CccError` for what concerns all rows: an unknown sample or size, no GPU, no nvcc.
    """
    work = [_work(plan, folder) for folder in plan.samples]
    on, arch = EMULATED, plan.arch or EMULATED_ARCH
    if plan.on == Platform.GPU:
        with open_gpu() as gpu:
            on, arch = gpu.name, plan.arch or gpu.arch
    seconds: dict[str, float] = {}
    with (
        tempfile.TemporaryDirectory(prefix="cccopt-") as folder,
        ThreadPoolExecutor(side_by_side(plan.on, workers)) as pool,
        apart.Running() as running,
    ):
        with clock(seconds, "build"):
            _compile(work, plan, arch, pool)
        with clock(seconds, "count"):
            emulated = _emulations(plan, work, pool, running)
            if plan.on == Platform.GPU and plan.profile:
                _profile(plan, work, Path(folder), workers or HERE)
            for one, name, future in emulated:
                one.emulated[name] = future.result()
        if plan.on == Platform.GPU:
            with clock(seconds, "time"):
                _time(plan, work, workers or HERE)
    rows = tuple(_sample_rows(one, plan, arch) for one in work)
    return Table(plan.suite, on, arch, plan.seed, plan.counted_size, rows, tuple(seconds.items()))


@dataclass(slots=True)
class _Work:
    """A sample with what the phases found, by build."""

    folder: str
    sample: Sample
    size: str
    counted_size: str
    builds: dict[str, Build | NoBuild] = field(default_factory=dict)
    emulated: dict[str, BuildResult] = field(default_factory=dict)
    profiled: ncu.Profiled = field(default_factory=ncu.Profiled)
    profiled_as_timed: ncu.Profiled = field(default_factory=ncu.Profiled)
    timed: dict[str, BuildResult] = field(default_factory=dict)

    def made(self) -> dict[str, Build]:
        """The builds that exist."""
        return {name: b for name, b in self.builds.items() if isinstance(b, Build)}

    def run_as(self) -> dict[str, str]:
        """The build that is run for each of them: the first one of the same kind that has the same code."""
        first: dict[tuple[str, str], str] = {}
        return {name: first.setdefault((split_name(name)[0], b.ptx), name) for name, b in self.made().items()}

    def to_run(self) -> dict[str, Build]:
        """The builds that are run."""
        return {name: b for name, b in self.made().items() if self.run_as()[name] == name}


def _work(plan: SuitePlan, folder: str) -> _Work:
    sample = load(folder)
    return _Work(folder, sample, *_sizes(plan, sample))


def _sizes(plan: SuitePlan, sample: Sample) -> tuple[str, str]:
    """The size to run and the size to count; a sample without a full size runs its largest one."""
    known = sample.workload.SIZES
    counted = plan.size if plan.on == Platform.EMULATOR and plan.size else plan.counted_size
    largest = FULL if FULL in known else known[-1]
    size = plan.size or (largest if plan.on == Platform.GPU else counted)
    for one in (size, counted):
        if one not in known:
            sample.inputs(one, plan.seed)  # raises an error that lists the known sizes
    return size, counted


# --- build --------------------------------------------------------------------------------------------------------


def _compile(work: Sequence[_Work], plan: SuitePlan, arch: str, pool: ThreadPoolExecutor) -> None:
    made = [
        (one, name, pool.submit(build, one.sample, name, arch, plan.form))
        for one in work
        for name in plan.builds
    ]
    for one, name, future in made:
        one.builds[name] = future.result()


# --- count --------------------------------------------------------------------------------------------------------


def _emulations(
    plan: SuitePlan, work: Sequence[_Work], pool: ThreadPoolExecutor, running: apart.Running
) -> list[tuple[_Work, str, Future[BuildResult]]]:
    """Start to emulate all builds in parallel; on a GPU, Nsight Compute counts in the meantime."""
    return [
        (one, name, pool.submit(_emulate_apart, one, name, plan.seed, running))
        for one in work
        if BuildName.PLAIN in one.made()
        for name in one.to_run()
    ]


def _emulate_apart(one: _Work, name: str, seed: int, running: apart.Running) -> BuildResult:
    made = one.made()
    # At full size the plain build says what is right, so it has to run first.
    wanted = dict.fromkeys((BuildName.PLAIN, name) if one.counted_size == FULL else (name,))
    codes = {key: made[key].ptx for key in dict.fromkeys((BuildName.PLAIN, name))}
    given = (one.folder, codes, tuple(wanted), one.counted_size, seed)
    try:
        results = apart.call(_emulate, *given, seconds=EMULATION_SECONDS, running=running)
    except apart.Failed as problem:
        return BuildResult(name, (), (), problem.why)
    return results[-1]


def _emulate(
    began: apart.Began, folder: str, codes: Mapping[str, str], wanted: Sequence[str], size: str, seed: int
) -> tuple[BuildResult, ...]:
    return run_on_emulator(
        load(folder).instance(size, seed),
        codes,
        wanted=wanted,
        on_failure=lambda name, problem: BuildResult(name, (), (), first_of(problem)),
    )


def _profile(plan: SuitePlan, work: Sequence[_Work], folder: Path, workers: Sequence[Worker]) -> None:
    """Have Nsight Compute count, one sample after the other on each GPU."""
    whole = [one for one in work if BuildName.PLAIN in one.made()]
    for one in work:
        one.profiled = ncu.Profiled(why="" if one in whole else "the plain build failed")
        for name, made in one.made().items():
            cubin_file(folder, one.sample.name, name).write_bytes(made.cubin)
    items = [
        Item(f"`{one.folder}`", _profiled, (_profiled_run(one, folder, plan.seed), one.size)) for one in whole
    ]
    with answers(items, workers) as found:
        for one, answer in zip(whole, found, strict=True):
            try:
                one.profiled, one.profiled_as_timed = answer.result()
            except WorkerEnded as problem:
                one.profiled = ncu.Profiled(why=first_of(problem))


def _profiled_run(one: _Work, folder: Path, seed: int) -> ncu.ProfiledRun:
    return ncu.ProfiledRun(one.folder, tuple(one.made()), folder, one.counted_size, seed)


def _profiled(run: ncu.ProfiledRun, timed_size: str) -> tuple[ncu.Profiled, ncu.Profiled]:
    """Counts at the size of the emulator's counts, to compare with them, and at the size that is timed."""
    found = ncu.profile(run, PROFILE_SECONDS)
    if timed_size == run.size:
        return found, found
    # If ncu cannot count a few small launches, it cannot count large ones.
    again = ncu.profile(replace(run, size=timed_size), PROFILE_SECONDS) if found.counts else ncu.Profiled()
    return found, again


# --- time ---------------------------------------------------------------------------------------------------------


def _time(plan: SuitePlan, work: Sequence[_Work], workers: Sequence[Worker]) -> None:
    """Time the samples, each on one GPU."""
    items = [
        Item(
            f"`{one.folder}`",
            _timed,
            (
                one.folder,
                {name: found.cubin for name, found in one.to_run().items()},
                one.sample.plain,
                one.size,
                plan.seed,
            ),
        )
        for one in work
    ]
    with answers(items, workers) as found:
        for one, answer in zip(work, found, strict=True):
            try:
                one.timed = answer.result()
            except WorkerEnded as problem:
                why = first_of(problem)
                one.timed = {name: BuildResult(name, (), (), why) for name in one.to_run()}


def _timed(
    folder: str, codes: Mapping[str, bytes], plain: str, size: str, seed: int
) -> dict[str, BuildResult]:
    """Time the builds in a process of their own, and again without each one that fails."""

    def timed(codes: Mapping[str, bytes]) -> tuple[BuildResult, ...]:
        return apart.call(_time_here, folder, codes, size, seed, seconds=TIMING_SECONDS)

    return without_those_that_fail(timed, codes, plain)


def _time_here(
    began: apart.Began, folder: str, codes: Mapping[str, bytes], size: str, seed: int
) -> tuple[BuildResult, ...]:
    sample = load(folder)
    with open_gpu() as gpu:
        return run_on_gpu(gpu, sample.instance(size, seed), codes, began)


# --- rows ---------------------------------------------------------------------------------------------------------


def _sample_rows(one: _Work, plan: SuitePlan, arch: str) -> SampleRows:
    rows = tuple(_row(one, name, plan.on, arch) for name in one.builds)
    return SampleRows(one.sample.name, one.size, rows, one.profiled.why, one.profiled_as_timed.why)


def _row(one: _Work, name: str, on: str, arch: str) -> BuildRow:
    made = one.builds[name]
    if isinstance(made, NoBuild):
        return BuildRow(name, void=made.why, failed=name == BuildName.PLAIN)
    run_as = one.run_as()[name]
    counted = one.emulated.get(run_as)
    ran = one.timed.get(run_as) if on == Platform.GPU else counted
    contexts = tuple(
        Context(
            region.kernel, region.place, region.kind, region.uncompressed_bytes or 0, region.context_bytes
        )
        for region in made.regions
        if region.context_bytes is not None
    )
    plain = one.builds.get(BuildName.PLAIN)
    same = isinstance(plain, Build) and plain.ptx == made.ptx
    void = "there is no plain build" if ran is None else ran.wrong
    if ran is None or void:
        return BuildRow(name, void=void, failed=True, contexts=contexts, remarks=made.remarks)
    return BuildRow(
        name,
        launches=ran.launches,
        emulated_launches=tuple((x.label, x.counts) for x in counted.launches if x.counts) if counted else (),
        profiled=one.profiled.counts.get(name),
        profiled_as_timed=one.profiled_as_timed.counts.get(name),
        uncounted=counted.wrong if counted is not None else "",
        kernels=tuple(kernel_rows(ran.launches, made, arch)),
        contexts=contexts,
        same_as_plain=same,
        remarks=made.remarks,
    )
