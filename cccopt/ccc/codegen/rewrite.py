"""The core rewrite: tasks of divergent paths wait on warp-private stacks until the whole warp has work (DESIGN 4.2).

    for.begin:                          for.begin: activemask full? else the original code
      guard                               stack addresses, tops = 0, what all lanes may share
    H: A                                  guard, each lane's answer in `alive`
       @!p bra J                        T: vote on `alive`; done: drain
       P                                H: A
    J: C; latch; @q bra H               J: want = ballot(p);  r = 32 - popc(want);  want == 0: C
                                           top >= r  idle lanes pop, the warp runs P (renamed)
                                           top <  r  lanes with p push
                                        C: C; latch -> T
                                        drain: lanes below top pop and run P once

There are two forms. *Split*: the loop runs while all lanes continue, then lanes with iterations left go on in the
original loop. *Idle lanes*: lanes whose loop has ended stay, with their flag cleared, until no lane has iterations
left. A path that is a loop is expanded (`cccopt.ccc.codegen.expansion`), or its task is one lane's remaining inner
iterations: the warp runs one after the other and refills idle lanes from the stack.

Safety: ASSUMES that iterations are independent, which the pragma says; `cccopt.ccc.legality.rules` refuses the rest.
Khorasani 2016, 4.1; what the thesis leaves to lockstep execution is explicit here (votes with masks, `bar.warp.sync`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cccopt.analysis import effects
from cccopt.analysis.invariance import rematerialization_slice
from cccopt.ccc.codegen.claim import release
from cccopt.ccc.codegen.copies import without_pragmas
from cccopt.ccc.codegen.drain import drain
from cccopt.ccc.codegen.region_code import RegionCode
from cccopt.ccc.codegen.versions import Leaving, LoopVersions
from cccopt.ccc.codegen.vote_placement import Entry
from cccopt.ccc.codegen.votes_at_joins import VotesAtJoins
from cccopt.ccc.function.code import FULL_WARP, op
from cccopt.ccc.function.graph import (
    Branch,
    Graph,
    Jump,
    Nodes,
    condition,
    led,
    program_order,
    targets,
)
from cccopt.ccc.function.view import View
from cccopt.ccc.plan.plan import Plan
from cccopt.ccc.plan.stack import Value, clear
from cccopt.ptx import isa
from cccopt.ptx.ir import Guard, Instruction, Register

EARLY = 4
"""The most instructions that all lanes run to give a register the value that it has in lanes with iterations; if it
takes more, the register gets any value.
"""


def rewrite(view: View, plan: Plan) -> Graph:
    """The function's graph with the region of ``plan`` rewritten; the original loop is kept next to the new one."""
    return _Rewrite(view, plan).graph()


