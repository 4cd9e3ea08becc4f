"""The carried form's dispatcher: where all lanes of a warp meet, and tokens that wait at a point run as a full warp.

    dispatch:  want_p = ballot(flag_p) for each point p
               top_p + popc(want_p) >= least: serve p, later points first
               else lanes with a token push it, and the next iteration begins
    serve p:   lanes with a token at another point push it; lanes without one pop (take_p)
               lanes with a token at p run its segment (of a loop, up to `chunk` inner iterations), and
               set flag_q where it ends at point q
               back to dispatch

``least`` is 32 in the loop; at the end it is 1, so the same code runs what is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cccopt.ccc.codegen.builder import Builder
from cccopt.ccc.codegen.copies import parting, run_chunk, unrolled
from cccopt.ccc.codegen.partial_results import deposit
from cccopt.ccc.function.annotations import is_annotation
from cccopt.ccc.function.code import FULL_WARP, negated, op, predicate
from cccopt.ccc.function.graph import (
    UNIFORM,
    Branch,
    Jump,
    Node,
    Nodes,
    copy,
    led,
    program_order,
    retarget,
    targets,
)
from cccopt.ccc.function.view import View
from cccopt.ccc.plan.carried import CarriedPlan, PointPlan, partials_of
from cccopt.ccc.plan.plan import own
from cccopt.ccc.plan.stack import SLOTS, Value, clear, copy_value
from cccopt.ptx import isa
from cccopt.ptx.ir import (
    BranchTargets,
    Close,
    Instruction,
    Label,
    Location,
    Open,
    Pragma,
    Register,
    RegisterDeclaration,
    Statement,
    Variable,
)
from cccopt.ptx.isa import Control

MANY = 4
"""With at least this many points in a loop, they share the code that pushes tokens: a copy for each of the
other points would be too much code.
"""

_BRANCHES = (Control.BRANCH, Control.INDEXED)


class Dispatcher:
    """Makes the nodes of one region in the carried form. ``entry`` is the label of the dispatcher."""

    def __init__(self, view: View, plan: CarriedPlan, builder: Builder) -> None:
        self.view = view
        self.plan = plan
        self.builder = builder
        self.entry = builder.label("dispatch")
        self._wanted = {point.number: builder.register() for point in plan.points}
        self._count = {point.number: builder.register() for point in plan.points}
        self._cut = {plan.region.header, *(point.path.begin for point in plan.points)}

    # --- the iteration ---

    def arrivals(self, outside: Mapping[str, str]) -> tuple[Nodes, Mapping[str, str]]:
        """The nodes in which a lane leaves its token at a point and goes on with its advance, and for each point's
        first node the name of the first of these. ``outside`` says where control goes when it leaves the iteration.
        """
        nodes: Nodes = {}
        first: dict[str, str] = {}
        for point in self.plan.points:
            begin = point.path.begin
            updated = {p.reduction.register: p for p in partials_of(self.plan, owned=True)}
            code: list[Statement] = []
            for value in point.registers:
                if value.name in updated:
                    code.append(updated[value.name].reset)
                else:
                    code += copy_value(value, own(value.name), self.plan.token(value.name))
            code.append(op("mov.pred", point.flag.register, 1))
            advance = {
                name: self._with_end(node, point.advance.jumps.get(name))
                for name, node in self.nodes(point.advance.nodes, point.advance.kept).items()
            }
            copies, names = copy(advance.values(), self.builder.names, lambda instruction: instruction)
            nodes.update(led(copies, outside))
            first[begin] = self.builder.node(nodes, self.builder.label("arrive"), code, Jump(names[begin]))
        return nodes, first

    def begin(self) -> list[Instruction]:
        """What all lanes run before each iteration. Without it, ptxas (13.0) may assume any value for registers of
        tokens in lanes that have none.
        """
        values = dict.fromkeys(value for p in self.plan.points for value in p.registers)
        cleared = [clear(Value(self.plan.token(v.name).name, v.type)) for v in values]
        return [*cleared, *(op("mov.pred", point.flag.register, 0) for point in self.plan.points)]

    def nodes(self, names: frozenset[str], kept: frozenset[int] | None = None) -> Nodes:
        """The program's nodes ``names`` without markers, with only the instructions in ``kept`` (None: all)."""
        graph = self.view.graph.nodes
        return {
            name: Node(name, tuple(self._code(name, kept)), graph[name].end)
            for name in program_order(graph, names)
        }

    def _code(self, name: str, kept: frozenset[int] | None) -> Sequence[Statement]:
        block = self.view.cfg.blocks[self.view.block_of_name[name]]
        ends = len(targets(self.view.graph.nodes[name].end)) > 0
        depth, code = 0, list[Statement]()
        # A location holds for all code after it, so each block begins with the one in force.
        code += [s for s in self.view.graph.nodes[name].code[:1] if isinstance(s, Location)]
        for index in block.statements():
            statement = self.view.body[index]
            depth += isinstance(statement, Open) - isinstance(statement, Close)
            declares = isinstance(statement, RegisterDeclaration | Variable) and depth == 0
            if declares or is_annotation(statement) or isinstance(statement, Label | BranchTargets):
                continue
            # It belongs to a loop that no longer exists.
            if isinstance(statement, Pragma) and name in self._cut:
                continue
            if isinstance(statement, Instruction):
                last = ends and index == block.stop - 1 and isa.facts(statement).control in _BRANCHES
                if last or (kept is not None and index not in kept):
                    continue
            code.append(parting(statement))
        return code

    @staticmethod
    def _with_end(node: Node, jump: str | None) -> Node:
        return node if jump is None else Node(node.name, node.code, Jump(jump))

    # --- the dispatcher ---

    def dispatch(self, done: str) -> Nodes:
        """The dispatcher; once nothing is left to serve, control goes to ``done``."""
        nodes: Nodes = {}
        votes: list[Statement] = [Pragma(("nounroll",))]
        for point in self.plan.points:
            wanted, count = self._wanted[point.number], self._count[point.number]
            votes.append(op("vote.sync.ballot.b32", wanted, predicate(point.flag), FULL_WARP))
            votes.append(op("popc.b32", count, wanted))
        # Each point pushes for all others: if there are many, they share that code.
        ways = self._pushing_together if len(self.plan.points) >= MANY else self._pushing_alone
        following, serve = ways(done, nodes)
        for point in self.plan.points:
            enough, have = self.builder.flag(), self.builder.register()
            code = [
                op("add.s32", have, point.top, self._count[point.number]),
                op("setp.ge.s32", enough.register, have, self.plan.least),
            ]
            end = Branch(enough, serve[point.number], following, UNIFORM)
            following = self.builder.node(nodes, self.builder.label("choose"), code, end)
        self.builder.node(nodes, self.entry, votes, Jump(following))
        return nodes

    def _pushing_alone(self, done: str, nodes: Nodes) -> tuple[str, Mapping[int, str]]:
        """The node that pushes all tokens and then leads to ``done``, and for each point, the node that pushes the
        tokens at other points and then serves it.
        """
        points = self.plan.points
        nothing = self._push_all(points, done, nodes)
        serve = {
            p.number: self._push_all([q for q in points if q is not p], self._serve(p, nodes), nodes)
            for p in points
        }
        return nothing, serve

    def _pushing_together(self, done: str, nodes: Nodes) -> tuple[str, Mapping[int, str]]:
        """The same with one copy of each push: a register says which point is served."""
        build, served = self.builder, self.builder.register()
        following = done
        for point in self.plan.points:
            chosen = build.flag()
            test = [op("setp.eq.s32", chosen.register, served, point.number)]
            end = Branch(chosen, self._serve(point, nodes), following, UNIFORM)
            following = build.node(nodes, build.label("serve"), test, end)
        push = self._push_all(self.plan.points, following, nodes, served)

        def with_served(number: int) -> str:
            code = [op("mov.u32", served, number)]
            return build.node(nodes, build.label("served"), code, Jump(push))

        return with_served(0), {p.number: with_served(p.number) for p in self.plan.points}

    def _serve(self, point: PointPlan, nodes: Nodes) -> str:
        """Adds the nodes that run a point's segment in all lanes that hold or find a token; returns the first's
        name.
        """
        builder, plan = self.builder, self.plan
        idle, rank, slot = (builder.register() for _ in range(3))
        takes = builder.flag()
        segment = self._segment(point, nodes)
        fill = [
            op("bar.warp.sync", FULL_WARP),
            op("not.b32", idle, self._wanted[point.number]),
            op("and.b32", rank, idle, plan.lanes_before),
            op("popc.b32", rank, rank),
            op("setp.lt.and.s32", takes.register, rank, point.top, predicate(negated(point.flag))),
            op("sub.s32", slot, point.top, rank),
            *self._mirrored(point, slot, 1),
            *point.stack.pop(plan.token, plan.token, slot, takes, below=1),
            op("sub.s32", point.top, point.top, SLOTS),
            op("add.s32", point.top, point.top, self._count[point.number]),
            op("max.s32", point.top, point.top, 0),
            op("or.pred", point.flag.register, point.flag.register, takes.register),
        ]
        return builder.phase(nodes, point.phase("take"), fill, Branch(point.flag, segment, self.entry))

    def _push_all(
        self, points: Sequence[PointPlan], following: str, nodes: Nodes, served: Register | None = None
    ) -> str:
        """Adds the nodes in which lanes push the tokens that they hold at ``points``, except at the one that is
        ``served``; returns the name of the first.
        """
        for point in points:
            some = self.builder.flag()
            push = self.builder.phase(nodes, point.phase("push"), self._push(point), Jump(following))
            test = [op("setp.ne.s32", some.register, self._count[point.number], 0)]
            if served is not None:
                others = predicate(some)
                test.append(op("setp.ne.and.s32", some.register, served, point.number, others))
            following = self.builder.node(
                nodes, self.builder.label("held"), test, Branch(some, push, following, UNIFORM)
            )
        return following

    def _push(self, point: PointPlan) -> list[Instruction]:
        rank, slot = self.builder.register(), self.builder.register()
        return [
            op("bar.warp.sync", FULL_WARP),
            op("and.b32", rank, self._wanted[point.number], self.plan.lanes_before),
            op("popc.b32", rank, rank),
            op("add.s32", slot, point.top, rank),
            *self._mirrored(point, slot, 0),
            *point.stack.push(self.plan.token, slot, point.flag),
            op("add.s32", point.top, point.top, self._count[point.number]),
            op("mov.pred", point.flag.register, 0),
        ]

    def _mirrored(self, point: PointPlan, slot: Register, first: int) -> list[Instruction]:
        """Counts slots, whose numbers begin with ``first``, from the other end of the array."""
        last = self.plan.slots_per_warp - 1 + 2 * first
        return [op("sub.s32", slot, last, slot)] if point.from_end else []

    def _segment(self, point: PointPlan, nodes: Nodes) -> str:
        """Adds the code that a token runs from a point to the next one, or to the end of its iteration; returns the
        name of its first node.
        """
        builder, plan = self.builder, self.plan
        finish = self.entry
        if plan.owner is not None:
            owned = partials_of(plan, owned=True)
            own_nodes, finish = deposit(owned, plan.owner, self.entry, builder, reset=False)
            nodes.update(own_nodes)
        inside = self.nodes(self.view.with_traps(point.path.nodes), plan.code)
        stops = {
            other.path.begin: builder.node(
                nodes,
                builder.label("stop"),
                [op("mov.pred", other.flag.register, 1)],
                Jump(self.entry),
            )
            for other in plan.points
        }

        # All inner iterations of a chunk but the last begin the next one at once.
        again = builder.label("again") if point.chunk > 1 else ""

        def leads(target: str) -> str:
            if again and target == point.path.begin:
                return target
            if target in stops:
                return stops[target]
            return target if target in inside else finish

        body: Nodes = {}
        for name, node in inside.items():
            end = retarget(node.end, leads)
            ways = targets(end)
            body[name] = Node(name, node.code, Jump(ways[0]) if len(ways) == 1 else end)
        copies, names = copy(body.values(), builder.names, plan.rewrite)
        nodes.update(copies)
        begin = names[point.path.begin]
        start = [op("mov.pred", point.flag.register, 0)]
        if again:
            left, more = builder.register(), builder.flag()
            start.append(op("mov.u32", left, point.chunk))
            code = [nodes[names[name]] for name in inside if name in point.loop]
            together = unrolled(point.chunk, sum(isinstance(s, Instruction) for n in code for s in n.code))
            count = [op("sub.u32", left, left, together), op("setp.ne.u32", more.register, left, 0)]
            builder.node(nodes, again, count, Branch(more, begin, stops[point.path.begin]))
            run_chunk(nodes, begin, code, together, again, builder.names)
        return builder.node(nodes, builder.label("resume"), start, Jump(begin))

    def drain(self, drained: str, nodes: Nodes) -> str:
        """Adds the nodes that lead to the dispatcher as long as tokens wait, and then to ``drained``; returns the
        first's name.
        """
        following = drained
        for point in self.plan.points:
            some = self.builder.flag()
            test = [op("setp.ne.s32", some.register, point.top, 0)]
            end = Branch(some, self.entry, following, UNIFORM)
            following = self.builder.node(nodes, self.builder.label("left"), test, end)
        least = [op("mov.u32", self.plan.least, 1)]
        return self.builder.node(nodes, self.builder.label("drain"), least, Jump(following))

    def setup(self) -> list[Instruction]:
        """What the warp runs once before the loop, except for computing lane numbers and the stacks' addresses."""
        return [
            op("mov.u32", self.plan.least, SLOTS),
            *(op("mov.u32", point.top, 0) for point in self.plan.points),
            *(p.reset for p in partials_of(self.plan, owned=False)),
            *self.begin(),
        ]
