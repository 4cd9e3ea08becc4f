"""Loops with a known number of inner iterations, which nvcc unrolls unless they are marked, stay alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import cccopt
from cccopt.ccc.outcome.choices import Outcome
from cccopt.driver.function_texts import definitions
from cccopt.driver.unrolled_loops import unrolled_kernels
from cccopt.passes.pipeline import Options, run
from cccopt.ptx.printer import print_module
from tests.fuzz.judge import alone, compile_pair

pytestmark = pytest.mark.nvcc

TEXT = """
__device__ const unsigned primes[25] = {3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41};
extern "C" __global__ void __launch_bounds__(64) NAME(int n, unsigned* __restrict__ a) {
#pragma ccc for
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    unsigned x = a[i];
#pragma ccc for variable
    for (int k = 0; k < MOST; k++)
      if (x % (primes[k % 25] | 1u) == 0) {
        a[i] = 0;
        break;
      }
  }
}
"""


def outcomes(most: str, mode: str) -> set[str]:
    pair = compile_pair(TEXT.replace("NAME", "k").replace("MOST", most))
    result = run(alone(pair, "k").marked, Options(mode=mode))
    said = " ".join(remark.why for remark in result.remarks)
    assert ("unrolls it if it is not marked" in said) == (most == "25" and mode == "auto")
    return {report.outcome for report in result.regions}


def test_a_constant_number_of_inner_iterations() -> None:
    assert outcomes("25", "auto") == {Outcome.DECLINED}
    assert outcomes("25", "always") == {Outcome.REWRITTEN}


@pytest.mark.parametrize(
    ("what", "text", "rewritten"),
    [
        ("unrolled", TEXT.replace("MOST", "25"), False),
        ("asked for", TEXT.replace("MOST", "25").replace("for variable", "for variable always"), True),
        (
            "kept a loop",
            TEXT.replace("MOST", "25").replace("    for (int k", "#pragma unroll 1\n    for (int k"),
            True,
        ),
        ("not known", TEXT.replace("MOST", "n"), True),
    ],
)
def test_what_nvcc_makes_no_loop_of_is_left(tmp_path: Path, what: str, text: str, rewritten: bool) -> None:
    """Even under `--ccc=always`: the mark alone costs more than collecting gains."""
    source = tmp_path / "k.cu"
    source.write_text(text.replace("NAME", "k"))
    program = cccopt.compile(source, ccc="always")
    (unit,) = program.report["units"]
    assert (program.ptx != program.original_ptx) == rewritten
    assert {region["outcome"] for region in unit["regions"]} == {"rewritten" if rewritten else "declined"}
    assert ["CCC117"] * (not rewritten) == [remark["code"] for remark in unit["remarks"]]


def test_one_kernel_of_two(tmp_path: Path) -> None:
    """What both have marked is declined in the kernel in which nvcc unrolls it, which is nvcc's own then."""
    kernel = TEXT.split('extern "C"')[1]
    source = tmp_path / "k.cu"
    known, unknown = (
        kernel.replace("NAME", name).replace("MOST", most) for name, most in (("k", "25"), ("m", "n"))
    )
    source.write_text(f'{TEXT.split("extern")[0]}extern "C"{known}extern "C"{unknown}')
    program = cccopt.compile(source, ccc="always")
    (unit,) = program.report["units"]
    assert {(r["kernel"], r["outcome"]) for r in unit["regions"]} == {("k", "declined"), ("m", "rewritten")}


def test_a_number_that_data_tell() -> None:
    """Left alone, too, but not for what nvcc would have made of it."""
    assert outcomes("n", "auto") == {Outcome.DECLINED}


def compiled(folder: Path, text: str, **options: object) -> dict[str, Any]:
    source = folder / "k.cu"
    source.write_text(text)
    program = cccopt.compile(source, **{"ccc": "always", **options})  # type: ignore[arg-type]
    (unit,) = program.report["units"]
    return {**unit, "ptx": program.ptx, "original": program.original_ptx}


