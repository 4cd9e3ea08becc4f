"""What ``cccopt bench cte`` measures: which workloads, on which of their inputs, in which builds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cccopt.diagnostic import CccError, error
from cccopt.harness.choices import ALL_SUB_WARPS, SUB_WARPS, Platform
from cccopt.harness.csr.generators import GENERATORS
from cccopt.harness.cte.workload import (
    ONE_PER_LANE,
    SMALL,
    CteWorkload,
    load,
    names,
    with_ours,
)
from cccopt.harness.workload import FULL

EMULATED_INPUTS = 2
"""How many of a workload's inputs the emulator runs if none are named: the first ones."""


@dataclass(frozen=True, slots=True)
class CtePlan:
    """What to measure: names of workloads (or folders), of inputs (or files) and of builds; all of them if none are
    given.

    ``size``: None means `FULL` on a GPU and `SMALL` on the emulator. ``profile``: ask Nsight Compute for counts.
    ``headers``: names and folders of other headers to make builds with, in addition to ours.
    """

    workloads: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    on: Platform = Platform.EMULATOR
    size: str | None = None
    seed: int = 1
    arch: str | None = None
    profile: bool = True
    headers: tuple[tuple[str, Path], ...] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """A workload on an input in some builds; ``name`` is what `load` takes for the workload."""

    name: str
    workload: CteWorkload
    input: str
    builds: tuple[str, ...]

    @property
    def reads_file(self) -> bool:
        """Whether the input is a user's file."""
        return self.input not in self.workload.module.INPUTS


def size_of(plan: CtePlan) -> str:
    """The size to run. Raises `CccError` (CCC091) for an unknown one."""
    if plan.size is not None:
        _known("size", (plan.size,), (SMALL, FULL))
    return plan.size or (SMALL if plan.on == Platform.EMULATOR else FULL)


def jobs(plan: CtePlan) -> tuple[Job, ...]:
    """The jobs, input by input. Raises `CccError` for unknown names: CCC090 and CCC091."""
    _are_headers(plan.headers)
    loaded = [(name, load(name, plan.headers)) for name in plan.workloads or names()]
    files = _files(plan.inputs)
    _known(
        "input",
        [name for name in plan.inputs if name not in files],
        [name for _, workload in loaded for name in workload.module.INPUTS],
        " or a file that holds a matrix or graph"
        if any(takes_files(workload) for _, workload in loaded)
        else "",
    )
    _known("build", plan.policies, [ALL_SUB_WARPS, *(b for _, workload in loaded for b in workload.builds)])
    found = [
        (input, Job(name, workload, input, _builds(workload, plan.policies)))
        for name, workload in loaded
        for input in _inputs(workload, plan, files)
    ]
    _not_nothing(plan, [name for name, _ in loaded], {job.name for _, job in found})
    order = {input: number for number, input in enumerate(dict.fromkeys(input for input, _ in found))}
    return tuple(job for _, job in sorted(found, key=lambda one: order[one[0]]))


def takes_files(workload: CteWorkload) -> bool:
    """Whether the workload's inputs are matrices or graphs, which may come from a file."""
    return any(name in GENERATORS for name in workload.module.INPUTS)


def _files(inputs: Iterable[str]) -> set[str]:
    return {name for name in inputs if name not in GENERATORS and Path(name).is_file()}


def _inputs(workload: CteWorkload, plan: CtePlan, files: set[str]) -> Iterator[str]:
    known = workload.module.INPUTS
    if not plan.inputs:
        yield from known[:EMULATED_INPUTS] if plan.on == Platform.EMULATOR else known
    for name in dict.fromkeys(plan.inputs):
        if name in known or (name in files and takes_files(workload)):
            yield name


def _builds(workload: CteWorkload, policies: Sequence[str]) -> tuple[str, ...]:
    """The requested builds, and the one that they are compared with."""
    if not policies:
        return workload.builds
    wanted = {*policies, *(SUB_WARPS if ALL_SUB_WARPS in policies else ())}
    return tuple(
        build
        for build in workload.builds
        if build == ONE_PER_LANE or build in wanted or with_ours(build) in wanted
    )


def _known(what: str, asked: Iterable[str], known: Iterable[str], more: str = "") -> None:
    there = tuple(dict.fromkeys(known))
    for name in asked:
        if name not in there:
            choice = ", ".join(f"`{one}`" for one in there)
            raise CccError(
                error("CCC091", f"there is no {what} `{name}`", help=f"choose one of {choice}{more}")
            )


def _are_headers(headers: Sequence[tuple[str, Path]]) -> None:
    for name, folder in headers:
        if [other for other, _ in headers].count(name) > 1:
            raise CccError(
                error(
                    "CCC091",
                    f"several header folders are named `{name}`",
                    help="give each folder its own name",
                )
            )
        if not (folder / "cte.cuh").is_file():
            raise CccError(
                error(
                    "CCC091",
                    f"the headers `{name}` are not in `{folder}`",
                    why="there is no `cte.cuh`",
                    help="name a folder such as `cte_templates`",
                )
            )


def _not_nothing(plan: CtePlan, asked: Iterable[str], found: set[str]) -> None:
    """Raise `CccError` (CCC091) if a named workload has none of the named inputs, or if no workload has any of them."""
    for name in asked:
        if (plan.workloads and name not in found) or not found:
            known = ", ".join(f"`{one}`" for one in load(name).module.INPUTS)
            raise CccError(
                error(
                    "CCC091",
                    f"workload `{name}` has none of the inputs {', '.join(f'`{one}`' for one in plan.inputs)}",
                    help=f"its inputs are {known}",
                )
            )
