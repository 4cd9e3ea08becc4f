"""The sums in a loop's source: variables that it updates by ``+=`` or ``-=``, for the clause ``reduce(+: ...)``. For
those over the iterations of the marked loop, see `cccopt.advising.totals`.

A clause names variables, but names do not survive into PTX: there, a trial sees only that sums exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from cccopt.advising.source_loops import code_of, extent_of
from cccopt.advising.totals import totals_in
from cccopt.advising.updates import body_of, declaration_of, updated_by_sums
from cccopt.ccc.function.annotations import Annotation
from cccopt.clauses import Kind
from cccopt.files import read_text
from cccopt.source.declarations import declares
from cccopt.source.statements import Code
from cccopt.source.variables import whole
from cccopt.text import Place

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
    kinds: Iterable[tuple[int, Kind]],
    outer: int,
    annotations: Mapping[int, Annotation],
    *,
    over_iterations: bool = False,
) -> tuple[str, ...]:
    """The variables that the inner loops among some candidates (their ``kinds``, by number) sum up, and that a clause
    at the ``outer`` one can name. With ``over_iterations``, also those of `totals_in`.
    """
    loops = [annotations[number].place for number, kind in kinds if kind is Kind.FOR_VARIABLE]
    at = annotations[outer].place
    if at is None:
        return ()
    inner = sums_in([place for place in loops if place is not None], at)
    return tuple(dict.fromkeys((*inner, *totals_in(at)))) if over_iterations else inner


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
    body = body_of(code, start)
    if body is None:
        return
    for name in updated_by_sums(code, body, end):
        if declares(code, body, end, whole(name)):
            continue
        if not declaration_of(code, around, start, whole(name)) & {*_INTEGERS, "*"}:
            yield name
