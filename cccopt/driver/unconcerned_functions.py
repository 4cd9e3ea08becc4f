"""The parts of a PTX text that a rewrite need not understand: they bypass the passes as text.

Only functions with markers are rewritten. Their callers and callees are parsed as well, because legality and the amount
of shared memory depend on them. Every other body is left out of the text that is parsed and put back when the result is
printed. So are the values of large tables: no pass reads the initial value of a variable.
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
"""An array with a long list of initial values: tables of random-number generators have 200,000 of them."""

_INDIRECT = ".callprototype"


@dataclass(frozen=True, slots=True)
class SplitModule:
    """``text`` is a module without the bodies of functions that no rewrite concerns (each line keeps its number).
    ``aside`` has an item for each function, in order: the whole text of such a function, None for any other. ``tables``
    has the values left out of variables, by name.
    """

    text: str
    aside: tuple[str | None, ...]
    tables: Mapping[str, str] = field(default_factory=dict)

    def restored(self, module: Module) -> str:
        """The text of ``module`` with all bodies; passes that keep the order of functions made it from ``text``."""
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
    """Split a PTX module; None if its functions cannot be separated, or if all of them are needed."""
    found = definitions(text)
    if found is None:
        return None
    concerned = _concerned(text, found)
    if any(_INDIRECT in text[d.body : d.end] for d in found if d.body is not None and d.name in concerned):
        return None  # what such a call may run is named anywhere
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
    """Finds the words that begin like all ``names`` (mostly with ``_Z``): `re` finds such a beginning quickly."""
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
