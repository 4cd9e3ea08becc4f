"""What is wrong with a matrix or graph file, by line and column.

Libraries read these files fast but say little about one that they cannot read: some do not name the line, and none
names the column. So this module goes through a refused file again, slowly, line by line, to find its first mistake.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple, NoReturn, TextIO, TypeVar, cast

import numpy as np

from cccopt.diagnostic import CccError, error
from cccopt.harness.csr.matrix import LIMIT
from cccopt.text import Place, Position, shortened

MATRIX_MARKET = "Matrix Market"
EDGES = "edge list"
DIMACS = "DIMACS shortest path"

UNPACKING = (EOFError, zlib.error, gzip.BadGzipFile)
"""What a damaged ``.gz`` raises."""

_HELP = {
    MATRIX_MARKET: "the file begins with a line such as `%%MatrixMarket matrix coordinate real general`; a line "
    "with the numbers of rows, columns and entries comes next, then one `row column value` per line, with rows and "
    "columns counted from 1",
    EDGES: "write one edge per line, `from to` or `from to value`, with vertices counted from 0; comments "
    "begin with `#` or `%`",
    DIMACS: "the file has one line `p sp VERTICES ARCS`, then one `a from to length` per line, with vertices "
    "counted from 1; comments begin with `c`",
}

_BANNER = (
    ("%%MatrixMarket",),
    ("matrix",),
    ("coordinate", "array"),
    ("real", "integer", "pattern"),
    ("general", "symmetric", "skew-symmetric", "hermitian"),
)


_Found = TypeVar("_Found")


class _Line(NamedTuple):
    """A line with its words and where each begins (0-based)."""

    number: int
    text: str
    words: list[str]
    starts: list[int]

    def fault(self, word: int, why: str) -> NoReturn:
        """Raise `_Fault` at a word, or at the end of the line if the word is missing."""
        column = self.starts[word] if word < len(self.starts) else len(self.text)
        raise _Fault(Position(self.number, column + 1), self.text, why)

    def whole(self, word: int, what: str, least: int, most: int) -> int:
        """The word as a whole number from ``least`` to ``most``, or `_Fault`, which calls the number ``what``."""
        text = self._word(word, what)
        if not re.fullmatch(r"[+-]?[0-9]{1,30}", text):
            self.fault(word, f"{what} is `{shortened(text)}`, which is not a whole number")
        if not least <= int(text) <= most:
            self.fault(word, f"{what} is {shortened(text)}, which is not between {least} and {most}")
        return int(text)

    def real(self, word: int) -> None:
        """Raise `_Fault` unless the word is a number that a float can hold."""
        text = self._word(word, "the value")
        try:
            number = float(text)
        except ValueError:
            self.fault(word, f"the value is `{shortened(text)}`, which is not a number")
        if not abs(number) <= float(np.finfo(np.float32).max):
            self.fault(word, f"the value is {shortened(text)}, which a float cannot hold")

    def end(self, words: int) -> None:
        """Raise `_Fault` if the line has more than ``words`` words."""
        if len(self.words) > words:
            self.fault(words, f"`{shortened(self.words[words])}` does not belong in a line of {words} words")

    def _word(self, word: int, what: str) -> str:
        if word >= len(self.words):
            self.fault(word, f"{what} is missing")
        return self.words[word]


class _Fault(Exception):
    def __init__(self, position: Position, line: str, why: str) -> None:
        super().__init__(why)
        self.position, self.line, self.why = position, line, why


def malformed(path: str, form: str, reason: str) -> CccError:
    """The error (CCC101) for a file that is not of ``form``; it gives ``reason`` if every line seems right."""
    try:
        with open_text(path) as stream:
            _CHECKS[form](_lines(stream))
    except _Fault as fault:
        return _error(path, form, fault)
    except UNPACKING as problem:
        return damaged(path, problem)
    return CccError(error("CCC101", _message(path, form), why=reason, help=_HELP[form]))


def damaged(path: str, problem: Exception) -> CccError:
    """The error (CCC101) for a file that cannot be unpacked."""
    return CccError(error("CCC101", f"cannot unpack `{path}`", why=str(problem), help="fetch the file again"))


def unknown_form(path: str, suffixes: tuple[str, ...]) -> CccError:
    """The error (CCC101) for a file whose name does not say what it holds."""
    try:
        with open_text(path) as stream:
            line = stream.readline().rstrip("\r\n")
    except UNPACKING as problem:
        return damaged(path, problem)
    return CccError(
        error(
            "CCC101",
            f"cannot tell what `{path}` holds",
            Place(path, Position(1), line),
            why="the suffix of the file name determines the format",
            help=f"rename it: {', '.join(f'`{s}`' for s in suffixes)} are read, each also with `.gz`"
            " appended",
        )
    )


def market_header(path: str) -> tuple[str, str, int]:
    """The format, the field and the number of header lines of a Matrix Market file. Raises `CccError` (CCC101)."""
    banner, size = _header(path, MATRIX_MARKET, _market)
    return banner.words[2].lower(), banner.words[3].lower(), size.number


def dimacs_header(path: str) -> tuple[int, int, int]:
    """The numbers of vertices and arcs, and of the lines up to the one that gives them. Raises `CccError` (CCC101)."""
    line = _header(path, DIMACS, _problem)
    return int(line.words[2]), int(line.words[3]), line.number


def _header(path: str, form: str, find: Callable[[Iterator[_Line]], _Found]) -> _Found:
    try:
        with open_text(path) as stream:
            return find(_lines(stream))
    except _Fault as fault:
        raise _error(path, form, fault) from fault


def _error(path: str, form: str, fault: _Fault) -> CccError:
    place = Place(path, fault.position, fault.line)
    return CccError(error("CCC101", _message(path, form), place, why=fault.why, help=_HELP[form]))


def _message(path: str, form: str) -> str:
    return f"cannot read `{path}` as {form}"


def open_text(path: str) -> TextIO:
    """The file's text, unpacked; bytes that are not UTF-8 are replaced."""
    opener = gzip.open if path.endswith(".gz") else open
    return cast(TextIO, opener(path, "rt", encoding="utf-8", errors="replace"))


