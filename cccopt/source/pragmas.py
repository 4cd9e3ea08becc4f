"""Parses one ``#pragma ccc`` line into its kind and clauses (DESIGN 3); every word is checked against `cccopt.clauses`.

Diagnostics: CCC010 unknown word, CCC011 a malformed clause, CCC015 clauses that contradict, repeat or do
not belong to the pragma.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches

from cccopt.clauses import BY_WORD, Clauses, Kind
from cccopt.diagnostic import CccError, Diagnostic, error
from cccopt.source.variables import is_variable, without_blanks
from cccopt.text import Place

_KINDS = tuple(Kind)
_MODES = ("always", "auto", "off")
_REDUCTIONS = frozenset({"+", "*", "min", "max", "&", "|", "^", "="})
_MOST_THREADS = 1024  # of a block (CUDA C++ Programming Guide, compute capabilities); z is limited to 64
_MOST_IN_Z = 64
_MOST_DIGITS = 6
_FUNCTION = re.compile(r"(?:::)?[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*", re.ASCII)

Locate = Callable[[int, str], Place]
"""The place of a word at an offset in the pragma's text."""


class SourceError(CccError):
    """The annotations of a translation unit cannot be used; carries one diagnostic per mistake."""


@dataclass(frozen=True, slots=True)
class CccPragma:
    """A parsed pragma; ``kind`` is the first column of DESIGN 3's table without ``#pragma ccc``."""

    kind: Kind
    clauses: Clauses


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of the pragma with the text between its parentheses, None if it has none."""

    text: str
    offset: int
    argument: str | None


def parse_pragma(body: str, locate: Locate) -> CccPragma:
    """Parse ``ccc KIND CLAUSE ...``; raises `SourceError` at the first mistake."""
    words = list(_words(body, locate))[1:]
    kind, rest = _kind(words, body, locate)
    clauses = Clauses()
    seen: dict[str, _Word] = {}
    for word in rest:
        place = locate(word.offset, word.text)
        _check_word(word, kind, seen, place)
        seen[_key(word)] = word
        clauses = _PARSERS[word.text](clauses, word, place)
    return CccPragma(kind, clauses)


def _words(body: str, locate: Locate) -> Iterator[_Word]:
    offset = 0
    while (found := re.compile(r"(?:\\\r?\n|\s)*([A-Za-z_]\w*|\S)").match(body, offset)) is not None:
        text, start, offset = found[1], found.start(1), found.end()
        opening = re.compile(r"\s*\(").match(body, offset)
        if opening is None:
            yield _Word(text, start, None)
            continue
        closing = _closing(body, opening.end())
        if closing < 0:
            problem = f"the parenthesis after `{text}` is not closed"
            raise _refused(error("CCC011", problem, locate(start, text), help="add a `)` on the same line"))
        yield _Word(text, start, body[opening.end() : closing].strip())
        offset = closing + 1


def _closing(body: str, offset: int) -> int:
    depth = 1
    for index in range(offset, len(body)):
        depth += (body[index] == "(") - (body[index] == ")")
        if depth == 0:
            return index
    return -1


def _kind(words: list[_Word], body: str, locate: Locate) -> tuple[Kind, list[_Word]]:
    if not words:
        raise _refused(
            error(
                "CCC010",
                "`#pragma ccc` does not say what it applies to",
                locate(0, "ccc"),
                help=f"write one of {_listed(_KINDS)} after `ccc`",
            )
        )
    kind = words[0].text
    if kind not in _KINDS:
        raise _refused(_unknown("pragma", words[0], _KINDS, locate(words[0].offset, kind)))
    if words[0].argument is not None:
        problem = f"`{kind}` takes no argument here"
        raise _refused(
            error("CCC011", problem, locate(words[0].offset, kind), help=f"write `#pragma ccc {kind}` alone")
        )
    if kind == Kind.FOR and len(words) > 1 and words[1].text == "variable":
        return Kind.FOR_VARIABLE, words[2:]
    return Kind(kind), words[1:]


def _check_word(word: _Word, kind: Kind, seen: dict[str, _Word], place: Place) -> None:
    if word.text not in _PARSERS:
        known = ("variable", *_PARSERS) if kind is Kind.FOR and not seen else tuple(_PARSERS)
        raise _refused(_unknown("clause", word, known, place))
    if _key(word) in seen and word.text != "reduce":
        earlier = seen[_key(word)].text
        problem = (
            f"`{word.text}` contradicts `{earlier}`"
            if earlier != word.text
            else f"`{word.text}` is given twice"
        )
        raise _refused(error("CCC015", problem, place, help="keep one of them"))
    form = BY_WORD[word.text].form
    if not form and word.argument is not None:
        problem = f"`{word.text}` takes no argument"
        raise _refused(error("CCC011", problem, place, help=f"write `{word.text}` alone"))
    if form and not word.argument:
        problem = f"`{word.text}` needs an argument"
        raise _refused(error("CCC011", problem, place, help=f"write `{form}`"))
    if kind not in BY_WORD[word.text].kinds:
        why, help_text = _ELSEWHERE[word.text]
        problem = f"`{word.text}` does not belong to `#pragma ccc {kind}`"
        raise _refused(error("CCC015", problem, place, why=why, help=help_text))


def _key(word: _Word) -> str:
    """What words that exclude each other have in common."""
    return "mode" if word.text in _MODES else word.text.removeprefix("no")


def _independent(clauses: Clauses, word: _Word, place: Place) -> Clauses:
    return replace(clauses, independent=True)


def _hoist(clauses: Clauses, word: _Word, place: Place) -> Clauses:
    return replace(clauses, hoist=word.text == "hoist")


def _in_lane(clauses: Clauses, word: _Word, place: Place) -> Clauses:
    return replace(clauses, in_lane=True)


def _mode(clauses: Clauses, word: _Word, place: Place) -> Clauses:
    return replace(clauses, mode=word.text)


def _name(clauses: Clauses, word: _Word, place: Place) -> Clauses:
    if not _is_identifier(_argument(word)):
        raise _refused(
            _bad_argument(
                word,
                place,
                "a name consists of letters, digits and underscores, and does not begin with a digit",
            )
        )
    return replace(clauses, name=word.argument)


def _block(clauses: Clauses, word: _Word, place: Place) -> Clauses:
    sizes = [part.strip() for part in _argument(word).split(",")]
    if not all(re.fullmatch(r"[0-9]+", size) for size in sizes) or len(sizes) > 3:
        raise _refused(
            _bad_argument(
                word,
                place,
                "it takes one to three whole numbers, and the preprocessor"
                " expands no macros in a `#pragma` line",
            )
        )
    x, y, z = (*map(int, sizes), 1, 1)[:3]
    if not 1 <= x * y * z <= _MOST_THREADS or z > _MOST_IN_Z:
        limit = f"a block has 1 to {_MOST_THREADS} threads and at most {_MOST_IN_Z} in z"
        raise _refused(_bad_argument(word, place, limit))
    return replace(clauses, block=(x, y, z))


def _count(word: _Word, place: Place) -> int:
    if re.fullmatch(rf"0*[1-9][0-9]{{0,{_MOST_DIGITS - 1}}}", _argument(word)) is None:
        raise _refused(_bad_argument(word, place, f"it takes a count from 1 to {10**_MOST_DIGITS - 1:,}"))
    return int(_argument(word))


def _collect(clauses: Clauses, word: _Word, place: Place) -> Clauses:
    return replace(clauses, collect=_count(word, place))


def _chunk(clauses: Clauses, word: _Word, place: Place) -> Clauses:
    return replace(clauses, chunk=_count(word, place))


def _reduce(clauses: Clauses, word: _Word, place: Place) -> Clauses:
    operator, colon, rest = (part.strip() for part in _argument(word).partition(":"))
    variables = [variable.strip() for variable in rest.split(",")]
    if operator not in _REDUCTIONS or not colon or not all(map(is_variable, variables)):
        why = "the operator is one of `+` `*` `min` `max` `&` `|` `^` `=`, and variables follow: `a`, `a.b` or `a[0]`"
        raise _refused(_bad_argument(word, place, why))
    pairs = (*clauses.reductions, *((operator, without_blanks(variable)) for variable in variables))
    named = [variable for _, variable in pairs]
    twice = next((variable for variable in named if named.count(variable) > 1), None)
    if twice is not None:
        problem = f"`reduce` names `{twice}` twice"
        why = "a variable can be reduced with only one operator"
        raise _refused(error("CCC015", problem, place, why=why, help="keep one of them"))
    return replace(clauses, reductions=pairs)


def _pure(clauses: Clauses, word: _Word, place: Place) -> Clauses:
    names = tuple("".join(name.split()) for name in _argument(word).split(","))
    if not all(_FUNCTION.fullmatch(name) for name in names):
        raise _refused(_bad_argument(word, place, "it takes function names: `f` or `space::f`"))
    return replace(clauses, pure=names)


_PARSERS: dict[str, Callable[[Clauses, _Word, Place], Clauses]] = {
    "name": _name,
    "block": _block,
    "reduce": _reduce,
    "collect": _collect,
    "chunk": _chunk,
    "hoist": _hoist,
    "nohoist": _hoist,
    "independent": _independent,
    "pure": _pure,
    "inlane": _in_lane,
    **dict.fromkeys(_MODES, _mode),
}
_OUTER_LOOP = "write it on the `#pragma ccc for` of the outer loop, or on the kernel's `#pragma ccc grid`"
_ON_THE_PATH = "write it on the path's own pragma"
_ELSEWHERE = {
    "block": ("the block size is the kernel's, not the path's", _OUTER_LOOP),
    "reduce": ("the reduced variable outlives the path", _OUTER_LOOP),
    "inlane": ("it is the form of a whole loop", _OUTER_LOOP),
    "collect": ("it chooses among several paths", f"{_OUTER_LOOP}, or on a `#pragma ccc switch`"),
    "chunk": (
        "it says how many inner iterations a task runs between two votes",
        "write it on a `#pragma ccc while`, `for variable` or `recursive`",
    ),
    "hoist": ("it applies to the loads at the head of a path", _ON_THE_PATH),
    "nohoist": ("it applies to the loads at the head of a path", _ON_THE_PATH),
    "pure": ("it holds for all calls of the function in the loop", _OUTER_LOOP),
}
"""Why a clause belongs elsewhere, and where."""


def _argument(word: _Word) -> str:
    return word.argument if word.argument is not None else ""


def _is_identifier(text: str) -> bool:
    return re.fullmatch(r"[A-Za-z_]\w*", text, re.ASCII) is not None


def _bad_argument(word: _Word, place: Place, why: str) -> Diagnostic:
    problem = f"`{word.text}` cannot take `{word.argument}`"
    clause = BY_WORD[word.text]
    values = " with literal values" if clause.numbers else ""
    return error("CCC011", problem, place, why=why, help=f"write `{clause.form}`{values}")


def _unknown(what: str, word: _Word, known: tuple[str, ...], place: Place) -> Diagnostic:
    close = get_close_matches(word.text.lower(), known, n=1)
    choice = f"did you mean `{close[0]}`? " if close else ""
    return error("CCC010", f"unknown {what} `{word.text}`", place, help=f"{choice}known: {_listed(known)}")


def _listed(words: tuple[str, ...]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _refused(diagnostic: Diagnostic) -> SourceError:
    return SourceError(diagnostic)
