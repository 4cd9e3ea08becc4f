"""Annotations that have no mark in the device code: nothing is rewritten for them, and the user should know (CCC019).

The device compiler drops what no kernel reaches: host functions, templates that nothing instantiates, functions that
nothing calls, code under a condition that never holds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cccopt.diagnostic import Diagnostic, Severity
from cccopt.source.annotate import MarkedPiece

_BEGIN = re.compile(r"// ccc \w+\.begin (\d+)")


def unreached(regions: Sequence[MarkedPiece], marked_ptx: str) -> tuple[Diagnostic, ...]:
    """A warning for each of ``regions`` that has no mark in the PTX; those inside it are its notes."""
    present = {int(number) for number in _BEGIN.findall(marked_ptx)}
    gone = {region.id: region for region in regions if region.id not in present}
    found: dict[int, list[MarkedPiece]] = {}
    outermost: dict[int, int] = {}
    for region in gone.values():  # in file order: what is around a region comes before it
        around = outermost.get(region.parent, region.id) if region.parent is not None else region.id
        outermost[region.id] = around
        found.setdefault(around, []).append(region)
    return tuple(_warning(outer, inside) for outer, *inside in found.values())


def _label(region: MarkedPiece) -> str:
    return "`default`" if region.case == "default" else f"case `{region.case}`"


def _warning(region: MarkedPiece, inside: Sequence[MarkedPiece]) -> Diagnostic:
    case = f", {_label(region)}," if region.case else ""
    return Diagnostic(
        "CCC019",
        Severity.WARNING,
        f"`#pragma ccc {region.kind}`{case} reaches no kernel: it has no effect",
        region.place,
        why="no device code is left of it: it is in host code, in a template that nothing instantiates, in a function"
        " that nothing calls, or in code that the compiler found unreachable",
        help="instantiate the template or call the function, or remove the pragma if no file needs it",
        notes=tuple((f"likewise `#pragma ccc {r.kind}` in it", r.place) for r in inside),
    )
