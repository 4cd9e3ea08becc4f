"""A second copy of a body in its function or module: with labels of its own, and without what both copies share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cccopt.ptx.ir import (
    Body,
    BranchTargets,
    CallPrototype,
    Close,
    Instruction,
    Label,
    Marker,
    Open,
    Operand,
    RegisterDeclaration,
    Statement,
    Symbol,
    Variable,
)
from cccopt.ptx.isa import Control, facts


def once_more(body: Body, moved: frozenset[str]) -> tuple[Statement, ...]:
    """The original body, to follow the counted one, whose declarations it shares."""
    kept: list[Statement] = []
    depth = 0
    for statement in body:
        depth += isinstance(statement, Open) - isinstance(statement, Close)
        shared = isinstance(statement, RegisterDeclaration | Variable | CallPrototype)
        if isinstance(statement, BranchTargets):
            shared = statement.directive == ".calltargets"
        if isinstance(statement, Marker) or (isinstance(statement, Variable) and statement.name in moved):
            continue
        if depth or not shared:
            kept.append(statement)
    return relabelled(kept, "__ccc_plain")


def relabelled(body: Sequence[Statement], ending: str = "__ccc") -> tuple[Statement, ...]:
    """The body with labels of its own: debug information refers to those of the plain function."""
    labels = {s.name for s in body if isinstance(s, Label)}
    labels |= {s.label for s in body if isinstance(s, BranchTargets) and s.directive == ".branchtargets"}

    def new(name: str) -> str:
        return f"{name}{ending}" if name in labels else name

    def changed(statement: Statement) -> Statement:
        match statement:
            case Label(name):
                return replace(statement, name=new(name))
            case BranchTargets(label, ".branchtargets", targets):
                return replace(statement, label=new(label), targets=tuple(map(new, targets)))
            case Instruction() if facts(statement).control is Control.BRANCH or statement.base == "brx":
                operands: tuple[Operand, ...] = tuple(
                    Symbol(new(o.name)) if isinstance(o, Symbol) else o for o in statement.operands
                )
                return replace(statement, operands=operands)
        return statement

    return tuple(map(changed, body))
