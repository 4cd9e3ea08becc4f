"""What a rewrite need not understand of a PTX text: it goes around the passes as text.

Only functions with markers are rewritten. What they call and what calls them is read as well, because legality and
the count of shared memory depend on it; every other body is left out of the text that is parsed and put back when
the result is printed. So are the values of large tables: no pass looks at what a variable begins with.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os.path import commonprefix

from cccopt.driver.function_texts import MARKER, WORD, FunctionText, definitions
from cccopt.ptx.ir import Function, Item, Module, Section, Variable
from cccopt.ptx.printer import print_item

_TABLE = re.compile(
    r"(?P<name>[A-Za-z_$%][\w$]*)(?:\[\d+\])+(?P<values>\s*=\s*\{[-+\w.,\s]{400,}\})(?=\s*;)", re.ASCII
)
"""An array that begins with a long list of numbers: tables of random-number generators have 200,000 of them."""


@dataclass(frozen=True, slots=True)
class SplitModule:
    """``text`` with the bodies of functions that no rewrite concerns left out (each line keeps its number), and the
    whole text of these functions, in the order of all functions; None for one that ``text`` holds. ``tables`` has what
    is left out of variables, by name.
    """

    text: str
    aside: tuple[str | None, ...]
    tables: Mapping[str, str] = field(default_factory=dict)

    def restored(self, module: Module) -> str:
        """The text of ``module``, made of ``text`` by passes that keep functions in order, with all bodies."""
        functions = sum(isinstance(item, Function) for item in module.items)
        assert functions == len(self.aside), (
            "the passes lost or added a function, or the text was split incorrectly"
        )
        aside = iter(self.aside)
        pieces = []
        for item in module.items:
            kept = next(aside) if isinstance(item, Function) else None
            gap = "\n" if isinstance(item, (Function, Section)) else ""
            pieces.append(f"{gap}{kept if kept is not None else self._printed(item)}\n")
        return "".join(pieces)

    def _printed(self, item: Item) -> str:
        values = self.tables.get(item.name) if isinstance(item, Variable) else None
        return print_item(item) if values is None else f"{print_item(item).removesuffix(';')}{values};"


def split_module(text: str) -> SplitModule | None:
    """Split a PTX module; None for a text whose functions cannot be separated, or that needs every function."""
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
    tables: dict[str, str] = {}

    def without_values(match: re.Match[str]) -> str:
        tables[match["name"]] = match["values"]
        return match[0].removesuffix(match["values"]) + "\n" * match["values"].count("\n")

    rest = _TABLE.sub(without_values, "".join((*pieces, text[at:])))
    return SplitModule(rest, tuple(aside), tables) if pieces or tables else None


def _concerned(text: str, found: Sequence[FunctionText]) -> set[str]:
    """The functions with markers, their callers, and what any of these call, directly or not."""
    bodies = {d.name: text[d.body : d.end] for d in found if d.body is not None}
    marked = {name for name, body in bodies.items() if MARKER.search(body)}
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
    return re.compile(rf"{common}(?<![\w$%]{common})[\w$]*") if common else WORD


def _closure(start: Iterable[str], edges: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    work = list(start)
    while work:
        name = work.pop()
        if name not in found:
            found.add(name)
            work += edges.get(name, ())
    return found
