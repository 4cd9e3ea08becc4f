"""The registers of a reduction become one where they do not interfere; results stay, updates of tasks included.

    b = a + value;                              a = a + value;
    if (...) b = b + term;              ->      if (...) a = a + term;
    a = b - 5;                                  a = a - 5;

A task knows one register of a reduction: an update in another one would be lost.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from cccopt.ccc.function.view import view_of
from cccopt.ccc.legality.region_analysis import RegionAnalysis
from cccopt.ccc.outcome.refusal import Refusal
from cccopt.ccc.regions.marked_loops import find
from cccopt.passes import coalesce_reductions
from cccopt.passes.options import Options
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from tests.ccc.legality.test_reductions import AFTER, VALUE, ZERO
from tests.kernels.ptx_loops import SECOND, inner_loop, loop, path, uneven_arguments
from tests.kernels.running import Launch, compare, rewritten

LAUNCHES = (Launch(1, 64, 9), Launch(2, 33, 4))
AHEAD = "add.u32 %r21, %sum, %value;"
UPDATE = f"{VALUE} add.u32 %r21, %r21, %term;"
BEHIND = "add.u32 %sum, %r21, -5;"


def text(clauses: str = "reduce=+:sum", **holes: Any) -> str:
    holes = {"ahead": ZERO, "before": AHEAD, "body": path(UPDATE), "behind": BEHIND, **holes}
    return loop(clauses=clauses, **holes)


def coalesced(source: str) -> str:
    after, remarks, reports = coalesce_reductions.run(parse(source), Options())
    assert not remarks
    assert not reports
    return print_module(after)


def same(source: str) -> None:
    compare(parse(source), "k", uneven_arguments, LAUNCHES, seeds=(3,))


ADD = "add.u32 {0}, {1}, %term;"
TRIP = "mad.lo.u32 %term, %k, %value, 1; add.u32 %r21, %r21, %term;"
SKIP = "and.b32 %bits, %value, 3; setp.ne.u32 %skips, %bits, 0;"
OTHER = path("add.u32 %r22, %r22, %value; add.u32 %r22, %r22, 7;", region=SECOND, label="_2")
SHAPES = {
    "before, in and after": {},
    "in and after": {
        "before": "",
        "body": path(VALUE + ADD.format("%sum", "%sum")),
        "behind": "add.u32 %r21, %sum, 5; mov.u32 %sum, %r21;",
    },
    "before and in": {
        "body": path(VALUE + ADD.format("%sum", "%r21"), skip=f"{SKIP} mov.u32 %sum, %r21;"),
        "behind": "",
    },
    "by a copy": {
        "before": f"{AHEAD} mov.u32 %r22, %r21;",
        "body": path(VALUE + ADD.format("%r22", "%r22")),
        "behind": "add.u32 %sum, %r22, 1;",
    },
    "two paths": {
        "body": f"{path(UPDATE)} sub.u32 %r22, %r21, %value; {OTHER}",
        "behind": "add.u32 %sum, %r22, -5;",
    },
    "trips": {"body": inner_loop(TRIP)},
    "trips, by two votes": {"body": inner_loop(TRIP, clauses="chunk=2")},
    "a path in trips": {"body": inner_loop(f"add.u32 %r22, %r21, %value; {OTHER} add.u32 %r21, %r22, 3;")},
}


@pytest.mark.parametrize("form", AFTER)
@pytest.mark.parametrize("shape", SHAPES)
def test_each_update_counts_once(shape: str, form: str) -> None:
    source = text(**{"after": AFTER[form], **SHAPES[shape]})
    code = coalesced(source).split("LOOP:")[1]  # behind the declarations
    assert not re.search(r"%r2[12]\b", code)
    same(source)


CHOSEN = "setp.gt.u32 %p6, %value, 30; add.u32 %r21, %sum, 7; selp.b32 %sum, %r21, %sum, %p6;"
"""Both registers are live ahead of the choice."""


def test_registers_that_interfere_stay_two() -> None:
    source = text(
        before=CHOSEN, body=path(f"{VALUE} add.u32 %sum, %sum, %term;"), behind="", after=AFTER["owner"]
    )
    assert coalesced(source) == print_module(parse(source))
    same(source)


@pytest.mark.parametrize(
    "behind",
    [BEHIND, "setp.gt.u32 %p6, %value, 9; selp.b32 %sum, %r21, %sum, %p6;"],
)
def test_a_path_that_updates_another_register_than_the_loop_s_is_refused(behind: str) -> None:
    """Where it cannot be the loop's, for both are live somewhere."""
    source = text(before=f"{CHOSEN} {AHEAD}", behind=behind, after=AFTER["owner"])
    with pytest.raises(Refusal) as caught:
        rewritten(parse(source), "split")
    assert caught.value.diagnostics[0].code == "CCC035"


def test_without_the_pass_it_would_be_refused() -> None:
    """The tail knows by itself that a moved update must not lose what the path has added."""
    module = parse(text(after=AFTER["owner"]))
    (function,) = module.functions()
    view = view_of(module, function)
    (region,) = find(view).regions
    with pytest.raises(Refusal) as caught:
        _ = RegionAnalysis(view, region).sunk
    assert caught.value.diagnostics[0].code == "CCC035"


def test_loops_without_the_clause_stay_as_they_are() -> None:
    source = text(clauses="", after=AFTER["owner"])
    assert coalesced(source) == print_module(parse(source))


def test_a_moved_update_goes_on_from_the_loop_s_register() -> None:
    """A task of the outer path that runs one of the inner path meanwhile keeps its own value in %r21."""
    branchy = (
        "setp.gt.u32 %p6, %value, 30; mul.lo.u32 %result, %value, 5; @%p6 mul.lo.u32 %result, %result, 3;"
    )
    inner = path(
        branchy, skip="and.b32 %bits, %value, 4; setp.ne.u32 %skips, %bits, 0;", region=SECOND, label="_2"
    )
    outer = path(f"mov.u32 %result, 1; {AHEAD} {inner} add.u32 %sum, %r21, %result;")
    source = text(before=CHOSEN, body=outer, behind="", after=AFTER["any lane"])
    with pytest.raises(Refusal) as caught:
        rewritten(parse(source), "split")
    assert caught.value.diagnostics[0].code == "CCC035"
    same(text(before="", body=outer, behind="", after=AFTER["any lane"]))


@pytest.mark.parametrize("before", [f"{CHOSEN} {AHEAD}", AHEAD])
def test_a_moved_update_behind_one_that_the_lane_makes_again(before: str) -> None:
    """`+ 5` is cheap, and the lane has its own; what the path's task adds begins without it."""
    branchy = (
        "setp.gt.u32 %p6, %value, 30; mul.lo.u32 %result, %value, 5; @%p6 mul.lo.u32 %result, %result, 3;"
    )
    body = path(f"{branchy} add.u32 %sum, %r21, 5;", skip=f"{SKIP} mov.u32 %sum, %r21; mov.u32 %result, 1;")
    source = text(before=before, body=body, behind="add.u32 %sum, %sum, %result;", after=AFTER["owner"])
    if before == AHEAD:
        same(source)
        return
    with pytest.raises(Refusal) as caught:
        rewritten(parse(source), "split")
    assert caught.value.diagnostics[0].code == "CCC035"
