"""Print a `Module` as PTX text. Every token comes from the fields of the nodes."""

from __future__ import annotations

from cccopt.ptx import ir


def print_module(module: ir.Module) -> str:
    """Write a module as PTX.

    Args:
        module: The module, from `cccopt.parse` or a pass.

    Returns:
        The text; `cccopt.parse` makes an equal module from it.
    """
    gap = {ir.Function: "\n", ir.Section: "\n"}
    return "".join(f"{gap.get(item.__class__, '')}{print_item(item)}\n" for item in module.items)


def print_item(item: ir.Item) -> str:
    """One item of a module, without a final newline."""
    match item:
        case ir.Function():
            return print_function(item)
        case ir.Variable():
            return f"{_variable(item)};"
        case ir.RegisterDeclaration():
            return _registers(item)
        case ir.Section():
            return "\n".join([f".section {item.name}", "{", *map(_directive, item.lines), "}"])
        case ir.Pragma():
            return _pragma(item)
        case ir.Marker():
            return _marker(item)
        case ir.Directive():
            return _directive(item) + (";" if item.name == ".alias" else "")


def print_function(function: ir.Function) -> str:
    """A function or prototype, without a final newline."""
    words = [f".{word}" for word in (*function.linkage, function.kind)]
    if function.attributes:
        words.append(_attributes(function.attributes))
    if function.returns or function.no_returns:
        words.append(_parameters(function.returns))
    heading = " ".join([*words, function.name])
    if function.parenthesised:
        heading += _parameters(function.parameters, "\n")
    lines = [heading, *(_directive(d) + (";" if d.name == ".pragma" else "") for d in function.directives)]
    if function.body is None:
        return "\n".join(lines) + (";" if function.terminated else "")
    return "\n".join([*lines, "{", *map(print_statement, function.body), "}"])


def print_statement(statement: ir.Statement) -> str:
    """One statement on one line, indented as nvcc does, without a final newline."""
    match statement:
        case ir.Instruction(opcode, operands, guard):
            text = " ".join((opcode, ", ".join(map(print_operand, operands)))) if operands else opcode
            return f"\t{text};" if guard is None else f"\t{_guard(guard)} {text};"
        case ir.Label(name):
            return f"{name}:"
        case ir.Marker():
            return "\t" + _marker(statement)
        case ir.Location():
            return "\t" + _location(statement)
        case ir.RegisterDeclaration():
            return "\t" + _registers(statement)
        case ir.Variable():
            return f"\t{_variable(statement)};"
        case ir.Pragma():
            return "\t" + _pragma(statement)
        case ir.BranchTargets(label, directive, targets):
            return f"{label}:\n\t{directive} {', '.join(targets)};"
        case ir.CallPrototype():
            return _call_prototype(statement)
        case ir.Open():
            return "\t{"
        case ir.Close():
            return "\t}"
        case ir.Directive():
            return f"\t{_directive(statement)};"


def print_operand(operand: ir.Operand) -> str:
    """One operand as it is written in an instruction."""
    match operand:
        case ir.Register(text) | ir.SpecialRegister(text) | ir.Literal(text) | ir.Symbol(text):
            return text
        case ir.Address(base, offset):
            return f"[{print_operand(base)}{'' if offset is None else '+' + print_operand(offset)}]"
        case ir.Vector(elements):
            return "{" + ", ".join(map(print_operand, elements)) + "}"
        case ir.Group(elements):
            return "(" + ", ".join(map(print_operand, elements)) + ")"
        case ir.TextureAddress(elements):
            return "[" + ", ".join(map(print_operand, elements)) + "]"
        case ir.Pair(first, second):
            return f"{print_operand(first)}|{print_operand(second)}"
        case ir.Not(register):
            return f"!{register.name}"
        case ir.Negative(negated):
            return f"-{print_operand(negated)}"
        case ir.Wildcard():
            return "_"
        case ir.Component(register, component):
            return f"{register.name}.{component}"
        case ir.Indexed(base, offset, True):
            return f"{base.name}[{print_operand(offset)}]"
        case ir.Indexed(base, offset):
            return f"{base.name}+{print_operand(offset)}"
        case ir.Expression():
            return operand.spelling


