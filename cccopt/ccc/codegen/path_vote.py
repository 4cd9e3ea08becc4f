"""The vote at the join of one path, and what the warp does depending on its outcome.

    join:   idle = ballot(!p);  all lanes are idle: go on
    choose: missing = popc(idle);  top >= missing: take, else push
    push:   lanes with p push their tasks
    take:   lanes without p pop tasks; all 32 run the path

In a loop with a stack, the warp runs one inner iteration after another while idle lanes can be filled from the stack.
When they no longer can, the lanes that still have inner iterations push them, and the warp goes on to find more.
"""

from __future__ import annotations

from dataclasses import replace

from cccopt.ccc.codegen.copies import without_pragmas
from cccopt.ccc.codegen.expansion import REDUX, ExpansionCode
from cccopt.ccc.codegen.push_pop import Ballot, StackTraffic
from cccopt.ccc.codegen.region_code import RegionCode
from cccopt.ccc.codegen.task_copies import TaskCopies
from cccopt.ccc.function.code import FULL_WARP, flag_op, op
from cccopt.ccc.function.graph import UNIFORM, Branch, Jump, Nodes, led
from cccopt.ccc.plan.plan import PathPlan, own
from cccopt.ccc.plan.stack import copy_value
from cccopt.ptx.ir import Guard, Instruction
from cccopt.ptx.language import Language


