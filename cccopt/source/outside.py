"""Finds our pragmas in preprocessed text, and lines that surely begin outside all literals, without lexing.

Lexing takes 0.1 s for a megabyte. A line begins inside a token only if a raw string or a comment (present only under
``-C``) spans lines, or if a directive goes on after a backslash: strings and characters end on their line. ISO C++20
[lex]. Whatever looks like the beginning of such a token counts as one, so an answer may be "not sure" when a lexer
would be sure, never the other way round. Imports little, because each compilation of an annotated file pays for it
twice.
"""

from __future__ import annotations

import re

_HINT = re.compile(r"pragma[ \t]+ccc\b")
_PRAGMA = re.compile(r"[ \t]*#[ \t]*pragma[ \t]+ccc\b(?:[^\\\n]|\\(?:\r?\n|.))*")
_RAW_STRING = re.compile(r'R"([^()\\\s"]{0,16})\(')


class Outside:
    """What can be known about ``text`` without its tokens; offsets count characters."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._strings = _raw_strings(text)
        comment = text.find("/*")
        self._comments = comment if comment >= 0 else len(text)  # from here onwards

    def begins(self, line: int) -> bool:
        """Whether the line that begins at ``line`` surely begins outside all literals, comments and directives."""
        text = self._text
        if text.endswith(("\\\n", "\\\r\n"), 0, line):
            return False
        comment = text.rfind("/*", self._comments, line)
        if comment >= 0 and text.find("*/", comment + 2, line) < 0:
            return False
        return not any(start < line < end for start, end in self._strings)

    def pragmas(self) -> list[tuple[int, int]] | None:
        """Where the ``#pragma ccc`` directives begin and end, in order; None if that takes a lexer."""
        found = []
        for start in dict.fromkeys(self.line(hint) for hint in hints(self._text)):
            pragma = _PRAGMA.match(self._text, start)
            if pragma is None:
                continue
            if not self.begins(start):
                return None
            found.append(pragma.span())
        return found

    def around(self, first: int, last: int, reach: int) -> tuple[int, int]:
        """From about ``reach`` before ``first`` to about ``reach`` after ``last``, moved to the beginnings of lines; if
        no such line certainly begins outside all literals, to that end of the text.
        """
        text, start, end = self._text, 0, len(self._text)
        if first > reach and self.begins(line := self.line(first - reach)):
            start = line
        if (line := text.find("\n", last + reach) + 1) and self.begins(line):
            end = line
        return start, end

    def line(self, offset: int) -> int:
        """Where the line of ``offset`` begins."""
        return self._text.rfind("\n", 0, offset) + 1


def hints(text: str) -> list[int]:
    """The offsets of a word that every ``#pragma ccc`` contains; empty for most texts, which have no such pragma."""
    return [m.start() for m in _HINT.finditer(text)]


def _raw_strings(text: str) -> list[tuple[int, int]]:
    """Every raw string, and what looks like one: from its beginning to its end, or to that of the text."""
    found = []
    ends: dict[str, int] = {}
    for m in _RAW_STRING.finditer(text):
        last = f'){m[1]}"'
        if ends.get(last, -1) < m.end():
            end = text.find(last, m.end())
            ends[last] = len(text) if end < 0 else end + len(last)
        found.append((m.start(), ends[last]))
    return found
