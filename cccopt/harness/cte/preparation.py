"""What a run of ``cccopt bench cte`` needs before anything is measured: all builds and all inputs, made in parallel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from cccopt.diagnostic import CccError, Diagnostic, error
from cccopt.harness.builds import Build, NoBuild
from cccopt.harness.choices import Platform
from cccopt.harness.cte import vendor
from cccopt.harness.cte.plan import CtePlan, Job
from cccopt.harness.cte.vendor import Library
from cccopt.harness.cte.workload import BuildKind, build, load
from cccopt.workers import apart

MAKING_SECONDS = 540.0
"""The time limit for making an input."""

Made: TypeAlias = "Build | Library | NoBuild"


@dataclass(frozen=True, slots=True)
class Crew:
    """What works in parallel: threads, and the processes that they start."""

    threads: ThreadPoolExecutor
    running: apart.Running


def prepare(
    plan: CtePlan, todo: Sequence[Job], size: str, arch: str, folder: Path, crew: Crew
) -> tuple[dict[tuple[str, str], Made], dict[tuple[str, str], str]]:
    """All builds by workload and name, and why inputs failed, by workload and input. Builds and inputs are made in
    parallel, except that inputs from files come first. Raises `CccError` for a file that cannot be read.
    """
    inputs = {
        (job.name, job.input): crew.threads.submit(_make_input, job, size, plan.seed, crew.running)
        for job in _first_of_inputs(todo)
    }
    for job in _first_of_inputs(todo):
        if job.reads_file and (problem := inputs[job.name, job.input].result()) is not None:
            # This is the user's mistake and not a result, so it is reported before anything is compiled.
            raise CccError(*problem.diagnostics or (_unread(job.input, problem.why),))
    parts: dict[str, Future[Library | NoBuild]] = {}
    futures: dict[tuple[str, str], Future[Library | NoBuild] | Future[Build | NoBuild]] = {}
    made: dict[tuple[str, str], Made] = {}
    for job in todo:
        for name in job.builds:
            key = (job.name, name)
            if key in futures or key in made:
                continue
            if job.workload.kind(name) != BuildKind.VENDOR:
                futures[key] = crew.threads.submit(build, job.workload, name, arch)
            elif plan.on != Platform.GPU:
                made[key] = NoBuild(name, "a library for GPUs")
            else:
                part = vendor.part(name)
                if part not in parts:
                    parts[part] = crew.threads.submit(vendor.build, part, arch, folder)
                futures[key] = parts[part]
    made.update({key: future.result() for key, future in futures.items()})
    problems = {key: future.result() for key, future in inputs.items()}
    return made, {key: problem.why for key, problem in problems.items() if problem is not None}


def _first_of_inputs(todo: Iterable[Job]) -> Iterator[Job]:
    """The first job with each input: what it makes is kept in the cache for the others."""
    met = set()
    for job in todo:
        if job.input not in met:
            met.add(job.input)
            yield job


def _unread(input: str, why: str) -> Diagnostic:
    return error("CCC101", f"cannot read `{input}`", why=why)


def _make_input(job: Job, size: str, seed: int, running: apart.Running) -> apart.Failed | None:
    """Make an input in a process of its own. Returns how it failed, or None."""
    try:
        given = (job.name, job.input, size, seed)
        apart.call(_make_input_here, *given, seconds=MAKING_SECONDS, running=running)
    except apart.Failed as problem:
        return problem
    return None


def _make_input_here(began: apart.Began, name: str, input: str, size: str, seed: int) -> None:
    load(name).module.inputs(input, size, seed)
