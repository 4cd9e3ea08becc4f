"""Loads that promise that nothing writes where they read (`ld.global.nc`) lose the promise where the kernel breaks it.

        selp.b64 %rd3, %rd1, %rd2, %p1;         %rd1: `a`, which nothing writes; %rd2: `b`
        ld.global.nc.u32 %r1, [%rd3];     ->    ld.global.u32 %r1, [%rd3];
        st.global.u32 [%rd2], %r2;

nvcc emits such loads for a pointer that may be either of two `__restrict__` parameters, one of them `const`. In program
order, they are correct. Later passes rely on the promise to change that order.

Loads through a pointer that can only be one parameter keep the promise: nvcc makes it for parameters through which
nothing is written, and with `__ldg` the program makes it itself. Safety: EXACT.
"""

from __future__ import annotations

from dataclasses import replace

from cccopt.ccc.function.view import View, view_of
from cccopt.passes.options import Options
from cccopt.passes.preparing import each_marked
from cccopt.passes.result import PassResult
from cccopt.ptx.ir import Function, Instruction, Module, Statement


def run(module: Module, options: Options) -> PassResult:
    """Take promises from loads of all marked functions; EXACT."""
    return PassResult(each_marked(module, options, _kept))


def _kept(module: Module, function: Function, options: Options) -> Function:
    del options
    loads = [index for index, statement in enumerate(function.body or ()) if _promises(statement)]
    if not loads:
        return function
    view = view_of(module, function)
    # The view has more labels, but the same loads.
    seen = [index for index, statement in enumerate(view.body) if _promises(statement)]
    broken = {mine for mine, its in zip(loads, seen, strict=True) if _is_broken(view, its)}
    if not broken:
        return function
    body = (_plain(s) if index in broken else s for index, s in enumerate(function.body or ()))
    return replace(function, body=tuple(body))


def _promises(statement: Statement) -> bool:
    return isinstance(statement, Instruction) and statement.base == "ld" and "nc" in statement.parts


def _plain(load: Statement) -> Statement:
    assert isinstance(load, Instruction)
    return replace(load, opcode=".".join(part for part in load.parts if part != "nc"))


def _is_broken(view: View, load: int) -> bool:
    """Whether a load of one of several places reads what some statement may write."""
    memory = view.memory
    if len(memory.roots(load)) < 2:
        return False
    access = replace(memory.access(load), constant=False)
    writes = (i for i, s in enumerate(view.body) if isinstance(s, Instruction) and memory.may_write(i))
    return any(memory.may_clash(access, memory.access(i)) for i in writes)
