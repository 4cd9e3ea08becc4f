"""Which trials of a kernel are suggested: the best one, and alternatives that are worth a measurement of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cccopt.advising.pragmas import PROMISES
from cccopt.advising.selections import Selection
from cccopt.advising.trials import Trial, is_expanded
from cccopt.ccc.outcome.choices import Form
from cccopt.ccc.profitability.model import IN_LANE_GAIN, LEAST_GAIN, SAFE_GAIN
from cccopt.clauses import LOOPS_OF_TASKS, Kind

_ABOUT_EQUAL, _CARRIED_ABOUT_EQUAL = 1.02, LEAST_GAIN
"""Gains within this factor count as equal: then a trial that is expanded, needs fewer promises and pragmas or issues
less is better. In the carried form, each further pragma adds a copy of what follows it. On an H200, `nqueen` of the
gallery gained 1.18 with two pragmas, and ran at 0.94 with a third, for which 3 % more is predicted.
"""


def best_chosen(accepted: Sequence[Trial], chosen: Callable[[Selection], bool]) -> tuple[Trial | None, bool]:
    """The best of the trials that `auto` rewrites, and True. If there is none, or if so much more is predicted for
    another trial that it is worth measuring, the best of all, and False.
    """
    first = best_of(accepted)
    left = list(accepted)
    while (best := best_of(left)) is not None and first is not None and pays(best):
        if (best.gain_of_kernel or 0) * SAFE_GAIN < (first.gain_of_kernel or 0):
            break
        if chosen(best.selection):
            return best, True
        left.remove(best)
    return first, False


def pays(trial: Trial) -> bool:
    """Whether `auto` may be expected to rewrite the loop and thereby make the kernel faster."""
    loop, kernel = trial.gain or 0, trial.gain_of_kernel or 0
    return loop >= _least(trial) and kernel >= LEAST_GAIN


def _least(trial: Trial) -> float:
    """The gain that `auto` requires of the loop."""
    form = trial.loop.form if trial.loop is not None else None
    if form is Form.IN_LANE:
        return IN_LANE_GAIN
    return LEAST_GAIN if is_expanded(trial) and form is not Form.CARRIED else SAFE_GAIN


def best_of(accepted: Sequence[Trial]) -> Trial | None:
    """The trial with the largest gain; among about equal ones an expanded one, then the one that needs the fewest
    promises and pragmas, then the one that issues least.

    On an H100, `wlcpow` of the gallery gained 1.7 expanded and nothing in order; both are predicted to gain 1.8. Memory
    bounds all predictions for `jaccard`; on an H200 its path gained 4.0, and the loop in the path 2.8.
    """
    first = max(accepted, key=lambda trial: trial.gain_of_kernel or 0, default=None)
    if first is None:
        return None
    carried = first.loop is not None and first.loop.form is Form.CARRIED
    least = (first.gain_of_kernel or 0) / (_CARRIED_ABOUT_EQUAL if carried else _ABOUT_EQUAL)
    equal = [trial for trial in accepted if (trial.gain_of_kernel or 0) >= least]
    return min(
        equal,
        key=lambda trial: (
            not is_expanded(trial),
            _promises(trial),
            len(trial.selection.kinds),
            _issued(trial),
        ),
    )


def _issued(trial: Trial) -> float:
    """The issue slots of the rewritten loop as a part of the time before the rewrite; 0 if it is not known."""
    cost = trial.loop.cost if trial.loop is not None else None
    if cost is None or cost.before is None or cost.after is None:
        return 0.0
    return (cost.after.code + cost.after.overhead) / cost.before.total


def surest(accepted: Sequence[Trial]) -> tuple[Trial | None, bool]:
    """The trial that `auto` rewrites without a profile; if there is none, the best one, preferably not in lane."""
    sure = best_of([trial for trial in accepted if trial.sure])
    if sure is not None:
        return sure, True
    collected = [
        trial for trial in accepted if trial.loop is not None and trial.loop.form is not Form.IN_LANE
    ]
    return best_of(collected or accepted), False


def _promises(trial: Trial) -> int:
    needless = not is_expanded(trial)
    return (
        bool(trial.selection.sums)
        + sum(kind in PROMISES for _, kind in trial.selection.kinds)
        - trial.selection.in_lane
        + (needless and trial.selection.has(Kind.FOR_VARIABLE))
    )


MOST_ALTERNATIVES = 2
"""The most alternatives to a suggestion."""


def alternatives(accepted: Sequence[Trial], best: Trial) -> list[Trial]:
    """The trials to measure besides the ``best`` one: those with the largest gains, each of which differs from all
    others in its loop over tasks, in its form, or in whether it marks paths, inner loops, or both.

    About a quarter of all predictions are off by more than 25 %, so another form may be the faster one.
    """
    found: dict[tuple[object, ...], list[Trial]] = {}
    for trial in accepted:
        if (trial.gain_of_kernel or 0) >= LEAST_GAIN and _sort(trial) != _sort(best):
            found.setdefault(_sort(trial), []).append(trial)
    firsts = [first for trials in found.values() if (first := best_of(trials)) is not None]
    firsts.sort(key=lambda trial: -(trial.gain_of_kernel or 0))
    return firsts[:MOST_ALTERNATIVES]


def _sort(trial: Trial) -> tuple[object, ...]:
    """What alternatives differ in. In lane, marks only say where lanes wait."""
    if trial.loop is not None and trial.loop.form is Form.IN_LANE:
        return trial.selection.outer, trial.loop.form
    kinds = {kind for _, kind in trial.selection.kinds[1:]}
    loops, paths = kinds & LOOPS_OF_TASKS, kinds - LOOPS_OF_TASKS
    form = trial.loop.form if trial.loop is not None else None
    return trial.selection.outer, form, bool(loops), bool(paths)
