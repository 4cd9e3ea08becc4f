"""What happens to a function that a pass refuses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from cccopt.ccc.outcome.refusal import Refusal
from cccopt.diagnostic import Diagnostic, Severity
from cccopt.passes.options import Options


def left(refused: Refusal, options: Options) -> tuple[Diagnostic, ...]:
    """The diagnostics of a function that is left as it was: warnings if ``keep_going``, else errors, with which
    `raise_errors` ends the run when all refusals of the file are known.
    """
    if not options.keep_going:
        return refused.diagnostics
    return tuple(d.as_warning() for d in refused.diagnostics)


def with_next(cause: Refusal, last: Refusal, form: str) -> Refusal:
    """The refusal ``cause`` of one form, extended by that of the ``last`` form tried, which is named ``form``."""
    first, other = cause.diagnostics[0], last.diagnostics[0]
    if first.code == other.code:
        return cause
    why = f"{first.why}; the {form} is not possible either: {other.message} ({other.code})"
    short = form.partition(",")[0]
    help = first.help if other.help in ("", first.help) else f"{first.help}; for the {short}: {other.help}"
    added = ((f"{text} ({other.code})", place) for text, place in other.notes)
    notes = tuple(dict.fromkeys((*first.notes, *added)))
    return Refusal(replace(first, why=why, help=help, notes=notes), *cause.diagnostics[1:])


def raise_errors(said: Iterable[Diagnostic], *more: Diagnostic) -> None:
    """Raise the errors among the diagnostics ``said`` by passes and ``more`` as one Refusal, in the order of their
    lines. An error that several copies of the code (a template's) have is raised once.
    """
    first: dict[object, Diagnostic] = {}
    for d in (*said, *more):
        if d.severity is Severity.ERROR:
            first.setdefault((d.code, d.message if d.place is None else d.place), d)
    if first:
        raise Refusal(*sorted(first.values(), key=_line))


def _line(diagnostic: Diagnostic) -> tuple[str, int]:
    place = diagnostic.place
    return ("", 0) if place is None else (place.file, place.position.line)
