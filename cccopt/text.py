"""Text with positions: what parsers read and diagnostics point into."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a text; ``line`` and ``column`` count from 1."""

    line: int
    column: int = 1


@dataclass(frozen=True)
class SourceText:
    """A named text whose lines can be quoted."""

    name: str
    text: str

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(i + 1 for i, c in enumerate(self.text) if c == "\n")]

    def position(self, offset: int) -> Position:
        """The position of the character at ``offset`` (0-based)."""
        line = bisect_right(self._starts, offset)
        return Position(line, offset - self._starts[line - 1] + 1)

    def line(self, number: int) -> str:
        """Line ``number`` without its end, or an empty string past the end of the text."""
        if not 1 <= number <= len(self._starts):
            return ""
        start = self._starts[number - 1]
        stop = self._starts[number] - 1 if number < len(self._starts) else len(self.text)
        return self.text[start:stop].rstrip("\r")


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a named file, with the line itself when it is known: what a diagnostic points at."""

    file: str
    position: Position
    line_text: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.position.line}:{self.position.column}"
