"""Sites whose lanes come from several ways: seeds of random kernels that once went wrong."""

from __future__ import annotations

import pytest

from cccopt.emulator import Program
from cccopt.passes.pipeline import Options, run
from cccopt.ptx.parser import parse
from tests.passes.generate import NAME, from_seed


# 5154: two paths in one whole, the ends of the second leading past the first one's join by several branches.
@pytest.mark.parametrize("seed", [5154])
@pytest.mark.parametrize("form", ["auto", "split", "idle lanes"])
def test_results_are_equal(seed: int, form: str) -> None:
    case = from_seed(seed)
    outputs = []
    for module in (parse(case.ptx), run(parse(case.ptx), Options(mode="always", form=form)).module):
        args = case.arguments()
        Program(module).launch(NAME, case.grid, case.block, args, shuffle=1)
        outputs.append([a.tobytes() for a in args if hasattr(a, "tobytes")])
    assert outputs[0] == outputs[1]
