"""How often a full warp would run the code of a path, from how often warps and lanes run it now.

        begin       100 warps, 400 lanes                a full warp runs this once; 12.5 of them have all lanes
        branch       40 warps,  40 lanes: 2 in 5        with eight times the lanes, with probability 1 - (3/5)^8

A warp runs code that only some of its lanes run if any of them does. If that happens with probability p now, it happens
with 1 - (1 - p)^n in a warp of n times as many lanes that behave alike. The slowest of more lanes makes more iterations
of a loop (`cccopt.ccc.profitability.flows.longest`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from cccopt.analysis.loops import Loop
from cccopt.ccc.function.view import View
from cccopt.ccc.profitability.flows import LANES, longest

Runs = tuple[int, int]
"""The warps and lanes that run some code."""


@dataclass(frozen=True)
class FullWarps:
    """The code of a path that consists of the blocks ``inside`` and begins with ``begin``; ``runs`` gives the runs of
    a block.
    """

    view: View
    begin: int
    inside: Collection[int]
    runs: Callable[[int], Runs]

    def times(self, block: int, runs: Runs) -> float:
        """How often code of ``block`` with these ``runs`` is run by a full warp that begins the path."""
        loop = self.view.loop_of.get(block)
        while loop is not None and loop not in self._headers:
            loop = self.view.loops[loop].parent
        return self._times(self._headers.get(loop, self._begin), runs)

    @cached_property
    def _begin(self) -> tuple[Runs, float]:
        """The runs of the path's begin, and how often a full warp runs it."""
        return self.runs(self.begin), 1.0

    @cached_property
    def _headers(self) -> Mapping[int | None, tuple[Runs, float]]:
        """The same for the header of each loop inside the path, by the loop's index."""
        found: dict[int | None, tuple[Runs, float]] = {}
        for index, loop in enumerate(self.view.loops):
            if loop.header == self.begin or not loop.blocks.issubset(self.inside):
                continue
            runs = self.runs(loop.header)
            entered = self._entered(loop, runs)
            times = self._times(found.get(loop.parent, self._begin), entered)
            found[index] = runs, times * self._iterations(entered, runs, times)
        return found

    def _entered(self, loop: Loop, runs: Runs) -> Runs:
        """The runs that enter a loop: not more than those that lead there, or than of its header."""
        outside = [self.runs(b) for b in self.view.cfg.predecessors[loop.header] if b not in loop.blocks]
        warps, lanes = (sum(counts) for counts in zip(*outside, strict=True)) if outside else runs
        return min(warps, runs[0]), min(lanes, runs[1])

    def _iterations(self, entered: Runs, runs: Runs, times: float) -> float:
        """The iterations of a full warp that reaches a loop ``times`` times; those of today's warps are ``runs``."""
        (warps, lanes), (all_warps, all_lanes) = entered, runs
        if not (warps and lanes and times):
            return 0.0
        share = lanes / (times * self.runs(self.begin)[1])
        return longest(all_lanes / lanes, all_warps / warps, lanes / warps, LANES * share)

    def _times(self, head: tuple[Runs, float], runs: Runs) -> float:
        """How often a full warp runs what has these ``runs`` inside what ``head`` leads."""
        (warps, lanes), times = head
        full = times * self.runs(self.begin)[1] / LANES
        if not (warps and lanes and full):
            return 0.0
        now = runs[0] / warps
        fuller = 1 - (1 - now) ** max(warps / full, 1.0) if now < 1 else now
        return times * max(fuller, runs[1] / lanes)
