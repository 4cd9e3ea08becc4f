"""What is no reduction, though the clause `reduce` is there: refused with the reason (DESIGN 4.3)."""

from __future__ import annotations

from typing import Any

import pytest

from cccopt.ccc.legality.region_analysis import RegionAnalysis
from cccopt.ccc.outcome.refusal import Refusal
from cccopt.diagnostic import Diagnostic
from cccopt.ptx.parser import parse
from tests.ccc.legality.test_reductions import BEFORE, BRANCHY, DECLARED, SUM, VALUE, ZERO, same, stored
from tests.ccc.regions.test_marked_loops import regions_of
from tests.kernels.ptx_loops import FOR, loop, path
from tests.kernels.running import rewritten


def refusal(clauses: str = "reduce=+:sum", **holes: Any) -> Diagnostic:
    with pytest.raises(Refusal) as caught:
        rewritten(parse(loop(clauses=clauses, declarations=DECLARED, **holes)))
    (said,) = caught.value.diagnostics
    return said


def test_without_the_clause_it_is_refused() -> None:
    holes = {"ahead": ZERO, "body": path(f"{VALUE} {SUM}"), "after": stored("%r20")}
    said = refusal("", **holes)
    assert said.code == "CCC035"
    assert "reduce(+: name)" in said.help
    assert "no reduction" not in said.why


READ = "st.global.u32 [%rd6], %r20;"
NO_REDUCTION = {
    "read behind the path": ({"behind": READ}, SUM, "`st.global.u32 [%rd6], %r20` reads it"),
    "read ahead of it": ({"before": READ}, SUM, "`st.global.u32 [%rd6], %r20` reads it"),
    "read in the path": ({}, f"{SUM} {READ}", "reads it"),
    "an address": ({}, f"{SUM} cvt.u64.u32 %rd12, %r20; ld.global.u32 %r12, [%rd12];", "reads it"),
    "a condition": ({}, f"setp.gt.u32 %p6, %r20, 9; @%p6 {SUM}", "reads it"),
    "a guard's own": ({}, "setp.gt.u32 %p6, %r20, 9; selp.b32 %r20, %r10, %r20, %p6;", "reads it"),
    "the subtrahend": ({}, "sub.u32 %r20, %r10, %r20;", "reads it"),
    "doubled": ({}, "add.u32 %r20, %r20, %r20;", "reads it"),
    "saturating": ({}, "add.sat.s32 %r20, %r20, %r10;", "reads it"),
    "set anew": ({}, f"{SUM} setp.gt.u32 %p6, %r6, 9; @%p6 mov.u32 %r20, 0;", "may set it anew"),
    "set anew in some iterations": (
        {"before": "and.b32 %r9, %r6, 7; setp.eq.u32 %p6, %r9, 0; @%p6 mov.u32 %r20, %r6;"},
        SUM,
        "may start from another value",
    ),
    "set anew behind a branch": (
        {"behind": "setp.gt.u32 %p6, %r6, 9; @%p6 bra KEEP; mov.u32 %r20, %r6; KEEP:"},
        SUM,
        "sets it anew",
    ),
    "two operators": ({}, f"{SUM} max.u32 %r20, %r20, %r6;", "by another operator"),
    "two operators, one outside": ({"behind": "and.b32 %r20, %r20, %r6;"}, SUM, "by another operator"),
    "another operator": ({}, "max.u32 %r20, %r20, %r10;", "names no variable updated by `max`"),
    "a chosen constant": ({}, "selp.b32 %r20, 7, %r20, %p1; add.u32 %r20, %r20, 1;", "may set it anew"),
}  # fmt: skip


@pytest.mark.parametrize("name", NO_REDUCTION)
def test_what_is_no_reduction_is_refused(name: str) -> None:
    holes, code, why = NO_REDUCTION[name]
    said = refusal(ahead=ZERO, body=path(f"{VALUE} {code}"), after=stored("%r20"), **holes)
    assert said.code == "CCC035"
    assert why in said.why
    assert said.place is not None


