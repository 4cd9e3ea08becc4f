"""C++ tokens of preprocessed text: just enough to find statements, and exact about where quotes end.

Raw strings, string and character literals with their prefixes, numbers with digit separators (``1'000``) and directives
(line markers, pragmas) are each one token. So no brace or quote in them is taken for code. The user suffix of a literal
is a word of its own. ISO C++20 [lex].
"""

from __future__ import annotations

import re
from typing import NamedTuple

_TOKEN = re.compile(
    r"""
    (?P<directive>^[ \t]*\#(?:[^\\\n]|\\(?:\r?\n|.))*)
  | (?P<comment>//[^\n]*|/\*[\s\S]*?\*/)
  | (?P<raw>(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s"]{0,16})\([\s\S]*?\)(?P=delimiter)")
  | (?P<string>(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*")
  | (?P<character>(?:u8|[uUL])?'(?:[^'\\\n]|\\.)*')
  | (?P<word>[A-Za-z_$\x80-\U0010ffff][\w$]*)
  | (?P<number>\.?[0-9](?:[eEpP][+-]|'?[\w.])*)
  | (?P<punctuator>::|[^\s])
    """,
    re.VERBOSE | re.MULTILINE,
)
_CCC_PRAGMA = re.compile(r"[ \t]*#[ \t]*pragma[ \t]+(?P<body>ccc\b[\s\S]*)")


class Token(NamedTuple):
    """One token: ``kind`` is the name of a group above, ``start`` and ``end`` are offsets into the text."""

    kind: str
    text: str
    start: int
    end: int


def tokens(text: str, start: int = 0, end: int | None = None, *, keep_comments: bool = False) -> list[Token]:
    """The tokens of ``text`` from ``start`` to ``end``, the offsets of lines that begin outside any token, or of the
    text's ends.

    Comments (present only under ``-C``) are left out unless ``keep_comments``.
    """
    return [
        Token(m.lastgroup or "", m.group(), m.start(), m.end())
        for m in _TOKEN.finditer(text, start, len(text) if end is None else end)
        if keep_comments or m.lastgroup != "comment"
    ]


def ccc_pragma(token: Token) -> int | None:
    """The offset of the word ``ccc`` if ``token`` is a ``#pragma ccc`` directive, else None."""
    if token.kind != "directive":
        return None
    found = _CCC_PRAGMA.fullmatch(token.text)
    return None if found is None else token.start + found.start("body")


def pragmas(text: str) -> list[tuple[int, int]]:
    """Where the ``#pragma ccc`` directives of ``text`` begin and end, in order."""
    return [(t.start, t.end) for t in tokens(text) if ccc_pragma(t) is not None]
