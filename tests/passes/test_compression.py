"""Compressed contexts: the expected choice on small kernels, and equal results."""

from __future__ import annotations

import numpy as np
import pytest

from cccopt.ccc.report import RegionReport
from cccopt.emulator import Program
from cccopt.passes.pipeline import Options, Result, run
from cccopt.ptx.parser import parse

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
    for module in (parse(LOOP.format(ahead=ahead, path=path)), rewritten(ahead, path, form).module):
        out = np.zeros(640, np.uint64)
        Program(module).launch("k", 1, 64, [pairs, out, np.uint32(n)])
        outputs.append(out)
    assert (outputs[0] == outputs[1]).all()
