"""The order of memory within an iteration is kept or the path is refused; so are iterations that share scratch.

    for (EACH) {                                a task of the first path may run after code that follows it:
      if (x & 1) out[i] = work(x);      ->      is what the path stores ever what that code loads or stores?
      count[i] = out[i];
    }

The kernels are in `tests/kernels/cuda/order.cu`, each with its answer above it: the code of the refusal, or `right`.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from cccopt.ccc.outcome.refusal import Refusal
from tests.fuzz.judge import Pair, alone, compile_pair, judge
from tests.kernels.running import CUDA, Arguments, Launch

pytestmark = pytest.mark.nvcc

SOURCE = CUDA / "order.cu"
TEXT = SOURCE.read_text()
EXPECTED = {
    name: said
    for said, name in re.findall(r"^// (right|CCC\d+): .*\n(?:#pragma.*\n)?.*\) (\w+)\(", TEXT, re.M)
}
LAUNCHES = (Launch(2, 48, 250),)


@pytest.fixture(scope="module")
def compiled() -> Pair:
    return compile_pair(TEXT, "sm_90")


def arguments(launch: Launch) -> Arguments:
    """``n, a, out, count``."""
    a = np.random.default_rng(launch.trips).integers(0, 1 << 32, 1024).astype(np.uint32)
    return [launch.trips, a, np.zeros(16 * 1024, np.uint32), np.zeros(1024, np.uint32)]


def test_each_kernel_says_what_becomes_of_it() -> None:
    assert len(EXPECTED) == TEXT.count("__global__")


@pytest.mark.parametrize("name", [name for name, said in EXPECTED.items() if said != "right"])
def test_what_could_change_results_is_refused(name: str, compiled: Pair) -> None:
    with pytest.raises(Refusal) as caught:
        judge(alone(compiled, name), name, arguments, LAUNCHES)
    assert caught.value.diagnostics[0].code == EXPECTED[name]


@pytest.mark.parametrize("name", [name for name, said in EXPECTED.items() if said == "right"])
def test_what_keeps_its_order_is_rewritten_rightly(name: str, compiled: Pair) -> None:
    verdict = judge(alone(compiled, name), name, arguments, LAUNCHES)
    assert not verdict.wrong
    assert all(ran.get("push") or ran.get("expand") for ran in verdict.ran.values()), verdict.ran
