"""Kernels that once went wrong: each is rewritten and gives the same bytes, or is refused with its code."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from cccopt.ccc.function.graph import Graph, Jump, Leave, Node
from cccopt.ccc.function.linearize import to_body
from cccopt.ccc.function.names import Names
from cccopt.ccc.outcome.choices import StackMemory
from cccopt.ccc.outcome.refusal import Refusal
from cccopt.passes.pipeline import Options
from cccopt.passes.pipeline import run as rewrite_module
from cccopt.ptx.ir import Instruction, Location, Register
from cccopt.ptx.printer import print_module
from tests.fuzz.cuda_memory import arguments
from tests.fuzz.judge import Pair, alone, compile_pair, judge, ptxas
from tests.kernels.running import FORMS, Arguments, Launch, marked

pytestmark = pytest.mark.nvcc

CUDA = Path(__file__).resolve().parent / "cuda"
REFUSED = {
    "local_tail": "CCC042",
    "local_by_call": "CCC042",
    "local_nested": "CCC042",
    "local_between_trips": "CCC042",
    "scratch_ahead": "CCC037",
    "exit_in_path": "CCC032",
    "only_return_in_path": "CCC032",
    "loop_in_path": "CCC046",
    "sum_and_largest": "CCC036",
    "asked": "CCC036",
    "argument_behind": "CCC034",
    "unrolled_and_read": "CCC036",
}
REWRITTEN = (
    "local_in_trip", "scratch_once", "traps", "sums", "unrolled", "behind_a_path", "result_behind", "handed_on",
    "waits_after_break",
)  # fmt: skip
LAUNCHES = (Launch(1, 64, 400), Launch(2, 33, 150), Launch(1, 32, 0))


def items(launch: Launch) -> Arguments:
    """Arguments ``n, a, out, count`` of a loop over ``launch.trips`` items in all."""
    numbers = np.random.default_rng(5).integers(0, 1 << 16, launch.trips + 1100).astype(np.int32)
    return [launch.trips, numbers, np.zeros(4 * launch.trips + 1100, np.int32), np.zeros(1100, np.int32)]


@cache
def compiled(name: str, *options: str) -> Pair:
    return compile_pair((CUDA / f"{name}.cu").read_text(), options=("-I", str(CUDA), *options))


@pytest.mark.parametrize(("kernel", "code"), REFUSED.items())
def test_refused(kernel: str, code: str) -> None:
    with pytest.raises(Refusal) as caught:
        rewrite_module(alone(compiled("regressions"), kernel).marked, Options(mode="always", form="split"))
    assert caught.value.diagnostics[0].code == code


@pytest.mark.parametrize("kernel", REWRITTEN)
def test_rewritten(kernel: str) -> None:
    verdict = judge(alone(compiled("regressions"), kernel), kernel, items, LAUNCHES, assembler="sm_90")
    assert not verdict.wrong
    assert all(counts["take"] and counts["drain"] for counts in verdict.ran.values())


def test_lanes_that_come_to_a_loop_apart() -> None:
    """On a GPU: `tests/device/test_met_apart.py`."""
    pair = alone(compiled("met_apart"), "met_apart")
    launches = (Launch(2, 64, 10554), Launch(1, 40, 7))
    verdict = judge(pair, "met_apart", arguments, launches, forms=("in lane",), assembler="sm_90")
    assert not verdict.wrong


def test_lanes_that_leave_a_loop_one_by_one() -> None:
    """On a GPU: `tests/device/test_left_one_by_one.py`."""
    pair = alone(compiled("regressions"), "left_one_by_one")
    verdict = judge(pair, "left_one_by_one", items, LAUNCHES, forms=("carried", "in lane"), assembler="sm_90")
    assert not verdict.wrong


@pytest.mark.parametrize("kernel", REWRITTEN)
def test_line_tables_are_accepted(kernel: str) -> None:
    module = alone(compiled("regressions", "-lineinfo"), kernel).marked
    for form in FORMS:
        result = rewrite_module(module, Options(mode="always", form=form))
        assert ptxas(print_module(result.module), "sm_90") == ""


def test_labels_of_debug_information_part_no_scopes() -> None:
    own = alone(compiled("regressions", "-G"), "result_behind")
    verdict = judge(own, "result_behind", items, LAUNCHES[:1], forms=("auto",), assembler="sm_90")
    assert not verdict.wrong


def test_the_place_of_a_call_stands_ahead_of_what_was_inlined_there() -> None:
    """ptxas: "Source location 1 19 3 used in inlined_at directive must be used in a preceding .loc directive"."""
    work = Instruction("mov.u32", (Register("%r1"), Register("%r2")))
    call, inlined = Location(1, 19, 3), Location(1, 3, 3, "$info", None, (1, 19, 3))
    nodes = {
        "head": Node("head", (work,), Jump("late")),
        "early": Node("early", (call, work), Leave(None)),
        "late": Node("late", (inlined, work), Jump("early")),
    }
    body = to_body(Graph("head", nodes), Names((), ()))
    assert [s for s in body if isinstance(s, Location)][:2] == [call, inlined]


def test_places_that_are_inlined_at_each_other_come_after_the_call_outside() -> None:
    """A recursive template: a place stands both outside and inside of what was inlined at it."""
    work = Instruction("mov.u32", (Register("%r1"), Register("%r2")))
    call, outer = Location(1, 19, 3), Location(5, 391, 3, "$a", None, (1, 19, 3))
    middle, inner = (
        Location(3, 695, 14, "$b", None, (5, 391, 3)),
        Location(5, 391, 3, "$c", None, (3, 695, 14)),
    )
    nodes = {
        "head": Node("head", (inner, work), Jump("next")),
        "next": Node("next", (outer, work, middle, work, inner, work), Leave(None)),
    }
    body = to_body(Graph("head", nodes), Names((), ()))
    written = [s for s in body if isinstance(s, Location)]
    assert written[:4] == [call, outer, middle, inner]


IN_TWO_KERNELS = """
__device__ __forceinline__ void part(const int* __restrict__ a, int* __restrict__ out, int i) {
#pragma ccc if
  if (a[i] & 3) out[i] = a[i] / (i + 1);
}
extern "C" __global__ void marked(int n, const int* __restrict__ a, int* __restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.x; i < n; i += blockDim.x) part(a, out, i);
}
extern "C" __global__ void plain(int n, const int* __restrict__ a, int* __restrict__ out) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) part(a, out, i);
}
"""


def test_a_path_may_also_stand_in_an_unmarked_loop_of_another_kernel() -> None:
    result = rewrite_module(compile_pair(IN_TWO_KERNELS).marked, Options(mode="always"))
    assert {report.kernel for report in result.regions} == {"marked"}
    assert "CCC051" in [remark.code for remark in result.remarks]


LARGE = """
#define WORK(where) \
  for (int i = where; i < n; i += 1024) { \
    unsigned v[8]; \
    for (int k = 0; k < 8; k++) v[k] = __ldg(a + (i ^ k)) * 3; \
    count[i] = v[0] ^ v[1] ^ v[2] ^ v[3] ^ v[4] ^ v[5] ^ v[6] ^ v[7]; \
    _Pragma("ccc if independent") if (v[0] & 1) { \
      unsigned r = 0; \
      for (int k = 0; k < (v[1] & 15); k++) \\
        r = (r * v[0] + v[1]) ^ (r * v[2] + v[3]) ^ (r * v[4] + v[5]) ^ (r * v[6] + v[7]); \
      out[i] = r; \
    } \
  }
