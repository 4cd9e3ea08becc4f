"""Turns pragmas in preprocessed CUDA C++ into markers that survive into PTX (DESIGN 3, "What exactly is named").

    #pragma ccc for                     { for.begin unroll-1
    for (A; B; C)            becomes    for (A; B; C) { body.begin {
      S                                   S
                                        } body.end } for.end }

    #pragma ccc if
    if (c) S else T          becomes    if (c) { if.begin { S } if.end } else T

``#pragma ccc if`` above a plain ``{`` names that block; ``else`` is marked like an ``if``, and a ``while`` or ``do``
like a ``for``, whatever the pragma. The work of a switch's case gets ``if.begin`` and ``if.end`` without braces,
because these may not enclose part of a case; a function's body begins with its only marker. Each event is a statement
of `cccopt.source.markers`.

A ``continue`` in S leaves the body without passing ``body.end``, and any jump may leave a path without passing
``if.end``. The PTX passes judge by control flow whether that ends the region, or refuse it. Everything goes into
existing lines, so line numbers stay the user's.

A path that updates a reduced variable pins it before the marker that ends the path: otherwise, cicc merges the
additions in both branches of an ``if`` into one after both. The functions for that are inserted before the text.

A constexpr function may not hold assembly before C++20: nvcc warns (#2388-D) if one is annotated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from cccopt.clauses import ITERATED, Clauses, Kind, attributes
from cccopt.diagnostic import Diagnostic, error
from cccopt.source.declarations import declares
from cccopt.source.lexer import ccc_pragma, tokens
from cccopt.source.lines import LineMap, is_line_marker
from cccopt.source.markers import inline_pragma, marker, pin, pins
from cccopt.source.naming import Named, Unit, all_named
from cccopt.source.outside import Outside, hints
from cccopt.source.pragmas import SourceError
from cccopt.source.statements import Code, OutOfSight
from cccopt.source.strip import blank
from cccopt.source.variables import is_member, places, whole
from cccopt.text import Place

_REACH = 1 << 12  # characters
_DEEPEST = 192  # stacks of 63 slots of 4 bytes fit into the 48 KiB of a block of one warp
_BRANCHES = (Kind.IF, Kind.ELSE)
_FUNCTIONS = (Kind.RECURSIVE, Kind.GRID)


@dataclass(frozen=True, slots=True)
class MarkedPiece:
    """What one pragma marks, or one case of a switch.

    ``id`` counts from 1 in file order, and ``kind`` is the pragma's. ``place`` is where the named statement, function
    or label is in the user's file. ``parent`` is the id of the region around it in the text, None if there is none.
    ``case`` is the label of a switch's case, ``group`` the id of its switch's first region, 0 for others.
    ``restricted`` are the positions of the ``__restrict__`` parameters of the kernel that contains a marked loop.
    Inside one that is ``alone``, nothing is marked, even if pragmas name it.
    """

    id: int
    kind: Kind
    place: Place
    clauses: Clauses
    parent: int | None = None
    case: str = ""
    group: int = 0
    restricted: tuple[int, ...] = ()
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Annotated:
    """Annotated text in which marks have replaced the annotations.

    Attributes:
        text: The text with marks in place of pragmas.
        regions: The regions that they mark.
        warnings: Why other annotations are left out.
    """

    text: str
    regions: tuple[MarkedPiece, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class _Edit:
    """Replace ``text[start:end]`` by ``new``."""

    start: int
    end: int
    new: str


def annotate(
    text: str,
    name: str,
    only: Collection[int] | None = None,
    alone: Collection[int] = (),
    *,
    keep_going: bool = False,
    first: int = 1,
) -> Annotated:
    """Mark what the ``#pragma ccc`` lines of a text name.

    A region whose pragma says ``off`` is left out, and so is a path if every marked loop that it may belong
    to says ``off``.

    Args:
        text: A whole translation unit, as it is written or as nvcc preprocesses it for cicc.
        name: Its file name, unless a line marker gives a better one.
        only: The ids of the regions to mark and report; all of them if it is None. It does not change any id.
        alone: The ids of loops in which nothing else is marked.
        keep_going: Leave out an annotation with a mistake, with a warning.
        first: The id of the first region.

    Returns:
        The text with marks, its regions and the warnings; a text without pragmas is returned unchanged.

    Raises:
        SourceError: A `CccError` with a diagnostic for each mistake (CCC010 to CCC016, CCC018), or with one for the
            first region that is nested too deeply (CCC043).
    """
    if not hints(text):
        return Annotated(text)
    unit, named, mistakes = _named(text, name, keep_going)
    kept = [n for n in named if not _is_off(n, named)]
    regions = _regions(kept, unit, first)
    too_deep = _too_deep(regions)
    mistakes += tuple(_no_room(r) for r in too_deep)
    if too_deep and not keep_going:
        raise SourceError(_no_room(too_deep[0]))
    accepted = [
        (replace(r, alone=r.id in alone), n)
        for r, n in zip(regions, kept, strict=True)
        if r not in too_deep and (only is None or r.id in only)
    ]
    blanks = {t for t in unit.tokens if ccc_pragma(t) is not None}
    blanks |= {t for _, n in accepted for t in n.directives}
    edits = [_Edit(t.start, t.end, blank(t.text)) for t in blanks]
    edits += [e for r, n in accepted for e in _openings(r, n, unit.code)]
    # Regions in reverse: if several end at one offset, the inner one ends first.
    reduced = [_reduced(n, [around for _, around in accepted], unit.code) for _, n in accepted]
    closings = [
        e
        for (r, n), variables in zip(reversed(accepted), reversed(reduced), strict=True)
        for e in _closings(r, n, variables, unit.code)
    ]
    marked = _applied(text, closings + edits)
    return Annotated(
        _with_pins(marked, name) if any(reduced) else marked,
        tuple(r for r, _ in accepted),
        tuple(mistake.as_warning() for mistake in mistakes),
    )


def _reduced(path: Named, everything: Sequence[Named], code: Code) -> list[str]:
    """The variables that a loop around ``path`` reduces and that the path's text names but does not declare."""
    if path.pragma.kind in (*ITERATED, *_FUNCTIONS):
        return []
    around = [n.pragma.clauses.reductions for n in everything if n.holds(path)]
    reduced = dict.fromkeys(name for clauses in around for _, name in clauses)
    if not reduced:
        return []
    start, end = path.body, path.body_end
    named = [
        name for name in reduced if not all(is_member(code, at) for at in places(code, start, end, name))
    ]
    return [name for name in named if not declares(code, start, end, whole(name))]


