"""Both versions of a marked loop in one function: the rewritten one for full warps, next to the original.

select:  activemask full? else the original code
         where stacks are in global memory: an entry claimed? else the original code
         setup, then a copy of what leads to the loop: each lane's answer in `alive`
test:    vote on `alive`: another iteration of the warp, or what is left, and out
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from cccopt.analysis.uniformity import is_full_mask
from cccopt.ccc.codegen.builder import Builder
from cccopt.ccc.codegen.claim import claim, warp_number
from cccopt.ccc.function.annotations import is_annotation
from cccopt.ccc.function.code import FULL_WARP, op, predicate
from cccopt.ccc.function.graph import (
    UNIFORM,
    Branch,
    Graph,
    Jump,
    Node,
    Nodes,
    copy,
    led,
    predecessors,
    program_order,
    targets,
)
from cccopt.ccc.function.view import View
from cccopt.ccc.legality.reductions import Reduction
from cccopt.ccc.plan.block_size import whole_warps
from cccopt.ccc.plan.partials import Slots
from cccopt.ccc.plan.pool import Claim
from cccopt.ccc.plan.stack import SLOTS, Value, clear
from cccopt.ccc.regions.marked_loops import Region
from cccopt.ptx.ir import Guard, Instruction, Pragma, Register, SpecialRegister, Statement, Symbol, Variable


class LoopPlan(Protocol):
    """What any plan of a region has."""

    @property
    def region(self) -> Region: ...
    @property
    def stack_name(self) -> str: ...
    @property
    def stack_bytes(self) -> int: ...
    @property
    def claim(self) -> Claim | None: ...
    @property
    def threads(self) -> int: ...
    @property
    def lane(self) -> Register: ...
    @property
    def lanes_before(self) -> Register: ...


@dataclass(frozen=True, slots=True)
class Leaving:
    """How lanes leave the loop: the exits in order, the flag of those that have not left yet, and the register that
    holds the number of a lane's exit.
    """

    exits: tuple[str, ...]
    alive: Guard
    number: Register


class LoopVersions(ABC):
    """Builds the rewritten loop of one region, with all nodes that lead to it and out of it. ``base`` are the region's
    own nodes and those of its preheader, by name.
    """

    def __init__(self, view: View, plan: LoopPlan, builder: Builder, base: Mapping[str, Node]) -> None:
        self.view = view
        self.names = view.names
        self.builder = builder
        self.base = base
        self._plan = plan
        self.region = builder.region

    @abstractmethod
    def version(self) -> tuple[str, Nodes]:
        """The first node's name, and the nodes of the rewritten loop and of what leads to it and follows it."""

    def graph(self) -> Graph:
        """The function with both versions of the region, and the choice between them at its ``for.begin``."""
        old, region = self.view.graph, self._plan.region
        original_nodes = region.nodes | region.preheader
        nodes: Nodes = {n: _unmarked(node) if n in original_nodes else node for n, node in old.nodes.items()}
        choice: Nodes = {}
        first, added = self.version()
        original = self.builder.phase(choice, f"original_{self.region}", (), Jump(region.select))
        first, claiming = self._claimed(first, original)
        mask, partial = self.names.register("b32"), self.builder.flag()
        added = {name: _with_mask(node, mask) for name, node in {**claiming, **added}.items()}
        # Only 32 lanes that are together can see a full mask; with a partial one, they merely run the original.
        test = [op("activemask.b32", mask), op("setp.ne.s32", partial.register, mask, FULL_WARP)]
        choose = self.builder.node(choice, self.names.label("choose"), test, Branch(partial, original, first))
        ahead = set(predecessors(old.nodes).get(region.select, [])) - original_nodes
        nodes.update(led({name: nodes[name] for name in ahead}, {region.select: choose}))
        # A loop around the region may lead from its end straight back to its beginning.
        added = led(added, {region.select: choose})
        layout: Nodes = {}
        for name, node in nodes.items():
            if name == region.select:
                layout.update({choose: choice[choose], **added, original: choice[original]})
            layout[name] = node
        entry = choose if old.entry == region.select else old.entry
        return Graph(entry, layout, (*old.declarations, *self._shared()))

    def _claimed(self, loop: str, original: str) -> tuple[str, Nodes]:
        """The node that leads to ``loop``, with an entry of the pool if the plan claims one, and the nodes added."""
        nodes: Nodes = {}
        if self._plan.claim is None:
            return loop, nodes
        thread = self.names.register("b32")
        _, find = self.first_thread(thread)
        warp, number = warp_number(thread, whole_warps(self._plan.threads) // SLOTS, self.builder)
        claimed = claim(self._plan.claim, warp, loop, original, self.builder, nodes)
        nodes[claimed] = replace(nodes[claimed], code=(*find, *number, *nodes[claimed].code))
        return claimed, nodes

    def _shared(self) -> tuple[Statement, ...]:
        size = self._plan.stack_bytes
        return (Variable("shared", ".b8", self._plan.stack_name, (size,), alignment=8),) if size else ()

    def lead_in(
        self, setup: Sequence[Statement], leaving: Leaving, test: str, end: str
    ) -> tuple[str, Nodes, Mapping[str, str]]:
        """The first node of the rewritten loop, all nodes that lead from it to ``test``, and for each exit the node
        that lanes pass inside the loop on their way there, which leads to the ``end`` of an iteration.
        """
        region = self._plan.region
        ways: Nodes = {}
        # One node for lanes from before the loop and from inside it would be a second way into it.
        ahead, leave = (
            {target: self._leave(ways, place, leaving, goal) for place, target in enumerate(leaving.exits)}
            for goal in (test, end)
        )
        # Lanes that go on in the original loop pass the exits' numbers too.
        code = [op("mov.pred", leaving.alive.register, 1)]
        code += [op("mov.u32", leaving.number, 0)] if len(leaving.exits) > 1 else []
        arrive = self.builder.node(ways, self.names.label("arrive"), code, Jump(test))
        inside = {name: name for name in region.preheader}
        preheader = led(
            {name: self.base[name] for name in program_order(self.base, region.preheader)},
            {**ahead, region.header: arrive, **inside},
        )
        copies, names_of = copy(preheader.values(), self.names, lambda instruction: instruction)
        nodes: Nodes = {}
        first = self.builder.phase(nodes, f"whole_{self.region}", setup, Jump(names_of[region.select]))
        nodes.update({**copies, **ways})
        return first, nodes, leave

    def exits(self) -> list[str]:
        """Where lanes may go when they leave the region, from the loop or past it."""
        region = self._plan.region
        loop = (t for n in program_order(self.base, region.nodes) for t in targets(self.base[n].end))
        past = (t for n in program_order(self.base, region.preheader) for t in targets(self.base[n].end))
        found = [*loop, *(t for t in past if t not in region.preheader)]
        # A lane that traps ends the launch: no lane needs to wait for it.
        elsewhere = region.nodes | self.view.traps
        return list(dict.fromkeys(t for t in found if t not in elsewhere))

    def _leave(self, nodes: Nodes, place: int, leaving: Leaving, test: str) -> str:
        """The node that a lane passes on its way to exit number ``place``."""
        code = [op("mov.pred", leaving.alive.register, 0)]
        if len(leaving.exits) > 1:
            code.append(op("mov.u32", leaving.number, place))
        return self.builder.node(nodes, self.names.label("leave"), code, Jump(test))

    def leave(self, exits: Sequence[str], number: Register, nodes: Nodes) -> str:
        """The node after everything: each lane goes to the exit of its number."""
        following = exits[-1] if exits else self._plan.region.header
        for place in reversed(range(len(exits) - 1)):
            chosen = self.builder.flag()
            test = [op("setp.eq.u32", chosen.register, number, place)]
            end = Branch(chosen, exits[place], following)
            following = self.builder.node(nodes, self.names.label("exit"), test, end)
        return following

    def rest_of_loop(self, going: Guard, following: str, nodes: Nodes) -> str:
        """The node from which lanes with iterations left go on in the original loop, and the others go to
        ``following``.
        """
        end = Branch(going, self._plan.region.header, following)
        return self.builder.node(nodes, self.names.label("rest"), (), end)

    def vote(self, kind: str, name: str, flag: Guard, enter: str, done: str, nodes: Nodes) -> None:
        """Adds the node ``name`` that goes on to ``enter`` if all or any lanes have the flag."""
        result = self.builder.flag()
        # ptxas looks for the pragma in a loop's first block, and this may be it.
        nounroll = Pragma(("nounroll",))
        vote = op(f"vote.sync.{kind}.pred", result.register, predicate(flag), FULL_WARP)
        self.builder.node(nodes, name, [nounroll, vote], Branch(result, enter, done, UNIFORM))

    def renamed(self, iteration: Nodes) -> Nodes:
        """One iteration under fresh names: the original loop keeps its own."""
        region = self._plan.region
        program = [iteration[name] for name in program_order(iteration, region.nodes)]
        copies, names_of = copy(program, self.names, lambda instruction: instruction)
        ours = {name: node for name, node in iteration.items() if name not in region.nodes}
        return led({**copies, **ours}, names_of)

    def lane_numbers(self) -> list[Instruction]:
        """The lane's number, and the mask of those before it."""
        return [
            op("mov.u32", self._plan.lane, SpecialRegister("%laneid")),
            op("mov.u32", self._plan.lanes_before, SpecialRegister("%lanemask_lt")),
        ]

    def first_thread(self, target: Register) -> tuple[Register, list[Instruction]]:
        """A register that is free afterwards, and the code that puts the number of the warp's first thread in its
        block, a multiple of 32, into ``target``.
        """
        extent, row = self.names.register("b32"), self.names.register("b32")
        return row, [
            op("mov.u32", target, SpecialRegister("%tid.z")),
            op("mov.u32", extent, SpecialRegister("%ntid.y")),
            op("mov.u32", row, SpecialRegister("%tid.y")),
            op("mad.lo.u32", target, target, extent, row),
            op("mov.u32", extent, SpecialRegister("%ntid.x")),
            op("mov.u32", row, SpecialRegister("%tid.x")),
            op("mad.lo.u32", target, target, extent, row),
            op("and.b32", target, target, -SLOTS),
        ]

    def stacks(self) -> tuple[Register, Instruction]:
        """The register with the address of the block's stacks, and the instruction that puts it there."""
        register = self.names.register("b32")
        return register, op("mov.u32", register, Symbol(self._plan.stack_name))

    def owners_slots(
        self, linear: Register, stack: Register, slots: Slots, owned: Iterable[Reduction]
    ) -> list[Instruction]:
        """Gives each lane of the warp that begins at thread ``linear`` its slots, which hold the initial values."""
        return [
            op("add.u32", linear, linear, self._plan.lane),
            op("mad.lo.u32", slots.address, linear, slots.stride, stack),
            *slots.setup(dict.fromkeys(owned)),
        ]

    def first_values(self) -> list[Instruction]:
        """Values for registers that only lanes with iterations set before the loop, or in it on their way out."""
        region = self._plan.region
        names = self.live_at([region.header, *self.exits()]) - self.live_at([region.select])
        return [i for name in sorted(names) for i in self.first_value(name)]

    def first_value(self, name: str) -> list[Instruction]:
        """Any value for a register of the program."""
        return [clear(Value(name, self.view.types[name]))]

    def live_at(self, names: Iterable[str]) -> frozenset[str]:
        """The registers that are live where any of the named nodes begins."""
        view = self.view
        blocks = (view.block_of_name[name] for name in names if name in view.block_of_name)
        return frozenset[str]().union(*(view.liveness.live_in[block] for block in blocks))


def _with_mask(node: Node, mask: Register) -> Node:
    """A node whose full-warp collectives name the lanes by a register that holds -1.

    ptxas 13.0 takes a literal -1 to mean that control flow around the collective does not diverge. Lanes that leave an
    inner loop one by one then do not reconverge after it, and those that are ahead overwrite uniform registers that it
    keeps for the others (docs/decisions/0025-masks-in-registers.md).
    """
    return replace(node, code=tuple(_named(s, mask) for s in node.code))


def _named(statement: Statement, mask: Register) -> Statement:
    if not isinstance(statement, Instruction) or "sync" not in statement.parts:
        return statement
    named = statement.operands and is_full_mask(statement.operands[-1])
    return replace(statement, operands=(*statement.operands[:-1], mask)) if named else statement


def _unmarked(node: Node) -> Node:
    return replace(node, code=tuple(s for s in node.code if not is_annotation(s)))
