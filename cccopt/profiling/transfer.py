"""Counts by place, carried over to the statements of other PTX of the same source.

A run counted the PTX of a program; its marked PTX is compiled again, otherwise. What both have in common are places:

    run:      app.cu:25:9  900 warp instructions, 9000 lanes        marked:  3 instructions of app.cu:25:9 in block 4
    carried:  block 4      300 warps, 3000 lanes

Lanes flow: as many leave a block as come to it. Among all flows the one is taken that is off least from what places,
loops and branches of the run say, by the sum of the relative errors: so what most of them agree on holds exactly, and
an instruction more or less in one of the builds changes nothing. Warps do not flow; they are found in the same way
for blocks of which each runs when the others do.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cccopt.analysis.cfg import ControlFlowGraph, build
from cccopt.analysis.dominance import Dominance, dominators, total_post_dominators
from cccopt.analysis.loops import Loop, loops
from cccopt.ccc.profitability.model import any_of
from cccopt.profiling.run_file import LANES, BranchCount, FunctionRun, LineCount, LoopCount
from cccopt.ptx.ir import Body, Instruction

Place = tuple[str, int, int]
"""A file, a line and a column of it; column 0 is all that is on the line."""

LOOP = 4.0
"""The weight of what a loop's own counts say against that of one place."""

BRANCH = 2.0
"""The same for those of a branch."""

HINT = 0.01
"""The weight of what decides where nothing else does."""

UNROLLED = 1.5
"""A loop whose code runs that many times an iteration was unrolled."""

_Vector = NDArray[np.float64]
_Branches = dict[int, tuple[BranchCount, bool]]
"""By block the branch of the run that ends it, and whether lanes that jumped there go the second way here."""

_STEPS = 24
_EXACT = 3
_WALL = 100.0
_NEVER = 100
_NEAR = (1e-6, 1e-4, 0.01, 0.05)


@dataclass(frozen=True, slots=True)
class WarpsAndLanes:
    """Issues of one instruction."""

    warps: int
    lanes: int


@dataclass(frozen=True, slots=True)
class _Recognized:
    """The loops and branches of a run that are here, too."""

    loops: Sequence[tuple[Loop, LoopCount]]
    branches: _Branches


