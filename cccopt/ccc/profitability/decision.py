"""Which paths of a region are collected (DESIGN 5.7): all that must be, and under `auto` those expected to pay off.

A path's mode comes from its own pragma, else from its loop's, else from the option. ``collect(k)`` keeps the k
costliest paths. Cheap paths stay in their loop if all stacks together would leave too few threads on an SM.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cccopt.ccc.outcome import refusal
from cccopt.ccc.outcome.choices import Form, Mode
from cccopt.ccc.outcome.report import Cost
from cccopt.ccc.profitability import model
from cccopt.ccc.profitability.estimate import Estimate
from cccopt.ccc.profitability.flows import LoopFlow
from cccopt.ccc.profitability.model import Limit
from cccopt.ccc.profitability.unprofiled import UNKNOWN, uncertain
from cccopt.ccc.profitability.unrolled import why
from cccopt.ccc.regions.marked_loops import Region
from cccopt.ccc.regions.paths import Path
from cccopt.diagnostic import Diagnostic
from cccopt.text import quantity

SHARED_A_MULTIPROCESSOR = 228 * 1024
"""Bytes of shared memory of an SM (compute capability 9.0)."""

SHARED_A_BLOCK = 1024
"""Bytes of it that the driver reserves for each block."""

MOST_RESIDENT = 2048
"""The most threads that an SM holds (compute capability 9.0)."""

LEAST_RESIDENT = 1024
"""Threads for which stacks must leave room on an SM: half of the most that it holds with compute capability 9.0."""

HOW = (
    "make a profile for `--ccc-profile=FILE.json`: with a GPU, build with `--ccc-instrument` and run"
    " `cccopt profile -o FILE.json -- PROGRAM`; without one, `cccopt emulate MARKED.ptx KERNEL ... --profile FILE.json`"
    " (`--ccc-keep=FOLDER` writes the marked PTX)"
)
"""How to make a profile."""

CLEARLY = 1.02
"""The factor by which a loop must be faster without a path for the difference to be more than rounding."""

TOO_LITTLE = f"predictions are not accurate enough for gains below {model.SAFE_GAIN}x"
TOO_LITTLE_IN_LANE = f"predictions are not accurate enough for gains below {model.IN_LANE_GAIN}x in this form"
"""Why a loop with a small predicted gain is left alone."""

NOTHING = "there is nothing to collect in this marked path: it stays as it is"
"""What is said of a path without tasks."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The paths to collect, by their indices in `Region.all_paths`, and the numbers of the marked loop (``loop``) and
    of each path (``costs``, by index). ``limited`` says why a path that would pay off is left alone, if there is one.
    Three mappings are keyed by these indices. ``barred`` has the paths that `auto` leaves alone whatever is predicted,
    with the reason. ``empty`` has the paths that do nothing, with what became of their code. ``unrolled`` has the loops
    that nvcc may unroll, with their iterations, unless their pragmas ask for the rewrite.
    """

    chosen: frozenset[int]
    loop: Cost
    costs: tuple[Cost, ...]
    limited: str = ""
    barred: Mapping[int, str] = field(default_factory=dict)
    empty: Mapping[int, str] = field(default_factory=dict)
    unrolled: Mapping[int, int] = field(default_factory=dict)


def decide(
    region: Region,
    estimate: Estimate,
    mode: Mode,
    shared: Mapping[int, int],
    capacity: int,
    empty: Mapping[int, str] | None = None,
    unrolled: Mapping[int, int] | None = None,
) -> Decision:
    """Choose among the paths of ``region``, except those with ``empty`` tasks. ``mode`` is the option's; ``shared``
    gives the bytes of each path's stack in a block, ``capacity`` the bytes that all of them may take; ``unrolled``
    gives the iterations of loops that nvcc unrolls if they are not marked. Only paths that are not sorted are dropped
    to save shared memory: the plan limits the stacks of sorted ones.
    """
    flow = estimate.flow
    paths = region.all_paths()
    kept = {key for key, path in enumerate(paths) if mode_of(region, path, mode) == Mode.ALWAYS}
    limits = _limits(region)
    unrolled = {} if unrolled is None else unrolled
    barred = _barred(estimate, kept, limits, unrolled)
    limits = (*limits, Limit(frozenset(barred), 0))
    chosen = model.choose(flow, kept, limits)
    limited = ""
    for limit in limits[:-1]:
        if len(limit.keys) > limit.most:
            limited = f"`collect({limit.most})` collects only the costliest paths"
    together = frozenset[int]().union(*(group.keys for group in flow.groups))
    others = frozenset(range(len(paths))) - kept - together
    while chosen & others and _stacks(flow, chosen, shared) > capacity:
        limited = f"the stacks of all paths leave an SM room for fewer than {LEAST_RESIDENT} threads"
        chosen = model.choose(flow, kept, [*limits, Limit(others, len(chosen & others) - 1)])
    nothing = {} if empty is None else empty
    chosen -= nothing.keys()
    if chosen and not kept and not estimate.assumed and model.gain(flow, chosen) < model.SAFE_GAIN:
        possible = frozenset(range(len(paths))) - nothing.keys() - unrolled.keys()
        before, chosen = chosen, _sure(flow, possible, limits)
        if chosen & others and _stacks(flow, chosen, shared) > capacity:
            chosen = frozenset()
        limited = limited if chosen >= before else TOO_LITTLE
    asked = {key for key, path in enumerate(paths) if mode_of(region, path, Mode.AUTO) == Mode.ALWAYS}
    doubtful = {key: trips for key, trips in unrolled.items() if key not in asked}
    return Decision(chosen, *_costs(estimate, chosen), limited, barred, nothing, doubtful)


def _sure(flow: LoopFlow, paths: frozenset[int], limits: Sequence[Limit]) -> frozenset[int]:
    """Those of ``paths`` that gain even if the profile is wrong about how much (`uncertain`), provided that they are
    expected to gain at all. Starting from all of them, paths that a limit forbids or that clearly cost more than they
    save are dropped one by one.
    """

    def certain(some: frozenset[int]) -> frozenset[int]:
        return some - uncertain(flow, some, counted=True)

    chosen = certain(paths)
    while chosen:
        rests = [certain(chosen - {path}) for path in sorted(chosen)]
        best = min(rests, key=lambda rest: model.time(flow, rest))
        allowed = all(len(chosen & limit.keys) <= limit.most for limit in limits)
        if allowed and model.time(flow, best) * CLEARLY >= model.time(flow, chosen):
            break
        chosen = best
    # In the carried form nothing is rewritten without a profile.
    gains = flow.form != Form.CARRIED and model.gain(flow, chosen) >= model.LEAST_GAIN
    return chosen if gains else frozenset()


def _barred(
    estimate: Estimate,
    kept: Collection[int],
    limits: Sequence[Limit],
    unrolled: Mapping[int, int],
) -> dict[int, str]:
    """The paths that `auto` may not choose without a profile, and why: loops that nvcc would unroll, and paths that may
    lose together with the remaining ones.
    """
    if not estimate.assumed:
        return {}
    barred = {key: why(trips) for key, trips in unrolled.items() if key not in kept}
    while True:
        chosen = model.choose(estimate.flow, kept, [*limits, Limit(frozenset(barred), 0)])
        more = uncertain(estimate.flow, chosen) - barred.keys() - {*kept}
        if not more:
            return barred
        barred |= dict.fromkeys(more, UNKNOWN)


def _stacks(flow: LoopFlow, chosen: frozenset[int], shared: Mapping[int, int]) -> float:
    """The bytes of a block's shared memory that the stacks of the ``chosen`` paths take."""
    sorted_groups = [(group.collected(chosen), group) for group in flow.groups]
    alone = chosen.difference(*(ours for ours, _ in sorted_groups))
    in_groups = sum(group.bytes * len(ours) / len(group.keys) for ours, group in sorted_groups)
    return in_groups + sum(shared[key] for key in alone)


