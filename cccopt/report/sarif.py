"""Diagnostics as SARIF 2.1.0, which editors and code reviews show at their lines (OASIS, 2020)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cccopt.diagnostic import Diagnostic, Severity
from cccopt.text import Place
from cccopt.version import __version__

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.REMARK: "note"}
_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def as_sarif(diagnostics: Iterable[Diagnostic], folder: Path) -> str:
    """The text of a SARIF file. Files below ``folder`` are named by their paths in it, as in a repository."""
    found = list(diagnostics)
    driver = {
        "name": "cccopt",
        "version": __version__,
        "rules": [{"id": code} for code in dict.fromkeys(d.code for d in found)],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(diagnostic, folder) for diagnostic in found],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _result(diagnostic: Diagnostic, folder: Path) -> dict[str, Any]:
    parts = [diagnostic.message]
    parts += [f"why: {diagnostic.why}"] if diagnostic.why else []
    parts += [f"help: {diagnostic.help}"] if diagnostic.help else []
    result: dict[str, Any] = {
        "ruleId": diagnostic.code,
        "level": _LEVELS[diagnostic.severity],
        "message": {"text": "\n".join(parts)},
    }
    if diagnostic.place is not None:
        result["locations"] = [_location(diagnostic.place, folder)]
    if diagnostic.notes:
        result["relatedLocations"] = [
            {**_location(place, folder), "message": {"text": label}} for label, place in diagnostic.notes
        ]
    return result


def _location(place: Place, folder: Path) -> dict[str, Any]:
    path = Path(place.file).absolute()
    inside = path.is_relative_to(folder.absolute())
    uri = quote(str(path.relative_to(folder.absolute()))) if inside else path.as_uri()
    region = {"startLine": place.position.line, "startColumn": max(place.position.column, 1)}
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}
