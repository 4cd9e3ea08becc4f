"""What the markers of a function say: one annotation for each pragma, with its clauses and its place in the source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from cccopt.ccc.outcome.choices import Mode
from cccopt.ptx.ir import Function, Marker, Statement
from cccopt.text import Place, Position, SourceText

_BEGINS = ("for.begin", "if.begin", "recursive.begin", "grid.begin")
_LOOPS_OF_TASKS = frozenset({"for variable", "while", "recursive"})


@dataclass(frozen=True, slots=True)
class Annotation:
    """One pragma, of a switch one of its cases.

    ``event`` is ``for`` for loops (``recursive`` and ``grid`` among them), ``if`` for paths; ``kind`` is the pragma's
    words (``for variable``, ``switch``), ``variable`` whether the inner iterations of the loop are tasks; ``block`` is
    x, y, z. ``case`` is the label of a switch's case without blanks (``default``), ``group`` the region number of its
    first case, by which the cases of one switch are known. ``chunk`` is in inner iterations between two votes,
    ``collect`` in paths; ``reductions`` are pairs of operator and source variable. ``hoist`` tells whether the loads at
    the path's head are done before it: True asks for it, False forbids it.
    """

    region: int
    event: str
    kind: str
    variable: bool = False
    name: str = ""
    block: tuple[int, int, int] | None = None
    mode: Mode | None = None
    independent: bool = False
    place: Place | None = None
    case: str = ""
    group: int = 0
    chunk: int = 1
    reductions: tuple[tuple[str, str], ...] = ()
    collect: int | None = None
    hoist: bool | None = None

    @property
    def pragma(self) -> str:
        """The words of the pragma: ``for variable``."""
        return self.kind


def annotations_of(body: Iterable[Statement]) -> Mapping[int, Annotation]:
    """The annotations of a body by region number, from its begin markers; ``overhead`` is none."""
    found: dict[int, Annotation] = {}
    for statement in body:
        if isinstance(statement, Marker) and statement.event in _BEGINS:
            found.setdefault(statement.region, _annotation(statement))
    return found


def is_annotation(statement: Statement) -> bool:
    """Whether the statement is a marker of the source modifier (and not of a pass)."""
    return isinstance(statement, Marker) and not statement.event.startswith("overhead.")


def without_annotations(function: Function) -> Function:
    """The function without the source modifier's markers."""
    body = function.body
    return (
        function if body is None else replace(function, body=tuple(s for s in body if not is_annotation(s)))
    )


def _annotation(marker: Marker) -> Annotation:
    values = dict(marker.attributes)
    block = tuple(int(size) for size in values["block"].split(",")) if "block" in values else ()
    kind = _kind(marker, values)
    return Annotation(
        region=marker.region,
        event="if" if marker.event == "if.begin" else "for",
        kind=kind,
        variable=kind in _LOOPS_OF_TASKS,
        name=values.get("name", ""),
        block=(*block, 1, 1)[:3] if block else None,  # type: ignore[arg-type]
        mode=Mode(values["mode"]) if "mode" in values else None,
        independent="independent" in values,
        place=_source_place(values),
        case=values.get("case", ""),
        group=int(values.get("group", 0)),
        chunk=int(values.get("chunk", 1)),
        reductions=_reductions(values),
        collect=int(values["collect"]) if "collect" in values else None,
        hoist=values["hoist"] == "yes" if "hoist" in values else None,
    )


def _kind(marker: Marker, values: Mapping[str, str]) -> str:
    """``kind=`` tells the rarer pragmas that share an event."""
    event = marker.event.partition(".")[0]
    return values.get("kind", "for variable" if event == "for" and "variable" in values else event)


def _reductions(values: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The pairs of ``reduce=+:sum,max:best``."""
    written = values.get("reduce", "").split(",")
    return tuple((operator, variable) for operator, _, variable in (w.partition(":") for w in written if w))


def _source_place(values: Mapping[str, str]) -> Place | None:
    if "line" not in values or "file" not in values:
        return None
    line, _, column = values["line"].partition(":")
    return Place(values["file"], Position(int(line), int(column or 1)), _line_text(values["file"], int(line)))


def _line_text(file: str, number: int) -> str:
    """The line of the user's source, when the file is still there to quote."""
    path = Path(file)
    try:
        # A device, say, might never end.
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    except OSError:
        return ""
    return SourceText(file, text).line(number)
