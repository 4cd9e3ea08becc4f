"""What is known about independence, in words and as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cccopt.ccc.legality.independence import Judgement, NamedAccess, State
from cccopt.text import Place

_CHECK = "`cccopt check` tests it on an input"
_RESTRICT = "`__restrict__` pointers say that, and `cccopt check` tests it on an input"
_SUMS = "atomics add floating-point numbers in a different order, which changes the last digits of sums"


def in_words(judgement: Judgement) -> str:
    """One sentence without its period, beginning like ``open: proven if `out` does not overlap `in```."""
    return "; ".join((f"{judgement.state}: {_why(judgement)}", *_more(judgement)))


def lines_of(judgement: Judgement, place: Place | None) -> Sequence[str]:
    """Lines for a terminal, with each access on a line of its own; ``place`` names the loop if there are several."""
    words = str(judgement.state).capitalize()
    where = f" for {place}" if place is not None else ""
    told = [f"  {_said(access)}" for access in judgement.accesses]
    more = [f"{one[0].upper()}{one[1:]}." for one in _more(judgement)]
    return [f"{words}{where}: {_why(judgement)}{':' if told else '.'}", *told, *more]


def notes_of(judgement: Judgement) -> tuple[tuple[str, Place], ...]:
    """The accesses as the notes of a diagnostic."""
    return tuple((f"this {a.does}", a.place) for a in judgement.accesses if a.place is not None)


def as_data(judgement: Judgement) -> dict[str, Any]:
    """The judgment as JSON data."""
    return {
        "state": str(judgement.state),
        "why": judgement.why,
        "conditions": list(judgement.conditions),
        "reorders_sums": judgement.sums,
        "accesses": [
            {
                "does": access.does,
                "file": access.place.file if access.place is not None else "",
                "line": access.place.position.line if access.place is not None else 0,
                "text": access.text,
            }
            for access in judgement.accesses
        ],
    }


def _why(judgement: Judgement) -> str:
    if not judgement.conditions:
        return judgement.why
    *first, last = judgement.conditions
    return f"proven if {', '.join(first)}{' and ' if first else ''}{last}"


def _more(judgement: Judgement) -> list[str]:
    """What follows the reason: how to check the promise, and that sums are reordered."""
    overlaps = any("does not overlap" in condition for condition in judgement.conditions)
    checked = [_RESTRICT if overlaps else _CHECK] if judgement.state is State.OPEN else []
    return [*checked, *([_SUMS] if judgement.sums else [])]


def _said(access: NamedAccess) -> str:
    where = f"{access.place} " if access.place is not None else ""
    return f"{where}{access.does}: {access.text}"
