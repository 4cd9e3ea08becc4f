"""The statements of a loop's source that add to a variable."""

from __future__ import annotations

from collections.abc import Iterator

from cccopt.source.statements import Code
from cccopt.source.variables import is_variable

_BEFORE = frozenset({";", "{", "}", ")", "else", "do", ","})
_AFTER = frozenset({";", ",", ")"})


def body_of(code: Code, start: int) -> int | None:
    """Where the body of the loop at ``start`` begins; None if there is no loop."""
    word = code.text(start)
    if word not in ("for", "while", "do"):
        return None
    return code.after_head(start) if word != "do" else start + 1


def updated_by_sums(code: Code, start: int, end: int) -> Iterator[str]:
    """The variables of the statements ``name += ...`` and ``name -= ...`` between two tokens."""
    for index in range(start, end):
        if code.text(index) in ("+", "-") and code.text(index + 1) == "=":
            first = _begin(code, index - 1)
            yield from _variable(code, first, index, first)


def updated_by_steps(code: Code, start: int, end: int) -> Iterator[str]:
    """The variables of the statements ``++name``, ``name++``, ``--name`` and ``name--`` between two tokens."""
    for index in range(start, end):
        sign = code.text(index)
        if sign not in ("+", "-") or code.text(index + 1) != sign:
            continue
        if code.text(index + 2) in _AFTER:
            first = _begin(code, index - 1)
            yield from _variable(code, first, index, first)
        else:
            last = next((i for i in range(index + 2, end) if code.text(i) in _AFTER), end)
            yield from _variable(code, index + 2, last, index)


def _variable(code: Code, first: int, last: int, statement: int) -> Iterator[str]:
    """The variable that the tokens from ``first`` to before ``last`` spell, if the token ``statement`` begins one."""
    name = "".join(map(code.text, range(first, last)))
    if is_variable(name) and code.text(statement - 1) in _BEFORE:
        yield name


def _begin(code: Code, last: int) -> int:
    """Where the variable whose last token is ``last`` begins: ``a``, ``a.b``, ``a[0]``."""
    first = code.partners.get(last, last)
    if first < last:
        return _begin(code, first - 1)
    return _begin(code, last - 2) if code.text(last - 1) == "." else last


def declaration_of(code: Code, start: int, end: int, name: str) -> frozenset[str]:
    """The tokens before ``name`` in statements that may declare it, from ``start`` to ``end``."""
    found: set[str] = set()
    for index in range(end - 1, start - 1, -1):
        if code.text(index) == name:
            first = index
            while code.text(first - 1) not in (";", "{", "}", "(", ""):
                first -= 1
            words = {code.text(i) for i in range(first, index)}
            found |= set() if "=" in words else words
    return frozenset(found)
