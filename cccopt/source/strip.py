"""The text without our pragmas, for the host's half of a program, and for cicc if nothing is rewritten."""

from __future__ import annotations

from cccopt.source.outside import Outside, hints


def strip(text: str) -> str:
    """``text`` without its ``#pragma ccc`` lines, whatever they say; the lines stay as empty lines."""
    if not hints(text):
        return text
    found = Outside(text).pragmas()
    if found is None:
        from cccopt.source.lexer import pragmas  # takes 6 ms, which few texts need

        found = pragmas(text)
    pieces: list[str] = []
    done = 0
    for start, end in found:
        pieces += [text[done:start], blank(text[start:end])]
        done = end
    return "".join([*pieces, text[done:]])


def blank(directive: str) -> str:
    """What replaces a directive, so that all lines keep their numbers."""
    return "\n" * directive.count("\n")
