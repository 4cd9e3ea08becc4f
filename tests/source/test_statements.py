"""Where a statement ends. In each example the statement begins the text and `@` stands behind its end."""

from __future__ import annotations

import pytest

from cccopt.source.lexer import tokens
from cccopt.source.statements import Code, OutOfSight, Unbalanced


@pytest.mark.parametrize(
    "text",
    [
        "x = 1; @ y;",
        "; @ y;",
        "{ a; { b; } } @ c;",
        "if (a) b; @ c;",
        "if (a) b; else c; @ d;",
        "if (a) if (b) c; else d; @ e;",
        "if (a) { if (b) c; } else d; @ e;",
        "if (a) b; else if (c) d; else if (e) f; else { g; } @ h;",
        "if constexpr (a < b > (c)) d; else e; @ f;",
        "if consteval { a; } else { b; } @ c;",
        "if !consteval { a; } @ b;",
        "if (auto [x, y] = f(); x) [[likely]] { y; } else [[unlikely]] z; @ e;",
        "for (int i = 0; i < n; ++i) a[i]; @ b;",
        "for (auto x : {1, 2}) for (;;) if (x) y; else z; @ b;",
        "for (auto f = [](int x) { return x; }; f(1);) { a; } @ b;",
        "while (a) { b; } @ c;",
        "while (a) do b; while (c); @ d;",
        "do if (a) b; else c; while (d); @ e;",
        "do { a; } while (b); @ while (c) d;",
        "switch (a) { case 1: b; break; default: c; } @ d;",
        "switch (a) case 1: if (b) c; else d; @ e;",
        "case a ? b : c: d; @ e;",
        "case A::b: case 2: default: x: d; @ e;",
        "x: @ }",
        "x: [[likely]] y: for (;;) { } @ b;",
        "[[maybe_unused]] int a[] = {1, 2}; @ b;",
        "try { a; } catch (int) { b; } catch (...) { c; } @ d;",
        "auto f = [=](int a) { if (a) return 1; else return 2; }; @ g;",
        "return S<int>{[] { return 1; }()}; @ g;",
        "a ? b : c; @ d;",
        "struct S { int a; int b : 3; }; @ c;",
        'x = "; }"[0] + \';\' + R"(;})"[1] + 1\'0; @ y;',
        "if (a) b; @ }",
        "if (a)\n#pragma unroll 2\nfor (;;) b; @ c;",
        "goto x; @ x: y;",
        "std::f(); @ y;",
    ],
)
def test_statement_end(text: str) -> None:
    before, after = text.split("@")
    code = Code([t for t in tokens(before + after) if t.kind != "directive"])
    expected = len([t for t in tokens(before) if t.kind != "directive"])
    assert code.statement_end(0) == expected


@pytest.mark.parametrize(
    "text",
    ["x = 1", "{ a;", "if (a", "if (a) }", "if a;", "while", "for (;;", "f(;", "case 1", "do a; while (b)"],
)
def test_a_statement_without_an_end(text: str) -> None:
    with pytest.raises(Unbalanced):
        Code(tokens(text)).statement_end(0)


def test_long_chains_and_deep_nests_are_no_matter() -> None:
    chain = "if (a) b; " + "else if (a) b; " * 5000
    assert Code(tokens(chain + "c;")).statement_end(0) == len(tokens(chain))
    nest = "for (;;) " * 5000 + "a;"
    assert Code(tokens(nest + "c;")).statement_end(0) == len(tokens(nest))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a; @", True),
        ("{ @", True),
        ("a: @", True),
        ("else @", True),
        ("do @", True),
        ("if (a) @", True),
        ("if constexpr (a) @", True),
        ("for (;;) [[likely]] @", True),
        ("void f() @", False),
        ("f[1] @", False),
        ("x = @", False),
        ("@", True),
        (") @", False),
    ],
)
def test_what_may_stand_before_a_statement(text: str, expected: bool) -> None:
    before = tokens(text.replace("@", ""))
    assert Code([*before, *tokens("x;")]).may_begin_statement(len(before)) is expected


@pytest.mark.parametrize("text", ["@", ") @", "] @", "(a) @"])
def test_what_stands_before_a_statement_may_be_out_of_sight(text: str) -> None:
    before = tokens(text.replace("@", ""))
    with pytest.raises(OutOfSight):
        Code([*before, *tokens("x;")], from_start=False).may_begin_statement(len(before))


@pytest.mark.parametrize("text", ["if (a) b;", "try { } catch (...) { }", "do a; while (b)", "x"])
def test_where_a_statement_ends_may_be_out_of_sight(text: str) -> None:
    with pytest.raises((OutOfSight, Unbalanced)):
        Code(tokens(text), to_end=False).statement_end(0)
    assert Code(tokens(text + "; y;"), to_end=False).statement_end(0) <= len(tokens(text)) + 1
