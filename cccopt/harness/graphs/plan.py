"""What ``cccopt bench graphs`` measures: which algorithms, on which graphs, in which forms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cccopt.diagnostic import CccError, error
from cccopt.harness.choices import ALL_SUB_WARPS, SUB_WARPS, Platform
from cccopt.harness.csr.generators import GENERATORS
from cccopt.harness.graphs.workload import (
    INPUTS,
    PLAIN,
    SIZES,
    SMALL,
    Algorithm,
    load,
    names,
    policies,
    policies_of,
    with_policy,
)
from cccopt.harness.workload import FULL

EMULATED_INPUTS = 2
"""How many of an algorithm's graphs the emulator runs on if none are named: the first ones."""


@dataclass(frozen=True, slots=True)
class GraphPlan:
    """What to measure: names of algorithms (or folders), of graphs (or files) and of forms (if there are none, all of
    them), and other policies that the forms with CTE also run with.

    ``sources`` is the number of vertices, drawn from the seed, from which searches begin; 0 means the one with the most
    neighbors. ``size``: None means `FULL` on a GPU and `SMALL` on the emulator. ``counters``: on a GPU, also count with
    Nsight Compute.
    """

    algorithms: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    forms: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    on: Platform = Platform.EMULATOR
    size: str | None = None
    seed: int = 1
    arch: str | None = None
    sources: int = 0
    counters: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """An algorithm on a graph in some forms; ``name`` is what `load` takes for the algorithm."""

    name: str
    algorithm: Algorithm
    input: str
    forms: tuple[str, ...]

    @property
    def policies(self) -> tuple[str, ...]:
        """The policies among the forms."""
        return policies_of(self.forms)

    @property
    def title(self) -> str:
        """The name of the job in messages."""
        return f"`{self.algorithm.name}` on `{self.input}`"


def size_of(plan: GraphPlan) -> str:
    """The size to run. Raises `CccError` (CCC091) for an unknown one."""
    if plan.size is not None:
        _known("size", (plan.size,), SIZES)
    return plan.size or (SMALL if plan.on == Platform.EMULATOR else FULL)


def jobs(plan: GraphPlan) -> tuple[Job, ...]:
    """The jobs, algorithm by algorithm. Raises `CccError` for unknown names: CCC090 and CCC091."""
    loaded = [(name, load(name)) for name in plan.algorithms or names()]
    generated = [name for name in plan.inputs if name in GENERATORS or not Path(name).is_file()]
    _known("input", generated, GENERATORS, " or a file that holds a graph")
    _known("form", plan.forms, [form for _, algorithm in loaded for form in algorithm.module.FORMS])
    _known("policy", plan.policies, (*policies(), ALL_SUB_WARPS))
    return tuple(
        Job(name, algorithm, input, tuple(_forms(algorithm, plan)))
        for name, algorithm in loaded
        for input in dict.fromkeys(plan.inputs or _inputs(algorithm, plan.on))
    )


def _inputs(algorithm: Algorithm, on: Platform) -> Sequence[str]:
    """The graphs that the algorithm runs on if none are named."""
    known: tuple[str, ...] = getattr(algorithm.module, "INPUTS", INPUTS)
    return known[:EMULATED_INPUTS] if on == Platform.EMULATOR else known


def _forms(algorithm: Algorithm, plan: GraphPlan) -> Iterator[str]:
    """The requested forms, each also with the policies that it takes, and the form that they are compared with."""
    for form in algorithm.module.FORMS:
        if not plan.forms or form == PLAIN or form in plan.forms:
            yield form
            if form in algorithm.module.POLICY_FORMS:
                yield from (with_policy(form, policy) for policy in _policies(plan))


def _policies(plan: GraphPlan) -> tuple[str, ...]:
    """The requested policies, each once."""
    each = (SUB_WARPS if policy == ALL_SUB_WARPS else (policy,) for policy in plan.policies)
    return tuple(dict.fromkeys(policy for some in each for policy in some))


def _known(what: str, asked: Iterable[str], known: Iterable[str], more: str = "") -> None:
    there = tuple(dict.fromkeys(known))
    for name in asked:
        if name not in there:
            choice = ", ".join(f"`{one}`" for one in there)
            raise CccError(
                error("CCC091", f"there is no {what} `{name}`", help=f"choose one of {choice}{more}")
            )
