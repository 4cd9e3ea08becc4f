"""The rewrite in the carried form: a task is the rest of its iteration (`cccopt.ccc.legality.carrying`).

    before                              after
    H: A                                test: vote on `alive`: any, or in the split form all; else drain
       @!p bra J                        H: A
       P                                   @p: the token waits, its lane goes on with the advance -> dispatch
    J: C; latch; @q bra H               J: C; latch -> dispatch
                                        dispatch: full warps run P C (renamed) -> test
                                        drain: least = 1, dispatch while tokens are left

All lanes reach `test` and `dispatch` in each iteration, even those whose loop has ended. In the split form there
are none of these: lanes with iterations left go on in the original loop.

Safety: ASSUMES that iterations are independent, which the pragma says; order inside an iteration is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cccopt.ccc.codegen.builder import Builder
from cccopt.ccc.codegen.claim import release
from cccopt.ccc.codegen.dispatch import Dispatcher
from cccopt.ccc.codegen.partial_results import collect
from cccopt.ccc.codegen.versions import Leaving, LoopVersions
from cccopt.ccc.function.code import FULL_WARP, op
from cccopt.ccc.function.graph import Branch, Graph, Jump, Nodes, led, program_order, reachable
from cccopt.ccc.function.view import View
from cccopt.ccc.plan.carried import CarriedPlan
from cccopt.ccc.plan.local_words import realigned
from cccopt.ptx.ir import Guard, Instruction


def rewrite_carried(view: View, plan: CarriedPlan) -> Graph:
    """The function's graph with the region of ``plan`` rewritten; the original loop is kept next to the new one."""
    return _CarriedRewrite(view, plan).graph()


class _CarriedRewrite(LoopVersions):
    """One region's rewrite."""

    def __init__(self, view: View, plan: CarriedPlan) -> None:
        self.plan = plan
        builder = Builder(view.names, plan.region.annotation.region)
        self.dispatcher = Dispatcher(view, plan, builder)
        base = self.dispatcher.nodes(plan.region.nodes | plan.region.preheader)
        super().__init__(view, plan, builder, base)

    def graph(self) -> Graph:
        """The function, with words that wait aligned in its local memory."""
        made = super().graph()
        return replace(made, declarations=realigned(made.declarations, self.plan.alignments))

    def version(self) -> tuple[str, Nodes]:
        """The first node's name, and the nodes of the rewritten loop and of what leads to it and follows it."""
        exits = self.exits()
        leaving = Leaving(tuple(exits), self.builder.flag(), self.names.register("b32"))
        test, enter = self.names.label("test"), self.names.label("enter")
        first, nodes, leave = self.lead_in(self._setup(), leaving, test, self.dispatcher.entry)
        after: Nodes = {}
        collected = collect(self.plan.partials, self.plan.slots, self.names, header=self.plan.split)
        released = release(self.plan.claim, self.plan.lane, self.builder)
        code = [op("bar.warp.sync", FULL_WARP), *released, *collected]
        final = self.leave(exits, leaving.number, after)
        if self.plan.split:
            final = self.rest_of_loop(leaving.alive, final, after)
        drained = self.builder.node(after, self.names.label("drained"), code, Jump(final))
        drain = self.dispatcher.drain(drained, after)
        self.vote("all" if self.plan.split else "any", test, leaving.alive, enter, drain, nodes)
        outside = {**leave, self.plan.region.header: self.dispatcher.entry}
        arrivals, points = self.dispatcher.arrivals(outside)
        iteration = self._iteration(enter, leaving.alive, {**outside, **points})
        dispatch = self.dispatcher.dispatch(test)
        return first, {**nodes, **self.renamed(iteration), **arrivals, **dispatch, **after}

    def _iteration(self, enter: str, alive: Guard, outside: Mapping[str, str]) -> Nodes:
        """One iteration of all lanes, from the node ``enter``, up to where tokens wait; ``outside`` says where control
        goes when it leaves the iteration.
        """
        region = self.plan.region
        nodes = led({name: node for name, node in self.base.items() if name in region.nodes}, outside)
        nodes = {name: nodes[name] for name in program_order(nodes, reachable(nodes, [region.header]))}
        go = Jump(region.header) if self.plan.split else Branch(alive, region.header, self.dispatcher.entry)
        self.builder.node(nodes, enter, self.dispatcher.begin(), go)
        return nodes

    def _setup(self) -> list[Instruction]:
        plan = self.plan
        code = [*self.lane_numbers(), *self.dispatcher.setup()]
        if plan.stack_bytes:
            linear = self.names.register("b32")
            warp, first_thread = self.first_thread(linear)
            stack, address = self.stacks()
            code += [*first_thread, address]
            if plan.claim is None:
                code.append(op("shr.u32", warp, linear, 5))
                bytes_by_base = {base: size * plan.slots_per_warp for size, base in plan.bases.items()}
                code += [op("mad.lo.u32", base, warp, of, stack) for base, of in bytes_by_base.items()]
            owned = [p.reduction for p in plan.partials if p.offset is not None]
            if owned:
                code += self.owners_slots(linear, stack, plan.slots, owned)
        return [*code, *self.first_values(), *plan.rebuilt]
