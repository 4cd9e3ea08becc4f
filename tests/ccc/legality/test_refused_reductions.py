"""What is no reduction, though the clause `reduce` is there: refused with the reason (DESIGN 4.3).

#pragma ccc for reduce(+: sum)
for (...)
  if (value % 4 == 0) {
    sum += term;
    if (sum > 9) ...                the path reads what earlier iterations of its lane have left in `sum`,
  }                                 which a task that runs elsewhere does not have
"""

from __future__ import annotations

from typing import Any

import pytest

from cccopt.ccc.legality.region_analysis import RegionAnalysis
from cccopt.ccc.outcome.refusal import Refusal
from cccopt.diagnostic import Diagnostic
from cccopt.ptx.parser import parse
from tests.ccc.legality.test_reductions import BEFORE, BRANCHY, DECLARED, SUM, VALUE, ZERO, same, stored
from tests.kernels.ptx_loops import FOR, loop, path, regions_of
from tests.kernels.running import rewritten


def refusal(clauses: str = "reduce=+:sum", **holes: Any) -> Diagnostic:
    with pytest.raises(Refusal) as caught:
        rewritten(parse(loop(clauses=clauses, declarations=DECLARED, **holes)), "split")
    (said,) = caught.value.diagnostics
    return said


def test_without_the_clause_it_is_refused() -> None:
    holes = {"ahead": ZERO, "body": path(f"{VALUE} {SUM}"), "after": stored("%sum")}
    said = refusal("", **holes)
    assert said.code == "CCC035"
    assert "reduce(+: name)" in said.help
    assert "not a reduction" not in said.why


READ = "st.global.u32 [%out_i], %sum;"
NO_REDUCTION = {
    "read behind the path": ({"behind": READ}, SUM, "`st.global.u32 [%out_i], %sum` reads it"),
    "read ahead of it": ({"before": READ}, SUM, "`st.global.u32 [%out_i], %sum` reads it"),
    "read in the path": ({}, f"{SUM} {READ}", "reads it"),
    "an address": ({}, f"{SUM} cvt.u64.u32 %rd12, %sum; ld.global.u32 %r12, [%rd12];", "reads it"),
    "a condition": ({}, f"setp.gt.u32 %p6, %sum, 9; @%p6 {SUM}", "reads it"),
    "a guard's own": ({}, "setp.gt.u32 %p6, %sum, 9; selp.b32 %sum, %term, %sum, %p6;", "reads it"),
    "the subtrahend": ({}, "sub.u32 %sum, %term, %sum;", "reads it"),
    "doubled": ({}, "add.u32 %sum, %sum, %sum;", "reads it"),
    "doubled in two steps": ({}, "add.u32 %r21, %sum, %term; add.u32 %sum, %r21, %sum;", "combines two values"),
    "saturating": ({}, "add.sat.s32 %sum, %sum, %term;", "reads it"),
    "set anew": ({}, f"{SUM} setp.gt.u32 %p6, %value, 9; @%p6 mov.u32 %sum, 0;", "may overwrite it"),
    "set anew in some iterations": (
        {"before": "and.b32 %bits, %value, 7; setp.eq.u32 %p6, %bits, 0; @%p6 mov.u32 %sum, %value;"},
        SUM,
        "may start from another value",
    ),
    "set anew behind a branch": (
        {"behind": "setp.gt.u32 %p6, %value, 9; @%p6 bra KEEP; mov.u32 %sum, %value; KEEP:"},
        SUM,
        "overwrites it",
    ),
    "two operators": ({}, f"{SUM} max.u32 %sum, %sum, %value;", "with a different operator"),
    "two operators, one outside": ({"behind": "and.b32 %sum, %sum, %value;"}, SUM, "with a different operator"),
    "another operator": ({}, "max.u32 %sum, %sum, %term;", "names no variable updated by `max`"),
    "a chosen constant": ({}, "selp.b32 %sum, 7, %sum, %skips; add.u32 %sum, %sum, 1;", "may overwrite it"),
}  # fmt: skip


@pytest.mark.parametrize("name", NO_REDUCTION)
def test_what_is_no_reduction_is_refused(name: str) -> None:
    holes, code, why = NO_REDUCTION[name]
    said = refusal(ahead=ZERO, body=path(f"{VALUE} {code}"), after=stored("%sum"), **holes)
    assert said.code == "CCC035"
    assert why in said.why
    assert said.place is not None


