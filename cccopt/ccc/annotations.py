"""What the markers of a function say: one annotation for each pragma, with its clauses and its place in the source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cccopt.ptx.ir import Marker, Statement
from cccopt.text import Place, Position, SourceText


@dataclass(frozen=True, slots=True)
class Annotation:
    """One pragma: ``event`` is ``for`` or ``if``; ``variable`` tells ``for variable``; ``block`` is x, y, z."""

    region: int
    event: str
    variable: bool = False
    name: str = ""
    block: tuple[int, int, int] | None = None
    mode: str | None = None
    independent: bool = False
    place: Place | None = None

    @property
    def pragma(self) -> str:
        """The words of the pragma: ``for variable``."""
        return f"{self.event} variable" if self.variable else self.event


def annotations_of(body: Iterable[Statement]) -> Mapping[int, Annotation]:
    """The annotations of a body by region number, from its begin markers; ``overhead`` is none."""
    found: dict[int, Annotation] = {}
    for statement in body:
        if isinstance(statement, Marker) and statement.event in ("for.begin", "if.begin"):
            found.setdefault(statement.region, _annotation(statement))
    return found


def is_annotation(statement: Statement) -> bool:
    """Whether the statement is a marker of the source modifier (and not of a pass)."""
    return isinstance(statement, Marker) and not statement.event.startswith("overhead.")


def _annotation(marker: Marker) -> Annotation:
    values = dict(marker.attributes)
    block = tuple(int(size) for size in values["block"].split(",")) if "block" in values else ()
    return Annotation(
        region=marker.region,
        event=marker.event.partition(".")[0],
        variable="variable" in values,
        name=values.get("name", ""),
        block=(*block, 1, 1)[:3] if block else None,  # type: ignore[arg-type]
        mode=values.get("mode"),
        independent="independent" in values,
        place=_place(values),
    )


def _place(values: Mapping[str, str]) -> Place | None:
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
