"""The passes in order, with the verifier between them.

    PIPELINE = (promote-calls, unique-names, recursion, grid-loop, broken-promises,
                if-conversion, flag-reductions, coalesce-reductions, prefetch-loads, hoist-loads,
                collect-contexts, dead-code)

Each pass takes a module and returns a new one with remarks and reports. The earlier ones prepare functions for
collect-contexts: if that rewrites nothing in one, it comes out as it went in.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

from cccopt.ccc.function.annotations import is_annotation, without_annotations
from cccopt.ccc.outcome.choices import Mode, Outcome
from cccopt.ccc.outcome.refusal import Refusal
from cccopt.ccc.outcome.report import RegionReport
from cccopt.ccc.outcome.rewritten_loop import RewrittenLoop
from cccopt.ccc.output_check import check_output
from cccopt.diagnostic import CccError, Diagnostic, Severity
from cccopt.passes import (
    broken_promises,
    coalesce_reductions,
    collect_contexts,
    dead_code,
    flag_reductions,
    grid_loop,
    hoist_loads,
    if_conversion,
    prefetch_loads,
    promote_calls,
    recursion,
)
from cccopt.passes.checking import check_input
from cccopt.passes.options import Options
from cccopt.passes.refused import raise_errors
from cccopt.passes.result import PassResult
from cccopt.passes.selection import selected
from cccopt.ptx.ir import Function, Item, Marker, Module
from cccopt.ptx.scopes import with_unique_names
from cccopt.ptx.verifier import verify
from cccopt.text import SourceText

__all__ = [
    "PIPELINE",
    "Options",
    "Refusal",
    "RegionReport",
    "Result",
    "Watch",
    "asks_for_loops",
    "prepared",
    "run",
]


@dataclass(frozen=True, slots=True)
class Result:
    """A rewritten module, the remarks, and what became of each region."""

    module: Module
    remarks: tuple[Diagnostic, ...] = ()
    regions: tuple[RegionReport, ...] = ()


Pass = Callable[[Module, Options], PassResult]
Watch = Callable[[str, Module], None]
"""A function that gets the name of a pass and the module that it made."""


def _unique_names(module: Module, options: Options) -> PassResult:
    """Make names unique: scopes of inline assembly may declare one again, and later passes go by name. EXACT.

    Leaves a module without annotations as it is.
    """
    return PassResult(with_unique_names(module) if any(map(_is_marked, module.functions())) else module)


def _is_marked(function: Item) -> bool:
    return isinstance(function, Function) and any(map(is_annotation, function.body or ()))


PIPELINE: tuple[tuple[str, Pass], ...] = (
    ("promote-calls", promote_calls.run),
    ("unique-names", _unique_names),
    ("recursion", recursion.run),
    ("grid-loop", grid_loop.run),
    ("broken-promises", broken_promises.run),
    ("if-conversion", if_conversion.run),
    ("flag-reductions", flag_reductions.run),
    ("coalesce-reductions", coalesce_reductions.run),
    ("prefetch-loads", prefetch_loads.run),
    ("hoist-loads", hoist_loads.run),
    ("collect-contexts", collect_contexts.run),
    ("dead-code", dead_code.run),
)

_ASKING = ("grid.begin", "recursive.begin")

PREPARING = ("promote-calls", "unique-names", "recursion", "grid-loop")
"""The passes that make the loops that markers ask for."""


def run(
    module: Module, options: Options, source: SourceText | None = None, watch: Watch | None = None
) -> Result:
    """Run the pipeline over ``module``; ``source`` is the text that it was parsed from, which errors quote. ``watch``
    is called with the result of each pass.

    Raises PtxError if the module does not verify (CCC005 to CCC009), and CccError if `options.only` names no region
    (CCC089). Raises Refusal with one error for each region that cannot be rewritten; with ``keep_going`` these are
    left, with a warning. CccError is also raised for a bug of ours: a pass makes a module that does not verify
    (CCC059), or a rewrite is not sound (CCC099).
    """
    remarks: tuple[Diagnostic, ...] = ()
    regions: tuple[RegionReport, ...] = ()
    original = module
    undeclared = check_input(module, source or SourceText(options.file, ""))
    if options.only and options.mode != Mode.OFF:
        module = selected(module, prepared(module), options.only)
    before = module
    for name, step in PIPELINE:
        before = module if name == "collect-contexts" else before
        try:
            after, said, made = step(module, options)
        except Refusal as problem:
            raise_errors(remarks, *problem.diagnostics)
            raise
        if after == module:
            after = module  # with all that is known about it, and verified already
        else:
            try:
                verify(after, undeclared=undeclared, before=module)
            except CccError as problem:
                raise CccError(*(_internal(name, d) for d in problem.diagnostics)) from problem
        if watch is not None:
            watch(name, after)
        module = after
        remarks += said
        regions += made
    raise_errors(remarks)
    _check_rewrites(before, module, regions)
    result = _with_untouched(module, original, regions)
    if watch is not None:
        watch("restore-declined", result)
    return Result(result, remarks, regions)


def _check_rewrites(before: Module, after: Module, regions: Iterable[RegionReport]) -> None:
    """Check once more each function of ``after`` in which something was rewritten. Raises CccError (CCC099)."""
    loops: dict[str, list[RewrittenLoop]] = {}
    for report in regions:
        if report.code is not None:
            loops.setdefault(report.kernel, []).append(report.code)
    originals = {function.name: function for function in before.functions() if function.name in loops}
    for function in after.functions():
        if function.name in loops and function.body is not None:
            check_output(originals[function.name], function, loops[function.name])


def asks_for_loops(module: Module) -> bool:
    """Whether markers ask for a loop that does not exist yet (``grid``, ``recursive``), which `prepared` makes."""
    return any(
        isinstance(s, Marker) and s.event in _ASKING
        for function in module.functions()
        for s in function.body or ()
    )


_PREPARE = Options(Mode.ALWAYS, keep_going=True)


def prepared(module: Module) -> Module:
    """``module`` with the loops that its markers ask for and with all its markers: the form from which profiles are
    made. It computes the same results, and functions without markers are as they were.

    Where that is not possible, the function is left as it is: a kernel without its ``grid`` marker, any other function
    without markers.
    """
    before = {f.name: f for f in module.functions() if f.body is not None and not _is_marked(f)}
    return Module(
        tuple(
            before.get(item.name, item) if isinstance(item, Function) and item.body is not None else item
            for item in _prepared(module).items
        )
    )


def _prepared(module: Module) -> Module:
    named, _, _ = _unique_names(promote_calls.run(module, _PREPARE).module, _PREPARE)
    made = _with_loops(named)
    lost = _annotated(module, ("grid.begin",)) - _annotated(made, (*_ASKING, "for.begin"))
    if not lost:
        return made
    if not any(_is_marked(_without_grid(function, lost)) for function in module.functions()):
        named = module  # without annotations it keeps its names
    return _with_loops(Module(tuple(_without_grid(item, lost) for item in named.items)))


def _with_loops(module: Module) -> Module:
    for name, step in PIPELINE:
        if name in PREPARING[2:]:
            module, _, _ = step(module, _PREPARE)
    return module


def _annotated(module: Module, events: Collection[str]) -> frozenset[str]:
    """The functions that have markers of some ``events``."""
    return frozenset(
        f.name
        for f in module.functions()
        if any(isinstance(s, Marker) and s.event in events for s in f.body or ())
    )


def _without_grid(item: Item, names: Collection[str]) -> Item:
    if not isinstance(item, Function) or item.name not in names:
        return item
    asking = {s.region for s in item.body or () if isinstance(s, Marker) and s.event == "grid.begin"}
    return without_annotations(item, asking)


def _with_untouched(module: Module, original: Module, regions: Iterable[RegionReport]) -> Module:
    """``module`` with the functions in which nothing was rewritten as they are in ``original``, without their markers;
    all of ``original`` if nothing was rewritten.
    """
    done = {report.kernel for report in regions if report.outcome is Outcome.REWRITTEN}
    if not done:
        return original
    before = {f.name: f for f in original.functions() if f.body is not None and f.name not in done}
    return Module(
        tuple(
            without_annotations(before[item.name])
            if isinstance(item, Function) and item.body is not None and item.name in before
            else item
            for item in module.items
        )
    )


def _internal(name: str, diagnostic: Diagnostic) -> Diagnostic:
    return replace(
        diagnostic,
        code="CCC059",
        severity=Severity.ERROR,
        message=f"internal error: pass `{name}` made PTX that does not verify: {diagnostic.message}",
        help="please report this with the file kept by `--ccc-keep`; `--ccc=off` compiles without the pass",
    )
