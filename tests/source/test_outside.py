"""What is told without lexing is what a lexer tells, or nothing is told."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from cccopt.source import annotate as module
from cccopt.source.annotate import annotate
from cccopt.source.lexer import Token, pragmas, tokens
from cccopt.source.lines import LineMap
from cccopt.source.outside import Outside, hints
from cccopt.source.strip import strip
from cccopt.text import Position
from tests.slow import drawn
from tests.source.test_random_programs import NODES, Node, function

_PIECES = (
    *(
        "\n#pragma ccc for\n",
        "\n  # pragma  ccc if name(x)\n",
        "#pragma ccc",
        "\n#pragma ccc_for\n",
        "\n#x \\\n",
        "\r\n",
    ),
    *(
        'R"(',
        ')"',
        'R"x(',
        ')x"',
        'uR"x',
        '"',
        "'",
        "/*",
        "*/",
        "//",
        "\\",
        "\r\n",
        "1'000",
        "FOOR",
        " ",
        "a",
        "(",
    ),
    *('\n# 12 "f.h" 1\n', "\n#line 50\n", '\n# 7 "g.h"', "\n", "\n", "\n"),
)
_MARKER = re.compile(r'\s*#\s*(?:line\s+)?(\d+)(?:\s+"([^"\n]*)")?.*')
_TEXTS = st.lists(st.sampled_from(_PIECES), max_size=14).map("".join)


def _spans(text: str) -> list[tuple[int, int]]:
    """Every token's beginning and end, comments among them."""
    return [(t.start, t.end) for t in tokens(text, keep_comments=True)]


@given(_TEXTS)
@settings(max_examples=drawn(2000))
@example('x R"(\n#pragma ccc for\n)" /* \n#pragma ccc for\n */')
def test_no_token_spans_the_beginning_of_a_line_that_begins_outside(text: str) -> None:
    outside = Outside(text)
    lines = [0, *(at + 1 for at, c in enumerate(text) if c == "\n")]
    spanned = {line for line in lines for start, end in _spans(text) if start < line < end}
    assert not spanned.intersection(filter(outside.begins, lines))


@given(_TEXTS)
@settings(max_examples=drawn(2000))
def test_pragmas_are_those_that_a_lexer_finds(text: str) -> None:
    found = Outside(text).pragmas()
    assert found is None or found == pragmas(text)
    pieces = list(text)
    for start, end in reversed(pragmas(text)):
        pieces[start:end] = "\n" * text.count("\n", start, end)
    assert strip(text) == "".join(pieces)


def test_most_texts_need_no_lexer() -> None:
    plain = 'auto s = R"(\n)"; /* \n */ const char *t = "\\"";\n#pragma ccc for \\\n name(x)\nfor (;;);\n'
    assert Outside(plain).pragmas() == pragmas(plain) != []
    assert Outside(plain + ')" */').pragmas() == pragmas(plain)
    assert Outside('R"(\n' + plain).pragmas() is not None
    for doubtful in ('"/*";\n', 'R"x(\n', "#define x \\\n", "#define x \\\r\n"):
        assert Outside(doubtful + plain[plain.index("#") :]).pragmas() is None, doubtful


def test_texts_without_a_pragma_are_told_quickly() -> None:
    assert not hints("int ccc; // pragma\n#pragma unroll\n")
    assert hints("#pragma  ccc for") == [1]


def test_what_lies_far_from_the_pragmas_is_not_lexed(monkeypatch: pytest.MonkeyPatch) -> None:
    lexed: list[int] = []

    def counted(text: str, start: int, end: int) -> list[Token]:
        lexed.append(end - start)
        return tokens(text, start, end)

    monkeypatch.setattr(module, "tokens", counted)
    far = "void f() { x = 1; }\n" * 3_000
    loop = "void g() {\n#pragma ccc for\nfor (;;) {}\n}\n"
    text = f'# 1 "k.cu"\n{far}{loop}{far}'
    (region,) = annotate(text, "x.cu").regions
    assert (region.place.file, region.place.position) == ("k.cu", Position(3_003, 1))
    assert sum(lexed) < 50_000 < len(text)
    long = loop.replace("{}", "{\n" + "x = 1;\n" * 10_000 + "}")
    assert len(annotate(far + long + far, "x.cu").regions) == 1
    assert annotate(far + long + far, "x.cu").text.endswith(far)


@given(st.lists(NODES, min_size=1, max_size=3), st.sampled_from([1, 30, 200]))
@settings(max_examples=drawn(200))
def test_how_much_is_lexed_does_not_matter(nodes: list[Node], reach: int) -> None:
    text = "".join(function(f"f{number}", node).replace("; ", ";\n") for number, node in enumerate(nodes))
    whole = annotate(text, "x.cu")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_REACH", reach)
        assert annotate(text, "x.cu") == whole


@given(_TEXTS)
@settings(max_examples=drawn(1000))
@example('# 3 "a.h"\n#line 50\n\nx\n')
def test_lines_are_counted_from_the_last_marker(text: str) -> None:
    assume(re.search(r"\\\\\r?\n", text) is None)  # which goes on for C++, but not for the lexer
    lines = LineMap(text, "x.cu", Outside(text))
    file, number = "x.cu", 1
    directives = {t.start: t.text for t in tokens(text) if t.kind == "directive"}
    starts = [0, *(at + 1 for at, c in enumerate(text) if c == "\n")]
    expected = []
    for start in starts:
        expected.append((file, number))
        number += 1
        marker = _MARKER.fullmatch(directives.get(start, "").rstrip("\r"))
        if marker is not None:
            file, number = marker[2] or file, int(marker[1])
    found = [lines.place(start, "no such word") for start in starts]
    assert [(p.file, p.position.line) for p in found] == expected
    assert [lines.place(start, "no such word") for start in reversed(starts)] == found[::-1]
