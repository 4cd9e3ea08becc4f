"""Compressed contexts: the expected choice on small kernels, and equal results.

    address = out + 8 * i;                      push(i);                            // 4 bytes in place of 8
    if (...) *address = x;              ->      pop; address = out + 8 * i; *address = x;

What a value is rebuilt from must still hold what it held when the value was made: the twin of a kernel moves an index
on in between.
"""

from __future__ import annotations

import numpy as np
import pytest

from cccopt.ccc.outcome.report import RegionReport
from cccopt.emulator import Program
from cccopt.passes.pipeline import Options, Result, run
from cccopt.ptx.ir import Module
from cccopt.ptx.parser import parse
from tests.kernels.ptx_loops import LAUNCHES, arguments, inner_loop, mark, module, path
from tests.kernels.running import compare

LOOP = """
.version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 pairs, .param .u64 out, .param .u32 n)
.maxntid 64
{{
  .reg .pred %p<6>;
  .reg .b32 %r<16>;
  .reg .b64 %rd<16>;
  ld.param.u64 %rd1, [pairs];
  ld.param.u64 %rd2, [out];
  ld.param.u32 %r1, [n];
  // ccc for.begin 1
  mov.u32 %r2, %tid.x;
  setp.ge.u32 %p1, %r2, %r1;
  @%p1 bra DONE;
LOOP:
  // ccc body.begin 1
{ahead}
  @!%p2 bra JOIN;
  // ccc if.begin 2
{path}
  // ccc if.end 2
JOIN:
  // ccc body.end 1
  add.u32 %r2, %r2, 64;
  setp.lt.u32 %p3, %r2, %r1;
  @%p3 bra LOOP;
DONE:
  // ccc for.end 1
  ret;
}}
"""

# Thesis, figure 4.6: the key of a pair is its upper half.
KEY_AHEAD = """
  mul.wide.u32 %rd3, %r2, 8;
  add.u64 %rd4, %rd1, %rd3;
  ld.global.nc.u64 %rd5, [%rd4];
  shr.u64 %rd6, %rd5, 32;
  cvt.u32.u64 %r3, %rd6;
  setp.gt.u32 %p2, %r3, 1000;"""
KEY_PATH = """
  cvt.u32.u64 %r4, %rd5;
  xor.b32 %r5, %r4, %r3;
  mul.wide.u32 %rd7, %r5, 1;
  and.b64 %rd8, %rd5, 63;
  add.u64 %rd9, %rd8, %rd7;
  mul.wide.u32 %rd10, %r2, 8;
  add.u64 %rd11, %rd2, %rd10;
  st.global.u64 [%rd11], %rd9;"""

ADDRESS_AHEAD = """
  mul.wide.u32 %rd3, %r2, 8;
  add.u64 %rd4, %rd1, %rd3;
  add.u64 %rd6, %rd2, %rd3;
  ld.global.nc.u64 %rd5, [%rd4];
  setp.gt.u64 %p2, %rd5, 1000;"""
ADDRESS_PATH = """
  ld.global.nc.u64 %rd7, [%rd4];
  add.u64 %rd8, %rd7, 7;
  st.global.u64 [%rd6], %rd8;"""

# The index moves on ahead of the branch, so that its register no longer holds what the address was made of.
ADVANCED_AHEAD = ADDRESS_AHEAD + "\n  add.u32 %r2, %r2, 0;"


def rewritten(ahead: str, path: str, form: str = "auto") -> Result:
    return run(parse(LOOP.format(ahead=ahead, path=path)), Options(mode="always", form=form))


def decisions(report: RegionReport) -> dict[str, str]:
    return {entry.register: entry.decision for entry in report.context}


def path_of(result: Result) -> RegionReport:
    return next(region for region in result.regions if region.kind == "if")


def test_a_key_that_is_half_of_its_pair_is_recomputed() -> None:
    report = path_of(rewritten(KEY_AHEAD, KEY_PATH))
    chosen = decisions(report)
    assert chosen["%r3"] == "recomputed"
    assert chosen["%rd5"] == chosen["%r2"] == "collected"
    assert report.context_bytes == 12


