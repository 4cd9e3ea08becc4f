"""Atomic operations that ptxas combines: one operation on an address for all lanes of a warp that perform it together.

        atom.global.add.u32 %r1, [%rd1], 1;     32 lanes: one addition of 32, and each lane's share of the old value

The GPU performs one operation per address and cycle. Lanes that reach it at different times, because the rewrite has
them run their iterations apart, perform several. Appending to a worklist and counting hits are of this kind.
"""

from __future__ import annotations

from cccopt.ccc.function.view import View
from cccopt.ccc.legality.atomics import commutes_as
from cccopt.ptx import isa
from cccopt.ptx.ir import Instruction, Literal, Register

COMBINED = 528.0
"""Issue slots that pass during an operation on an address: those of a cycle of an H200, with 132 x 4 schedulers."""

_OF_ONE_VALUE = ("u32", "s32", "u64", "s64", "b32", "b64")
_OF_ANY_VALUES = ("u32", "s32", "b32")
"""The types for which ptxas combines additions of one value, and for which `redux` combines different values."""


def is_combined(view: View, index: int) -> bool:
    """Whether ptxas combines the operations of the lanes that run statement ``index`` together."""
    statement = view.body[index]
    if not isinstance(statement, Instruction):
        return False
    facts = isa.facts(statement)
    if facts.memory is not isa.Memory.ATOMIC or facts.space not in ("global", "generic"):
        return False
    if view.lane_strides.of_access(index) != 0:
        return False
    kind = statement.parts[-1]
    if commutes_as(view, index) and kind in _OF_ANY_VALUES:
        return True
    value = statement.operands[-1]
    same = isinstance(value, Literal) or (
        isinstance(value, Register) and view.uniformity.is_uniform_use(index, value.name)
    )
    return same and facts.reduction == "+" and kind in _OF_ONE_VALUE
