"""Where tokens end: every quote that C++ knows, and directives."""

from __future__ import annotations

import pytest

from cccopt.source.lexer import ccc_pragma, tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a+1'000u;", ["a", "+", "1'000u", ";"]),
        ("0x1p-3+.5e+7f", ["0x1p-3", "+", ".5e+7f"]),
        ("'{' L'\\'' u8'x'", ["'{'", "L'\\''", "u8'x'"]),
        ('"}\\"" u8"a"_s', ['"}\\""', 'u8"a"', "_s"]),
        ('R"x(a)" } "b)x";', ['R"x(a)" } "b)x"', ";"]),
        ('LR"(\n#pragma ccc if\n)" x', ['LR"(\n#pragma ccc if\n)"', "x"]),
        ('FOOR"a(b"', ["FOOR", '"a(b"']),
        ("a::b:c", ["a", "::", "b", ":", "c"]),
        ("a // { \n /* ( \n */ b", ["a", "b"]),
        ("x\n  # pragma unroll 4\ny", ["x", "  # pragma unroll 4", "y"]),
        ("#pragma a \\\n b\nc", ["#pragma a \\\n b", "c"]),
    ],
)
def test_tokens(text: str, expected: list[str]) -> None:
    assert [t.text for t in tokens(text)] == expected


def test_offsets_find_the_text_again() -> None:
    text = 'int x = f("a", \'b\', R"(c\n)", 1\'0);\n#pragma ccc for\nfor (;;) {}'
    assert all(text[t.start : t.end] == t.text for t in tokens(text))


@pytest.mark.parametrize(
    ("line", "is_ours"),
    [
        ("#pragma ccc if", True),
        ("  #  pragma\tccc", True),
        ("#pragma ccc_if", False),
        ("#pragma CCC if", False),
        ("#pragma unroll ccc", False),
        ('# 1 "pragma ccc"', False),
    ],
)
def test_which_directives_are_pragmas_of_ours(line: str, is_ours: bool) -> None:
    (token,) = tokens(line)
    offset = ccc_pragma(token)
    assert (offset is not None) == is_ours
    assert offset is None or line[offset:].startswith("ccc")