def _limits(region: Region) -> tuple[Limit, ...]:
    """The limits that ``collect(k)`` sets for all paths of the loop or for the cases of a switch."""
    groups: dict[int, set[int]] = {}
    most: dict[int, int] = {}
    for key, path in enumerate(region.all_paths()):
        own = path.annotation
        if own.group:
            groups.setdefault(own.group, set()).add(key)
            if own.collect is not None:
                most[own.group] = own.collect
    found = [Limit(frozenset(groups[group]), count) for group, count in most.items()]
    if region.annotation.collect is not None:
        found.append(Limit(frozenset(range(len(region.all_paths()))), region.annotation.collect))
    return tuple(found)


def mode_of(region: Region, path: Path, option: Mode) -> Mode:
    """``auto`` or ``always`` for one path: a clause overrides the option, and the path's clause its loop's."""
    return path.annotation.mode or region.annotation.mode or option


def room_for_stacks(threads: int) -> int:
    """Bytes of shared memory that a block of ``threads`` may take while an SM still holds `LEAST_RESIDENT` threads."""
    blocks = max(LEAST_RESIDENT // max(threads, 1), 1)
    return SHARED_A_MULTIPROCESSOR // blocks - SHARED_A_BLOCK


def resident_threads(shared: int, threads: int) -> int:
    """How many threads an SM holds in blocks of ``threads`` with ``shared`` bytes each, if nothing else limits them."""
    blocks = SHARED_A_MULTIPROCESSOR // (shared + SHARED_A_BLOCK)
    return min(blocks, MOST_RESIDENT // max(threads, 1)) * threads


def pruned(region: Region, chosen: Iterable[int]) -> Region:
    """The region with only the ``chosen`` paths; paths inside one that is left out take its place."""
    wanted = frozenset(chosen)
    keys = {path.begin: key for key, path in enumerate(region.all_paths())}

    def kept(paths: Iterable[Path]) -> tuple[Path, ...]:
        found: list[Path] = []
        for path in paths:
            children = kept(path.children)
            found += [replace(path, children=children)] if keys[path.begin] in wanted else children
        return tuple(found)

    return replace(region, paths=kept(region.paths))


def remarks(region: Region, decision: Decision, mode: Mode) -> tuple[Diagnostic, ...]:
    """What `auto` reports: if something is collected, on the loop and on each path that stays in it; else only on the
    loop.
    """
    paths = region.all_paths()
    whys = {paths[key].annotation.place: why for key, why in sorted(decision.empty.items(), reverse=True)}
    empty = tuple(refusal.remark("CCC054", NOTHING, place, whys[place]) for place in reversed(whys))
    others = frozenset(range(len(paths))) - decision.empty.keys()
    modes = {mode_of(region, paths[key], mode) for key in others}
    if not others or (modes == {Mode.ALWAYS} and not decision.limited):
        return empty
    place = region.annotation.place
    help = HOW if decision.loop.assumed else ""
    if not decision.chosen:
        best = max(others, key=lambda key: decision.costs[key].gain)
        predicted = max(decision.costs[best].gain, decision.loop.gain)
        stays = stays_as_it_is(predicted)
        return (
            *empty,
            refusal.remark(
                "CCC050",
                f"the marked loop stays as it is: {_UNSURE}" if best in decision.barred else stays,
                place,
                _why(
                    _which(paths, best),
                    paths[best],
                    decision.costs[best],
                    decision.limited or decision.barred.get(best, ""),
                ),
                help or "add `always` to the pragma to collect it anyway",
            ),
        )
    said = [
        refusal.remark(
            "CCC050",
            f"the marked path stays in its loop: {_UNSURE}"
            if key in decision.barred
            else f"the marked path stays in its loop{_because(cost.gain, 'collecting it', 'the loop')}",
            path.annotation.place,
            _why("", path, cost, decision.barred.get(key, "") or (decision.limited if cost.gain > 1 else "")),
            help or "add `always` to the pragma to collect it anyway",
        )
        for key, (path, cost) in enumerate(zip(paths, decision.costs, strict=True))
        if key in others - decision.chosen
    ]
    chosen = len(decision.chosen)
    verb = "is" if chosen == 1 else "are"
    count = f"{chosen} of {len(paths)} marked paths {verb}" if len(paths) > 1 else "the marked path is"
    return (
        refusal.remark(
            "CCC058",
            f"{count} collected: predicted gain {_times(decision.loop.gain)}",
            place,
            "; ".join(
                _which(paths, key) + _numbers(paths[key], decision.costs[key])
                for key in sorted(decision.chosen)
            ),
            help,
        ),
        *said,
        *empty,
    )


_UNSURE = "without a profile it is not known whether collecting pays off"


def _costs(estimate: Estimate, chosen: frozenset[int]) -> tuple[Cost, tuple[Cost, ...]]:
    flow, assumed = estimate.flow, estimate.assumed
    everything = frozenset(path.key for path in flow.paths)
    rewritten = chosen or everything
    before, after = model.parts(flow, ()), model.parts(flow, rewritten)
    loop = Cost(flow.own, 1.0, model.gain(flow, rewritten), None, assumed, before, after)
    return loop, tuple(_cost(flow, key, chosen, assumed) for key in range(len(flow.paths)))


def _cost(flow: LoopFlow, key: int, chosen: frozenset[int], assumed: bool) -> Cost:
    path = flow.paths[key]
    without = chosen - {key}
    return Cost(
        path.slots,
        path.full,
        model.gain(flow, without | {key}, without),
        model.break_even(flow, path, without),
        assumed,
    )


def stays_as_it_is(gain: float) -> str:
    """That a marked loop is left alone, and the predicted ``gain``."""
    return f"the marked loop stays as it is{_because(gain, 'collecting', 'it')}"


def _because(gain: float, doing: str, what: str) -> str:
    """The predicted gain of code that is left alone, as the cause of that unless it is above 1."""
    if round(gain, 2) > 1:
        return f", although {doing} is predicted to make {what} {_times(gain)} as fast"
    return f": {doing} would make {what} {_times(gain)} as fast"


def _why(which: str, path: Path, cost: Cost, limited: str) -> str:
    return "; ".join(filter(None, (limited, which + _numbers(path, cost))))


def _which(paths: Sequence[Path], key: int) -> str:
    """Which of several paths is meant."""
    annotation = paths[key].annotation
    if len(paths) == 1 or annotation.place is None:
        return ""
    return f"`{annotation.pragma}` at line {annotation.place.position.line}: "


def _numbers(path: Path, cost: Cost) -> str:
    """What is known or assumed about a path, and what it would have to cost to pay off by its instructions alone."""
    slots = _slots(cost.slots)
    pays = f"counting instructions alone, collecting {_pays(path, cost.break_even)}"
    if path.is_loop:
        run = "is assumed to run" if cost.assumed else "runs"
        return f"per iteration, a lane {run} {cost.taken:,.2f} inner iterations of {slots} each; {pays}"
    if cost.taken > 1:  # in an inner loop
        take = "is assumed to take" if cost.assumed else "takes"
        return f"per iteration, a lane {take} the path {cost.taken:,.2f} times, at {slots} each time; {pays}"
    take = "are assumed to take" if cost.assumed else "take"
    return f"{cost.taken:.1%} of the lanes {take} the path, which costs {slots}; {pays}"


def _pays(path: Path, break_even: float | None) -> str:
    """When collecting a path pays off."""
    if break_even is None:
        return "never pays off"
    what = "an inner iteration" if path.is_loop else "the path"
    if round(break_even) == 0:
        return f"pays off however little {what} costs"
    return f"pays off if {what} costs at least {_slots(break_even)}"


def _slots(number: float) -> str:
    return quantity(round(number), "issue slot")


def _times(gain: float) -> str:
    return f"{gain:.2f}x"
