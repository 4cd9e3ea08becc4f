"""Loads at a path's head: which of them move ahead of its marker, equal results, and accesses that stay coalesced.

    if (...) {                                  if (...) {
      x = a[i];                         ->        x = a[i];     // lanes side by side, before the vote
      out[i] = f(x);                              push(x, i);   // later: out[i] = f(x)
    }                                           }

A load must not pass a store or barrier, nor overwrite a register that the path still reads; loads without a stride
of one element stay.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from cccopt.ccc.outcome.report import RegionReport
from cccopt.emulator import Program
from cccopt.passes import hoist_loads
from cccopt.passes.options import Options
from cccopt.ptx.ir import Marker, Module
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from tests.kernels.ptx_loops import (
    IF,
    LAUNCHES,
    SECOND,
    arguments,
    inner_loop,
    module,
    path,
    uneven_arguments,
)
from tests.kernels.running import Launch, compare, marked, rewritten, run

# Figure 4.9: the value of one's own vertex, beside the index that is needed anyway.
FIGURE = """
    mul.wide.u32 %rd10, %i, 4; add.u64 %rd11, %other, %rd10;
    ld.global.u32 %r10, [%rd11];
    mad.lo.u32 %r11, %r10, 7, %i; mul.wide.u32 %rd12, %i, 4; add.u64 %rd13, %out, %rd12;
    st.global.u32 [%rd13], %r11;"""
PAIR = FIGURE.replace("[%rd11];", "[%rd11]; ld.global.u32 %r12, [%rd11+-4]; xor.b32 %r10, %r10, %r12;")
SCATTERED = FIGURE.replace("%rd10, %i, 4; add", "%rd10, %value, 4; add")
VALUE = "ld.global.f32 %f1, [%other_i]; sqrt.rn.f32 %f2, %f1; st.global.f32 [%other_i], %f2;"
"""In place and without its index otherwise: a word either way."""


def kernel(code: str = FIGURE, clauses: str = "", **holes: str) -> Module:
    return module(body=path(code, clauses=clauses), **holes)


def hoisted(before: Module, region: int = IF, *, expand: bool = True) -> str | None:
    """The registers that the pass loads ahead of a path."""
    after = hoist_loads.run(before, Options(expand=expand))[0]
    (found,) = (
        s
        for f in after.functions()
        for s in f.body or ()
        if isinstance(s, Marker) and (s.event, s.region) == ("if.begin", region)
    )
    return dict(found.attributes).get("hoisted")


def report(before: Module) -> RegionReport:
    return next(region for region in rewritten(before).regions if region.kind == "if")


def order(before: Module) -> list[str]:
    """The opcodes of the path's first block after the pass, the marker among them."""
    text = print_module(hoist_loads.run(before, Options())[0])
    block = text.split("%skips bra")[1].split("if.end")[0]
    return re.findall(r"if\.begin|\b(?:ld|st|mul|add|mad|sqrt|div|xor|membar|atom)\.[\w.]*", block)


def test_a_coalesced_load_moves_with_what_its_address_needs() -> None:
    assert order(kernel()) == [
        "mul.wide.u32",
        "add.u64",
        "ld.global.u32",
        "if.begin",
        "mad.lo.u32",
        "mul.wide.u32",
        "add.u64",
        "st.global.u32",
    ]


def test_what_the_address_does_not_need_stays_in_the_path() -> None:
    dear = "cvt.rn.f32.u32 %f1, %value; sqrt.rn.f32 %f1, %f1; cvt.rzi.u32.f32 %r16, %f1;"
    found = order(kernel(f"{dear} {FIGURE} st.global.u32 [%rd13], %r16;"))
    assert found.index("sqrt.rn.f32") > found.index("if.begin") > found.index("ld.global.u32")


def test_its_value_is_collected_and_explained() -> None:
    context = {entry.register: entry for entry in report(kernel()).context}
    assert context["%r10"].decision == context["%i"].decision == "collected"
    assert context["%r10"].reason == "loaded before the path: coalesced"
    assert "loaded" not in context["%i"].reason
    assert report(kernel()).context_bytes == 8
    assert report(kernel(clauses="hoist=no")).context_bytes == 4


@pytest.mark.parametrize(
    ("code", "clauses", "expected"),
    [
        (FIGURE, "", "%r10"),
        (FIGURE, "hoist=no", None),
        (FIGURE, "hoist=yes", "%r10"),
        (SCATTERED, "", None),
        (SCATTERED, "hoist=yes", "%r10"),
        (PAIR, "", None),  # two words for what is one access
        (PAIR, "hoist=yes", "%r10,%r12"),
        (FIGURE.replace("ld.global", "ld.volatile.global"), "hoist=yes", None),
        (FIGURE.replace("ld.global", "ld.relaxed.gpu.global"), "hoist=yes", None),
        ("st.global.u32 [%out_i], %value;" + FIGURE, "hoist=yes", None),
        ("atom.global.add.u32 %r16, [%out_i], 1;" + FIGURE, "hoist=yes", None),
        ("LATER:" + FIGURE, "hoist=yes", None),
        ("ld.param.u32 %r10, [n]; st.global.u32 [%out_i], %r10;", "hoist=yes", None),
    ],
)
def test_which_loads_move(code: str, clauses: str, expected: str | None) -> None:
    assert hoisted(kernel(code, clauses)) == expected


