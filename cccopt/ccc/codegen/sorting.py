"""One join for many exclusive paths: the warp sorts its lanes by path, and runs a path when 32 tasks wait for it.

    join:   which = the number of the lane's path, or the number of paths if it takes none
            all lanes have the same number: they run that path where they are, and go on
            push: ballots over its bits;  same = lanes with my number
            slot = waiting[which] + rank in same;  store the context
            waiting[own lane's path] += lanes that came;  32 or more: less 32, and the path is ready
    serve:  none is ready: go on;  b = one that is;  all 32 lanes load its tasks from waiting[b] on and run them;  serve
    drain:  for each path b: lanes below waiting[b] load a task each and run it

If there are few paths, each is tested in turn; if there are many, a ready one is found by its bit and a jump table.
Lane b counts the tasks that wait for path b. Two paths fill one array from both of its ends: the even one from slot 0
upwards, the odd one from the last slot downwards. All paths have one layout, which holds what any of them collects. One
vote for each bit of the number replaces one for each path. Khorasani 2016, 4.1.4 collects one path after another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from cccopt.ccc.codegen.builder import Builder
from cccopt.ccc.function.code import FULL_WARP, number, op
from cccopt.ccc.function.graph import UNIFORM, Branch, IndexedJump, Jump, Nodes
from cccopt.ccc.legality.exclusive import CHAIN
from cccopt.ccc.plan.plan import PAIRED, PathPlan, Sorting, own
from cccopt.ccc.plan.stack import SLOTS
from cccopt.ptx.ir import Instruction, Operand, Register, Statement

NOT_DIFFERENT = 0x90
"""The truth table of a & ~(b ^ c): the lanes in a whose bit, given by the ballot b, is c."""

NEITHER = 0x09
"""The truth table of ~(b ^ c)."""


Task: TypeAlias = "Callable[[PathPlan, str], tuple[str, Nodes]]"
"""Makes a path's nodes, which end at a given one; returns the name of the first, and the nodes."""


