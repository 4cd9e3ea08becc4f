"""Selections that are refused because their loop waits for other threads, found without running the passes.

No pass before collect-contexts moves or removes an instruction that waits, or the mark of a loop, so what
collect-contexts says about it is known beforehand. The passes take most of the time of a trial, and kernels with large
loops often wait.
"""

from __future__ import annotations

from cccopt.ccc.function.view import view_of
from cccopt.ccc.legality.in_lane import check_in_lane
from cccopt.ccc.outcome import in_lane_rules
from cccopt.ccc.outcome.refusal import Refusal
from cccopt.ccc.regions.marked_loops import find
from cccopt.diagnostic import Diagnostic
from cccopt.passes.checking import check_input
from cccopt.passes.options import Options
from cccopt.passes.pipeline import asks_for_loops
from cccopt.ptx.ir import Module
from cccopt.ptx.scopes import with_unique_names
from cccopt.text import SourceText


def verified(module: Module) -> bool:
    """True if a module verifies, whatever markers are left in it. Raises CccError like the passes if it does not."""
    check_input(module, SourceText(Options().file, ""))
    return True


def refused_as_waiting(module: Module, kernel: str) -> tuple[Diagnostic, ...]:
    """What the passes would say if they refused the only marked loop of ``kernel``, which has the clause `inlane`, for
    an instruction that waits; nothing if they would not, or if only running them shows it. The module must verify.
    """
    if asks_for_loops(module):
        return ()
    module = with_unique_names(module)
    view = view_of(module, next(f for f in module.functions() if f.name == kernel))
    found: set[Diagnostic] = set()
    try:
        regions = find(view, with_unfit=True).regions
    except Refusal:
        return ()
    for region in regions:
        try:
            check_in_lane(view, region)
        except Refusal as problem:
            found.update(problem.diagnostics)
            if problem.diagnostics[0].code == in_lane_rules.BARRIER.code:
                continue
        return ()
    return tuple(found) if len(found) == 1 else ()
