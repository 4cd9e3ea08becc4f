"""What was chosen for a kernel, predicted of it and measured, and how good that is over many kernels."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.real.build import PLAIN
from bench.verdict.measuring import times_of
from bench.verdict.programs import (
    ALWAYS,
    AUTO,
    PROFILED,
    Task,
    has_build,
    is_for_fitting,
    is_rewritten,
    regions_of,
)
from cccopt.ccc.profitability.code_digest import canonical
from cccopt.profiling.names import shown

CHOOSING = (AUTO, PROFILED)
WRONG, CLOSE = 0.05, 0.25
"""Gains that differ from 1 by less than the first are none; predictions are close within the second."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel with annotations: how many times as fast as the plain build each build is (``gains``, measured), which
    of them rewrite it, and what was ``predicted`` of `always`, None without a profile that fits.
    """

    program: str
    name: str
    fitting: bool
    milliseconds: float
    gains: Mapping[str, float]
    rewritten: frozenset[str]
    predicted: float | None

    def chosen(self, build: str) -> float:
        """The gain of what ``build`` chose: 1 where it left the kernel as nvcc makes it without annotations."""
        return self.gains[build] if build in self.rewritten else 1.0

    @property
    def best(self) -> float:
        """The gain of choosing right, among leaving it alone and what was built."""
        return max([1.0, *(gain for build, gain in self.gains.items() if build in self.rewritten)])

    @property
    def error(self) -> float | None:
        """By what factor predicted and measured gain of `always` differ, as its logarithm."""
        if self.predicted is None or ALWAYS not in self.rewritten or ALWAYS not in self.gains:
            return None
        return math.log(self.predicted / self.gains[ALWAYS])

    @property
    def has_wrong_sign(self) -> bool:
        """Whether a gain was predicted of what loses, or the other way round."""
        if self.error is None or self.predicted is None:
            return False
        signs = [_sign(self.predicted), _sign(self.gains[ALWAYS])]
        return signs in ([1, -1], [-1, 1])


@dataclass(frozen=True, slots=True)
class Summary:
    """Of some kernels: for each build that chooses the geometric means of its gains and of these over those of choosing
    right, the least gain, and the share of the logarithm of what choosing right gains; and the errors of predictions:
    their number, the median, the share of close ones, and of how many the sign is wrong.
    """

    kernels: int
    gain: Mapping[str, float]
    of_best: Mapping[str, float]
    least: Mapping[str, float]
    share: Mapping[str, float]
    predictions: int
    median: float
    close: float
    wrong: tuple[str, ...] = field(default=())


def summary(kernels: Sequence[Kernel]) -> Summary:
    """The summary of at least one kernel."""
    errors = [kernel.error for kernel in kernels if kernel.error is not None]
    best = sum(math.log(kernel.best) for kernel in kernels)

    def mean(build: str, *, of_best: bool) -> float:
        return statistics.geometric_mean(k.chosen(build) / (k.best if of_best else 1) for k in kernels)

    def share(build: str) -> float:
        return sum(math.log(k.chosen(build)) for k in kernels) / best if best else 1.0

    return Summary(
        len(kernels),
        {build: mean(build, of_best=False) for build in CHOOSING},
        {build: mean(build, of_best=True) for build in CHOOSING},
        {build: min(k.chosen(build) for k in kernels) for build in CHOOSING},
        {build: share(build) for build in CHOOSING},
        len(errors),
        math.exp(statistics.median(map(abs, errors))) - 1 if errors else 0.0,
        sum(abs(e) <= math.log(1 + CLOSE) for e in errors) / len(errors) if errors else 0.0,
        tuple(f"{k.program} {k.name}" for k in kernels if k.has_wrong_sign),
    )


def left_out(task: Task) -> Iterator[str]:
    """What `kernels_of` has no figures of, and why."""
    measured = times_of(task.place)
    if measured is None:
        yield f"{task.program.name}: it did not run"
        return
    for build in _not_built(task):
        yield f"{task.program.name}: {build} is not built"
    for build in (PLAIN, *CHOOSING):
        if build in measured["wrong"]:
            yield f"{task.program.name}: {build}: {measured['wrong'][build]}"
    names = {region["kernel"] for region in regions_of(task.place, ALWAYS)}
    if not names:
        yield f"{task.program.name}: no region is left of its annotations"
    timed = {name for of in measured["times"].values() for name in of}
    for name in sorted(names):
        if canonical(name) not in timed:
            yield f"{task.program.name}: `{shown(name)}` did not run"


def kernels_of(task: Task) -> Iterator[Kernel]:
    """The kernels of a program that have annotations and ran in all builds that choose, with right results; `left_out`
    tells of all others.
    """
    measured = times_of(task.place)
    if measured is None or PLAIN in measured["wrong"] or _not_built(task):
        return
    times = {build: of for build, of in measured["times"].items() if build not in measured["wrong"]}
    regions = {build: regions_of(task.place, build) for build in (ALWAYS, *CHOOSING)}
    for name in dict.fromkeys(region["kernel"] for region in regions[ALWAYS]):
        here = {build: [r for r in found if r["kernel"] == name] for build, found in regions.items()}
        key = canonical(name)
        gains = {
            build: _gain(times[PLAIN][key], of[key])
            for build, of in times.items()
            if build != PLAIN and key in of and key in times[PLAIN]
        }
        rewritten = frozenset(build for build, found in here.items() if any(map(is_rewritten, found)))
        # Where nothing is rewritten, the build is the plain one, and did not run.
        if key in times[PLAIN] and gains.keys() >= rewritten.intersection(CHOOSING):
            yield Kernel(
                task.program.name,
                shown(name).partition("(")[0].removeprefix("void "),
                is_for_fitting(task.program.name),
                statistics.median(times[PLAIN][key]) / 1e6,
                gains,
                rewritten,
                _predicted(task, here[ALWAYS]),
            )


def _not_built(task: Task) -> list[str]:
    return [build for build in CHOOSING if not has_build(task.place, build)]


def _gain(plain: Sequence[float], other: Sequence[float]) -> float:
    """The median of ratios, turn by turn."""
    return statistics.median(a / b for a, b in zip(plain, other, strict=False))


def _predicted(task: Task, regions: Sequence[Mapping[str, Any]]) -> float | None:
    """The gain of a kernel by those of its rewritten loops, each with the share of issue slots that a profile says."""
    profile = json.loads(task.profile.read_text())["kernels"] if task.profile.exists() else {}
    counts = profile.get(regions[0]["kernel"], {})
    before = after = 0.0
    gain = 1.0
    for region in regions:
        if region["cost"] is None or region["cost"]["assumed"] or str(region["region"]) not in counts:
            continue
        # A loop's report comes ahead of those of its paths.
        if region["kind"] in ("grid", "for"):
            gain = region["cost"]["gain"] if is_rewritten(region) else 1.0
        slots = counts[str(region["region"])]["issued"]
        before += slots
        after += slots / gain
    return before / after if after else None


def _sign(gain: float) -> int:
    return (gain > 1 + WRONG) - (gain < 1 - WRONG)