def _lines(stream: TextIO) -> Iterator[_Line]:
    """The lines that are not blank. Raises `_Fault` if there are none."""
    empty = True
    for number, text in enumerate(stream, 1):
        words, starts = _words(text)
        if words:
            empty = False
            yield _Line(number, text.rstrip("\r\n"), words, starts)
    if empty:
        raise _Fault(Position(1), "", "the file is empty")


def _words(text: str) -> tuple[list[str], list[int]]:
    """The words of a text, and where each begins."""
    found = list(re.finditer(r"\S+", text))
    return [m[0] for m in found], [m.start() for m in found]


def _market(lines: Iterator[_Line]) -> tuple[_Line, _Line]:
    """The first line and the one with the numbers of rows, columns and entries."""
    banner = next(lines)
    for word, known in enumerate(_BANNER):
        if word >= len(banner.words) or banner.words[word].lower() not in [k.lower() for k in known]:
            banner.fault(word, f"expected {' or '.join(f'`{k}`' for k in known)}")
    if banner.words[0] != _BANNER[0][0]:
        banner.fault(0, f"this must be spelled `{_BANNER[0][0]}`, with these capitals")
    banner.end(5)
    size = next((line for line in lines if not line.text.startswith("%")), None)
    if size is None:
        banner.fault(5, "the line with the numbers of rows and columns is missing")
    for word, what in enumerate(("rows", "columns", "entries")[: 2 if _is_array(banner) else 3]):
        size.whole(word, f"the number of {what}", 0, LIMIT - 1)
    size.end(2 if _is_array(banner) else 3)
    return banner, size


def _is_array(banner: _Line) -> bool:
    return banner.words[2].lower() == "array"


def _check_market(lines: Iterator[_Line]) -> None:
    banner, size = _market(lines)
    field, symmetry = (word.lower() for word in banner.words[3:5])
    rows, columns = (int(word) for word in size.words[:2])
    if _is_array(banner):
        kept = {"general": rows * columns, "skew-symmetric": rows * (rows - 1) // 2}
        entries, indices = kept.get(symmetry, rows * (rows + 1) // 2), 0
    else:
        entries, indices = int(size.words[2]), 2
    count = 0
    for count, line in enumerate(lines, 1):
        if count > entries:
            line.fault(0, f"the file should end here: it has {entries} entries")
        if indices:
            line.whole(0, "the row", 1, rows)
            line.whole(1, "the column", 1, columns)
        if field == "integer":
            line.whole(indices, "the value", -(2**63), 2**63 - 1)
        elif field == "real":
            line.real(indices)
        line.end(indices + (field != "pattern"))
    if count < entries:
        size.fault(2 if indices else 0, f"there should be {entries} entries, but the file ends after {count}")


def _check_edges(lines: Iterator[_Line]) -> None:
    words = 0
    for line in map(_without_comment, lines):
        if not line.words:
            continue
        words = words or (3 if len(line.words) > 2 else 2)
        line.whole(0, "the vertex", 0, 2**63 - 1)
        line.whole(1, "the vertex", 0, 2**63 - 1)
        if words == 3:
            line.real(2)
        line.end(words)
    if not words:
        raise _Fault(Position(1), "", "there is no edge in it")


def _without_comment(line: _Line) -> _Line:
    words, starts = _words(re.split("[#%]", line.text, maxsplit=1)[0])
    return line._replace(words=words, starts=starts)


def _check_dimacs(lines: Iterator[_Line]) -> None:
    header = _problem(lines)
    vertices, arcs = int(header.words[2]), int(header.words[3])
    count = 0
    for line in lines:
        if line.words[0][0] == "c":
            continue
        if line.words[0] != "a":
            line.fault(0, "only lines with `a` and `c` may follow the one with `p`")
        count += 1
        if count > arcs:
            line.fault(0, f"the file should end here: it has {arcs} arcs")
        line.whole(1, "the vertex", 1, vertices)
        line.whole(2, "the vertex", 1, vertices)
        line.real(3)
        line.end(4)
    if count < arcs:
        header.fault(3, f"there should be {arcs} arcs, but the file ends after {count}")


def _problem(lines: Iterator[_Line]) -> _Line:
    """The line `p sp VERTICES ARCS`."""
    for line in lines:
        if line.words[0][0] == "c":
            continue
        if line.words[:2] != ["p", "sp"]:
            line.fault(0, "before any arc, a line `p sp VERTICES ARCS` says how many there are")
        line.whole(2, "the number of vertices", 0, LIMIT - 1)
        line.whole(3, "the number of arcs", 0, LIMIT - 1)
        line.end(4)
        return line
    raise _Fault(Position(1), "", "the line `p sp VERTICES ARCS` is missing")


_CHECKS: dict[str, Callable[[Iterator[_Line]], None]] = {
    MATRIX_MARKET: _check_market,
    EDGES: _check_edges,
    DIMACS: _check_dimacs,
}
