"""Loops and kernels of candidates in the text of their source."""

from __future__ import annotations

from functools import lru_cache

from cccopt.diagnostic import CccError
from cccopt.files import read_text
from cccopt.source.candidates import declaration_at
from cccopt.source.functions import definition
from cccopt.source.lexer import tokens
from cccopt.source.statements import Code, Unbalanced
from cccopt.text import Place, SourceText


def extent_of(place: Place) -> tuple[int, int] | None:
    """The code tokens of the loop at ``place``, or of the body of the function whose name is there; None if it is not
    in the text because it comes from a macro.
    """
    try:
        code, index = token_at(place)
        if index is None:
            return None
        if code.text(index) in ("for", "while", "do"):
            return index, code.statement_end(index)
        found = definition(code, declaration_at(code, index))
        return None if found is None else (found.body, code.after_bracket(found.body))
    except (CccError, Unbalanced):
        return None


def token_at(place: Place) -> tuple[Code, int | None]:
    """The tokens of a file, and the index of the one at ``place``, or None if none begins there. Raises CccError for a
    file that cannot be read.
    """
    text = read_text(place.file)
    code = code_of(text)
    offset = SourceText(place.file, text).offset(place.position)
    return code, next((i for i, t in enumerate(code.tokens) if t.start == offset), None)


@lru_cache(maxsize=8)
def code_of(text: str) -> Code:
    """The tokens of a file."""
    return Code([t for t in tokens(text) if t.kind != "directive"])
