"""The blocks in which lanes only leave a kernel: there they do not wait for each other."""

from __future__ import annotations

from cccopt.analysis.cfg import ControlFlowGraph
from cccopt.ptx import isa
from cccopt.ptx.ir import Function, Instruction
from cccopt.ptx.isa import Control

_LEAVING = (Control.RETURN, Control.EXIT)


def only_leaving(function: Function, graph: ControlFlowGraph) -> frozenset[int]:
    """The blocks that do nothing but end the kernel, if it contains barriers; none otherwise. Lanes that reach them do
    not wait for others.

    A thread that has left no longer counts at a barrier, so ptxas makes an early return an `EXIT` at its branch.
    """
    body = function.body or ()
    barriers = any(isinstance(s, Instruction) and isa.facts(s).barrier for s in body)
    if function.kind != "entry" or not barriers:
        return frozenset()
    found: set[int] = set()
    for block in graph.blocks:
        run = [s for i in block.statements() if isinstance(s := body[i], Instruction)]
        if len(run) == 1 and run[0].guard is None and isa.facts(run[0]).control in _LEAVING:
            found.add(block.index)
    return frozenset(found)