@dataclass(frozen=True)
class Transfer:
    """A function with the ``places`` of its statements, and what a run counted at these places. Of the loops with the
    headers ``once`` each entry makes one iteration.
    """

    body: Body
    places: Sequence[Place | None]
    run: FunctionRun
    once: frozenset[int] = frozenset()

    @cached_property
    def cfg(self) -> ControlFlowGraph:
        return build(self.body)

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        return loops(self.cfg)

    def issues(self) -> dict[int, WarpsAndLanes]:
        """What is known of each instruction that ran, by its index."""
        lanes, recognized = self._lanes()
        warps = self._warps(lanes, recognized)
        found: dict[int, WarpsAndLanes] = {}
        for block in self.cfg.blocks:
            here = round(float(lanes[block.index]))
            if here > 0:
                count = min(max(round(float(warps[block.index])), -(-here // LANES)), here)
                found |= {
                    i: WarpsAndLanes(count, here)
                    for i in block.statements()
                    if isinstance(self.body[i], Instruction)
                }
        return found

    def place(self, index: int) -> Place | None:
        """The place of a statement as it is used here: without its column where those of its line differ."""
        found = self.places[index]
        return None if found is None else self._merged(found)

    def _loop_place(self, loop: Loop) -> Place | None:
        """The place of a loop as runs tell it: that of the branch that goes round."""
        latch = self.cfg.blocks[loop.latches[-1]]
        last = [i for i in latch.statements() if isinstance(self.body[i], Instruction)]
        return self.place(last[-1] if last else latch.start)

    def unrolled(self, loop: Loop, count: LoopCount) -> bool:
        """Whether the code of ``loop`` that each iteration runs did so more often than its counted iterations began."""
        dominates = self._dominators.dominates
        own = [
            i
            for block in loop.blocks
            if self._innermost.get(block) is loop and all(dominates(block, latch) for latch in loop.latches)
            for i in self._instructions[block]
        ]
        line = (count.file, count.line)
        here = Counter(self.place(i) for i in own)
        alone = {
            place: number
            for place, number in here.items()
            if place is not None and place[:2] != line and number == self._static[place]
        }
        ran = sum(self._counted.get(place, (0, 0))[1] for place in alone)
        return ran > UNROLLED * count.lanes * sum(alone.values())

    # --- places ---

    @cached_property
    def _coarse(self) -> frozenset[tuple[str, int]]:
        """The lines on which the run has a column that is not here: markers have moved what is behind them."""
        here = {place for place in self.places if place is not None}
        there = {_place(c) for c in self.run.lines}
        there.update(map(_place, self.run.loops), map(_place, self.run.branches))
        return frozenset(place[:2] for place in there if place not in here)

    def _merged(self, place: Place) -> Place:
        return (place[0], place[1], 0) if place[:2] in self._coarse else place

    @cached_property
    def _counted(self) -> Mapping[Place, tuple[int, int]]:
        """Warp and lane instructions by place."""
        found: dict[Place, tuple[int, int]] = defaultdict(lambda: (0, 0))
        for count in self.run.lines:
            place = self._merged(_place(count))
            warps, lanes = found[place]
            found[place] = warps + count.warps, lanes + count.lanes
        return dict(found)

    @cached_property
    def _instructions(self) -> Sequence[Sequence[int]]:
        """The instructions of each block."""
        return [
            [i for i in block.statements() if isinstance(self.body[i], Instruction)]
            for block in self.cfg.blocks
        ]

    @cached_property
    def _at(self) -> Mapping[Place, Counter[int]]:
        """How many instructions of each block are at a place."""
        found: dict[Place, Counter[int]] = defaultdict(Counter)
        for block, indices in enumerate(self._instructions):
            for index in indices:
                place = self.place(index)
                if place is not None:
                    found[place][block] += 1
        return found

    @cached_property
    def _static(self) -> Mapping[Place, int]:
        return {place: here.total() for place, here in self._at.items()}

    @cached_property
    def _innermost(self) -> Mapping[int, Loop]:
        # Outer loops come first.
        return {block: loop for loop in self.loops for block in loop.blocks}

    @cached_property
    def _dominators(self) -> Dominance:
        return dominators(self.cfg)

    @cached_property
    def _known_loops(self) -> Sequence[tuple[Loop, LoopCount]]:
        """The loops of the run that are loops here: at a place with as many of them, in their order."""
        at: dict[Place | None, list[Loop]] = defaultdict(list)
        for loop in sorted(self.loops, key=lambda loop: loop.header):
            at[self._loop_place(loop)].append(loop)
        found = [
            (loop, count)
            for place, here in at.items()
            if len(counts := self._loop_counts(place)) == len(here)
            for loop, count in zip(here, counts, strict=True)
        ]
        # A loop with several ways round may have its branch elsewhere.
        spare = [c for c in self.run.loops if self._merged(_place(c)) not in at]
        without = [loop for place, here in at.items() if not self._loop_counts(place) for loop in here]
        for loop in without:
            places = {
                self.place(i)
                for b in loop.blocks
                if self._innermost[b] is loop
                for i in self._instructions[b]
            }
            inside = [c for c in spare if self._merged(_place(c)) in places]
            if len(inside) == 1:
                found.append((loop, inside[0]))
                spare.remove(inside[0])
        return [(loop, count) for loop, count in found if not self.unrolled(loop, count)]

    def _loop_counts(self, place: Place | None) -> list[LoopCount]:
        return [count for count in self.run.loops if self._merged(_place(count)) == place]

    def _entered(self, flows: Mapping[tuple[int, int], float], near: float) -> list[tuple[Loop, LoopCount]]:
        """Of the other loops those that as many lanes enter as one of the run at their place."""
        known = {loop.header for loop, _ in self._known_loops} | self.once
        taken: list[int] = [id(count) for _, count in self._known_loops]
        found: list[tuple[Loop, LoopCount]] = []
        for loop in sorted(self.loops, key=lambda loop: loop.header):
            if loop.header in known:
                continue
            into = [(a, loop.header) for a in self.cfg.predecessors[loop.header] if a not in loop.blocks]
            lanes = sum(flows[edge] for edge in into)
            for count in self._loop_counts(self._loop_place(loop)):
                if id(count) not in taken and abs(count.entered - lanes) <= near * lanes:
                    if not self.unrolled(loop, count):
                        found.append((loop, count))
                        taken.append(id(count))
                    break
        return found

    @cached_property
    def _other_loops(self) -> frozenset[tuple[str, int]]:
        """The lines of loops that were several in the run, or none: there each step and test did for more than one
        iteration.
        """
        known = {loop.header for loop, _ in self._known_loops}
        found = (self._loop_place(loop) for loop in self.loops if loop.header not in known | self.once)
        return frozenset(place[:2] for place in found if place is not None)

    # --- lanes ---

    @cached_property
    def _edges(self) -> Sequence[tuple[int, int]]:
        """Where lanes go, from outside (-1) to outside."""
        exits = dict.fromkeys([*self.cfg.exits, *(b for b, to in enumerate(self.cfg.successors) if not to)])
        return [(-1, self.cfg.entry), *self.cfg.edges(), *((block, -1) for block in exits)]

    def _lanes(self) -> tuple[_Vector, _Recognized]:
        """The lanes of each block, and what was recognized of the run."""
        cycles = _cycles(self._edges)
        into = np.zeros((len(self.cfg.blocks), len(self._edges)))
        for number, (_, target) in enumerate(self._edges):
            if target >= 0:
                into[target, number] = 1.0
        blocks = into @ cycles
        system = _System(blocks.shape[1])
        for row, counted, weight in self._by_place():
            system.add(row @ blocks, counted, weight)
        numbers = {edge: number for number, edge in enumerate(self._edges)}

        def back(loop: Loop) -> _Vector:
            return np.asarray(sum(cycles[numbers[latch, loop.header]] for latch in loop.latches))

        def tell(system: _System, loop: Loop, count: LoopCount) -> None:
            system.add(blocks[loop.header], count.lanes, LOOP)
            system.add(blocks[loop.header] - back(loop), count.entered, LOOP)

        for loop, count in self._known_loops:
            tell(system, loop, count)
        for loop in self.loops:
            if loop.header in self.once:
                system.add(back(loop), 0, 100.0)
            elif not self._loop_counts(self._loop_place(loop)):
                # It did not run, unless it was unrolled as a whole, which its places tell.
                system.add(blocks[loop.header], 0, HINT)
        flows = cycles @ system.solved(cycles)
        found = _Recognized(self._known_loops, {})
        for near in _NEAR:
            along = {edge: float(flows[n]) for edge, n in numbers.items()}
            branches = self._known_branches(into @ flows, along, near)
            now = _Recognized([*self._known_loops, *self._entered(along, near)], branches)
            if now == found:
                continue
            found = now
            more = system.copy()
            for loop, count in found.loops[len(self._known_loops) :]:
                tell(more, loop, count)
            for block, (branch, turned) in found.branches.items():
                more.add(blocks[block], branch.lanes, BRANCH)
                for to, part in zip(self.cfg.successors[block], _parts(branch, turned), strict=True):
                    more.add(cycles[numbers[block, to]], part, BRANCH)
            flows = cycles @ more.solved(cycles)
        return into @ np.maximum(flows, 0.0), found

    def _known_branches(
        self, lanes: _Vector, flows: Mapping[tuple[int, int], float], near: float
    ) -> _Branches:
        """The blocks that end in one of two ways with the branch of the run at their place that as many ``lanes`` came
        to, and whether those that jumped there go the second way here: compilers turn conditions round.
        """
        at: dict[Place, list[int]] = defaultdict(list)
        for block, ways in enumerate(self.cfg.successors):
            place = self.place(self.cfg.blocks[block].stop - 1)
            if len(ways) == 2 and block not in self.cfg.exits and place is not None:
                at[place].append(block)
        ranked: list[tuple[float, int, int, float, int, int, bool]] = []
        for place, blocks in at.items():
            there = [n for n, b in enumerate(self.run.branches) if self._merged(_place(b)) == place]
            pairs = ((b, n) for b in blocks for n in there if place[:2] not in self._other_loops)
            for block, number in pairs:
                branch = self.run.branches[number]
                off = abs(branch.lanes - lanes[block])
                if off > near * lanes[block]:
                    continue
                alike = [n for n in there if self.run.branches[n].lanes == branch.lanes]
                beside = [b for b in blocks if abs(lanes[b] - lanes[block]) <= near * lanes[block]]
                order = abs(alike.index(number) - beside.index(block))
                for turned in (False, True):
                    parts = tuple(zip(self.cfg.successors[block], _parts(branch, turned), strict=True))
                    other = sum(abs(flows[block, to] - part) for to, part in parts)
                    agreeing = self._agreeing(block, parts)
                    ranked.append((round(off), -agreeing, order, other, block, number, turned))
        found: _Branches = {}
        taken: set[int] = set()
        for _, _, _, _, block, number, turned in sorted(ranked):
            if block not in found and number not in taken:
                found[block] = self.run.branches[number], turned
                taken.add(number)
        return found

    def _agreeing(self, block: int, parts: tuple[tuple[int, int], ...]) -> int:
        """How many places that are in one of the blocks after ``block`` alone were counted as often as its part, less
        those that ran and are in what nobody comes to.
        """
        found = 0
        for to, part in parts:
            if len(self.cfg.predecessors[to]) != 1:
                continue
            for place in {self.place(i) for i in self._instructions[to]}:
                if place is not None and self._at[place].keys() == {to}:
                    found += self._counted.get(place, (0, 0))[1] == self._static[place] * part
            if not part:
                found -= _NEVER * len(self._behind(to) & self._counted.keys())
        return found

    def _behind(self, block: int) -> frozenset[Place]:
        """The places to which only ``block`` leads."""
        if block not in self._places_behind:
            dominates = self._dominators.dominates
            self._places_behind[block] = frozenset(
                place for place, here in self._at.items() if all(dominates(block, other) for other in here)
            )
        return self._places_behind[block]

    @cached_property
    def _places_behind(self) -> dict[int, frozenset[Place]]:
        return {}

    def _by_place(self) -> Iterator[tuple[_Vector, float, float]]:
        """For each place the blocks with as many of its instructions as they hold, what was counted, and a weight."""
        iterated = {(count.file, count.line) for count in self.run.loops}
        for place, here in self._at.items():
            unlike = place[:2] in self._other_loops
            if unlike and place[:2] not in iterated:
                continue
            row = np.zeros(len(self.cfg.blocks))
            for block, number in here.items():
                row[block] = number
            weight = HINT if unlike else min(here.total(), 4) ** 0.5
            yield row, self._counted.get(place, (0, 0))[1], weight

    # --- warps ---

    @cached_property
    def _alike(self) -> Sequence[int]:
        """For each block the number of those that run exactly when it does."""
        over, under = self._dominators, total_post_dominators(self.cfg)
        found: list[int] = []
        for block in range(len(self.cfg.blocks)):
            same = (
                other
                for other in range(block)
                if found[other] == other
                and self._innermost.get(other) is self._innermost.get(block)
                and (
                    (over.dominates(other, block) and under.dominates(block, other))
                    or (over.dominates(block, other) and under.dominates(other, block))
                )
            )
            found.append(next(same, block))
        return found

    def _warps(self, lanes: _Vector, recognized: _Recognized) -> _Vector:
        """The warps of each block. A place tells how many lanes a warp has there, whatever its instructions are."""
        group = [*self._alike]
        known = {group[loop.header]: count.warps for loop, count in recognized.loops}
        for loop, count in recognized.loops:
            # What all lanes that come to the loop have passed.
            over = self._dominators.immediate.get(loop.header)
            while over is not None and abs(lanes[over] - count.entered) < 0.5:
                known.setdefault(group[over], count.entries)
                over = self._dominators.immediate.get(over)
        for block, (branch, turned) in recognized.branches.items():
            if abs(lanes[block] - branch.lanes) < 0.5:
                known.setdefault(group[block], branch.warps)
                for to, went in zip(self.cfg.successors[block], _warps_of(branch, turned), strict=True):
                    if went is not None and self.cfg.predecessors[to] == (block,):
                        known.setdefault(group[to], went)
        wanted: dict[Place, float] = {}
        told: dict[int, list[tuple[float, Place]]] = defaultdict(list)
        for place, here in self._at.items():
            warps, active = self._counted.get(place, (0, 0))
            ran = sum(number * lanes[block] for block, number in here.items())
            if active and ran > 0:
                wanted[place] = warps / active * ran
                for block, number in here.items():
                    told[group[block]].append((number * lanes[block] / ran * min(number, 4) ** 0.5, place))
        found = lanes / LANES
        for first, places in told.items():
            _, best = max(places)
            total = sum(number * lanes[block] for block, number in self._at[best].items())
            found[first] = lanes[first] * wanted[best] / total
        for first, entries in known.items():
            found[first] = entries
        # What is left over at places of several blocks goes to each of these in proportion.
        for _ in range(_STEPS):
            now = found[group]
            off = {
                place: warps / max(sum(n * now[block] for block, n in self._at[place].items()), 1e-9)
                for place, warps in wanted.items()
            }
            for first, places in told.items():
                if first not in known:
                    change = _median([(off[place], weight) for weight, place in places])
                    found[first] = min(max(found[first] * change, lanes[first] / LANES), lanes[first])
        found = found[group]
        for block in self.cfg.reverse_postorder:
            over = self._dominators.immediate.get(block)
            if group[block] in told or group[block] in known or over is None or not found[over]:
                continue
            # Nothing is told of a block without instructions: lanes come to it as if each decided by itself.
            share = lanes[block] / max(lanes[over], 1.0)
            found[block] = found[over] * (any_of(share, lanes[over] / found[over]) if share < 1 else share)
        return np.asarray(found)


def _median(values: Sequence[tuple[float, float]]) -> float:
    """The median of values with weights."""
    ordered = sorted(values)
    half, total = sum(weight for _, weight in ordered) / 2, 0.0
    for value, weight in ordered:
        total += weight
        if total >= half:
            return value
    return 1.0


def _place(count: LineCount | BranchCount | LoopCount) -> Place:
    return count.file, count.line, count.column


def _parts(branch: BranchCount, turned: bool) -> tuple[int, int]:
    """The lanes that went the one and the other way."""
    parts = branch.taken, branch.lanes - branch.taken
    return parts[::-1] if turned else parts


def _warps_of(branch: BranchCount, turned: bool) -> tuple[int | None, int | None]:
    """The warps that went the one and the other way; None where nobody counted them."""
    if branch.histogram is not None:
        jumped = branch.warps - branch.histogram[0]
    elif branch.taken in (0, branch.lanes):
        jumped = branch.warps if branch.taken else 0
    else:
        return None, None
    ways = jumped, branch.warps - jumped + branch.split
    return ways[::-1] if turned else ways


class _System:
    """Equations of ``size`` unknowns, whose relative errors are to be small in sum."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._rows: list[_Vector] = []
        self._told: list[tuple[float, float]] = []

    def add(self, row: _Vector, wanted: float, weight: float) -> None:
        """``row`` times the unknowns is about ``wanted``."""
        if row.any():
            self._rows.append(row)
            self._told.append((float(wanted), weight))

    def copy(self) -> _System:
        """The same equations, to which others may be added."""
        made = _System(self._size)
        made._rows, made._told = [*self._rows], [*self._told]
        return made

    def solved(self, positive: _Vector) -> _Vector:
        """The unknowns, of which each row of ``positive`` makes something that is not negative.

        Iteratively reweighted least squares: Holland, Welsch, "Robust regression using iteratively reweighted
        least-squares", Communications in Statistics 6(9), 1977.
        """
        if not self._rows:
            return np.zeros(self._size)
        rows = np.array(self._rows)
        wanted, weights = (np.array(column) for column in zip(*self._told, strict=True))
        unit = max(float(wanted.max()), 1.0)
        # Nothing at a place says less: its instructions may not have been there.
        usual = float(np.median(wanted[wanted > 0])) if unit > 1 else 1.0
        scale = np.where(wanted > 0, 1.0 / np.where(wanted > 0, wanted, 1.0), 1.0 / usual)
        rows, right = rows * scale[:, None] * unit, wanted * scale
        fences = positive * unit / usual
        found, behind = np.zeros(self._size), np.zeros(len(fences))
        factor, least = weights, 0.1
        for step in range(_STEPS):
            wrong = behind < 0
            walls = _WALL / np.maximum(-behind[wrong], least)
            left = np.vstack([rows, fences[wrong]])
            strength = np.concatenate([factor, walls])
            aim = np.concatenate([right, np.zeros(len(walls))])
            if step < _STEPS - _EXACT:
                square = left.T @ (left * strength[:, None])
                # What nothing is told of is kept small.
                square += 1e-11 * square.diagonal().max() * np.eye(self._size)
                found = np.linalg.solve(square, left.T @ (aim * strength))
                least = max(least / 2, 1e-5)
            else:
                root, least = np.sqrt(strength), 1e-9
                found = np.linalg.lstsq(left * root[:, None], aim * root, rcond=1e-13)[0]
            off, behind = rows @ found - right, fences @ found
            factor = weights / np.maximum(np.abs(off), least)
        return np.asarray(found * unit)


def _cycles(edges: Sequence[tuple[int, int]]) -> _Vector:
    """A basis of the flows along ``edges``, a column each: the cycles that an edge closes beside a spanning tree."""
    parent: dict[int, tuple[int, int, float]] = {}
    around: dict[int, list[tuple[int, int, float]]] = defaultdict(list)
    for number, (a, b) in enumerate(edges):
        around[a].append((b, number, 1.0))
        around[b].append((a, number, -1.0))
    depth = {-1: 0}
    tree: set[int] = set()
    work = [-1]
    for node in work:
        for other, number, sign in around[node]:
            if other not in depth:
                depth[other] = depth[node] + 1
                parent[other] = node, number, sign
                tree.add(number)
                work.append(other)
    reached = [n for n, (a, b) in enumerate(edges) if n not in tree and a in depth and b in depth]
    cycles = np.zeros((len(edges), len(reached)))
    for column, number in enumerate(reached):
        a, b = edges[number]
        cycles[number, column] = 1.0
        # From b down the tree to where both meet, and up to a.
        while a != b:
            if depth[b] >= depth[a]:
                up, edge, sign = parent[b]
                cycles[edge, column] -= sign
                b = up
            else:
                up, edge, sign = parent[a]
                cycles[edge, column] += sign
                a = up
    return cycles
