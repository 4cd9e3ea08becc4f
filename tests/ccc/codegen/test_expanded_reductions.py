"""What the inner iterations of a lane add up, where the warp runs them side by side.

    sum = first;                                each lane of a window has one term of some lane's sum:
    for (k = 0; k < bound; ++k)         ->      terms of one owner are added up along the window,
      sum += term(i, k);                        and the owner adds the result to its own `sum`
    out[i] = sum;

Terms that reach another lane's sum, or a sum twice, show in memory. Floating-point values here are small integers or
powers of two, so that any order gives the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cccopt.ccc.codegen import expansion
from cccopt.ccc.outcome.refusal import Refusal
from cccopt.ptx.parser import parse
from tests import slow
from tests.ccc.legality.test_reductions import NANS, NUMBERS, one_of
from tests.kernels.ptx_counted_loops import counted
from tests.kernels.ptx_loops import loop, path
from tests.kernels.running import Arguments, Launch, compare, rewritten

LAUNCHES = (Launch(1, 64, 2), Launch(1, 33, 2))
LENGTHS = (0, 1, 3, 0, 31, 2, 32, 0, 0, 7, 5, 40, 1, 1)
DECLARED = ".reg .f64 %d<9>;"
HASH = "mad.lo.u32 %term, %k, 0x9E3779B1, %i; shr.u32 %r17, %term, 7; xor.b32 %term, %term, %r17;"
WIDE = f"{HASH} cvt.u64.u32 %rd20, %term; mul.lo.u64 %rd20, %rd20, 0x100000001;"
SMALL = f"{HASH} and.b32 %term, %term, 15; cvt.rn.f32.u32 %f1, %term; cvt.f64.f32 %d1, %f1;"
POWER = "and.b32 %term, %k, 1; setp.eq.u32 %p5, %term, 0; selp.f32 %f1, 0f40000000, 0f3F000000, %p5;"
STORE = {
    "%r": "st.global.u32 [%out_i], %sum;",
    "%rd": "shr.u64 %rd21, %rd22, 29; xor.b64 %rd22, %rd22, %rd21; st.global.u32 [%out_i], %rd22;",
    "%f": "st.global.f32 [%out_i], %f2;",
    "%d": "cvt.rn.f32.f64 %f2, %d2; st.global.f32 [%out_i], %f2;",
}
INTEGERS = {
    **{o: (HASH, f"{o} %sum, %sum, %term;") for o in ("add.u32", "add.s32", "mul.lo.s32", "sub.u32")},
    **{o: (HASH, f"{o} %sum, %term, %sum;") for o in ("min.u32", "max.s32", "and.b32", "or.b32", "xor.b32")},
    "mad.lo.u32": (HASH, "mad.lo.u32 %sum, %term, %k, %sum;"),
    "by a copy": (HASH, "add.u32 %r18, %sum, %term; mov.u32 %sum, %r18;"),
    "by a choice": (HASH, "setp.lt.s32 %p5, %sum, %term; selp.b32 %sum, %term, %sum, %p5;"),
    "at times": (HASH, "and.b32 %r18, %term, 1; setp.eq.u32 %p5, %r18, 0; @%p5 add.u32 %sum, %sum, %term;"),
}
LONG = {o: (WIDE, f"{o} %rd22, %rd22, %rd20;") for o in ("add.u64", "min.s64", "max.u64", "xor.b64")}
FLOATS = {
    "add.f32": ("+", SMALL, "add.f32 %f2, %f2, %f1;", "%f"),
    "fma.rn.f32": ("+", SMALL, "fma.rn.f32 %f2, %f1, %f1, %f2;", "%f"),
    "mul.f32": ("*", POWER, "mul.f32 %f2, %f2, %f1;", "%f"),
    "max.f32": ("max", SMALL, "max.f32 %f2, %f2, %f1;", "%f"),
    "add.f64": ("+", SMALL, "add.f64 %d2, %d2, %d1;", "%d"),
    "min.f64": ("min", SMALL, "min.f64 %d2, %d1, %d2;", "%d"),
}
FIRST = (
    "ld.global.nc.u32 %k, [%other_i]; mov.u32 %bound, %value; add.u32 %sum, %i, 7; cvt.u64.u32 %rd22, %sum;"
    " and.b32 %r18, %i, 7; cvt.rn.f32.u32 %f2, %r18; cvt.f64.f32 %d2, %f2;"
)
"""The counter, its bound, and what the sums begin with."""


def arguments(launch: Launch, lengths: Sequence[int] = LENGTHS) -> Arguments:
    """``n, a, out, other, flag``: the trips of the iterations are ``lengths``, again and again."""
    n = launch.threads * launch.trips
    begins = np.arange(n, dtype=np.uint32) % 19
    return [n, begins + np.resize(lengths, n).astype(np.uint32), np.zeros(n, np.uint32), begins, 3]


def summed(code: str, kind: str = "%r", *, clauses: str = "", **holes: str) -> str:
    """A kernel that stores what trips add up."""
    holes = {"body": counted(code, begin=FIRST) + STORE[kind], **holes}
    return loop(clauses=clauses, declarations=DECLARED, **holes)


def same(text: str, lengths: Sequence[int] = LENGTHS, *, stacks: bool = False) -> Mapping[str, int]:
    """The phases that ran where loops are expanded, also without where ``stacks`` is set; memory is as before."""
    expand = (True, False) if stacks else (True,)
    ran = compare(
        parse(text), "k", lambda launch: arguments(launch, lengths), LAUNCHES, seeds=(), expand=expand
    )
    return ran["split"]


def expands(text: str) -> bool:
    return any(label == "expand" for r in rewritten(parse(text)).regions for label, _ in r.labels)


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_need_no_clause(name: str) -> None:
    assert same(summed("".join(INTEGERS[name])))["expand"]


@pytest.mark.parametrize("name", LONG)
def test_long_integers(name: str) -> None:
    assert same(summed("".join(LONG[name]), "%rd"))["expand"]


@pytest.mark.parametrize("name", FLOATS)
def test_floating_point_needs_the_clause(name: str) -> None:
    sign, value, update, kind = FLOATS[name]
    assert not expands(summed(value + update, kind))
    assert same(summed(value + update, kind, clauses=f"reduce={sign}:sum"))["expand"]
    said = rewritten(parse(summed(value + update, kind, clauses=f"reduce={sign}:sum"))).remarks
    assert ("CCC029" in {remark.code for remark in said}) == (sign in "+*")


def test_several_at_once() -> None:
    code = f"{WIDE} add.u32 %sum, %sum, %term; max.u64 %rd22, %rd22, %rd20; add.f32 %f2, %f2, 0f40400000;"
    fold = "cvt.u32.u64 %r18, %rd22; xor.b32 %sum, %sum, %r18; cvt.rzi.u32.f32 %r18, %f2; xor.b32 %sum, %sum, %r18;"
    body = counted(code, begin=FIRST) + fold + STORE["%r"]
    assert same(loop(body, clauses="reduce=+:a,+:b,max:c", declarations=DECLARED))["expand"]


def test_in_a_path() -> None:
    inside = counted(HASH + "add.u32 %sum, %sum, %term;", begin=FIRST) + STORE["%r"]
    assert same(loop(path(inside), declarations=DECLARED))["expand"]


def test_two_loops_and_a_sum_of_both() -> None:
    first = counted(HASH + "add.u32 %sum, %sum, %term;", begin=FIRST)
    second = counted(HASH + "add.u32 %sum, %sum, %k;", 5, begin="mov.u32 %k, 3; and.b32 %bound, %value, 15;")
    assert same(loop(first + second + STORE["%r"], declarations=DECLARED))["expand"]


def test_a_sum_over_all_iterations_of_a_lane() -> None:
    body = counted(
        HASH + "add.u32 %sum, %sum, %term;", begin="ld.global.nc.u32 %k, [%other_i]; mov.u32 %bound, %value;"
    )
    after = "mul.wide.u32 %rd30, %thread, 4; add.u64 %rd30, %out, %rd30; st.global.u32 [%rd30], %sum;"
    assert same(loop(body, ahead="mov.u32 %sum, 5;", after=after))["expand"]
    with pytest.raises(Refusal):
        rewritten(parse(loop(path(body), ahead="mov.u32 %sum, 5;", after=after)), "split")


@pytest.mark.parametrize("most", [8, 32])
def test_sums_go_on_from_round_to_round(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expansion, "MOST", most)
    assert same(summed(HASH + "add.u32 %sum, %sum, %term;"), (0, 3, 9, 0, 65, 1))["expand"]


@settings(max_examples=slow.drawn(25), deadline=None, derandomize=True, database=None)
@given(st.lists(st.integers(0, 80) | st.just(0), min_size=1, max_size=40))
def test_any_numbers_of_trips(lengths: list[int]) -> None:
    same(summed(HASH + "add.u32 %sum, %sum, %term;"), lengths)


IN_ORDER = {
    "an order of its own": "mad.lo.u32 %sum, %sum, 3, %term;",
    "two operators": "add.u32 %sum, %sum, %term; xor.b32 %sum, %sum, %k;",
    "read in between": "add.u32 %sum, %sum, %term; red.global.add.u32 [%other], %sum;",
    "set anew": "setp.eq.u32 %p5, %term, 5; @%p5 mov.u32 %sum, 0; add.u32 %sum, %sum, %term;",
    "the last value": "mov.u32 %sum, %term;",
    "an extreme by the opposite": "setp.lt.s32 %p5|%p6, %sum, %term; selp.b32 %sum, %sum, %term, %p6;",
}


@pytest.mark.parametrize("name", IN_ORDER)
def test_what_is_no_sum_keeps_its_order(name: str) -> None:
    text = summed(HASH + IN_ORDER[name])
    assert not expands(text)
    if name != "read in between":
        same(text, stacks=True)


@pytest.mark.parametrize("opcode", ["min.f32", "max.ftz.f32", "min.NaN.f32"])
def test_extremes_keep_nan_zeros_and_subnormal_numbers(opcode: str) -> None:
    """Of lanes none of whose trips update, or whose trips have nothing but NaN, too."""
    start = one_of((*NUMBERS, *NANS), "%f2", "%i")
    value = one_of((*NUMBERS, *NANS), "%f1", "%term")
    only_nans = f"and.b32 %r18, %i, 3; setp.eq.u32 %p7, %r18, 0; @%p7 mov.f32 %f1, 0f{NANS[0]};"
    update = f"and.b32 %r18, %term, 4; setp.eq.u32 %p5, %r18, 0; @%p5 {opcode} %f2, %f2, %f1;"
    first = f"ld.global.nc.u32 %k, [%other_i]; mov.u32 %bound, %value; {start}"
    text = summed(
        "", "%f", clauses=f"reduce={opcode[:3]}:best",
        body=counted(f"{HASH} {value} {only_nans} {update}", begin=first) + STORE["%f"],
    )  # fmt: skip
    assert same(text)["expand"]
