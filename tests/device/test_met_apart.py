"""Lanes of a warp that come to a loop in the in-lane form apart, on a GPU: it ends.

The emulator cannot tell: what went wrong was how ptxas has lanes wait (docs/decisions/0030-lanes-meet-to-vote.md).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cccopt.device.gpu import open_gpu
from cccopt.passes.pipeline import Options, run
from cccopt.ptx.printer import print_module
from tests.device.programs import ProgramOnGpu
from tests.fuzz.cuda_memory import arguments
from tests.fuzz.judge import alone, compile_pair
from tests.kernels.running import Launch

pytestmark = [pytest.mark.gpu, pytest.mark.nvcc]

NAME = "met_apart"
CUDA = Path(__file__).resolve().parents[1] / "fuzz/cuda/met_apart.cu"


@pytest.mark.parametrize("launch", [Launch(1, 32, 10554), Launch(33, 64, 10554)])
def test_it_ends_with_the_same_results(launch: Launch) -> None:
    pair = alone(compile_pair(CUDA.read_text()), NAME)
    found = []
    with open_gpu() as gpu:
        for module in (pair.plain, run(pair.marked, Options(mode="always", form="in lane")).module):
            args = arguments(launch)
            ProgramOnGpu(gpu, print_module(module)).launch(NAME, launch.grid, launch.block, args)
            found.append([a.tobytes() for a in args if isinstance(a, np.ndarray)])
    assert found[0] == found[1]
