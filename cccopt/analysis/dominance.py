"""Dominators, post-dominators and control dependence.

A block *a* dominates *b* when each path from the entry to *b* passes through *a*; it post-dominates *b* when each path
from *b* out of the function passes through *a*. All exits lead to one virtual exit, `EXIT`. A block *b* is control
dependent on a branch *a* when one edge out of *a* surely leads to *b* and another may avoid it.

        block 0: @%p1 bra 2           immediate dominators       1: 0, 2: 0, 3: 0
        block 1: ...; bra 3           immediate post-dominators  0: 3, 1: 3, 2: 3, 3: EXIT
        block 2: ...                  control dependence         1: {0}, 2: {0}
        block 3: ret

A block that the entry does not reach has no dominator, and one that cannot leave (a spin loop) has no
post-dominator: they are absent. Cooper, Harvey, Kennedy, "A simple, fast dominance algorithm", 2001; Ferrante,
Ottenstein, Warren, "The program dependence graph and its use in optimization", TOPLAS 9(3), 1987.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from cccopt.analysis.cfg import ControlFlowGraph, reverse_postorder

EXIT = -1
"""The virtual exit: a number that no block has."""


@dataclass(frozen=True)
class Dominance:
    """A tree of (post-)dominators: ``immediate[node]`` is the node's parent, None at ``root``."""

    root: int
    immediate: Mapping[int, int | None]

    def chain(self, node: int) -> tuple[int, ...]:
        """``node`` and all its dominators up to the root. Raises KeyError for an absent node."""
        found = [node]
        parent = self.immediate[node]
        while parent is not None:
            found.append(parent)
            parent = self.immediate[parent]
        return tuple(found)

    def dominates(self, a: int, b: int) -> bool:
        """Whether ``a`` dominates ``b`` (each node dominates itself); False if either is absent from the tree."""
        if a not in self.immediate or b not in self.immediate:
            return False
        return self._first[a] <= self._first[b] and self._last[b] <= self._last[a]

    def nearest_common(self, nodes: Iterable[int]) -> int:
        """The nearest node that dominates all of ``nodes``.

        Raises KeyError for an absent node and ValueError if there are no nodes.
        """
        common: list[int] | None = None
        for node in nodes:
            chain = self.chain(node)
            common = list(chain) if common is None else [c for c in common if c in set(chain)]
        if common is None:
            raise ValueError("no nodes to find a common dominator of")
        return common[0]

    @cached_property
    def children(self) -> Mapping[int, tuple[int, ...]]:
        """The nodes that each node dominates immediately, sorted."""
        found: dict[int, list[int]] = {node: [] for node in self.immediate}
        for node in sorted(self.immediate):
            parent = self.immediate[node]
            if parent is not None:
                found[parent].append(node)
        return {node: tuple(below) for node, below in found.items()}

    @cached_property
    def _intervals(self) -> tuple[dict[int, int], dict[int, int]]:
        """When a walk of the tree enters and leaves each node: a dominates b if its interval holds b's."""
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        time = 0
        stack = [(self.root, False)]
        while stack:
            node, done = stack.pop()
            time += 1
            if done:
                last[node] = time
                continue
            first[node] = time
            stack.append((node, True))
            stack += [(child, False) for child in self.children[node]]
        return first, last

    @property
    def _first(self) -> dict[int, int]:
        return self._intervals[0]

    @property
    def _last(self) -> dict[int, int]:
        return self._intervals[1]


def immediate_dominators(successors: Mapping[int, Collection[int]], entry: int) -> Dominance:
    """The dominator tree of any small graph; nodes that ``entry`` does not reach are absent.

    A target need not be a key of ``successors`` (then it has no successors of its own).
    """
    order = reverse_postorder(defaultdict(tuple, successors), entry)
    rank = {node: position for position, node in enumerate(order)}
    sources: list[list[int]] = [[] for _ in order]
    for position, node in enumerate(order):
        for target in successors.get(node, ()):
            sources[rank[target]].append(position)
    above = _parents(sources)
    immediate: dict[int, int | None] = {node: order[above[position]] for position, node in enumerate(order)}
    immediate[entry] = None
    return Dominance(entry, immediate)


def _parents(sources: Sequence[Sequence[int]]) -> list[int]:
    """The immediate dominator of each node, given its predecessors. Nodes are numbered in reverse postorder, so a
    dominator has a smaller number. The first node is the entry, here its own parent.
    """
    above = [0] + [-1] * (len(sources) - 1)
    changed = True
    while changed:
        changed = False
        for node in range(1, len(sources)):
            nearest = -1
            for source in sources[node]:
                if above[source] < 0:
                    continue  # not reached in this first round
                if nearest < 0:
                    nearest = source
                while nearest != source:
                    if nearest > source:
                        nearest = above[nearest]
                    else:
                        source = above[source]
            if nearest != above[node]:
                above[node] = nearest
                changed = True
    return above


def dominators(cfg: ControlFlowGraph) -> Dominance:
    """The dominator tree of the blocks that the entry reaches."""
    return immediate_dominators(dict(enumerate(cfg.successors)), cfg.entry)


def post_dominators(cfg: ControlFlowGraph) -> Dominance:
    """The post-dominator tree, rooted at `EXIT`, of the blocks that can leave the function."""
    return _post_dominators(cfg, cfg.exits)


def total_post_dominators(cfg: ControlFlowGraph) -> Dominance:
    """Like `post_dominators`, but a block that can never leave counts as if it could: none is absent."""
    leaving = post_dominators(cfg)
    spinning = [block.index for block in cfg.blocks if block.index not in leaving.immediate]
    return _post_dominators(cfg, [*cfg.exits, *spinning]) if spinning else leaving


def control_dependence(cfg: ControlFlowGraph) -> Mapping[int, frozenset[int]]:
    """For each block, the blocks whose branches decide whether it runs (for a loop's header, its own branch too).

    It is based on `total_post_dominators`, so each block has an answer.
    """
    return dependence(dict(enumerate(cfg.successors)), total_post_dominators(cfg))


def dependence(
    successors: Mapping[int, Collection[int]], post_dominators: Dominance
) -> Mapping[int, frozenset[int]]:
    """`control_dependence` for any small graph, all of whose nodes are in the tree of its ``post_dominators``."""
    tree = post_dominators.immediate
    found: dict[int, set[int]] = {node: set() for node in successors}
    for branch, targets in successors.items():
        stop = tree[branch]
        for target in targets:
            node: int | None = target
            while node is not None and node != stop:
                found[node].add(branch)
                node = tree[node]
    return {node: frozenset(branches) for node, branches in found.items()}


def _post_dominators(cfg: ControlFlowGraph, exits: Iterable[int]) -> Dominance:
    backwards: dict[int, list[int]] = {b: list(sources) for b, sources in enumerate(cfg.predecessors)}
    backwards[EXIT] = list(exits)
    return immediate_dominators(backwards, EXIT)
