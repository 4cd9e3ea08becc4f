"""One run of ``cccopt bench graphs``: compile each algorithm, then run its forms, graph by graph.

An algorithm runs on a graph in a process of its own, so a fault there voids one row and nothing else. On request,
Nsight Compute counts once everything is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from cccopt.device.gpu import open_gpu
from cccopt.harness.batch import without_those_that_fail
from cccopt.harness.bench import EMULATED_ARCH
from cccopt.harness.builds import NoBuild, first_of
from cccopt.harness.choices import Platform
from cccopt.harness.csr.generators import GENERATORS
from cccopt.harness.graphs.counters import with_counts
from cccopt.harness.graphs.plan import GraphPlan, Job, jobs, size_of
from cccopt.harness.graphs.table import GraphCell, GraphRow, GraphTable
from cccopt.harness.graphs.workload import PLAIN, compiled, load, searches
from cccopt.harness.on_emulator import run_on_emulator
from cccopt.harness.on_gpu import run_on_gpu
from cccopt.harness.result import BuildResult, Times
from cccopt.harness.table import EMULATED
from cccopt.harness.workload import base_state
from cccopt.toolchain.ptxas import assemble
from cccopt.workers import apart
from cccopt.workers.queue import HERE, Item, Worker, WorkerEnded, answers

SECONDS = 300.0
"""The time limit of each form of an algorithm on a graph, on average."""

Code: TypeAlias = "str | bytes"
"""What a form runs: PTX on the emulator, machine code on a GPU."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What the process of a job returns."""

    results: tuple[BuildResult, ...]
    edges: int
    sources: int


def run(
    plan: GraphPlan,
    on_progress: Callable[[GraphTable], None] = lambda table: None,
    workers: Sequence[Worker] | None = None,
) -> GraphTable:
    """Measure. ``on_progress`` gets the table so far after each job. Each of ``workers`` takes whole jobs. Raises
    `CccError` for what concerns all rows: an unknown name, a graph that cannot be read, no GPU, no nvcc.
    """
    todo, size = jobs(plan), size_of(plan)
    on, arch = EMULATED, plan.arch or EMULATED_ARCH
    if plan.on == Platform.GPU:
        with open_gpu() as gpu:
            on, arch = gpu.name, plan.arch or gpu.arch
    for job in todo:
        # This is the user's mistake and not a result, so it is reported before anything is compiled. What was read is
        # in the cache.
        if job.input not in GENERATORS:
            job.algorithm.sample(job.input).inputs(size, plan.seed)
    made = _codes(todo, plan.on, arch)
    items = [
        Item(
            job.title,
            measured,
            (job.name, job.input, _there(job, made), plan.on, size, plan.seed, plan.sources),
        )
        for job in todo
    ]
    cells: list[GraphCell] = []
    with answers(items, workers or HERE) as found:
        for job, answer in zip(todo, found, strict=True):
            try:
                results, edges, sources = answer.result()
            except WorkerEnded as problem:
                why = first_of(problem)
                results, edges, sources = {form: BuildResult(form, (), (), why) for form in job.forms}, 0, 1
            rows = tuple(_row(form, made[job.name][form], results) for form in job.forms)
            counted = size if any(row.counted is not None for row in rows) else ""
            cells.append(GraphCell(job.algorithm.name, job.input, size, edges, rows, sources, counted))
            on_progress(GraphTable(on, arch, plan.seed, tuple(cells)))
    table = GraphTable(on, arch, plan.seed, tuple(cells))
    if plan.on == Platform.EMULATOR or not plan.counters:
        return table
    codes = [
        {form: code for form, code in _there(job, made).items() if isinstance(code, bytes)} for job in todo
    ]
    return with_counts(table, todo, codes, plan.sources, workers or HERE, on_progress)


