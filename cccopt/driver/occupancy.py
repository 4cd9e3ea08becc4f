"""Kernels of which fewer warps are resident after the rewrite, because it takes more registers and shared memory.

Blocks that do not fit on the GPU at once run in waves. If warps mostly wait, for memory or for their own results, a
wave takes as long however many warps it has, so a launch takes longer the more waves it has:

        32 registers: 8 blocks of 256 threads per multiprocessor, all 586 blocks of a launch at once on 132
        64 registers: 4 blocks, 528 at once, two waves

Only ptxas knows how many registers the rewritten code takes, and it takes time to ask. It is asked about kernels that a
profile has timed, and only if their warps wait.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from cccopt.ccc.function.annotations import annotations_of
from cccopt.ccc.outcome import refusal
from cccopt.ccc.outcome.choices import Form, Mode, Outcome
from cccopt.ccc.outcome.report import Cost, RegionReport
from cccopt.ccc.profitability.decision import stays_as_it_is
from cccopt.ccc.profitability.launches import Launches
from cccopt.ccc.profitability.model import IN_LANE_GAIN, LEAST_GAIN, SAFE_GAIN
from cccopt.ccc.profitability.overlap import in_waves
from cccopt.diagnostic import CccError, Diagnostic
from cccopt.driver.function_texts import definitions
from cccopt.passes.options import Options
from cccopt.ptx.ir import Module
from cccopt.ptx.language import target_of
from cccopt.toolchain.occupancy import occupancy
from cccopt.toolchain.ptxas import Resources, resources

MOST_REGISTERS = 255
"""The most registers of a thread."""

_ENTRY = re.compile(r"(?:\.(?:visible|extern|weak|common)\s+)*\.entry\b")


@dataclass(frozen=True, slots=True)
class Crowded:
    """A loop that does not gain enough, because its kernel takes ``registers`` (before and after the rewrite) and
    therefore runs in more ``waves``.
    """

    report: RegionReport
    registers: tuple[int, int]
    waves: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Timed:
    """The reports of a unit, with times that take occupancy into account, and the kernels that gain too little."""

    reports: tuple[RegionReport, ...]
    crowded: Mapping[str, tuple[Crowded, ...]]


def timed(
    reports: tuple[RegionReport, ...],
    text: Callable[[], str],
    marked: Module,
    options: Options,
    most: int | None = None,
) -> Timed:
    """What the occupancy of the rewritten kernels in ``text()``, whose code with marks is in ``marked``, means for the
    times in their ``reports``. ``most`` is the limit that nvcc sets for registers.
    """
    launched = {} if options.profile is None else options.profile.launches
    if not launched:
        return Timed(reports, {})
    arch = target_of(marked)
    stacks: Counter[str] = Counter()
    for report in reports:
        stacks[report.kernel] += report.shared_bytes if report.code is not None else 0
    asked = {
        r.kernel
        for r in reports
        if r.kernel in launched and _waits(r) and _may_differ(launched[r.kernel], stacks[r.kernel], arch)
    }
    needs = _resources(text(), arch, asked) if asked else {}
    kept: list[RegionReport] = []
    crowded: dict[str, list[Crowded]] = {}
    enough: set[str] = set()
    for report in reports:
        need, before = needs.get(report.kernel), launched.get(report.kernel)
        if need is None or before is None or not _waits(report) or report.cost is None:
            kept.append(report)
            continue
        registers = (before.registers, need.registers if most is None else min(need.registers, most))
        waves = _waves(before, registers[1], before.shared + stacks[report.kernel], arch)
        cost = _in_waves(report.cost, *waves)
        kept.append(replace(report, cost=cost))
        if cost.gain >= _needed(report):
            enough.add(report.kernel)
        else:
            crowded.setdefault(report.kernel, []).append(Crowded(kept[-1], registers, waves))
    wanted = enough | options.builds.keys() | _always(marked, options)
    return Timed(tuple(kept), {k: tuple(loops) for k, loops in crowded.items() if k not in wanted})


def remarks(kernels: Mapping[str, Iterable[Crowded]]) -> tuple[Diagnostic, ...]:
    """Why crowded kernels stay as they are: a remark for each of their loops."""
    return tuple(
        refusal.remark(
            "CCC050",
            stays_as_it_is(_gain(loop.report)),
            loop.report.place,
            f"the rewritten kernel uses {loop.registers[1]} registers per thread instead of {loop.registers[0]}, so"
            f" the blocks of a launch run in {loop.waves[1]} waves instead of {loop.waves[0]}",
            "limit the registers with `__launch_bounds__` or `-maxrregcount`, or add `always` to the pragma to collect"
            " it anyway",
        )
        for loops in kernels.values()
        for loop in loops
    )


def _gain(report: RegionReport) -> float:
    return report.cost.gain if report.cost is not None else 1.0


def _waits(report: RegionReport) -> bool:
    """Whether a report is that of a rewritten loop in which, according to a profile, warps wait."""
    after = report.cost.after if report.cost is not None else None
    return report.outcome is Outcome.REWRITTEN and after is not None and after.waiting > 0


def _needed(report: RegionReport) -> float:
    """The gain that a rewritten loop needs: the margin that it had, if it had one."""
    margin = IN_LANE_GAIN if report.form is Form.IN_LANE else SAFE_GAIN
    return margin if _gain(report) >= margin else LEAST_GAIN


def _always(marked: Module, options: Options) -> set[str]:
    """The kernels of which the user wants some code to be rewritten whatever that gains."""
    return {
        function.name
        for function in marked.functions()
        for annotation in annotations_of(function.body or ()).values()
        if (annotation.mode or options.mode) is Mode.ALWAYS
    }


def _may_differ(before: Launches, stacks: int, arch: str) -> bool:
    """Whether a launch may run in more waves with ``stacks`` bytes more shared memory and any number of registers."""
    plain, most = _waves(before, MOST_REGISTERS, before.shared + stacks, arch)
    return plain != most


def _waves(before: Launches, registers: int, shared: int, arch: str) -> tuple[int, int]:
    """In how many waves a launch runs before the rewrite and after it."""
    plain = occupancy(before.registers, before.shared, before.threads, arch)
    rewritten = occupancy(registers, shared, before.threads, arch)
    if plain is None or rewritten is None or not plain.blocks:
        return 1, 1
    # ptxas limits the registers of a kernel whose blocks would not fit.
    return before.waves(plain.blocks), before.waves(max(rewritten.blocks, 1))


def _in_waves(cost: Cost, before: int, after: int) -> Cost:
    """The cost of a loop whose warps wait in more waves after the rewrite."""
    if before == after or cost.before is None or cost.after is None:
        return cost
    time = in_waves(cost.after, after / before)
    return replace(cost, after=time, gain=cost.before.total / time.total)


def _resources(text: str, arch: str, kernels: Collection[str]) -> Mapping[str, Resources]:
    """What ptxas says about ``kernels``; nothing if it cannot compile the text, as code that is linked later."""
    pieces: list[str] = []
    at = 0
    for function in definitions(text) or ():
        if function.name not in kernels and _ENTRY.match(text, function.start):
            pieces.append(text[at : function.start])
            at = function.end
    try:
        return resources("".join((*pieces, text[at:])), arch)
    except CccError:
        return {}
