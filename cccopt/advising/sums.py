"""The sums of a loop by its source: variables that it updates by ``+=`` or ``-=``, for the clause ``reduce(+: ...)``.

A clause names variables, and names do not survive into PTX: there a trial knows only that there are sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from cccopt.diagnostic import CccError
from cccopt.files import read_text
from cccopt.source.candidates import declaration_at
from cccopt.source.declarations import declares
from cccopt.source.functions import definition
from cccopt.source.lexer import tokens
from cccopt.source.statements import Code, Unbalanced
from cccopt.source.variables import is_variable, whole
from cccopt.text import Place, SourceText

_BEFORE = frozenset({";", "{", "}", ")", "else", "do", ","})
_INTEGERS = frozenset(
    {
        "int",
        "unsigned",
        "signed",
        "long",
        "short",
        "char",
        "bool",
        "size_t",
        "ptrdiff_t",
        "uint",
        "ushort",
        "uchar",
    }
    | {f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)


def sums_in(loops: Iterable[Place], outer: Place) -> tuple[str, ...]:
    """The variables that ``loops`` sum up, in the order of the text; none where one of them does not occur in the
    text of ``outer``, a loop or the name of a kernel, whose clause could not name it.
    """
    around = _extent(outer)
    found: dict[str, None] = {}
    for loop in loops:
        inner = _extent(loop)
        if around is None or inner is None or loop.file != outer.file:
            return ()
        if not around[0] <= inner[0] < around[1]:
            return ()
        found |= dict.fromkeys(_updated(_code(read_text(loop.file)), *inner, around[0]))
    return tuple(found)


def _updated(code: Code, start: int, end: int, around: int) -> Iterator[str]:
    """The variables of floating-point types that the loop at ``start`` updates and does not declare."""
    body = code.after_head(start) if code.text(start) != "do" else start + 1
    for index in range(body, end):
        if code.text(index) in ("+", "-") and code.text(index + 1) == "=":
            first = _begin(code, index - 1)
            name = "".join(code.text(i) for i in range(first, index))
            if not is_variable(name) or code.text(first - 1) not in _BEFORE:
                continue
            if not declares(code, body, end, whole(name)) and not _is_whole_number(
                code, around, start, whole(name)
            ):
                yield name


def _begin(code: Code, last: int) -> int:
    """Where the variable whose last token is ``last`` begins: ``a``, ``a.b``, ``a[0]``."""
    first = code.partners.get(last, last)
    if first < last:
        return _begin(code, first - 1)
    return _begin(code, last - 2) if code.text(last - 1) == "." else last


def _is_whole_number(code: Code, start: int, end: int, name: str) -> bool:
    """Whether the last declaration of ``name`` before ``end`` says that it is an integer or a pointer."""
    for index in range(end - 1, start - 1, -1):
        if code.text(index) == name:
            first = index
            while code.text(first - 1) not in (";", "{", "}", "(", ""):
                first -= 1
            words = {code.text(i) for i in range(first, index)}
            if words & {*_INTEGERS, "*"} and "=" not in words:
                return True
    return False


def _extent(place: Place) -> tuple[int, int] | None:
    """The code tokens of the loop, or of the body of the function whose name is, at ``place``; None where there is none
    in the text: it is of a macro.
    """
    try:
        text = read_text(place.file)
        code = _code(text)
        offset = SourceText(place.file, text).offset(place.position)
        index = next((i for i, t in enumerate(code.tokens) if t.start == offset), None)
        if index is None:
            return None
        if code.text(index) in ("for", "while", "do"):
            return index, code.statement_end(index)
        found = definition(code, declaration_at(code, index))
        return None if found is None else (found.body, code.after_bracket(found.body))
    except (CccError, Unbalanced):
        return None


@lru_cache(maxsize=8)
def _code(text: str) -> Code:
    return Code([t for t in tokens(text) if t.kind != "directive"])
