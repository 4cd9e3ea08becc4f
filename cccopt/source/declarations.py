"""Whether a piece of a function's body declares a variable, judging by its tokens.

    float a = 0, sum = 0;       declares `sum`: two words begin the statement, and no bracket opens before the name
    sum += f(x);                does not
    for (float sum = 0; ...)    does

ISO C++20 [dcl.pre], [stmt.dcl]. Types are not known here: `a * sum;`, a statement that does nothing, is taken for a
declaration.
"""

from __future__ import annotations

from cccopt.source.statements import Code

# fmt: off
_NO_TYPES = frozenset((
    "if", "else", "for", "while", "do", "switch", "case", "default", "return", "goto", "break", "continue", "throw",
    "delete", "new", "sizeof", "asm", "using",
))
# fmt: on


def declares(code: Code, start: int, end: int, name: str) -> bool:
    """Whether a statement of the tokens from ``start`` to ``end`` declares ``name``."""
    return any(code.text(i) == name and _is_declared_at(code, start, i) for i in range(start, end))


def _is_declared_at(code: Code, start: int, index: int) -> bool:
    if not (_is_word(code, index - 1) or code.text(index - 1) in ("*", "&", ">", ",")):
        return False
    first = _statement(code, start, index)
    if not _is_word(code, first) or code.text(first) in _NO_TYPES or first == index:
        return False
    following = code.text(first + 1)
    return _is_word(code, first + 1) or following in ("*", "&", "<", "::")


def _statement(code: Code, start: int, index: int) -> int:
    """The first token of the statement or head of a `for` that contains ``index`` outside of other brackets; ``index``
    itself if it is in an expression in brackets.
    """
    at = index - 1
    while at >= start and code.text(at) not in (";", "{", "}"):
        if code.text(at) in ("(", "["):
            return at + 1 if code.text(at - 1) == "for" else index
        at = code.partners.get(at, at) - 1 if code.text(at) in (")", "]") else at - 1
    return at + 1


def _is_word(code: Code, index: int) -> bool:
    return 0 <= index < len(code.tokens) and code.tokens[index].kind == "word"
