"""The detached form of tasks: a vote where each path ends, and the rest of the iteration after it.

Paths inside a path get votes in the copies that run its tasks: placing votes and making copies need one another.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial

from cccopt.analysis import effects
from cccopt.ccc.codegen.decision_trees import flattened
from cccopt.ccc.codegen.exposure import exposed
from cccopt.ccc.codegen.joins import Join, insert_flagged_join, insert_join
from cccopt.ccc.codegen.path_vote import PathVote
from cccopt.ccc.codegen.region_code import RegionCode
from cccopt.ccc.codegen.sorting import SortingCode
from cccopt.ccc.codegen.task_copies import TaskCopies
from cccopt.ccc.codegen.vote_placement import Entry
from cccopt.ccc.function.code import op
from cccopt.ccc.function.graph import Branch, Jump, Nodes, reachable, targets
from cccopt.ccc.plan.plan import PathPlan
from cccopt.ccc.regions.values import live_outs


class VotesAtJoins:
    """Places votes at joins; ``copies`` makes the copies that run tasks, ``sortings`` the code of shared joins."""

    def __init__(self, code: RegionCode) -> None:
        self.code = code
        self.copies = TaskCopies(code, self)
        self.vote = PathVote(code, self.copies)
        self.sortings = tuple(
            SortingCode(sorting, code.plan.lane, code.plan.lanes_before, code.builder)
            for sorting in code.plan.sortings
        )

    def place(
        self,
        nodes: Nodes,
        entry: Entry,
        paths: tuple[PathPlan, ...],
        given: Collection[str] = (),
        read_after: Collection[str] = (),
    ) -> Nodes:
        """The code ``nodes`` with its entry, and with votes in place of ``paths`` (see `VotePlacement`)."""
        enter = entry.name
        nodes = self._entered(nodes, entry, paths)
        alive = self.code.live_at(entry.begin).union(given)
        for path in paths:
            sorting = next((s for s in self.sortings if path in s.sorting.paths), None)
            if sorting is None:
                join = self._join([path], nodes, alive)
                vote = partial(self.vote.code_of, path)
                nodes = insert_flagged_join(nodes, enter, join, vote, self.code.builder)
            elif path is sorting.first:
                nodes = self._sorted(sorting, nodes, enter, alive)
            if path.after.skip_flags:
                # Lanes whose tasks run the sunk code pass it under a false guard.
                view, skipped = self.code.view, self.code.plan.skipped
                written = (effects.writes(view.body[i]) for i in path.after.sunk if i in skipped)
                unset = self.code.cleared(live_outs(view, path.path).union(*written) - alive)
                nodes[enter] = replace(nodes[enter], code=(*unset, *nodes[enter].code))
        unset = self.code.cleared(exposed(nodes, enter, read_after, alive))
        nodes[enter] = replace(nodes[enter], code=(*unset, *nodes[enter].code))
        return nodes

    def _entered(self, nodes: Nodes, entry: Entry, paths: Sequence[PathPlan]) -> Nodes:
        """The code with its entry, at which no lane has reached a path yet."""
        nodes = {**nodes}
        flags = dict.fromkeys(flag for path in paths for flag in path.after.skip_flags)
        end = Jump(entry.begin) if entry.alive is None else Branch(entry.alive, entry.begin, entry.end)
        self.code.builder.node(nodes, entry.name, [op("mov.pred", flag, 0) for flag in flags], end)
        return nodes

    def _join(self, paths: Sequence[PathPlan], nodes: Nodes, alive: Collection[str]) -> Join:
        """Where lanes meet after some paths that end at one node of ``nodes``; ``alive`` registers have a value there
        anyway.
        """
        inside = frozenset().union(*(path.path.nodes for path in paths))
        # A vote placed before may be between a path and where its end led at first. Nodes that only held markers
        # are no longer reached.
        begins = tuple(path.path.begin for path in paths)
        run = reachable({name: nodes[name] for name in inside if name in nodes}, begins)
        outside = {t for n in run for t in targets(nodes[n].end) if t not in inside}
        (goal,) = outside - self.code.view.traps
        # What is alive at the entry has a value there; the rest may not have one at the join.
        met = {v.name for path in paths for v in path.stack.layout.values()}
        met |= {name for path in paths if path.counted is not None for name in path.counted.count.registers}
        met |= frozenset().union(*(self.code.live_at(path.path.end) for path in paths))
        # What a lane computes again there has operands of its own.
        met |= {
            n for path in paths for i in path.after.recomputed for n in effects.reads(self.code.view.body[i])
        }
        return Join(begins, inside, goal, self.code.cleared(met - {*alive}))

    def _sorted(self, sorting: SortingCode, nodes: Nodes, enter: str, alive: Collection[str]) -> Nodes:
        """The code with one vote for exclusive paths."""
        paths = sorting.sorting.paths
        join = self._join(paths, nodes, alive)
        arrive, first = sorting.arrivals()
        leaves = {**{begin: number for number, begin in enumerate(arrive)}, join.end: len(paths)}
        read = {join.end: self.code.live_at(sorting.first.path.end)}
        read |= {p.path.begin: self.code.live_at(p.path.begin) for p in paths}
        straight = flattened(nodes, enter, leaves, read, self.code.builder.names)
        arrive |= {label: op("mov.u32", sorting.which, chosen) for label, chosen in straight.chosen.items()}
        join = replace(join, begins=tuple(arrive), arrive=arrive, start=(*join.start, first))

        def build(after: str) -> tuple[Nodes, str]:
            return sorting.nodes(self.copies.task, self.copies.in_place, after)

        return insert_join(straight.nodes, enter, join, build, self.code.builder)
