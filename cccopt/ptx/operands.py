"""The actions of the PTX grammar for names, constants and instructions; `builder` has the rest.

Lark calls a method when it reduces its rule, so the order of the text holds: a ``.reg`` is seen before the names
that it declares are used. A stack of scopes resolves names while parsing (PTX ISA 9.0, 4.4 and 5.2).
"""

from __future__ import annotations

from typing import Any, TypeAlias

from lark import Transformer

from cccopt.ptx import ir
from cccopt.ptx.constants import number, value_of
from cccopt.ptx.special import SPECIAL_TYPES, shadows_special
from cccopt.ptx.tokens import Token
from cccopt.ptx.whole import go_without_saying, instruction_parts
from cccopt.text import Position, shortened

Children: TypeAlias = "list[Any]"

MOST_OPEN = 100
"""The most brackets that may be open in one statement; no real code nests deeper, and walks would overflow."""

_MOST_PREFIXED = 1000  # tokens of a constant expression after a sign


class MalformedError(Exception):
    """Text that fits the grammar but cannot become a node; the parser turns it into a `PtxError`."""

    def __init__(self, code: str, message: str, position: Position, help: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.position = position
        self.help = help


def position_of(token: Token) -> Position:
    """Where ``token`` is in the text."""
    return Position(token.line or 1, token.column or 1)


def integer_of(token: Token) -> int:
    """The value of an integer token."""
    digits = token.value
    if len(digits) < 19 and digits.isdecimal() and digits[0] != "0":
        return int(digits)
    try:
        value = number(digits)
    except ValueError:
        value = 0.0
    if isinstance(value, float):
        raise MalformedError("CCC001", f"`{shortened(digits)}` is not an integer", position_of(token))
    if value >> 64:
        raise MalformedError("CCC001", f"`{shortened(digits)}` has more than 64 bits", position_of(token))
    return value


class OperandBuilder(Transformer[Token, ir.Module]):
    """Builds instructions and their operands; call ``reset`` before each text."""

    def __init__(self) -> None:
        super().__init__()
        self.reset()

    def reset(self) -> None:
        """Forget the scopes and names of the previous text."""
        # Whether each name is that of a register: the module's scope, that of the parameters, then those in braces.
        # Registers named `%...` are left out, unless a variable or special register also has such a name.
        self._scopes: list[dict[str, bool]] = [{}, {}]
        self._percent = False
        self._names: dict[str, ir.Operand] = {}
        # The parts of statements that are one token; many recur in kernels made from one template.
        self._wholes: dict[str, Any] = {}
        self._last = Token("NUMBER", "0", line=1, column=1)  # of a constant expression, for errors
        # Whether a declaration of several variables was seen: it is a list among the statements.
        self._split = False
        # Whether the current instruction has parentheses: outside the lists of a call they belong to an expression.
        self._grouped = False
        self._open = 0  # open brackets
        self._declared = 0  # names that counts declare in the current function

    # --- tokens ---

    def opened(self, token: Token) -> Token:
        """Count an opening bracket, before the parser puts it on its stack."""
        self._open += 1
        if self._open - len(self._scopes) >= MOST_OPEN:
            raise MalformedError(
                "CCC001", "nested too deeply", position_of(token),
                f"at most {MOST_OPEN} brackets may be open in one statement",
            )  # fmt: skip
        return token

    def closed(self, token: Token) -> Token:
        """Count a closing bracket."""
        self._open -= 1
        return token

    # --- names ---

    def _declare(self, name: str, count: int | None) -> None:
        self._percent = self._percent or shadows_special(name, count)
        if self._percent or not name.startswith("%"):
            names = [name] if count is None else [f"{name}{i}" for i in range(count)]
            self._scopes[-1].update(dict.fromkeys(names, True))
            self._names.clear()

    def _declare_symbol(self, name: str, scope: int) -> None:
        """Record a variable or function, but only if its name could also mean a register."""
        percent = name.startswith("%")
        if percent or any(name in scope for scope in self._scopes):
            self._percent = self._percent or percent
            self._scopes[scope][name] = False
            self._names.clear()

    def _register(self, token: Token) -> ir.Register:
        return ir.Register(token.value)

    def _resolve(self, name: str) -> ir.Operand:
        operand = self._names.get(name)
        if operand is None:
            operand = self._names[name] = self._classify(name)
        return operand

    def _classify(self, name: str) -> ir.Operand:
        if name == "_":
            return ir.Wildcard()
        stem, _, component = name.partition(".")
        register: bool | None = None
        if self._percent or not stem.startswith("%"):
            register = next((scope[stem] for scope in reversed(self._scopes) if stem in scope), None)
        if register is None and name in SPECIAL_TYPES:
            return ir.SpecialRegister(name)
        if register is None:
            register = stem.startswith("%")
        if not register:
            return ir.Symbol(name)
        return ir.Component(ir.Register(stem), component) if component else ir.Register(stem)

    def _operand(self, child: Any) -> Any:
        if child.__class__ is tuple:
            base, offset = child
            resolved = self._operand(base)
            if not isinstance(resolved, (ir.Symbol, ir.Register)):
                raise MalformedError("CCC001", f"unexpected offset after `{base}`", position_of(base))
            return ir.Indexed(resolved, offset)
        if child.__class__ is not Token:
            return self._valued(child) if child.__class__ is ir.Expression else child
        if child.type == "NUMBER":
            return ir.Literal(child.value)
        return self._names.get(child.value) or self._resolve(child.value)

    # --- constant expressions ---

    def _words(self, child: Any) -> tuple[str, ...]:
        """The tokens of one value of a constant expression."""
        match child:
            case (
                Token(type="NUMBER" | "WARP_SZ" | "OPERATOR") | Token(value="+" | "-" | "|" | "<" | ">" | ":")
            ):
                self._last = child
                return (child.value,)
            case ir.Literal(spelling):
                return ("-", spelling[1:]) if spelling.startswith("-") else (spelling,)
            case ir.SpecialRegister("WARP_SZ"):
                return ("WARP_SZ",)
            case ir.Expression(words):
                return words
            case ir.Group((element,)):
                return ("(", *self._words(element), ")")
        raise MalformedError(
            "CCC001", "a constant expression cannot hold this operand", position_of(self._last)
        )

    def _valued(self, child: Any) -> ir.Literal | ir.Expression:
        """``child`` as a node; raises MalformedError if it has no value."""
        if child.__class__ is Token and child.type == "NUMBER":
            return ir.Literal(child.value)
        if child.__class__ is ir.Literal:
            return child
        try:
            expression = ir.Expression(self._words(child))
            value_of(expression)
        except ValueError as problem:
            raise MalformedError(
                "CCC001", f"not a constant expression: {problem}", position_of(self._last)
            ) from None
        return expression

    def minus(self, children: Children) -> ir.Literal | ir.Expression:
        (value,) = children
        if value.__class__ is Token and value.type == "NUMBER":
            return ir.Literal("-" + value.value)
        return self._prefixed(value, "-")

    def plus(self, children: Children) -> ir.Expression:
        return self._prefixed(children[0], "+")

    def unary(self, children: Children) -> ir.Expression:
        return self._prefixed(children[1], children[0].value)

    def unary_not(self, children: Children) -> ir.Expression:
        return self._prefixed(children[0], "!")

    def cast(self, children: Children) -> ir.Expression:
        return self._prefixed(children[1], "(", children[0].value, ")")

    def _prefixed(self, value: Any, *prefix: str) -> ir.Expression:
        words = self._words(value)
        if len(words) > _MOST_PREFIXED:  # each sign copies what follows it
            raise MalformedError("CCC001", "a constant expression that is too long", position_of(self._last))
        return ir.Expression((*prefix, *words))

    def calculation(self, children: Children) -> ir.Expression:
        return ir.Expression(tuple(word for child in children for word in self._words(child)))

    def operator(self, children: Children) -> Token:
        return children[0]  # type: ignore[no-any-return]

    # --- instructions ---

    def instruction(self, children: Children) -> ir.Instruction:
        opcode = children[0]
        return self._instruction(opcode, children[1:], None, opcode)

    def whole(self, children: Children) -> ir.Instruction:
        token = children[0]
        parts = None if self._percent else self._wholes.get(token.value)
        if parts is None:
            parts = instruction_parts(token.value, self._resolve)
            if go_without_saying(parts[1]):
                self._wholes[token.value] = parts
        opcode, operands, guard, offset = parts
        return ir.Instruction(
            opcode, operands, guard, Position(token.line or 1, (token.column or 1) + offset)
        )

    def guarded(self, children: Children) -> ir.Instruction:
        return self._guarded(children, False)

    def guarded_not(self, children: Children) -> ir.Instruction:
        return self._guarded(children, True)

    def _guarded(self, children: Children, negated: bool) -> ir.Instruction:
        guard, opcode = children[0], children[1]
        return self._instruction(opcode, children[2:], ir.Guard(ir.Register(guard.value), negated), guard)

    def _instruction(
        self, opcode: Token, children: Children, guard: ir.Guard | None, first: Token
    ) -> ir.Instruction:
        name: str = opcode.value
        while children and children[0].__class__ is Token and children[0].type == "MODIFIERS":
            name += children.pop(0).value
        operands = [self._operand(c) for c in children]
        if self._grouped or name.startswith("br"):
            operands = self._special_operands(name.partition(".")[0], operands, children)
        return ir.Instruction(name, tuple(operands), guard, Position(first.line or 1, first.column or 1))

    def _special_operands(self, base: str, operands: Children, children: Children) -> Children:
        """Parentheses are lists only in a call; the last operand of a branch is a label, even ``%L``."""
        self._grouped = False
        if base in ("bra", "brx") and operands and isinstance(operands[-1], ir.Register | ir.SpecialRegister):
            operands[-1] = ir.Symbol(children[-1].value)
        if base == "call":
            return operands
        return [self._valued(o) if isinstance(o, ir.Group) and len(o.elements) == 1 else o for o in operands]

    def negative(self, children: Children) -> ir.Negative:
        operand = self._resolve(children[0].value)
        if not isinstance(operand, ir.Register | ir.Component):
            raise MalformedError("CCC001", f"`-{children[0]}` is not a register", position_of(children[0]))
        return ir.Negative(operand)

    def inverse(self, children: Children) -> ir.Not:
        return ir.Not(self._register(children[0]))

    def pair(self, children: Children) -> ir.Pair:
        return ir.Pair(self._operand(children[0]), self._operand(children[1]))

    def sum(self, children: Children) -> tuple[Token, ir.Literal | ir.Expression]:
        return children[0], self._valued(children[1])

    def sum_negative(self, children: Children) -> tuple[Token, ir.Literal]:
        return children[0], ir.Literal("-" + children[1].value)

    def element(self, children: Children) -> ir.Indexed:
        return ir.Indexed(ir.Symbol(children[0].value), ir.Literal(children[1].value), bracketed=True)

    def address(self, children: Children) -> ir.Address:
        (inner,) = children
        if inner.__class__ is tuple:
            base, offset = inner
            return ir.Address(self._operand(base), offset)
        if inner.__class__ is ir.Expression and len(inner.tokens) == 3 and inner.tokens[1] == "+":
            return ir.Address(*map(ir.Literal, inner.tokens[::2]))
        return ir.Address(self._operand(inner))

    def texture_address(self, children: Children) -> ir.TextureAddress:
        return ir.TextureAddress(tuple(self._operand(c) for c in children))

    def vector(self, children: Children) -> ir.Vector:
        return ir.Vector(tuple([self._operand(c) for c in children]))

    def group(self, children: Children) -> ir.Group:
        self._grouped = True
        self._last = next((c for c in children if c.__class__ is Token), self._last)
        return ir.Group(tuple([self._operand(c) for c in children]))
