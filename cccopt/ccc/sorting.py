"""One site for many exclusive paths: the warp sorts its lanes by path, and runs a path when 32 tasks wait for it.

    join:   which = the number of the lane's path, or one more;  ballots over its bits
            same = lanes with my number;  all the same: run that path (or none) at once
            push: slot = pushed[which] + rank in same;  store the context;  pushed[own lane's path] += lanes that came
            ready = ballot(a half of my path's slots has filled)
    serve:  ready == 0: go on;  b = a path that is ready;  all 32 lanes load its full half and run it;  serve

Lane b counts the tasks that were ever pushed for path b. A stack has two halves of 32 slots that fill in turn, so that
a full half is popped without moving anything. All paths have one layout: what any of them collects. One vote for each
bit of the number takes the place of one for each path. Khorasani 2016, 4.1.4 collects one path after another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from cccopt.ccc.code import FULL_WARP, op
from cccopt.ccc.graph import UNIFORM, Branch, Indexed, Jump, Node, Nodes
from cccopt.ccc.names import Names
from cccopt.ccc.plan import PathPlan, Sorting, own
from cccopt.ccc.stack import SLOTS
from cccopt.ptx.ir import Guard, Instruction, Register, Statement

NOT_DIFFERENT = 0x90
"""The truth table of a & ~(b ^ c): the lanes in a whose bit, given by the ballot b, is c."""

NEITHER = 0x09
"""The truth table of ~(b ^ c)."""

CHANGED, AND_OR, AND_XOR = 0x28, 0xEA, 0x6A
"""The truth tables of (a ^ b) & c, (a & b) | c and (a & b) ^ c."""


class SortingSite:
    """The code of one group of exclusive paths, in the loop and behind it."""

    def __init__(
        self, sorting: Sorting, lane: Register, lanes_before: Register, names: Names, region: int
    ) -> None:
        self.sorting = sorting
        self.lane = lane
        self.lanes_before = lanes_before
        self.names = names
        self.region = region
        self.serve = names.label("serve")
        self.served = names.label("served")
        self.drained = names.label("sorted")
        self.ready = names.register("b32")
        self.first = sorting.paths[0]

    def arrivals(self, which: Register) -> tuple[dict[str, Instruction], Instruction]:
        """What a lane runs that comes to each path's first node, and what it runs ahead of that."""
        numbered = enumerate(self.sorting.paths)
        found = {path.path.begin: op("mov.u32", which, number) for number, path in numbered}
        return found, op("mov.u32", which, len(self.sorting.paths))

    def flags(self, which: Register) -> list[Instruction]:
        """Keeps the flags for the code behind the site that lanes skip, because their tasks run it."""
        code: list[Instruction] = []
        for took in dict.fromkeys(flag for path in self.sorting.paths for flag in path.took):
            takers = sum(1 << number for number, path in enumerate(self.sorting.paths) if took in path.took)
            bit, kept = self.names.register("b32"), self.names.register("pred")
            code += [
                op("shr.u32", bit, takers, which),
                op("and.b32", bit, bit, 1),
                op("setp.ne.u32", kept, bit, 0),
                op("or.pred", took, took, kept),
            ]
        return code

    def setup(self) -> list[Instruction]:
        """What each lane computes ahead of the loop: nothing was pushed, and which path it counts."""
        s, mine = self.sorting, self.names.register("pred")
        return [
            op("mov.u32", s.pushed, 0),
            op("mov.u32", self.ready, 0),
            *(op("bfe.s32", spread, self.lane, bit, 1) for bit, spread in enumerate(s.spreads)),
            op("setp.lt.u32", mine, self.lane, len(s.paths)),
            op("selp.b32", s.counted, -1, 0, mine),
            op("mov.pred", s.draining.register, 0),
        ]

    def site(
        self,
        which: Register,
        task: Callable[[PathPlan, str], tuple[str, Nodes]],
        in_place: Callable[[PathPlan, str], tuple[str, Nodes]],
        behind: str,
    ) -> tuple[Nodes, str]:
        """The nodes from the join on, and the join. ``task`` makes a path's task, ``in_place`` the path as the program
        has it, both ending at a node that they are given.
        """
        nodes: Nodes = {}
        tasks, own_ways = [], []
        for path in self.sorting.paths:
            for make, begins in ((task, tasks), (in_place, own_ways)):
                begin, added = make(path, self.serve)
                begins.append(begin)
                nodes.update(added)
        self._serve(tasks, behind, nodes)
        direct = self._dispatch(which, (*own_ways, self.serve), nodes)
        push = self._push(which, nodes)
        first, like_first = self.names.register("b32"), self.names.register("pred")
        agree = Guard(self.names.register("pred"))
        test = [
            op("shfl.sync.idx.b32", first, which, 0, SLOTS - 1, FULL_WARP),
            op("setp.eq.u32", like_first, which, first),
            op("vote.sync.all.pred", agree.register, like_first, FULL_WARP),
        ]
        return nodes, self._node(nodes, self.names.label("join"), test, Branch(agree, direct, push, UNIFORM))

    def finish(self, nodes: Nodes) -> None:
        """Adds the way out of the loop for the remainder, which passes none of the sites behind this one."""
        served = nodes[self.served]
        assert isinstance(served.end, Jump)
        end = Branch(self.sorting.draining, self.drained, served.end.target, UNIFORM)
        nodes[self.served] = replace(served, end=end)

    def drain(self, following: str, nodes: Nodes) -> str:
        """The remainder: paths with tasks left are ready; the name of the node to go to."""
        some, left = self.names.register("pred"), self.names.register("b32")
        code = [
            op("bar.warp.sync", FULL_WARP),
            op("mov.pred", self.sorting.draining.register, 1),
            op("and.b32", left, self.sorting.pushed, SLOTS - 1),
            op("setp.ne.u32", some, left, 0),
            op("vote.sync.ballot.b32", self.ready, some, FULL_WARP),
        ]
        self._node(nodes, self.drained, (), Jump(following))
        return self._node(nodes, self.names.label("drain"), code, Jump(self.serve), self.first.phase("drain"))

    # --- the parts of the site ---

    def _sort(self, which: Register) -> tuple[list[Register], Register, list[Instruction]]:
        """The ballots over the bits of the number, the register with the lanes of one's own number, and the code."""
        same = self.names.register("b32")
        ballots: list[Register] = []
        code: list[Instruction] = []
        for bit in range(len(self.sorting.spreads)):
            spread, ballot = (self.names.register("b32") for _ in range(2))
            has = self.names.register("pred")
            code += [
                op("bfe.s32", spread, which, bit, 1),
                op("setp.ne.u32", has, spread, 0),
                op("vote.sync.ballot.b32", ballot, has, FULL_WARP),
                self._equal(same, ballot, spread, same if ballots else None),
            ]
            ballots.append(ballot)
        return ballots, same, code

    def _equal(
        self, target: Register, ballot: Register, spread: Register, among: Register | None
    ) -> Instruction:
        if among is None:
            return op("lop3.b32", target, 0, ballot, spread, NEITHER)
        return op("lop3.b32", target, among, ballot, spread, NOT_DIFFERENT)

    def _push(self, which: Register, nodes: Nodes) -> str:
        s, r = self.sorting, self.names.register
        at, ahead, slot, came, before, turned = (r("b32") for _ in range(6))
        mine, filled = Guard(r("pred")), r("pred")
        ballots, same, votes = self._sort(which)
        code: list[Instruction] = [
            *self.flags(which),
            *votes,
            op("shfl.sync.idx.b32", at, s.pushed, which, SLOTS - 1, FULL_WARP),
            op("and.b32", ahead, same, self.lanes_before),
            op("popc.b32", ahead, ahead),
            op("add.s32", slot, at, ahead),
            op("and.b32", slot, slot, 2 * SLOTS - 1),
            op("mad.lo.s32", slot, which, 2 * SLOTS, slot),
            op("setp.lt.u32", mine.register, which, len(s.paths)),
            # What was popped last may be overwritten here.
            op("bar.warp.sync", FULL_WARP),
            *s.stack.push(own, slot, mine),
            self._equal(came, ballots[0], s.spreads[0], s.counted),
            *(
                self._equal(came, ballot, spread, came)
                for ballot, spread in zip(ballots[1:], s.spreads[1:], strict=True)
            ),
            op("popc.b32", came, came),
            op("mov.u32", before, s.pushed),
            op("add.s32", s.pushed, s.pushed, came),
            op("lop3.b32", turned, before, s.pushed, SLOTS, CHANGED),
            op("setp.ne.u32", filled, turned, 0),
            op("vote.sync.ballot.b32", self.ready, filled, FULL_WARP),
            op("bar.warp.sync", FULL_WARP),
        ]
        return self._node(nodes, self.names.label("push"), code, Jump(self.serve), self.first.phase("push"))

    def _serve(self, tasks: Sequence[str], behind: str, nodes: Nodes) -> None:
        s, r = self.sorting, self.names.register
        number, one, all, full, slot, left = (r("b32") for _ in range(6))
        none, mine = Guard(r("pred")), Guard(r("pred"))
        takes: list[str] = []
        for path, begin in zip(s.paths, tasks, strict=True):
            load = [*s.stack.pop(own, self._target(path), slot, None), *path.unpacking]
            loaded = self._node(nodes, self.names.label("load"), load, Jump(begin))
            # Only the remainder has fewer tasks than lanes.
            given = Branch(mine, loaded, self.serve)
            phase = path.phase("take")
            takes.append(self._node(nodes, self.names.label(phase), (), given, phase))
        code = [
            op("bfind.u32", number, self.ready),
            op("shl.b32", one, 1, number),
            op("xor.b32", self.ready, self.ready, one),
            op("shfl.sync.idx.b32", all, s.pushed, number, SLOTS - 1, FULL_WARP),
            op("selp.b32", full, 0, SLOTS, s.draining.register),
            op("lop3.b32", left, all, SLOTS - 1, full, AND_OR),
            op("setp.lt.u32", mine.register, self.lane, left),
            # The half that is full is the one that is not being filled.
            op("lop3.b32", slot, all, SLOTS, full, AND_XOR),
            op("add.s32", slot, slot, self.lane),
            op("mad.lo.s32", slot, number, 2 * SLOTS, slot),
        ]
        dispatch = self._dispatch(number, takes, nodes, code)
        self._node(nodes, self.served, (), Jump(behind))
        test = [op("setp.eq.u32", none.register, self.ready, 0)]
        self._node(nodes, self.serve, test, Branch(none, self.served, dispatch, UNIFORM))

    def _target(self, path: PathPlan) -> Callable[[str], Register]:
        """Where a path's task has a value of the common layout; anywhere, if it has no use for it."""
        known = {value.name for value in path.stack.layout.values()}
        types = {value.name: value.type for value in self.sorting.stack.layout.values()}
        return lambda name: path.task(name) if name in known else self.names.register(types[name])

    def _dispatch(
        self, number: Register, ways: Sequence[str], nodes: Nodes, code: Sequence[Statement] = ()
    ) -> str:
        """A node from which the warp goes the way of a number that is the same in all lanes."""
        return self._node(
            nodes, self.names.label("dispatch"), code, Indexed("brx.idx.uni", number, tuple(ways))
        )

    def _node(
        self,
        nodes: Nodes,
        name: str,
        code: Sequence[Statement],
        end: Branch | Jump | Indexed,
        phase: str = "",
    ) -> str:
        nodes[name] = Node(name, tuple(code), end, self.region, phase)
        return name
