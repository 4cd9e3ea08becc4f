"""Copies of a path that run tasks, on registers of their own: what a lane keeps for the code after the path survives.

A *task* is one run of an `if` path, one inner iteration of a loop that is expanded (`cccopt.ccc.codegen.expansion`), or
one lane's remaining inner iterations of any other loop of tasks. Code that sinks into a task
(`cccopt.ccc.legality.sunk_code`) runs at its end, and so does the code that gives its parts of reductions to their
owner.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from cccopt.ccc.codegen.copies import keep_rolled, unrolled, without_pragmas
from cccopt.ccc.codegen.in_place import in_place
from cccopt.ccc.codegen.partial_results import deposit
from cccopt.ccc.codegen.region_code import RegionCode
from cccopt.ccc.codegen.vote_placement import Entry, VotePlacement
from cccopt.ccc.function.code import FULL_WARP, flag_op, op, predicate
from cccopt.ccc.function.graph import (
    UNIFORM,
    Branch,
    Jump,
    Node,
    Nodes,
    condition,
    copy,
    led,
    program_order,
    targets,
)
from cccopt.ccc.plan.plan import PathPlan
from cccopt.ccc.regions.values import live_outs
from cccopt.ptx.ir import Guard, Statement


class TaskCopies:
    """Makes the copies of a region's paths; ``votes`` places the votes on paths inside them.

    Each method returns new nodes and the name of the first, or adds them to the ``nodes`` that it is given.
    """

    def __init__(self, code: RegionCode, votes: VotePlacement) -> None:
        self.code = code
        self.builder = code.builder
        self.names = code.builder.names
        self.votes = votes

    # --- one run of an `if` path ---

    def task(self, path: PathPlan, after: str, alive: Guard | None = None) -> tuple[str, Nodes]:
        """A renamed copy of the path, with its sunk code, that runs one task in each lane (with ``alive``, in those
        lanes only) and ends at ``after``.
        """
        begin, end = path.path.begin, path.path.end
        nodes: Nodes = {name: self.code.nodes[name] for name in self._order(path)}
        entry = Entry(self.builder.label("enter"), begin, end, alive)
        given = [live.name for live in path.context.live_ins]
        read = live_outs(self.code.view, path.path) if path.after.sunk else ()
        nodes = self.votes.place(nodes, entry, path.children, given, read)
        copies, names_of = copy(nodes.values(), self.names, path.registers.rename)
        ending: Nodes = {}
        leave = self._ending(path, after, ending)
        if leave != after and alive is not None:
            leave = self.builder.node(ending, self.builder.label("mine"), (), Branch(alive, leave, after))
        # The ending's edges stay: it may go on to the very node that the path went to.
        return names_of[entry.name], {**led(copies, {end: leave}), **ending}

    def in_place(self, path: PathPlan, after: str) -> tuple[str, Nodes]:
        """The path at its own position, for a warp whose lanes all reached it."""
        # Sunk code that the rest of the iteration no longer holds has to run here.
        alone = not self.code.plan.dropped.isdisjoint(path.after.sunk)
        sunk = [self.code.instruction(index) for index in path.after.sunk] if alone else []
        return in_place(path, sunk, after, self.code.nodes, self.builder)

    # --- a lane's remaining inner iterations ---

    def iterations(
        self, path: PathPlan, busy: Guard, vote: str, alive: Guard | None = None
    ) -> tuple[str, Nodes]:
        """Up to ``chunk`` inner iterations on the task's registers, with ``alive`` only in those lanes; at ``vote``,
        ``busy`` says whether iterations are left.
        """
        build = self.builder
        nodes: Nodes = {}
        # Lanes whose tasks have ended in any of the iterations run their sunk code together, before they may get other
        # tasks.
        landing = vote
        given = self.deposit(path, vote, nodes)
        if path.after.sunk or given != vote:
            ended = self._sunk(path, given, nodes) if path.after.sunk else given
            landing = build.node(nodes, build.label("landing"), (), Branch(busy, vote, ended))
        again = build.label("again")
        if path.chunk > 1:
            begin = self._chunk(path, busy, again, landing, nodes)
        else:
            build.node(nodes, again, [op("mov.pred", busy.register, 1)], Jump(landing))
            begin = self._body(path, busy, again, landing, 1, nodes)
        if path.children:
            entry = Entry(build.label("enter"), begin, vote, alive)
            nodes = self.votes.place(
                nodes, entry, path.children, [live.name for live in path.context.live_ins]
            )
            begin = entry.name
        copies, names_of = copy(nodes.values(), self.names, path.registers.rename)
        return names_of[begin], copies

    def remaining(self, path: PathPlan, after: str) -> tuple[str, Nodes]:
        """All remaining inner iterations, each lane at its own pace."""
        nodes = [self.code.nodes[name] for name in self._order(path)]
        copies, names_of = copy(nodes, self.names, path.registers.rename)
        ending: Nodes = {}
        leave = self._ending(path, after, ending)
        return names_of[path.path.begin], {**led(copies, {path.path.end: leave}), **ending}

    def remaining_together(self, path: PathPlan, after: str, busy: Guard) -> tuple[str, Nodes]:
        """All remaining inner iterations of the lanes with ``busy``; all lanes of the warp go through them together."""
        some = self.builder.flag()
        vote = self.builder.label("vote")
        begin, nodes = self.iterations(path, busy, vote, alive=busy)
        test = [op("vote.sync.any.pred", some.register, predicate(busy), FULL_WARP)]
        self.builder.node(nodes, vote, test, Branch(some, begin, after, UNIFORM))
        return begin, nodes

    def _chunk(self, path: PathPlan, busy: Guard, again: str, landing: str, nodes: Nodes) -> str:
        """Adds a loop of up to ``chunk`` inner iterations; returns the name of its first node."""
        build = self.builder
        together = unrolled(path.chunk, len(self.code.view.instructions(path.path.nodes)))
        left, more = build.register(), build.flag()
        begin = self._body(path, busy, again, landing, together, nodes)
        keep_rolled(nodes, begin)
        count = [op("sub.s32", left, left, together), op("setp.ne.s32", more.register, left, 0)]
        build.node(nodes, again, count, Branch(more, begin, landing))
        start = [op("mov.u32", left, path.chunk), op("mov.pred", busy.register, 1)]
        return build.node(nodes, build.label("chunk"), start, Jump(begin))

    def _body(
        self, path: PathPlan, busy: Guard, again: str, landing: str, together: int, nodes: Nodes
    ) -> str:
        """Adds ``together`` inner iterations in a row on the program's own registers: the last goes on to ``again``, a
        lane whose iterations have ended to ``landing``, with its flag cleared. Returns the name of the first node.
        """
        header, end = path.path.begin, path.path.end
        build = self.builder
        done = build.node(nodes, build.label("done"), [op("mov.pred", busy.register, 0)], Jump(landing))
        for index in reversed(range(together)):
            iteration: Nodes = {}
            for name in self._order(path):
                node = self.code.nodes[name]
                if name == header:
                    node = without_pragmas(node)
                decides = isinstance(node.end, Branch) and set(targets(node.end)) == {header, end}
                if path.chunk == 1 and decides:
                    iteration.update(self._flagged(node, header, busy, landing, nodes))
                else:
                    iteration.update(led({name: node}, {header: again, end: done}))
            again = header
            if index:
                iteration, names_of = copy(iteration.values(), self.names, lambda instruction: instruction)
                again = names_of[header]
            nodes.update(iteration)
        return again

    def _flagged(self, node: Node, header: str, busy: Guard, landing: str, nodes: Nodes) -> Nodes:
        """The node that ends an inner iteration: its condition goes into ``busy`` instead of a branch."""
        assert isinstance(node.end, Branch)
        code = [flag_op(busy.register, condition(node.end, header))]
        setter = self.builder.node(nodes, self.builder.label("flag"), code, Jump(landing))
        return {node.name: replace(node, end=Jump(setter))}

    # --- what ends a task ---

    def deposit(self, path: PathPlan, after: str, nodes: Nodes) -> str:
        """Adds the code that gives a task's parts of reductions to its owner; returns the name of its first node, which
        is ``after`` if there is nothing to give.
        """
        if path.results.owner is None:
            return after
        own, first = deposit(
            path.results.partials, path.results.owner, after, self.builder, reset=path.path.is_loop
        )
        nodes.update(own)
        return first

    def _ending(self, path: PathPlan, after: str, nodes: Nodes) -> str:
        """Adds what a task does at its end, on its registers: sunk code, then deposits; returns the name of its first
        node, which is ``after`` if there is nothing to do.
        """
        after = self.deposit(path, after, nodes)
        if not path.after.sunk:
            return after
        own: Nodes = {}
        first = self._sunk(path, after, own)
        copies, names_of = copy(own.values(), self.names, path.registers.rename)
        nodes.update(copies)
        return names_of[first]

    def _sunk(self, path: PathPlan, after: str, nodes: Nodes) -> str:
        """Adds the sunk code on the program's own registers; returns the name of its first node."""
        branches = {h.branch: h for h in path.after.hammocks}
        inside = {i for h in path.after.hammocks for i in h.statements}
        first = name = self.builder.label("tail")
        code: list[Statement] = []
        for index in path.after.sunk:
            if index in branches:
                hammock, following = branches[index], self.builder.label("tail")
                nodes[name] = Node(name, tuple(code), Branch(hammock.past, following, hammock.begin))
                piece = {n: self.code.nodes[n] for n in hammock.nodes}
                nodes.update(led(piece, {hammock.join: following}))
                name, code = following, []
            elif index not in inside:
                code.append(path.after.updates.get(index) or self.code.instruction(index))
        nodes[name] = Node(name, tuple(code), Jump(after))
        return first

    def _order(self, path: PathPlan) -> Iterable[str]:
        return program_order(self.code.nodes, path.path.nodes)
