"""Names a value that a path passes on: by its variable if the source shows one, otherwise by the line that computes it.

r = f(v);               the line of the definition assigns `r`, the line of the reader names it: `r`
out[i] = r;
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cccopt.analysis import effects
from cccopt.analysis.reaching import ENTRY
from cccopt.ccc.function.origins import Note
from cccopt.ccc.function.view import View
from cccopt.ccc.regions.paths import Path
from cccopt.ptx.ir import Instruction, Register

_COPIES = 8
"""The most moves followed from a definition to what computes it, and from a reader to what uses it."""


@dataclass(frozen=True, slots=True)
class LostValue:
    """A value in words, and where it is written and read."""

    name: str
    notes: tuple[Note, ...] = ()


def lost_value(view: View, path: Path, register: str, *, carried: bool) -> LostValue:
    """The value that ``path`` writes to a register and that later code reads or, if ``carried``, a later run of the
    path.
    """
    if not view.origins.known:
        return LostValue(f"`{register}`")
    found = [
        (a, b) for a, b in _uses(view, path, register, carried) if _has_line(view, a) and _has_line(view, b)
    ]
    if not found:
        return LostValue(f"`{register}`")
    named = ((pair, _variables(view, *pair)) for pair in found)
    (definition, reader), variables = next(((p, v) for p, v in named if len(v) == 1), (found[0], frozenset()))
    name = f"`{min(variables)}`" if variables else f"a value computed in `{view.origins.text(definition)}`"
    notes = (*view.origins.notes("written here", definition), *view.origins.notes("read here", reader))
    return LostValue(name, notes)


def computed_value(view: View, index: int) -> LostValue:
    """The value that a statement computes."""
    notes = view.origins.notes("computed here", index)
    if notes:
        return LostValue(f"a value computed in `{view.origins.text(index)}`", notes)
    return LostValue(f"`{min(effects.writes(view.body[index]), default='?')}`")


def _variables(view: View, definition: int, reader: int) -> frozenset[str]:
    """The variables that a definition's line assigns and a reader's line names."""
    return view.origins.assigned(definition) & view.origins.named(reader)


def _uses(view: View, path: Path, register: str, carried: bool) -> Iterator[tuple[int, int]]:
    """Definitions of a register in the path, each with a reader; copies are skipped."""
    inside = set(view.statements(path.nodes))
    for (definition, name), readers in view.readers.items():
        if name == register and definition in inside:
            source = _source(view, definition)
            for reader in readers:
                if (reader in inside) is carried:
                    yield source, _user(view, reader)


def _source(view: View, definition: int) -> int:
    """The statement that computes what a definition copies."""
    for _ in range(_COPIES):
        copied = _copied(view, definition)
        origins = view.reaching.reaching(definition, copied) if copied else frozenset()
        if len(origins) != 1 or ENTRY in origins:
            break
        (definition,) = origins
    return definition


def _user(view: View, reader: int) -> int:
    """The first statement that uses what a reader copies."""
    for _ in range(_COPIES):
        statement = view.body[reader]
        if not _copied(view, reader) or not isinstance(statement, Instruction):
            break
        (target, *_) = statement.operands
        later = view.readers.get((reader, target.name)) if isinstance(target, Register) else None
        if not later or later[0] == reader:
            break
        reader = later[0]
    return reader


def _copied(view: View, index: int) -> str:
    """The register that a statement copies, or an empty string."""
    statement = view.body[index]
    if not isinstance(statement, Instruction) or statement.base != "mov" or len(statement.operands) != 2:
        return ""
    source = statement.operands[1]
    return source.name if isinstance(source, Register) else ""


def _has_line(view: View, index: int) -> bool:
    return view.origins.place(index) is not None
