"""Instructions and locations that are one token of ``ptx.lark``, like most of those that nvcc writes.

The nodes are the same as those that the grammar's longer rules make.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeAlias

from cccopt.ptx import ir

Parts: TypeAlias = "tuple[str, tuple[ir.Operand, ...], ir.Guard | None, int]"
"""Opcode, operands and guard of an instruction, and the offset of its first name."""

Where: TypeAlias = "tuple[int, int, int, str | None, int | None, tuple[int, int, int] | None]"
"""The fields of an `ir.Location`, except its position."""

_OPERAND = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^\s,;]+")
_ELEMENT = re.compile(r"[^\s,{}]+")
_FIRST = re.compile(r"@|[a-zA-Z_$%][\w$]*(\.\w+(::\w+){0,9}){0,99}")


def instruction_parts(text: str, resolve: Callable[[str], ir.Operand]) -> Parts:
    """The parts of ``@%p1 opcode operand, ...;``; ``resolve`` gives the operand that a name means."""
    head, *rest = text.split(None, 1)
    guard, offset = None, 0
    if head[0] == "@":
        offset = 2 if head[1] == "!" else 1
        guard = ir.Guard(ir.Register(head[offset:]), offset == 2)
        head, *rest = rest[0].split(None, 1)
    operands = [_operand(part, resolve) for part in _OPERAND.findall(rest[0])] if rest else []
    return head.rstrip(";"), tuple(operands), guard, offset


def _operand(part: str, resolve: Callable[[str], ir.Operand]) -> ir.Operand:
    if part[0] == "[":
        name, plus, offset = part[1:-1].partition("+")
        return ir.Address(resolve(name), ir.Literal(offset) if plus else None)  # type: ignore[arg-type]
    if part[0] == "{":
        return ir.Vector(tuple([_operand(element, resolve) for element in _ELEMENT.findall(part)]))
    return ir.Literal(part) if part[0] in "-0123456789" else resolve(part)


def go_without_saying(operands: Iterable[ir.Operand]) -> bool:
    """Whether operands mean the same in each scope of a text in which no variable is named ``%...``."""
    return all(
        go_without_saying([operand.base])
        if isinstance(operand, ir.Address)
        else go_without_saying(operand.elements)
        if isinstance(operand, ir.Vector)
        else operand.name.startswith("%")
        if isinstance(operand, ir.Register)
        else isinstance(operand, ir.Literal | ir.SpecialRegister)
        for operand in operands
    )


def location_parts(text: str) -> Where:
    """The parts of ``.loc 1 2 3, function_name name+4, inlined_at 1 2 3``."""
    place, *clauses = text[len(".loc") :].split(",")
    file, line, column = map(int, place.split())
    function: str | None = None
    offset: int | None = None
    inlined_at: tuple[int, int, int] | None = None
    for clause in clauses:
        keyword, *words = clause.split()
        if keyword == "function_name":
            function, plus, number = words[0].partition("+")
            offset = int(number) if plus else None
        else:
            inlined_at = (int(words[0]), int(words[1]), int(words[2]))
    return file, line, column, function, offset, inlined_at


def first_part(text: str) -> str:
    """The token that a whole statement would begin with if its parts were tokens."""
    found = _FIRST.match(text)
    return ".loc" if text.startswith(".") or found is None else found[0]
