"""Functions of which nobody sees whether they have run: they touch no memory but their own and what never changes, as
those of the math library that nvcc does not inline.
"""

from __future__ import annotations

from cccopt.analysis import cfg
from cccopt.analysis.memory import MemoryAliasing
from cccopt.analysis.reaching import reaching_definitions
from cccopt.ccc.function.calls import called
from cccopt.ptx import isa
from cccopt.ptx.ir import Function, Instruction, Module
from cccopt.ptx.isa import Control, Memory, callee_of

_UNCHANGING = frozenset({"param", "const"})


def is_silent(module: Module, name: str) -> bool:
    """Whether the function, with all that it calls, is one of them."""
    bodies = {f.name: f for f in module.functions() if f.body is not None}
    names = called(module, [name])
    return names <= bodies.keys() and all(_is_silent(module, bodies[each]) for each in sorted(names))


def _is_silent(module: Module, function: Function) -> bool:
    own: list[int] = []
    for index, statement in enumerate(function.body or ()):
        if not isinstance(statement, Instruction):
            continue
        facts = isa.facts(statement)
        if facts.control is Control.CALL:
            if callee_of(statement) is None:
                return False
        elif not facts.known or facts.fence or facts.volatile or facts.synchronises:
            return False
        elif facts.memory is not Memory.NONE and facts.space not in _UNCHANGING:
            if "nc" in statement.parts:
                continue
            if facts.space != "local":
                return False
            own.append(index)
    return not own or _in_its_frame(module, function, own)


def _in_its_frame(module: Module, function: Function, accesses: list[int]) -> bool:
    """Whether accesses to local memory are to variables of the function, and not to what a pointer leads to."""
    body = function.body or ()
    memory = MemoryAliasing(module, function, reaching_definitions(cfg.build(body), body))
    return all(root.kind == "variable" for index in accesses for root in memory.roots(index))