class SortingCode:
    """The code of one group of exclusive paths, in the loop and after it."""

    def __init__(self, sorting: Sorting, lane: Register, lanes_before: Register, builder: Builder) -> None:
        self.sorting = sorting
        self.lane = lane
        self.lanes_before = lanes_before
        self.builder = builder
        self.which = builder.register()
        self.serve = builder.label("serve")
        self.ready = builder.register()
        self.first = sorting.paths[0]

    def arrivals(self) -> tuple[dict[str, Instruction], Instruction]:
        """What a lane runs when it reaches each path's first node, and what it runs before that."""
        numbered = enumerate(self.sorting.paths)
        found = {path.path.begin: op("mov.u32", self.which, number) for number, path in numbered}
        return found, op("mov.u32", self.which, len(self.sorting.paths))

    def flags(self) -> list[Instruction]:
        """Keeps the flags for the code after the join that lanes skip, because their tasks run it."""
        code: list[Instruction] = []
        for skipping in dict.fromkeys(flag for path in self.sorting.paths for flag in path.after.skip_flags):
            takers = sum(
                1 << number
                for number, path in enumerate(self.sorting.paths)
                if skipping in path.after.skip_flags
            )
            bit, kept = self.builder.register(), self.builder.register("pred")
            code += [
                op("shr.u32", bit, takers, self.which),
                op("and.b32", bit, bit, 1),
                op("setp.ne.u32", kept, bit, 0),
                op("or.pred", skipping, skipping, kept),
            ]
        return code

    def setup(self) -> list[Instruction]:
        """What each lane computes before the loop: no tasks wait."""
        return [op("mov.u32", self.sorting.waiting, 0)]

    def nodes(self, task: Task, in_place: Task, after: str) -> tuple[Nodes, str]:
        """The nodes from the join onwards, and the join. ``task`` makes a path's task, ``in_place`` the path as the
        program has it, both of which end at a node that they are given.
        """
        nodes: Nodes = {}
        if len(self.sorting.paths) > CHAIN:
            self._run_any_ready(task, after, nodes)
        else:
            self._run_each_ready(task, after, nodes)
        targets: list[str] = []
        for path in self.sorting.paths:
            # If lanes agree, nothing has become ready.
            begin, added = in_place(path, after)
            targets.append(begin)
            nodes.update(added)
        direct = self._dispatch((*targets, after), nodes)
        push = self._push(nodes)
        first, like_first = self.builder.register(), self.builder.register("pred")
        agree = self.builder.flag()
        test = [
            op("shfl.sync.idx.b32", first, self.which, 0, SLOTS - 1, FULL_WARP),
            op("setp.eq.u32", like_first, self.which, first),
            op("vote.sync.all.pred", agree.register, like_first, FULL_WARP),
        ]
        return nodes, self.builder.node(
            nodes, self.builder.label("join"), test, Branch(agree, direct, push, UNIFORM)
        )

    def drain(self, task: Task, following: str, nodes: Nodes) -> str:
        """Adds the drain, which runs the remaining tasks path by path in its own copies; returns the first's name."""
        for index, path in reversed([*enumerate(self.sorting.paths)]):
            begin, added = task(path, following)
            nodes.update(added)
            waiting, mine = self.builder.register(), self.builder.flag()
            code = [
                *self._waiting(number(index), waiting),
                op("setp.lt.u32", mine.register, self.lane, waiting),
            ]
            load = self._load(index, self.lane, begin, nodes)
            phase = path.phase("drain")
            end = Branch(mine, load, following)
            following = self.builder.node(nodes, self.builder.label(phase), code, end, phase)
        # Pushes end with a barrier: none is needed here.
        return following

    # --- the parts of the join ---

    def _sort(self) -> tuple[list[Register], list[Register], Register, list[Instruction]]:
        """The bits of the number, each spread over a word; the ballots over them; the register with the mask of the
        lanes that have this lane's number; and the code.
        """
        same = self.builder.register()
        spreads: list[Register] = []
        ballots: list[Register] = []
        code: list[Instruction] = []
        for bit in range(self.sorting.bits):
            spread, ballot = (self.builder.register() for _ in range(2))
            has = self.builder.register("pred")
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
        """The register in which lane b has the mask of the lanes that reached path b, and the code."""
        came = self.builder.register()
        code: list[Instruction] = []
        for bit, ballot in enumerate(ballots):
            spread = self.builder.register()
            code.append(op("bfe.s32", spread, self.lane, bit, 1))
            code.append(self._equal(came, ballot, spread, came if bit else None))
        return came, code

    def _without_others(self) -> list[Instruction]:
        """Clears the bits of lanes beyond the paths; if there are few paths, no test reads these bits."""
        paths = len(self.sorting.paths)
        return [op("and.b32", self.ready, self.ready, (1 << paths) - 1)] if paths > CHAIN else []

    def _equal(
        self, target: Register, ballot: Register, spread: Register, among: Register | None
    ) -> Instruction:
        if among is None:
            return op("lop3.b32", target, 0, ballot, spread, NEITHER)
        return op("lop3.b32", target, among, ballot, spread, NOT_DIFFERENT)

    def _push(self, nodes: Nodes) -> str:
        s, r = self.sorting, self.builder.register
        at, rank, end, slot = (r("b32") for _ in range(4))
        mine, filled = (self.builder.flag() for _ in range(2))
        (odd, *_), ballots, same, votes = self._sort()
        came, arrivals = self._arrived(ballots)
        code: list[Instruction] = [
            *self.flags(),
            *votes,
            op("shfl.sync.idx.b32", at, s.waiting, self.which, SLOTS - 1, FULL_WARP),
            op("and.b32", rank, same, self.lanes_before),
            op("popc.b32", rank, rank),
            op("add.s32", slot, at, rank),
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
            op("vote.sync.ballot.b32", self.ready, filled.register, FULL_WARP),
            *self._without_others(),
            op("bar.warp.sync", FULL_WARP),
        ]
        return self.builder.node(
            nodes, self.builder.label("push"), code, Jump(self.serve), self.first.phase("push")
        )

    def _run_each_ready(self, task: Task, after: str, nodes: Nodes) -> None:
        """Adds a test for each path in turn."""
        following = after
        for index, path in reversed([*enumerate(self.sorting.paths)]):
            begin, added = task(path, following)
            nodes.update(added)
            slot, bit = (self.builder.register() for _ in range(2))
            ready = self.builder.flag()
            load = self._load(index, slot, begin, nodes)
            phase = path.phase("take")
            code = self._top(number(index), slot)
            take = self.builder.node(nodes, self.builder.label(phase), code, Jump(load), phase)
            test = [
                op("and.b32", bit, self.ready, 1 << index),
                op("setp.ne.u32", ready.register, bit, 0),
            ]
            asked = self.builder.label("serve") if index else self.serve
            following = self.builder.node(nodes, asked, test, Branch(ready, take, following, UNIFORM))

    def _run_any_ready(self, task: Task, after: str, nodes: Nodes) -> None:
        """Adds the choice of any path that is ready, repeated until none is."""
        chosen, one, slot = (self.builder.register() for _ in range(3))
        none = self.builder.flag()
        takes: list[str] = []
        for index, path in enumerate(self.sorting.paths):
            begin, added = task(path, self.serve)
            nodes.update(added)
            load = self._load(index, slot, begin, nodes)
            phase = path.phase("take")
            takes.append(self.builder.node(nodes, self.builder.label(phase), (), Jump(load), phase))
        code = [
            op("bfind.u32", chosen, self.ready),
            op("shl.b32", one, 1, chosen),
            op("xor.b32", self.ready, self.ready, one),
            *self._top(chosen, slot),
        ]
        dispatch = self._jump(chosen, takes, nodes, code)
        test = [op("setp.eq.u32", none.register, self.ready, 0)]
        self.builder.node(nodes, self.serve, test, Branch(none, after, dispatch, UNIFORM))

    def _waiting(self, path: Operand, target: Register) -> list[Instruction]:
        return [op("shfl.sync.idx.b32", target, self.sorting.waiting, path, SLOTS - 1, FULL_WARP)]

    def _top(self, path: Operand, slot: Register) -> list[Instruction]:
        """The slot from which each lane takes its task: a full warp's tasks lie on top of those that go on waiting."""
        return [*self._waiting(path, slot), op("add.s32", slot, slot, self.lane)]

    def _load(self, index: int, slot: Register, begin: str, nodes: Nodes) -> str:
        """The node at which a lane loads the task of path ``index`` in ``slot``, on its way to ``begin``."""
        s, path = self.sorting, self.sorting.paths[index]
        # The position that `_push` computes, most of it in the address.
        odd = index % 2
        turn: list[Instruction] = []
        if odd:
            turned = self.builder.register()
            turn, slot = [op("not.b32", turned, slot)], turned
        below = -(index + odd) * (PAIRED // 2)
        pop = s.stack.pop(own, self._target(path), slot, None, below)
        return self.builder.node(
            nodes, self.builder.label("load"), [*turn, *pop, *path.context.restore], Jump(begin)
        )

    def _target(self, path: PathPlan) -> Callable[[str], Register]:
        """The register of a path's task for a value of the common layout; a fresh one if the task does not use it."""
        known = {value.name for value in path.stack.layout.values()}
        types = {value.name: value.type for value in self.sorting.stack.layout.values()}
        return lambda name: path.registers.of(name) if name in known else self.builder.register(types[name])

    def _dispatch(self, targets: Sequence[str], nodes: Nodes) -> str:
        """A node from which a warp whose lanes agree goes to their path."""
        *targets, last = targets
        if len(self.sorting.paths) > CHAIN:
            return self._jump(self.which, (*targets, last), nodes)
        for index, target in reversed([*enumerate(targets)]):
            chosen = self.builder.flag()
            test = [op("setp.eq.u32", chosen.register, self.which, index)]
            last = self.builder.node(
                nodes, self.builder.label("dispatch"), test, Branch(chosen, target, last, UNIFORM)
            )
        return last

    def _jump(
        self, number: Register, targets: Sequence[str], nodes: Nodes, code: Sequence[Statement] = ()
    ) -> str:
        end = IndexedJump("brx.idx.uni", number, tuple(targets))
        return self.builder.node(nodes, self.builder.label("dispatch"), code, end)
