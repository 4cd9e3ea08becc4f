"""Text with positions: what parsers read and diagnostics point into."""

from __future__ import annotations

from dataclasses import dataclass

QUOTED = 160
"""The most characters that a diagnostic quotes of one line."""

_STEP = 1 << 16  # characters that are searched at a time for a line


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a text; ``line`` and ``column`` count from 1."""

    line: int
    column: int = 1


@dataclass(frozen=True, slots=True)
class SourceText:
    """A named text whose lines can be quoted. No index is kept: texts may be large, and queries are few."""

    name: str
    text: str

    def position(self, offset: int) -> Position:
        """The position of the character at ``offset`` (0-based)."""
        start = self.text.rfind("\n", 0, offset) + 1
        return Position(self.text.count("\n", 0, offset) + 1, offset - start + 1)

    def offset(self, position: Position) -> int:
        """The offset (0-based) of the character at ``position``; past the end for a line that does not exist."""
        start = self._start(position.line)
        return len(self.text) if start is None else start + position.column - 1

    def line(self, number: int) -> str:
        """Line ``number`` without its end, or an empty string past the end of the text."""
        start, stop = self._extent(number)
        return self.text[start:stop]

    def place(self, position: Position) -> Place:
        """``position`` as a diagnostic points at it: with its line, or with the part of a long line around it."""
        start, stop = self._extent(position.line)
        first, last = _around(stop - start, position.column)
        line = self.text[start + first : start + last]
        return Place(self.name, position, *_marked(line, first, last < stop - start))

    def _extent(self, number: int) -> tuple[int, int]:
        """Where line ``number`` begins and ends; an empty range for a line that does not exist."""
        start = self._start(number)
        if start is None:
            return 0, 0
        stop = self.text.find("\n", start)
        stop = len(self.text) if stop < 0 else stop
        while stop > start and self.text[stop - 1] == "\r":
            stop -= 1
        return start, stop

    def _start(self, number: int) -> int | None:
        if number < 1:
            return None
        before, start = number - 1, 0
        while before and start < len(self.text):
            ends = self.text.count("\n", start, start + _STEP)
            if ends >= before:
                break
            before, start = before - ends, start + _STEP
        for _ in range(before):
            start = self.text.find("\n", start) + 1
            if start == 0:
                return None
        return start


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a named file, with the line itself when it is known: what a diagnostic points at.

    For a long line, ``line_text`` holds a part: its first character is ``skipped`` columns into the line.
    """

    file: str
    position: Position
    line_text: str = ""
    skipped: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.position.line}:{self.position.column}"

    def quoted(self) -> tuple[str, int]:
        """The part of the line to print, at most `QUOTED` characters, and the place (0-based) of the column in it."""
        at = self.position.column - 1 - self.skipped
        first, last = _around(len(self.line_text), at + 1)
        text, skipped = _marked(self.line_text[first:last], first, last < len(self.line_text))
        return text, at - skipped


_MORE = "..."


def shortened(text: str, most: int = 60) -> str:
    """``text``, or the beginning of a long one, in ``most`` characters, for use in a message."""
    return text if len(text) <= most else text[: most - len(_MORE)] + _MORE


def _around(length: int, column: int) -> tuple[int, int]:
    """The part (half-open, 0-based) of a line of ``length`` characters to quote for its ``column``."""
    if length <= QUOTED:
        return 0, length
    room = QUOTED - 2 * len(_MORE)
    first = min(max(column - 1 - room // 2, 0), length - room)
    first = 0 if first <= len(_MORE) else first
    return first, first + room


def _marked(line: str, first: int, more: bool) -> tuple[str, int]:
    """A part of a line that begins at ``first``, with dots for what is left out, and where the result begins."""
    text = line + (_MORE if more else "")
    return (_MORE + text, first - len(_MORE)) if first else (text, 0)


def quantity(number: int, noun: str, plural: str = "") -> str:
    """A number and what it counts: ``1 byte``, ``1,024 bytes``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
