"""Check that a module is well formed: names, labels, operand counts, predicates and widths (PTX ISA 9.0, 4 to 7, 9).

The check runs on the input and between passes, so that the first wrong state is found where it arises. What only
ptxas can judge (which types an opcode takes, which forms of it a target has) is left to ptxas.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from cccopt.diagnostic import error
from cccopt.ptx.errors import PtxError
from cccopt.ptx.ir import (
    Address,
    BranchTargets,
    CallPrototype,
    Close,
    Component,
    Directive,
    Function,
    Group,
    Indexed,
    Instruction,
    Item,
    Label,
    Literal,
    Module,
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
    TextureAddress,
    Variable,
    Vector,
)
from cccopt.ptx.isa import WIDTHS, Control, Role, declared_names, facts, width
from cccopt.ptx.isa_rows import introduced, operand_count
from cccopt.ptx.language import Language
from cccopt.ptx.printer import print_operand, print_statement
from cccopt.ptx.special import SPECIAL_TYPES
from cccopt.text import QUOTED, Place, Position, SourceText, shortened

_PARTS = frozenset("xyzwrgba")  # of a vector; a video instruction selects `b0` to `b3` and `h0` to `h1`
_FLOATS = frozenset(("f16", "f32", "f64"))


def verify(
    module: Module,
    source: SourceText | str = "<ptx>",
    undeclared: frozenset[str] = frozenset(),
    before: Module | None = None,
) -> None:
    """Raise a `PtxError` that names the first thing in ``module`` that is wrong.

    ``source`` is the text that it was parsed from, or only the name of the text: then errors quote the module as it
    prints. Names in ``undeclared`` need no declaration: the module's consumer provides these functions. ``before``
    is a module that passes: if all is the same around its functions, those that ``module`` shares with it pass too.

    CCC006: a register, label, function or variable that is not declared. CCC007: one that is declared
    twice. CCC008: a wrong number of operands, a predicate where none is allowed or vice versa, a
    register of the wrong width, an instruction that is newer than the module's ``.version`` or ``.target``.
    CCC009: scopes that do not close.
    """
    if isinstance(source, str):
        source = SourceText(source, "")
    names = {*_module_names(module, source), *undeclared}
    language = Language.of(module)
    registers = [item for item in module.items if isinstance(item, RegisterDeclaration)]
    passed: dict[str, Function] = {}
    if before is not None and _around_functions(before) == _around_functions(module):
        passed = {function.name: function for function in before.functions()}
    forms: set[tuple[str, int]] = set()
    for function in module.functions():
        if function.body is not None and passed.get(function.name) != function:
            _Verifier(function, names, registers, source, language, forms).run()


def _around_functions(module: Module) -> list[Item | str]:
    """What the functions of a module may refer to: its items, with functions as their names."""
    return [item.name if isinstance(item, Function) else item for item in module.items]


def _module_names(module: Module, source: SourceText) -> Iterator[str]:
    defined: set[str] = set()
    for item in module.items:
        if isinstance(item, Function | Variable):
            yield item.name if isinstance(item, Function) or item.count is None else ""
            if isinstance(item, Variable) and item.count is not None:
                yield from (f"{item.name}{i}" for i in range(item.count))
            extern = item.body is None if isinstance(item, Function) else "extern" in item.linkage
            if not extern and item.name in defined:
                place = None if item.position is None or not source.text else source.place(item.position)
                raise PtxError(error("CCC007", f"`{item.name}` is defined twice", place))
            defined |= set() if extern else {item.name}
        elif isinstance(item, Directive) and item.name == ".alias":
            yield item.arguments[0]


def _is_integer(type_: str) -> bool:
    return type_[0] in "us" and type_[1:].isdigit()


@dataclass
class _Scope:
    """The names that one pair of braces declares: registers with their type, labels, other symbols."""

    registers: dict[str, str] = field(default_factory=dict)
    symbols: set[str] = field(default_factory=set)
    labels: set[str] = field(default_factory=set)


class _Verifier:
    """The walk over one function's body; ``scopes`` holds the open scopes, with that of the module's registers first.

    ``forms`` holds the opcodes, each with a number of operands, that have passed `_form`.
    """

    def __init__(
        self,
        function: Function,
        names: set[str],
        registers: list[RegisterDeclaration],
        source: SourceText,
        language: Language,
        forms: set[tuple[str, int]],
    ) -> None:
        self.source = source
        self.forms = forms
        self.language = language
        self.function = function
        self.names = names
        self.registers = registers
        self.statement: Statement | None = None
        self.scopes: list[_Scope] = []

    def run(self) -> None:
        body = self.function.body or ()
        labels = self._labels()
        self.scopes = [_Scope()]
        for declaration in self.registers:
            self._declare_registers(declaration)
        self.scopes.append(_Scope(labels=labels[-1]))
        for parameter in (*self.function.returns, *self.function.parameters):
            self._declare_variable(parameter)
        for index, statement in enumerate(body):
            self.statement = statement
            if isinstance(statement, Open):
                self.scopes.append(_Scope(labels=labels[index]))
            elif isinstance(statement, Close):
                self.scopes.pop()
            elif isinstance(statement, Instruction):
                self._instruction(statement)
            elif isinstance(statement, RegisterDeclaration):
                self._declare_registers(statement)
            elif isinstance(statement, Variable):
                self._declare_variable(statement)
            elif isinstance(statement, BranchTargets):
                for target in statement.targets:
                    self._symbol(target)

    def _fail(self, code: str, message: str, *, why: str = "", help: str = "") -> PtxError:
        position = self.function.position
        text = ""
        if self.statement is not None:
            position = self.statement.position
            text = print_statement(self.statement)
            message += f" in `{shortened(text.strip(), QUOTED)}`"
        place = None
        if position is not None and self.source.text:
            place = self.source.place(position)
        elif position is not None:
            place = Place(self.source.name, Position(position.line, 2), text)
        return PtxError(
            error(
                code,
                f"{message} {'in' if self.statement is None else 'of'} `{self.function.name}`",
                place,
                why=why,
                help=help,
            )
        )

    def _labels(self) -> dict[int, set[str]]:
        """The labels of each scope by the index of its `Open`; the function's own under -1."""
        labels: dict[int, set[str]] = {-1: set()}
        open_scopes = [-1]
        for index, statement in enumerate(self.function.body or ()):
            self.statement = statement
            if isinstance(statement, Open):
                open_scopes.append(index)
                labels[index] = set()
            elif isinstance(statement, Close):
                open_scopes.pop()
                if not open_scopes:
                    raise self._fail("CCC009", "a `}` without its `{`")
            elif isinstance(statement, Label | BranchTargets | CallPrototype):
                name = statement.name if isinstance(statement, Label) else statement.label
                if name in labels[open_scopes[-1]]:
                    raise self._fail("CCC007", f"label `{name}` is defined twice")
                labels[open_scopes[-1]].add(name)
        if len(open_scopes) > 1:
            self.statement = None
            raise self._fail("CCC009", "a `{` without its `}` in the body")
        self.statement = None
        return labels

    # --- declarations ---

    def _declare(self, name: str, type_: str | None) -> None:
        scope = self.scopes[-1]
        if name in scope.registers or name in scope.symbols:
            raise self._fail("CCC007", f"`{name}` is declared twice")
        if type_ is None:
            scope.symbols.add(name)
        else:
            scope.registers[name] = type_

    def _declare_registers(self, declaration: RegisterDeclaration) -> None:
        type_ = self._register_type(declaration.type)
        for declared in declaration.names:
            for name in declared_names(declared):
                self._declare(name, type_)

    def _declare_variable(self, variable: Variable) -> None:
        names = [variable.name]
        if variable.count is not None:
            names = [f"{variable.name}{i}" for i in range(variable.count)]
        for name in names:
            self._declare(name, self._register_type(variable.type) if variable.space == "reg" else None)

    def _register_type(self, spelled: str) -> str:
        """``.v4 .f32`` as ``v4.f32``."""
        type_ = spelled.replace(" ", "").lstrip(".")
        vector, _, element = type_.rpartition(".")
        if element not in WIDTHS or vector not in ("", "v2", "v4", "v8"):
            raise self._fail("CCC008", f"`{spelled}` is not a register type")
        return type_

    # --- uses ---

    def _type(self, register: Register) -> str:
        for scope in reversed(self.scopes):
            if register.name in scope.registers:
                return scope.registers[register.name]
        kind = "special register" if register.name.partition(".")[0] in SPECIAL_TYPES else "register"
        raise self._fail(
            "CCC006", f"undeclared {kind} `{register.name}`",
            help="declare it with a `.reg` earlier in this scope or in an enclosing one",
        )  # fmt: skip

    def _symbol(self, name: str) -> None:
        if name not in self.names and not any(
            name in scope.symbols or name in scope.labels for scope in self.scopes
        ):
            raise self._fail("CCC006", f"undeclared name `{name}`")

    def _label(self, operand: Operand) -> None:
        if not isinstance(operand, Symbol):
            raise self._fail("CCC008", f"`{print_operand(operand)}` is not a label")
        if not any(operand.name in scope.labels for scope in self.scopes):
            raise self._fail("CCC006", f"undefined label `{operand.name}`")

    def _instruction(self, instruction: Instruction) -> None:
        if instruction.guard is not None and self._type(instruction.guard.register) != "pred":
            raise self._fail("CCC008", f"guard `{instruction.guard.register.name}` is not a predicate")
        form = instruction.opcode, len(instruction.operands)
        if form not in self.forms:
            self._form(instruction)
            self.forms.add(form)
        row = facts(instruction)
        for operand, role, type_ in zip(instruction.operands, row.roles, row.types, strict=True):
            if role is Role.LABEL:
                self._label(operand)
            else:
                self._operand(instruction, operand, role, type_)
            if role is Role.DEF and isinstance(operand, Literal | SpecialRegister | Not | Negative):
                raise self._fail("CCC008", f"`{print_operand(operand)}` cannot be written")
        if row.control is Control.INDEXED and not self._is_branch_list(instruction.operands[-1]):
            raise self._fail("CCC006", "no `.branchtargets` with this label")

    def _form(self, instruction: Instruction) -> None:
        """Check that the module's language has the opcode and that it takes this number of operands."""
        count = operand_count(instruction.opcode)
        given = len(instruction.operands)
        if count is not None and (given < count[0] or (count[1] is not None and given > count[1])):
            most = "or more" if count[1] is None else f"to {count[1]}"
            takes = str(count[0]) if count[0] == count[1] else f"{count[0]} {most}"
            takes += " operand" if takes == "1" else " operands"
            raise self._fail("CCC008", f"`{instruction.opcode}` takes {takes}, not {given}")
        since = introduced(instruction)
        if since is not None and not self.language.has(instruction):
            version, target = since
            came = f"PTX {version}" + (f" and `{target}`" if target else "")
            raise self._fail(
                "CCC008",
                f"`{instruction.opcode}` requires {came}",
                help="raise the `.version` or `.target`",
            )

    def _is_branch_list(self, operand: Operand) -> bool:
        lists = (s.label for s in self.function.body or () if isinstance(s, BranchTargets))
        return isinstance(operand, Symbol) and operand.name in lists

    def _operand(self, instruction: Instruction, operand: Operand, role: Role, type_: str | None) -> None:
        match operand:
            case Register():
                self._check(instruction, operand, role, type_)
            case Not(register):
                self._check(instruction, register, role, type_)
            case Component(register, part) | Negative(Component(register, part)):
                if part in _PARTS and not self._type(register).startswith("v"):
                    raise self._fail(
                        "CCC008", f"register `{register.name}` is not a vector and has no component `.{part}`"
                    )
                self._type(register)
            case Negative(Register() as register):
                self._type(register)
            case SpecialRegister(name):
                if name not in SPECIAL_TYPES:
                    raise self._fail("CCC006", f"unknown special register `{name}`")
            case Symbol(name):
                self._symbol(name)
            case Address(base):
                self._operand(instruction, base, Role.ADDRESS, None)
                if isinstance(base, Register):
                    self._address(base)
            case Indexed(base):
                self._operand(instruction, base, role, None)
            case Pair(first, second):
                self._operand(instruction, first, role, type_)
                self._operand(instruction, second, role, "pred")
            case Vector(elements) if instruction.base == "mov":
                self._packing(instruction, elements, role, type_)
            case Vector(elements) | Group(elements) | TextureAddress(elements):
                # ptxas checks only the width: an `.f32` register may be among those of a `.v4.u32`.
                if isinstance(operand, Vector) and type_ not in (None, "pred"):
                    type_ = f"b{width(type_)}"
                for element in elements:
                    self._operand(instruction, element, role, type_)
                if isinstance(operand, Vector):
                    self._alike(elements)

    def _address(self, base: Register) -> None:
        declared = self._type(base)
        if declared == "pred" or declared in _FLOATS or declared == "b128":
            raise self._fail("CCC008", f"`.{declared}` register `{base.name}` cannot hold an address")

    def _alike(self, elements: tuple[Operand, ...]) -> None:
        """Check that the elements of a vector have the same width."""
        registers = [element for element in elements if isinstance(element, Register)]
        widths = {width(self._type(register)): register.name for register in registers}
        if len(widths) > 1:
            different = ", ".join(f"`{name}` has {bits} bits" for bits, name in widths.items())
            raise self._fail("CCC008", f"the elements of a vector differ: {different}")

    def _packing(
        self, instruction: Instruction, elements: tuple[Operand, ...], role: Role, type_: str | None
    ) -> None:
        """Check that the elements of a ``mov`` that packs or unpacks fill its type together or, in ``mov.v4``, each."""
        for element in elements:
            self._operand(instruction, element, role, None)
        registers = [element for element in elements if isinstance(element, Register)]
        if type_ is None or len(registers) < len(elements):
            return
        bits = [width(self._type(register)) for register in registers]
        if sum(bits) != width(type_) and any(b != width(type_) for b in bits):
            raise self._fail("CCC008", f"{sum(bits)} bits are packed into `.{type_}`")

    def _check(self, instruction: Instruction, register: Register, role: Role, type_: str | None) -> None:
        declared = self._type(register)
        if type_ is None or declared == type_:
            return
        vector, dot, element = declared.partition(".")
        if dot and vector in instruction.parts:  # the whole vector: `mov.v4.u32 v, %tid;`
            declared = element
        why = _misfit(type_, declared, facts(instruction).wider)
        if why:
            raise self._fail("CCC008", why.format(f"register `{register.name}`"))


@cache
def _misfit(type_: str, declared: str, wider: bool) -> str:
    """Why a ``declared`` register cannot be used as a ``type_``, with a gap for the register; empty if it can."""
    pair = {type_, declared}
    numbers = not pair.isdisjoint(_FLOATS) and any(map(_is_integer, pair))
    if numbers or (type_ == "pred") != (declared == "pred"):
        wanted = "a predicate" if type_ == "pred" else f"a `.{type_}`"
        return f"`.{declared}` {{}} where {wanted} belongs"
    expected, actual = width(type_), width(declared)
    if actual == expected or (wider and actual >= expected and declared not in _FLOATS):
        return ""
    return f"{{}} is {actual} bits wide, `.{type_}` is {expected}"