def _codes(todo: Sequence[Job], on: Platform, arch: str) -> dict[str, dict[str, Code | NoBuild]]:
    """The code of each form, by the algorithm's name and by form; forms with the same PTX share it."""
    made: dict[str, dict[str, Code | NoBuild]] = {}
    for job in todo:
        if job.name in made:
            continue
        code = compiled(job.algorithm, arch, job.policies)
        texts = {text for form in job.forms if isinstance(text := code.of(form), str)}
        ready: dict[str, Code] = {
            text: text if on == Platform.EMULATOR else assemble(text, arch).cubin for text in texts
        }
        by_form = {form: code.of(form) for form in job.forms}
        made[job.name] = {
            form: ready[text] if isinstance(text, str) else text for form, text in by_form.items()
        }
    return made


def _there(job: Job, made: Mapping[str, Mapping[str, Code | NoBuild]]) -> dict[str, Code]:
    return {form: code for form, code in made[job.name].items() if not isinstance(code, NoBuild)}


def measured(
    name: str, input: str, codes: Mapping[str, Code], on: Platform, size: str, seed: int, sources: int = 0
) -> tuple[dict[str, BuildResult], int, int]:
    """The results by form, the number of edges that the runs traverse, and the number of vertices where they begin."""
    edges, begun = 0, 1

    def ran(codes: Mapping[str, Code]) -> tuple[BuildResult, ...]:
        nonlocal edges, begun
        seconds = SECONDS * len(codes) * max(sources, 1)
        done = apart.call(_run_here, name, input, dict(codes), on, size, seed, sources, seconds=seconds)
        edges, begun = done.edges, done.sources
        return done.results

    return without_those_that_fail(ran, codes, PLAIN), edges, begun


def _run_here(
    began: apart.Began,
    name: str,
    input: str,
    codes: Mapping[str, Code],
    on: Platform,
    size: str,
    seed: int,
    sources: int,
) -> Ran:
    algorithm = load(name)
    runs = searches(algorithm, algorithm.sample(input).instance(size, seed), sources, seed)
    edges = sum(algorithm.module.edges(base_state(run.inputs)) for run in runs.values())
    if on == Platform.GPU:
        with open_gpu() as gpu:
            found = [run_on_gpu(gpu, run, codes, began, whole_runs=True) for run in runs.values()]
    else:
        texts = {form: code for form, code in codes.items() if isinstance(code, str)}
        found = [
            run_on_emulator(
                run,
                texts,
                on_failure=lambda form, problem: BuildResult(form, (), (), first_of(problem)),
                began=began,
            )
            for run in runs.values()
        ]
    results = (_together(dict(zip(runs, of_form, strict=True))) for of_form in zip(*found, strict=True))
    return Ran(tuple(results), edges, len(runs))


def _together(runs: Mapping[str, BuildResult]) -> BuildResult:
    """The sum of a form's runs; wrong if one of them is."""
    first = next(iter(runs.values()))
    if len(runs) == 1:
        return first
    wrong = next((f"{begun}{run.wrong}" for begun, run in runs.items() if run.wrong), "")
    if wrong:
        return BuildResult(first.name, (), (), wrong)
    launches = (
        replace(launch, label=begun + launch.label, times=None)
        for begun, run in runs.items()
        for launch in run.launches
    )
    times, elapsed = (_sum([getattr(run, of) for run in runs.values()]) for of in ("times", "elapsed"))
    return BuildResult(first.name, tuple(launches), (), run_times=times, elapsed=elapsed)


def _sum(times: Sequence[Times | None]) -> Times | None:
    """The sums over the repeats that all of them have."""
    taken = [each.milliseconds for each in times if each is not None]
    return Times(tuple(map(sum, zip(*taken, strict=False)))) if taken else None


def _row(form: str, made: Code | NoBuild, results: Mapping[str, BuildResult]) -> GraphRow:
    if isinstance(made, NoBuild):
        return GraphRow(form, made.why)
    ran = results[form]
    if ran.wrong:
        return GraphRow(form, ran.wrong, failed=True)
    times = ran.times
    return GraphRow(
        form,
        iterations=len({launch.label for launch in ran.launches}),
        launches=len(ran.launches),
        times=times,
        elapsed=ran.elapsed,
        counted=ran.counts if times is None else None,
    )
