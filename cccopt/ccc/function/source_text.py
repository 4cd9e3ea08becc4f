"""The user's source, as far as messages quote it."""

from __future__ import annotations

from pathlib import Path

from cccopt.text import SourceText


def source_text(file: str) -> SourceText:
    """The text of ``file``; empty if it no longer exists."""
    path = Path(file)
    try:
        # A device file, for example, might never end.
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    except OSError:
        text = ""
    return SourceText(file, text)
