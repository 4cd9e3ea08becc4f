"""Constant expressions and their values (PTX ISA 9.0, 4.5): ``(1+2)*3``, ``WARP_SZ-1``, ``x ? y : z``.

Integers have 64 bits and are signed unless they end in ``U``, are cast to ``.u64`` or are too large; floats are
doubles. The parser keeps the tokens of an expression, so it prints as it was; code that computes with it uses
`with_constants`.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from cccopt.ptx.ir import (
    Address,
    Expression,
    Function,
    Group,
    Indexed,
    Initializer,
    InitializerCall,
    InitializerList,
    Instruction,
    Item,
    Literal,
    Module,
    Operand,
    Register,
    SpecialRegister,
    Statement,
    Symbol,
    TextureAddress,
    Variable,
    Vector,
)

WARP_SIZE = 32
"""The value of ``WARP_SZ``: lanes of a warp."""


@dataclass(frozen=True, slots=True)
class _Integer:
    """A 64-bit integer; ``value`` is within the range of its type."""

    value: int
    unsigned: bool


_Value: TypeAlias = "_Integer | float"

_LEVELS: tuple[tuple[str, ...], ...] = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", "<=", ">", ">="), ("<<", ">>"), ("+", "-"),
    ("*", "/", "%"),
)  # fmt: skip
_LEVEL = {sign: level for level, signs in enumerate(_LEVELS) for sign in signs}
_MOST_NESTED = 150  # well within Python's recursion limit
_MOST_DIGITS = 1000

_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_FLOATS: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


def value_of(expression: Expression) -> Literal:
    """Return the value of ``expression`` as a literal; raises ValueError if it has none."""
    reader = _Reader(expression.tokens)
    try:
        value = reader.conditional()
    except (ZeroDivisionError, OverflowError) as problem:
        raise ValueError(str(problem)) from None
    if reader.at < len(expression.tokens):
        raise ValueError(f"unexpected `{expression.tokens[reader.at]}`")
    if isinstance(value, float):
        return Literal(f"0d{struct.pack('>d', value).hex().upper()}")
    return Literal(str(value.value))


def number(spelling: str) -> int | float:
    """The value of a numeric token without a sign: ``017`` is 15, ``0f3F800000`` is 1.0.

    Raises ValueError for an 8 or 9 in an octal number, and for a number of more than 1,000 characters.
    """
    if len(spelling) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(spelling)} digits")
    digits = spelling.rstrip("U").lower()
    if digits[:2] == "0f":
        return float(struct.unpack(">f", bytes.fromhex(digits[2:]))[0])
    if digits[:2] == "0d":
        return float(struct.unpack(">d", bytes.fromhex(digits[2:]))[0])
    if digits[:2] == "0x":
        return int(digits, 16)
    if digits[:2] == "0b":
        return int(digits, 2)
    if not digits.isdigit():
        return float(digits)
    return int(digits, 8) if digits[0] == "0" else int(digits)


class _Reader:
    """A recursive-descent parser for the tokens of an expression that computes the value as it goes."""

    def __init__(self, tokens: tuple[str, ...]) -> None:
        self.tokens = tokens
        self.at = 0
        self.depth = 0

    def _peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _next(self) -> str:
        self.at += 1
        if self.at > len(self.tokens):
            raise ValueError("the expression ends too early")
        return self.tokens[self.at - 1]

    def _expect(self, token: str) -> None:
        if self._next() != token:
            raise ValueError(f"`{token}` is missing")

    def conditional(self) -> _Value:
        chosen: list[_Value] = []
        value = self._binary(0)
        while self._peek() == "?":
            self._next()
            then = self.conditional()
            self._expect(":")
            chosen += [then] if _truth(value) else []
            value = self._binary(0)
        return chosen[0] if chosen else value

    def _binary(self, weakest: int) -> _Value:
        """The value up to the first operator that binds less tightly than those of level ``weakest``."""
        self.depth += 1
        if self.depth > _MOST_NESTED:
            raise ValueError("it is nested too deeply")
        left = self._unary()
        while (level := _LEVEL.get(self._peek(), -1)) >= weakest:
            left = _apply(self._next(), left, self._binary(level + 1))
        self.depth -= 1
        return left

    def _unary(self) -> _Value:
        signs = []
        while self._peek() in ("+", "-", "~", "!"):
            signs.append(self._next())
        value = self._primary()
        for sign in reversed(signs):
            value = _apply_unary(sign, value)
        return value

    def _primary(self) -> _Value:
        token = self._next()
        if token == "(":
            return self._parenthesis()
        if token == "WARP_SZ":
            return _Integer(WARP_SIZE, False)
        plain = number(token)
        return plain if isinstance(plain, float) else _integer(plain, token.endswith("U"))

    def _parenthesis(self) -> _Value:
        if self._peek() in (".s64", ".u64"):
            unsigned = self._next() == ".u64"
            self._expect(")")
            inner = self._unary()
            return _integer(int(inner if isinstance(inner, float) else inner.value), unsigned, wrap=True)
        inner = self.conditional()
        self._expect(")")
        return inner


def _truth(value: _Value) -> bool:
    return bool(value if isinstance(value, float) else value.value)


def _integer(value: int, unsigned: bool, wrap: bool = False) -> _Integer:
    """``value`` in 64 bits; one too large for a signed integer becomes unsigned, unless ``wrap`` is set."""
    value &= (1 << 64) - 1
    if unsigned or (value >> 63 and not wrap):
        return _Integer(value, True)
    return _Integer(value - (value >> 63 << 64), False)


def _apply_unary(sign: str, value: _Value) -> _Value:
    if sign == "+":
        return value
    if sign == "!":
        return _Integer(int(not _truth(value)), False)
    if isinstance(value, float):
        if sign == "-":
            return -value
        raise ValueError(f"`{sign}` takes an integer")
    return _integer(-value.value if sign == "-" else ~value.value, value.unsigned, wrap=True)


def _apply(sign: str, left: _Value, right: _Value) -> _Value:
    if sign in ("&&", "||"):
        both = (_truth(left), _truth(right))
        return _Integer(int(all(both) if sign == "&&" else any(both)), False)
    if isinstance(left, float) or isinstance(right, float):
        return _apply_floats(sign, *(v if isinstance(v, float) else float(v.value) for v in (left, right)))
    if sign in ("<<", ">>"):
        count = min(right.value & ((1 << 64) - 1), 64)
        shifted = left.value << count if sign == "<<" else left.value >> count
        return _integer(shifted, left.unsigned, wrap=True)
    unsigned = left.unsigned or right.unsigned
    a, b = (_integer(v.value, unsigned, wrap=True).value for v in (left, right))
    if sign in _COMPARISONS:
        return _Integer(int(_COMPARISONS[sign](a, b)), False)
    if sign in ("/", "%"):
        if b == 0:
            raise ValueError("division by zero")
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return _integer(quotient if sign == "/" else a - quotient * b, unsigned, wrap=True)
    return _integer(_ARITHMETIC[sign](a, b), unsigned, wrap=True)


def _apply_floats(sign: str, a: float, b: float) -> _Value:
    if sign in _COMPARISONS:
        return _Integer(int(_COMPARISONS[sign](a, b)), False)
    if sign not in _FLOATS:
        raise ValueError(f"`{sign}` takes integers")
    return _FLOATS[sign](a, b)


# --- modules ---


def with_constants(module: Module) -> Module:
    """``module`` with every constant expression replaced by its value, a literal."""
    return Module(tuple(map(_item, module.items)))


def _item(item: Item) -> Item:
    if isinstance(item, Variable):
        return _variable(item)
    if isinstance(item, Function) and item.body is not None:
        return replace(item, body=tuple(map(_statement, item.body)))
    return item


def _variable(variable: Variable) -> Variable:
    if variable.initializer is None:
        return variable
    return replace(variable, initializer=_initializer(variable.initializer))


def _initializer(initializer: Initializer) -> Initializer:
    match initializer:
        case InitializerList(elements):
            return InitializerList(tuple(map(_initializer, elements)))
        case InitializerCall(function, argument, offset):
            inner = _initializer(argument)
            assert isinstance(inner, Symbol | Indexed | InitializerCall)
            return InitializerCall(function, inner, None if offset is None else _constant(offset))
        case Indexed(base, offset, bracketed):
            return Indexed(base, _constant(offset), bracketed)
        case Expression():
            return value_of(initializer)
    return initializer


_PLAIN = frozenset({Register, SpecialRegister, Literal, Symbol})
"""Classes of operands that hold no constant expression; most operands are of these."""


def _statement(statement: Statement) -> Statement:
    if isinstance(statement, Variable):
        return _variable(statement)
    if not isinstance(statement, Instruction):
        return statement
    if _PLAIN.issuperset([operand.__class__ for operand in statement.operands]):
        return statement
    operands = tuple([_operand(operand) for operand in statement.operands])
    return statement if operands == statement.operands else replace(statement, operands=operands)


def _constant(constant: Literal | Expression) -> Literal:
    return value_of(constant) if isinstance(constant, Expression) else constant


def _operand(operand: Operand) -> Operand:
    match operand:
        case Expression():
            return value_of(operand)
        case Address(base, offset) if isinstance(base, Expression) or isinstance(offset, Expression):
            at = value_of(base) if isinstance(base, Expression) else base
            return Address(at, None if offset is None else _constant(offset))
        case Indexed(base, Expression() as offset, bracketed):
            return Indexed(base, value_of(offset), bracketed)
        case Vector(elements):
            return Vector(tuple(map(_operand, elements)))
        case Group(elements):
            return Group(tuple(map(_operand, elements)))
        case TextureAddress(elements):
            return TextureAddress(tuple(map(_operand, elements)))
    return operand
