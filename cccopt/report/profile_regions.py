"""The marked regions of a kernel on the page of a run, and what reports of compilations say became of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from cccopt.ccc.outcome.choices import spelled
from cccopt.ccc.profitability.code_digest import canonical
from cccopt.ccc.profitability.decisions import Decisions
from cccopt.ccc.profitability.profile import RegionProfile
from cccopt.profiling.run_file import FunctionRun, RunFile
from cccopt.report.html import Markup, cell, element, soft, table
from cccopt.report.predictions import times
from cccopt.report.profile_view import efficiency, number, percent

_HEADS = (
    "region",
    "kind",
    "lane entries",
    "warp executions x 32",
    "lane executions",
    "efficiency",
    "outcome",
)


def region_table(run: RunFile, function: FunctionRun, reports: Sequence[Mapping[str, Any]]) -> Markup | None:
    """The counts of a function's regions and, with ``reports``, what became of them."""
    rows = []
    reported = [(unit, r) for report in reports for unit in report["units"] for r in unit["regions"]]
    counted = run.kernels.functions.get(function.name, {})
    for region, counts in sorted(counted.items()):
        became = [
            _became(unit, r)
            for unit, r in reported
            if (r["kernel"], r["region"], r["kind"]) == (function.name, region, counts.kind)
        ]
        rows.append(_row(region, counts, became if reports else None))
    return table(_HEADS if reports else _HEADS[:-1], rows, texts=("kind", "outcome"))


def measured(decisions: Decisions | None, function: FunctionRun) -> Markup | None:
    """What `cccopt tune` measured for a kernel."""
    found = decisions.kernels.get(canonical(function.name)) if decisions is not None else None
    if decisions is None or found is None:
        return None
    said = "no other build was faster"
    if found.build != "plain":
        said = f"{found.gain:.2f}x as fast as the plain build ({found.low:.2f} to {found.high:.2f})"
    return element("p", element("b", f"Measured, `{found.build}`: "), f"{said}, on {decisions.device}.")


def _row(region: int, counts: RegionProfile, became: list[Markup] | None) -> Markup:
    filled = efficiency(counts.warps, counts.lanes)
    return element(
        "tr",
        cell(str(region), region),
        cell(counts.kind, counts.kind, "text"),
        cell(number(counts.entered), counts.entered),
        cell(number(32 * counts.warps), counts.warps),
        cell(number(counts.lanes), counts.lanes),
        cell(percent(filled), filled),
        None
        if became is None
        else element("td", list(dict.fromkeys(became)) or "not in the report", class_="wrap"),
    )


def _became(unit: Mapping[str, Any], region: Mapping[str, Any]) -> Markup:
    """What the report of a compilation says about a region."""
    place = region.get("place") or {}
    said = f"{PurePath(place['file']).name}:{place['line']}: " if place else ""
    said += str(region["outcome"])
    if region.get("form"):
        said += f" ({spelled(region['form'])})"
    cost = region.get("cost")
    if cost is not None:
        said += f", predicted gain {cost['gain']:.2f}x"
    for remark in unit.get("remarks", ()):
        at = remark.get("place") or {}
        if place and (at.get("file"), at.get("line")) == (place.get("file"), place.get("line")):
            said += f"; {remark['code']}: {remark['message']}"
    predicted = [element("div", soft(line)) for line in (times(cost) if cost is not None else ())]
    return element("div", said, predicted)
