"""Rewrites that must not change the machine code: what the ladder's upper rungs assemble.

None is of use by itself. Each leans on one thing that the table of instructions or an analysis says, so that
what is said wrongly shows as other machine code or none:

    rebuilt      every node is made anew from its fields      a field that the printer leaves out
    renamed      each register has another name               an operand in which no role sees its register
    clobbered    registers that are dead take a constant      a role that hides a read, an edge that is missing

`clobbered` adds instructions, which sway what ptxas unrolls or predicates even if nothing reads what they write. That
nothing does shows in machine code that stays the same under *other* constants in the same places.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from cccopt.analysis import cfg, effects, liveness
from cccopt.ptx import isa
from cccopt.ptx.ir import (
    Body,
    Close,
    Directive,
    Function,
    Instruction,
    Literal,
    Module,
    Open,
    Register,
    RegisterDeclaration,
    RegisterNames,
    Statement,
    Variable,
)
from cccopt.ptx.scopes import with_unique_names

HEAD_LIMIT = 24
"""Registers that take a constant at the head of one block: those that the blocks around it name, first."""


def rebuilt(node: Any) -> Any:
    """A deep copy of a tree of nodes in which every node is made anew from its fields."""
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        fields = {f.name: rebuilt(getattr(node, f.name)) for f in dataclasses.fields(node)}
        return type(node)(**fields)
    return tuple(rebuilt(child) for child in node) if type(node) is tuple else node


def without_debug(module: Module) -> Module:
    """``module`` for a target without ``debug``, so that ptxas optimizes it."""

    def optimized(item: Any) -> Any:
        if isinstance(item, Directive) and item.name == ".target":
            return replace(item, arguments=tuple(a for a in item.arguments if a != "debug"))
        return item

    return Module(tuple(optimized(item) for item in module.items))


def _each_body(module: Module, change: Callable[[Function], Function]) -> Module:
    """``module`` with ``change`` made to each function that has a body."""
    return Module(
        tuple(
            change(item) if isinstance(item, Function) and item.body is not None else item
            for item in module.items
        )
    )


# --- renamed ---


def renamed(module: Module, seed: int, *, reorder: bool) -> Module:
    """``module`` with every register under another name, no two of a kind of spelling.

    Numbers are dealt out at random; with ``reorder`` the declarations, too, stand in another order.
    """
    rng = random.Random(seed)
    return _each_body(with_unique_names(module), lambda function: _renamed(function, rng, reorder))


def _renamed(function: Function, rng: random.Random, reorder: bool) -> Function:
    names = list(isa.register_types(function))
    numbers = rng.sample(range(10 * len(names) + 1), len(names))
    spellings = ("%ccc{}", "ccc_{}", "$ccc{}", "_ccc_{}")
    new = {name: spellings[n % 4].format(n) for name, n in zip(names, numbers, strict=True)}
    registers = {old: Register(name) for old, name in new.items()}

    def variable(v: Variable) -> Variable:
        return replace(v, name=new[v.name]) if v.space == "reg" else v

    def statement(s: Statement) -> Statement:
        if isinstance(s, Instruction):
            return isa.rename(s, registers, registers)
        if not isinstance(s, RegisterDeclaration):
            return s
        declared = [RegisterNames(new[name]) for d in s.names for name in isa.declared_names(d)]
        if reorder:
            rng.shuffle(declared)
        return replace(s, names=tuple(declared))

    return replace(
        function,
        returns=tuple(map(variable, function.returns)),
        parameters=tuple(map(variable, function.parameters)),
        body=tuple(map(statement, function.body or ())),
    )


# --- clobbered ---


def clobbered(module: Module, seed: int, value: Callable[[int], int], *, heads: bool = True) -> Module:
    """``module`` with a constant written to registers that liveness calls dead.

    Ahead of each write that ends the life of its register's old value and, with ``heads``, to `HEAD_LIMIT`
    registers at the head of each block. ``seed`` chooses among them; ``value`` gives the constant for a number of
    bits, so that two calls with one seed differ in constants alone.
    """
    rng = random.Random(seed)
    return _each_body(with_unique_names(module), lambda function: _clobbered(function, rng, value, heads))


def _clobbered(function: Function, rng: random.Random, value: Callable[[int], int], heads: bool) -> Function:
    body = function.body or ()
    types = isa.register_types(function)
    visible = list(_visible(function, body))
    graph = cfg.build(body)
    live = liveness.liveness(graph, body)
    near = [
        {name for i in block.statements() for name in effects.needs(body[i]) | effects.writes(body[i])}
        for block in graph.blocks
    ]
    before: dict[int, list[str]] = {}
    for block in graph.blocks if heads else ():
        first = next((i for i in block.statements() if isinstance(body[i], Instruction)), None)
        if first is None:
            continue
        dead = [name for name in visible[first] if name not in live.live_before(first)]
        around = near[block.index].union(*(near[b] for b in graph.predecessors[block.index]))
        around = around.union(*(near[b] for b in graph.successors[block.index]))
        rng.shuffle(dead)
        dead.sort(key=lambda name: name not in around)
        before[first] = dead[:HEAD_LIMIT]
    for index, statement in enumerate(body):
        ended = effects.kills(statement) - live.live_before(index)
        before.setdefault(index, []).extend(sorted(ended.difference(before.get(index, []))))
    return replace(function, body=tuple(_with_constants(body, before, types, value)))


def _visible(function: Function, body: Body) -> Iterator[list[str]]:
    """The registers that are declared and in scope at each statement, in order of declaration."""
    parameters = [v.name for v in (*function.returns, *function.parameters) if v.space == "reg"]
    scopes: list[list[str]] = [parameters]
    now = list(parameters)
    for statement in body:
        if isinstance(statement, Open):
            scopes.append([])
        elif isinstance(statement, Close):
            scopes.pop()
            now = [name for scope in scopes for name in scope]
        elif isinstance(statement, RegisterDeclaration):
            scopes[-1] += [name for d in statement.names for name in isa.declared_names(d)]
            now = [name for scope in scopes for name in scope]
        yield now


def _with_constants(
    body: Body, before: dict[int, list[str]], types: dict[str, str], value: Callable[[int], int]
) -> Iterator[Statement]:
    for index, statement in enumerate(body):
        for name in before.get(index, ()):
            bits = 0 if "." in types[name] else isa.width(types[name])
            if bits in _MOVES:
                yield Instruction(_MOVES[bits], (Register(name), Literal(str(value(bits)))))
        yield statement


_MOVES = {1: "mov.pred", 16: "mov.b16", 32: "mov.b32", 64: "mov.b64"}
"""The instruction that writes a constant to a register of so many bits; vectors and 8 and 128 bits have none."""
