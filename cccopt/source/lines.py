"""Maps offsets in preprocessed text to the user's files, with the line markers that the preprocessor left."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from cccopt.source.lexer import tokens
from cccopt.source.outside import Outside
from cccopt.text import Place, Position, SourceText

_MARKER = re.compile(
    r'[ \t]*(?P<hash>#)[ \t]*(?:line[ \t]+)?(?P<line>\d+)(?:[ \t]+"(?P<file>(?:[^"\\]|\\.)*)")?.*(?<!\\)'
)
_ESCAPE = re.compile(r"\\([0-7]{1,3}|.)")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|/\*.*?\*/|//.*')
_CONTROL = {"n": 10, "t": 9, "r": 13, "a": 7, "b": 8, "f": 12, "v": 11}


def is_line_marker(line: str) -> bool:
    """Whether it says where the next line comes from."""
    return _MARKER.fullmatch(line.rstrip("\r\n")) is not None


class _Origin(NamedTuple):
    """The line that begins at ``offset`` of the text is number ``line`` of ``file``."""

    offset: int
    file: str
    line: int


@dataclass(frozen=True)
class LineMap:
    """Places in the user's files for offsets in ``text``, a preprocessed file called ``name``.

    ``outside`` knows which of its lines begin outside literals. The user's files are opened only to quote a line as it
    was written and to find a word's column in it; if one cannot be read, the preprocessed line is used.
    """

    text: str
    name: str
    outside: Outside
    _files: dict[str, SourceText | None] = field(default_factory=dict)
    _asked: list[tuple[int, _Origin]] = field(default_factory=list)

    @property
    def main(self) -> str:
        """The file that is compiled, as opposed to those that it includes."""
        first = _MARKER.fullmatch(self.text.partition("\n")[0].rstrip("\r"))
        return self.name if first is None or first["file"] is None else _unescaped(first["file"])

    def _origin(self, offset: int) -> _Origin:
        """What the last marker before ``offset`` says."""
        low, origin = self._asked[-1] if self._asked else (0, _Origin(0, self.name, 1))
        if low > offset:
            low, origin = 0, _Origin(0, self.name, 1)
        found = []
        for after, marker in self._markers(low, offset):
            found.append((after, marker))
            if marker["file"] is not None:
                break
        for after, marker in reversed(found):
            file = origin.file if marker["file"] is None else _unescaped(marker["file"])
            origin = _Origin(after, file, int(marker["line"]))
        self._asked[:] = [(offset, origin)]  # the next query is about later text
        return origin

    def _markers(self, low: int, high: int) -> Iterator[tuple[int, re.Match[str]]]:
        """The line markers between two offsets, last first, and where the lines after them begin."""
        text = self.text
        while (high := text.rfind("#", low, high)) >= 0:
            start, stop = self.outside.line(high), text.find("\n", high)
            stop = len(text) if stop < 0 else stop
            marker = _MARKER.fullmatch(text[start:stop].rstrip("\r"))
            if marker is not None and start + marker.start("hash") == high and self._is_directive(start):
                yield stop + 1, marker

    def _is_directive(self, line: int) -> bool:
        return self.outside.begins(line) or line in self._directives

    @cached_property
    def _directives(self) -> frozenset[int]:
        """Where directives begin, needed for lines that may be in a raw string or comment."""
        return frozenset(t.start for t in tokens(self.text) if t.kind == "directive")

    def place(self, offset: int, word: str) -> Place:
        """The place of ``word``, which is at ``offset`` of the text, in the user's file.

        The preprocessor keeps lines but not always columns (macros, runs of blanks, tabs): the column is that
        of the same occurrence of ``word`` in the user's line.
        """
        origin = self._origin(offset)
        file, line = origin.file, origin.line + self.text.count("\n", origin.offset, offset)
        start = self.text.rfind("\n", 0, offset) + 1
        stop = self.text.find("\n", offset)
        printed = self.text[start : len(self.text) if stop < 0 else stop].rstrip("\r")
        written = self._source_line(file, line)
        if written is None:
            return Place(file, Position(line, offset - start + 1), printed)
        # A word of the code is not sought in comments and strings, including `_Pragma("ccc if")`.
        sought = written if printed.lstrip().startswith("#") else _QUOTED.sub(_blanks, written)
        column = _column(sought, word, offset - start, _occurrences(word, printed[: offset - start]))
        return Place(file, Position(line, column), written)

    def _source_line(self, file: str, line: int) -> str | None:
        if file not in self._files:
            self._files[file] = _read(file)
        source = self._files[file]
        text = "" if source is None else source.line(line)
        return text if text.strip() else None


def _column(line: str, word: str, expected: int, before: int) -> int:
    if line.startswith(word, expected):
        return expected + 1
    found = [m.start() for m in _whole(word).finditer(line)]
    if before < len(found):
        return found[before] + 1
    return len(line) - len(line.lstrip()) + 1


def _blanks(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _occurrences(word: str, line: str) -> int:
    return len(_whole(word).findall(line))


def _whole(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")


def _read(file: str) -> SourceText | None:
    try:
        return SourceText(file, Path(file).read_text(encoding="utf-8", errors="replace"))
    except (OSError, ValueError):
        return None  # "<built-in>", a moved file, a name no path can have


def _unescaped(name: str) -> str:
    """A line marker's file name, unescaped: backslash, quote and octal bytes (which gcc writes for non-ASCII ones)."""

    def byte(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] in "01234567":
            return chr(0xDC00 + int(code, 8)) if int(code, 8) > 127 else chr(int(code, 8))
        return chr(_CONTROL.get(code, ord(code)))

    return _ESCAPE.sub(byte, name).encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
