"""The sums in a loop's source: variables that it updates by ``+=`` or ``-=``, for the clause ``reduce(+: ...)``.

A clause names variables, but names do not survive into PTX: there, a trial sees only that sums exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from cccopt.advising.source_loops import code_of, extent_of
from cccopt.ccc.function.annotations import Annotation
from cccopt.clauses import Kind
from cccopt.files import read_text
from cccopt.source.declarations import declares
from cccopt.source.statements import Code
from cccopt.source.variables import is_variable, whole
from cccopt.text import Place

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


def sums_of(
    kinds: Iterable[tuple[int, Kind]], outer: int, annotations: Mapping[int, Annotation]
) -> tuple[str, ...]:
    """The variables that the inner loops among some candidates (their ``kinds``, by number) sum up, and that a clause
    at the ``outer`` one can name.
    """
    loops = [annotations[number].place for number, kind in kinds if kind is Kind.FOR_VARIABLE]
    at = annotations[outer].place
    return sums_in([place for place in loops if place is not None], at) if at is not None else ()


def sums_in(loops: Iterable[Place], outer: Place) -> tuple[str, ...]:
    """The variables that ``loops`` sum up, in the order of the text; none if one of the loops is not in the text of
    ``outer`` (a loop or the name of a kernel), whose clause could not name its variables.
    """
    around = extent_of(outer)
    found: dict[str, None] = {}
    for loop in loops:
        inner = extent_of(loop)
        if around is None or inner is None or loop.file != outer.file:
            return ()
        if not around[0] <= inner[0] < around[1]:
            return ()
        found |= dict.fromkeys(_updated(code_of(read_text(loop.file)), *inner, around[0]))
    return tuple(found)


def _updated(code: Code, start: int, end: int, around: int) -> Iterator[str]:
    """The variables of floating-point types that the loop at ``start`` updates and does not declare; none if the text
    has no loop there because it comes from a macro.
    """
    word = code.text(start)
    if word not in ("for", "while", "do"):
        return
    body = code.after_head(start) if word != "do" else start + 1
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
