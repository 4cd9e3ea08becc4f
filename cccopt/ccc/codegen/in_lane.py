"""The rewrite in the in-lane form: each lane runs its own iterations in order, and the warp votes on what to run.

    before                              after
                                            lanes = activemask; state = 0; -> dispatch
    H:  A                               H:  A; state = 1; -> dispatch
    I:  B; @p bra I                     I:  B; @p: state = 1; -> dispatch
        C; @q bra H                         C; @q: state = 0; -> dispatch;  state = 2; -> dispatch
        D                               dispatch:   bar.warp.sync lanes
                                                    any(state == 0): serve 0: lanes in this state go to H
                                                    any(state == 1): serve 1: lanes in this state go to I
                                                    the others, when some are served, go to dispatch again
                                        done:       bar.warp.sync lanes; each lane goes to its exit: D

Each way to a point (`cccopt.ccc.regions.points`), to the header, and out of the loop sets the state and leads to the
dispatcher, which is the header of the only new loop. Lanes that have left the loop stay there until none has work: each
vote names all lanes that have entered together. No code is copied, and any lanes may enter. Lanes of a warp that enter
separately run the loop separately, at the same time. Because of ptxas, lanes meet before the votes and not only in them
(docs/decisions/0030-lanes-meet-to-vote.md).

Safety: EXACT, except for what depends on the order in which lanes run (`cccopt.ccc.legality.in_lane`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cccopt.ccc.codegen.builder import Builder
from cccopt.ccc.codegen.copies import parting, run_chunk, unrolled, without_pragmas
from cccopt.ccc.function.annotations import is_annotation
from cccopt.ccc.function.code import op
from cccopt.ccc.function.graph import (
    UNIFORM,
    Branch,
    Graph,
    Jump,
    Node,
    Nodes,
    copy,
    led,
    program_order,
    reachable,
    targets,
)
from cccopt.ccc.function.view import View
from cccopt.ccc.plan.in_lane import InLanePlan, LanePoint
from cccopt.ccc.plan.stack import Value, clear
from cccopt.ptx.ir import Guard, Instruction, Pragma, Statement


def rewrite_in_lane(view: View, plan: InLanePlan) -> Graph:
    """The function's graph with the region of ``plan`` rewritten."""
    return _InLaneRewrite(view, plan).graph()


