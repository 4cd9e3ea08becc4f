"""Does every register have a value where it is read (definite assignment)?

A register that some way from the function's entry does not write before it is read is live at the entry. nvcc may leave
such registers in a program: what it computes from them does not matter. A rewrite must not add any.
"""

from __future__ import annotations

from collections.abc import Iterator

from cccopt.analysis import effects
from cccopt.analysis.cfg import build
from cccopt.analysis.liveness import liveness
from cccopt.ccc.output_check.regions import FunctionCode, Violation
from cccopt.ptx.ir import Function


def assignment_violations(before: Function, code: FunctionCode) -> Iterator[Violation]:
    """Registers that ``code`` may read unwritten and ``before``, the same function as it was, does not."""
    live = liveness(code.cfg, code.body)
    read = live.live_in[code.cfg.entry]
    if not read:
        return
    body = before.body or ()
    graph = build(body)
    for name in sorted(read - liveness(graph, body).live_in[graph.entry]):
        yield Violation(_first_read(code, name), f"`{name}` may be read before it is written")


def _first_read(code: FunctionCode, name: str) -> int:
    """The first statement at which a register is read that its block has not written."""
    for block in code.cfg.reverse_postorder:
        for index, instruction in code.instructions(block):
            if name in effects.needs(instruction):
                return index
            if name in effects.kills(instruction):
                break
    return 0