def test_as_large_as_the_index_that_it_replaces() -> None:
    own = "ld.global.u32 %r10, [%a_i]; atom.global.add.u32 %r11, [%other], %r10;"
    assert hoisted(kernel(own)) == "%r10"
    wide = own.replace(
        "ld.global.u32 %r10", "mul.wide.u32 %rd8, %i, 8; add.u64 %rd8, %a, %rd8; ld.global.u64 %rd9"
    )
    assert (
        hoisted(kernel(wide.replace("%other], %r10", "%other], %value") + "st.global.u64 [%other], %rd9;"))
        is None
    )


def test_a_register_that_the_path_reads_before_the_load_is_not_lost() -> None:
    reused = "add.u32 %r12, %r10, 1; " + FIGURE.replace("%r11;", "%r11; st.global.u32 [%rd13], %r12;")
    before = kernel(reused, before="xor.b32 %r10, %value, 5;")
    assert hoisted(before) == "%r10"
    check(before)


def test_loads_of_a_loop_of_tasks_stay() -> None:
    text = print_module(kernel()).replace("if.begin", "if.start")
    before = parse(text.replace("// ccc if.start 2", "// ccc for.begin 2").replace("if.end", "for.end"))
    assert print_module(hoist_loads.run(before, Options())[0]) == print_module(before)


def test_a_path_that_could_not_be_collected_otherwise_stays() -> None:
    # The second path would read behind the first one what that one stores.
    first = path("st.global.u32 [%other_i], %value;")
    clash = module(body=first + path(FIGURE, region=SECOND, label="2"))
    assert hoisted(clash, SECOND) is None


def check(before: Module) -> None:
    for make in (arguments, uneven_arguments):
        compare(before, "k", make, LAUNCHES, seeds=(1, 2))


@pytest.mark.parametrize(
    ("code", "clauses"),
    [(FIGURE, ""), (PAIR.replace("+-4", "+0"), "hoist=yes"), (SCATTERED, "hoist=yes"), (VALUE, "")],
    ids=["figure", "pair", "scattered", "in place"],
)
def test_results_are_equal(code: str, clauses: str) -> None:
    check(kernel(code, clauses))


CUDA = """
__device__ int visit(int v, int cost) { for (int k = 0; k < (v & 7); ++k) cost = cost * 5 + k; return cost; }
extern "C" __global__ void __launch_bounds__(64)
relax(int n, const int* __restrict__ mask, const int* __restrict__ costs, int* __restrict__ out) {
#pragma ccc for independent
  for (int v = threadIdx.x + blockIdx.x * blockDim.x; v < n; v += blockDim.x * gridDim.x) {
    bool p = (mask[v >> 5] >> (v & 31)) & 1;
#pragma ccc if
    if (p) {
      int cost = costs[v];
      out[v] = visit(v, cost);
    }
  }
}
"""


@pytest.mark.parametrize("arch", ["sm_90", "sm_100"])
def test_figure_4_9_in_cuda(tmp_path: Path, arch: str) -> None:
    hoisting, forbidden = (marked(written(tmp_path / f"{c or 'auto'}.cu", c), arch) for c in ("", "nohoist"))
    assert [e.reason for e in report(hoisting).context].count("loaded before the path: coalesced") == 1
    rng = np.random.default_rng(3)
    n = 64 * 40
    mask = (rng.integers(0, 2**32, n // 32) & rng.integers(0, 2**32, n // 32)).astype(np.uint32)
    values = [np.int32(n), mask, rng.integers(0, 100, n).astype(np.int32), np.zeros(n, np.int32)]
    modules = (hoisting, rewritten(hoisting).module, rewritten(forbidden).module)
    before, ahead, inside = (run(Program(m), "relax", Launch(1, 64), values) for m in modules)
    assert before[0] == ahead[0] == inside[0]
    # What tasks store is a little scattered; what lanes load ahead of them is not.
    scattered = inside[1].global_transactions - before[1].global_transactions
    assert 2 * (ahead[1].global_transactions - before[1].global_transactions) == scattered > 0


def written(file: Path, clause: str) -> Path:
    """The kernel as a file, with a clause at its path."""
    file.write_text(CUDA.replace("ccc if", f"ccc if {clause}"))
    return file


def test_the_option_against_expanded_loops_is_heeded() -> None:
    """The clause names one variable, and where the inner loop's sum is expanded there are two."""
    sums = "add.f32 %f2, %f2, %f3;"
    inner = "mov.f32 %f4, %f3; " + inner_loop("cvt.rn.f32.u32 %f5, %k; add.f32 %f4, %f4, %f5;")
    before = module(
        body=path(FIGURE + sums, clauses="independent") + inner + "st.global.f32 [%other_i], %f4;",
        ahead="mov.f32 %f2, 0f00000000; mov.f32 %f3, 0f3F800000;",
        after="red.global.add.f32 [%other], %f2;",
        clauses="reduce=+:sum",
    )
    assert hoisted(before, expand=False) == "%r10"
    assert hoisted(before) is None
