"""A path on the registers of the lanes that reached it: the warp runs it at once, and nothing is stored.

These lanes also compute there what tasks compute for themselves before a path (`cccopt.ccc.plan.compression`), so code
before the branch whose values only paths read stays dead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cccopt.ccc.codegen.builder import Builder
from cccopt.ccc.function.graph import Jump, Node, Nodes, copy, led, program_order
from cccopt.ccc.plan.context import Placement
from cccopt.ccc.plan.plan import PathPlan, own
from cccopt.ptx import isa
from cccopt.ptx.ir import Instruction, Operand, Register


def in_place(
    path: PathPlan,
    sunk: Sequence[Instruction],
    after: str,
    base: Mapping[str, Node],
    builder: Builder,
) -> tuple[str, Nodes]:
    """The name of the first node, and copies of the path's nodes in ``base`` and of the ``sunk`` code after it that no
    task runs; they go on to ``after``.
    """
    kept = {
        live.name: path.registers.uses[live.name]
        for live in path.context.live_ins
        if live.decision == Placement.REBUILT
    }
    own_nodes = [base[name] for name in program_order(base, path.path.nodes)]
    last = _renamed(sunk, kept, path)
    nodes, names_of = copy(own_nodes, builder.names, lambda instruction: isa.rename(instruction, kept, {}))
    enter = builder.label("place")
    builder.node(nodes, enter, restore(path), Jump(names_of[path.path.begin]))
    if last:
        end = builder.label("tail")
        nodes = led(nodes, {path.path.end: end})
        nodes[end] = Node(end, last, Jump(after))
        return enter, nodes
    return enter, led(nodes, {path.path.end: after})


def _renamed(
    sunk: Sequence[Instruction], kept: Mapping[str, Operand], path: PathPlan
) -> tuple[Instruction, ...]:
    """The sunk code with its results in the registers of a task: code before it may still read the lane's own."""
    uses = dict(kept)
    code: list[Instruction] = []
    for instruction in sunk:
        results = {
            register.name: path.registers.of(register.name) for register in isa.definitions(instruction)
        }
        code.append(isa.rename(instruction, uses, results))
        uses.update(results)
    return tuple(code)


def restore(path: PathPlan) -> tuple[Instruction, ...]:
    """The code that rebuilds what a task's context leaves out, on the lane's own registers."""
    given = [
        live.name
        for live in path.context.live_ins
        if live.decision in (Placement.COLLECTED, Placement.RECOMPUTED)
    ]
    back: dict[str, Operand] = {path.registers.of(name).name: own(name) for name in given}
    written = {name: operand for name, operand in back.items() if isinstance(operand, Register)}
    resets = [partial.reset for partial in path.results.partials]
    return tuple(isa.rename(i, back, written) for i in path.context.restore if i not in resets)
