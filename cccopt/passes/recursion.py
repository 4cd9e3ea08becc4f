"""The pass that inlines functions marked ``recursive`` at their calls in marked loops (DESIGN 5.5).

nvcc turns a function's tail call of itself into a loop, but it does not inline the function if told not to
(`__noinline__`), and never for sm_100 and later. The iterations of that loop are tasks only if it is part of the marked
loop. If nvcc has left the self-call, as for results that are structures, it becomes a jump here.

    LOOP:                               LOOP:
        call walk, (a, b);                  %x = a; %y = b
        ...                             W:  // ccc recursive.begin
    walk:                                   ...
        // ccc recursive.begin              @%p1 bra DONE;
        ...                                 %x = ...; %y = ...
        @%p1 ret;                           bra W;
        call walk, (..., ...);          DONE:
        ret;                                ...

Requirements: each self-call is the last thing that the function does, with its results returned as they are. Its
parameters are numbers and pointers, or structures of them, accessed by name (`cccopt.ccc.function.inlining`). A
function that no marked loop calls stays as it is.

Safety: EXACT.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from cccopt.analysis.loops import Loop
from cccopt.ccc.function.annotations import Annotation, annotations_of, without_annotations
from cccopt.ccc.function.call_sequences import Unfit, calls, is_last, self_calls
from cccopt.ccc.function.calls import called, callees
from cccopt.ccc.function.inlining import inline
from cccopt.ccc.function.view import View, view_of
from cccopt.ccc.outcome import refusal
from cccopt.ccc.outcome.choices import Mode
from cccopt.ccc.outcome.refusal import Refusal, refuse
from cccopt.clauses import Kind, MarkedShape
from cccopt.diagnostic import Diagnostic
from cccopt.passes.options import Options
from cccopt.passes.refused import left
from cccopt.passes.result import PassResult
from cccopt.ptx.ir import Function, Item, Marker, Module
from cccopt.ptx.isa import is_indirect_call

_MOST = 64
"""The most calls that are inlined into one function: functions that call each other may go on without end."""


def run(module: Module, options: Options) -> PassResult:
    """Inline marked functions into marked loops. A refused caller loses its markers, with an error, or a warning if
    ``keep_going``.
    """
    templates = {f.name: f for f in module.functions() if f.kind == "func" and _recursions(f)}
    if options.mode == Mode.OFF or not any(map(_recursions, module.functions())):
        return PassResult(module)
    said: list[Diagnostic] = []
    used: set[str] = set()
    items: list[Item] = []
    for item in module.items:
        if isinstance(item, Function) and item.body is not None:
            try:
                item, found = _inlined(module, item, templates)
                used |= found
            except Refusal as problem:
                said += left(problem, options.of(item.name))
                item = without_annotations(item)
        items.append(item)
    # A function that was inlined into a loop no longer needs its own markers.
    made = Module(tuple(_served(i) if isinstance(i, Function) and i.name in used else i for i in items))
    known = {diagnostic.place for diagnostic in said}
    for lost in _left(made):
        warnings = left(lost.refusal, options)
        # Its callers have been refused for this already.
        said += () if lost.annotation.place in known else warnings
        made = Module(
            tuple(_without(i, lost.annotation.region) if isinstance(i, Function) else i for i in made.items)
        )
    return PassResult(made, tuple(said))


@dataclass(frozen=True, slots=True)
class _Lost:
    """An annotation without a loop, and the reason."""

    annotation: Annotation
    refusal: Refusal


def _without(function: Function, region: int) -> Function:
    """The function without the ``recursive.begin`` markers of a region."""
    if function.body is None:
        return function
    mine = (
        isinstance(s, Marker) and s.event == "recursive.begin" and s.region == region for s in function.body
    )
    return replace(function, body=tuple(s for s, gone in zip(function.body, mine, strict=True) if not gone))


def _served(function: Function) -> Function:
    for annotation in _recursions(function):
        function = _without(function, annotation.region)
    return function


def _recursions(function: Function) -> list[Annotation]:
    return [a for a in annotations_of(function.body or ()).values() if a.kind == Kind.RECURSIVE]


def _inlined(module: Module, function: Function, templates: dict[str, Function]) -> tuple[Function, set[str]]:
    """The function with marked functions inlined into the marked loops that call them, and the names of these
    functions.
    """
    used: set[str] = set()
    for _ in range(_MOST):
        call = _call_in_loop(module, function, templates.keys() - {function.name})
        if call is None:
            return function, used
        assert function.body is not None
        name = next(n for n in templates if calls(function.body[call], n))
        callee = templates[name]
        (annotation, *_) = _recursions(callee)
        _check_form(module, callee, annotation)
        try:
            function = inline(function, call, callee)
        except Unfit as problem:
            raise refuse(refusal.INLINING, annotation.place, problem) from problem
        used.add(name)
    return function, used


def _call_in_loop(module: Module, function: Function, names: Iterable[str]) -> int | None:
    """The first call of one of the functions in a marked loop; a kernel marked ``grid`` as a whole is such a loop."""
    body = function.body or ()
    found = [i for i, s in enumerate(body) if any(calls(s, name) for name in names)]
    marked = [a for a in annotations_of(body).values() if a.event == MarkedShape.LOOP and not a.variable]
    if not found or not marked:
        return None
    if any(a.kind == Kind.GRID for a in marked):
        return found[0]
    view = view_of(module, function)
    blocks = {b for a in marked for loop in _loops(view, "body.begin", a) for b in loop.blocks}
    # The view's body has labels that the function's own has not, so calls are matched by their order.
    places = [i for i, s in enumerate(view.body) if any(calls(s, name) for name in names)]
    inside = (own for own, place in zip(found, places, strict=True) if view.cfg.block_of(place) in blocks)
    return next(inside, None)


def _check_form(module: Module, function: Function, annotation: Annotation) -> None:
    """Raise Refusal unless each self-call of the function is direct, and the last thing that it does."""
    bodies = {f.name for f in module.functions() if f.body is not None}
    others = [n for n in callees(function) if n != function.name and n in bodies]
    if function.name in called(module, others):
        raise refuse(refusal.RECURSION_BY_OTHERS, annotation.place)
    own = self_calls(function)
    try:
        last = [is_last(function, call) for call in own]
    except Unfit as problem:
        raise refuse(refusal.INLINING, annotation.place, problem) from problem
    if not all(last):
        raise refuse(refusal.RECURSIVE_FORM, annotation.place)


def _left(module: Module) -> list[_Lost]:
    """The marked functions that have no loop anywhere, each with the reason."""
    holders: dict[int, tuple[Annotation, list[Function]]] = {}
    looped: set[int] = set()
    for function in module.functions():
        for annotation in _recursions(function):
            holders.setdefault(annotation.region, (annotation, []))[1].append(function)
            view = view_of(module, function)
            others = [
                a
                for a in view.annotations.values()
                if a.event == MarkedShape.LOOP and a.kind != Kind.RECURSIVE
            ]
            taken = {loop.header for other in others for loop in _loops(view, "body.begin", other)}
            if {loop.header for loop in _loops(view, "recursive.begin", annotation)} - taken:
                looped.add(annotation.region)
    return [
        _Lost(annotation, _reason(module, annotation, functions))
        for region, (annotation, functions) in holders.items()
        if region not in looped
    ]


def _reason(module: Module, annotation: Annotation, functions: Iterable[Function]) -> Refusal:
    """Why an annotation that is in ``functions`` has no loop."""
    for function in functions:
        try:
            _check_form(module, function, annotation)
        except Refusal as problem:
            return problem
        if self_calls(function):
            return refuse(refusal.NO_LOOP, annotation.place, "function", annotation.pragma)
        if any(map(is_indirect_call, function.body or ())):
            return refuse(refusal.RECURSION_BY_POINTER, annotation.place)
    return refuse(refusal.UNROLLED, annotation.place)


def _loops(view: View, event: str, annotation: Annotation) -> list[Loop]:
    """The innermost loops around the markers ``event`` of the annotation."""
    around = (view.innermost(view.cfg.block_of(i)) for i in view.markers(event, annotation.region))
    return [loop for loop in around if loop is not None]
