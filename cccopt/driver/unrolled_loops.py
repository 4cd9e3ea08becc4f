"""Kernels whose marked inner loops are no loops in what nvcc makes of the text without markers: it unrolls them.

for (int i = 0; i < 25; i++)           unmarked: 25 tests with constants, each `%` a multiplication
  if (n % primes[i] == 0) return;      marked: a loop with a load and a division

The mark alone makes such a kernel several times slower, and nothing that is collected makes up for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cccopt.analysis import cfg
from cccopt.analysis.loops import loops
from cccopt.ccc.outcome import refusal
from cccopt.ccc.outcome.choices import Form, Outcome
from cccopt.ccc.outcome.report import RegionReport
from cccopt.diagnostic import Diagnostic
from cccopt.driver.function_texts import definitions
from cccopt.passes.options import Options
from cccopt.ptx.ir import Function, Module
from cccopt.ptx.parser import parse


def without_unrolled(
    reports: tuple[RegionReport, ...], options: Options, marked: Module, plain: Callable[[], str]
) -> tuple[tuple[RegionReport, ...], tuple[Diagnostic, ...]]:
    """``reports`` of a rewrite of ``marked``, in which kernels are declined none of whose collected inner loops is a
    loop in ``plain()``, the PTX of the text without markers, and a remark for each of these loops. That text is asked
    for only where nvcc knows how many inner iterations each of them makes. What ``options`` say of a kernel, of regions
    or of the form holds.
    """
    if options.form is not Form.AUTO or options.only:
        return reports, ()
    kernels = dict.fromkeys(report.kernel for report in reports if report.kernel not in options.builds)
    candidates = {kernel: found for kernel in kernels if (found := _unrolled(reports, kernel))}
    if not candidates:
        return reports, ()
    text = plain()
    left: set[str] = set()
    for function in marked.functions():
        if function.name in candidates:
            original = _function(text, function.name)
            collected = len({report.region for report in candidates[function.name]})
            if original is not None and _loops(function) - _loops(original) >= collected:
                left.add(function.name)
    said = (
        refusal.remark(
            "CCC117",
            "the marked loop stays as it is: unless it is marked, nvcc makes no loop of it",
            report.place,
            report.unrolled,
            "say `always` in the pragma to have it collected all the same, or `#pragma unroll 1` to keep the loop"
            " in both",
        )
        for kernel in candidates
        if kernel in left
        for report in candidates[kernel]
    )
    kept = tuple(_declined(report) if report.kernel in left else report for report in reports)
    return kept, tuple(dict.fromkeys(said))


def _declined(r: RegionReport) -> RegionReport:
    return RegionReport(r.kernel, r.region, r.kind, r.place, Outcome.DECLINED, name=r.name, cost=r.cost)


def _unrolled(reports: Iterable[RegionReport], kernel: str) -> tuple[RegionReport, ...]:
    """The rewritten inner loops of a kernel, if nvcc knows the number of inner iterations of each and nothing else is
    collected in the kernel.
    """
    own = [r for r in reports if r.kernel == kernel and r.outcome is Outcome.REWRITTEN and r.code is None]
    return tuple(own) if all(report.unrolled for report in own) else ()


def _function(text: str, name: str) -> Function | None:
    """The function ``name`` of a PTX text, without the rest of it."""
    for each in definitions(text) or ():
        if each.name == name and each.body is not None:
            return next(parse(text[each.start : each.end], name).functions(), None)
    return None


def _loops(function: Function) -> int:
    return len(loops(cfg.build(function.body or ())))