KERNELS = """
#define EACH int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x
template <int N> __device__ __forceinline__ void body(int n, const unsigned* a, unsigned* out) {
  static const unsigned primes[16] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53};
#pragma ccc for
  for (EACH) {
    unsigned x = a[i], s = 0;
    int most = N ? N : (int)(x & 15);
#pragma ccc for variable
    for (int k = 0; k < most; ++k) {
      if (x % primes[k] == 0) s += k;
      x += s;
    }
    out[i] = s;
  }
}
#define KERNEL extern "C" __global__ void __launch_bounds__(64)
KERNEL known(int n, const unsigned* a, unsigned* out) { body<16>(n, a, out); }
KERNEL unknown(int n, const unsigned* a, unsigned* out) { body<0>(n, a, out); }
"""


def test_a_kernel_that_is_left_is_the_original_though_its_table_is_gone(tmp_path: Path) -> None:
    """nvcc folds the table of one kernel away; the other one's is there whether anything is marked or not."""
    unit = compiled(tmp_path, KERNELS)
    assert {(r["kernel"], r["outcome"]) for r in unit["regions"]} == {
        ("known", "declined"),
        ("unknown", "rewritten"),
    }
    assert body_of(unit["ptx"], "known") == body_of(unit["original"], "known")
    assert body_of(unit["ptx"], "unknown") != body_of(unit["original"], "unknown")
    # Nothing is told of a rewrite that was taken back.
    assert [remark["code"] for remark in unit["remarks"] if "16" in remark["why"]] == ["CCC117"]


def body_of(text: str, name: str) -> str:
    (found,) = (each for each in definitions(text) or () if each.name == name)
    return text[found.start : found.end]


LOOP = """
#pragma ccc for NAMED
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    unsigned x = a[i];
    if (x & 1) {
      unsigned s = 0;
#pragma ccc for variable
      ROLLED
      for (int k = 0; k < 25; ++k) { if (x % (unsigned)(k + 2) == 0) { s += k; } s ^= x >> (k & 7); }
      out[i] = s;
    } else {
      unsigned s = 0;
      OTHER
      for (int k = 0; k < 6; ++k) { if (x % (unsigned)(k + 5) == 0) { s += k; } s ^= x >> k; }
      out[i] = s;
    }
  }
"""
HEAD = 'extern "C" __global__ void __launch_bounds__(64) k(int n, const unsigned* a, unsigned* out) {'


def loop(*, rolled: bool, other: str = "", name: str = "") -> str:
    found = LOOP.replace("ROLLED", "#pragma unroll 1" if rolled else "").replace("OTHER", other)
    return found.replace("NAMED", name)


def test_another_loop_that_nvcc_unrolls_does_not_count(tmp_path: Path) -> None:
    """It has no mark any more when the rewritten one is looked for in nvcc's own code."""
    unit = compiled(tmp_path, f"{HEAD}{loop(rolled=True, other='#pragma ccc for variable auto')}}}")
    assert {r["region"]: r["outcome"] for r in unit["regions"]} == {
        1: "rewritten",
        2: "rewritten",
        3: "declined",
    }


@pytest.mark.parametrize(
    "options", [{"only": "first"}, {"form": "stack"}, {"form": "split"}], ids=["only", "stack", "split"]
)
def test_what_was_asked_for_holds(tmp_path: Path, options: dict[str, object]) -> None:
    """The second loop is left in any case, so that the file is compiled again."""
    loops = loop(rolled=False, name="name(first)") + loop(rolled=False, name="name(second) auto")
    unit = compiled(tmp_path, f"{HEAD}{loops}}}", **options)
    assert {r["region"] for r in unit["regions"] if r["outcome"] == "rewritten"} == {1, 2}


@pytest.mark.parametrize(("gain", "rewritten"), [(1.5, False), (20.0, True)])
def test_a_profile_tells_whether_more_is_gained_than_the_mark_costs(gain: float, rewritten: bool) -> None:
    """Of 25 divisions by numbers that nvcc knows each is several times dearer in the loop."""
    pair = compile_pair(f"{HEAD}{loop(rolled=False)}}}")
    marked = alone(pair, "k").marked
    reports = tuple(
        report
        if report.cost is None
        else replace(report, cost=replace(report.cost, gain=gain, assumed=False))
        for report in run(marked, Options(mode="always")).regions
    )
    plain = print_module(alone(pair, "k").plain)
    assert (unrolled_kernels(reports, Options(), marked, lambda: plain) == {}) == rewritten
