"""The actions of the PTX grammar: each method builds the node of the rule that it is named after.

Lark calls a method when it reduces its rule, so text order holds: a ``.reg`` is seen before the names that it
declares are used, and names are resolved while parsing by a stack of scopes (PTX ISA 9.0, 4.4 and 5.2).
"""

from __future__ import annotations

from typing import Any, TypeAlias

from lark import Token, Transformer

from cccopt.ptx import ir
from cccopt.ptx.special import SPECIAL_TYPES
from cccopt.text import Position

Children: TypeAlias = "list[Any]"


class MalformedError(Exception):
    """Text that fits the grammar but cannot become a node; the parser makes a `PtxError` of it."""

    def __init__(self, code: str, message: str, position: Position, help: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.position = position
        self.help = help


def _position(token: Token) -> Position:
    return Position(token.line or 1, token.column or 1)


def _integer(token: Token) -> int:
    digits = token.value.rstrip("U")
    if digits[:2] in ("0x", "0X"):
        return int(digits, 16)
    if digits[:2] in ("0b", "0B"):
        return int(digits, 2)
    if digits.isdigit():
        return int(digits, 8) if digits.startswith("0") and len(digits) > 1 else int(digits)
    raise MalformedError("CCC001", f"`{token.value}` is not an integer", _position(token))


def _dotless(token: Token) -> str:
    return str(token.value[1:])


class ModuleBuilder(Transformer[Token, ir.Module]):
    """Builds a `Module` from the rules of ``ptx.lark``; ``reset`` before each text."""

    def __init__(self) -> None:
        super().__init__()
        self.reset()

    def reset(self) -> None:
        """Forget the scopes and names of the text before."""
        self._scopes: list[set[str]] = [set()]
        self._names: dict[str, ir.Operand] = {}
        self._split = (
            False  # a declaration of several variables was seen: it stands as a list among statements
        )

    def _flat(self, children: Children) -> Children:
        if not self._split:
            return children
        return [node for c in children for node in (c if c.__class__ is list else [c])]

    # --- names ---

    def _declare(self, name: str, count: int | None) -> None:
        names = [name] if count is None else [f"{name}{i}" for i in range(count)]
        if not name.startswith("%"):
            self._scopes[-1].update(names)
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
        if name in SPECIAL_TYPES:
            return ir.SpecialRegister(name)
        stem, _, component = name.partition(".")
        if not stem.startswith("%") and not any(stem in scope for scope in self._scopes):
            return ir.Symbol(name)
        return ir.Component(ir.Register(stem), component) if component else ir.Register(stem)

    def _operand(self, child: Any) -> Any:
        if child.__class__ is tuple:
            base, offset = child
            resolved = self._operand(base)
            if not isinstance(resolved, (ir.Symbol, ir.Register)):
                raise MalformedError("CCC001", f"unexpected offset after `{base}`", _position(base))
            return ir.Indexed(resolved, ir.Literal(offset))
        if child.__class__ is not Token:
            return child
        if child.type == "NAME":
            return self._names.get(child.value) or self._resolve(child.value)
        return ir.Literal(child.value)

    # --- module ---

    def start(self, children: Children) -> ir.Module:
        # Markers mean something in functions only: elsewhere they are comments.
        return ir.Module(tuple(c for c in self._flat(children) if c.__class__ is not Token))

    def directive(self, children: Children) -> ir.Directive:
        return ir.Directive(children[0].value, tuple(c.value for c in children[1:]), _position(children[0]))

    file = alias = body_directive = prototype_directive = performance = directive

    def section(self, children: Children) -> ir.Section:
        return ir.Section(children[1].value, tuple(children[2:]), _position(children[0]))

    def section_line(self, children: Children) -> ir.Directive:
        return ir.Directive(children[0].value, tuple(children[1:]), _position(children[0]))

    def section_label(self, children: Children) -> ir.Directive:
        return ir.Directive(children[0].value + ":", (), _position(children[0]))

    def section_value(self, children: Children) -> str:
        return str(children[0].value)

    def section_negative(self, children: Children) -> str:
        return f"-{children[0].value}"

    def section_sum(self, children: Children) -> str:
        return f"{children[0].value}+{children[1].value}"

    def section_difference(self, children: Children) -> str:
        return f"{children[0].value}-{children[1].value}"

    def pragma(self, children: Children) -> ir.Pragma:
        return ir.Pragma(tuple(c.value[1:-1] for c in children[1:]), _position(children[0]))

    module_pragma = pragma

    def performance_pragma(self, children: Children) -> ir.Directive:
        return self.directive(children)

    # --- variables and parameters ---

    def linkage(self, children: Children) -> tuple[Token, ...]:
        return tuple(children)

    def attribute(self, children: Children) -> str:
        values = ", ".join(c.value for c in children[1:])
        return _dotless(children[0]) + (f"({values})" if values else "")

    def qualifier(self, children: Children) -> Children:
        return children

    def function_attribute(self, children: Children) -> Children:
        return children

    def declarator(self, children: Children) -> Children:
        return children

    parameter_name = declarator

    def dimension(self, children: Children) -> tuple[int | None]:
        return (_integer(children[0]) if children else None,)

    def variable(self, children: Children) -> ir.Variable | list[ir.Variable]:
        linkage, space = children[0], children[1]
        position = _position(linkage[0] if linkage else space)
        qualifiers = [c for c in children[2:] if c[0].type != "NAME"]
        declarators = [c for c in children[2:] if c[0].type == "NAME"]
        variables = [self._variable(space, qualifiers, d, linkage, position) for d in declarators]
        self._split = self._split or len(variables) > 1
        return variables if len(variables) > 1 else variables[0]

    def parameter(self, children: Children) -> ir.Variable:
        space = children[0]
        at = next(i for i, c in enumerate(children) if i and c.__class__ is list and c[0].type == "NAME")
        declarator = children[at] + children[at + 1 :]
        if space.type == "REG":
            self._parameter_register(children[at])
        return self._variable(space, children[1:at], declarator, (), _position(space))

    def _parameter_register(self, declarator: Children) -> None:
        self._declare(declarator[0].value, _integer(declarator[1]) if len(declarator) > 1 else None)

    def _variable(
        self, space: Token, qualifiers: Children, declarator: Children, linkage: Any, position: Position
    ) -> ir.Variable:
        types: list[str] = []
        attributes: list[str] = []
        alignment: int | None = None
        pointer: list[Any] | None = None
        for head, *rest in qualifiers:
            if head.type == "PTR":
                pointer = [None, None]
            elif head.type == "SPACE":
                if pointer is None:
                    raise MalformedError("CCC001", f"unexpected `{head.value}`", _position(head))
                pointer[0] = _dotless(head)
            elif head.type == "ALIGN":
                if pointer is not None:
                    pointer[1] = _integer(rest[0])
                else:
                    alignment = _integer(rest[0])
            elif head.type == "ATTRIBUTE":
                attributes += rest
            else:
                types.append(head.value)
        name, *rest = declarator
        count = next((_integer(c) for c in rest if c.__class__ is Token), None)
        dimensions = tuple(c[0] for c in rest if c.__class__ is tuple)
        initializer = next((c for c in rest if c.__class__ not in (Token, tuple)), None)
        return ir.Variable(
            space=_dotless(space),
            type=" ".join(types),
            name=name.value,
            dimensions=dimensions,
            alignment=alignment,
            linkage=tuple(_dotless(t) for t in linkage),
            initializer=initializer,
            pointer=None if pointer is None else (pointer[0], pointer[1]),
            attributes=tuple(attributes),
            count=count,
            position=position,
        )

    def initializer_list(self, children: Children) -> ir.InitializerList:
        return ir.InitializerList(tuple(children))

    def initializer_number(self, children: Children) -> ir.Literal:
        return ir.Literal(children[0].value)

    def negative_number(self, children: Children) -> ir.Literal:
        return ir.Literal("-" + children[0].value)

    initializer_negative = negative_number

    def initializer_symbol(self, children: Children) -> ir.Symbol:
        return ir.Symbol(children[0].value)

    def initializer_sum(self, children: Children) -> ir.Indexed:
        return ir.Indexed(ir.Symbol(children[0].value), ir.Literal(children[1].value))

    def initializer_field(self, children: Children) -> ir.InitializerField:
        return ir.InitializerField(children[0].value, children[1])

    def initializer_inner(self, children: Children) -> ir.Symbol | ir.Indexed:
        return self.initializer_symbol(children) if len(children) == 1 else self.initializer_sum(children)

    def initializer_call(self, children: Children) -> ir.InitializerCall:
        offset = ir.Literal(children[2].value) if len(children) > 2 else None
        return ir.InitializerCall(children[0].value, children[1], offset)

    # --- functions ---

    def parameters(self, children: Children) -> tuple[ir.Variable, ...]:
        return tuple(children)

    def heading(self, children: Children) -> dict[str, Any]:
        linkage, kind, *rest = children
        at = next(i for i, c in enumerate(rest) if c.__class__ is Token)
        attributes = [text for c in rest[:at] if c.__class__ is list for text in c[1:]]
        returns = next((c for c in rest[:at] if c.__class__ is tuple), None)
        return {
            "kind": _dotless(kind),
            "name": rest[at].value,
            "linkage": tuple(_dotless(t) for t in linkage),
            "attributes": tuple(attributes),
            "returns": returns or (),
            "parameters": rest[at + 1] if at + 1 < len(rest) else (),
            "parenthesised": at + 1 < len(rest),
            "position": _position(linkage[0] if linkage else kind),
        }

    def prototype(self, children: Children) -> ir.Function:
        self._end_function()
        return ir.Function(**children[0], directives=tuple(children[1:]))

    def function(self, children: Children) -> ir.Function:
        heading, *directives, body = children
        return ir.Function(**heading, directives=tuple(directives), body=body)

    def body(self, children: Children) -> tuple[ir.Statement, ...]:
        self._end_function()
        return tuple(self._flat(children[1:-1]))

    def _end_function(self) -> None:
        if self._scopes[0]:  # registers among the parameters
            self._names.clear()
        self._scopes = [set()]

    def open(self, children: Children) -> ir.Open:
        self._scopes.append(set())
        return ir.Open(_position(children[0]))

    def close(self, children: Children) -> ir.Close:
        if self._scopes.pop():
            self._names.clear()
        return ir.Close(_position(children[0]))

    # --- statements ---

    def label(self, children: Children) -> ir.Label:
        return ir.Label(children[0].value, _position(children[0]))

    def marker(self, children: Children) -> ir.Marker:
        token = children[0]
        words, _, file = token.value.partition(" file=")
        fields: list[str] = [*words.split()[2:], "", ""]
        event, region, *rest = fields
        if not region.isdigit():
            raise MalformedError(
                "CCC004", "marker without an event or a region number", _position(token),
                "a marker reads `// ccc EVENT NUMBER key=value ...`; begin other comments differently",
            )  # fmt: skip
        pairs = [(key, value) for key, _, value in (word.partition("=") for word in rest if word)]
        if file:
            pairs.append(("file", file.rstrip()))
        return ir.Marker(event, int(region), tuple(pairs), _position(token))

    def location(self, children: Children) -> ir.Location:
        head, *rest = children
        file, line, column = (_integer(t) for t in rest[:3])
        inlined_at: tuple[int, int, int] | None = None
        kinds = [t.type for t in rest]
        if "INLINED_AT" in kinds:
            at = kinds.index("INLINED_AT")
            inlined_at = (_integer(rest[at + 1]), _integer(rest[at + 2]), _integer(rest[at + 3]))
            rest, kinds = rest[:at], kinds[:at]
        function = rest[4].value if "FUNCTION_NAME" in kinds else None
        offset = _integer(rest[5]) if len(rest) > 5 else None
        return ir.Location(file, line, column, function, offset, inlined_at, _position(head))

    def registers(self, children: Children) -> ir.RegisterDeclaration:
        types = [c.value for c in children[1:] if c.__class__ is Token]
        names = tuple(c for c in children[1:] if c.__class__ is not Token)
        for names_ in names:
            self._declare(names_.name, names_.count)
        return ir.RegisterDeclaration(" ".join(types), names, _position(children[0]))

    def register_name(self, children: Children) -> ir.RegisterNames:
        return ir.RegisterNames(children[0].value, _integer(children[1]) if len(children) > 1 else None)

    def branch_targets(self, children: Children) -> ir.BranchTargets:
        label, directive, *targets = children
        return ir.BranchTargets(
            label.value, directive.value, tuple(t.value for t in targets), _position(label)
        )

    def call_prototype(self, children: Children) -> ir.CallPrototype:
        label, _, *rest = children
        at = next(i for i, c in enumerate(rest) if c.__class__ is Token)
        directives = tuple(c for c in rest if c.__class__ is ir.Directive)
        parameters = next((c for c in rest[at:] if c.__class__ is tuple), ())
        return ir.CallPrototype(
            label.value, rest[0] if at else (), parameters, rest[at].value, directives, _position(label)
        )

    # --- instructions ---

    def instruction(self, children: Children) -> ir.Instruction:
        opcode = children[0]
        operands = tuple([self._operand(c) for c in children[1:]])
        return ir.Instruction(opcode.value, operands, None, Position(opcode.line, opcode.column))

    def guarded(self, children: Children) -> ir.Instruction:
        return self._guarded(children, False)

    def guarded_not(self, children: Children) -> ir.Instruction:
        return self._guarded(children, True)

    def _guarded(self, children: Children, negated: bool) -> ir.Instruction:
        guard, opcode = children[0], children[1]
        operands = tuple([self._operand(c) for c in children[2:]])
        return ir.Instruction(
            opcode.value, operands, ir.Guard(ir.Register(guard.value), negated), _position(guard)
        )

    def negative(self, children: Children) -> ir.Negative:
        operand = self._resolve(children[0].value)
        if not isinstance(operand, ir.Register | ir.Component):
            raise MalformedError("CCC001", f"`-{children[0]}` is not a register", _position(children[0]))
        return ir.Negative(operand)

    def inverse(self, children: Children) -> ir.Not:
        return ir.Not(self._register(children[0]))

    def pair(self, children: Children) -> ir.Pair:
        return ir.Pair(self._operand(children[0]), self._operand(children[1]))

    def sum(self, children: Children) -> tuple[Token, str]:
        return children[0], children[1].value

    def sum_negative(self, children: Children) -> tuple[Token, str]:
        return children[0], "-" + children[1].value

    def element(self, children: Children) -> ir.Indexed:
        return ir.Indexed(ir.Symbol(children[0].value), ir.Literal(children[1].value), bracketed=True)

    def address(self, children: Children) -> ir.Address:
        (inner,) = children
        if inner.__class__ is tuple:
            base, offset = inner
            return ir.Address(self._operand(base), ir.Literal(offset))
        return ir.Address(self._operand(inner))

    def texture_address(self, children: Children) -> ir.TextureAddress:
        return ir.TextureAddress(tuple(self._operand(c) for c in children))

    def vector(self, children: Children) -> ir.Vector:
        return ir.Vector(tuple([self._operand(c) for c in children]))

    def group(self, children: Children) -> ir.Group:
        return ir.Group(tuple([self._operand(c) for c in children]))
