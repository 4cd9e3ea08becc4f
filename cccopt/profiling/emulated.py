"""A run's file from launches on the emulator, which counts every instruction: the same as from a GPU's counters.

Places are CUDA's if `.loc` gives them. Instructions before a function's first `.loc` take the place of that one; in PTX
without line information, all places are lines of the PTX.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from cccopt.analysis.cfg import ControlFlowGraph, EdgeKind, build, ending
from cccopt.analysis.loops import Loop, loops
from cccopt.ccc.profitability.region_counts import measure
from cccopt.emulator import Profile, Program
from cccopt.emulator import launch_counters as counted
from cccopt.emulator.places import Places
from cccopt.profiling.candidate_counts import candidates_of, has_candidates
from cccopt.profiling.names import shown
from cccopt.profiling.run_file import BranchCount, FunctionRun, LineCount, LoopCount, RunFile
from cccopt.profiling.sources import Source, files_of, on_disk, with_sources
from cccopt.ptx.ir import Body, Function, Instruction

DEVICE = "emulator"

_Place = tuple[str, int, int]


def of_launch(
    program: Program, profile: Profile, unit: str, sources: Mapping[str, Source] | None = None
) -> RunFile:
    """The file of one launch of ``program`` that counted ``profile``; `merging.merged` adds several.

    ``unit`` names what was compiled. ``sources`` are the texts of the files that the counts name; without it, those
    that can be read are taken from disk.
    """
    ran = {name for name, _ in profile.issues}
    functions = tuple(
        _function(program.places, function, profile, unit)
        for function in program.module.functions()
        if function.body is not None and function.name in ran
    )
    run = RunFile(runs=1, devices=(DEVICE,), functions=functions)
    if has_candidates(program.module):
        run = replace(run, candidates=candidates_of(unit, program.module, profile.issues))
    else:
        regions = measure(
            program.module,
            profile.issues,
            profile.sectors_by_function,
            launches={function.name: profile.launches for function in program.module.functions()},
        )
        run = replace(run, kernels=regions)
    return with_sources(run, on_disk(files_of(functions)) if sources is None else sources)


def _function(places: Places, function: Function, profile: Profile, unit: str) -> FunctionRun:
    here = _Counted(places, function, profile)
    return FunctionRun(
        function.name,
        shown(function.name),
        function.kind == "entry",
        unit,
        launches=profile.launches if function.kind == "entry" else None,
        lines=tuple(here.lines()),
        branches=tuple(here.branches()),
        loops=tuple(here.loops()),
    )


@dataclass(frozen=True)
class _Counted:
    """A function with the counts of a launch."""

    known: Places
    function: Function
    profile: Profile

    @property
    def body(self) -> Body:
        return self.function.body or ()

    @cached_property
    def cfg(self) -> ControlFlowGraph:
        return build(self.body)

    @cached_property
    def first(self) -> _Place | None:
        """The first place that a `.loc` gives, if any does."""
        found = (self.known.cuda(self.function.name, index) for index in range(len(self.body)))
        return next(((p.file, p.position.line, p.position.column) for p in found if p is not None), None)

    def place(self, index: int) -> _Place:
        """Where a statement comes from."""
        cuda = self.known.cuda(self.function.name, index)
        if cuda is not None:
            return cuda.file, cuda.position.line, cuda.position.column
        if self.first is not None:
            return self.first
        return (*self.known.line(self.function.name, index), 0)

    def issued(self, index: int) -> counted.IssueCount:
        """How often a statement was issued."""
        return self.profile.issues.get((self.function.name, index), counted.IssueCount())

    def lines(self) -> Iterator[LineCount]:
        """The places whose instructions ran, in the order of files and lines."""
        found: dict[_Place, counted.IssueCount] = defaultdict(counted.IssueCount)
        accesses: dict[_Place, counted.AccessCount] = defaultdict(counted.AccessCount)
        for index in range(len(self.body)):
            count = self.issued(index)
            if count.warps:
                found[self.place(index)] += count
            access = self.profile.by_access.get((self.function.name, index))
            if access is not None:
                accesses[self.place(index)] += access
        for place, count in sorted(found.items()):
            access = accesses[place]
            yield LineCount(*place, count.warps, count.lanes, access.requests, access.sectors)

    def branches(self) -> Iterator[BranchCount]:
        """The branches that ran, in the order of the PTX."""
        for index in range(len(self.body)):
            count = self.profile.by_branch.get((self.function.name, index))
            # The counts of an indexed branch do not show where lanes went.
            if count is not None and count.warps and sum(count.jumped) == count.warps:
                yield BranchCount(
                    *self.place(index), count.warps, count.lanes, count.taken, count.divergent, count.jumped
                )

    def loops(self) -> Iterator[LoopCount]:
        """The loops that ran, in the order of their headers in the PTX."""
        for loop in sorted(loops(self.cfg), key=lambda loop: loop.header):
            here = self.block(loop.header)
            if here.warps:
                entries, entered = self._entries(loop, here)
                yield LoopCount(*self._loop_place(loop), entries, entered, here.warps, here.lanes)

    def _loop_place(self, loop: Loop) -> _Place:
        """The place of the branch back to the header: compilers give it the loop's own line."""
        latch = self.cfg.blocks[loop.latches[-1]]
        last = [i for i in latch.statements() if isinstance(self.body[i], Instruction)]
        return self.place(last[-1] if last else latch.start)

    def block(self, block: int) -> counted.IssueCount:
        """How often a block ran, from the count of its first instruction."""
        for index in self.cfg.blocks[block].statements():
            if isinstance(self.body[index], Instruction):
                return self.issued(index)
        # A block with only declarations and labels passes on what reaches it.
        following = self.cfg.successors[block]
        return self.block(following[0]) if len(following) == 1 else counted.IssueCount()

    def _entries(self, loop: Loop, header: counted.IssueCount) -> tuple[int, int]:
        """The warps and lanes that entered a loop: they reached its header, but not over a back edge.

        If all edges are known, lanes are exact, and so are warps if one edge leads in or one leads back. Otherwise a
        warp whose parts come over several edges and go on together may count once for each of these edges.
        """
        sources = self.cfg.predecessors[loop.header]
        back = [self._edge(source, loop.header) for source in sources if source in loop.blocks]
        outside = [self._edge(source, loop.header) for source in sources if source not in loop.blocks]
        round_, came = (_sum(edge[0] for edge in edges) for edges in (back, outside))
        lanes = _sum(edge[1] for edge in back)
        entered = header.lanes - lanes if lanes is not None else _sum(edge[1] for edge in outside)
        if len(outside) != 1 or came is None:
            came = header.warps - round_ if round_ is not None and len(back) == 1 else came
        if came is None or loop.header == self.cfg.entry:
            came = header.warps
        return min(came, header.warps), header.lanes if entered is None else entered

    def _edge(self, source: int, target: int) -> tuple[int | None, int | None]:
        """The warps and lanes that went from one block to another; None if the counts do not show it."""
        here = self.block(source)
        last = ending(self.body, self.cfg.blocks[source])
        others = [block for block in self.cfg.successors[source] if block != target]
        if last is None or last.guard is None:
            return (here.warps, here.lanes) if not others else (None, None)
        index = self.cfg.blocks[source].stop - 1
        branch = self.profile.by_branch.get((self.function.name, index))
        if branch is None:  # a guarded `ret`
            left = self.issued(index).lanes_pred_on
            return here.warps if not left else None, here.lanes - left
        taken = EdgeKind.TAKEN in self.cfg.kinds[source, target]
        lanes = branch.taken if taken else branch.lanes - branch.taken
        if not others:
            return branch.warps, branch.lanes
        if sum(branch.jumped) != branch.warps:  # indexed
            return None, None
        jumped = branch.warps - branch.jumped[0]
        return jumped if taken else branch.warps - jumped + branch.divergent, lanes


def _sum(values: Iterable[int | None]) -> int | None:
    """The sum; None if one of the values is not known."""
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total
