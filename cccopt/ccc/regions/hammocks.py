"""A branch and the code that it skips, which may move as a unit: `if (left) atomicAdd(failures, 1);` after a path.

        setp...; @%p bra J;         the branch
        ...                         the hammock's own nodes, entered here alone, left to J alone
    J:

J. Ferrante, K. Ottenstein, J. Warren, "The program dependence graph and its use in optimization", TOPLAS 9(3), 1987.
"""

from __future__ import annotations

from dataclasses import dataclass

from cccopt.analysis import effects
from cccopt.ccc.function.annotations import is_annotation
from cccopt.ccc.function.graph import Branch, program_order, targets
from cccopt.ccc.function.view import View
from cccopt.ccc.regions.marked_loops import Region
from cccopt.ccc.regions.paths import forward
from cccopt.ptx.ir import Guard


@dataclass(frozen=True, slots=True)
class Hammock:
    """The code that statement ``branch``, at the end of node ``head``, skips to ``join`` if ``past`` holds: ``nodes``
    in program order, entered at ``begin``, and their ``statements``.
    """

    branch: int
    head: str
    past: Guard
    begin: str
    nodes: tuple[str, ...]
    join: str
    statements: tuple[int, ...]


def hammock_at(view: View, region: Region, head: str, around: frozenset[str]) -> Hammock | None:
    """The hammock that the branch at the end of node ``head`` skips, if all its nodes are in ``around``, hold no
    markers and write no register that is live after it.
    """
    end = view.graph.nodes[head].end
    if not isinstance(end, Branch):
        return None
    block = view.block_of_name[head]
    meet = view.post_dominators.immediate[block]
    if meet is None or meet < 0:
        return None
    join = forward(view, view.name(meet))
    ways = [forward(view, target) for target in (end.taken, end.otherwise)]
    if ways.count(join) != 1:
        return None
    taken_past = ways[0] == join
    begin = ways[1] if taken_past else ways[0]
    inside: set[str] = set()
    work = [begin]
    while work:
        name = work.pop()
        if name in inside or name == join:
            continue
        known = name in around and name in view.block_of_name and name != region.header
        if not known or not view.dominators.dominates(block, view.block_of_name[name]):
            return None
        inside.add(name)
        work += [forward(view, target) for target in targets(view.graph.nodes[name].end)]
    if any(is_annotation(view.body[i]) for i in view.statements(inside)):
        return None
    statements = tuple(i for i, _ in view.instructions(inside))
    written = {name for i in statements for name in effects.writes(view.body[i])}
    if written & view.liveness.live_in[view.block_of_name[join]]:
        return None
    past = Guard(end.guard.register, end.guard.negated != (not taken_past))
    index = view.cfg.blocks[block].stop - 1
    return Hammock(index, head, past, begin, tuple(program_order(view.graph.nodes, inside)), join, statements)
