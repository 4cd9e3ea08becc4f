"""Names without scopes, so that analyses and rewrites can identify registers and labels by name.

Constant expressions become literals.

Inline assembly declares registers and labels in braces, and nvcc repeats the block at each use:

    { .reg .pred p;   setp.ne.s32 p, %r1, 0;    ... }
    { .reg .pred p_1; setp.ne.s32 p_1, %r2, 0;  ... }     (was `p` again)

A register named like a special one (`.reg .b32 %clock;`) also gets another name.

Then the braces around labels and registers are removed, so that basic blocks and statements can be copied and moved
separately. Other braces stay: call sequences keep their parameters in them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from cccopt.ptx.constants import with_constants
from cccopt.ptx.ir import (
    Body,
    BranchTargets,
    CallPrototype,
    Close,
    Function,
    Guard,
    Instruction,
    Label,
    Module,
    Open,
    Operand,
    Register,
    RegisterDeclaration,
    RegisterNames,
    SpecialRegister,
    Statement,
    Symbol,
    Variable,
)
from cccopt.ptx.isa import declared_names, substitute
from cccopt.ptx.special import SPECIAL_TYPES, shadows_special


def with_unique_names(module: Module) -> Module:
    """``module`` with every register and label of a function under a name that is unique in that function."""
    return Module(
        tuple(
            _function(item) if isinstance(item, Function) and item.body else item
            for item in with_constants(module).items
        )
    )


def scope_around(body: Body, call: int) -> tuple[int, int]:
    """The braces around a statement: -1 or the body's length where there is none."""
    depth, start = 0, call
    while start >= 0 and depth < 1:
        depth += isinstance(body[start], Open) - isinstance(body[start], Close)
        start -= depth < 1
    depth, stop = 0, call
    while stop < len(body) and depth < 1:
        depth += isinstance(body[stop], Close) - isinstance(body[stop], Open)
        stop += depth < 1
    return start, stop


def _function(function: Function) -> Function:
    body = function.body or ()
    if not _shadows(function) and (not any(isinstance(s, Open) for s in body) or _is_unique(function)):
        return function
    renamer = _Renamer(_scope_labels(body))
    return replace(
        function,
        returns=tuple(map(renamer.parameter, function.returns)),
        parameters=tuple(map(renamer.parameter, function.parameters)),
        body=_opened(tuple(renamer.rename(i, s) for i, s in enumerate(body))),
    )


def _is_unique(function: Function) -> bool:
    """Whether all names are already unique, as in a module made here, and no label or register is in a nested scope."""
    taken = {*SPECIAL_TYPES, *(v.name for v in (*function.returns, *function.parameters))}
    if len(taken) < len(SPECIAL_TYPES) + len(function.returns) + len(function.parameters):
        return False
    depth = 0
    for statement in function.body or ():
        names: tuple[str, ...] = ()
        if isinstance(statement, Open | Close):
            depth += 1 if isinstance(statement, Open) else -1
        elif isinstance(statement, Label | BranchTargets | CallPrototype):
            if depth:
                return False
            names = (statement.name if isinstance(statement, Label) else statement.label,)
        elif isinstance(statement, RegisterDeclaration):
            if depth:
                return False
            names = tuple(name for declared in statement.names for name in declared_names(declared))
        if not taken.isdisjoint(names) or len({*names}) < len(names):
            return False
        taken.update(names)
    return True


def _opened(body: Body) -> Body:
    """``body``, whose names are unique, without the braces of scopes that hold labels or registers and no variables."""
    scopes: list[_Scope] = []
    braces: set[int] = set()
    for index, statement in enumerate(body):
        if isinstance(statement, Open):
            scopes.append(_Scope(index))
        elif isinstance(statement, Close):
            scope = scopes.pop()
            if scope.has_name and not scope.has_variable:
                braces |= {scope.start, index}
            if scopes:
                scopes[-1].has_name |= scope.has_name
        elif scopes:
            scopes[-1].has_name |= isinstance(statement, Label | RegisterDeclaration)
            scopes[-1].has_variable |= isinstance(statement, Variable)
    return tuple(s for index, s in enumerate(body) if index not in braces)


