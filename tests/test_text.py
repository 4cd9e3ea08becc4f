"""Places in texts, and what diagnostics quote of them."""

from __future__ import annotations

import pytest

from cccopt.diagnostic import error, render
from cccopt.text import QUOTED, Place, Position, SourceText, shortened

TEXT = SourceText("x", "one\r\ntwo\n\nfour")


@pytest.mark.parametrize(
    ("offset", "line", "column"),
    [(0, 1, 1), (4, 1, 5), (5, 2, 1), (8, 2, 4), (9, 3, 1), (10, 4, 1), (13, 4, 4)],
)
def test_positions(offset: int, line: int, column: int) -> None:
    assert TEXT.position(offset) == Position(line, column)


@pytest.mark.parametrize(
    ("number", "line"), [(-1, ""), (0, ""), (1, "one"), (2, "two"), (3, ""), (4, "four"), (5, ""), (99, "")]
)
def test_lines(number: int, line: str) -> None:
    assert TEXT.line(number) == line
    assert TEXT.place(Position(number, 2)).line_text == line


def test_lines_of_a_large_text() -> None:
    lines = [f"{n} " * (n % 50) for n in range(20_000)]
    source = SourceText("x", "\n".join(lines))
    for number in (1, 2, 777, 12_345, 19_999, 20_000):
        assert source.line(number) == lines[number - 1]
    assert source.line(20_001) == ""


@pytest.mark.parametrize("column", [1, 2, 70, 78, 100, 500, 920, 960, 999, 1000])
@pytest.mark.parametrize("cut", [False, True])
def test_a_long_line_is_quoted_around_its_column(column: int, cut: bool) -> None:
    line = "".join(chr(0x4E00 + n) for n in range(1000))
    place = SourceText("x", f"a\n{line}\nb").place(Position(2, column))
    assert len(place.line_text) <= QUOTED
    place = place if cut else Place("x", Position(2, column), line)
    *_, quoted, caret = render(error("CCC001", "wrong", place)).split("\n")
    assert len(quoted) <= QUOTED + 5
    assert quoted[caret.index("^")] == line[column - 1]
    assert ("| ..." in quoted, quoted.endswith("...")) == (column > 90, column < 930)


def test_a_column_behind_the_end_of_a_line() -> None:
    *_, quoted, caret = render(error("CCC001", "wrong", TEXT.place(Position(2, 4)))).split("\n")
    assert (quoted, caret.index("^")) == (" 2 | two", len(quoted))


def test_what_terminals_would_obey_or_cannot_print_is_replaced() -> None:
    line = "a\x1b[2J\tb\udce9\0c"
    assert "| a\ufffd[2J\tb\ufffd\ufffdc" in render(
        error("CCC001", "wrong", Place("x", Position(1, 1), line))
    )


def test_shortened() -> None:
    assert shortened("a" * 60) == "a" * 60
    assert shortened("a" * 61) == "a" * 57 + "..."
