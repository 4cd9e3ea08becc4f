"""The functions of a PTX text that a rewrite need not understand: they go around the passes as text.

Only functions with markers are rewritten. What they call and what calls them is read as well, because legality and
the count of shared memory depend on it; every other body is left out of the text that is parsed and put back when
the result is printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os.path import commonprefix

from cccopt.ptx.ir import Function, Module, Section
from cccopt.ptx.printer import print_item

MARK = re.compile(r"// ccc (for|if|body|recursive|grid)\.")
_WORD = re.compile(r"[A-Za-z_$%][\w$]*")
_STRING = r"\"(?:[^\"\\\n]|\\.)*\""
_SKIPPED = rf"//[^\n]*|/\*[\s\S]*?\*/|{_STRING}"
# Alternatives that begin with a character each let `re` skip what begins none of them, four times as fast.
_BRACE = re.compile(rf"{_SKIPPED}|\{{|\}}")
_HEADING = re.compile(
    rf"{_SKIPPED}|(?P<head>(?:\.(?:visible|extern|weak|common)\s+)*\.(?:entry|func)\b"
    r"(?:\s*\.attribute\s*\([^)]*\))?(?:\s*\([^)]*\))?\s*(?P<name>[A-Za-z_$%][\w$]*)|\.(?:entry|func)\b)"
)
# A heading ends at its body or, for a prototype, at a semicolon; pragmas in between have semicolons of their own.
_END = re.compile(rf"{_SKIPPED}|\.pragma\s*(?:{_STRING}[\s,]*)*;|(?P<end>[{{;])")


@dataclass(frozen=True, slots=True)
class Definition:
    """A function in a text, from its linkage at ``start`` to its ``end``; ``body`` is where its brace stands, None
    for a prototype.
    """

    name: str
    start: int
    end: int
    body: int | None


@dataclass(frozen=True, slots=True)
class Parts:
    """``text`` with the bodies of functions that no rewrite concerns left out (each line keeps its number), and the
    whole text of these functions, in the order of all functions; None for one that ``text`` holds.
    """

    text: str
    aside: tuple[str | None, ...]

    def restored(self, module: Module) -> str:
        """The text of ``module``, made of ``text`` by passes that keep functions in order, with all bodies."""
        functions = sum(isinstance(item, Function) for item in module.items)
        assert functions == len(self.aside), (
            "the passes lost or made a function, or the text was split wrongly"
        )
        aside = iter(self.aside)
        pieces = []
        for item in module.items:
            kept = next(aside) if isinstance(item, Function) else None
            gap = "\n" if isinstance(item, (Function, Section)) else ""
            pieces.append(f"{gap}{kept if kept is not None else print_item(item)}\n")
        return "".join(pieces)


def parts(text: str) -> Parts | None:
    """Split a PTX module; None for a text whose functions cannot be told apart, or that needs every function."""
    found = definitions(text)
    if found is None:
        return None
    concerned = _concerned(text, found)
    pieces: list[str] = []
    aside: list[str | None] = []
    at = 0
    for definition in found:
        if definition.body is None or definition.name in concerned:
            aside.append(None)
            continue
        lines = text.count("\n", definition.body, definition.end)
        pieces += (text[at : definition.body], ";", "\n" * lines)
        aside.append(text[definition.start : definition.end])
        at = definition.end
    return Parts("".join((*pieces, text[at:])), tuple(aside)) if pieces else None


def definitions(text: str) -> list[Definition] | None:
    """All functions and prototypes in order; None where the text is not understood."""
    found = []
    at = 0
    while (heading := _next(_HEADING, "head", text, at)) is not None:
        if heading["name"] is None:
            return None
        end = _next(_END, "end", text, heading.end())
        if end is None:
            return None
        body = end.start() if end["end"] == "{" else None
        at = end.end() if body is None else _closing(text, body)
        if at == 0:
            return None
        found.append(Definition(heading["name"], heading.start(), at, body))
    return found


def _next(pattern: re.Pattern[str], group: str, text: str, at: int) -> re.Match[str] | None:
    """The first match behind ``at`` that is no comment, string or pragma."""
    return next((m for m in pattern.finditer(text, at) if m[group] is not None), None)


def _closing(text: str, brace: int) -> int:
    """Behind the brace that closes the one at ``brace``; 0 where there is none."""
    depth = 0
    for match in _BRACE.finditer(text, brace):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0:
            return match.end()
    return 0


def _concerned(text: str, found: Sequence[Definition]) -> set[str]:
    """The functions with markers, their callers, and what any of these call, directly or not."""
    bodies = {d.name: text[d.body : d.end] for d in found if d.body is not None}
    marked = {name for name, body in bodies.items() if MARK.search(body)}
    if not marked:
        return set()
    names = {d.name for d in found}
    word = _word_of(names)
    mentioned = {name: names.intersection(word.findall(body)) for name, body in bodies.items()}
    callers: dict[str, set[str]] = {}
    for name, others in mentioned.items():
        for other in others:
            callers.setdefault(other, set()).add(name)
    return _closure(_closure(marked, callers), mentioned)


def _word_of(names: Iterable[str]) -> re.Pattern[str]:
    """Finds the words that begin as all ``names`` do (with ``_Z``, mostly): `re` is quick to find such a beginning."""
    common = re.escape(commonprefix([*names]))  # noqa: RUF071 - of words, not of paths
    return re.compile(rf"{common}(?<![\w$%]{common})[\w$]*") if common else _WORD


def _closure(start: Iterable[str], edges: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    work = list(start)
    while work:
        name = work.pop()
        if name not in found:
            found.add(name)
            work += edges.get(name, ())
    return found
