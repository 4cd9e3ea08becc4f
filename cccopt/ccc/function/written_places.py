"""From which of its parameters a function computes the addresses that it writes to.

    put(place, x):    *place = x;               {place}
    add(sums, k, x):  sums[k] += x;             {sums, k}
    size(place):      return place - pool;      {}

The order of statements does not count, and all that a function keeps in local memory counts as one value. What other
memory holds comes from no parameter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cccopt.analysis import effects
from cccopt.ccc.function.call_sequences import symbols_of
from cccopt.ccc.function.calls import called_code, callees
from cccopt.ptx import isa
from cccopt.ptx.ir import Address, Function, Instruction, Module, Register
from cccopt.ptx.isa import Memory

_LOCAL = "local memory"
_WRITING = (Memory.STORE, Memory.ATOMIC)


def parameters_of_places(module: Module, name: str) -> frozenset[int]:
    """The parameters, by number, from which the function ``name`` computes addresses that it, or a function that it
    calls, writes to. None of a function without a body.
    """
    function = next((f for f in module.functions() if f.name == name and f.body is not None), None)
    if function is None:
        return frozenset()
    origins = _origins(function)
    calls_writers = any(
        writes_elsewhere(i) for callee in callees(function) for i in called_code(module, callee)
    )
    found: set[str] = set()
    for statement in _instructions(function):
        if writes_elsewhere(statement):
            found |= _of(origins, _bases(statement))
        elif statement.base == "st" and isa.facts(statement).space == "param" and calls_writers:
            found |= _of(origins, effects.reads(statement))
    return frozenset(n for n, p in enumerate(function.parameters) if p.name in found)


def writes_elsewhere(instruction: Instruction) -> bool:
    """Whether an instruction writes memory that may not be the thread's own; calls do not count."""
    facts = isa.facts(instruction)
    return facts.memory in _WRITING and facts.space not in ("local", "param") and instruction.base != "call"


def _origins(function: Function) -> dict[str, set[str]]:
    """The parameters from which what each register holds is computed."""
    parameters = {p.name for p in function.parameters}
    origins: dict[str, set[str]] = {}
    changed = True
    while changed:
        changed = False
        for statement in _instructions(function):
            sources, results = _flow(statement)
            made = _of(origins, sources) | (parameters & set(symbols_of(statement)))
            for result in results if made else ():
                known = origins.setdefault(result, set())
                changed = changed or not made <= known
                known |= made
    return origins


def _flow(statement: Instruction) -> tuple[Iterable[str], Iterable[str]]:
    """What a statement computes from what."""
    facts = isa.facts(statement)
    if facts.memory is Memory.NONE or facts.space == "param":
        return effects.reads(statement), effects.writes(statement)
    if facts.space not in ("local", "generic"):
        return (), ()
    if facts.memory is Memory.LOAD:
        return (_LOCAL,), effects.writes(statement)
    return effects.reads(statement) - _bases(statement), (_LOCAL,)


def _bases(statement: Instruction) -> frozenset[str]:
    """The registers of addresses."""
    return frozenset(
        o.base.name for o in statement.operands if isinstance(o, Address) and isinstance(o.base, Register)
    )


def _of(origins: dict[str, set[str]], names: Iterable[str]) -> set[str]:
    return set[str]().union(*(origins.get(name, ()) for name in names))


def _instructions(function: Function) -> Iterator[Instruction]:
    return (s for s in function.body or () if isinstance(s, Instruction))
