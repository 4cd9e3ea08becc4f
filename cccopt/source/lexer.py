"""C++ tokens of preprocessed text: just enough to find statements, and exact about where quotes end.

Raw strings, string and character literals with prefixes and user suffixes, digit separators (``1'000``) and
directives (line markers, pragmas) are each one token, so that no brace or quote in them is taken for code.
ISO C++20 [lex].
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
_CCC_HINT = re.compile(r"pragma[ \t]+ccc\b")
_RAW_STRING = re.compile(r'R"([^()\\\s"]{0,16})\([\s\S]*?\)\1"')
_INCLUDE_MARKER = re.compile(r'# \d+ "[^\n]*" [12]\b[^\n]*$', re.MULTILINE)


class Token(NamedTuple):
    """One token: ``kind`` is the name of a group above, ``start`` and ``end`` are offsets into the text."""

    kind: str
    text: str
    start: int
    end: int


def tokens(text: str, start: int = 0) -> list[Token]:
    """The tokens of ``text`` from offset ``start``, which must be the start of a line outside any literal.

    Comments (there only under ``-C``) are left out.
    """
    return [
        Token(m.lastgroup or "", m.group(), m.start(), m.end())
        for m in _TOKEN.finditer(text, start)
        if m.lastgroup != "comment"
    ]


def may_hold_pragmas(text: str) -> bool:
    """False only where no ``#pragma ccc`` can be in ``text``; quick, because most texts hold none."""
    return _CCC_HINT.search(text) is not None


def ccc_pragma(token: Token) -> int | None:
    """The offset of the word ``ccc`` if ``token`` is a ``#pragma ccc`` directive, else None."""
    if token.kind != "directive":
        return None
    found = _CCC_PRAGMA.fullmatch(token.text)
    return None if found is None else token.start + found.start("body")


def start_of_interest(text: str) -> int:
    """Where lexing may begin: the last include boundary ahead of the first pragma, else 0.

    Headers make up most of a preprocessed text (12 MB with CUB) and hold no pragma. A line marker begins a
    line, so only a raw string could hold it, and in one it is no boundary.
    """
    first = _CCC_HINT.search(text)
    end = first.start() if first is not None else 0
    line = text.rfind("\n# ", 0, end)
    while line >= 0 and _INCLUDE_MARKER.match(text, line + 1, end) is None:
        line = text.rfind("\n# ", 0, line)
    start = line + 1
    in_raw_string = any(m.start() < start < m.end() for m in _RAW_STRING.finditer(text))
    return 0 if in_raw_string else start
