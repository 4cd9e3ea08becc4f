"""What is known about a marked loop and its paths, per warp iteration, for `cccopt.ccc.profitability.model`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from cccopt.ccc.legality.exclusive import CHAIN
from cccopt.ccc.profitability.elapsed import Elapsed

LANES = 32

TAKEN, FOUND = 6.0, 14.0
"""Slots that a group of sorted paths takes to pop 32 tasks, not counting their words, and to find their path if there
are too many to test each.
"""


@dataclass(frozen=True, slots=True)
class PathFlow:
    """One path, per warp iteration of its marked loop.

    ``key`` names it, ``parent`` the path around it. ``entries`` and ``entered`` are the warps that reach it and the
    full warps that their lanes would make. ``warps`` and ``full`` are its runs by the same two measures; for a loop
    (``is_loop``), they count inner iterations. ``slots`` is the cost of its own code for one run by a warp as it
    arrives before the rewrite, ``packed`` for one run by a full warp. ``context`` is the cost of its words (`WORD`
    slots each) and of what lanes recompute, for each vote in which any lane wants the path; ``extra`` is the cost of
    what a task rebuilds. ``chunk`` is the number of inner iterations between two votes. The inner iterations of an
    ``expanded`` loop are laid side by side: ``saved`` is the time of memory traffic that this saves, because the loop's
    own loads are then coalesced. ``late`` are the runs, by warps that are not full, of the tasks that are left when the
    marked loop ends. A warp running alone takes ``waiting`` cycles for a run by such a warp, ``packed_waiting`` for one
    by a full warp. ``tail`` is the cost of the code after the path that runs with its tasks if the path is collected.
    ``atomics``, ``packed_atomics`` and ``tail_atomics`` are the slots that pass in a run of each for atomic operations
    that ptxas combines.
    """

    key: int
    parent: int | None
    entries: float
    entered: float
    warps: float
    full: float
    slots: float
    packed: float
    context: float = 0.0
    extra: float = 0.0
    is_loop: bool = False
    chunk: int = 1
    expanded: bool = False
    saved: float = 0.0
    late: float = 0.0
    waiting: float = 0.0
    packed_waiting: float = 0.0
    tail: float = 0.0
    atomics: float = 0.0
    packed_atomics: float = 0.0
    tail_atomics: float = 0.0


@dataclass(frozen=True, slots=True)
class SortedGroup:
    """Paths, by key, that are sorted if at least ``fewest`` of them are collected. ``context`` is the cost of storing
    and loading all words of a slot of their stacks; ``bytes`` is the size of the stacks of all paths in a block.
    """

    keys: frozenset[int]
    fewest: int
    context: float
    bytes: int

    def collected(self, chosen: Collection[int]) -> frozenset[int]:
        """The ``chosen`` paths that are sorted."""
        ours = self.keys.intersection(chosen)
        return ours if len(ours) >= self.fewest else frozenset()

    def take(self, chosen: Collection[int]) -> float:
        """The slots that the warp takes to pop 32 tasks of one of its paths, not counting their words."""
        return TAKEN if len(self.collected(chosen)) <= CHAIN else TAKEN + FOUND

    def diverged(self, paths: Collection[PathFlow]) -> float:
        """The warp iterations in which lanes reach different ``paths``, or only some of them to any: halfway between
        the fewest and the most that the numbers of the paths allow. Rare paths may occur in the same iterations.
        """
        none = any_of(1 - sum(path.full for path in paths))
        first, second, *others = sorted((none, 0.0, *(path.warps for path in paths)), reverse=True)
        fewest = first + second - 1
        most = fewest + sum(others)
        return (_share(fewest) + _share(most)) / 2


@dataclass(frozen=True, slots=True)
class LoopFlow:
    """A marked loop: the slots of its own code and the least time for its memory traffic (in slots), both per warp
    iteration; its form; its paths, outer ones first; and the groups of paths that can be sorted. ``elapsed`` is the
    time of a warp iteration, if the kernel's time was measured; ``waiting`` is the cycles that a warp running alone
    takes for the loop's own code. For each iteration that the warp makes now, the rewritten loop makes ``begun``. That
    is less than one if lanes that diverge in an iteration now begin the next one apart, since in the rewritten loop
    they vote together. ``spared`` gives the slots of the loop's own code that no lane runs for itself anymore if all
    paths of a set are collected, because it runs with their tasks. ``atomics`` are the slots that pass for combined
    atomic operations of the loop's own code, ``spared_atomics`` those of the code in ``spared``.
    """

    own: float
    memory: float
    form: str
    paths: tuple[PathFlow, ...]
    groups: tuple[SortedGroup, ...] = ()
    elapsed: Elapsed = field(default_factory=Elapsed)
    waiting: float = 0.0
    begun: float = 1.0
    spared: Mapping[frozenset[int], float] = field(default_factory=dict)
    atomics: float = 0.0
    spared_atomics: Mapping[frozenset[int], float] = field(default_factory=dict)


def slowest(lanes: float) -> float:
    """The expected iterations of the slowest of some lanes, relative to their mean, if each iteration is the last with
    the same probability: a harmonic number.
    """
    return sum(1 / rank for rank in range(1, max(round(lanes), 1) + 1))


def longest(mean: float, now: float, lanes: float, more: float) -> float:
    """The expected iterations of the slowest of ``more`` lanes. They have the same ``mean`` as today's ``lanes``, of
    which the slowest makes ``now`` iterations; its excess over the mean grows as in `slowest`.
    """
    if more <= lanes or slowest(lanes) <= 1:
        return max(now, mean)
    return mean + max(now - mean, 0.0) * (slowest(more) - 1) / (slowest(lanes) - 1)


def any_of(share: float, lanes: float = LANES) -> float:
    """The probability that at least one of ``lanes`` lanes does what each does with probability ``share``."""
    return 1.0 - float((1.0 - _share(share)) ** lanes)


def _share(number: float) -> float:
    return min(max(number, 0.0), 1.0)
