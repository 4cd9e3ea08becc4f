"""The annotations in the thesis' spelling (``#CCC if``, section 4.1), which no preprocessor accepts."""

from __future__ import annotations

import re

from cccopt.diagnostic import Diagnostic, error
from cccopt.source.lexer import tokens
from cccopt.text import Place, SourceText

_THESIS = re.compile(r"[ \t]*#[ \t]*(?P<word>[Cc][Cc][Cc])\b[ \t]*(?P<rest>[^\r\n]*)")


def thesis_annotations(text: str, name: str) -> tuple[Diagnostic, ...]:
    """An error (CCC017) for each ``#CCC`` line of a source file as written, with the pragma to write instead.

    The thesis' ``for const``, a loop that all lanes iterate in the same way, is plain ``for`` here.
    """
    source = SourceText(name, text)
    found = []
    for token in tokens(text):
        line = _THESIS.match(token.text) if token.kind == "directive" else None
        if line is None:
            continue
        position = source.position(token.start + token.text.index("#"))
        rest = re.sub(r"^for\s+const\b", "for", line["rest"].split("//")[0].strip())
        found.append(
            error(
                "CCC017",
                f"`#{line['word']}` is the thesis' spelling, which is not C++",
                Place(name, position, source.line(position.line)),
                why="the preprocessor rejects unknown directives",
                help=f'write `#pragma ccc {rest}`, or `_Pragma("ccc {rest}")` in a macro',
            )
        )
    return tuple(found)
