"""What the markers of a function say: one annotation for each pragma, with its clauses and its place in the source."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from cccopt.ccc.function.mangled import is_named
from cccopt.ccc.function.source_text import source_text
from cccopt.ccc.outcome.choices import Mode
from cccopt.clauses import LOOPS_OF_TASKS, Kind, MarkedShape, clauses_of
from cccopt.ptx.ir import Function, Marker, Statement
from cccopt.text import Place, Position

_BEGINS = ("for.begin", "if.begin", "recursive.begin", "grid.begin")


@dataclass(frozen=True, slots=True)
class Annotation:
    """One pragma, or one case of a switch.

    ``event`` distinguishes loops (``recursive`` and ``grid`` among them) from other paths. ``kind`` is the words of the
    pragma (``for variable``, ``switch``); ``variable`` says whether the inner iterations of the loop are tasks.
    ``block`` is x, y, z; ``case`` is the label of a switch case without blanks (``default``), ``group`` the region
    number of the first case, which identifies the switch. ``chunk`` is the number of inner iterations between two
    votes (None: the user leaves it open), ``collect`` that of collected paths; ``reductions`` are pairs of operator
    and source variable. ``hoist`` says that loads at the path's head must (True) or must not (False) be done before it.
    ``restricted`` are the positions of the ``__restrict__`` parameters of the kernel that contains the pragma, ``pure``
    the unseen functions that only read, according to the user. ``in_lane`` requests the in-lane form. If a loop is
    ``alone``, what the user marked inside it runs in place and has no markers.
    """

    region: int
    event: MarkedShape
    kind: Kind
    variable: bool = False
    name: str = ""
    block: tuple[int, int, int] | None = None
    mode: Mode | None = None
    independent: bool = False
    place: Place | None = None
    case: str = ""
    group: int = 0
    chunk: int | None = None
    reductions: tuple[tuple[str, str], ...] = ()
    collect: int | None = None
    hoist: bool | None = None
    restricted: tuple[int, ...] = ()
    pure: tuple[str, ...] = ()
    in_lane: bool = False
    alone: bool = False

    @property
    def pragma(self) -> str:
        """The words of the pragma: ``for variable``."""
        return self.kind


def annotations_of(body: Iterable[Statement]) -> Mapping[int, Annotation]:
    """The annotations of a body by region number, from its begin markers; ``overhead`` is not one."""
    found: dict[int, Annotation] = {}
    for statement in body:
        if (
            isinstance(statement, Marker)
            and statement.region not in found  # a copy that the compiler made says the same
            and begins_annotation(statement)
        ):
            found[statement.region] = _annotation(statement)
    return found


def begins_annotation(marker: Marker) -> bool:
    """Whether the marker is one of those that carry the clauses of a pragma."""
    return marker.event in _BEGINS


def vouches(annotation: Annotation, function: str) -> bool:
    """Whether the user declares the unseen function with this PTX name pure."""
    return any(is_named(function, name) for name in annotation.pure)


def is_annotation(statement: Statement) -> bool:
    """Whether the statement is a marker of the source modifier (and not of a pass)."""
    return isinstance(statement, Marker) and not statement.event.startswith("overhead.")


def without_annotations(function: Function, regions: Collection[int] | None = None) -> Function:
    """The function without the source modifier's markers, or without those of some ``regions``."""
    if function.body is None:
        return function

    def goes(statement: Statement) -> bool:
        if not is_annotation(statement):
            return False
        return regions is None or (isinstance(statement, Marker) and statement.region in regions)

    return replace(function, body=tuple(s for s in function.body if not goes(s)))


def _annotation(marker: Marker) -> Annotation:
    values = dict(marker.attributes)
    clauses = clauses_of(values)
    kind = _kind(marker, values)
    return Annotation(
        region=marker.region,
        event=MarkedShape.PATH if marker.event == "if.begin" else MarkedShape.LOOP,
        kind=kind,
        variable=kind in LOOPS_OF_TASKS,
        name=clauses.name or "",
        block=clauses.block,
        mode=None if clauses.mode is None else Mode(clauses.mode),
        independent=clauses.independent,
        place=_source_place(values),
        case=values.get("case", ""),
        group=int(values.get("group", 0)),
        chunk=clauses.chunk,
        reductions=clauses.reductions,
        collect=clauses.collect,
        hoist=clauses.hoist,
        pure=clauses.pure,
        restricted=tuple(map(int, filter(None, values.get("restrict", "").split(",")))),
        in_lane=clauses.in_lane,
        alone="alone" in values,
    )


def _kind(marker: Marker, values: Mapping[str, str]) -> Kind:
    """The pragma's kind: ``kind=`` distinguishes the rarer pragmas that share an event."""
    event = marker.event.partition(".")[0]
    return Kind(values.get("kind", Kind.FOR_VARIABLE if event == "for" and "variable" in values else event))


def _source_place(values: Mapping[str, str]) -> Place | None:
    if "line" not in values or "file" not in values:
        return None
    line, _, column = values["line"].partition(":")
    return Place(
        values["file"], Position(int(line), int(column or 1)), source_text(values["file"]).line(int(line))
    )
