"""Generated kernels before and after their rewrite: launches, and what is asked of all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from cccopt.analysis.cfg import build
from cccopt.analysis.loops import irreducible_edges
from cccopt.emulator import Profile, Program
from cccopt.passes.pipeline import Options, Result, run
from cccopt.ptx.ir import Module
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from cccopt.ptx.verifier import verify
from tests.kernels.generators.build import BUFFERS
from tests.kernels.generators.kernels import NAME, Case

SEEDS = {"auto": (1, 2), "split": (3,), "idle lanes": (4,)}
"""For each form of loops, orders of lanes to run them in beside lock-step."""

LIMIT = 1_000_000  # steps of a launch


def launch(program: Program, case: Case, shuffle: int | None = None) -> tuple[list[Any], Profile]:
    """The arguments after a launch in hazard mode, and its counters."""
    args = case.arguments()
    profile = program.launch(
        NAME, case.grid, case.block, args, shuffle=shuffle, hazards=True, max_steps=LIMIT
    )
    return args, profile


def differing(before: list[Any], after: list[Any]) -> list[str]:
    """The buffers whose contents differ."""
    pairs = zip(BUFFERS, before[: len(BUFFERS)], after[: len(BUFFERS)], strict=True)
    return [name for name, a, b in pairs if a.tobytes() != b.tobytes()]


def rewritten(module: Module, form: str, *, expand: bool = True, resident: int | None = None) -> Result:
    """The module with all its regions rewritten. Raises Refusal."""
    return run(module, Options(mode="always", form=form, expand=expand, resident=resident))


def entered_twice(module: Module) -> list[str]:
    """Functions with a loop of more than one entry, which a GPU may not bring its lanes together in."""
    bodies = {f.name: f.body for f in module.functions() if f.body is not None}
    return [name for name, body in bodies.items() if list(irreducible_edges(build(body)))]


def times(result: Result, profile: Profile, region: int) -> Mapping[str, int]:
    """How often warps ran each phase of a path."""
    counts: Counter[str] = Counter()
    for report in result.regions:
        if report.region == region:
            for phase, labels in report.labels:
                at = (profile.by_label.get((NAME, label)) for label in labels)
                counts[phase] += sum(count.warps for count in at if count is not None)
    return counts


def distinct(module: Module, resident: int | None = None) -> Iterator[tuple[str, Result]]:
    """The rewrites of a module in all forms, with loops expanded and without, each text once."""
    seen: set[str] = set()
    for form, expand in product(SEEDS, (True, False)):
        result = rewritten(module, form, expand=expand, resident=resident)
        text = print_module(result.module)
        if text not in seen:
            seen.add(text)
            yield form, result


def judge(case: Case) -> list[tuple[str, Result, Profile]]:
    """Asserts that a legal kernel is not refused; that memory stays the same bit for bit in all forms and orders of
    lanes; and that rewriting again changes nothing. Gives for each form its rewrite and the profile of lock-step.
    """
    module = parse(case.ptx)
    verify(module)
    before, _ = launch(Program(case.unmarked), case)
    found = []
    for form, result in distinct(module, case.resident):
        again = run(result.module, Options(mode="always"))
        assert again.module == result.module
        assert not again.regions
        assert not entered_twice(result.module)
        program = Program(result.module)
        for seed in (None, *SEEDS[form]):
            args, profile = launch(program, case, seed)
            assert not differing(before, args), f"{form}, order of lanes {seed}"
            if seed is None:
                found.append((form, result, profile))
    return found
