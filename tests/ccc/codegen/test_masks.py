"""Collectives of rewritten loops name their lanes by a register (docs/decisions/0025-masks-in-registers.md)."""

from __future__ import annotations

import pytest

from cccopt.analysis.uniformity import is_full_mask
from cccopt.passes.pipeline import Options, run
from cccopt.ptx.ir import Instruction, Module
from tests.fuzz.judge import alone, compile_pair
from tests.fuzz.test_regressions import CUDA

pytestmark = pytest.mark.nvcc


def collectives(module: Module) -> list[Instruction]:
    """What waits for all lanes of a warp."""
    statements = (s for function in module.functions() for s in function.body or ())
    return [s for s in statements if isinstance(s, Instruction) and "sync" in s.parts and s.base != "bar"]


@pytest.mark.parametrize("form", ["split", "idle lanes", "carried", "in lane"])
def test_no_mask_is_a_constant(form: str) -> None:
    pair = alone(
        compile_pair((CUDA / "regressions.cu").read_text(), options=("-I", str(CUDA))), "waits_after_break"
    )
    found = collectives(run(pair.marked, Options(mode="always", form=form)).module)
    assert found
    assert not any(is_full_mask(each.operands[-1]) for each in found)