@dataclass
class _Scope:
    """A scope that begins at statement ``start``."""

    start: int
    has_name: bool = False
    has_variable: bool = False


def _shadows(function: Function) -> bool:
    """Whether a register of ``function`` is named like a special one."""
    declared = [n for s in function.body or () if isinstance(s, RegisterDeclaration) for n in s.names]
    parameters = [RegisterNames(v.name, v.count) for v in (*function.returns, *function.parameters)]
    return any(shadows_special(names.name, names.count) for names in (*declared, *parameters))


def _scope_labels(body: Body) -> dict[int, list[str]]:
    """The labels of each nested scope by the index of its `Open`; the function's own under -1."""
    labels: dict[int, list[str]] = {-1: []}
    scopes = [-1]
    for index, statement in enumerate(body):
        if isinstance(statement, Open):
            scopes.append(index)
            labels[index] = []
        elif isinstance(statement, Close):
            scopes.pop()
        elif isinstance(statement, Label):
            labels[scopes[-1]].append(statement.name)
        elif isinstance(statement, BranchTargets | CallPrototype):
            labels[scopes[-1]].append(statement.label)
    return labels


@dataclass
class _Renamer:
    """The walk over a body: the new names that hold in each open scope, and all names given out so far."""

    labels: dict[int, list[str]]
    taken: set[str] = field(default_factory=lambda: set(SPECIAL_TYPES))
    scopes: list[dict[str, str]] = field(default_factory=lambda: [{}])
    numbers: dict[str | RegisterNames, int] = field(default_factory=dict)
    """The number that each name was last given; smaller ones stay taken."""

    def __post_init__(self) -> None:
        self.taken.update(self.labels[-1])

    def parameter(self, variable: Variable) -> Variable:
        if variable.space == "reg" and shadows_special(variable.name, variable.count):
            fresh = self._declare(RegisterNames(variable.name, variable.count))
            return replace(variable, name=fresh.name)
        self.taken.add(variable.name)
        return variable

    def rename(self, index: int, statement: Statement) -> Statement:
        match statement:
            case Open():
                self.scopes.append({name: self._fresh(name) for name in self.labels[index]})
            case Close():
                self.scopes.pop()
            case RegisterDeclaration():
                return replace(statement, names=tuple(map(self._declare, statement.names)))
            case Instruction():
                guard = statement.guard
                if guard is not None:
                    guard = Guard(Register(self._name(guard.register.name)), guard.negated)
                operands = tuple([self._operand(operand) for operand in statement.operands])
                if operands == statement.operands and guard == statement.guard:
                    return statement  # with its cached facts
                return replace(statement, guard=guard, operands=operands)
            case Label(name):
                return replace(statement, name=self._name(name))
            case BranchTargets(label, _, targets):
                return replace(statement, label=self._name(label), targets=tuple(map(self._name, targets)))
            case CallPrototype(label):
                return replace(statement, label=self._name(label))
        return statement

    def _fresh(self, name: str) -> str:
        number = self.numbers.get(name, 0)
        while (fresh := f"{name}_{number}" if number else name) in self.taken:
            number += 1
        self.numbers[name] = number
        self.taken.add(fresh)
        return fresh

    def _declare(self, declared: RegisterNames) -> RegisterNames:
        names = declared_names(declared)
        end = "_" if declared.count is not None else ""
        number = self.numbers.get(declared, 0)
        while True:
            fresh = replace(declared, name=f"{declared.name}_{number}{end}") if number else declared
            new_names = declared_names(fresh)
            if self.taken.isdisjoint(new_names):
                break
            number += 1
        self.numbers[declared] = number
        self.taken.update(new_names)
        self.scopes[-1].update(zip(names, new_names, strict=True))
        return fresh

    def _name(self, name: str) -> str:
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), name)

    def _operand(self, operand: Operand) -> Operand:
        if isinstance(operand, Symbol):
            return Symbol(self._name(operand.name))
        return substitute(operand, self._register)

    def _register(self, register: Register | SpecialRegister) -> Operand:
        return Register(self._name(register.name)) if isinstance(register, Register) else register