class PathVote:
    """Makes the code of votes, each on one path: lanes with a flag want it, all do if that is ``certain``, and the warp
    goes on to the node ``after``. Each method returns the nodes and the name of the first.
    """

    def __init__(self, code: RegionCode, copies: TaskCopies) -> None:
        self.code = code
        self.copies = copies
        self.builder = code.builder

    def code_of(self, path: PathPlan, flag: Guard, after: str, certain: bool) -> tuple[Nodes, str]:
        """The vote on a path of any kind."""
        if path.counted is not None:
            return self._expanded(path, flag, after, certain)
        if path.path.is_loop:
            return self._loop(path, flag, after, certain)
        return self._if(path, flag, after, certain)

    def _if(self, path: PathPlan, flag: Guard, after: str, certain: bool) -> tuple[Nodes, str]:
        build, traffic = self.builder, self._traffic(path)
        ballot, full = traffic.ballot, build.flag()
        nodes: Nodes = {}
        after = self._recompute(path, flag, after, nodes)
        begin, task = self.copies.task(path, after)
        if certain:
            # All lanes have a task of their own: none needs to wait. Without a vote of its own, the path orders
            # accesses to the stacks of those inside it and to owners' slots.
            ordered = path.results.owner is not None or any(map(self.code.plan.has_stack, path.children))
            order = self._order(path) if ordered else []
            code = [*order, *self._hold(path, flag), *self._admitted(path), *path.context.restore]
            nodes.update(task)
            return nodes, build.phase(nodes, path.phase("take"), code, Jump(begin))
        push = build.phase(nodes, path.phase("push"), traffic.push(flag, own), Jump(after))
        take = build.phase(nodes, path.phase("take"), traffic.pop(flag, own), Jump(begin))
        nodes.update(task)
        choose = [
            *self._order(path),
            ballot.count(),
            op("setp.ge.s32", full.register, path.top, ballot.missing),
        ]
        some = build.node(nodes, build.label("choose"), choose, Branch(full, take, push, UNIFORM))
        return nodes, self._join(path, ballot, flag, after, some, nodes)

    def _loop(self, path: PathPlan, flag: Guard, after: str, certain: bool) -> tuple[Nodes, str]:
        build, traffic = self.builder, self._traffic(path)
        ballot, enough, busy = traffic.ballot, build.flag(), build.flag()
        turn, vote = build.label("turn"), build.label("vote")
        nodes: Nodes = {}
        after = self._recompute(path, flag, after, nodes)
        begin, task = self.copies.iterations(path, busy, vote)
        run = build.phase(nodes, path.phase("trip"), (), Jump(begin))
        nodes.update(task)
        build.node(nodes, vote, [ballot.vote(busy)], Jump(turn))
        take = build.phase(nodes, path.phase("take"), traffic.pop(busy, path.registers.of), Jump(run))
        # A pop may have been the last access to the slots that are written now.
        code = [op("bar.warp.sync", FULL_WARP), *traffic.push(busy, path.registers.of)]
        store = build.phase(nodes, path.phase("push"), code, Jump(after))
        given = self.copies.deposit(path, store, nodes)
        test = [ballot.count(), op("setp.ge.s32", enough.register, path.top, ballot.missing)]
        build.node(nodes, turn, test, Branch(enough, take, given, UNIFORM))
        code = [
            *self._order(path),
            *self._admitted(path),
            *path.context.restore,
            *path.results.resets,
            flag_op(busy.register, flag),
        ]
        admit = build.label("admit")
        if certain:
            return nodes, build.node(nodes, admit, [*self._hold(path, flag), *code], Jump(run))
        some = build.node(nodes, admit, code, Jump(turn))
        return nodes, self._join(path, ballot, flag, after, some, nodes)

    def _expanded(self, path: PathPlan, flag: Guard, after: str, certain: bool) -> tuple[Nodes, str]:
        loop, following = path.counted, self.builder.label("next")
        assert loop is not None
        view, plan = self.code.view, self.code.plan
        counting = [i for i in view.statements(path.path.nodes) if i not in loop.code]
        iteration = self.code.own.without(path.path.nodes, counting)
        iteration = led(iteration, {path.path.begin: following, path.path.end: following})
        iteration[loop.latch] = replace(iteration[loop.latch], end=Jump(following))
        iteration[path.path.begin] = without_pragmas(iteration[path.path.begin])
        redux = Language.of(view.module).has(REDUX)
        lanes = plan.lane, plan.lanes_before
        return ExpansionCode(path, loop, iteration, following, *lanes, self.builder, redux).nodes(
            flag, after, certain
        )

    def _traffic(self, path: PathPlan) -> StackTraffic:
        return StackTraffic(path, Ballot.fresh(self.builder), self.code.plan.lanes_before, self.builder)

    def _join(self, path: PathPlan, ballot: Ballot, flag: Guard, after: str, some: str, nodes: Nodes) -> str:
        """The node at which the warp reconverges; it goes on to ``some`` if any lane wants the path."""
        unwanted = self.builder.flag()
        code = [
            *self._hold(path, flag),
            ballot.vote(flag),
            op("setp.eq.s32", unwanted.register, ballot.idle, FULL_WARP),
        ]
        end = Branch(unwanted, after, some, UNIFORM)
        return self.builder.node(nodes, self.builder.label("join"), code, end)

    def _admitted(self, path: PathPlan) -> list[Instruction]:
        """Moves what the lane has for its own task into the task's registers."""
        values = path.stack.layout.values()
        return [i for v in values for i in copy_value(v, own(v.name), path.registers.of(v.name))]

    def _order(self, path: PathPlan) -> list[Instruction]:
        """The barrier between the accesses to the stack after this vote and those after the last one. A path inside an
        `if` path needs none: the outer path's barrier is between any two runs of its tasks.
        """
        paths = self.code.plan.all_paths()
        once = any(path is p for outer in paths if not outer.path.is_loop for p in outer.children)
        return [] if once else [op("bar.warp.sync", FULL_WARP)]

    def _recompute(self, path: PathPlan, flag: Guard, after: str, nodes: Nodes) -> str:
        """Has lanes that wanted the path compute again what they read after it; returns the node to go to."""
        if not path.after.recomputed:
            return after
        build = self.builder
        again = build.node(
            nodes, build.label("recompute"), path.after.recompute(self.code.view.body), Jump(after)
        )
        return build.node(nodes, build.label("mine"), (), Branch(flag, again, after))

    def _hold(self, path: PathPlan, flag: Guard) -> list[Instruction]:
        """Keeps the flag for the code after the join that these lanes skip, because their tasks run it."""
        if not path.after.skip_flags:
            return []
        kept = self.builder.register("pred")
        return [
            flag_op(kept, flag),
            *(op("or.pred", skipping, skipping, kept) for skipping in path.after.skip_flags),
        ]
