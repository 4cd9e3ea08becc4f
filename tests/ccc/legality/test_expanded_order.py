"""Nothing of an expanded loop waits, so what follows it may touch the memory that its inner iterations touch."""

from __future__ import annotations

import numpy as np
import pytest

from cccopt.ccc.outcome.choices import Form, Mode
from cccopt.ccc.outcome.refusal import Refusal
from cccopt.emulator import Program
from cccopt.passes.pipeline import Options, Result, run
from cccopt.ptx.printer import print_module
from tests.fuzz.judge import Pair, alone, compile_pair

pytestmark = pytest.mark.nvcc

KERNEL = """
extern "C" __global__ void __launch_bounds__(64) k(
    int n, const unsigned* a, unsigned* {restrict} out, unsigned* count) {{
#pragma ccc for
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {{
    unsigned length = a[i] & 15u;
{body}
  }}
}}
"""
ROW = """
#pragma ccc for variable
    for (unsigned k = 0; k < length; ++k) out[16 * i + k] = a[i] * 7u + k;"""
REST = """
    for (unsigned k = 0; k < length; ++k) count[i] += out[16 * i + (k * 5u) % length] + k;"""
SUM = """
    unsigned sum = 0;
#pragma ccc for variable
    for (unsigned k = 0; k < length; ++k) sum += count[(i + 9u * k) & 255u] * (k + 1u);
    out[i] = sum;"""
BODIES = {
    "it reads what they store": ROW + REST,
    "it stores where they load": SUM,
    "in a path": f"#pragma ccc if\n    if (length & 1u) {{ length ^= 6u; {ROW}{REST} }}",
}
N = 300


def compiled(body: str, restrict: str = "") -> Pair:
    return alone(compile_pair(KERNEL.format(body=body, restrict=restrict)), "k")


def rewritten(pair: Pair, **options: object) -> Result:
    return run(pair.marked, Options(mode=Mode.ALWAYS, **options))  # type: ignore[arg-type]


def memory(program: Program, shuffle: int | None) -> list[bytes]:
    rng = np.random.default_rng(3)
    arrays = [rng.integers(0, 1 << 16, size).astype(np.uint32) for size in (N, 16 * N, N)]
    program.launch("k", 2, 64, [N, *arrays], shuffle=shuffle, hazards=True)
    return [array.tobytes() for array in arrays]


@pytest.mark.parametrize("name", BODIES)
def test_results_are_the_same(name: str) -> None:
    pair = compiled(BODIES[name])
    result = rewritten(pair)
    assert Form.EXPANDED in {report.form for report in result.regions}
    before, after = Program(pair.marked), Program(result.module)
    for shuffle in (None, 1, 2):
        assert memory(after, shuffle) == memory(before, shuffle)


@pytest.mark.parametrize("name", BODIES)
def test_loops_that_are_not_expanded_keep_the_order(name: str) -> None:
    pair = compiled(BODIES[name])
    if name == "it stores where they load":  # the store moves with the task whose sum it stores
        assert rewritten(pair, form=Form.SPLIT, expand=False).regions
        return
    with pytest.raises(Refusal, match="CCC036"):
        rewritten(pair, form=Form.SPLIT, expand=False)


def test_the_code_after_them_waits_only_if_it_may_meet_them() -> None:
    """Lanes run inner iterations of others: these must be done."""
    meeting, apart = (
        print_module(rewritten(compiled(SUM, restrict)).module).count("bar.warp.sync")
        for restrict in ("", "__restrict__")
    )
    assert meeting == apart + 1
