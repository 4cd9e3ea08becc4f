"""Turns the counts of a run with candidates into a profile of the sources with suggestions written into them.

Candidates and annotations are both numbered in the order of the text. So the regions that a kernel has now are those of
the suggestion, in the same order, unless it has others, such as one that another suggestion marks in a function that
both kernels call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cccopt.advising.suggestions import Advice
from cccopt.ccc.function.annotations import annotations_of
from cccopt.ccc.profitability.profile import RegionProfile, RunProfile
from cccopt.driver import marked_ptx
from cccopt.ptx.parser import parse


def profile_of(
    advices: Sequence[Advice], *, arch: str = "sm_90", nvcc_options: Sequence[str] = ()
) -> RunProfile:
    """The profile of the kernels of ``advices``, whose sources now have their pragmas. It leaves out kernels that did
    not run or in which other regions are marked.

    Raises CccError for a source that cannot be compiled (CCC085).
    """
    units = dict.fromkeys(advice.unit for advice in advices)
    modules = [parse(marked_ptx(unit, arch=arch, nvcc_options=nvcc_options)) for unit in units]
    functions = {f.name: annotations_of(f.body or ()) for module in modules for f in module.functions()}
    found: dict[str, Mapping[int, RegionProfile]] = {}
    for advice in advices:
        known = advice.best.profile if advice.best is not None else {}
        now = functions.get(advice.kernel, {})
        pairs = list(zip(sorted(now), sorted(known), strict=False))
        if known and len(now) == len(known) and all(now[a].kind == known[b].kind for a, b in pairs):
            found[advice.kernel] = {number: known[candidate] for number, candidate in pairs}
    return RunProfile(found)
