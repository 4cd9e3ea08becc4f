"""Kernels whose marked inner loops are no loops in what nvcc makes of the text without markers: it unrolls them.

for (int i = 0; i < 25; i++)           unmarked: 25 tests with constants, each `%` a multiplication
  if (n % primes[i] == 0) return;      marked: a loop with a load and a division

The mark alone makes such a kernel several times slower. What is collected seldom makes up for it, and only a profile
can tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from cccopt.analysis import cfg
from cccopt.analysis.cost import costs
from cccopt.analysis.loops import loops
from cccopt.ccc.function.annotations import annotations_of
from cccopt.ccc.outcome import refusal
from cccopt.ccc.outcome.choices import Form, Outcome
from cccopt.ccc.outcome.report import RegionReport
from cccopt.ccc.profitability.model import SAFE_GAIN
from cccopt.diagnostic import CccError, Diagnostic
from cccopt.driver.function_texts import definitions
from cccopt.passes.options import Options
from cccopt.ptx.ir import Function, Marker, Module
from cccopt.ptx.parser import parse


def unrolled_kernels(
    reports: Iterable[RegionReport], options: Options, marked: Module, plain: Callable[[], str]
) -> Mapping[str, tuple[RegionReport, ...]]:
    """The kernels of ``marked`` none of whose rewritten inner loops is a loop in ``plain()``, the PTX of the text
    without markers, and the reports of these loops; all that is marked in ``marked`` is rewritten. That text is asked
    for only where nvcc knows how many inner iterations each of them makes. What ``options`` say of a kernel or of
    the form holds, and so does a profile by which more is gained than the marks cost.
    """
    if options.form is not Form.AUTO or not options.expand:
        return {}
    rewritten: dict[str, list[RegionReport]] = {}
    for report in reports:
        if report.outcome is Outcome.REWRITTEN and report.kernel not in options.builds:
            rewritten.setdefault(report.kernel, []).append(report)
    known = {
        kernel: own
        for kernel, own in rewritten.items()
        if all(report.unrolled for report in own if report.code is None)
    }
    if not known:
        return {}
    text = plain()
    found: dict[str, tuple[RegionReport, ...]] = {}
    for function in marked.functions():
        own = known.get(function.name, [])
        original = _function(text, function.name) if own else None
        if original is not None and _unrolls(function, original) and not _pays(own, function, original):
            found[function.name] = tuple(report for report in own if report.code is None)
    return found


def remarks(kernels: Mapping[str, Iterable[RegionReport]]) -> tuple[Diagnostic, ...]:
    """Why `unrolled_kernels` are left, a remark for each of their loops."""
    return tuple(
        refusal.remark(
            "CCC117",
            "the marked loop stays as it is: nvcc unrolls it completely where it is not marked",
            report.place,
            f"it runs at most {report.unrolled} inner iterations, which nvcc knows",
            "add `always` to the pragma to collect it anyway, or put `#pragma unroll 1` above the loop: nvcc"
            " then keeps it with and without the mark, so that both builds can be compared",
        )
        for loops in kernels.values()
        for report in loops
    )


def declined(reports: Iterable[RegionReport], kernels: Mapping[str, object]) -> tuple[RegionReport, ...]:
    """The reports of what was rewritten in ``kernels``, as it is when it stays as it was."""
    return tuple(
        RegionReport(r.kernel, r.region, r.kind, r.place, Outcome.DECLINED, name=r.name, cost=r.cost)
        for r in reports
        if r.kernel in kernels
    )


def _unrolls(marked: Function, original: Function) -> bool:
    """Whether the original has fewer loops, by all the marked inner ones."""
    body = marked.body or ()
    inner = {region for region, annotation in annotations_of(body).items() if annotation.variable}
    copies = sum(isinstance(s, Marker) and s.event == "for.begin" and s.region in inner for s in body)
    return _loops(marked) - _loops(original) >= copies


def _pays(reports: Iterable[RegionReport], marked: Function, original: Function) -> bool:
    """Whether a profile tells that the rewrite gains more than the marks cost: what a lane runs that takes all paths,
    beside what it runs in the original.
    """
    loss = _slots(marked) / _slots(original)
    own = [report.cost for report in reports if report.code is not None and report.cost is not None]
    return all(not cost.assumed and cost.gain >= loss * SAFE_GAIN for cost in own)


def _function(text: str, name: str) -> Function | None:
    """The function ``name`` of a PTX text, without the rest of it; None where it cannot be read."""
    for each in definitions(text) or ():
        if each.name == name and each.body is not None:
            with suppress(CccError):
                return next(parse(text[each.start : each.end], name).functions(), None)
    return None


def _loops(function: Function) -> int:
    return len(loops(cfg.build(function.body or ())))


def _slots(function: Function) -> float:
    """The issue slots of a function, but for those of what it calls."""
    own = costs(Module((function,)), function)
    blocks = range(len(own.cfg.blocks))
    return own.of_blocks(blocks, blocks)
