"""Which atomics may be done in any order."""

from __future__ import annotations

from cccopt.analysis import effects
from cccopt.ccc.function.view import View
from cccopt.ptx import isa
from cccopt.ptx.ir import Instruction
from cccopt.ptx.isa import Memory

_INTEGERS = ("u32", "s32", "b32", "u64", "s64", "b64")


def commutes_as(view: View, index: int) -> str:
    """The operator and type of an integer atomic whose result nothing reads: ``+.u32``; "" for others.

    Such atomics of one operator and type leave the same values in any order.
    """
    statement = view.body[index]
    assert isinstance(statement, Instruction)
    facts = isa.facts(statement)
    kind = statement.parts[-1]
    read = effects.writes(statement) & view.liveness.live_after(index)
    free = facts.memory is Memory.ATOMIC and kind in _INTEGERS and not read
    return f"{facts.reduction}.{kind}" if free and facts.reduction else ""
