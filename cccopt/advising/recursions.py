"""Why a kernel whose only loop is a function that calls itself cannot be annotated.

Before candidates are tried, such a function is inlined into the kernel that calls it. Where that is not possible, the
kernel has no loop and there is nothing to try.
"""

from __future__ import annotations

from cccopt.advising.selections import Selection
from cccopt.advising.trials import Trial
from cccopt.ccc.function.annotations import annotations_of, without_annotations
from cccopt.ccc.function.calls import called
from cccopt.ccc.outcome.choices import Mode
from cccopt.clauses import Kind
from cccopt.diagnostic import Diagnostic
from cccopt.passes.pipeline import Options, run
from cccopt.ptx.ir import Function, Item, Module

_KINDS = (Kind.GRID, Kind.RECURSIVE)


def refused_recursion(module: Module, kernel: str) -> Trial | None:
    """The refused trial of a kernel together with the recursive functions that it calls; None if it calls none.
    ``module`` has markers of all candidates, and no loops have been made in it yet.
    """
    names = called(module, [kernel])
    alone = Module(tuple(_marked(item) for item in module.items if _is_of(item, names)))
    annotations = [a for f in alone.functions() for a in annotations_of(f.body or ()).values()]
    grid = next((a.region for a in annotations if a.kind is Kind.GRID), None)
    kinds = tuple((a.region, a.kind) for a in annotations)
    if grid is None or not any(kind is Kind.RECURSIVE for _, kind in kinds):
        return None
    said: dict[object, Diagnostic] = {}
    for diagnostic in run(alone, Options(Mode.ALWAYS, keep_going=True)).remarks:
        said.setdefault(diagnostic.place, diagnostic)  # later messages at the same place follow from it
    return Trial(kernel, Selection(grid, kinds), refused=tuple(said.values()))


def _is_of(item: Item, names: set[str]) -> bool:
    return not isinstance(item, Function) or item.body is None or item.name in names


def _marked(item: Item) -> Item:
    """A function with only its markers as a kernel or as a function that calls itself."""
    if not isinstance(item, Function) or item.body is None:
        return item
    others = [a.region for a in annotations_of(item.body).values() if a.kind not in _KINDS]
    return without_annotations(item, others)