def test_a_value_that_may_be_put_back_is_refused() -> None:
    """The lane would drop what its path contributed, but the task knows nothing of that."""
    before, behind = "mov.u32 %r21, %sum;", "setp.gt.u32 %p6, %value, 9; selp.b32 %sum, %r21, %sum, %p6;"
    said = refusal(
        ahead=ZERO, before=before, body=path(f"{VALUE} {SUM}"), behind=behind, after=stored("%sum")
    )
    assert said.code == "CCC035"
    assert "does not only update it" in said.why


def test_an_update_behind_the_path_that_may_be_put_back_is_refused() -> None:
    behind = "add.u32 %r21, %sum, %result; setp.gt.u32 %p6, %value, 9; selp.b32 %sum, %r21, %sum, %p6;"
    said = refusal(ahead=ZERO, before=BEFORE, body=path(BRANCHY), behind=behind, after=stored("%sum"))
    assert said.code == "CCC034"


def test_older_values_are_refused() -> None:
    """One that is read behind the loop, one that goes on to the next iteration."""
    behind = "mov.u32 %r22, %r21; mov.u32 %r21, %sum;"
    said = refusal(
        ahead=f"{ZERO} mov.u32 %r21, 0;",
        before="mov.u32 %r21, %sum;",
        body=path(f"{VALUE} {SUM}"),
        after=stored("%sum", "%r21"),
    )
    assert "older value" in said.why
    said = refusal(
        ahead=f"{ZERO} mov.u32 %r21, 0; mov.u32 %r22, 0;",
        body=path(f"{VALUE} {SUM}"),
        behind=behind,
        after=stored("%sum", "%r22"),
    )
    assert said.code == "CCC035"


def test_an_older_value_that_some_iterations_keep_is_refused() -> None:
    keep = "setp.gt.u32 %p6, %value, 9; @%p6 bra KEEP; st.global.u32 [%other_i], %value; mov.u32 %r21, %sum; KEEP:"
    said = refusal(
        ahead=f"{ZERO} mov.u32 %r21, 0;", before=keep, body=path(f"{VALUE} {SUM}"), after=stored("%r21")
    )
    assert said.code == "CCC035"
    assert "an older value of it is kept" in said.why


def test_an_update_that_goes_on_from_another_register_is_refused() -> None:
    """Tasks keep their part in one register. Where `coalesce-reductions` has run, most updates do, too."""
    text = loop(
        clauses="reduce=+:sum",
        ahead=ZERO,
        before=f"{BEFORE} add.u32 %r21, %sum, 1;",
        body=path(BRANCHY),
        behind="add.u32 %sum, %r21, %result;",
        after=stored("%sum"),
    )
    seen, (region,) = regions_of(text)
    with pytest.raises(Refusal) as caught:
        _ = RegionAnalysis(seen, region).sunk
    assert caught.value.diagnostics[0].code == "CCC035"


def test_narrow_values_are_refused() -> None:
    code = f"{VALUE} cvt.u16.u32 %h1, %term; add.u16 %h2, %h2, %h1;"
    said = refusal(ahead="mov.u16 %h2, 0;", body=path(code), after="st.global.u16 [%out], %h2;")
    assert said.code == "CCC035"


def test_the_clause_names_each_variable() -> None:
    code = f"{VALUE} {SUM} add.u32 %r21, %r21, 1;"
    holes = {"ahead": f"{ZERO} mov.u32 %r21, 0;", "body": path(code), "after": stored("%sum", "%r21")}
    said = refusal("reduce=+:sum", **holes)
    assert said.code == "CCC035"
    assert said.place
    assert said.place.position.line == 10 * FOR
    assert "2 registers" in said.message
    same("reduce=+:sum,+:count", **holes)


@pytest.mark.parametrize(
    "code",
    [
        # The place of the largest value depends on the comparison; the smaller one is not always kept.
        "setp.lt.u32 %p7, %sum, %term; selp.b32 %sum, %term, %sum, %p7; selp.b32 %r12, 1, 2, %p7;"
        " st.global.u32 [%out_i], %r12;",
        "setp.gt.u32 %p6, %value, 30; setp.gt.u32 %p7, %sum, %term; and.pred %p8, %p6, %p7;"
        " selp.b32 %sum, %sum, %term, %p8;",
        "setp.lt.u32 %p7, %sum, %term; add.u32 %term, %term, 1; selp.b32 %sum, %term, %sum, %p7;",
    ],
)
def test_other_choices_are_refused(code: str) -> None:
    holes = {"ahead": ZERO, "body": path(f"{VALUE} {code}"), "after": stored("%sum")}
    assert "reads it" in refusal("reduce=max:best", **holes).why
