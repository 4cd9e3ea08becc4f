"""Lanes that leave an inner loop one by one still divide by what all lanes share, on a GPU.

The emulator cannot tell: what went wrong was a uniform register of the machine code
(docs/decisions/0025-masks-in-registers.md).
"""

from __future__ import annotations

import numpy as np
import pytest

from cccopt.device.gpu import open_gpu
from cccopt.passes.pipeline import Options, run
from cccopt.ptx.printer import print_module
from tests.device.programs import ProgramOnGpu
from tests.fuzz.judge import alone
from tests.fuzz.test_regressions import compiled, items
from tests.kernels.running import Launch

pytestmark = [pytest.mark.gpu, pytest.mark.nvcc]

NAME = "left_one_by_one"


@pytest.mark.parametrize("form", ["carried", "in lane"])
def test_results_are_equal(form: str) -> None:
    pair = alone(compiled("regressions"), NAME)
    launch = Launch(22, 128, 14079)
    found = []
    with open_gpu() as gpu:
        for module in (pair.plain, run(pair.marked, Options(mode="always", form=form)).module):
            args = items(launch)
            ProgramOnGpu(gpu, print_module(module)).launch(NAME, launch.grid, launch.block, args)
            found.append([a.tobytes() for a in args if isinstance(a, np.ndarray)])
    assert found[0] == found[1]
