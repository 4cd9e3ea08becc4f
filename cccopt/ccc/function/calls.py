"""Which functions call which, the code that a call may run, and the shared variables of a function and its callees."""

from __future__ import annotations

from collections.abc import Iterable

from cccopt.ptx import isa
from cccopt.ptx.call_promotion import SYSTEM_CALLS
from cccopt.ptx.ir import (
    Address,
    Function,
    Indexed,
    Instruction,
    Module,
    Operand,
    Symbol,
    Variable,
)
from cccopt.ptx.isa import Control, callee_of

HARMLESS_CALLS = SYSTEM_CALLS
"""System calls that do not synchronize lanes, keep no state in them and do not write to what they are passed (CUDA C++
Programming Guide, 10)."""


def callees(function: Function) -> list[str]:
    """The functions that ``function`` calls by name, in order."""
    calls = (s for s in function.body or () if isinstance(s, Instruction) and s.base == "call")
    return [name for call in calls if (name := callee_of(call)) is not None]


def called(module: Module, names: Iterable[str]) -> set[str]:
    """``names`` and all functions that they call, directly or not."""
    bodies = {f.name: f for f in module.functions() if f.body is not None}
    found: set[str] = set()
    work = list(names)
    while work:
        name = work.pop()
        if name not in found:
            found.add(name)
            work += callees(bodies[name]) if name in bodies else []
    return found


def called_code(module: Module, name: str) -> tuple[Instruction, ...]:
    """All instructions that a call of the function ``name`` may run."""
    names = called(module, [name])
    bodies = {f.name: f.body for f in module.functions() if f.name in names and f.body is not None}
    return tuple(s for n in sorted(bodies) for s in bodies[n] if isinstance(s, Instruction))


def with_callees(module: Module, instruction: Instruction) -> list[Instruction]:
    """The instruction and all instructions that it may run by a call."""
    callee = callee_of(instruction) if isa.facts(instruction).control is Control.CALL else None
    return [instruction] if callee is None else [instruction, *called_code(module, callee)]


def shared_variables(module: Module, function: Function) -> tuple[Variable, ...]:
    """The shared variables that ``function`` or its callees declare or name."""
    names = called(module, [function.name])
    # The module may still hold the function itself as it was before a pass changed it.
    others = [f for f in module.functions() if f.name in names - {function.name} and f.body is not None]
    bodies = [function, *others] if function.body is not None else others
    statements = [s for f in bodies for s in f.body or ()]
    named = {
        name for s in statements if isinstance(s, Instruction) for o in s.operands for name in _symbols(o)
    }
    own = [s for s in statements if isinstance(s, Variable)]
    outer = [item for item in module.items if isinstance(item, Variable) and item.name in named]
    return tuple(v for v in (*own, *outer) if v.space == "shared")


def static_shared_bytes(module: Module, function: Function) -> int:
    """The bytes of static shared memory that ``function`` already uses, without alignment."""
    total = 0
    for variable in shared_variables(module, function):
        size = max(isa.width(variable.type.replace(" ", "").lstrip(".")) // 8, 1)
        for extent in variable.dimensions:
            size *= extent or 0
        total += size
    return total


def _symbols(operand: Operand) -> tuple[str, ...]:
    match operand:
        case Symbol(name):
            return (name,)
        case Address(base) | Indexed(base):
            return (base.name,) if isinstance(base, Symbol) else ()
    return ()
