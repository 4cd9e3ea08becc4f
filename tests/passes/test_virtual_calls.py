"""Calls of virtual functions and through tables: their targets are known where all code is in one file."""

from __future__ import annotations

import numpy as np
import pytest

from cccopt.ccc.outcome.choices import Mode
from cccopt.ccc.outcome.refusal import Refusal
from cccopt.passes.options import Options
from cccopt.passes.pipeline import prepared
from cccopt.passes.pipeline import run as rewrite_module
from cccopt.ptx.call_promotion import promoted
from cccopt.ptx.ir import Module
from cccopt.ptx.isa import is_indirect_call
from tests.kernels.running import CUDA, Arguments, Launch, compare, compiled, marked, only, rewritten

pytestmark = pytest.mark.nvcc

FILE = "virtual_calls"
FORMS = ("auto", "split", "idle lanes", "carried", "in lane")


def make(launch: Launch) -> Arguments:
    data = np.random.default_rng(5).integers(0, 1 << 32, launch.uneven).astype(np.uint32)
    return [data.size, data, np.zeros_like(data)]


def indirect(module: Module) -> int:
    return sum(is_indirect_call(s) for f in module.functions() for s in f.body or ())


@pytest.mark.parametrize("kernel", ["of_a_path", "of_a_loop", "of_a_table", "of_a_grid"])
@pytest.mark.parametrize("arch", ["sm_90", "sm_100"])
def test_results_are_kept(kernel: str, arch: str) -> None:
    module = only(compiled(FILE, arch), kernel)
    assert indirect(module)
    launches = [Launch(2, 40, 1 if kernel == "of_a_grid" else 2)]
    for form in FORMS if arch == "sm_90" else FORMS[:1]:
        try:
            ran = compare(module, kernel, make, launches, forms=(form,), expand=(True,))
        except Refusal:
            assert form != "auto"
            continue
        assert ran[form]


def test_tasks_of_virtual_calls_move() -> None:
    ran = compare(
        only(compiled(FILE, "sm_90"), "of_a_path"), "of_a_path", make, [Launch(2, 64, 3)], forms=("split",)
    )
    assert ran["split"]["push"]


def test_the_rewritten_kernel_calls_by_name_and_other_functions_stay() -> None:
    module = only(compiled(FILE, "sm_90"), "of_a_path")
    result = rewritten(module).module
    before = {f.name: f for f in module.functions() if f.body is not None}
    after = {f.name: f for f in result.functions() if f.body is not None}
    assert indirect(Module((before["of_a_path"],)))
    assert not indirect(Module((after["of_a_path"],)))
    assert {name for name in before if before[name] != after[name]} == {"of_a_path"}


@pytest.mark.parametrize(
    ("kernel", "forms"), [("that_reads_its_thread", ("split", "carried")), ("that_may_meet", FORMS)]
)
def test_what_one_target_does_may_be_refused(kernel: str, forms: tuple[str, ...]) -> None:
    for form in forms:
        with pytest.raises(Refusal, match=r"CCC0(41|40|38)"):
            rewritten(only(compiled(FILE, "sm_90"), kernel), form)


def test_other_files_may_have_targets_too() -> None:
    linked = only(marked(CUDA / f"{FILE}.cu", "sm_90", "-rdc=true"), "of_a_path")
    for module, options in (
        (linked, Options(Mode.ALWAYS)),
        (only(compiled(FILE, "sm_90"), "of_a_path"), Options(Mode.ALWAYS, relocatable=True)),
    ):
        with pytest.raises(Refusal, match="CCC041"):
            rewrite_module(module, options)
    assert promoted(linked) is linked
    assert not indirect(promoted(linked, alone=True))


def test_a_profile_is_of_the_promoted_calls_of_marked_functions() -> None:
    module = only(compiled(FILE, "sm_90"), "of_a_grid")
    made = {f.name: f for f in prepared(module).functions() if f.body is not None}
    assert not indirect(Module((made.pop("of_a_grid"),)))
    assert {name: f for name, f in made.items() if f in module.items} == made
