"""Flags: what a loop only sets becomes a word that it `or`s into, rewritten as any reduction; the rest is refused.

int found = 0;                          mov.b32 %sum, 0;
for (...)
  if (value % 4 == 0)                   setp.gt.u32 %p6, %term, 99;
    if (term > 99) found = 17;    ->    selp.b32 %sum, 17, %sum, %p6;
out[thread] = found;                    st.global.b32 [...], %sum;
"""

from __future__ import annotations

import pytest

from cccopt.ccc.outcome.refusal import Refusal
from cccopt.passes.flag_reductions import run
from cccopt.passes.options import Options
from cccopt.ptx.parser import parse
from tests.ccc.legality.test_reductions import LAUNCHES, VALUE, stored
from tests.kernels.ptx_loops import loop, path, uneven_arguments
from tests.kernels.running import compare, rewritten

DECLARED = ".reg .f64 %d<9>; .reg .b32 %w<9>; .reg .pred %q<9>;"
TEST = f"{VALUE} and.b32 %w1, %term, 15; setp.eq.u32 %p6, %w1, 1;"
"""%p6: whether a run of the path sets the flag; few do."""

ZERO, ONE, FIVE = (f"mov.b32 %sum, {value};" for value in (0, 1, 5))
WIDENED = "cvt.u32.u16 %w5, %h1;"
FLAGS = {
    "set where": (FIVE, f"{TEST} selp.b32 %sum, 17, %sum, %p6;", ""),
    "kept where": (FIVE, f"{TEST} not.pred %q1, %p6; selp.b32 %sum, %sum, 17, %q1;", ""),
    "set under a guard": (FIVE, f"{TEST} @%p6 mov.b32 %sum, 17;", ""),
    "set in a branch": (FIVE, f"{TEST} @!%p6 bra KEEP; mov.b32 %sum, 17; KEEP:", ""),
    "set to zero": (FIVE, f"{TEST} selp.b32 %sum, 0, %sum, %p6;", ""),
    "set twice": (FIVE, f"{TEST} selp.b32 %w2, 17, %sum, %p6; @%p5 mov.b32 %w2, 17; mov.b32 %sum, %w2;", ""),
    "a bool in a word": (ZERO, f"{TEST} selp.b32 %w2, 1, 0, %p6; or.b32 %w3, %w2, %sum; setp.ne.b32 %q1, %w3, 0;"
                         " selp.b32 %sum, 1, 0, %q1;", ""),
    "a bool in half a word": ("mov.b16 %h1, 0;", f"{TEST} {WIDENED} and.b32 %w6, %term, 64; or.b32 %w7, %w5, %w6;"
                              " setp.ne.s32 %q1, %w7, 0; selp.u16 %h1, 1, 0, %q1;", f"{WIDENED} mov.b32 %sum, %w5;"),
    "a bool that is cleared": ("mov.b16 %h1, 1;", f"{TEST} not.pred %q1, %p6; selp.u16 %h2, 1, 0, %q1;"
                               " and.b16 %h1, %h2, %h1;", f"{WIDENED} mov.b32 %sum, %w5;"),
    "a predicate": ("mov.pred %q1, 0;", f"{TEST} or.pred %q1, %q1, %p6;", "selp.b32 %sum, 1, 0, %q1;"),
    "a cleared predicate": ("mov.pred %q1, 1;", f"{TEST} not.pred %q2, %p6; and.pred %q1, %q1, %q2;",
                            "selp.b32 %sum, 1, 0, %q1;"),
    "set too early": (ZERO, f"{TEST} mov.b32 %w4, %sum; selp.b32 %sum, 1, %sum, %p6; @%p5 bra KEEP;"
                      " mov.b32 %sum, %w4; KEEP:", ""),
    "a number": ("mov.b32 %f2, 0f3F800000;", f"{TEST} selp.f32 %f2, 0f40200000, %f2, %p6;", "mov.b32 %sum, %f2;"),
}  # fmt: skip
"""The flag before the loop, in the path, and after the loop as a word."""


