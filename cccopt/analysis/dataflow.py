"""The data-flow solver that all analyses share: an analysis is (direction, boundary, initial, merge,
transfer).

`solve` finds the least fixpoint over any small graph whose nodes are numbers (blocks or statements), with a
worklist in reverse postorder (forwards) or postorder (backwards). Facts that are sets are kept as bit sets
(Python ints), and `Numbering` converts between items and bits; but a fact may be any comparable value.

        numbering = Numbering(["%r1", "%r2"])          forwards, merge = or
        numbering.bits(["%r2"])     -> 0b10            node 0 -> 1 -> 2, 1 -> 1
        numbering.items(0b11)       -> ("%r1", "%r2")  transfer(1, x) = x | 0b10: before[2] = boundary | 0b10

Kildall, "A unified approach to global program optimization", POPL 1973; Aho, Lam, Sethi, Ullman, "Compilers",
9.3.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, reduce
from typing import Generic, TypeVar

from cccopt.analysis.cfg import ControlFlowGraph, reverse_postorder

Fact = TypeVar("Fact")
Item = TypeVar("Item", bound=Hashable)


class Direction(Enum):
    """Whether facts flow with control or against it."""

    FORWARD = "forward"
    BACKWARD = "backward"


@dataclass(frozen=True)
class Analysis(Generic[Fact]):
    """A data-flow problem.

    ``boundary`` holds where control comes from outside (forwards) or leaves (backwards); ``initial`` is the
    neutral element of ``merge`` and what nodes start with; ``transfer(node, fact)`` must be monotone.
    """

    direction: Direction
    boundary: Fact
    initial: Fact
    merge: Callable[[Fact, Fact], Fact]
    transfer: Callable[[int, Fact], Fact]


@dataclass(frozen=True)
class Solution(Generic[Fact]):
    """The facts at each node's start (``before``) and end (``after``), in the order of control."""

    before: Mapping[int, Fact]
    after: Mapping[int, Fact]


@dataclass(frozen=True)
class FlowGraph:
    """The graph that the solver walks: nodes with their successors, entries and possible exits."""

    successors: Mapping[int, Collection[int]]
    entries: frozenset[int]
    exits: frozenset[int]

    @cached_property
    def predecessors(self) -> Mapping[int, Collection[int]]:
        """The nodes that lead to each node."""
        found: dict[int, list[int]] = {node: [] for node in self.successors}
        for source, targets in self.successors.items():
            for target in targets:
                found[target].append(source)
        return found


def over_blocks(cfg: ControlFlowGraph) -> FlowGraph:
    """The flow graph of the blocks that the entry reaches; facts from unreachable blocks do not count."""
    successors = {block: cfg.successors[block] for block in cfg.reverse_postorder}
    return FlowGraph(successors, frozenset({cfg.entry}), frozenset(cfg.exits) & cfg.reachable)


def solve(
    analysis: Analysis[Fact],
    graph: FlowGraph,
    known: Solution[Fact] | None = None,
    changed: Collection[int] = (),
) -> Solution[Fact]:
    """The least fixpoint of ``analysis`` over ``graph``.

    It continues from ``known``, the fixpoint of the same analysis before the transfers of the nodes ``changed`` grew.
    """
    forward = analysis.direction is Direction.FORWARD
    sources = graph.predecessors if forward else graph.successors
    targets = graph.successors if forward else graph.predecessors
    boundary_nodes = graph.entries if forward else graph.exits
    order = _order(graph, forward)
    rank = {node: position for position, node in enumerate(order)}
    if known is None:
        into = dict.fromkeys(order, analysis.initial)
        out = {node: analysis.transfer(node, analysis.initial) for node in order}
        pending = set(order)
    else:
        into, out = (dict(facts) for facts in (known.before, known.after)[:: 1 if forward else -1])
        pending = set(changed)
    while pending:
        for node in sorted(pending, key=rank.__getitem__):
            pending.discard(node)
            incoming = [out[source] for source in sources[node]]
            start = analysis.boundary if node in boundary_nodes else analysis.initial
            into[node] = reduce(analysis.merge, incoming, start)
            result = analysis.transfer(node, into[node])
            if result != out[node]:
                out[node] = result
                pending.update(targets[node])
    return Solution(into, out) if forward else Solution(out, into)


def _order(graph: FlowGraph, forward: bool) -> list[int]:
    """All nodes, starting with those that the entries reach, in reverse postorder; reversed for backwards."""
    order = dict.fromkeys(reverse_postorder(graph.successors, *sorted(graph.entries)))
    order.update(dict.fromkeys(graph.successors))
    return list(order) if forward else list(reversed(order))


class Numbering(Generic[Item]):
    """A fixed list of distinct items and their bits."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = tuple(dict.fromkeys(items))
        self._bit = {item: 1 << position for position, item in enumerate(self._items)}

    def bits(self, items: Iterable[Item]) -> int:
        """The bit set of ``items``. Raises KeyError for one that is not numbered."""
        found = 0
        for item in items:
            found |= self._bit[item]
        return found

    def items(self, bits: int) -> tuple[Item, ...]:
        """The items of a bit set, in numbering order."""
        # Search the digits: removing one bit after the other would copy a long set each time.
        digits = f"{bits:b}"[::-1]
        found = []
        position = digits.find("1")
        while position >= 0:
            found.append(self._items[position])
            position = digits.find("1", position + 1)
        return tuple(found)

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, item: Item) -> bool:
        return item in self._bit


class ItemSets(Mapping[int, frozenset[Item]]):
    """The bit sets of nodes as sets of items: each is made on demand, since few are needed."""

    def __init__(self, numbering: Numbering[Item], bits: Mapping[int, int]) -> None:
        self._numbering = numbering
        self._bits = bits
        self._made: dict[int, frozenset[Item]] = {}

    def __getitem__(self, node: int) -> frozenset[Item]:
        made = self._made.get(node)
        if made is None:
            made = self._made[node] = frozenset(self._numbering.items(self._bits[node]))
        return made

    def holds(self, node: int, item: Item) -> bool:
        """Whether ``item`` is in the set of ``node``, without making the set."""
        return item in self._numbering and bool(self._bits[node] & self._numbering.bits((item,)))

    def __iter__(self) -> Iterator[int]:
        return iter(self._bits)

    def __len__(self) -> int:
        return len(self._bits)