def _guard(guard: ir.Guard) -> str:
    return f"@{'!' if guard.negated else ''}{guard.register.name}"


def _directive(directive: ir.Directive) -> str:
    if directive.name == ".file" and directive.arguments:
        number, *rest = directive.arguments
        return f"{directive.name} {number} {', '.join(rest)}"
    arguments = ", ".join(directive.arguments)
    return f"{directive.name} {arguments}" if arguments else directive.name


def _pragma(pragma: ir.Pragma) -> str:
    return ".pragma " + ", ".join(f'"{text}"' for text in pragma.texts) + ";"


def _marker(marker: ir.Marker) -> str:
    attributes = "".join(f" {key}={value}" if value else f" {key}" for key, value in marker.attributes)
    return f"// ccc {marker.event} {marker.region}{attributes}"


def _location(location: ir.Location) -> str:
    text = f".loc {location.file} {location.line} {location.column}"
    if location.function is not None:
        text += f", function_name {location.function}"
        if location.function_offset is not None:
            text += f"+{location.function_offset}"
    if location.inlined_at is not None:
        text += ", inlined_at {} {} {}".format(*location.inlined_at)
    return text


def _registers(declaration: ir.RegisterDeclaration) -> str:
    aligned = "" if declaration.alignment is None else f".align {declaration.alignment} "
    names = ", ".join(_names(n.name, n.count) for n in declaration.names)
    return f".reg {aligned}{declaration.type} {names};"


def _names(name: str, count: int | None) -> str:
    return name if count is None else f"{name}<{count}>"


def _attributes(attributes: tuple[str, ...]) -> str:
    return ".attribute(" + ", ".join(f".{a}" for a in attributes) + ")"


def _parameters(parameters: tuple[ir.Variable, ...], end: str = "") -> str:
    separator = f",{end}\t" if end else ", "
    inner = separator.join(map(_variable, parameters))
    return f"({end}\t{inner}{end})" if end and parameters else f"({inner})"


def _call_prototype(prototype: ir.CallPrototype) -> str:
    before, after = prototype.lists
    words = [_parameters(prototype.returns)] if before else []
    words += [prototype.name, *([_parameters(prototype.parameters)] if after else [])]
    words += map(_directive, prototype.directives)
    return f"{prototype.label}:\n\t.callprototype {' '.join(words)};"


def _variable(variable: ir.Variable) -> str:
    words = [f".{word}" for word in (*variable.linkage, variable.space)]
    if variable.attributes:
        words.append(_attributes(variable.attributes))
    if variable.alignment is not None:
        words.append(f".align {variable.alignment}")
    words.append(variable.type)
    if variable.pointer is not None:
        space, alignment = variable.pointer
        words.append(".ptr")
        words += [f".{space}"] if space is not None else []
        words += [f".align {alignment}"] if alignment is not None else []
    name = _names(variable.name, variable.count)
    words.append(name + "".join("[]" if d is None else f"[{d}]" for d in variable.dimensions))
    if variable.initializer is not None:
        words += ["=", _initializer(variable.initializer)]
    return " ".join(words)


def _initializer(initializer: ir.Initializer) -> str:
    match initializer:
        case ir.InitializerList(elements):
            return "{" + ", ".join(map(_initializer, elements)) + "}"
        case ir.InitializerCall(function, argument, offset):
            text = f"{function}({_initializer(argument)})"
            return text if offset is None else f"{text}+{print_operand(offset)}"
        case ir.InitializerField(name, value):
            return f"{name} = {_initializer(value)}"
        case ir.Literal() | ir.Expression() | ir.Symbol() | ir.Indexed():
            return print_operand(initializer)
