"""Annotations of which no mark is in the device code are told, the outermost with what is in it."""

from __future__ import annotations

from cccopt.diagnostic import Diagnostic, Severity
from cccopt.source.annotate import annotate
from cccopt.source.unreached import unreached

TEXT = """\
#pragma ccc for
for (;;) {
#pragma ccc if
  if (a) {
#pragma ccc while
    for (;;) b;
  }
#pragma ccc switch
  switch (c) { case 1: d; break; case 2: e; break; }
}
#pragma ccc grid
__global__ void k() {
#pragma ccc if
  if (a) b;
}
"""


def told(*present: int) -> list[Diagnostic]:
    ptx = "\n".join(f"// ccc {event} {n} line=1:1" for n in present for event in ("if.begin", "if.end"))
    return list(unreached(annotate(TEXT, "x.cu").regions, ptx))


def lines(diagnostic: Diagnostic) -> list[int]:
    places = [diagnostic.place, *(place for _, place in diagnostic.notes)]
    return [place.position.line for place in places if place is not None]


def test_nothing_is_said_of_what_is_there() -> None:
    assert told(1, 2, 3, 4, 5, 6, 7) == []


def test_the_outermost_names_what_is_in_it() -> None:
    assert [lines(d) for d in told(1, 4, 5)] == [[4, 6], [12, 14]]
    assert [lines(d) for d in told()] == [[2, 4, 6, 9, 9], [12, 14]]
    assert {(d.code, d.severity) for d in told()} == {("CCC019", Severity.WARNING)}


def test_a_case_is_named_by_its_label() -> None:
    (case,) = told(1, 2, 3, 4, 6, 7)
    assert case.message == "`#pragma ccc switch`, case `2`, reaches no kernel: it has no effect"


def test_an_end_without_its_beginning_is_no_region() -> None:
    assert unreached(annotate(TEXT, "x.cu").regions[:1], "// ccc for.end 1")