class _InLaneRewrite:
    """One region's rewrite."""

    def __init__(self, view: View, plan: InLanePlan) -> None:
        self.view = view
        self.plan = plan
        self.region = plan.region
        self.builder = Builder(view.names, plan.region.annotation.region)
        self.dispatch = self.builder.label("dispatch")
        self.begins = tuple(point.begin for point in plan.points)
        graph = view.graph.nodes
        self.base = {name: self._plain(graph[name]) for name in program_order(graph, plan.region.nodes)}
        found = (target for node in self.base.values() for target in targets(node.end))
        # A lane that traps ends the launch: no lane needs to wait for it.
        elsewhere = plan.region.nodes | view.traps
        for point in plan.in_place:
            self.base[point.begin] = replace(self.base[point.begin], phase=point.phase)
        self.exits = tuple(dict.fromkeys(target for target in found if target not in elsewhere))

    def graph(self) -> Graph:
        """The function with the loop and its dispatcher in the place of the loop."""
        old, header = self.view.graph, self.region.header
        added: Nodes = {}
        enter = self._enter(added)
        self._dispatcher(added)
        iteration = self._iteration(added)
        around = {n: self._plain(x) if n in self.region.preheader else x for n, x in old.nodes.items()}
        nodes = {**led(around, {header: enter}), **iteration}
        layout: Nodes = {}
        for name, node in nodes.items():
            layout.update(added if name == header else {})
            layout[name] = node
        return Graph(enter if old.entry == header else old.entry, layout, old.declarations)

    def _plain(self, node: Node) -> Node:
        """A node without markers, and without pragmas if it no longer heads a loop."""
        kept = without_pragmas(node) if node.name in self.begins else node
        return replace(kept, code=tuple(parting(s) for s in kept.code if not is_annotation(s)))

    # --- the iteration ---

    def _iteration(self, added: Nodes) -> Nodes:
        """The nodes of the loop. Each way to a point, or out, passes a node that records where the lane waits."""
        waits = {target: self._wait(number, added) for number, target in enumerate(self.begins + self.exits)}
        chunks = [point for point in self.plan.points if point.chunk > 1]
        nodes = dict(self.base)
        for point in chunks:
            self._apart(point, nodes)
        inside = frozenset[str]().union(*(point.code for point in chunks))
        nodes = {**led(nodes, waits), **{name: nodes[name] for name in inside}}
        for point in chunks:
            self._chunk(point, waits, nodes, added)
        return nodes

    def _apart(self, point: LanePoint, nodes: Nodes) -> None:
        """Gives lanes that have waited inside a loop a copy of the rest of their inner iteration. Otherwise, the loop
        in which others run a chunk would have a second entry.
        """
        starts = [begin for begin in self.begins if begin in point.loop and begin != point.begin]
        between = {name: nodes[name] for name in point.loop if name not in self.begins}
        rest = reachable(between, [way for begin in starts for way in targets(nodes[begin].end)])
        copies, names = copy(
            (nodes[name] for name in self.base if name in rest & point.code), self.view.names, _same
        )
        alone = {name: nodes[name] for name in {*starts, *rest} - point.code}
        nodes.update({**led(alone, names), **copies})

    def _chunk(self, point: LanePoint, waits: Mapping[str, str], nodes: Nodes, added: Nodes) -> None:
        """Leads the loop of a point from one inner iteration to the next until the chunk has ended. Short ones are
        unrolled.
        """
        begin = point.begin
        others = {target: wait for target, wait in waits.items() if target != begin}
        code = led({name: nodes[name] for name in self.base if name in point.code}, others)
        together = unrolled(
            point.chunk, sum(isinstance(s, Instruction) for n in code.values() for s in n.code)
        )
        again = self._again(point, together, waits[begin], added)
        run_chunk(nodes, begin, [*code.values()], together, again, self.view.names)

    def _wait(self, number: int, nodes: Nodes) -> str:
        """The node that a lane passes on its way to a point or an exit."""
        code = [op("mov.u32", self.plan.state, number)]
        return self.builder.node(nodes, self.builder.label("wait"), code, Jump(self.dispatch))

    def _again(self, point: LanePoint, together: int, wait: str, nodes: Nodes) -> str:
        """The node that a lane passes on its way to another ``together`` inner iterations: it waits when the chunk has
        ended.
        """
        assert point.left is not None
        more = self.builder.flag()
        code = [
            op("sub.u32", point.left, point.left, together),
            op("setp.ne.u32", more.register, point.left, 0),
        ]
        return self.builder.node(nodes, self.builder.label("again"), code, Branch(more, point.begin, wait))

    # --- the dispatcher ---

    def _enter(self, nodes: Nodes) -> str:
        """The node through which lanes enter the loop. It gives a value to all registers that lanes set before they
        reach a point or an exit: as far as control flow shows, they may arrive there at once.
        """
        view = self.view
        live_in = {name: view.liveness.live_in[block] for name, block in view.block_of_name.items()}
        later = frozenset[str]().union(*(live_in.get(name, ()) for name in self.begins + self.exits))
        unset = later - live_in[self.region.header] - view.scoped
        code = [
            op("activemask.b32", self.plan.lanes),
            op("mov.u32", self.plan.state, 0),
            *(clear(Value(name, view.types[name])) for name in sorted(unset)),
        ]
        return self.builder.phase(nodes, f"enter_{self.builder.region}", code, Jump(self.dispatch))

    def _dispatcher(self, nodes: Nodes) -> None:
        """Adds the nodes in which lanes vote on the point to serve, and those that serve it."""
        order = self.plan.order
        served = {point.number: self._serve(point, nodes) for point in self.plan.points}
        names = [self.dispatch, *(self.builder.label("choose") for _ in order[1:]), self._done(nodes)]
        counts = {point.number: self.builder.register() for point in self.plan.points if point.least > 1}
        asked: set[int] = set()
        for (point, least), name, following in zip(order, names, names[1:], strict=False):
            code: list[Statement] = []
            if name == self.dispatch:
                code = [Pragma(("nounroll",)), op("bar.warp.sync", self.plan.lanes)]
            if point.number not in asked:
                asked.add(point.number)
                code.append(op("setp.eq.u32", point.here, self.plan.state, point.number))
                if point.least > 1:
                    wanting, count = self.builder.register(), counts[point.number]
                    code.append(op("vote.sync.ballot.b32", wanting, point.here, self.plan.lanes))
                    code.append(op("popc.b32", count, wanting))
            enough = self.builder.flag()
            if point.least > 1:
                code.append(op("setp.ge.u32", enough.register, counts[point.number], least))
            else:
                code.append(op("vote.sync.any.pred", enough.register, point.here, self.plan.lanes))
            self.builder.node(nodes, name, code, Branch(enough, served[point.number], following, UNIFORM))

    def _serve(self, point: LanePoint, nodes: Nodes) -> str:
        """The node from which lanes that wait at a point go on, and the others vote again."""
        code = [] if point.left is None else [op("mov.u32", point.left, point.chunk)]
        end = Branch(Guard(point.here), point.begin, self.dispatch)
        return self.builder.phase(nodes, point.phase, code, end)

    def _done(self, nodes: Nodes) -> str:
        """The node after the last vote, from which each lane goes to its exit."""
        following = self.exits[-1] if self.exits else self.dispatch
        for number, target in reversed([*enumerate(self.exits[:-1], len(self.begins))]):
            chosen = self.builder.flag()
            test = [op("setp.eq.u32", chosen.register, self.plan.state, number)]
            end = Branch(chosen, target, following)
            following = self.builder.node(nodes, self.builder.label("exit"), test, end)
        code = [op("bar.warp.sync", self.plan.lanes)]
        return self.builder.phase(nodes, f"done_{self.builder.region}", code, Jump(following))


def _same(instruction: Instruction) -> Instruction:
    return instruction
