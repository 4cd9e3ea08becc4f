"""What a ``#pragma ccc`` may say (DESIGN 3): its kinds, and the one table of its clauses.

A clause is written twice: by the user in the pragma, which `cccopt.source.pragmas` parses, and by cccopt in the begin
marker of the PTX, as attributes. The table says where a clause may be, how a user writes it, and how its value becomes
an attribute and back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cccopt.choice import Choice


class MarkedShape(Choice):
    """What a begin marker is about: a loop (or a function that becomes one), or a path that is not a loop."""

    LOOP = "for"
    PATH = "if"


class Kind(Choice):
    """The words of a pragma after ``#pragma ccc``."""

    FOR = "for"
    FOR_VARIABLE = "for variable"
    WHILE = "while"
    IF = "if"
    ELSE = "else"
    SWITCH = "switch"
    RECURSIVE = "recursive"
    GRID = "grid"


ITERATED = frozenset({Kind.FOR, Kind.GRID})
"""The pragmas over whose iterations paths are collected."""

LOOPS_OF_TASKS = frozenset({Kind.FOR_VARIABLE, Kind.WHILE, Kind.RECURSIVE})
"""The pragmas of paths that are loops."""

FLAG_OPERATORS = frozenset({"=", "|", "&"})
"""The operators of `reduce` for variables that iterations set to one constant: ``=``, and the two that do so for a
``bool``.
"""

_ALL = frozenset(Kind)


@dataclass(frozen=True, slots=True)
class Clauses:
    """What a pragma says beyond its kind. ``block`` is x, y, z threads; ``mode`` is always, auto, off or None;
    ``reductions`` are pairs of operator and variable; ``collect`` counts paths, ``chunk`` inner iterations between two
    votes; ``hoist`` is True for ``hoist``, False for ``nohoist``; ``pure`` are functions for which the user vouches;
    ``in_lane`` asks for the in-lane form.
    """

    name: str | None = None
    block: tuple[int, int, int] | None = None
    mode: str | None = None
    independent: bool = False
    reductions: tuple[tuple[str, str], ...] = ()
    collect: int | None = None
    chunk: int | None = None
    hoist: bool | None = None
    pure: tuple[str, ...] = ()
    in_lane: bool = False


@dataclass(frozen=True, slots=True)
class Clause:
    """One row: the ``words`` of a pragma that set the ``field`` of `Clauses`, the pragmas that take them, and how they
    are written with an argument (``form``, empty for words without one; ``numbers``: it consists of numbers). In a
    marker ``write`` makes the value of the ``attribute``, and ``read`` takes it back.
    """

    words: tuple[str, ...]
    field: str
    attribute: str
    form: str = ""
    kinds: frozenset[Kind] = _ALL
    write: Callable[[Any], str] = str
    read: Callable[[str], Any] = str
    numbers: bool = False


def _read_block(text: str) -> tuple[int, ...]:
    return (*map(int, text.split(",")), 1, 1)[:3]


def _read_reductions(text: str) -> tuple[tuple[str, str], ...]:
    """The pairs of ``+:sum,max:best``."""
    parts = (written.partition(":") for written in text.split(",") if written)
    return tuple((operator, variable) for operator, _, variable in parts)


CLAUSES = (
    Clause(("name",), "name", "name", "name(id)"),
    Clause(
        ("block",),
        "block",
        "block",
        "block(x)`, `block(x, y)` or `block(x, y, z)",
        ITERATED,
        write=lambda block: ",".join(map(str, block)),
        read=_read_block,
        numbers=True,
    ),
    Clause(("always", "auto", "off"), "mode", "mode"),
    Clause(
        ("reduce",),
        "reductions",
        "reduce",
        "reduce(+: sum)",
        ITERATED,
        write=lambda pairs: ",".join(f"{operator}:{variable}" for operator, variable in pairs),
        read=_read_reductions,
    ),
    Clause(
        ("collect",), "collect", "collect", "collect(k)", ITERATED | {Kind.SWITCH}, read=int, numbers=True
    ),
    Clause(("chunk",), "chunk", "chunk", "chunk(u)", LOOPS_OF_TASKS, read=int, numbers=True),
    Clause(
        ("hoist", "nohoist"),
        "hoist",
        "hoist",
        kinds=_ALL - ITERATED,
        write=lambda hoist: "yes" if hoist else "no",
        read=lambda text: text == "yes",
    ),
    Clause(
        ("pure",),
        "pure",
        "pure",
        "pure(f)",
        ITERATED,
        write=",".join,
        read=lambda text: tuple(text.split(",")),
    ),
    Clause(("inlane",), "in_lane", "inlane", kinds=ITERATED, write=lambda _: "", read=lambda _: True),
    Clause(("independent",), "independent", "independent", write=lambda _: "", read=lambda _: True),
)

BY_WORD: Mapping[str, Clause] = {word: clause for clause in CLAUSES for word in clause.words}


def attributes(clauses: Clauses) -> Iterator[str]:
    """What a begin marker says about the clauses; defaults are left out."""
    usual = Clauses()
    for clause in CLAUSES:
        value = getattr(clauses, clause.field)
        if value != getattr(usual, clause.field):
            written = clause.write(value)
            yield f"{clause.attribute}={written}" if written else clause.attribute


def clauses_of(values: Mapping[str, str]) -> Clauses:
    """The clauses of a begin marker with these attributes."""
    given = (clause for clause in CLAUSES if clause.attribute in values)
    return Clauses(**{clause.field: clause.read(values[clause.attribute]) for clause in given})