def test_addresses_of_64_bits_are_recomputed_from_an_index_of_32() -> None:
    report = path_of(rewritten(ADDRESS_AHEAD, ADDRESS_PATH))
    assert decisions(report) == {"%r2": "collected", "%rd4": "recomputed", "%rd6": "recomputed"}
    assert report.context_bytes == 4


def test_an_operand_that_was_overwritten_since_does_not_count() -> None:
    report = path_of(rewritten(ADVANCED_AHEAD, ADDRESS_PATH))
    chosen = decisions(report)
    assert "%r2" not in chosen
    assert report.context_bytes == 8
    assert "collected" in chosen.values()


@pytest.mark.parametrize("form", ["split", "idle lanes"])
@pytest.mark.parametrize("n", [0, 1, 64, 100, 640])
@pytest.mark.parametrize(
    ("ahead", "path"),
    [(KEY_AHEAD, KEY_PATH), (ADDRESS_AHEAD, ADDRESS_PATH), (ADVANCED_AHEAD, ADDRESS_PATH)],
    ids=["key", "address", "advanced"],
)
def test_results_are_equal(ahead: str, path: str, n: int, form: str) -> None:
    rng = np.random.default_rng(n)
    pairs = rng.integers(0, 3000, 640).astype(np.uint64) << np.uint64(rng.integers(0, 2) * 32)
    outputs = []
    for made in (parse(LOOP.format(ahead=ahead, path=path)), rewritten(ahead, path, form).module):
        out = np.zeros(640, np.uint64)
        Program(made).launch("k", 1, 64, [pairs, out, np.uint32(n)])
        outputs.append(out)
    assert (outputs[0] == outputs[1]).all()


# Thesis, figure 4.6 as nvcc writes it: the key is computed before the loop, and anew behind each new pair.
PAIRS_AHEAD = (
    "mul.wide.u32 %rd10, %value, 2654435761; add.u64 %rd10, %rd10, %offset; shr.u64 %rd11, %rd10, 32;"
)
PAIRS_TRIP = """
    cvt.u32.u64 %r16, %rd11; xor.b32 %x, %x, %r16;
    mad.lo.u64 %rd10, %rd10, 6364136223846793005, 1442695040888963407;
    shr.u64 %rd11, %rd10, {shift};"""
PAIRS_END = "st.global.u32 [%out_i], %x;"


def chain(shift: int = 32) -> Module:
    return module(body=PAIRS_AHEAD + inner_loop(PAIRS_TRIP.format(shift=shift)) + PAIRS_END)


def context_of(before: Module, kind: str) -> RegionReport:
    return next(r for r in run(before, Options(mode="always")).regions if r.kind == kind)


def test_a_key_that_a_loop_always_finds_computed_alike_is_left_out() -> None:
    report = context_of(chain(), "for variable")
    chosen = {entry.register: (entry.decision, entry.reason) for entry in report.context}
    assert chosen["%rd11"] == ("recomputed", "each task computes it again from `%rd10`")
    assert chosen["%rd10"][0] == "collected"


def test_a_key_that_is_computed_otherwise_in_the_loop_is_collected() -> None:
    report = context_of(chain(33), "for variable")
    assert decisions(report)["%rd11"] == "collected"
    assert report.context_bytes == context_of(chain(), "for variable").context_bytes + 8


@pytest.mark.parametrize("shift", [32, 33])
def test_chains_give_equal_results(shift: int) -> None:
    compare(chain(shift), "k", arguments, LAUNCHES)


# Two floats from one word, by way of a square root that nobody else needs.
ROOTS = """
    cvt.rn.f32.u32 %f1, %value; sqrt.rn.f32 %f2, %f1; div.rn.f32 %f3, %f2, 0f40490FDB; add.f32 %f4, %f2, 0f3F800000;"""
