"""Resolve names by scope: a register becomes a slot of the register file, a variable its address."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cccopt.emulator.errors import MALFORMED, UNSUPPORTED, EmulatorError
from cccopt.emulator.layout import KernelLayout, SymbolAddress, bytes_of
from cccopt.emulator.literals import integer
from cccopt.emulator.pieces import Decoded, MemoryOperand, Modified, Modifier, OperandList, Slot
from cccopt.emulator.places import Places
from cccopt.emulator.semantics import PRED, Type
from cccopt.ptx import isa
from cccopt.ptx.ir import (
    Address,
    Close,
    Function,
    Group,
    Indexed,
    Instruction,
    Literal,
    Marker,
    Negative,
    Not,
    Open,
    Operand,
    Pair,
    Register,
    RegisterDeclaration,
    SpecialRegister,
    Statement,
    Symbol,
    Variable,
    Vector,
    Wildcard,
)
from cccopt.ptx.isa import Control


@dataclass(frozen=True)
class _Declared:
    """A register that no instruction has named so far. nvcc declares many more registers than it uses."""

    name: str
    type: str


@dataclass
class _Scopes:
    """The names that are visible in a function, with the innermost scope last."""

    function: str
    chain: list[dict[str, object]] = field(default_factory=lambda: [{}])

    @property
    def innermost(self) -> dict[str, object]:
        return self.chain[-1]


class Resolver:
    """Resolves the operands of one function after another.

    ``slots`` holds the registers of all of them; ``formals`` the resolved results and parameters of each.
    """

    def __init__(self, layout: KernelLayout, places: Places) -> None:
        self._layout = layout
        self._places = places
        self.slots: list[Slot] = []
        self.formals: dict[str, tuple[tuple[object, ...], tuple[object, ...]]] = {}

    def instructions(self, function: Function, body: tuple[Statement, ...]) -> dict[int, Decoded]:
        """The instructions of ``function`` with resolved operands, by the index of their statement."""
        scopes = _Scopes(function.name)
        self._interface(function, scopes.innermost)
        found: dict[int, Decoded] = {}
        overhead = False
        for index, statement in enumerate(body):
            if isinstance(statement, Open):
                scopes.chain.append({})
            elif isinstance(statement, Close):
                scopes.chain.pop()
            elif isinstance(statement, RegisterDeclaration):
                _declare(statement, scopes.innermost)
            elif isinstance(statement, Variable):
                scopes.innermost[statement.name] = self._variable(function, statement)
            elif isinstance(statement, Marker):
                if statement.event.startswith("overhead."):
                    overhead = statement.event == "overhead.begin"
            elif isinstance(statement, Instruction):
                found[index] = self._instruction(statement, index, scopes, overhead)
        return found

    # --- declarations --------------------------------------------------------------------------------------------

    def _interface(self, function: Function, scope: dict[str, object]) -> None:
        """Puts the results and parameters of ``function`` into its scope."""
        for variable in (*function.returns, *function.parameters):
            if variable.space == "reg":
                scope[variable.name] = self._slot(_Declared(variable.name, variable.type))
            elif function.kind == "entry":
                scope[variable.name] = SymbolAddress("param", self._layout.kernel_parameter(variable))
            else:
                scope[variable.name] = self._layout.parameter_variable(variable)
        self.formals[function.name] = (
            tuple(scope[variable.name] for variable in function.returns),
            tuple(scope[variable.name] for variable in function.parameters),
        )

    def _slot(self, declared: _Declared) -> Slot:
        if declared.type.endswith("128"):
            raise self._places.error(
                UNSUPPORTED, f"register `{declared.name}` of type {declared.type} is not supported"
            )
        slot = Slot(len(self.slots), register_dtype(declared.type), declared.name)
        self.slots.append(slot)
        return slot

    def _variable(self, function: Function, variable: Variable) -> object:
        layout = self._layout
        if variable.space == "param":
            return layout.parameter_variable(variable)
        if variable.space == "local":
            return SymbolAddress("local", layout.local(function.name, variable))
        if variable.space == "shared":
            name = f"{function.name}:{variable.name}"
            return SymbolAddress("shared", layout.shared_variable(name, variable))
        raise self._places.error(
            UNSUPPORTED,
            f"variable `{variable.name}` of space .{variable.space} in a function is not supported",
            function=function.name,
        )

    # --- instructions --------------------------------------------------------------------------------------------

    def _instruction(self, instruction: Instruction, index: int, scopes: _Scopes, overhead: bool) -> Decoded:
        def problem(code: str, message: str) -> EmulatorError:
            return self._places.error(code, message, function=scopes.function, statement=index)

        def resolve(operand: Operand) -> object:
            if isinstance(operand, Register):
                return register(operand)
            if isinstance(operand, Symbol):
                found = self._symbol(operand, instruction, scopes)
                if found is None:
                    raise problem(MALFORMED, f"unknown name `{operand.name}`")
                return found
            if isinstance(operand, Literal | SpecialRegister | Wildcard):
                return operand
            if isinstance(operand, Address | Indexed):
                offset = 0 if operand.offset is None else integer(operand.offset.spelling)
                return MemoryOperand(resolve(operand.base), offset)
            if isinstance(operand, Vector | Group):
                return OperandList(tuple(resolve(element) for element in operand.elements))
            if isinstance(operand, Pair):
                return OperandList((resolve(operand.first), resolve(operand.second)))
            if isinstance(operand, Not | Negative):
                modifier = Modifier.NOT if isinstance(operand, Not) else Modifier.NEGATIVE
                return Modified(modifier, resolve(operand.operand))
            raise problem(UNSUPPORTED, f"`{instruction.opcode}`: this kind of operand is not supported")

        def register(operand: Register) -> Slot:
            found = self._look_up(operand.name, scopes)
            if not isinstance(found, Slot):
                raise problem(MALFORMED, f"unknown register `{operand.name}`")
            return found

        guard = None if instruction.guard is None else register(instruction.guard.register)
        operands = tuple(resolve(operand) for operand in instruction.operands)
        negated = instruction.guard is not None and instruction.guard.negated
        return Decoded(scopes.function, index, instruction, operands, guard, negated, overhead)

    def _symbol(self, operand: Symbol, instruction: Instruction, scopes: _Scopes) -> object | None:
        """What a name means; labels and functions that are called are left as they are."""
        if isa.facts(instruction).control in (Control.BRANCH, Control.INDEXED):
            return operand
        found = self._look_up(operand.name, scopes)
        if found is None and instruction.base == "call":
            return operand
        return self._layout.module_symbol(operand.name) if found is None else found

    def _look_up(self, name: str, scopes: _Scopes) -> object | None:
        for scope in reversed(scopes.chain):
            if name in scope:
                found = scope[name]
                if isinstance(found, _Declared):
                    found = scope[name] = self._slot(found)
                return found
        return None


def _declare(declaration: RegisterDeclaration, scope: dict[str, object]) -> None:
    for names in declaration.names:
        spelled = [names.name] if names.count is None else [f"{names.name}{i}" for i in range(names.count)]
        for name in spelled:
            scope[name] = _Declared(name, declaration.type)


def register_dtype(type_name: str) -> Type:
    """The type in which the values of a register of a declared type (``.b32``, ``.f32``, ``.pred``) are stored."""
    name = type_name.strip().lstrip(".")
    if name == "pred":
        return PRED
    return np.dtype(f"u{bytes_of(name)}")
