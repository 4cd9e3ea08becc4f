"""Functions that access no memory that other code can see or change (`readnone` in LLVM).

Functions of the math library that nvcc does not inline are examples. A call of one may move past accesses to memory.
"""

from __future__ import annotations

from cccopt.analysis import cfg
from cccopt.analysis.constancy import reads_unchanging_memory
from cccopt.analysis.memory import MemoryAliasing
from cccopt.analysis.reaching import reaching_definitions
from cccopt.ccc.function.calls import called
from cccopt.ptx import isa
from cccopt.ptx.ir import Function, Instruction, Module
from cccopt.ptx.isa import Control, Memory, callee_of


def is_readnone(module: Module, name: str) -> bool:
    """Whether the function and all that it calls are such functions."""
    bodies = {f.name: f for f in module.functions() if f.body is not None}
    names = called(module, [name])
    return names <= bodies.keys() and all(_is_readnone(module, bodies[each]) for each in sorted(names))


def _is_readnone(module: Module, function: Function) -> bool:
    local: list[int] = []
    for index, statement in enumerate(function.body or ()):
        if not isinstance(statement, Instruction):
            continue
        facts = isa.facts(statement)
        if facts.control is Control.CALL:
            if callee_of(statement) is None:
                return False
        elif not facts.known or facts.fence or facts.volatile or facts.synchronises:
            return False
        elif facts.space == "local":
            local.append(index)
        elif not (
            facts.memory is Memory.NONE
            or facts.space == "param"
            or reads_unchanging_memory(statement, function)
        ):
            return False
    return not local or _in_its_frame(module, function, local)


def _in_its_frame(module: Module, function: Function, accesses: list[int]) -> bool:
    """Whether accesses to local memory go to variables of the function, and not to what a pointer leads to."""
    body = function.body or ()
    memory = MemoryAliasing(module, function, reaching_definitions(cfg.build(body), body))
    return all(root.kind == "variable" for index in accesses for root in memory.roots(index))