def test_a_value_that_may_be_put_back_is_refused() -> None:
    """The lane would drop what its path contributed, but the task knows nothing of that."""
    before, behind = "mov.u32 %r21, %r20;", "setp.gt.u32 %p6, %r6, 9; selp.b32 %r20, %r21, %r20, %p6;"
    said = refusal(
        ahead=ZERO, before=before, body=path(f"{VALUE} {SUM}"), behind=behind, after=stored("%r20")
    )
    assert said.code == "CCC035"
    assert "does not only update it" in said.why


def test_an_update_behind_the_path_that_may_be_put_back_is_refused() -> None:
    behind = "add.u32 %r21, %r20, %r11; setp.gt.u32 %p6, %r6, 9; selp.b32 %r20, %r21, %r20, %p6;"
    said = refusal(ahead=ZERO, before=BEFORE, body=path(BRANCHY), behind=behind, after=stored("%r20"))
    assert said.code == "CCC034"


def test_older_values_are_refused() -> None:
    """One that is read behind the loop, one that goes on to the next iteration."""
    behind = "mov.u32 %r22, %r21; mov.u32 %r21, %r20;"
    said = refusal(
        ahead=f"{ZERO} mov.u32 %r21, 0;",
        before="mov.u32 %r21, %r20;",
        body=path(f"{VALUE} {SUM}"),
        after=stored("%r20", "%r21"),
    )
    assert "older value" in said.why
    said = refusal(
        ahead=f"{ZERO} mov.u32 %r21, 0; mov.u32 %r22, 0;",
        body=path(f"{VALUE} {SUM}"),
        behind=behind,
        after=stored("%r20", "%r22"),
    )
    assert said.code == "CCC035"


def test_an_older_value_that_some_iterations_keep_is_refused() -> None:
    keep = "setp.gt.u32 %p6, %r6, 9; @%p6 bra KEEP; st.global.u32 [%rd7], %r6; mov.u32 %r21, %r20; KEEP:"
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
        before=f"{BEFORE} add.u32 %r21, %r20, 1;",
        body=path(BRANCHY),
        behind="add.u32 %r20, %r21, %r11;",
        after=stored("%r20"),
    )
    seen, (region,) = regions_of(text)
    with pytest.raises(Refusal) as caught:
        _ = RegionAnalysis(seen, region).sunk
    assert caught.value.diagnostics[0].code == "CCC035"


def test_narrow_values_are_refused() -> None:
    code = f"{VALUE} cvt.u16.u32 %h1, %r10; add.u16 %h2, %h2, %h1;"
    said = refusal(ahead="mov.u16 %h2, 0;", body=path(code), after="st.global.u16 [%rd2], %h2;")
    assert said.code == "CCC035"


def test_the_clause_names_each_variable() -> None:
    code = f"{VALUE} {SUM} add.u32 %r21, %r21, 1;"
    holes = {"ahead": f"{ZERO} mov.u32 %r21, 0;", "body": path(code), "after": stored("%r20", "%r21")}
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
        "setp.lt.u32 %p7, %r20, %r10; selp.b32 %r20, %r10, %r20, %p7; selp.b32 %r12, 1, 2, %p7;"
        " st.global.u32 [%rd6], %r12;",
        "setp.gt.u32 %p6, %r6, 30; setp.gt.u32 %p7, %r20, %r10; and.pred %p8, %p6, %p7;"
        " selp.b32 %r20, %r20, %r10, %p8;",
        "setp.lt.u32 %p7, %r20, %r10; add.u32 %r10, %r10, 1; selp.b32 %r20, %r10, %r20, %p7;",
    ],
)
def test_other_choices_are_refused(code: str) -> None:
    holes = {"ahead": ZERO, "body": path(f"{VALUE} {code}"), "after": stored("%r20")}
    assert "reads it" in refusal("reduce=max:best", **holes).why
