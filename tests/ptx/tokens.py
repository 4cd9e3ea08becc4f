"""A tokenizer that shares nothing with the grammar: what the round-trip tests compare."""

from __future__ import annotations

import re

_PIECES = re.compile(r'"[^"]*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TOKENS = re.compile(r'"[^"]*"|// ccc [^\n]*|[\w$%]+|\S')


def tokens(text: str) -> list[str]:
    """Words, punctuation, strings and markers of PTX, without white space and comments."""

    def keep(match: re.Match[str]) -> str:
        piece = match[0]
        return piece.rstrip() if piece.startswith(('"', "// ccc ")) else " "

    return _TOKENS.findall(_PIECES.sub(keep, text.removeprefix("\ufeff")))
