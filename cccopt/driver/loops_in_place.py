"""Loops in the in-lane form in which no lane waits: marks inside them only keep nvcc from optimizing.

#pragma ccc grid                          marked in the text that cicc gets: the kernel
#pragma ccc for variable                  not marked: nvcc unrolls the loop, and loads `a[k]` once
for (int k = 0; k < n; ++k) s += a[k];
"""

from __future__ import annotations

from collections.abc import Iterable

from cccopt.ccc.outcome.choices import Form, Outcome
from cccopt.ccc.outcome.report import RegionReport


def loops_in_place(reports: Iterable[RegionReport]) -> tuple[frozenset[int], frozenset[int]]:
    """According to ``reports``: the regions of the marked loops in whose copies no lane ever waits at marked code, and
    the regions inside them, which therefore need no markers.
    """
    inside: dict[int, set[int]] = {}
    waits: set[int] = set()
    loop = 0
    for report in reports:
        if report.outcome is Outcome.REWRITTEN:
            if report.code is not None:  # the reports of the regions in it follow
                loop = report.region
            inside.setdefault(loop, set()).update({report.region} - {loop})
            if report.form is not Form.IN_LANE or (report.code is None and not report.in_place):
                waits.add(loop)
    # Marked code of one function may be inlined into several loops.
    while more := {a for a in inside for b in waits if a not in waits and inside[a] & inside[b]}:
        waits |= more
    loops = frozenset(inside.keys() - waits)
    return loops, frozenset(region for loop in loops for region in inside[loop])