def _with_pins(text: str, name: str) -> str:
    """``text`` with the functions of pins before it, attributed to its file: the one that cicc reads is temporary."""
    first = text[: text.find("\n") + 1]
    if is_line_marker(first):
        return f"{first}{pins()}\n{text}"
    first = '# 1 "{}"\n'.format(name.replace("\\", r"\\").replace('"', r"\""))
    return f"{first}{pins()}\n{first}{text}"


def _named(text: str, name: str, keep_going: bool) -> tuple[Unit, list[Named], tuple[Diagnostic, ...]]:
    """What the pragmas of ``text`` name, and the mistakes in others. Headers and other functions make up most of it, so
    only the text around the pragmas is lexed, as far as their statements reach.
    """
    first, *_, last = 2 * hints(text)
    outside = Outside(text)
    reach = _REACH
    while True:
        start, end = outside.around(first, last, reach)
        lexed = tokens(text, start, end)
        code = Code([t for t in lexed if t.kind != "directive"], start == 0, end == len(text))
        unit = Unit(lexed, code, LineMap(text, name, outside))
        try:
            return unit, *all_named(unit, keep_going=keep_going)
        except OutOfSight:
            reach *= 16


def _is_off(named: Named, everything: Sequence[Named]) -> bool:
    """Whether the user switched it off: with its own ``off``, or with that of every loop that it may belong to."""
    if named.pragma.clauses.mode == "off":
        return True
    if named.pragma.kind in ITERATED:
        return False
    loops = [n for n in everything if n.pragma.kind in ITERATED]
    around = [n for n in loops if n.holds(named)]
    meant = around if around else loops
    return all(n.pragma.clauses.mode == "off" for n in meant)


