"""One run of ``cccopt bench graphs``: compile each algorithm, then run its forms, graph by graph.

An algorithm on a graph runs in a process of its own: a fault voids a row there and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cccopt.device.gpu import open_gpu
from cccopt.harness.batch import without_those_that_fail
from cccopt.harness.bench import EMULATED_ARCH
from cccopt.harness.builds import NoBuild, first_of
from cccopt.harness.choices import Platform
from cccopt.harness.csr.generators import GENERATORS
from cccopt.harness.graphs.plan import GraphPlan, Job, jobs, size_of
from cccopt.harness.graphs.table import GraphCell, GraphRow, GraphTable
from cccopt.harness.graphs.workload import PLAIN, compiled, load
from cccopt.harness.on_emulator import run_on_emulator
from cccopt.harness.on_gpu import run_on_gpu
from cccopt.harness.result import BuildResult, Issues
from cccopt.harness.table import EMULATED
from cccopt.harness.workload import base_state
from cccopt.toolchain.ptxas import assemble
from cccopt.workers import apart
from cccopt.workers.queue import HERE, Item, Worker, WorkerEnded, answers

SECONDS = 300.0
"""What each form of an algorithm may take on a graph, on average."""

Code: TypeAlias = "str | bytes"
"""What a form runs: PTX on the emulator, machine code on a GPU."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a process brings back of a job."""

    results: tuple[BuildResult, ...]
    edges: int


def run(
    plan: GraphPlan,
    on_progress: Callable[[GraphTable], None] = lambda table: None,
    workers: Sequence[Worker] | None = None,
) -> GraphTable:
    """Measure; ``on_progress`` is given what there is after each job. Each of ``workers`` takes whole jobs. Raises
    `CccError` for what concerns all rows: an unknown name, a graph that cannot be read, no GPU, no nvcc.
    """
    todo, size = jobs(plan), size_of(plan)
    on, arch = EMULATED, plan.arch or EMULATED_ARCH
    if plan.on == Platform.GPU:
        with open_gpu() as gpu:
            on, arch = gpu.name, plan.arch or gpu.arch
    for job in todo:
        # A mistake of the user's, and no result: said before anything is compiled. What was read is in the cache.
        if job.input not in GENERATORS:
            job.algorithm.sample(job.input).inputs(size, plan.seed)
    made = _codes(todo, plan.on, arch)
    items = [
        Item(_name(job), measured, (job.name, job.input, _there(job, made), plan.on, size, plan.seed))
        for job in todo
    ]
    cells: list[GraphCell] = []
    with answers(items, workers or HERE) as found:
        for job, answer in zip(todo, found, strict=True):
            try:
                results, edges = answer.result()
            except WorkerEnded as problem:
                why = first_of(problem)
                results, edges = {form: BuildResult(form, (), (), why) for form in job.forms}, 0
            rows = tuple(_row(form, made[job.name][form], results) for form in job.forms)
            cells.append(GraphCell(job.algorithm.name, job.input, size, edges, rows))
            on_progress(GraphTable(on, arch, plan.seed, tuple(cells)))
    return GraphTable(on, arch, plan.seed, tuple(cells))


def _codes(todo: Sequence[Job], on: Platform, arch: str) -> dict[str, dict[str, Code | NoBuild]]:
    """The code of each form, by the algorithm's name; forms share what they can."""
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


def _name(job: Job) -> str:
    return f"`{job.algorithm.name}` on `{job.input}`"


def measured(
    name: str, input: str, codes: Mapping[str, Code], on: Platform, size: str, seed: int
) -> tuple[dict[str, BuildResult], int]:
    """The results by form, and the edges that a run traverses."""
    edges = 0

    def ran(codes: Mapping[str, Code]) -> tuple[BuildResult, ...]:
        nonlocal edges
        seconds = SECONDS * len(codes)
        done = apart.call(_run_here, name, input, dict(codes), on, size, seed, seconds=seconds)
        edges = done.edges
        return done.results

    return without_those_that_fail(ran, codes, PLAIN), edges


def _run_here(
    began: apart.Began, name: str, input: str, codes: Mapping[str, Code], on: Platform, size: str, seed: int
) -> Ran:
    algorithm = load(name)
    instance = algorithm.sample(input).instance(size, seed)
    edges = algorithm.module.edges(base_state(instance.inputs))
    if on == Platform.GPU:
        with open_gpu() as gpu:
            return Ran(run_on_gpu(gpu, instance, codes, began, whole_runs=True), edges)
    texts = {form: code for form, code in codes.items() if isinstance(code, str)}
    results = run_on_emulator(
        instance,
        texts,
        on_failure=lambda form, problem: BuildResult(form, (), (), first_of(problem)),
        began=began,
    )
    return Ran(results, edges)


def _row(form: str, made: Code | NoBuild, results: Mapping[str, BuildResult]) -> GraphRow:
    if isinstance(made, NoBuild):
        return GraphRow(form, made.why)
    ran = results[form]
    if ran.wrong:
        return GraphRow(form, ran.wrong, failed=True)
    counts, times = ran.counts, ran.times
    issues = Issues(counts.warp_instructions, counts.active_lanes, counts.guarded_on_lanes)
    return GraphRow(
        form,
        iterations=len({launch.label for launch in ran.launches}),
        launches=len(ran.launches),
        times=times,
        elapsed=ran.elapsed,
        counted=issues if times is None else None,
    )
