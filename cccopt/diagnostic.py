"""What cccopt says: a diagnostic is a value (code, severity, message, places, help); rendering comes last.

The style is rustc's: the message is lower-case and complete in itself, identifiers are in backticks; the *error* says
what is wrong, *why* gives the reason, *help* says what would work.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from cccopt.text import Place


class Severity(Enum):
    """The severity of a diagnostic: an error ends the work, a remark only informs."""

    ERROR = "error"
    WARNING = "warning"
    REMARK = "remark"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message.

    Attributes:
        code: ``CCCnnn``; each has a page, which ``cccopt explain CCCnnn`` prints.
        severity: Whether it is an error, a warning or a remark.
        message: What is wrong, in lower case.
        place: Where in the source; None if it does not refer to a place.
        why: The reason, if there is one to give.
        help: What would help.
        notes: Further places, each with a label.
    """

    code: str
    severity: Severity
    message: str
    place: Place | None = None
    why: str = ""
    help: str = ""
    notes: tuple[tuple[str, Place], ...] = ()

    def as_warning(self) -> Diagnostic:
        """The same diagnostic as a warning: the work continues."""
        return replace(self, severity=Severity.WARNING)


class CccError(Exception):
    """The base of the errors that carry diagnostics. As text, it is what the commands print.

    Attributes:
        diagnostics: Its messages, at least one.
    """

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__("\n".join(render(d) for d in diagnostics))
        self.diagnostics = diagnostics


def error(
    code: str,
    message: str,
    place: Place | None = None,
    *,
    why: str = "",
    help: str = "",
    notes: tuple[tuple[str, Place], ...] = (),
) -> Diagnostic:
    """A diagnostic of severity error; the other arguments are the fields of `Diagnostic`."""
    return Diagnostic(code, Severity.ERROR, message, place, why, help, notes)


def render(diagnostic: Diagnostic) -> str:
    """The diagnostic as plain text in rustc's style, without a final newline."""
    lines = [f"{diagnostic.severity.value}[{diagnostic.code}]: {diagnostic.message}"]
    if diagnostic.place is not None:
        lines += _quote(diagnostic.place, "")
    for label, place in diagnostic.notes:
        lines += _quote(place, label)
    if diagnostic.why:
        lines.append(f"   = why: {diagnostic.why}")
    if diagnostic.help:
        lines.append(f"   = help: {diagnostic.help}")
    return "\n".join(lines)


def _quote(place: Place, label: str) -> list[str]:
    lines = [f"  --> {place}" + (f": {label}" if label else "")]
    if place.line_text:
        number = str(place.position.line)
        line, column = place.quoted()
        # Terminals obey control characters, and what was not UTF-8 cannot be printed.
        line = "".join(c if c == "\t" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)
        # Tabs are kept in the pad so that the caret stays under its column.
        pad = "".join("\t" if c == "\t" else " " for c in line[:column])
        blank = " " * len(number)
        lines += [f" {blank} |", f" {number} | {line}", f" {blank} | {pad}^"]
    return lines
