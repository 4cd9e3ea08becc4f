"""The words of a pragma, and what is said about wrong ones."""

from __future__ import annotations

import pytest

from cccopt.clauses import Clauses
from cccopt.diagnostic import Diagnostic
from cccopt.source.pragmas import SourceError, parse_pragma
from cccopt.text import Place, Position


def _locate(offset: int, word: str) -> Place:
    return Place("x.cu", Position(1, offset + 1))


def _mistake(body: str) -> Diagnostic:
    with pytest.raises(SourceError) as caught:
        parse_pragma(body, _locate)
    (diagnostic,) = caught.value.diagnostics
    return diagnostic


@pytest.mark.parametrize(
    ("body", "kind", "clauses"),
    [
        ("ccc for", "for", Clauses()),
        ("ccc for variable", "for variable", Clauses()),
        ("ccc if", "if", Clauses()),
        ("ccc for name(edges) block(256)", "for", Clauses("edges", (256, 1, 1))),
        ("ccc for block( 16 , 8 )", "for", Clauses(block=(16, 8, 1))),
        ("ccc for block(4,4,64) always", "for", Clauses(block=(4, 4, 64), mode="always")),
        ("ccc for variable auto independent", "for variable", Clauses(mode="auto", independent=True)),
        ("ccc if off", "if", Clauses(mode="off")),
        ("ccc for \\\n independent", "for", Clauses(independent=True)),
        ("ccc grid pure(f, ns :: g)", "grid", Clauses(pure=("f", "ns::g"))),
        ("ccc for reduce(=: changed)", "for", Clauses(reductions=(("=", "changed"),))),
        ("ccc while chunk(16)", "while", Clauses(chunk=16)),
        ("ccc for variable chunk(2) nohoist", "for variable", Clauses(chunk=2, hoist=False)),
        ("ccc else hoist", "else", Clauses(hoist=True)),
        ("ccc for collect(3)", "for", Clauses(collect=3)),
        ("ccc for reduce(+: a, b)", "for", Clauses(reductions=(("+", "a"), ("+", "b")))),
        ("ccc for reduce(min:a)reduce(max : b)", "for", Clauses(reductions=(("min", "a"), ("max", "b")))),
    ],
)
def test_pragmas(body: str, kind: str, clauses: Clauses) -> None:
    pragma = parse_pragma(body, _locate)
    assert (pragma.kind, pragma.clauses) == (kind, clauses)


@pytest.mark.parametrize(
    ("body", "code", "column", "says"),
    [
        ("ccc", "CCC010", 1, "does not say what"),
        ("ccc fro", "CCC010", 5, "did you mean `for`?"),
        ("ccc If", "CCC010", 5, "did you mean `if`?"),
        ("ccc for varable", "CCC010", 9, "did you mean `variable`?"),
        ("ccc if independant", "CCC010", 8, "did you mean `independent`?"),
        ("ccc for for", "CCC010", 9, "unknown clause `for`"),
        ("ccc for ,", "CCC010", 9, "unknown clause `,`"),
        ("ccc for block", "CCC011", 9, "block(x)"),
        ("ccc for block()", "CCC011", 9, "needs an argument"),
        ("ccc for block(N)", "CCC011", 9, "expands no macros"),
        ("ccc for block(1,2,3,4)", "CCC011", 9, "block(x)"),
        ("ccc for block(2048)", "CCC011", 9, "1 to 1024 threads"),
        ("ccc for block(0)", "CCC011", 9, "1 to 1024 threads"),
        ("ccc for block(1,1,128)", "CCC011", 9, "64 in z"),
        ("ccc for block(64", "CCC011", 9, "not closed"),
        ("ccc for name(a b)", "CCC011", 9, "letters"),
        ("ccc for independent(1)", "CCC011", 9, "takes no argument"),
        ("ccc for pure()", "CCC011", 9, "needs an argument"),
        ("ccc for pure(f())", "CCC011", 9, "function names"),
        ("ccc for pure(f) pure(g)", "CCC015", 17, "twice"),
        ("ccc if pure(f)", "CCC015", 8, "does not belong"),
        ("ccc if(x)", "CCC011", 5, "takes no argument"),
        ("ccc for reduce(-: a)", "CCC011", 9, "operator"),
        ("ccc for reduce(+ a)", "CCC011", 9, "operator"),
        ("ccc for collect(0)", "CCC011", 9, "a count from 1"),
        ("ccc if name(a) name(b)", "CCC015", 16, "twice"),
        ("ccc if always off", "CCC015", 15, "contradicts `always`"),
        ("ccc if always always", "CCC015", 15, "twice"),
        ("ccc if block(64)", "CCC015", 8, "outer loop"),
        ("ccc for variable block(64)", "CCC015", 18, "outer loop"),
        ("ccc for reduce(+: a) reduce(max: b, a)", "CCC015", 22, "names `a` twice"),
        ("ccc for reduce(+: a, a)", "CCC015", 9, "names `a` twice"),
        ("ccc for reduce()", "CCC011", 9, "needs an argument"),
        ("ccc for reduce(+: a->b)", "CCC011", 9, "`a`, `a.b` or `a[0]`"),
        ("ccc for reduce(+: a[i])", "CCC011", 9, "`a`, `a.b` or `a[0]`"),
        ("ccc for reduce(+: a[0], a [ 0 ])", "CCC015", 9, "twice"),
        ("ccc for variable reduce(+: a)", "CCC015", 18, "outer loop"),
        ("ccc if collect(2)", "CCC015", 8, "outer loop"),
        ("ccc for collect(2) collect(2)", "CCC015", 20, "twice"),
        ("ccc for chunk(2)", "CCC015", 9, "write it on a `#pragma ccc while`"),
        ("ccc while chunk(1000000)", "CCC011", 11, "a count from 1 to 999,999"),
        ("ccc for variable chunk(-1)", "CCC011", 18, "a count from 1 to 999,999"),
        ("ccc if hoist(a[i] + f(x))", "CCC011", 8, "write `hoist` alone"),
        ("ccc if hoist nohoist", "CCC015", 14, "contradicts `hoist`"),
        ("ccc for nohoist", "CCC015", 9, "the path's own pragma"),
    ],
)
def test_mistakes(body: str, code: str, column: int, says: str) -> None:
    mistake = _mistake(body)
    assert mistake.place is not None
    assert (mistake.code, mistake.place.position.column) == (code, column)
    assert says in f"{mistake.message} {mistake.why} {mistake.help}"
    assert mistake.help


def test_only_numbers_have_to_be_literal() -> None:
    assert _mistake("ccc for reduce(-: a)").help == "write `reduce(+: sum)`"
    assert _mistake("ccc for collect(n)").help == "write `collect(k)` with literal values"