def text(ahead: str, body: str, after: str = "", *, sign: str = "=", **holes: str) -> str:
    after += stored("%sum")
    clauses = f"reduce={sign}:flag"
    return loop(clauses=clauses, declarations=DECLARED, ahead=ahead, body=path(body), after=after, **holes)


@pytest.mark.parametrize("name", FLAGS)
def test_a_flag_keeps_its_result(name: str) -> None:
    module = parse(text(*FLAGS[name]))
    assert run(module, Options()).module != module
    ran = compare(module, "k", uneven_arguments, LAUNCHES, forms=("split", "idle lanes"), seeds=(3,))
    assert all(counts[phase] for counts in ran.values() for phase in ("push", "take", "drain"))


SET = f"{TEST} selp.b32 %sum, 17, %sum, %p6;"
BOOL = "or.b32 %w3, %w2, %sum; setp.ne.b32 %q1, %w3, 0; selp.b32 %sum, 1, 0, %q1;"
NO_FLAG = {
    "two constants": (FIVE, f"{SET} @%p5 mov.b32 %sum, 18;", {}),
    "no constant": (FIVE, f"{TEST} selp.b32 %sum, %term, %sum, %p6;", {}),
    "decided anew": (ZERO, f"{TEST} selp.b32 %sum, 1, 0, %p6;", {}),
    "toggled": (ZERO, f"{TEST} selp.b32 %w2, 1, 0, %p6; xor.b32 %sum, %sum, %w2; and.b32 %sum, %sum, 1;", {}),
    "not all numbers": ("mov.b32 %sum, 2;", f"{TEST} selp.b32 %w2, 1, 0, %p6; {BOOL}", {}),
    "read in the path": (FIVE, f"{SET} st.global.b32 [%out_i], %sum;", {}),
    "read after the path": (FIVE, SET, {"behind": "st.global.b32 [%out_i], %sum;"}),
    "a condition": (FIVE, f"{SET} setp.eq.b32 %q1, %sum, 17; @%q1 st.global.b32 [%out_i], %term;", {}),
    "an older value after the loop": (
        f"{ZERO} {ZERO.replace('%sum', '%w5')}",
        f"{TEST} mov.b32 %w5, %sum; selp.b32 %sum, 1, %sum, %p6;",
        {"after": "shl.b32 %w5, %w5, 4; or.b32 %sum, %sum, %w5;"},
    ),
    "a number of bits": (ZERO, f"{TEST} selp.b32 %w2, 1, 0, %p6; shl.b32 %sum, %sum, 1; or.b32 %sum, %sum, %w2;", {}),
    "set in another iteration": (ZERO, f"{TEST} mov.b32 %sum, %w4; selp.b32 %w4, 1, %w4, %p6;",
                                 {"before": "@%none mov.b32 %w4, 0;"}),
    "set and put back": (FIVE, SET, {"before": "setp.eq.u32 %q1, %value, 3; @%q1 mov.b32 %sum, 5;"}),
}  # fmt: skip


@pytest.mark.parametrize("name", NO_FLAG)
def test_what_is_no_flag_is_refused(name: str) -> None:
    ahead, body, holes = NO_FLAG[name]
    module = parse(text(ahead, body, **holes))
    assert run(module, Options()).module == module
    with pytest.raises(Refusal) as caught:
        rewritten(module, "split")
    (said,) = caught.value.diagnostics
    assert said.code in ("CCC034", "CCC035", "CCC036")


@pytest.mark.parametrize("sign", ["+", "max"])
def test_the_clause_must_name_a_flag(sign: str) -> None:
    module = parse(text(*FLAGS["set where"], sign=sign))
    assert run(module, Options()).module == module


@pytest.mark.parametrize("sign", ["|", "&", "="])
def test_three_operators_name_flags(sign: str) -> None:
    module = parse(text(*FLAGS["set where"], sign=sign))
    assert run(module, Options()).module != module