class _Rewrite(LoopVersions):
    """One region's rewrite: the form of its loop, and what all lanes run before it."""

    def __init__(self, view: View, plan: Plan) -> None:
        self.plan = plan
        self.code = RegionCode.of(view, plan)
        super().__init__(view, plan, self.code.builder, self.code.nodes)
        self.votes = VotesAtJoins(self.code)

    def version(self) -> tuple[str, Nodes]:
        """The first node's name, and the nodes of the rewritten loop and of what leads to it and follows it."""
        plan = self.plan
        exits = self.exits()
        alive = self.builder.flag()
        leaving = Leaving(tuple(exits), alive, self.names.register("b32"))
        test, enter = self.names.label("test"), self.names.label("enter")
        first, nodes, leave = self.lead_in(self._setup(), leaving, test, test)
        after: Nodes = {}
        final = self._final(alive, leaving.number, exits, after)
        latch = self._single_latch() if plan.split else None
        if latch is not None:
            # The latch's own condition says which lanes go on: no flag has to be kept between iterations.
            going, outside = latch
            end_test = self.names.label("test")
            self.vote("all", test, alive, enter, self._not_entered(final, nodes), nodes)
            drained = self._drain(self._final(going, leaving.number, [outside], after), after)
            self.vote("all", end_test, going, enter, drained, after)
            iteration = self._iteration(enter, None, end_test, {**leave, outside: end_test})
        else:
            drained = self._drain(final, after)
            self.vote("all" if plan.split else "any", test, alive, enter, drained, nodes)
            iteration = self._iteration(enter, None if plan.split else alive, test, leave)
        # Laid out in this order, an iteration falls through to the test after it.
        return first, {**nodes, **self.renamed(iteration), **after}

    def _final(self, going: Guard, number: Register, exits: Sequence[str], nodes: Nodes) -> str:
        """The node after everything: lanes with iterations left go on in the original loop, the others leave."""
        following = self.leave(exits, number, nodes)
        if not self.plan.split:
            return following
        return self.rest_of_loop(going, following, nodes)

    def _not_entered(self, final: str, nodes: Nodes) -> str:
        """The node that leads to ``final`` if not all lanes have an iteration: nothing was pushed."""
        if self.plan.claim is None:
            return final
        code = release(self.plan.claim, self.plan.lane, self.builder)
        return self.builder.node(nodes, self.names.label("released"), code, Jump(final))

    def _single_latch(self) -> tuple[Guard, str] | None:
        """If a single branch decides between the next iteration and an exit: the condition to go on, and the exit."""
        region = self.plan.region
        outer = {
            n: [
                t
                for t in targets(self.base[n].end)
                if t == region.header or t not in region.nodes | self.view.traps
            ]
            for n in region.nodes
        }
        leaving = [name for name, found in outer.items() if found]
        if len(leaving) != 1 or any(leaving[0] in p.path.nodes for p in self.plan.paths):
            return None
        end = self.base[leaving[0]].end
        outside = [t for t in outer[leaving[0]] if t != region.header]
        if not isinstance(end, Branch) or len(outer[leaving[0]]) != 2 or len(outside) != 1:
            return None
        return condition(end, region.header), outside[0]

    def _iteration(self, enter: str, alive: Guard | None, test: str, leave: Mapping[str, str]) -> Nodes:
        """One iteration for the whole warp, from node ``enter``; its ends go to ``test``."""
        region = self.plan.region
        nodes = led(
            {n: self.base[n] for n in program_order(self.base, region.nodes)}, {**leave, region.header: test}
        )
        nodes[region.header] = without_pragmas(nodes[region.header])
        # A lane that has left the loop comes through each iteration with what it will need after the loop.
        kept = frozenset() if alive is None else self.live_at(self.exits())
        return self.votes.place(nodes, Entry(enter, region.header, test, alive), self.plan.paths, kept)

    def _drain(self, final: str, nodes: Nodes) -> str:
        return drain(self.code, self.votes.copies, self.votes.sortings, final, nodes)

    # --- the warp's own registers ---

    def _setup(self) -> list[Instruction]:
        plan = self.plan
        code = [
            *self.lane_numbers(),
            *(op("mov.u32", path.top, 0) for path in plan.all_paths() if plan.has_stack(path)),
            *(i for sorting in self.votes.sortings for i in sorting.setup()),
        ]
        if plan.stack_bytes:
            linear = self.names.register("b32")
            row, first_thread = self.first_thread(linear)
            stack, address_of_stacks = self.stacks()
            code += [*first_thread, address_of_stacks]
            if plan.claim is None:
                code += self._bases(linear, row, stack)
            owned = [p.reduction for p in plan.partials if p.offset is not None]
            if owned:
                code += self.owners_slots(linear, stack, plan.slots, owned)
                if any(path.results.owner for sorting in plan.sortings for path in sorting.paths):
                    # Their drain relies on the last push to order memory, and there may have been none.
                    code.append(op("bar.warp.sync", FULL_WARP))
        code += [p.reset for p in plan.partials if p.offset is None]
        return [*code, *self.first_values(), *plan.rebuilt]

    def _bases(self, linear: Register, row: Register, stack: Register) -> list[Instruction]:
        """The warp's own base addresses in shared memory, from those of the block at ``stack``; ``row`` is free."""
        plan = self.plan
        code = [op("mad.lo.u32", base, linear, size, stack) for size, base in plan.bases.items()]
        sorted_bases = [base for sorting in plan.sortings for base in sorting.bases.values()]
        if sorted_bases:
            code.append(op("shr.u32", row, linear, 5))
            code += [op("mad.lo.u32", base, row, size, stack) for base, size in sorted_bases]
        return code

    def first_value(self, name: str) -> list[Instruction]:
        """With sorted lanes or expanded loops, the value that lanes with iterations have in the loop, if a few
        instructions compute it: a second, different value would keep ptxas from leaving a parameter in constant memory,
        and these loops cannot spare the register. Otherwise any value: elsewhere, with so few registers in use, ptxas
        makes loads wait for one another (sssp with stacks was a fifth slower).
        """
        view, region = self.view, self.plan.region
        if not self.plan.sortings and not any(path.counted for path in self.plan.all_paths()):
            return [clear(Value(name, view.types[name]))]
        header, select = (
            view.cfg.blocks[view.block_of_name[n]].start for n in (region.header, region.select)
        )

        def available(definition: int, register: str) -> bool:
            return view.reaching.reaching(select, register) == {definition}

        found = rematerialization_slice(view.function, view.reaching, header, name, available)
        if not found or len(found) > EARLY:
            return [clear(Value(name, view.types[name]))]
        made: dict[str, Register] = {}
        code: list[Instruction] = []
        for index in found:
            statement = view.body[index]
            assert isinstance(statement, Instruction)
            (target,) = effects.writes(statement)
            new = Register(name) if target == name else self.names.register(view.types[target])
            code.append(isa.rename(statement, made, {target: new}))
            made[target] = new
        return code
