"""Kernels whose marked inner loops nvcc unrolls completely in the text without markers.

for (int i = 0; i < 25; i++)           unmarked: 25 tests with constants, each `%` a multiplication
  if (n % primes[i] == 0) return;      marked: a loop with a load and a division

The mark by itself makes such a kernel several times slower. Collecting seldom makes up for it, and only a profile can
show that it does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
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
    """The kernels of ``marked`` whose rewritten inner loops are not loops in ``plain()``, the PTX of the text without
    markers, and the reports of these loops; everything marked in ``marked`` is rewritten. ``plain`` is called only if
    nvcc knows how many inner iterations each of them makes. Kernels for which ``options`` give a build or force a form
    are not included, nor are those that gain more than the marks cost according to a profile.
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
    """Why `unrolled_kernels` stay as they are: a remark for each of their loops."""
    return tuple(
        refusal.remark(
            "CCC117",
            "the marked loop stays as it is: nvcc unrolls it completely where it is not marked",
            report.place,
            f"nvcc knows that the loop runs at most {report.unrolled} inner iterations",
            "add `always` to the pragma to collect it anyway, or put `#pragma unroll 1` above the loop: nvcc"
            " then keeps it with and without the mark, so that both builds can be compared",
        )
        for loops in kernels.values()
        for report in loops
    )


def declined(reports: Iterable[RegionReport], kernels: Collection[str]) -> tuple[RegionReport, ...]:
    """The reports of ``kernels``, with everything in them declined."""
    return tuple(
        RegionReport(r.kernel, r.region, r.kind, r.place, Outcome.DECLINED, name=r.name, cost=r.cost)
        for r in reports
        if r.kernel in kernels
    )


def _unrolls(marked: Function, original: Function) -> bool:
    """Whether the original has fewer loops, by at least the number of marked inner ones."""
    body = marked.body or ()
    inner = {region for region, annotation in annotations_of(body).items() if annotation.variable}
    copies = sum(isinstance(s, Marker) and s.event == "for.begin" and s.region in inner for s in body)
    return _loops(marked) - _loops(original) >= copies


def _pays(reports: Iterable[RegionReport], marked: Function, original: Function) -> bool:
    """Whether the rewrite gains more than the marks cost according to a profile. The cost is what a lane that takes all
    paths runs, relative to what it runs in the original.
    """
    loss = _slots(marked) / _slots(original)
    own = [report.cost for report in reports if report.code is not None and report.cost is not None]
    return all(not cost.assumed and cost.gain >= loss * SAFE_GAIN for cost in own)


def _function(text: str, name: str) -> Function | None:
    """The function ``name`` of a PTX text, without the rest of it; None if it cannot be read."""
    for each in definitions(text) or ():
        if each.name == name and each.body is not None:
            with suppress(CccError):
                return next(parse(text[each.start : each.end], name).functions(), None)
    return None


def _loops(function: Function) -> int:
    return len(loops(cfg.build(function.body or ())))


def _slots(function: Function) -> float:
    """The issue slots of a function, without those of its callees."""
    own = costs(Module((function,)), function)
    blocks = range(len(own.cfg.blocks))
    return own.of_blocks(blocks, blocks)
