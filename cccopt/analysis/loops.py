"""Natural loops and reducibility.

An edge to a block that dominates its source is a *back edge*; its source is a *latch*, its target the
*header*. The natural loop of a header holds the header and each block that reaches a latch without passing
it. Loops with the same header are one loop. A graph is *reducible* if no cycle is left once the back edges are
removed.

        block 0: ...                  loops: header 1, latches (2,), blocks {1, 2}, exits ((2, 3),)
        block 1: LOOP: ...
        block 2: @%p1 bra LOOP
        block 3: ret

Aho, Lam, Sethi, Ullman, "Compilers", 2nd ed., 9.6; Hecht, Ullman, "Characterizations of reducible flow
graphs", 1974.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cccopt.analysis.cfg import ControlFlowGraph
from cccopt.analysis.dominance import Dominance, dominators


@dataclass(frozen=True, slots=True)
class Loop:
    """One natural loop, by block index.

    ``exits`` are the edges (inside, outside) that leave it; blocks that leave the function from inside are
    not among them (see ``cfg.exits``). ``parent`` is the index of the next outer loop in the result of `loops`,
    None for an outermost one; ``depth`` is 1 for an outermost loop.
    """

    header: int
    latches: tuple[int, ...]
    blocks: frozenset[int]
    exits: tuple[tuple[int, int], ...]
    parent: int | None
    depth: int

    def always_runs(self, block: int, dominators: Dominance) -> bool:
        """Whether each iteration that another one follows runs the block."""
        return all(dominators.dominates(block, latch) for latch in self.latches)


def loops(cfg: ControlFlowGraph) -> tuple[Loop, ...]:
    """The natural loops, outer before inner, and in file order of headers among loops of the same size."""
    latches: dict[int, list[int]] = {}
    for latch, header in back_edges(cfg):
        latches.setdefault(header, []).append(latch)
    blocks = {header: natural_loop(cfg, header, sources) for header, sources in latches.items()}
    # Sorted by size, a loop comes after all loops that contain it.
    headers = sorted(blocks, key=lambda header: (-len(blocks[header]), header))
    found: list[Loop] = []
    for header in headers:
        inside = blocks[header]
        holders = [position for position, outer in enumerate(found) if header in outer.blocks]
        parent = holders[-1] if holders else None
        exits = tuple((a, b) for a in sorted(inside) for b in cfg.successors[a] if b not in inside)
        depth = 1 if parent is None else found[parent].depth + 1
        found.append(Loop(header, tuple(sorted(latches[header])), inside, exits, parent, depth))
    return tuple(found)


def innermost(found: Iterable[Loop], block: int) -> Loop | None:
    """The innermost of the loops that hold ``block``, or None."""
    return max((loop for loop in found if block in loop.blocks), key=lambda loop: loop.depth, default=None)


def back_edges(cfg: ControlFlowGraph) -> tuple[tuple[int, int], ...]:
    """The edges to a block that dominates their source."""
    tree = dominators(cfg)
    return tuple((a, b) for a, b in cfg.edges() if tree.dominates(b, a))


def irreducible_edges(cfg: ControlFlowGraph) -> tuple[tuple[int, int], ...]:
    """The edges that close a cycle without being back edges: empty for a reducible graph.

    In a cycle with several entries, they are the edges that go backwards in reverse postorder.
    """
    rank = {block: position for position, block in enumerate(cfg.reverse_postorder)}
    back = set(back_edges(cfg))
    retreating = ((a, b) for a, b in cfg.edges() if a in rank and rank[a] >= rank[b])
    return tuple(edge for edge in retreating if edge not in back)


def natural_loop(cfg: ControlFlowGraph, header: int, latches: Iterable[int]) -> frozenset[int]:
    """The blocks of the natural loop of ``header``, given the sources of the edges back to it."""
    inside = {header}
    work = list(latches)
    while work:
        block = work.pop()
        if block in inside or block not in cfg.reachable:
            continue
        inside.add(block)
        work += cfg.predecessors[block]
    return frozenset(inside)
