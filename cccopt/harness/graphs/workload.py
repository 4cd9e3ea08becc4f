"""The graph algorithms (``bench/graphs``), their forms, and how an algorithm on an input becomes a `Sample`.

An algorithm's ``workload.py`` has the parts of `GraphModule`. Its source is compiled once: a form is a sequence of
launches of its kernels. The form `CCC` runs the launches of `PLAIN` on what CCC makes of the annotated kernels.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np

from cccopt import driver, resources
from cccopt.diagnostic import CccError
from cccopt.harness.builds import NoBuild, first_of
from cccopt.harness.choices import ALL_SUB_WARPS, SUB_WARPS
from cccopt.harness.workload import (
    FULL,
    Array,
    Inputs,
    Instance,
    Launch,
    Sample,
    State,
    Workload,
    arrays,
    base_state,
    find,
)
from cccopt.harness.workload import names as names_among

SHELF = "bench/graphs"
PARTS = ("FORMS", "POLICY_FORMS", "inputs", "launches", "reference", "check", "edges")
SMALL = "small"
SIZES = (SMALL, FULL)

INPUTS = ("rmat", "road", "power_law", "erdos_renyi")
"""The graphs that algorithms run on if none are named, in order: few levels and long rows, many levels and short rows,
rows of all lengths, rows of similar lengths.
"""

PLAIN, CCC = "plain", "ccc"


class GraphModule(Protocol):
    """What every ``workload.py`` in ``bench/graphs`` has; ``RESULTS``, ``SCRATCH``, ``FULL_REFERENCE`` and
    ``LAUNCHES_VARY`` are those of `cccopt.harness.workload`.

    If it has ``INPUTS``, it runs on those graphs instead of `INPUTS` when none are named. ``FORMS`` begins with
    `PLAIN`, which the others are compared with. The kernels of ``POLICY_FORMS`` take the policy that the macro
    ``CTE_POLICY`` names. The launches of one iteration (a level, a round) have one label. If it has ``begin``, it
    searches from a vertex: ``begin(offsets, source)`` gives the inputs that depend on the vertex.
    """

    FORMS: tuple[str, ...]
    POLICY_FORMS: tuple[str, ...]

    def inputs(self, name: str, size: str, seed: int) -> Inputs:
        """The named arrays and numbers of a run on the graph ``name``, which may be a file."""

    def launches(self, state: State, form: str) -> Generator[Launch, None, None]:
        """The launches of a form."""

    def reference(self, inputs: Mapping[str, Any]) -> Mapping[str, Array]:
        """What the results must be."""

    def check(self, result: Mapping[str, Any], expected: Mapping[str, Array]) -> str:
        """What is wrong; empty if nothing is."""

    def edges(self, inputs: Mapping[str, Any]) -> int:
        """The number of edges that a run traverses, the same for all forms: the basis of rates in edges per second."""


@dataclass(frozen=True, slots=True)
class Algorithm:
    """An algorithm with its name and its CUDA source."""

    name: str
    source: Path
    module: GraphModule

    def sample(self, input: str) -> Sample:
        """The algorithm on one of its inputs, in the form that all runners take."""
        return Sample(self.name, self.source, cast(Workload, _Bound(self, input)), PLAIN)


@dataclass(frozen=True)
class _Bound:
    """An algorithm on one of its inputs, with the parts of `Workload`."""

    algorithm: Algorithm
    input: str
    SIZES = SIZES

    def __getattr__(self, name: str) -> Any:
        """Take what does not depend on the input from the module."""
        return getattr(self.algorithm.module, name)

    def inputs(self, size: str, seed: int) -> Inputs:
        return self.algorithm.module.inputs(self.input, size, seed)

    def launches(self, state: State) -> Generator[Launch, None, None]:
        return self.algorithm.module.launches(state, PLAIN)

    def launches_of(self, state: State, build: str) -> Generator[Launch, None, None]:
        return self.algorithm.module.launches(state, parts_of(build)[0])


def with_policy(form: str, policy: str) -> str:
    """The name of ``form`` with a policy other than that of its source."""
    return f"{form}@{policy}"


def parts_of(build: str) -> tuple[str, str]:
    """The form, and the policy if it is not that of the source, else empty."""
    form, _, policy = build.partition("@")
    return form, policy


def policies_of(builds: Iterable[str]) -> tuple[str, ...]:
    """The other policies that ``builds`` have, each once."""
    return tuple(dict.fromkeys(policy for _, policy in map(parts_of, builds) if policy))


def policies() -> tuple[str, ...]:
    """The policies that have headers; the header of `ALL_SUB_WARPS` has several."""
    headers = (resources.folder("cte_templates") / "cte" / "policies").glob("*.cuh")
    named = {header.stem for header in headers} - {ALL_SUB_WARPS}
    return (*sorted(named), *SUB_WARPS)


def names() -> tuple[str, ...]:
    """The algorithms that come with this installation, sorted."""
    return names_among(SHELF)


def load(name: str) -> Algorithm:
    """The algorithm ``name`` of ``bench/graphs``, or a folder. Raises `CccError` (CCC090)."""
    source, module = find(name, SHELF, PARTS)
    return Algorithm(source.stem, source, cast(GraphModule, module))


def searches(algorithm: Algorithm, instance: Instance, sources: int, seed: int) -> dict[str, Instance]:
    """The runs by where they begin: at ``sources`` random vertices if the algorithm searches from one, else one run."""
    begin = getattr(algorithm.module, "begin", None)
    if not sources or begin is None:
        return {"": instance}
    offsets = arrays(base_state(instance.inputs))["offsets"]
    runs = {
        f"from vertex {source}: ": replace(instance, inputs={**instance.inputs, **begin(offsets, source)})
        for source in drawn_sources(offsets, sources, seed)
    }
    return runs or {"": instance}  # without edges, no vertex is better than another


def drawn_sources(offsets: Array, count: int, seed: int) -> tuple[int, ...]:
    """``count`` different vertices with edges, drawn from ``seed``, or all of them if there are fewer."""
    able = np.flatnonzero(np.diff(offsets))
    drawn = np.random.default_rng(seed).choice(able, min(count, able.size), replace=False)
    return tuple(map(int, drawn))


@dataclass(frozen=True, slots=True)
class Code:
    """An algorithm's PTX: from plain nvcc, for all forms but `CCC`; from CCC, or why there is none; and by policy."""

    plain: str
    ccc: str | NoBuild
    by_policy: Mapping[str, str]

    def of(self, build: str) -> str | NoBuild:
        """The PTX that a form runs, or why there is none."""
        form, policy = parts_of(build)
        if policy:
            return self.by_policy[policy]
        return self.ccc if form == CCC else self.plain


def compiled(algorithm: Algorithm, arch: str, policies: Collection[str] = ()) -> Code:
    """The code of ``algorithm`` for ``arch``, also with other ``policies``. Raises `CccError` if nvcc refuses it; a
    refusal by CCC gives a `NoBuild`.
    """
    options = ("-std=c++17", "-I", str(resources.folder("cte_templates")))

    def plain(*more: str) -> str:
        return driver.compile(algorithm.source, arch=arch, ccc="off", nvcc_options=(*options, *more)).ptx

    by_policy = {policy: plain(f"-DCTE_POLICY=cte::{policy}") for policy in policies}
    if CCC in algorithm.module.FORMS:
        try:
            program = driver.compile(algorithm.source, arch=arch, ccc="always", nvcc_options=options)
        except CccError as problem:
            refused = NoBuild(CCC, first_of(problem))
        else:
            return Code(program.original_ptx, program.ptx, by_policy)
    else:
        refused = NoBuild(CCC, "there is no such form")
    return Code(plain(), refused, by_policy)
