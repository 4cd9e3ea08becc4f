"""One site for many exclusive paths: the warp sorts its lanes by path, and runs a path when 32 tasks wait for it.

    join:   which = the number of the lane's path, or one more;  for the remainder: still one more, and on to serve
            all lanes have one: they run that path where they are, and go on
            push: ballots over its bits;  same = lanes with my number
            slot = waiting[which] + rank in same;  store the context
            waiting[own lane's path] += lanes that came;  32 or more: less 32, and the path is ready
    serve:  none is ready: go on;  b = one that is;  all 32 lanes load its tasks from waiting[b] on and run them;  serve

A few paths are asked one after the other, of many one is found by its bit and a jump table. Lane b counts the tasks
that wait for path b. Two paths fill one array from both of its ends: the even one from slot 0 upwards, the odd one from
the last slot downwards. All paths have one layout: what any of them collects. One vote for each bit of the number takes
the place of one for each path. Khorasani 2016, 4.1.4 collects one path after another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cccopt.ccc.code import FULL_WARP, negated, number, op, predicate
from cccopt.ccc.graph import UNIFORM, Branch, Indexed, Jump, Node, Nodes
from cccopt.ccc.names import Names
from cccopt.ccc.plan import PAIRED, PathPlan, Sorting, own
from cccopt.ccc.stack import SLOTS
from cccopt.ptx.ir import Guard, Instruction, Operand, Register, Statement

NOT_DIFFERENT = 0x90
"""The truth table of a & ~(b ^ c): the lanes in a whose bit, given by the ballot b, is c."""

NEITHER = 0x09
"""The truth table of ~(b ^ c)."""
CHAIN = 4
"""Paths up to which a comparison each costs less than a jump table."""


@dataclass(frozen=True, slots=True)
class _Tops:
    """Which of a path's tasks the lanes take: code that finds each lane's ``slot``, and whether one is ``mine``."""

    code: tuple[Instruction, ...]
    slot: Register
    mine: Guard


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
        self.which = names.register("b32")
        self.join = names.label("join")
        self.serve = names.label("serve")
        self.served = names.label("served")
        self.drained = names.label("sorted")
        self.ready = names.register("b32")
        self.first = sorting.paths[0]

    def arrivals(self) -> tuple[dict[str, Instruction], Instruction]:
        """What a lane runs that comes to each path's first node, and what it runs ahead of that."""
        numbered = enumerate(self.sorting.paths)
        found = {path.path.begin: op("mov.u32", self.which, number) for number, path in numbered}
        return found, op("mov.u32", self.which, len(self.sorting.paths))

    def flags(self) -> list[Instruction]:
        """Keeps the flags for the code behind the site that lanes skip, because their tasks run it."""
        code: list[Instruction] = []
        for took in dict.fromkeys(flag for path in self.sorting.paths for flag in path.took):
            takers = sum(1 << number for number, path in enumerate(self.sorting.paths) if took in path.took)
            bit, kept = self.names.register("b32"), self.names.register("pred")
            code += [
                op("shr.u32", bit, takers, self.which),
                op("and.b32", bit, bit, 1),
                op("setp.ne.u32", kept, bit, 0),
                op("or.pred", took, took, kept),
            ]
        return code

    def setup(self) -> list[Instruction]:
        """What each lane computes ahead of the loop: no tasks wait."""
        return [
            op("mov.u32", self.sorting.waiting, 0),
            op("mov.u32", self.ready, 0),
            op("mov.pred", self.sorting.draining.register, 0),
        ]

    def site(
        self,
        task: Callable[[PathPlan, str], tuple[str, Nodes]],
        in_place: Callable[[PathPlan, str], tuple[str, Nodes]],
        behind: str,
    ) -> tuple[Nodes, str]:
        """The nodes from the join on, and the join. ``task`` makes a path's task, ``in_place`` the path as the program
        has it, both ending at a node that they are given.
        """
        nodes: Nodes = {}
        tasks: list[str] = []
        own_ways: list[str] = []
        following = self._following()
        for path, next_one in zip(self.sorting.paths, following, strict=True):
            # Nothing is ready where lanes agree.
            for make, begins, onward in ((task, tasks, next_one), (in_place, own_ways, self.served)):
                begin, added = make(path, onward)
                begins.append(begin)
                nodes.update(added)
        self._serve(tasks, following, behind, nodes)
        direct = self._dispatch((*own_ways, self.served, self.serve), nodes)
        push = self._push(nodes)
        first, like_first = self.names.register("b32"), self.names.register("pred")
        agree = Guard(self.names.register("pred"))
        test = [
            op("shfl.sync.idx.b32", first, self.which, 0, SLOTS - 1, FULL_WARP),
            op("setp.eq.u32", like_first, self.which, first),
            op("vote.sync.all.pred", agree.register, like_first, FULL_WARP),
        ]
        return nodes, self._node(nodes, self.join, test, Branch(agree, direct, push, UNIFORM))

    def finish(self, nodes: Nodes) -> None:
        """Adds the way out of the loop for the remainder, which passes none of the sites behind this one."""
        served = nodes[self.served]
        assert isinstance(served.end, Jump)
        end = Branch(self.sorting.draining, self.drained, served.end.target, UNIFORM)
        nodes[self.served] = replace(served, end=end)

    def drain(self, following: str, nodes: Nodes) -> str:
        """The remainder: paths with tasks left are ready; the name of the node to go to."""
        some = self.names.register("pred")
        code = [
            op("bar.warp.sync", FULL_WARP),
            op("mov.pred", self.sorting.draining.register, 1),
            op("setp.ne.u32", some, self.sorting.waiting, 0),
            *self._get_ready(some),
            # By the join, which the loop has passed too: the way in between would be a second one into its code.
            op("mov.u32", self.which, len(self.sorting.paths) + 1),
        ]
        self._node(nodes, self.drained, (), Jump(following))
        return self._node(nodes, self.names.label("drain"), code, Jump(self.join), self.first.phase("drain"))

    # --- the parts of the site ---

    def _sort(self) -> tuple[list[Register], list[Register], Register, list[Instruction]]:
        """The bits of the number, each all over a word; the ballots over them; the register with the lanes of one's own
        number; and the code.
        """
        same = self.names.register("b32")
        spreads: list[Register] = []
        ballots: list[Register] = []
        code: list[Instruction] = []
        for bit in range(self.sorting.bits):
            spread, ballot = (self.names.register("b32") for _ in range(2))
            has = self.names.register("pred")
            code += [
                op("bfe.s32", spread, self.which, bit, 1),
                op("setp.ne.u32", has, spread, 0),
                op("vote.sync.ballot.b32", ballot, has, FULL_WARP),
                self._equal(same, ballot, spread, same if ballots else None),
            ]
            spreads.append(spread)
            ballots.append(ballot)
        return spreads, ballots, same, code

    def _arrived(self, ballots: Sequence[Register]) -> tuple[Register, list[Instruction]]:
        """The register in which lane b has the lanes that came to path b, and the code."""
        came = self.names.register("b32")
        code: list[Instruction] = []
        for bit, ballot in enumerate(ballots):
            spread = self.names.register("b32")
            code.append(op("bfe.s32", spread, self.lane, bit, 1))
            code.append(self._equal(came, ballot, spread, came if bit else None))
        return came, code

    def _get_ready(self, some: Register) -> list[Instruction]:
        """The paths whose lanes have the flag are ready; what lanes beyond them count is nothing."""
        return [
            op("vote.sync.ballot.b32", self.ready, some, FULL_WARP),
            op("and.b32", self.ready, self.ready, (1 << len(self.sorting.paths)) - 1),
        ]

    def _equal(
        self, target: Register, ballot: Register, spread: Register, among: Register | None
    ) -> Instruction:
        if among is None:
            return op("lop3.b32", target, 0, ballot, spread, NEITHER)
        return op("lop3.b32", target, among, ballot, spread, NOT_DIFFERENT)

    def _push(self, nodes: Nodes) -> str:
        s, r = self.sorting, self.names.register
        at, ahead, end, slot = (r("b32") for _ in range(4))
        mine, filled = (Guard(r("pred")) for _ in range(2))
        (odd, *_), ballots, same, votes = self._sort()
        came, arrivals = self._arrived(ballots)
        code: list[Instruction] = [
            *self.flags(),
            *votes,
            op("shfl.sync.idx.b32", at, s.waiting, self.which, SLOTS - 1, FULL_WARP),
            op("and.b32", ahead, same, self.lanes_before),
            op("popc.b32", ahead, ahead),
            op("add.s32", slot, at, ahead),
            # From the lower end of a pair's slots upwards, or from the upper one downwards.
            op("xor.b32", slot, slot, odd),
            op("sub.s32", end, self.which, odd),
            op("mad.lo.s32", slot, end, PAIRED // 2, slot),
            op("setp.lt.u32", mine.register, self.which, len(s.paths)),
            # What was popped last may be overwritten here.
            op("bar.warp.sync", FULL_WARP),
            *s.stack.push(own, slot, mine),
            *arrivals,
            op("popc.b32", came, came),
            op("add.s32", s.waiting, s.waiting, came),
            op("setp.ge.u32", filled.register, s.waiting, SLOTS),
            op("sub.s32", s.waiting, s.waiting, SLOTS, guard=filled),
            *self._get_ready(filled.register),
            op("bar.warp.sync", FULL_WARP),
        ]
        return self._node(nodes, self.names.label("push"), code, Jump(self.serve), self.first.phase("push"))

    def _following(self) -> list[str]:
        """Where each path's tasks go on to: to the question for the next path, or for any."""
        count = len(self.sorting.paths)
        if count > CHAIN:
            return [self.serve] * count
        return [*(self.names.label("serve") for _ in range(count - 1)), self.served]

    def _serve(self, tasks: Sequence[str], following: Sequence[str], behind: str, nodes: Nodes) -> None:
        self._node(nodes, self.served, (), Jump(behind))
        if len(tasks) > CHAIN:
            self._serve_any(tasks, nodes)
            return
        for place, (begin, onward) in enumerate(zip(tasks, following, strict=True)):
            bit, ready = self.names.register("b32"), Guard(self.names.register("pred"))
            test = [
                op("and.b32", bit, self.ready, 1 << place),
                op("setp.ne.u32", ready.register, bit, 0),
            ]
            take = self._take(place, self._tops(number(place)), begin, onward, nodes)
            asked = following[place - 1] if place else self.serve
            self._node(nodes, asked, test, Branch(ready, take, onward, UNIFORM))

    def _serve_any(self, tasks: Sequence[str], nodes: Nodes) -> None:
        """The question for any path that is ready, asked until none is."""
        chosen, one = self.names.register("b32"), self.names.register("b32")
        none = Guard(self.names.register("pred"))
        tops = self._tops(chosen)
        places = enumerate(tasks)
        takes = [
            self._take(place, replace(tops, code=()), begin, self.serve, nodes) for place, begin in places
        ]
        code = [
            op("bfind.u32", chosen, self.ready),
            op("shl.b32", one, 1, chosen),
            op("xor.b32", self.ready, self.ready, one),
            *tops.code,
        ]
        dispatch = self._jump(chosen, takes, nodes, code)
        test = [op("setp.eq.u32", none.register, self.ready, 0)]
        self._node(nodes, self.serve, test, Branch(none, self.served, dispatch, UNIFORM))

    def _tops(self, path: Operand) -> _Tops:
        s, r = self.sorting, self.names.register
        waiting, kept, slot = (r("b32") for _ in range(3))
        mine = Guard(r("pred"))
        code = (
            op("shfl.sync.idx.b32", waiting, s.waiting, path, SLOTS - 1, FULL_WARP),
            # A full warp's tasks lie on top of those that go on waiting.
            op("selp.b32", kept, 0, waiting, s.draining.register),
            op("add.s32", slot, kept, self.lane),
            op("setp.lt.or.u32", mine.register, self.lane, waiting, predicate(negated(s.draining))),
        )
        return _Tops(code, slot, mine)

    def _take(self, place: int, tops: _Tops, begin: str, following: str, nodes: Nodes) -> str:
        """The node from which the lanes that ``tops`` gives tasks load theirs and run the path."""
        s, path = self.sorting, self.sorting.paths[place]
        # The place that `_push` computes, most of it in the address.
        odd, slot = place % 2, tops.slot
        turn: list[Instruction] = []
        if odd:
            slot = self.names.register("b32")
            turn = [op("not.b32", slot, tops.slot)]
        below = -(place + odd) * (PAIRED // 2)
        pop = s.stack.pop(own, self._target(path), slot, None, below)
        loaded = self._node(nodes, self.names.label("load"), [*turn, *pop, *path.unpacking], Jump(begin))
        # Only the remainder has fewer tasks than lanes.
        phase = path.phase("take")
        return self._node(
            nodes, self.names.label(phase), tops.code, Branch(tops.mine, loaded, following), phase
        )

    def _target(self, path: PathPlan) -> Callable[[str], Register]:
        """Where a path's task has a value of the common layout; anywhere, if it has no use for it."""
        known = {value.name for value in path.stack.layout.values()}
        types = {value.name: value.type for value in self.sorting.stack.layout.values()}
        return lambda name: path.task(name) if name in known else self.names.register(types[name])

    def _dispatch(self, ways: Sequence[str], nodes: Nodes) -> str:
        """A node from which a warp whose lanes agree goes their path's way."""
        *ways, last = ways
        if len(self.sorting.paths) > CHAIN:
            return self._jump(self.which, (*ways, last), nodes)
        for place, way in reversed([*enumerate(ways)]):
            chosen = Guard(self.names.register("pred"))
            test = [op("setp.eq.u32", chosen.register, self.which, place)]
            last = self._node(nodes, self.names.label("dispatch"), test, Branch(chosen, way, last, UNIFORM))
        return last

    def _jump(
        self, number: Register, ways: Sequence[str], nodes: Nodes, code: Sequence[Statement] = ()
    ) -> str:
        end = Indexed("brx.idx.uni", number, tuple(ways))
        return self._node(nodes, self.names.label("dispatch"), code, end)

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