ROOTS_PATH = "mul.f32 %f5, %f3, %f4; fma.rn.f32 %f5, %f5, %f2, %f3; st.global.f32 [%out_i], %f5;"


@pytest.mark.parametrize(
    ("behind", "collected"),
    [
        ("", set()),
        ("st.global.f32 [%other_i], %f2;", {"%f2"}),
        ("mul.f32 %f6, %f4, %f3; st.global.f32 [%other_i], %f6;", {"%f2", "%f3"}),
    ],
    ids=["nowhere else", "the root", "what is made of it"],
)
def test_what_only_the_path_reads_is_computed_by_its_tasks(behind: str, collected: set[str]) -> None:
    before = module(before=ROOTS, body=path(ROOTS_PATH, clauses="independent"), behind=behind)
    chosen = decisions(context_of(before, "if"))
    assert {name for name in ("%f2", "%f3") if chosen[name] == "collected"} == collected
    compare(before, "k", arguments, LAUNCHES[:1])


def test_a_dear_value_of_lanes_that_compute_it_again_for_themselves_is_collected() -> None:
    # The lane adds one for itself behind the path, so that it needs the quotient anyway.
    before = module(
        before=ROOTS + "mov.f32 %f6, 0f00000000;",
        body=path(ROOTS_PATH + "add.f32 %f6, %f3, 0f3F800000;", clauses="independent"),
        behind="st.global.f32 [%other_i], %f6;",
    )
    assert decisions(context_of(before, "if"))["%f3"] == "collected"
    compare(before, "k", arguments, LAUNCHES[:1])


CASES = """
    shr.u32 %r20, %i, 3; xor.b32 %r20, %r20, %value; mul.lo.u32 %r20, %r20, 2146121005;
    shr.u32 %r21, %r20, 16; and.b32 %r22, %r20, 65535;
    cvt.rn.f32.u32 %f1, %r21; cvt.rn.f32.u32 %f2, %r22;
    mul.f32 %f3, %f1, %f1; fma.rn.f32 %f3, %f2, %f2, %f3; sqrt.rn.f32 %f3, %f3;
    and.b32 %r10, %value, 3;
    setp.eq.u32 %p5, %r10, 0; @%p5 bra CASE0;
    setp.eq.u32 %p6, %r10, 1; @%p6 bra CASE1;
    setp.eq.u32 %p7, %r10, 2; @%p7 bra CASE2;
    bra JOIN;"""


def cases(behind: str = "") -> Module:
    """A switch of three cases over a point and its radius, all made of one word."""
    codes = ("add.f32 %f4, %f1, %f3;", "mul.f32 %f4, %f2, %f3;", "fma.rn.f32 %f4, %f1, %f2, %f3;")
    arms = "".join(
        f"""CASE{k}: {mark("if.begin", 5 + k, "independent")}
        {code} st.global.f32 [%out_i], %f4;
        {mark("if.end", 5 + k)}
        bra JOIN;"""
        for k, code in enumerate(codes)
    )
    return module(body=f"{CASES}\n{arms}\nJOIN:\n{behind}")


def test_cases_rebuild_their_values_from_what_the_point_is_made_of() -> None:
    reports = [r for r in run(cases(), Options(mode="always")).regions if r.kind == "if"]
    assert len(reports) == 3
    for report in reports:
        chosen = decisions(report)
        assert chosen["%f3"] == "recomputed"
        assert chosen["%i"] == chosen["%value"] == "collected"
        assert report.context_bytes == 8


def test_cases_collect_what_is_dear_and_read_elsewhere() -> None:
    reports = [
        r
        for r in run(cases("st.global.f32 [%other_i], %f3;"), Options(mode="always")).regions
        if r.kind == "if"
    ]
    assert [decisions(report)["%f3"] for report in reports] == ["collected"] * 3


@pytest.mark.parametrize("behind", ["", "st.global.f32 [%other_i], %f3;"])
def test_cases_give_equal_results(behind: str) -> None:
    compare(cases(behind), "k", arguments, LAUNCHES)
