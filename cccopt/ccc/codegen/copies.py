"""What differs in copies of a loop's code: unrolled inner iterations, pragmas, and the suffix ``.uni``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cccopt.ccc.function.graph import Jump, Node, Nodes, copy, led
from cccopt.ccc.function.names import Names
from cccopt.ptx.ir import Instruction, Pragma, Statement

UNROLLED = 240
"""The inner iterations of a chunk are unrolled up to this many instructions."""


def unrolled(chunk: int, instructions: int) -> int:
    """How many inner iterations of so many ``instructions`` are unrolled if ``chunk`` of them run between two votes:
    counting short ones one by one would be costly.
    """
    return next(n for n in (16, 8, 4, 2, 1) if chunk % n == 0 and (n == 1 or n * instructions <= UNROLLED))


def run_chunk(
    nodes: Nodes, begin: str, code: Sequence[Node], together: int, again: str, names: Names
) -> None:
    """Adds the inner iteration ``code`` of the loop with header ``begin`` to ``nodes``, ``together`` times in a row:
    the last one goes on to ``again``.
    """
    for index in reversed(range(together)):
        iteration: Nodes = {node.name: node for node in code}
        first = begin
        if index:
            copies, name_of = copy(code, names, lambda instruction: instruction)
            first = name_of[begin]
            iteration = led(copies, {first: begin})
        nodes.update(led(iteration, {begin: again}))
        again = first
    keep_rolled(nodes, begin)


def keep_rolled(nodes: Nodes, name: str) -> None:
    """Asks ptxas not to unroll the loop at node ``name``: in its first block that is not empty."""
    while (node := nodes[name]) and not node.code and isinstance(node.end, Jump) and node.end.target in nodes:
        name = node.end.target
    nodes[name] = replace(node, code=(Pragma(("nounroll",)), *without_pragmas(node).code))


def without_pragmas(node: Node) -> Node:
    """A former loop header, without its pragmas."""
    return replace(node, code=tuple(s for s in node.code if not isinstance(s, Pragma)))


def parting(statement: Statement) -> Statement:
    """A guarded call without `.uni`, which says that all lanes agree on the guard: tasks of one warp need not."""
    if isinstance(statement, Instruction) and statement.guard is not None and statement.opcode == "call.uni":
        return replace(statement, opcode="call")
    return statement
