"""Stacks in global memory: kernels whose contexts fit into no block's shared memory do what they did.

The kernels are in `tests/kernels/cuda/large_contexts.cu`, each with what it is about above it.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from cccopt.ccc.outcome.choices import Form, Outcome, StackMemory
from cccopt.ccc.outcome.refusal import Refusal
from cccopt.ccc.outcome.stack_pool import StackPool
from cccopt.ccc.plan.pool import HEAD, check_pools, pool_for, with_pools
from cccopt.ccc.profitability.profile import RunProfile
from cccopt.emulator import Program
from cccopt.passes.pipeline import Options, Result, run
from cccopt.ptx.ir import Function, Module, Variable
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from tests.ccc.profitability.test_decision import kernel, module, path, profiled
from tests.fuzz.judge import Pair, alone, compile_pair, judge
from tests.kernels.running import CUDA, Arguments, Launch, phases
from tests.kernels.running import run as launched

TEXT = (CUDA / "large_contexts.cu").read_text()
KERNELS = re.findall(r"__global__ .*?(\w+)\(ARGUMENTS\)", TEXT)
SMALL = (Launch(2, 64, 700), Launch(3, 32, 77))
ALWAYS = Options(mode="always")


@pytest.fixture(scope="module")
def compiled() -> Pair:
    return compile_pair(TEXT, "sm_90")


def arguments(launch: Launch) -> Arguments:
    """``n, a, out, count``."""
    a = np.random.default_rng(launch.trips).integers(0, 1 << 32, 2048).astype(np.uint32)
    return [launch.trips, a, np.zeros(2048, np.uint32), np.zeros(2048, np.uint32)]


def pool_of(result: Result) -> Variable:
    """The only pool of a module."""
    (found,) = (i for i in result.module.items if isinstance(i, Variable) and "ccc_stacks" in i.name)
    return found


def whys(marked: Module) -> list[str]:
    """Why shared memory alone does not do: what a refusal says, or the remark of a form without stacks."""
    try:
        result = run(marked, replace(ALWAYS, stacks=StackMemory.SHARED))
    except Refusal as problem:
        return [f"({said.code}) {said.why}" for said in problem.diagnostics]
    assert not any(report.global_bytes or report.context for report in result.regions)
    return [remark.why for remark in result.remarks]


# --- kernels ---


@pytest.mark.nvcc
@pytest.mark.parametrize("name", KERNELS)
def test_tasks_in_global_memory_do_what_their_lanes_did(name: str, compiled: Pair) -> None:
    pair = alone(compiled, name)
    # Entries for one block and a quarter: some warps find none.
    for options in (ALWAYS, replace(ALWAYS, resident=1)):
        verdict = judge(pair, name, arguments, SMALL, forms=("auto",), assembler="sm_90", options=options)
        assert not verdict.wrong
        assert verdict.ran["auto"]["whole"]
        assert verdict.ran["auto"]["push"]


@pytest.mark.nvcc
@pytest.mark.parametrize("name", KERNELS)
def test_they_are_there_only_where_shared_memory_is_too_small(name: str, compiled: Pair) -> None:
    marked = alone(compiled, name).marked
    result = run(marked, ALWAYS)
    assert {report.outcome for report in result.regions} == {Outcome.REWRITTEN}
    loops = [report for report in result.regions if report.kind in ("for", "grid")]
    assert loops
    for loop in loops:
        assert loop.global_bytes >= 32 * 70
        # Reductions' slots stay.
        assert loop.shared_bytes == (4 * 1024 if name == "owners" else 0)
        assert loop.resident == 2048
    assert "CCC027" in {remark.code for remark in result.remarks}
    assert "(CCC043)" in " ".join(whys(marked))


@pytest.mark.nvcc
def test_forms_are_those_that_the_kernels_name(compiled: Pair) -> None:
    forms = {
        name: next(r.form for r in run(alone(compiled, name).marked, ALWAYS).regions if r.global_bytes)
        for name in KERNELS
    }
    assert {forms[name] for name in ("even", "repeated")} == {Form.SPLIT}
    assert forms["exits"] == Form.IDLE_LANES
    assert [name for name, form in forms.items() if form == Form.CARRIED] == ["carried"]


@pytest.mark.nvcc
def test_a_warp_gives_its_entry_back_each_time(compiled: Pair) -> None:
    pair = alone(compiled, "repeated")
    result = run(pair.marked, replace(ALWAYS, resident=1))
    launch = Launch(1, 1024, 2000)
    _, profile = launched(Program(result.module), "repeated", launch, arguments(launch))
    ran = phases(result, profile)
    # 40 entries for 32 warps that come at the same time: hardly any tries 32 in vain.
    assert ran["whole"] > 4 * 28
    assert ran["whole"] + ran["original"] == 4 * 32


# --- pools ---

TARGET = parse(".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }")


def test_there_are_entries_for_all_warps_that_run_at_once_and_a_quarter_more() -> None:
    pool = pool_for(TARGET, 256, 3000, None)
    assert pool == StackPool(132 * 64 * 5 // 4, 3072)
    assert pool_for(TARGET, 250, 1024, 3) == StackPool(3 * 8 + 6, 1024)
    unknown = parse(print_module(TARGET).replace("sm_90", "sm_72"))
    assert pool_for(unknown, 256, 3000, None).entries == 188 * 64 * 5 // 4


def test_a_module_holds_each_pool_once_before_its_functions() -> None:
    pool = StackPool(5, 1024)
    made = with_pools(TARGET, [pool, pool])
    place = next(i for i, item in enumerate(made.items) if isinstance(item, Function))
    declared = made.items[place - 1]
    assert isinstance(declared, Variable)
    assert (declared.name, declared.dimensions, declared.alignment) == (pool.name, (5 * 1024,), HEAD)
    assert with_pools(made, [pool]) == made


def test_pools_of_a_module_have_a_limit_together() -> None:
    half = StackPool(1024, 1 << 19)
    check_pools([half, StackPool(512, 1 << 20)], None)
    with pytest.raises(Refusal) as caught:
        check_pools([half, StackPool(513, 1 << 20)], None)
    assert caught.value.diagnostics[0].code == "CCC043"
    assert "1,074,790,400 bytes of global memory" in caught.value.diagnostics[0].message


# --- the choice of memory ---


def choice(
    text: str,
    stacks: StackMemory,
    mode: str = "always",
    resident: int | None = None,
    profile: RunProfile | None = None,
) -> Result:
    """The rewrite of a module with stacks where they are wanted."""
    return run(parse(text), Options(mode=mode, stacks=stacks, resident=resident, profile=profile))


def _global(result: Result) -> set[int]:
    return {report.region for report in result.regions if report.global_bytes}


def test_the_option_decides() -> None:
    text = module(kernel(path(2, 100)))
    assert _global(choice(text, StackMemory.AUTO)) == set()
    assert _global(choice(text, StackMemory.GLOBAL)) == {1, 2}
    report = next(r for r in choice(text, StackMemory.GLOBAL).regions if r.region == 1)
    assert (report.shared_bytes, report.global_bytes) == (0, 1024)
    large = module(kernel(path(2, 300, 60), threads=256))
    assert _global(choice(large, StackMemory.AUTO)) == {1, 2}
    assert "CCC043" in " ".join(whys(parse(large)))


def test_auto_takes_what_fits_into_shared_memory_first_and_prices_the_rest() -> None:
    # One of two paths fits: it is chosen, in shared memory.
    two = module(kernel(path(2, 100, 30), path(3, 300, 30), threads=256))
    result = choice(two, StackMemory.AUTO, "auto", profile=profiled(two, [8]))
    assert _global(result) == set()
    assert {r.region for r in result.regions if r.outcome is Outcome.REWRITTEN} == {1, 3}
    # None does: the longer path pays for its context in global memory, the short one does not.
    for length, chosen in ((2000, True), (100, False)):
        text = module(kernel(path(2, length, 60), threads=256))
        result = choice(text, StackMemory.AUTO, "auto", profile=profiled(text, [8]))
        assert _global(result) == ({1, 2} if chosen else set())


def test_contexts_that_no_memory_holds_are_refused() -> None:
    wide = module(kernel(path(2, 10, 900), threads=256)).replace("<64>", "<1000>").replace("sm_75", "sm_100")
    with pytest.raises(Refusal) as caught:
        run(parse(wide), replace(ALWAYS, form=Form.SPLIT))
    (said,) = caught.value.diagnostics
    assert said.code == "CCC043"
    assert "global memory" in said.message


def test_loops_with_equal_entries_share_a_pool() -> None:
    text = module(kernel(path(2, 100), name="k"), kernel(path(2, 50, 2), name="l"))
    result = choice(text, StackMemory.GLOBAL)
    assert sum(report.global_bytes > 0 and report.region == 1 for report in result.regions) == 2
    assert pool_of(result).dimensions == (72 * 32 * 5 // 4 * 1024,)


def test_the_carried_form_has_its_stacks_there_too() -> None:
    made = run(
        parse(module(kernel(path(2, 100)))),
        Options(mode="always", form=Form.CARRIED, stacks=StackMemory.GLOBAL),
    )
    assert _global(made) == {1, 2}
    assert isinstance(made.module, Module)
