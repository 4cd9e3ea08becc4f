"""Legal kernels in great variety are rewritten, and do to memory what they did before.

`tests.kernels.generators` makes them.
`pytest tests/passes/test_random_kernels.py --hypothesis-profile=long` tries some thousands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note, settings

from cccopt.ccc.function.view import view_of
from cccopt.ccc.legality.exclusive import CHAIN, exclusive_paths
from cccopt.ccc.legality.region_analysis import RegionAnalysis
from cccopt.ccc.regions.marked_loops import find
from cccopt.emulator import Profile, Program
from cccopt.emulator.launch_counters import BranchCount
from cccopt.passes.pipeline import Options, run
from cccopt.ptx.ir import Instruction, Module
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from cccopt.toolchain.ptxas import resources
from tests import slow
from tests.kernels.generators.judging import (
    LIMIT,
    SEEDS,
    differing,
    entered_twice,
    judge,
    launch,
    rewritten,
    times,
)
from tests.kernels.generators.kernels import NAME, Case, from_seed, kernels

EXAMPLES = 12
MANY = 40  # kernels of which some have many tasks
TASKS = 64  # of one warp: from then on it pushes, takes and drains
COUNTED = 100  # kernels of which some have counted loops
EXCLUSIVE = range(2, 12)  # seeds of kernels with sorted paths

LONG = settings().max_examples > settings.get_profile("default").max_examples
PROFILE = settings() if LONG else settings(max_examples=slow.drawn(EXAMPLES), derandomize=True, database=None)


def _tasks(case: Case) -> np.ndarray[Any, Any]:
    """Per warp and counter, how often lanes entered a marked loop or had a task for a path, in the original code."""
    counts = np.zeros((case.warps, case.counters), np.uint32)
    args = [*case.arguments(), counts]
    Program(case.counting).launch(NAME, case.grid, case.block, args, max_steps=LIMIT)
    return counts


def _busy(case: Case) -> set[int]:
    """Regions of which a warp that was whole at the loop's entry had tasks enough for all phases to run. Those of
    exclusive paths need not: lanes may agree on one.
    """
    if case.nested:
        return set()
    counts = _tasks(case)
    copies = Counter(site.region for site in case.sites)
    return {
        site.region
        for site in case.sites
        if not site.exclusive
        and copies[site.region] == 1
        and bool(((counts[:, site.entered] == 32) & (counts[:, site.tasks] >= TASKS)).any())
    }


def _all_phases(ran: Mapping[str, int]) -> bool:
    """Whether tasks were pushed, taken by a full warp and drained, or trips expanded."""
    return bool(ran["expand"] if "expand" in ran else ran["push"] and ran["take"] and ran["drain"])


@PROFILE
@given(kernels())
def test_legal_kernels_are_rewritten_and_keep_their_results(case: Case) -> None:
    """No legal kernel is refused; memory stays the same bit for bit in all forms and orders of lanes; and rewriting
    again changes nothing.
    """
    note(case.ptx)
    judge(case)


def test_whole_warps_with_many_tasks_push_take_and_drain() -> None:
    """A warp that enters a marked loop whole and comes to 64 tasks runs all phases, but for a few conditions that hold
    in all lanes or in hardly any, and stacks that happen to be empty at the end.
    """
    all_ran: Counter[bool] = Counter()
    for case in map(from_seed, range(MANY)):
        busy = _busy(case)
        for form in ("auto", "idle lanes") if busy else ():
            result = rewritten(parse(case.ptx), form)
            _, profile = launch(Program(result.module), case)
            all_ran.update(_all_phases(times(result, profile, region)) for region in busy)
    assert sum(all_ran.values()) >= MANY // 3
    assert all_ran[True] >= 0.9 * sum(all_ran.values()), dict(all_ran)


def test_counted_loops_are_expanded_and_keep_their_results() -> None:
    """Nearly all that the generator makes: some pieces of code keep trips in order."""
    cases = [case for case in map(from_seed, range(COUNTED)) if any(site.counted for site in case.sites)]
    reached: Counter[str] = Counter()
    for case in cases:
        module, regions = parse(case.ptx), {site.region for site in case.sites if site.counted}
        before, _ = launch(Program(case.unmarked), case)
        for form in ("split", "idle lanes"):
            result = rewritten(module, form)
            args, profile = launch(Program(result.module), case)
            assert not differing(before, args), form
            ran = [times(result, profile, region) for region in regions]
            reached["loops"] += len(ran)
            reached["expanded"] += sum("expand" in phases for phases in ran)
            reached["ran"] += sum(phases["expand"] > 0 for phases in ran)
    assert reached["expanded"] >= 0.7 * reached["loops"] > 0, reached
    assert reached["ran"] >= 0.5 * reached["expanded"], reached


def _sorted_groups(module: Module) -> tuple[list[int], int]:
    """The sizes of the groups of paths that share a site, and how many of them drop a common tail."""
    view = view_of(module, next(f for f in module.functions() if f.name == NAME))
    sizes, dropped = [], 0
    for region in find(view).regions:
        found = RegionAnalysis(view, region).sunk
        for group in exclusive_paths(view, region, found):
            sizes.append(len(group))
            dropped += bool(found[group[0].begin].dropped)
    return sizes, dropped


def _votes(module: Module, profile: Profile) -> Iterator[tuple[int, int]]:
    """For each sorted site how often warps came whose lanes agreed on a path, and how often others."""
    function = next(f for f in module.functions() if f.name == NAME)
    body = function.body or ()
    for index, statement in enumerate(body):
        if isinstance(statement, Instruction) and statement.opcode == "vote.sync.all.pred":
            # Loops vote like that too, but send no number around ahead of it.
            if getattr(body[index - 2], "base", "") != "shfl":
                continue
            at = next(i for i in range(index, len(body)) if getattr(body[i], "base", "") == "bra")
            ran = profile.by_branch.get((NAME, at), BranchCount())
            yield ran.taken // 32, (ran.lanes - ran.taken) // 32


def test_exclusive_paths_are_sorted_and_keep_their_results() -> None:
    """Three to six of them, told apart in both ways: none is refused, nearly all share a site, memory stays the same.
    Lanes agree and differ, 32 tasks wait and run, and tails that all paths share are dropped.
    """
    reached: Counter[str] = Counter()
    for case in (from_seed(seed, "exclusive") for seed in EXCLUSIVE):
        module = parse(case.ptx)
        sizes, dropped = _sorted_groups(module)
        few = "few" if max(sizes, default=0) <= CHAIN else "many"
        reached.update({"dropped": bool(dropped), "grouped": bool(sizes), few: 1})
        before, _ = launch(Program(case.unmarked), case)
        for form in ("split", "idle lanes"):
            result = rewritten(module, form)
            assert not entered_twice(result.module)
            program = Program(result.module)
            for seed in (None, *SEEDS[form][:1]):
                args, profile = launch(program, case, seed)
                assert not differing(before, args), f"{form}, order of lanes {seed}"
                if seed is None and form == "split":
                    votes = [*_votes(result.module, profile)]
                    reached["sites"] += len(votes) == len(sizes) > 0
                    reached[f"{few} agree"] += any(agreed for agreed, _ in votes)
                    reached[f"{few} differ"] += any(differed for _, differed in votes)
                    ran = (times(result, profile, s.region) for s in case.sites if s.exclusive)
                    reached[f"{few} take"] += any(r["take"] for r in ran)
    assert reached["sites"] >= 0.8 * len(EXCLUSIVE), reached
    ways = [f"{few} {what}" for few in ("few", "many") for what in ("agree", "differ", "take")]
    assert all(reached[what] for what in ("dropped", *ways)), reached


def test_what_is_not_annotated_stays_as_it_is() -> None:
    """Scopes of calls declare the same names again and again; without annotations they keep them."""
    module = parse(
        next(case for case in map(from_seed, range(50)) if case.text.count("callseq") > 2).unmarked
    )
    assert run(module, Options(mode="always")).module == module


@pytest.mark.nvcc
def test_ptxas_accepts_rewritten_kernels() -> None:
    """What the rewrite makes of generated kernels assembles, and so do the kernels themselves."""
    for seed in range(6):
        module = parse(from_seed(seed).ptx)
        for made in (module, rewritten(module, "auto").module):
            assert NAME in resources(print_module(made), "sm_90")
