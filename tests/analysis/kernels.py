"""Tiny kernels for the analyses' tests: a body between braces becomes a parsed module."""

from __future__ import annotations

from cccopt.ptx.ir import Function, Instruction, Module
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_statement

_HEADER = ".version 8.5\n.target sm_90\n.address_size 64\n"
_REGISTERS = ".reg .pred %p<10>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<40>;\n.reg .f32 %f<10>;\n"
_PARAMETERS = ".param .u32 n, .param .u64 a, .param .u64 b"


def module(body: str, parameters: str = _PARAMETERS, before: str = "") -> Module:
    """A module of one kernel ``k`` with the usual registers declared, behind the declarations ``before``."""
    return parse(f"{_HEADER}{before}\n.visible .entry k({parameters})\n{{\n{_REGISTERS}{body}\n}}\n")


def kernel(body: str, parameters: str = _PARAMETERS, before: str = "") -> Function:
    """The kernel of `module`."""
    return next(f for f in module(body, parameters, before).functions() if f.name == "k")


def device_function(body: str) -> Function:
    """A device function ``f`` with one parameter ``n`` and the usual registers declared."""
    return next(parse(f"{_HEADER}\n.func f(.param .b32 n)\n{{\n{_REGISTERS}{body}\n}}\n").functions())


def find(function: Function, text: str, place: int = 0) -> int:
    """The index of the ``place``-th instruction that holds ``text`` when printed with single blanks."""
    body = function.body or ()
    printed = (
        (i, " ".join(print_statement(s).split())) for i, s in enumerate(body) if isinstance(s, Instruction)
    )
    return [index for index, words in printed if text in words][place]
