"""The text without our pragmas: what the host's half of a program, and cicc where nothing is rewritten, gets.

It imports little, because each compilation of an annotated file pays for it twice.
"""

from __future__ import annotations

from cccopt.source.lexer import Token, ccc_pragma, may_hold_pragmas, start_of_interest, tokens


def strip(text: str) -> str:
    """``text`` without its ``#pragma ccc`` lines, whatever they say; the lines stay, empty."""
    if not may_hold_pragmas(text):
        return text
    pieces: list[str] = []
    done = 0
    for token in tokens(text, start_of_interest(text)):
        if ccc_pragma(token) is not None:
            pieces += [text[done : token.start], blank(token)]
            done = token.end
    return "".join([*pieces, text[done:]])


def blank(directive: Token) -> str:
    """What takes a directive's place, so that all lines keep their numbers."""
    return "\n" * directive.text.count("\n")
