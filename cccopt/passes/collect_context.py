"""CCC's core rewrite: tasks of divergent paths wait on warp-private stacks until the whole warp has work (DESIGN 4.2).

    for.begin:                          for.begin: activemask full? else the original code
      guard                               (whole) stack addresses, tops = 0, what all lanes may share
    H: A                                  guard, each lane's answer in `alive`
       @!p bra J                        T: vote on `alive`; done: drain
       P                                H: A
    J: C; latch; @q bra H               J: want = ballot(p);  r = 32 - popc(want);  want == 0: C
                                           top >= r  idle lanes pop, the warp runs P (renamed)
                                           top <  r  lanes with p push
                                        C: C; latch -> T
                                        drain: lanes below top pop and run P once

Two forms. *Split*: the loop runs while all lanes continue, then lanes with trips left go on in the original loop.
*Idle lanes*: lanes whose loop has ended stay, flag down, until none is left. A ``for variable`` path is a loop: its
task is one lane's remaining trips; the warp runs trip after trip and refills idle lanes from the stack.

Safety: ASSUMES that iterations are independent, which the pragma says; `cccopt.ccc.legality` refuses the rest.
Khorasani 2016, 4.1; what the thesis leaves to lock-step is explicit here (votes with masks, `bar.warp.sync`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from cccopt.ccc.annotations import is_annotation
from cccopt.ccc.code import FULL_WARP, negated, op, predicate
from cccopt.ccc.graph import Branch, Graph, Jump, Node, Nodes, copy, predecessors, retarget, targets
from cccopt.ccc.plan import PathPlan, Plan, own
from cccopt.ccc.regions import forward
from cccopt.ccc.stack import SLOTS, Lookup, copy_value
from cccopt.ccc.view import View
from cccopt.passes.sites import hold, place_site
from cccopt.ptx.ir import (
    Guard,
    Instruction,
    Label,
    Pragma,
    Register,
    SpecialRegister,
    Statement,
    Symbol,
    Variable,
)


def rewrite(view: View, plan: Plan) -> Graph:
    """The function's graph with the region of ``plan`` rewritten, the original loop kept beside the new one."""
    return _Rewrite(view, plan).graph()


