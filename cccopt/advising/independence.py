"""What is known about the promises that a suggestion asks the user to make (`cccopt.ccc.legality.independence`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cccopt.advising.source_loops import token_at
from cccopt.ccc.function.annotations import Annotation
from cccopt.ccc.function.view import View
from cccopt.ccc.legality.independence import Judgement, State, judged
from cccopt.ccc.regions.marked_loops import loops_of
from cccopt.clauses import Kind
from cccopt.diagnostic import CccError
from cccopt.source.candidates import declaration_at
from cccopt.source.restricted import Parameter, parameters_around, parameters_of
from cccopt.source.statements import OutOfSight, Unbalanced
from cccopt.text import Place

_ORDER = (State.CONTRADICTED, State.OPEN, State.PROVEN)


def judgement_of(view: View, annotation: Annotation, kind: Kind) -> Judgement:
    """What is known about a candidate with the pragma ``kind``, for all its copies together."""
    parameters = _parameters(view.annotations, annotation.place)
    if len(parameters) != len(view.function.parameters):
        parameters = ()
    restricted = {i for i, parameter in enumerate(parameters) if parameter.restricted}
    restricted |= {i for each in view.annotations.values() for i in each.restricted}
    names = [parameter.name for parameter in parameters]
    loops = loops_of(view, annotation)
    inside = frozenset[int]().union(*(loop.blocks for loop in loops))
    begins, bodies = (view.markers(event, annotation.region) for event in ("for.begin", "body.begin"))
    if not loops or len(begins) < len(loops) or any(view.cfg.block_of(i) not in inside for i in bodies):
        return Judgement(State.OPEN, "the compiler did not keep it as one loop")
    return _together(judged(view, loop, kind, restricted=restricted, names=names) for loop in loops)


def _together(found: Iterable[Judgement]) -> Judgement:
    """One judgement for several copies of a loop: the worst one; if it has conditions, with those of all copies."""
    ordered = sorted(found, key=lambda j: (_ORDER.index(j.state), bool(j.conditions)))
    worst = ordered[0]
    if not worst.conditions:
        return worst
    conditions = dict.fromkeys(c for judgement in ordered for c in judgement.conditions)
    return Judgement(worst.state, worst.why, worst.accesses, tuple(conditions), worst.sums)


def _parameters(annotations: Mapping[int, Annotation], place: Place | None) -> tuple[Parameter, ...]:
    """The parameters of the kernel in the source; none if it is not found there."""
    kernel = next((a.place for a in annotations.values() if a.kind is Kind.GRID), None)
    at = kernel or place
    if at is None:
        return ()
    try:
        code, index = token_at(at)
        if index is None:
            return ()
        found = parameters_of(code, declaration_at(code, index)) if kernel else parameters_around(code, index)
        return tuple(found)
    except (CccError, Unbalanced, OutOfSight):
        return ()
