"""The benchmark workloads of CTE (``bench/cte``), their builds, and how a workload on an input becomes a `Sample`.

A workload's ``workload.py`` has the parts of `CteModule`. Its source is compiled once for each *build*: for each policy
of `POLICIES`, which a macro names, and for each kernel-level form of its ``FORMS``. If it has a function ``spmv``,
NVIDIA's libraries are builds of it as well (`cccopt.harness.cte.vendor`).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np

from cccopt import driver, resources
from cccopt.choice import Choice
from cccopt.diagnostic import CccError, error
from cccopt.harness.builds import Build, NoBuild, assembled, first_of
from cccopt.harness.choices import SUB_WARPS
from cccopt.harness.workload import FULL, Argument, Array, Inputs, Launch, Sample, State, Workload, find
from cccopt.harness.workload import names as names_among

SHELF = "bench/cte"
PARTS = ("INPUTS", "FORMS", "inputs", "launches", "reference", "check", "least_bytes")
SMALL = "small"

ONE_PER_LANE, AUTOMATIC = "one_per_lane", "automatic"
POLICIES = (
    ONE_PER_LANE,
    *SUB_WARPS,
    "warp",
    "warp_staged",
    "warp_segmented",
    "warp_chunked",
    "thread_warp_block",
    "block",
    "merge_path",
    "automatic_block",
    AUTOMATIC,
)
"""The builds that differ only in ``CTE_POLICY``. The first is the one that others are compared with."""

TASKS = "tasks"
"""The form of all policies: one coarse task per thread."""

VENDORS = ("cusparse_alg1", "cusparse_alg2", "cub_segmented_reduce")
"""The additional builds of a workload that has ``spmv``: functions of ``bench/cte/vendor.cu``."""


class BuildKind(Choice):
    """How a build differs from the others: in the policy, the form of the kernel, the library, or the headers."""

    POLICY = "policy"
    FORM = "kernel form"
    VENDOR = "vendor"
    OTHER_HEADERS = "other headers"


class CteModule(Protocol):
    """What every ``workload.py`` in ``bench/cte`` has; ``RESULTS``, ``SCRATCH``, ``setup`` and ``FULL_REFERENCE`` are
    those of `cccopt.harness.workload`. Sizes are ``small`` (for the emulator) and ``full``.

    If there is a function ``spmv(state)``, it gives what ``y = A x`` is computed from. These are the numbers of rows,
    columns and entries, then the arrays of offsets (int32), column indices (int32), values, x and y (float or double).
    """

    INPUTS: tuple[str, ...]
    FORMS: tuple[str, ...]

    def inputs(self, name: str, size: str, seed: int) -> Inputs:
        """The named arrays and numbers of a run on the input ``name``."""

    def launches(self, state: State, form: str) -> Generator[Launch, None, None]:
        """The launches of a policy (form `TASKS`) or of a kernel-level form."""

    def reference(self, inputs: Mapping[str, Any]) -> Mapping[str, Array]:
        """What the results must be."""

    def check(self, result: Mapping[str, Any], expected: Mapping[str, Array]) -> str:
        """What is wrong; empty if nothing is."""

    def least_bytes(self, inputs: Mapping[str, Any]) -> int:
        """The fewest bytes that a run must move."""


@dataclass(frozen=True, slots=True)
class CteWorkload:
    """A workload with its name and its CUDA source."""

    name: str
    source: Path
    module: CteModule
    headers: tuple[tuple[str, Path], ...] = ()
    """Names and folders of other headers to compile with, in addition to ours."""

    @property
    def builds(self) -> tuple[str, ...]:
        """The names of all its builds, in the order of tables."""
        forms = (name_of_form(form) for form in self.module.FORMS if form != TASKS)
        ours = (*POLICIES, *forms)
        others = (f"{build}@{name}" for build in ours for name, _ in self.headers)
        return (*ours, *others, *(VENDORS if hasattr(self.module, "spmv") else ()))

    def kind(self, build: str) -> BuildKind:
        """The kind of ``build``."""
        if build != with_ours(build):
            return BuildKind.OTHER_HEADERS
        if build in POLICIES:
            return BuildKind.POLICY
        return BuildKind.VENDOR if build in VENDORS else BuildKind.FORM

    def form(self, build: str) -> str:
        """The form whose launches ``build`` runs."""
        ours = with_ours(build)
        return next((form for form in self.module.FORMS if ours == name_of_form(form)), TASKS)

    def sample(self, input: str) -> Sample:
        """The workload on one of its inputs, in the form that all runners take."""
        return Sample(self.name, self.source, cast(Workload, _Bound(self, input)), ONE_PER_LANE)


@dataclass(frozen=True)
class _Bound:
    """A workload on one of its inputs, with the parts of `Workload`."""

    workload: CteWorkload
    input: str
    SIZES = (SMALL, FULL)

    def __getattr__(self, name: str) -> Any:
        """Take what does not depend on the input from the module."""
        return getattr(self.workload.module, name)

    def inputs(self, size: str, seed: int) -> Inputs:
        return self.workload.module.inputs(self.input, size, seed)

    def launches(self, state: State) -> Generator[Launch, None, None]:
        return self.workload.module.launches(state, TASKS)

    def launches_of(self, state: State, build: str) -> Generator[Launch, None, None]:
        if self.workload.kind(build) == BuildKind.VENDOR:
            return _vendor_launch(build, cast(Any, self.workload.module).spmv(state))
        return self.workload.module.launches(state, self.workload.form(build))


def _vendor_launch(build: str, arguments: tuple[Argument, ...]) -> Generator[Launch, None, None]:
    sizes, given = arguments[:3], arguments[3:]
    kind = np.asarray(given[-1]).dtype.name
    shape = (1, 1, 1)  # the library chooses its own
    yield Launch(f"{build}_{kind}", shape, shape, (*map(np.int64, sizes), *given))


def name_of_form(form: str) -> str:
    """The name of the build of a kernel-level form: that of the form, unless a policy has the same name."""
    return f"kernel_{form}" if form in POLICIES else form


def with_ours(build: str) -> str:
    """The name of the same build with our headers: ``build`` itself unless that is one with other headers."""
    return build.partition("@")[0]


def names() -> tuple[str, ...]:
    """The workloads that come with this installation, sorted."""
    return names_among(SHELF)


def load(name: str, headers: tuple[tuple[str, Path], ...] = ()) -> CteWorkload:
    """The workload ``name`` of ``bench/cte``, or a folder. Raises `CccError` (CCC090)."""
    source, module = find(name, SHELF, PARTS)
    return CteWorkload(source.stem, source, cast(CteModule, module), headers)


def build(workload: CteWorkload, name: str, arch: str) -> Build | NoBuild:
    """Compile the policy or form ``name`` of ``workload`` for ``arch``; a refusal by nvcc gives a `NoBuild`."""
    try:
        ptx = driver.compile(workload.source, arch=arch, ccc="off", nvcc_options=options(workload, name)).ptx
        return assembled(name, ptx, arch)
    except CccError as problem:
        return _no_build(name, problem)


def options(workload: CteWorkload, name: str) -> tuple[str, ...]:
    """nvcc's options for the policy or form ``name``. Raises `CccError` (CCC091) for headers that were not named."""
    ours, _, other = name.partition("@")
    folder = dict(workload.headers).get(other) if other else resources.folder("cte_templates")
    if folder is None:
        raise CccError(error("CCC091", f"there are no headers `{other}`"))
    form = workload.form(name)
    chosen = f"-DCTE_POLICY=cte::{ours}" if form == TASKS else f"-DCTE_FORM_{form.upper()}"
    return ("-std=c++17", "-I", str(folder), chosen)


def _no_build(name: str, problem: CccError) -> NoBuild:
    """The reason: the sentence of a `static_assert`, which is a refusal by the headers, or the first error line."""
    said = problem.diagnostics[0].why
    for line in said.splitlines():
        _, asserted, sentence = line.partition('error: static assertion failed with "')
        if asserted:
            return NoBuild(name, sentence.rstrip().removesuffix('"'), by_headers=True)
    errors = [line.strip() for line in said.splitlines() if "error" in line]
    return NoBuild(name, first_of(problem) + (f": {errors[0]}" if errors else ""))
