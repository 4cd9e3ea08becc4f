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

Two forms. *Split*: the loop runs while all lanes continue, then lanes with iterations left go on in the original loop.
*Idle lanes*: lanes whose loop has ended stay, flag down, until none is left. A path that is a loop is expanded
(`cccopt.ccc.codegen.expansion`), or its task is one lane's remaining inner iterations: the warp runs one after the
other and refills idle lanes from the stack.

Safety: ASSUMES that iterations are independent, which the pragma says; `cccopt.ccc.legality.rules` refuses the rest.
Khorasani 2016, 4.1; what the thesis leaves to lock-step is explicit here (votes with masks, `bar.warp.sync`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from cccopt.analysis import effects
from cccopt.analysis.invariance import rematerialization_slice
from cccopt.ccc.codegen.copies import without_pragmas
from cccopt.ccc.codegen.drain import drain
from cccopt.ccc.codegen.region_code import RegionCode
from cccopt.ccc.codegen.vote_placement import Entry
from cccopt.ccc.codegen.votes_at_joins import VotesAtJoins
from cccopt.ccc.function.annotations import is_annotation
from cccopt.ccc.function.code import FULL_WARP, op, predicate
from cccopt.ccc.function.graph import (
    UNIFORM,
    Branch,
    Graph,
    Jump,
    Node,
    Nodes,
    condition,
    copy,
    led,
    predecessors,
    program_order,
    targets,
)
from cccopt.ccc.function.view import View
from cccopt.ccc.plan.plan import Plan
from cccopt.ccc.plan.stack import SLOTS, Value, clear
from cccopt.ptx import isa
from cccopt.ptx.ir import Guard, Instruction, Pragma, Register, SpecialRegister, Statement, Symbol, Variable

EARLY = 4
"""Instructions with which all lanes give a register the value that lanes with iterations have in the loop."""


def rewrite(view: View, plan: Plan) -> Graph:
    """The function's graph with the region of ``plan`` rewritten, the original loop kept beside the new one."""
    return _Rewrite(view, plan).graph()


class _Rewrite:
    """One region's rewrite: what leads into the rewritten loop, its form, and what leads out of it."""

    def __init__(self, view: View, plan: Plan) -> None:
        self.view = view
        self.plan = plan
        self.names = view.names
        self.region = plan.region.annotation.region
        self.code = RegionCode.of(view, plan)
        self.builder = self.code.builder
        self.votes = VotesAtJoins(self.code)
        self.base = self.code.nodes

    def graph(self) -> Graph:
        """The function with both versions of the region, and the choice between them at its ``for.begin``."""
        old, region = self.view.graph, self.plan.region
        original_nodes = region.nodes | region.preheader
        nodes: Nodes = {n: _unmarked(node) if n in original_nodes else node for n, node in old.nodes.items()}
        choice: Nodes = {}
        first, added = self._version()
        original = self.builder.phase(choice, f"original_{self.region}", (), Jump(region.select))
        mask, partial = self.names.register("b32"), self.builder.flag()
        # Only 32 lanes that are there can see a full mask; a partial one merely runs the original.
        test = [op("activemask.b32", mask), op("setp.ne.s32", partial.register, mask, FULL_WARP)]
        choose = self.builder.node(choice, self.names.label("choose"), test, Branch(partial, original, first))
        entering = set(predecessors(old.nodes).get(region.select, [])) - original_nodes
        nodes.update(led({name: nodes[name] for name in entering}, {region.select: choose}))
        # A loop around the region may lead from its end straight back to its beginning.
        added = led(added, {region.select: choose})
        layout: Nodes = {}
        for name, node in nodes.items():
            if name == region.select:
                layout.update({choose: choice[choose], **added, original: choice[original]})
            layout[name] = node
        entry = choose if old.entry == region.select else old.entry
        return Graph(entry, layout, (*old.declarations, *self._shared()))

    def _shared(self) -> tuple[Statement, ...]:
        size = self.plan.stack_bytes
        return (Variable("shared", ".b8", self.plan.stack_name, (size,), alignment=8),) if size else ()

    def _version(self) -> tuple[str, Nodes]:
        """The rewritten loop with all that leads to it and follows it; the name of its first node."""
        plan, region = self.plan, self.plan.region
        exits = self._exits()
        alive, number = self.builder.flag(), self.names.register("b32")
        test, enter = self.names.label("test"), self.names.label("enter")
        exit_nodes: Nodes = {}
        # One node for lanes from before the loop and from inside would be a second entry to it.
        from_preheader, leave = (
            {
                target: self._leave(exit_nodes, index, exits, alive, number, test)
                for index, target in enumerate(exits)
            }
            for _ in range(2)
        )
        # Lanes that go on in the original loop pass the exits' numbers too.
        code = [op("mov.pred", alive.register, 1), *([op("mov.u32", number, 0)] if len(exits) > 1 else [])]
        arrive = self.builder.node(exit_nodes, self.names.label("arrive"), code, Jump(test))
        inside = {name: name for name in region.preheader}
        preheader = led(
            {name: self.base[name] for name in program_order(self.base, region.preheader)},
            {**from_preheader, region.header: arrive, **inside},
        )
        copies, names_of = copy(preheader.values(), self.names, lambda instruction: instruction)
        nodes: Nodes = {}
        setup = self.builder.phase(
            nodes, f"whole_{self.region}", self._setup(), Jump(names_of[region.select])
        )
        nodes.update({**copies, **exit_nodes})
        after: Nodes = {}
        final = self._final(alive, number, exits, after)
        latch = self._single_latch() if plan.split else None
        if latch is not None:
            # The latch's own condition tells who goes on: no flag to keep from iteration to iteration.
            going, outside = latch
            end_test = self.names.label("test")
            self._vote("all", test, alive, enter, final, nodes)
            drained = self._drain(self._final(going, number, [outside], after), after)
            self._vote("all", end_test, going, enter, drained, after)
            iteration = self._iteration(enter, None, end_test, {**leave, outside: end_test})
        else:
            drained = self._drain(final, after)
            self._vote("all" if plan.split else "any", test, alive, enter, drained, nodes)
            iteration = self._iteration(enter, None if plan.split else alive, test, leave)
        program = [iteration[name] for name in program_order(iteration, region.nodes)]
        renamed, names_of = copy(program, self.names, lambda instruction: instruction)
        ours = {name: node for name, node in iteration.items() if name not in region.nodes}
        # Laid out in this order, an iteration falls through to the test after it.
        return setup, {**nodes, **led({**renamed, **ours}, names_of), **after}

    def _exits(self) -> list[str]:
        """Where lanes may go when they leave the region, from the loop or past it."""
        region = self.plan.region
        loop = (t for n in program_order(self.base, region.nodes) for t in targets(self.base[n].end))
        past = (t for n in program_order(self.base, region.preheader) for t in targets(self.base[n].end))
        found = [*loop, *(t for t in past if t not in region.preheader)]
        # A lane that traps ends the launch: no other lane need wait for it.
        elsewhere = region.nodes | self.view.traps
        return list(dict.fromkeys(t for t in found if t not in elsewhere))

    def _leave(
        self, nodes: Nodes, index: int, exits: list[str], alive: Guard, number: Register, test: str
    ) -> str:
        """The node that a lane passes on its way to exit number ``index``."""
        code = [op("mov.pred", alive.register, 0)]
        if len(exits) > 1:
            code.append(op("mov.u32", number, index))
        return self.builder.node(nodes, self.names.label("leave"), code, Jump(test))

    def _final(self, going: Guard, number: Register, exits: list[str], nodes: Nodes) -> str:
        """The node after everything: lanes with iterations left go on in the original loop, the others leave."""
        header = self.plan.region.header
        following = exits[-1] if exits else header
        for index in reversed(range(len(exits) - 1)):
            chosen = self.builder.flag()
            test = [op("setp.eq.u32", chosen.register, number, index)]
            end = Branch(chosen, exits[index], following)
            following = self.builder.node(nodes, self.names.label("exit"), test, end)
        if not self.plan.split:
            return following
        return self.builder.node(nodes, self.names.label("rest"), (), Branch(going, header, following))

    def _vote(self, kind: str, name: str, flag: Guard, enter: str, done: str, nodes: Nodes) -> None:
        """Adds the node ``name`` that goes on to ``enter`` if all or any lanes have the flag."""
        result = self.builder.flag()
        # ptxas looks for the pragma in a loop's first block, and this may be it.
        nounroll = Pragma(("nounroll",))
        vote = op(f"vote.sync.{kind}.pred", result.register, predicate(flag), FULL_WARP)
        self.builder.node(nodes, name, [nounroll, vote], Branch(result, enter, done, UNIFORM))

    def _single_latch(self) -> tuple[Guard, str] | None:
        """If one branch alone decides between the next iteration and an exit: the condition to go on, and the exit."""
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
        kept = frozenset() if alive is None else self._live_at(self._exits())
        return self.votes.place(nodes, Entry(enter, region.header, test, alive), self.plan.paths, kept)

    def _drain(self, final: str, nodes: Nodes) -> str:
        return drain(self.code, self.votes.copies, self.votes.sortings, final, nodes)

    # --- the warp's own registers ---

    def _setup(self) -> list[Instruction]:
        plan, r = self.plan, self.names.register
        linear, extent = r("b32"), r("b32")
        code = [
            op("mov.u32", plan.lane, SpecialRegister("%laneid")),
            op("mov.u32", plan.lanes_before, SpecialRegister("%lanemask_lt")),
            *(op("mov.u32", path.top, 0) for path in plan.all_paths() if plan.has_stack(path)),
            *(i for sorting in self.votes.sortings for i in sorting.setup()),
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
            sorted_bases = [base for sorting in plan.sortings for base in sorting.bases.values()]
            if sorted_bases:
                code.append(op("shr.u32", row, linear, 5))
                code += [op("mad.lo.u32", base, row, size, stack) for base, size in sorted_bases]
            owned = [p.reduction for p in plan.partials if p.offset is not None]
            if owned:
                stride, address = plan.slots.stride, plan.slots.address
                code.append(op("add.u32", linear, linear, plan.lane))
                code.append(op("mad.lo.u32", address, linear, stride, stack))
                code += plan.slots.setup(dict.fromkeys(owned))
                if any(path.results.owner for sorting in plan.sortings for path in sorting.paths):
                    # Their remainder leaves it to the last push to order memory, and there may have been none.
                    code.append(op("bar.warp.sync", FULL_WARP))
        code += [p.reset for p in plan.partials if p.offset is None]
        return [*code, *self._unset(), *plan.rebuilt]

    def _unset(self) -> list[Instruction]:
        """Values for registers that only lanes with iterations set on their way to the loop, or in it on their way
        out.
        """
        region = self.plan.region
        names = self._live_at([region.header, *self._exits()]) - self._live_at([region.select])
        return [i for name in sorted(names) for i in self._early(name)]

    def _live_at(self, names: Iterable[str]) -> frozenset[str]:
        """The registers that are live where any of the named nodes begins."""
        view = self.view
        blocks = (view.block_of_name[name] for name in names if name in view.block_of_name)
        return frozenset[str]().union(*(view.liveness.live_in[block] for block in blocks))

    def _early(self, name: str) -> list[Instruction]:
        """The value that lanes with iterations have in the loop, where a few instructions give it; else any value.

        Two different ones would keep ptxas from leaving a parameter in constant memory. Sorted lanes and
        expanded loops need the registers. In other loops, where it sees so few, ptxas has loads wait for one another:
        sssp was a fifth slower with stacks.
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


def _unmarked(node: Node) -> Node:
    return replace(node, code=tuple(s for s in node.code if not is_annotation(s)))