class _Rewrite:
    """One region's rewrite: holds what all steps share (names, the warp's registers); each step returns new nodes."""

    def __init__(self, view: View, plan: Plan) -> None:
        self.view = view
        self.plan = plan
        self.names = view.names
        self.region = plan.region.annotation.region
        self.skip = {id(view.body[i]): Guard(r, True) for i, r in plan.skipped.items()}
        self.base = {name: self._stripped(name) for name in plan.region.nodes | plan.region.approach}

    # --- the parts of the function ---

    def graph(self) -> Graph:
        old, region = self.view.graph, self.plan.region
        nodes: Nodes = {
            name: replace(node, code=tuple(s for s in node.code if not is_annotation(s)))
            if name in region.nodes | region.approach
            else node
            for name, node in old.nodes.items()
        }
        first, added = self._version()
        original = Node(
            self.names.label(f"original_{self.region}"),
            (),
            Jump(region.select),
            None,
            f"original_{self.region}",
        )
        mask, partial = self.names.register("b32"), Guard(self.names.register("pred"))
        test = (op("activemask.b32", mask), op("setp.ne.s32", partial.register, mask, FULL_WARP))
        chooser = Node(self.names.label("choose"), test, Branch(partial, original.name, first), self.region)
        into = {
            name
            for name in predecessors(old.nodes).get(region.select, [])
            if name not in region.nodes | region.approach
        }
        for name in into:
            end = retarget(nodes[name].end, lambda t: chooser.name if t == region.select else t)
            nodes[name] = replace(nodes[name], end=end)
        entry = chooser.name if old.entry == region.select else old.entry
        layout: Nodes = {}
        for name, node in nodes.items():
            if name == region.select:
                # A loop around the region may lead from its end straight back to its beginning.
                again = _led(added, {region.select: chooser.name})
                layout.update({chooser.name: chooser, **again, original.name: original})
            layout[name] = node
        return Graph(entry, layout, (*old.declarations, *self._shared()))

    def _shared(self) -> tuple[Statement, ...]:
        if not self.plan.stack_bytes:
            return ()
        return (Variable("shared", ".b8", self.plan.stack_name, (self.plan.stack_bytes,), alignment=8),)

    def _version(self) -> tuple[str, Nodes]:
        """The rewritten loop with all that leads to it and behind it; the name of its first node."""
        plan, region = self.plan, self.plan.region
        exits = self._exits()
        alive, number = self.names.register("pred"), self.names.register("b32")
        begin_test = self.names.label("test")
        ways, leave = self._leaving(exits, alive, number, begin_test)
        arrive = Node(self.names.label("arrive"), (op("mov.pred", alive, 1),), Jump(begin_test), self.region)
        approach = {
            name: replace(
                self.base[name],
                end=retarget(
                    self.base[name].end,
                    lambda t: t if t in region.approach else arrive.name if t == region.header else leave[t],
                ),
            )
            for name in region.approach
        }
        approach, copies = copy(approach.values(), self.names, lambda i: i)
        setup = Node(
            self.names.label(f"whole_{self.region}"),
            tuple(self._setup()),
            Jump(copies[region.select]),
            self.region,
            f"whole_{self.region}",
        )
        nodes: Nodes = {setup.name: setup, **approach, arrive.name: arrive, **ways}
        enter = self.names.label("enter")
        behind: Nodes = {}
        final = self._final(Guard(alive), number, exits, behind)
        latch = self._single_latch() if plan.split else None
        if latch is not None:
            test, going, outside = latch
            self._vote("all", begin_test, Guard(alive), enter, final, nodes)
            drained = self._drains(self._final(going, number, [outside], behind), behind)
            self._vote("all", test, going, enter, drained, behind)
            whole = self._iteration(enter, None, test, {**leave, outside: test})
        else:
            drained = self._drains(final, behind)
            self._vote("all" if plan.split else "any", begin_test, Guard(alive), enter, drained, nodes)
            whole = self._iteration(enter, None if plan.split else Guard(alive), begin_test, leave)
        program = {name for name in region.nodes if name in whole}
        renamed, names_of = copy((whole[n] for n in program_order(whole, program)), self.names, lambda i: i)
        # Laid out in this order, an iteration falls through to the test behind it.
        nodes.update(_led(renamed, names_of))
        nodes.update(_led({n: node for n, node in whole.items() if n not in program}, names_of))
        return setup.name, {**nodes, **behind}

    def _exits(self) -> list[str]:
        """Where lanes may go when they leave the region."""
        region = self.plan.region
        ways = [t for n in program_order(self.base, region.nodes) for t in targets(self.base[n].end)]
        ways += [
            t
            for n in program_order(self.base, region.approach)
            for t in targets(self.base[n].end)
            if t not in region.approach
        ]
        return list(dict.fromkeys(t for t in ways if t not in region.nodes))

    def _leaving(
        self, exits: list[str], alive: Register, number: Register, test: str
    ) -> tuple[Nodes, Mapping[str, str]]:
        """For each exit the node that a lane on its way there passes, and their names by exit."""
        nodes: Nodes = {}
        names: dict[str, str] = {}
        for place, target in enumerate(exits):
            code = [op("mov.pred", alive, 0)]
            if len(exits) > 1:
                code.append(op("mov.u32", number, place))
            node = Node(self.names.label("leave"), tuple(code), Jump(test), self.region)
            nodes[node.name] = node
            names[target] = node.name
        return nodes, names

    def _final(self, going: Guard, number: Register, exits: list[str], nodes: Nodes) -> str:
        """The node behind everything: lanes with trips left go on in the original loop, the others leave."""
        following = exits[-1] if exits else self.plan.region.header
        for place in reversed(range(len(exits) - 1)):
            chosen = self.names.register("pred")
            test = op("setp.eq.u32", chosen, number, place)
            branch = Branch(Guard(chosen), exits[place], following)
            node = Node(self.names.label("exit"), (test,), branch, self.region)
            nodes[node.name] = node
            following = node.name
        if not self.plan.split:
            return following
        node = Node(
            self.names.label("rest"), (), Branch(going, self.plan.region.header, following), self.region
        )
        nodes[node.name] = node
        return node.name

    def _vote(self, kind: str, name: str, flag: Guard, enter: str, done: str, nodes: Nodes) -> None:
        result = self.names.register("pred")
        # ptxas looks for the pragma in a loop's first block, and this may be it.
        code = (Pragma(("nounroll",)), op(f"vote.sync.{kind}.pred", result, predicate(flag), FULL_WARP))
        nodes[name] = Node(name, code, Branch(Guard(result), enter, done, "bra.uni"), self.region)

    def _single_latch(self) -> tuple[str, Guard, str] | None:
        """If one branch alone decides between the next trip and an exit: a name for the test behind it, the
        condition to continue, and the exit.
        """
        region = self.plan.region
        leaving = [
            n
            for n in region.nodes
            if any(t == region.header or t not in region.nodes for t in targets(self.base[n].end))
        ]
        if len(leaving) != 1 or any(leaving[0] in p.path.nodes for p in self.plan.paths):
            return None
        end = self.base[leaving[0]].end
        if not isinstance(end, Branch) or region.header not in targets(end):
            return None
        (outside,) = (t for t in targets(end) if t != region.header)
        if outside in region.nodes:
            return None
        going = Guard(end.guard.register, end.guard.negated != (end.taken != region.header))
        return self.names.label("test"), going, outside

    def _iteration(self, enter: str, alive: Guard | None, test: str, leave: Mapping[str, str]) -> Nodes:
        """One iteration for the whole warp, from node ``enter``; its ends go to ``test``."""
        region = self.plan.region
        nodes = {
            name: replace(
                self.base[name],
                end=retarget(
                    self.base[name].end,
                    lambda t: test if t == region.header else t if t in region.nodes else leave[t],
                ),
            )
            for name in program_order(self.view.graph.nodes, region.nodes)
        }
        nodes[region.header] = _without_pragmas(nodes[region.header])
        first: Jump | Branch = Jump(region.header)
        if alive is not None:
            first = Branch(negated(alive), test, region.header)
        nodes[enter] = Node(enter, _reset(self.plan.paths), first, self.region)
        return self._settle(nodes, enter, self.plan.paths)

    # --- wholes and sites ---

    def _settle(self, nodes: Nodes, enter: str, paths: tuple[PathPlan, ...]) -> Nodes:
        """The whole ``nodes``, entered at ``enter``, with a site for each of ``paths``."""
        for path in paths:
            # A site placed before may stand between the path and where its end led at first.
            goals = {t for n in path.path.nodes for t in targets(nodes[n].end) if t not in path.path.nodes}
            (goal,) = goals

            def build(flag: Guard, behind: str, path: PathPlan = path) -> tuple[Nodes, str]:
                return (
                    self._loop_site(path, flag, behind)
                    if path.path.is_loop
                    else self._if_site(path, flag, behind)
                )

            nodes = place_site(
                nodes, enter, path.path.begin, path.path.nodes, goal, build, self.names, self.region
            )
        return nodes

    def _task(self, path: PathPlan, behind: str, alive: Guard | None = None) -> tuple[str, Nodes]:
        """A copy of the path that runs one task in each lane (with ``alive``, in those lanes only), renamed, with
        its moved tail; it ends at ``behind``.
        """
        nodes: Nodes = {
            name: self.base[name] for name in program_order(self.view.graph.nodes, path.path.nodes)
        }
        enter = self.names.label("enter")
        first: Jump | Branch = Jump(path.path.begin)
        end = path.path.end
        if alive is not None:
            first = Branch(negated(alive), end, path.path.begin)
        nodes[enter] = Node(enter, _reset(path.children), first, self.region)
        nodes = self._settle(nodes, enter, path.children)
        copies, names_of = copy(nodes.values(), self.names, path.rewrite)
        leave = behind
        if path.tail:
            code = tuple(path.rewrite(self._instruction(i)) for i in path.tail)
            node = Node(self.names.label("tail"), code, Jump(behind), None)
            copies[node.name] = node
            leave = node.name
            if alive is not None:
                test = Node(self.names.label("mine"), (), Branch(alive, leave, behind), self.region)
                copies[test.name] = test
                leave = test.name
        return names_of[enter], _led(copies, {end: leave})

    def _if_site(self, path: PathPlan, flag: Guard, behind: str) -> tuple[Nodes, str]:
        r = self.names.register
        want, count, idle, full = r("b32"), r("b32"), r("b32"), Guard(r("pred"))
        nodes: Nodes = {}
        behind = self._recompute(path, flag, behind, nodes)
        take = self.names.label(path.phase("take"))
        push = self.names.label(path.phase("push"))
        choose = self.names.label("choose")
        nodes[choose] = Node(
            choose,
            (
                op("bar.warp.sync", FULL_WARP),
                op("popc.b32", count, want),
                op("sub.s32", idle, SLOTS, count),
                op("setp.ge.s32", full.register, path.top, idle),
            ),
            Branch(full, take, push, "bra.uni"),
            self.region,
        )
        nodes[push] = Node(
            push,
            tuple(self._push(path, want, count, flag, own)),
            Jump(behind),
            self.region,
            path.phase("push"),
        )
        begin, task = self._task(path, behind)
        nodes[take] = Node(
            take, tuple(self._pop(path, want, idle, flag, own)), Jump(begin), self.region, path.phase("take")
        )
        nodes.update(task)
        held = self._hold(path, flag)
        first = self._join(want, flag, behind, choose, nodes, held)
        return nodes, first

    def _loop_site(self, path: PathPlan, flag: Guard, behind: str) -> tuple[Nodes, str]:
        r = self.names.register
        want, count, idle, few, busy, full = (
            r("b32"),
            r("b32"),
            r("b32"),
            Guard(r("pred")),
            Guard(r("pred")),
            Guard(r("pred")),
        )
        admit, round, fill = (self.names.label(what) for what in ("admit", "round", "fill"))
        take, trip, push, store = (
            self.names.label(path.phase(what)) for what in ("take", "trip", "push", "store")
        )
        nodes: Nodes = {}
        copies = [
            i for v in path.stack.layout.values() for i in copy_value(v, own(v.name), path.task(v.name))
        ]
        nodes[admit] = Node(
            admit,
            (
                op("bar.warp.sync", FULL_WARP),
                *copies,
                op("not.pred" if flag.negated else "mov.pred", busy.register, flag.register),
            ),
            Jump(round),
            self.region,
        )
        nodes[round] = Node(
            round,
            (
                op("popc.b32", count, want),
                op("sub.s32", idle, SLOTS, count),
                op("setp.lt.s32", few.register, path.top, idle),
            ),
            Branch(few, push, fill, "bra.uni"),
            self.region,
        )
        nodes[fill] = Node(
            fill,
            (op("setp.eq.s32", full.register, idle, 0),),
            Branch(full, trip, take, "bra.uni"),
            self.region,
        )
        nodes[take] = Node(
            take,
            tuple(self._pop(path, want, idle, busy, path.task)),
            Jump(trip),
            self.region,
            path.phase("take"),
        )
        vote = self.names.label("vote")
        begin, task = self._trip(path, busy, vote)
        nodes.update(task)
        nodes[trip] = Node(trip, (), Jump(begin), self.region, path.phase("trip"))
        nodes[vote] = Node(
            vote, (op("vote.sync.ballot.b32", want, predicate(busy), FULL_WARP),), Jump(round), self.region
        )
        nobody = Guard(r("pred"))
        nodes[push] = Node(
            push,
            (op("setp.eq.u32", nobody.register, want, 0),),
            Branch(nobody, behind, store, "bra.uni"),
            self.region,
            path.phase("push"),
        )
        nodes[store] = Node(
            store,
            (op("bar.warp.sync", FULL_WARP), *self._push(path, want, count, busy, path.task)),
            Jump(behind),
            self.region,
            path.phase("store"),
        )
        return nodes, self._join(want, flag, behind, admit, nodes, [])

    def _trip(self, path: PathPlan, busy: Guard, vote: str) -> tuple[str, Nodes]:
        """One trip of a variable loop on the task's registers; ``busy`` tells afterwards whether trips are left."""
        header, end = path.path.begin, path.path.end
        again = Node(self.names.label("again"), (op("mov.pred", busy.register, 1),), Jump(vote), self.region)
        done = Node(self.names.label("done"), (op("mov.pred", busy.register, 0),), Jump(vote), self.region)
        nodes: Nodes = {again.name: again, done.name: done}
        ways = {header: again.name, end: done.name}
        for name in program_order(self.view.graph.nodes, path.path.nodes):
            node = _without_pragmas(self.base[name]) if name == header else self.base[name]
            if isinstance(node.end, Branch) and set(targets(node.end)) == {header, end}:
                negate = node.end.guard.negated != (node.end.taken != header)
                set_busy = op("not.pred" if negate else "mov.pred", busy.register, node.end.guard.register)
                setter = Node(self.names.label("flag"), (set_busy,), Jump(vote), self.region)
                nodes[setter.name] = setter
                nodes[name] = replace(node, end=Jump(setter.name))
            else:
                nodes[name] = replace(node, end=retarget(node.end, lambda t: ways.get(t, t)))
        copies, names_of = copy(nodes.values(), self.names, path.rewrite)
        return names_of[header], copies

    def _join(
        self, want: Register, flag: Guard, behind: str, some: str, nodes: Nodes, held: list[Instruction]
    ) -> str:
        nobody = Guard(self.names.register("pred"))
        join = Node(
            self.names.label("join"),
            (
                *held,
                op("vote.sync.ballot.b32", want, predicate(flag), FULL_WARP),
                op("setp.eq.u32", nobody.register, want, 0),
            ),
            Branch(nobody, behind, some, "bra.uni"),
            self.region,
        )
        nodes[join.name] = join
        return join.name

    def _recompute(self, path: PathPlan, flag: Guard, behind: str, nodes: Nodes) -> str:
        """Lanes that wanted the path compute again what they read behind it; the name of the node to go to."""
        if not path.recomputed:
            return behind
        code = tuple(path.rewrite_own(self._instruction(i)) for i in path.recomputed)
        again = Node(self.names.label("recompute"), code, Jump(behind), self.region)
        test = Node(self.names.label("mine"), (), Branch(flag, again.name, behind), self.region)
        nodes.update({again.name: again, test.name: test})
        return test.name

    def _hold(self, path: PathPlan, flag: Guard) -> list[Instruction]:
        """Keeps the flag for the code behind the site that these lanes skip, because their tasks run it."""
        if not path.took:
            return []
        keep, own = hold(flag, self.names)
        return [keep, *(op("or.pred", took, took, own.register) for took in path.took)]

    # --- stack code ---

    def _push(
        self, path: PathPlan, want: Register, count: Register, flag: Guard, source: Lookup
    ) -> list[Instruction]:
        ahead, slot = self.names.register("b32"), self.names.register("b32")
        return [
            op("and.b32", ahead, want, self.plan.lanes_before),
            op("popc.b32", ahead, ahead),
            op("add.s32", slot, path.top, ahead),
            *path.stack.push(source, slot, flag),
            op("add.s32", path.top, path.top, count),
        ]

    def _pop(
        self, path: PathPlan, want: Register, idle: Register, flag: Guard, source: Lookup
    ) -> list[Instruction]:
        ahead, slot = self.names.register("b32"), self.names.register("b32")
        return [
            # The truth table of ~want & lanes_before.
            op("lop3.b32", ahead, want, self.plan.lanes_before, 0, 0x0C),
            op("popc.b32", ahead, ahead),
            op("sub.s32", slot, path.top, ahead),
            *path.stack.pop(source, path.task, slot, negated(flag), below=1),
            op("sub.s32", path.top, path.top, idle),
        ]

    def _drains(self, final: str, nodes: Nodes) -> str:
        """The remainder: what is left on the stacks, outer paths first, and the barrier behind it."""
        after = Node(self.names.label("drained"), (op("bar.warp.sync", FULL_WARP),), Jump(final), self.region)
        nodes[after.name] = after
        following = after.name
        for path in reversed(self.plan.all_paths()):
            following = self._drain(path, following, nodes)
        return following

    def _drain(self, path: PathPlan, following: str, nodes: Nodes) -> str:
        r = self.names.register
        some, mine = Guard(r("pred")), Guard(r("pred"))
        pop = self.names.label(path.phase("drain"))
        if path.children:
            begin, task = self._task(path, following, mine)
            end: Jump | Branch = Jump(begin)
        else:
            begin, task = (
                self._loop_task(path, following) if path.path.is_loop else self._task(path, following)
            )
            end = Branch(mine, begin, following)
        nodes.update(task)
        code = [
            op("bar.warp.sync", FULL_WARP),
            op("setp.lt.s32", mine.register, self.plan.lane, path.top),
            *path.stack.pop(path.task, path.task, self.plan.lane, mine),
        ]
        nodes[pop] = Node(pop, tuple(code), end, self.region, path.phase("drain"))
        test = Node(
            self.names.label("left"),
            (op("setp.ne.s32", some.register, path.top, 0),),
            Branch(some, pop, following, "bra.uni"),
            self.region,
        )
        nodes[test.name] = test
        return test.name

    def _loop_task(self, path: PathPlan, behind: str) -> tuple[str, Nodes]:
        """The remaining trips of a variable loop, each lane at its own pace."""
        nodes = [self.base[name] for name in program_order(self.view.graph.nodes, path.path.nodes)]
        copies, names_of = copy(nodes, self.names, path.rewrite)
        end = path.path.end
        return names_of[path.path.begin], _led(copies, {end: behind})

    # --- the warp's own registers ---

    def _setup(self) -> list[Instruction]:
        plan, r = self.plan, self.names.register
        linear, extent = r("b32"), r("b32")
        code = [
            op("mov.u32", plan.lane, SpecialRegister("%laneid")),
            op("mov.u32", plan.lanes_before, SpecialRegister("%lanemask_lt")),
            *(op("mov.u32", path.top, 0) for path in plan.all_paths()),
        ]
        if plan.stack_bytes:
            row = r("b32")
            code += [
                op("mov.u32", linear, SpecialRegister("%tid.z")),
                op("mov.u32", extent, SpecialRegister("%ntid.y")),
                op("mov.u32", row, SpecialRegister("%tid.y")),
                op("mad.lo.u32", linear, linear, extent, row),
                op("mov.u32", extent, SpecialRegister("%ntid.x")),
                op("mov.u32", row, SpecialRegister("%tid.x")),
                op("mad.lo.u32", linear, linear, extent, row),
                op("and.b32", linear, linear, -SLOTS),
            ]
            stack = r("b32")
            code.append(op("mov.u32", stack, Symbol(plan.stack_name)))
            code += [op("mad.lo.u32", base, linear, size, stack) for size, base in plan.bases.items()]
        return [*code, *plan.rebuilt]

    def _instruction(self, index: int) -> Instruction:
        statement = self.view.body[index]
        assert isinstance(statement, Instruction)
        return statement

    def _stripped(self, name: str) -> Node:
        """A node of the region without markers, its jumps led past nodes that do nothing, guards added to what
        tasks run instead.
        """
        node = self.view.graph.nodes[name]
        code = tuple(
            replace(s, guard=self.skip[id(s)]) if isinstance(s, Instruction) and id(s) in self.skip else s
            for s in node.code
            if not is_annotation(s) and not isinstance(s, Label)
        )
        return replace(node, code=code, end=retarget(node.end, lambda t: forward(self.view, t)))


def _led(nodes: Nodes, where: Mapping[str, str]) -> Nodes:
    """``nodes`` with the ends that go to a key of ``where`` going to its value."""
    return {n: replace(node, end=retarget(node.end, lambda t: where.get(t, t))) for n, node in nodes.items()}


def _without_pragmas(node: Node) -> Node:
    """A loop's header that no longer heads a loop."""
    return replace(node, code=tuple(s for s in node.code if not isinstance(s, Pragma)))


def program_order(nodes: Mapping[str, Node], chosen: frozenset[str] | set[str]) -> list[str]:
    """The ``chosen`` names in the order of ``nodes``."""
    return [name for name in nodes if name in chosen]


def _reset(paths: Iterable[PathPlan]) -> tuple[Instruction, ...]:
    """Clears what `_hold` sets, at the head of a whole."""
    return tuple(op("mov.pred", took, 0) for took in dict.fromkeys(t for p in paths for t in p.took))
