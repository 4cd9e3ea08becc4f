"""Local arrays that live across a point wait with the token, or the loop is refused.

    for (EACH) {                                for (EACH) {
      unsigned v[4] = {...};                      unsigned v[4] = {...};
      if (x & 1) v[x & 3] = work(x);     ->       if (x & 1) { token = (x, v[0], v[1], v[2], v[3]); goto advance; }
      out[i] = v[x >> 2 & 3];                     ...

The kernels are in `tests/kernels/cuda/local_arrays.cu`, each with its answer above it.
"""

from __future__ import annotations

import re

import pytest

from cccopt.ccc.outcome.choices import Form
from cccopt.ccc.outcome.refusal import Refusal
from cccopt.passes.pipeline import Options, run
from tests.ccc.legality.test_carried_region import arguments
from tests.fuzz.judge import Pair, alone, compile_pair, judge
from tests.kernels.running import CUDA, Launch

pytestmark = pytest.mark.nvcc

TEXT = (CUDA / "local_arrays.cu").read_text()
EXPECTED = {
    name: said
    for said, name in re.findall(r"^// (right|CCC\d+): .*\n(?:#pragma.*\n)?.*\) (\w+)\(", TEXT, re.M)
}
WAITING = {
    "queens": ["[0, 4)"],
    "traversal": ["[0, 64)"],
    "task": ["[0, 48)", "[0, 48)"],
    "sorted": ["[0, 24)"],
    "generator": ["[0, 32)"],
    "bytes": ["[0, 12)"],
    "pointers": ["[0, 32)"],
    "twice": ["[0, 16)", "[0, 16)"],
    "path_alone": [],
    "of_memory": [],
}
"""What waits of local memory at each point."""
LAUNCHES = (Launch(2, 48, 250), Launch(3, 64, 500))


@pytest.fixture(scope="module")
def compiled() -> Pair:
    return compile_pair(TEXT, "sm_90")


def test_each_kernel_says_what_becomes_of_it() -> None:
    assert len(EXPECTED) == TEXT.count("__global__")
    assert WAITING.keys() == {name for name, said in EXPECTED.items() if said == "right"}


@pytest.mark.parametrize("name", WAITING)
def test_arrays_go_with_their_tokens(name: str, compiled: Pair) -> None:
    pair = alone(compiled, name)
    verdict = judge(pair, name, arguments, LAUNCHES, forms=("carried",), seeds=(1,), assembler="sm_90")
    assert not verdict.wrong
    assert all(ran["push"] and ran["take"] for ran in verdict.ran.values()), verdict.ran


@pytest.mark.parametrize(("name", "bytes"), WAITING.items())
def test_reports_tell_what_waits(name: str, bytes: list[str], compiled: Pair) -> None:
    reports = run(alone(compiled, name).marked, Options(mode="always", form=Form.CARRIED)).regions
    entries = [entry for report in reports for entry in report.context if entry.type.startswith("b8[")]
    assert [entry.register for entry in entries] == [f"local memory {stretch}" for stretch in bytes]
    assert {entry.decision for entry in entries} <= {"collected"}


@pytest.mark.parametrize("name", [name for name, said in EXPECTED.items() if said != "right"])
def test_what_could_change_results_is_refused(name: str, compiled: Pair) -> None:
    with pytest.raises(Refusal) as caught:
        run(alone(compiled, name).marked, Options(mode="always", form=Form.CARRIED))
    assert caught.value.diagnostics[0].code == EXPECTED[name]