__device__ __noinline__ void callee(int n, const int* __restrict__ a, unsigned* out, unsigned* count, int from) {
#pragma ccc for
  WORK(from)
}
extern "C" __global__ void __launch_bounds__(1024)
caller(int n, const int* __restrict__ a, unsigned* out, unsigned* count) {
  callee(n, a, out, count, threadIdx.x);
#pragma ccc for
  WORK(threadIdx.x + 5)
}
"""


def test_a_kernel_holds_the_stacks_of_what_it_calls(tmp_path: Path) -> None:
    source = tmp_path / "large.cu"
    source.write_text(LARGE)
    with pytest.raises(Refusal) as caught:
        rewrite_module(marked(source, "sm_90"), Options(mode="always"))
    assert caught.value.diagnostics[0].code == "CCC043"
    result = rewrite_module(marked(source, "sm_90"), Options(mode="always", stacks=StackMemory.GLOBAL))
    assert all(report.global_bytes for report in result.regions)


# What iterations of these find depends on their order: they count in one place, or read what their neighbours write.
@pytest.mark.parametrize("kernel", [k for k in REFUSED if k not in ("asked", "unrolled_and_read")])
def test_what_is_refused_for_a_path_alone_is_right_in_the_carried_form(kernel: str) -> None:
    """Or refused as well."""
    with suppress(Refusal):
        assert not judge(
            alone(compiled("regressions"), kernel), kernel, items, LAUNCHES, forms=("carried",)
        ).wrong
