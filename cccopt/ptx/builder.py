"""The actions of the PTX grammar: each method builds the node of the rule that it is named after.

Lark calls a method when it reduces its rule, so the order of the text holds: a ``.reg`` is seen before the names
that it declares are used. A stack of scopes resolves names while parsing (PTX ISA 9.0, 4.4 and 5.2).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from cccopt.ptx import ir
from cccopt.ptx.operands import Children, MalformedError, OperandBuilder, integer_of, position_of
from cccopt.ptx.tokens import Token
from cccopt.ptx.whole import Where, location_parts
from cccopt.text import Position, shortened

# The form of the numeric values in markers.
_CLAUSES = {
    "line": re.compile(r"[0-9]{1,9}(:[0-9]{0,9})?"),
    "block": re.compile(r"[1-9][0-9]{0,3}(,[1-9][0-9]{0,3}){0,2}"),
    "group": re.compile(r"[0-9]{1,9}"),
    "chunk": re.compile(r"[1-9][0-9]{0,5}"),
    "collect": re.compile(r"[1-9][0-9]{0,5}"),
}

MOST_SCOPES = 500
"""The most scopes that may be open at once; ptxas gives up at about 1,000."""

MOST_NAMES = 1 << 20
"""The most names that counts such as ``%r<9>`` may declare in one function; real functions need less than a tenth."""


def _dotless(token: Token) -> str:
    return str(token.value[1:])


def _spelled_out(declared: ir.RegisterNames) -> list[str]:
    if declared.count is None:
        return [declared.name]
    return [f"{declared.name}{i}" for i in range(declared.count)]


class ModuleBuilder(OperandBuilder):
    """Builds a `Module` from the rules of ``ptx.lark``; call ``reset`` before each text."""

    def _flat(self, children: Children) -> Children:
        if not self._split:
            return children
        return [node for c in children for node in (c if c.__class__ is list else [c])]

    # --- module ---

    def start(self, children: Children) -> ir.Module:
        # Markers have a meaning only in functions; elsewhere they are comments.
        return ir.Module(tuple(c for c in self._flat(children) if c.__class__ is not Token))

    def directive(self, children: Children) -> ir.Directive:
        return ir.Directive(children[0].value, tuple(c.value for c in children[1:]), position_of(children[0]))

    file = alias = body_directive = prototype_directive = performance = directive

    def section(self, children: Children) -> ir.Section:
        return ir.Section(children[1].value, tuple(children[2:]), position_of(children[0]))

    def dwarf(self, children: Children) -> ir.Directive:
        return ir.Directive(f"@@DWARF {children[1].value}", tuple(children[2:]), position_of(children[0]))

    def dwarf_section(self, children: Children) -> ir.Directive:
        name, *words = (c.value for c in children[2:])
        words[1:] = [f"@{kind}" for kind in words[1:]]
        return ir.Directive("@@DWARF .section", (name, *words), position_of(children[0]))

    def section_line(self, children: Children) -> ir.Directive:
        return ir.Directive(children[0].value, tuple(children[1:]), position_of(children[0]))

    def section_label(self, children: Children) -> ir.Directive:
        return ir.Directive(children[0].value + ":", (), position_of(children[0]))

    def section_value(self, children: Children) -> str:
        return str(children[0].value)

    def section_negative(self, children: Children) -> str:
        return f"-{children[0].value}"

    def section_sum(self, children: Children) -> str:
        return f"{children[0].value}+{children[1].value}"

    def section_difference(self, children: Children) -> str:
        return f"{children[0].value}-{children[1].value}"

    def pragma(self, children: Children) -> ir.Pragma:
        return ir.Pragma(tuple(c.value[1:-1] for c in children[1:]), position_of(children[0]))

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
        return (integer_of(children[0]) if children else None,)

    def variable(self, children: Children) -> ir.Variable | list[ir.Variable]:
        linkage, space = children[0], children[1]
        position = position_of(linkage[0] if linkage else space)
        qualifiers = [c for c in children[2:] if c[0].type != "NAME"]
        declarators = [c for c in children[2:] if c[0].type == "NAME"]
        for declarator in declarators:
            self._declare_symbol(declarator[0].value, 0 if len(self._scopes) == 2 else -1)
        variables = [self._variable(space, qualifiers, d, linkage, position) for d in declarators]
        self._split = self._split or len(variables) > 1
        return variables if len(variables) > 1 else variables[0]

    def parameter(self, children: Children) -> ir.Variable:
        linkage = children[:1] if children[0].type == "HIDDEN" else []
        space, *_ = children = children[len(linkage) :]
        at = next(i for i, c in enumerate(children) if i and c.__class__ is list and c[0].type == "NAME")
        declarator = children[at] + children[at + 1 :]
        if space.type == "REG":
            self._parameter_register(children[at])
        else:
            self._declare_symbol(children[at][0].value, -1)
        return self._variable(space, children[1:at], declarator, linkage, position_of(space))

    def _parameter_register(self, declarator: Children) -> None:
        self._declare(declarator[0].value, self._count(declarator[1]) if len(declarator) > 1 else None)

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
                    raise MalformedError("CCC001", f"unexpected `{head.value}`", position_of(head))
                pointer[0] = _dotless(head)
            elif head.type == "ALIGN":
                if pointer is not None:
                    pointer[1] = integer_of(rest[0])
                else:
                    alignment = integer_of(rest[0])
            elif head.type == "ATTRIBUTE":
                attributes += rest
            else:
                types.append(head.value)
        name, *rest = declarator
        count = next((self._count(c) for c in rest if c.__class__ is Token), None)
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

    def initializer_constant(self, children: Children) -> ir.Literal | ir.Expression:
        return self._valued(children[0])

    def initializer_negative(self, children: Children) -> ir.Literal:
        return ir.Literal("-" + children[0].value)

    def initializer_symbol(self, children: Children) -> ir.Symbol:
        return ir.Symbol(children[0].value)

    def initializer_sum(self, children: Children) -> ir.Indexed:
        return ir.Indexed(ir.Symbol(children[0].value), self._valued(children[1]))

    def initializer_field(self, children: Children) -> ir.InitializerField:
        return ir.InitializerField(children[0].value, children[1])

    def initializer_call(self, children: Children) -> ir.InitializerCall:
        offset = self._valued(children[2]) if len(children) > 2 else None
        return ir.InitializerCall(children[0].value, children[1], offset)

    # --- functions ---

    def parameters(self, children: Children) -> tuple[ir.Variable, ...]:
        return tuple(children)

    def heading(self, children: Children) -> dict[str, Any]:
        linkage, kind, *rest = children
        at = next(i for i, c in enumerate(rest) if c.__class__ is Token)
        attributes = [text for c in rest[:at] if c.__class__ is list for text in c[1:]]
        returns = next((c for c in rest[:at] if c.__class__ is tuple), None)
        self._declare_symbol(rest[at].value, 0)
        return {
            "kind": _dotless(kind),
            "name": rest[at].value,
            "linkage": tuple(_dotless(t) for t in linkage),
            "attributes": tuple(attributes),
            "returns": returns or (),
            "no_returns": returns == (),
            "parameters": rest[at + 1] if at + 1 < len(rest) else (),
            "parenthesised": at + 1 < len(rest),
            "position": position_of(linkage[0] if linkage else kind),
        }

    def prototype(self, children: Children) -> ir.Function:
        self._end_function()
        return ir.Function(**children[0], directives=self._directives(children[1:]))

    def open_prototype(self, children: Children) -> ir.Function:
        return replace(self.prototype(children), terminated=False)

    def function(self, children: Children) -> ir.Function:
        heading, *directives, body = children
        return ir.Function(**heading, directives=self._directives(directives), body=body)

    def _directives(self, children: Children) -> tuple[ir.Directive, ...]:
        return tuple(c for c in children if c.__class__ is ir.Directive)

    def body(self, children: Children) -> tuple[ir.Statement, ...]:
        self._end_function()
        return tuple(self._flat(children[1:-1]))

    def _end_function(self) -> None:
        if self._scopes[1]:
            self._names.clear()
        self._scopes = [self._scopes[0], {}]
        self._declared = 0

    def open(self, children: Children) -> ir.Open:
        if len(self._scopes) > MOST_SCOPES:
            raise MalformedError(
                "CCC001", "nested too deeply", position_of(children[0]),
                f"at most {MOST_SCOPES} scopes may be open at a time",
            )  # fmt: skip
        self._scopes.append({})
        return ir.Open(position_of(children[0]))

    def close(self, children: Children) -> ir.Close:
        if self._scopes.pop():
            self._names.clear()
        return ir.Close(position_of(children[0]))

    # --- statements ---

    def label(self, children: Children) -> ir.Label:
        return ir.Label(children[0].value, position_of(children[0]))

    def marker(self, children: Children) -> ir.Marker:
        token = children[0]
        words, _, file = token.value.partition(" file=")
        fields: list[str] = [*words.split()[2:], "", ""]
        event, region, *rest = fields
        if not region.isdigit():
            raise MalformedError(
                "CCC004", "mark without an event or a region number", position_of(token),
                "a mark has the form `// ccc EVENT NUMBER key=value ...`; begin other comments differently",
            )  # fmt: skip
        pairs = [(key, value) for key, _, value in (word.partition("=") for word in rest if word)]
        bad = next((f"{k}={v}" for k, v in pairs if k in _CLAUSES and not _CLAUSES[k].fullmatch(v)), None)
        if bad is not None:
            raise MalformedError(
                "CCC004", f"mark with a malformed `{shortened(bad)}`", position_of(token),
                "its values are numbers: `line=12:5`, `block=32,4`, `chunk=16`",
            )  # fmt: skip
        if file:
            pairs.append(("file", file.rstrip()))
        return ir.Marker(event, int(region), tuple(pairs), position_of(token))

    def whole_location(self, children: Children) -> ir.Location:
        token = children[0]
        where: Where = self._wholes.get(token.value) or location_parts(token.value)
        self._wholes[token.value] = where
        return ir.Location(*where, position_of(token))

    def location(self, children: Children) -> ir.Location:
        head, *rest = children
        file, line, column = (integer_of(t) for t in rest[:3])
        inlined_at: tuple[int, int, int] | None = None
        kinds = [t.type for t in rest]
        if "INLINED_AT" in kinds:
            at = kinds.index("INLINED_AT")
            inlined_at = (integer_of(rest[at + 1]), integer_of(rest[at + 2]), integer_of(rest[at + 3]))
            rest, kinds = rest[:at], kinds[:at]
        function = rest[4].value if "FUNCTION_NAME" in kinds else None
        offset = integer_of(rest[5]) if len(rest) > 5 else None
        return ir.Location(file, line, column, function, offset, inlined_at, position_of(head))

    def registers(self, children: Children) -> ir.RegisterDeclaration:
        types = [c.value for c in children[1:] if c.__class__ is Token and c.type in ("TYPE", "VECTOR")]
        alignment = next(
            (integer_of(c) for c in children if c.__class__ is Token and c.type == "NUMBER"), None
        )
        names = tuple(c for c in children[1:] if c.__class__ is not Token)
        for names_ in names:
            self._declare(names_.name, names_.count)
        return ir.RegisterDeclaration(" ".join(types), names, alignment, position_of(children[0]))

    def register_name(self, children: Children) -> ir.RegisterNames:
        return ir.RegisterNames(children[0].value, self._count(children[1]) if len(children) > 1 else None)

    def _count(self, token: Token) -> int:
        """How many names a declarator declares; limited, because listing them takes memory."""
        count = integer_of(token)
        self._declared += count
        if self._declared > MOST_NAMES:
            raise MalformedError(
                "CCC001", "too many names in one function", position_of(token),
                f"its declarations may name at most {MOST_NAMES:,}",
            )  # fmt: skip
        return count

    def branch_targets(self, children: Children) -> ir.BranchTargets:
        label, directive, *targets = children
        names = tuple(name for declared in targets for name in _spelled_out(declared))
        return ir.BranchTargets(label.value, directive.value, names, position_of(label))

    def call_prototype(self, children: Children) -> ir.CallPrototype:
        label, _, *rest = children
        at = next(i for i, c in enumerate(rest) if c.__class__ is Token)
        directives = tuple(c for c in rest if c.__class__ is ir.Directive)
        parameters = next((c for c in rest[at:] if c.__class__ is tuple), None)
        lists = (at > 0, parameters is not None)
        return ir.CallPrototype(
            label.value, rest[0] if at else (), parameters or (), rest[at].value, directives, lists,
            position_of(label),
        )  # fmt: skip
