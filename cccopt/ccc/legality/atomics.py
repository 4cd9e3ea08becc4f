"""Which atomics may be done in any order."""

from __future__ import annotations

from cccopt.analysis import effects
from cccopt.ccc.function.view import View
from cccopt.ptx.ir import Instruction

_INTEGERS = ("u32", "s32", "b32", "u64", "s64", "b64")
_COMMUTATIVE = ("add", "and", "or", "xor", "min", "max")


def commutes_as(view: View, index: int) -> str:
    """The operation and type of an integer atomic whose result nothing reads: ``add.u32``; "" for others.

    In whatever order such ones of one operation are done, they leave the same behind.
    """
    statement = view.body[index]
    assert isinstance(statement, Instruction)
    operation = next((part for part in statement.parts if part in _COMMUTATIVE), "")
    kind = statement.parts[-1]
    read = effects.writes(statement) & view.liveness.live_after(index)
    free = statement.base in ("atom", "red") and kind in _INTEGERS and not read
    return f"{operation}.{kind}" if free and operation else ""
