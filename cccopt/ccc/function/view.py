"""One function with all that is known about it: analyses computed on demand over one unchanging body."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from cccopt.analysis import cfg as control_flow
from cccopt.analysis import effects
from cccopt.analysis.affine import LaneStrides
from cccopt.analysis.cost import Costs
from cccopt.analysis.dominance import Dominance, control_dependence, dominators, total_post_dominators
from cccopt.analysis.liveness import Liveness, liveness
from cccopt.analysis.loops import Loop, irreducible_edges, loops
from cccopt.analysis.memory import ASSERTION, MemoryAliasing
from cccopt.analysis.reaching import ReachingDefinitions, reaching_definitions
from cccopt.analysis.uniformity import Uniformity, uniformity
from cccopt.ccc.function.annotations import Annotation, annotations_of, vouches
from cccopt.ccc.function.calls import called_code, callees
from cccopt.ccc.function.graph import (
    Graph,
    Leave,
    Node,
    balanced,
    from_body,
    leading,
    predecessors,
    reachable,
    split_at_markers,
    targets,
)
from cccopt.ccc.function.names import Names
from cccopt.ccc.function.origins import Origins
from cccopt.ccc.function.readnone import is_readnone
from cccopt.ptx import isa
from cccopt.ptx.ir import (
    Body,
    Close,
    Function,
    Instruction,
    Marker,
    Module,
    Open,
    RegisterDeclaration,
    Statement,
)
from cccopt.ptx.isa import Control, callee_of


@dataclass(frozen=True)
class View:
    """A function whose blocks begin at labels, which identify them, and end at markers."""

    module: Module
    function: Function
    body: Body
    names: Names

    @cached_property
    def cfg(self) -> control_flow.ControlFlowGraph:
        return control_flow.build(self.body)

    @cached_property
    def graph(self) -> Graph:
        return from_body(self.body, self.cfg, self.names)

    @cached_property
    def dominators(self) -> Dominance:
        return dominators(self.cfg)

    @cached_property
    def post_dominators(self) -> Dominance:
        """The post-dominators of all blocks: one that cannot leave the function counts as an exit."""
        return total_post_dominators(self.cfg)

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        return loops(self.cfg)

    @cached_property
    def lane_strides(self) -> LaneStrides:
        """How far apart neighboring lanes access memory."""
        return LaneStrides(self.reaching, self.uniformity, self.dominators, self.loops)

    @cached_property
    def headers(self) -> frozenset[str]:
        """The nodes that head a loop."""
        return self.names_of(loop.header for loop in self.loops)

    @cached_property
    def irreducible(self) -> tuple[tuple[int, int], ...]:
        """The edges between blocks that close a cycle with several entries."""
        return irreducible_edges(self.cfg)

    def innermost(self, block: int) -> Loop | None:
        """The innermost loop around ``block``."""
        index = self.loop_of.get(block)
        return None if index is None else self.loops[index]

    @cached_property
    def loop_of(self) -> Mapping[int, int]:
        """The index in `loops` of the innermost loop around each block that is in one."""
        found: dict[int, int] = {}
        for index, loop in enumerate(self.loops):
            for block in loop.blocks:
                if block not in found or self.loops[found[block]].depth < loop.depth:
                    found[block] = index
        return found

    @cached_property
    def liveness(self) -> Liveness:
        return liveness(self.cfg, self.body)

    @cached_property
    def reaching(self) -> ReachingDefinitions:
        return reaching_definitions(self.cfg, self.body)

    @cached_property
    def memory(self) -> MemoryAliasing:
        readnone = frozenset(n for n in set(callees(self.function)) if is_readnone(self.module, n))
        return MemoryAliasing(
            self.module, self.function, self.reaching, self._restricted, self._pure, readnone | {ASSERTION}
        )

    @property
    def _pure(self) -> frozenset[str]:
        """The functions called here that only read, according to a pragma."""
        called = callees(self.function)
        return frozenset(name for name in called if any(vouches(a, name) for a in self.annotations.values()))

    @property
    def _restricted(self) -> frozenset[str]:
        """The ``__restrict__`` parameters of a kernel: no other pointer leads where they do."""
        if self.function.kind != "entry":
            return frozenset()
        places = {place for annotation in self.annotations.values() for place in annotation.restricted}
        return frozenset(p.name for i, p in enumerate(self.function.parameters) if i in places)

    @cached_property
    def uniformity(self) -> Uniformity:
        return uniformity(self.function, self.cfg)

    @cached_property
    def costs(self) -> Costs:
        """The static costs of the statements."""
        return Costs(self.module, self.body, self.cfg, self.reaching, self.loops)

    @cached_property
    def readers(self) -> Mapping[tuple[int, str], Sequence[int]]:
        """The statements, in file order, that may read what a definition (also `ENTRY`) leaves in a register."""
        found: dict[tuple[int, str], list[int]] = {}
        for index, statement in enumerate(self.body):
            for name in effects.needs(statement):
                for definition in self.reaching.reaching(index, name):
                    found.setdefault((definition, name), []).append(index)
        return found

    @cached_property
    def types(self) -> Mapping[str, str]:
        return isa.register_types(self.function)

    @cached_property
    def scoped(self) -> frozenset[str]:
        """The registers declared in scopes inside the function: they are not visible outside of these scopes."""
        depth, outer = 0, list[Statement]()
        for statement in self.body:
            depth += isinstance(statement, Open) - isinstance(statement, Close)
            if not depth and isinstance(statement, RegisterDeclaration):
                outer.append(statement)
        known = isa.register_types(replace(self.function, body=tuple(outer)))
        return frozenset(self.types.keys() - known.keys())

    @cached_property
    def annotations(self) -> Mapping[int, Annotation]:
        return annotations_of(self.body)

    @cached_property
    def origins(self) -> Origins:
        places = (annotation.place for annotation in self.annotations.values())
        return Origins(self.module, self.function, frozenset(p.file for p in places if p is not None))

    @cached_property
    def sources(self) -> Mapping[str, Sequence[str]]:
        """The nodes that lead to each node."""
        return predecessors(self.graph.nodes)

    @cached_property
    def balanced(self) -> bool:
        """Whether each scope that opens in a node closes in it."""
        return all(map(balanced, self.graph.nodes.values()))

    @cached_property
    def control_dependence(self) -> Mapping[int, frozenset[int]]:
        """The blocks whose branches decide whether each block runs."""
        return control_dependence(self.cfg)

    @cached_property
    def block_of_name(self) -> Mapping[str, int]:
        return {self.name(block.index): block.index for block in self.cfg.blocks}

    @cached_property
    def traps(self) -> frozenset[str]:
        """The nodes from which a `trap` is surely reached: a lane that gets there ends the whole launch."""
        nodes = self.graph.nodes
        cyclic = self.names_of({block for loop in self.loops for block in loop.blocks})
        others = [name for name in nodes if name in cyclic or _leaves(nodes[name])]
        return frozenset(nodes.keys() - leading(nodes, others))

    def with_traps(self, nodes: frozenset[str]) -> frozenset[str]:
        """``nodes`` and the nodes of `traps` that lanes may reach from them."""
        graph = self.graph.nodes
        found = {target for name in nodes for target in targets(graph[name].end)} & self.traps
        return nodes | frozenset(reachable(graph, found))

    def with_own_traps(self, nodes: frozenset[str], entry: int) -> frozenset[str]:
        """Like `with_traps`, without traps that can be reached without passing the block ``entry``."""
        found = self.with_traps(nodes) - nodes
        return nodes | {
            name
            for name in found
            if name not in self.block_of_name or self.dominators.dominates(entry, self.block_of_name[name])
        }

    def with_callees(self, instruction: Instruction) -> Sequence[Instruction]:
        """The instruction and all instructions that it may run by a call."""
        callee = callee_of(instruction) if isa.facts(instruction).control is Control.CALL else None
        if callee is None:
            return (instruction,)
        if callee not in self._called_code:
            self._called_code[callee] = called_code(self.module, callee)
        return (instruction, *self._called_code[callee])

    @cached_property
    def _called_code(self) -> dict[str, Sequence[Instruction]]:
        """A cache for `with_callees`: many calls go to few functions."""
        return {}

    def name(self, block: int) -> str:
        """The label of block ``block``."""
        label = self.cfg.blocks[block].label
        if label is None:
            raise ValueError(f"block {block} has no label")
        return label

    def names_of(self, blocks: Iterable[int]) -> frozenset[str]:
        """The labels of ``blocks``."""
        return frozenset(self.name(block) for block in blocks)

    def blocks_of(self, names: Iterable[str]) -> frozenset[int]:
        """The blocks that ``names`` label; names of nodes that are not blocks (a guarded return) are left out."""
        if isinstance(names, frozenset) and names in self._blocks_of:
            return self._blocks_of[names]
        blocks = frozenset(self.block_of_name[name] for name in names if name in self.block_of_name)
        if isinstance(names, frozenset):
            self._blocks_of[names] = blocks
        return blocks

    @cached_property
    def _blocks_of(self) -> dict[frozenset[str], frozenset[int]]:
        """A cache for `blocks_of`: the nodes of a path are looked up again and again."""
        return {}

    def ends(self, names: frozenset[str]) -> tuple[int, ...]:
        """The named blocks from which control may go to a block that is not named."""
        if names not in self._ends:
            blocks, successors = self.blocks_of(names), self.cfg.successors
            self._ends[names] = tuple(b for b in sorted(blocks) if not blocks.issuperset(successors[b]))
        return self._ends[names]

    @cached_property
    def _ends(self) -> dict[frozenset[str], tuple[int, ...]]:
        return {}

    def statements(self, names: Iterable[str]) -> list[int]:
        """The statement indices of the named blocks, in file order."""
        return sorted(i for b in self.blocks_of(names) for i in self.cfg.blocks[b].statements())

    def instructions(self, names: Iterable[str]) -> Sequence[tuple[int, Instruction]]:
        """The instructions of the named blocks with their statement indices, in file order."""
        blocks = frozenset(names)
        if blocks not in self._instructions:
            found: list[tuple[int, Statement]] = [(i, self.body[i]) for i in self.statements(blocks)]
            self._instructions[blocks] = [(i, s) for i, s in found if isinstance(s, Instruction)]
        return self._instructions[blocks]

    @cached_property
    def _instructions(self) -> dict[frozenset[str], list[tuple[int, Instruction]]]:
        """A cache for `instructions`: rules look at the same blocks for each path."""
        return {}

    def markers(self, event: str, region: int) -> list[int]:
        """The statement indices of the markers ``event`` of ``region``, in file order."""
        return [*self._markers.get((event, region), ())]

    def all_markers(self, region: int) -> list[int]:
        """The statement indices of all markers of ``region``."""
        return sorted(i for (_, number), found in self._markers.items() if number == region for i in found)

    @cached_property
    def _markers(self) -> Mapping[tuple[str, int], Sequence[int]]:
        found: dict[tuple[str, int], list[int]] = {}
        for index, statement in enumerate(self.body):
            if isinstance(statement, Marker):
                found.setdefault((statement.event, statement.region), []).append(index)
        return found


def view_of(module: Module, function: Function) -> View:
    """The view of a function with a body."""
    if function.body is None:
        raise ValueError(f"`{function.name}` has no body")
    names = Names(function.body, isa.register_types(function))
    body = split_at_markers(function.body, names)
    return View(module, replace(function, body=body), body, names)


def _leaves(node: Node) -> bool:
    """Whether a lane leaves the function here other than by a trap."""
    end = node.end
    return isinstance(end, Leave) and (end.instruction is None or end.instruction.base != "trap")