def _regions(named: Sequence[Named], unit: Unit, first: int) -> list[MarkedPiece]:
    regions: list[MarkedPiece] = []
    for number, what in enumerate(named, start=first):
        around = [r.id for r, n in zip(regions, named, strict=False) if n.holds(what)]
        parent = around[-1] if around else None
        switch = [r.id for r, n in zip(regions, named, strict=False) if n.case and n.head == what.head]
        group = [*switch, number][0] if what.case else 0
        place, pragma = unit.place(what.label), what.pragma
        regions.append(
            MarkedPiece(number, pragma.kind, place, pragma.clauses, parent, what.case, group, what.restricted)
        )
    return regions


def _openings(region: MarkedPiece, named: Named, code: Code) -> list[_Edit]:
    """The begin markers; those before a statement go on the pragma's own line, which keeps columns as they are."""
    if region.kind in _FUNCTIONS:
        return [_insert(code.tokens[named.body].end, f" {_begin(region, f'{region.kind}.begin')}")]
    own_line = named.directive.end if named.follows else code.tokens[named.start].start
    after_head = code.tokens[named.body - 1].end
    if region.kind in _BRANCHES:
        at = own_line if code.text(named.head) == "{" else after_head
        return [_insert(at, f" {{ {_begin(region, 'if.begin')} {{")]
    if region.kind == Kind.SWITCH:
        return [_insert(after_head, f" {_begin(region, 'if.begin')}")]
    unrolls = named.unrolls if named.unrolls else ("unroll 1",)
    pragmas = " ".join(inline_pragma(words) for words in unrolls)
    return [
        _insert(own_line, f" {{ {_begin(region, 'for.begin')} {pragmas} "),
        _insert(after_head, f" {{ {marker('body.begin', region.id)} {{"),
    ]


def _closings(region: MarkedPiece, named: Named, reduced: Iterable[str], code: Code) -> list[_Edit]:
    if region.kind in _FUNCTIONS:
        return []
    pinned = "".join(f" {pin(variable)}" for variable in reduced)
    after_body, after = (code.tokens[end - 1].end for end in (named.body_end, named.end))
    if region.kind in _BRANCHES:
        return [_insert(after, f" }}{pinned} {marker('if.end', region.id)} }}")]
    if region.kind == Kind.SWITCH:
        return [_insert(after, f"{pinned} {marker('if.end', region.id)}")]
    return [
        _insert(after_body, f" }}{pinned} {marker('body.end', region.id)} }}"),
        _insert(after, f" {marker('for.end', region.id)} }}"),
    ]


def _begin(region: MarkedPiece, event: str) -> str:
    return marker(event, region.id, [*_attributes(region), f"file={region.place.file}"])


def _attributes(region: MarkedPiece) -> Iterator[str]:
    """What the begin marker says about the region; defaults are left out."""
    position = region.place.position
    yield f"line={position.line}:{position.column}"
    yield from attributes(region.clauses)
    if region.kind == Kind.FOR_VARIABLE:
        yield "variable"
    if region.kind in (Kind.WHILE, Kind.ELSE, Kind.SWITCH):
        yield f"kind={region.kind}"
    if region.restricted:
        yield f"restrict={','.join(map(str, region.restricted))}"
    if region.alone:
        yield "alone"
    if region.case:
        yield f"case={region.case}"
        yield f"group={region.group}"


def _too_deep(regions: Sequence[MarkedPiece]) -> list[MarkedPiece]:
    """The regions nested so deeply that no shared memory has room for the stacks of all."""
    depth: dict[int | None, int] = {}
    for region in regions:
        depth[region.id] = depth.get(region.parent, 0) + 1
    return [region for region in regions if depth[region.id] > _DEEPEST]


def _no_room(region: MarkedPiece) -> Diagnostic:
    return error(
        "CCC043",
        f"annotations are nested more than {_DEEPEST} deep",
        region.place,
        why="each path needs a stack, and no block has room for the stacks of so many",
        help="mark fewer of them",
    )


def _insert(at: int, new: str) -> _Edit:
    return _Edit(at, at, new)


def _applied(text: str, edits: Iterable[_Edit]) -> str:
    """``text`` with the edits made; at one offset, in the order given."""
    pieces: list[str] = []
    done = 0
    for edit in sorted(edits, key=lambda e: e.start):
        pieces += [text[done : edit.start], edit.new]
        done = edit.end
    return "".join([*pieces, text[done:]])
