"""Trees of branches that only choose among paths, as straight-line code: tests and selects compute the path's number.

    @%p1 bra A; @%p2 bra B; bra C;          selp.b32 %n, 1, 2, %p2;  selp.b32 %n, 0, %n, %p1;

nvcc makes such trees from a switch. When lanes of a warp diverge in one, each branch and each leaf is run separately;
all lanes can run the tests together. J. Allen, K. Kennedy, C. Porterfield, J. Warren, "Conversion of control dependence
to data dependence", POPL 1983.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from cccopt.analysis import effects
from cccopt.ccc.function.code import number, op
from cccopt.ccc.function.graph import Branch, Jump, Node, Nodes, predecessors, reachable, targets
from cccopt.ccc.function.names import Names
from cccopt.ptx import isa
from cccopt.ptx.ir import Instruction, Label, Location, Operand, Pragma, Register, Statement
from cccopt.ptx.isa import Control, Memory

LARGEST = 48
"""All lanes run all tests of a tree with at most this many branches."""


@dataclass(frozen=True, slots=True)
class Flattened:
    """The nodes without the trees, and the register that holds the leaf's number, by the node to which the former root
    now goes on.
    """

    nodes: Nodes
    chosen: Mapping[str, Register]


def flattened(
    nodes: Mapping[str, Node],
    entry: str,
    leaves: Mapping[str, int],
    alive: Mapping[str, Collection[str]],
    names: Names,
) -> Flattened:
    """``nodes``, with the trees whose branches lead only to ``leaves`` turned into straight-line code at their roots.

    ``alive`` are the registers that are live at each leaf: lanes that come there must find them unchanged.
    """
    # Nodes that only led on are no longer reached, and would count as other predecessors of a test.
    used = reachable(nodes, [entry, *leaves])
    nodes = {name: node for name, node in nodes.items() if name in used}
    tree = _Trees(nodes, leaves, alive, names)
    found: Nodes = dict(nodes)
    chosen: dict[str, Register] = {}
    for name in nodes:
        if name in leaves or not tree.is_root(name):
            continue
        code, selected = tree.select(name)
        if isinstance(selected, Register):
            label = names.label("chosen")
            chosen[label] = selected
            found[name] = replace(nodes[name], code=(*nodes[name].code, *code), end=Jump(label))
    kept = reachable(found, [entry, *leaves])
    return Flattened({name: node for name, node in found.items() if name in kept}, chosen)


class _Trees:
    def __init__(
        self,
        nodes: Mapping[str, Node],
        leaves: Mapping[str, int],
        alive: Mapping[str, Collection[str]],
        names: Names,
    ) -> None:
        self.nodes = nodes
        self.leaves = leaves
        self.alive = alive
        self.names = names
        self.sources = predecessors(nodes)

    def is_root(self, name: str) -> bool:
        """Whether the node's branch begins a tree of at least two branches that is not part of a larger one."""
        size = self._size(name)
        above = self.sources.get(name, [])
        inner = self._is_test(name) and len(above) == 1 and self._size(above[0]) is not None
        return size is not None and 2 <= size <= LARGEST and not inner and self._may_run_together(name)

    def _may_run_together(self, root: str) -> bool:
        """Whether what a test writes is read nowhere but below it."""
        tests = self._below(root) - self.leaves.keys() - {root}
        for name in tests:
            written = {w for s in self.nodes[name].code for w in effects.writes(s)}
            inside = self._below(name)
            others = (s for test in tests - inside for s in self.nodes[test].code)
            read = {n for s in others for n in effects.needs(s)}
            read |= {self._guard(test) for test in (tests | {root}) - inside}
            # Another edge may lead to a leaf below the test.
            read = read.union(*(self.alive[leaf] for leaf in self._below(root, name) & self.leaves.keys()))
            if written & read:
                return False
        return True

    def _below(self, name: str, without: str = "") -> set[str]:
        """The nodes and leaves of the subtree at a node, including the node, except for what is reached through
        ``without``.
        """
        if name == without:
            return set()
        if name in self.leaves:
            return {name}
        return {name}.union(*(self._below(target, without) for target in targets(self.nodes[name].end)))

    def _guard(self, name: str) -> str:
        end = self.nodes[name].end
        return end.guard.register.name if isinstance(end, Branch) else ""

    def select(self, name: str) -> tuple[list[Statement], Operand]:
        """The code that selects the number of the node's leaf, to run after the node's own, and the number."""
        end = self.nodes[name].end
        assert isinstance(end, Branch)
        code: list[Statement] = []
        values: list[Operand] = []
        for target in (end.taken, end.otherwise):
            if target in self.leaves:
                values.append(number(self.leaves[target]))
                continue
            tests = [s for s in self.nodes[target].code if isinstance(s, Instruction)]
            inner, value = self.select(target)
            code += [*tests, *inner]
            values.append(value)
        selected = self.names.register("b32")
        first, second = reversed(values) if end.guard.negated else values
        return [*code, op("selp.b32", selected, first, second, end.guard.register)], selected

    def _size(self, name: str) -> int | None:
        """The branches of the tree that the node's end begins, if all its edges lead to leaves."""
        node = self.nodes.get(name)
        if node is None or name in self.leaves or not isinstance(node.end, Branch):
            return None
        total = 1
        for target in targets(node.end):
            if target in self.leaves:
                continue
            below = self._size(target) if self._is_test(target) and self._only_from(target, name) else None
            if below is None:
                return None
            total += below
        return total

    def _only_from(self, name: str, source: str) -> bool:
        return self.sources.get(name) == [source]

    def _is_test(self, name: str) -> bool:
        """Whether the node does nothing but compute."""
        node = self.nodes.get(name)
        return node is not None and all(
            isinstance(s, Label | Location | Pragma) or (isinstance(s, Instruction) and self._is_pure(s))
            for s in node.code
        )

    def _is_pure(self, instruction: Instruction) -> bool:
        facts = isa.facts(instruction)
        plain = facts.known and facts.pure and facts.memory is Memory.NONE and facts.control is Control.NEXT
        return plain and instruction.guard is None
