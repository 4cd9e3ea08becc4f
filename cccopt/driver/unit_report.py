"""What became of one file compiled for one architecture, and its report: JSON data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from cccopt.diagnostic import CccError, Diagnostic, Severity
from cccopt.text import Place, Position
from cccopt.version import __version__

if TYPE_CHECKING:
    from cccopt.ccc.outcome.report import RegionReport

SCHEMA = 1
"""The version of the reports' layout."""


@dataclass(frozen=True, slots=True)
class CompiledUnit:
    """One file compiled for one architecture: its PTX, what became of each region, and the remarks. ``digests`` are
    those of its annotated functions, to which decisions refer.
    """

    ptx: str
    regions: tuple[RegionReport, ...] = ()
    remarks: tuple[Diagnostic, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict)


def report_data(unit: CompiledUnit, file: str, arch: str) -> dict[str, Any]:
    """One unit's report: ``file``, ``arch`` (``compute_90``, empty when unknown), ``regions``,
    ``remarks`` and ``digests``.
    """
    regions, remarks = _data(unit.regions), _data(unit.remarks)
    return {
        "file": file,
        "arch": arch,
        "regions": regions,
        "remarks": remarks,
        "digests": dict(unit.digests),
    }


def failure_data(problem: CccError, file: str, arch: str) -> dict[str, Any]:
    """The report of a unit that was refused: its ``errors``, which `diagnostics_of` reads back."""
    return {"file": file, "arch": arch, "errors": _data(problem.diagnostics)}


def diagnostics_of(data: Iterable[dict[str, Any]]) -> tuple[Diagnostic, ...]:
    """The diagnostics in a report's ``remarks`` or ``errors``."""
    return tuple(
        Diagnostic(
            item["code"],
            Severity(item["severity"]),
            item["message"],
            _source_place(item["place"]),
            item["why"],
            item["help"],
            tuple((label, place) for label, at in item["notes"] if (place := _source_place(at)) is not None),
        )
        for item in data
    )


def _source_place(data: dict[str, Any] | None) -> Place | None:
    if data is None:
        return None
    return Place(data["file"], Position(data["line"], data["column"]), data["text"], data["skipped"])


def _data(value: Any) -> Any:
    """JSON data for dataclasses, enumerations and tuples; a place becomes one flat object."""
    if isinstance(value, Place):
        position = value.position
        return {
            "file": value.file,
            "line": position.line,
            "column": position.column,
            "text": value.line_text,
            "skipped": value.skipped,
        }
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        shown = (field.name for field in fields(value) if not field.metadata.get("internal"))
        return {name: _data(getattr(value, name)) for name in shown}
    if isinstance(value, (tuple, list, set, frozenset)):
        return [_data(element) for element in value]
    return value


def wrap_reports(units: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A whole report: the units of one command."""
    return {"schema": SCHEMA, "cccopt": __version__, "units": list(units)}
