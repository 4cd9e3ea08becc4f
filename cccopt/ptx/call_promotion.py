"""Indirect-call promotion: a call through a pointer becomes a choice among the functions that it may call.

    ld.u64 %rd2, [%rd1+8];                  ld.u64 %rd2, [%rd1+8];
    { ...                                   mov.u64 %t, _ZNK4Disk4areaEj;
    call (r), %rd2, (a, b), p;              setp.ne.u64 %q, %rd2, %t;
    ... }                                   @%q bra NEXT;
                                            { ... call (r), _ZNK4Disk4areaEj, (a, b); ... }
                                            bra DONE;
                                      NEXT: ...the same for `_ZNK3Box4areaEj`...
                                            trap;
                                      DONE:

What follows then knows what the call may do, as of any other: virtual functions, and tables of functions. The pointer
can only be to a function of this module whose address the module takes somewhere, and whose parameters are those of
the call. This does not hold if code from elsewhere is linked to the module (``-rdc=true``): then all is left as it is.

Safety: EXACT. PTX ISA, "Control flow instructions: call"; U. Hoelzle, D. Ungar, "Optimizing dynamically-dispatched
calls with run-time type feedback", PLDI 1994.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import prod

from cccopt.ptx import isa
from cccopt.ptx.ir import (
    Body,
    CallPrototype,
    Directive,
    Function,
    Group,
    Guard,
    Indexed,
    Initializer,
    InitializerCall,
    InitializerList,
    Instruction,
    Label,
    Module,
    Register,
    RegisterDeclaration,
    RegisterNames,
    Statement,
    Symbol,
    Variable,
)
from cccopt.ptx.scopes import scope_around

SYSTEM_CALLS = frozenset({"vprintf", "malloc", "free", "__assertfail"})
"""Functions that no module defines: the driver links them."""

MOST = 16
"""The most functions among which a promoted call chooses."""

_Shape = tuple[tuple[int, ...], tuple[int, ...]]
"""The sizes in bytes of results and of parameters."""


def promoted(module: Module, *, alone: bool = False) -> Module:
    """``module`` with direct calls in place of those indirect ones whose possible targets are known. With ``alone``,
    no other code can be linked to it, whatever the linkage of its functions.
    """
    if not any(isa.is_indirect_call(s) for f in module.functions() for s in f.body or ()):
        return module
    if _is_open(module) and not alone:
        return module
    targets = _targets(module)
    return Module(
        tuple(
            _with_direct_calls(item, targets) if isinstance(item, Function) else item for item in module.items
        )
    )


def _is_open(module: Module) -> bool:
    """Whether other code may be linked to the module, or a function may have two names."""
    for item in module.items:
        if isinstance(item, Directive) and item.name == ".alias":
            return True
        if (
            isinstance(item, Function)
            and item.kind == "func"
            and item.name not in SYSTEM_CALLS
            and item.linkage
        ):
            return True
    return False


def _targets(module: Module) -> Mapping[_Shape, Sequence[str]]:
    """The functions whose address the module takes, by shape."""
    taken: set[str] = set()
    for item in module.items:
        if isinstance(item, Variable) and item.initializer is not None:
            taken |= set(_named(item.initializer))
        elif isinstance(item, Function):
            taken |= {name for s in item.body or () for name in _taken(s)}
    found: dict[_Shape, list[str]] = {}
    for function in module.functions():
        if function.kind == "func" and function.body is not None and function.name in taken:
            found.setdefault(_shape(function.returns, function.parameters), []).append(function.name)
    return found


def _taken(statement: Statement) -> Iterator[str]:
    """The names in a statement that are not those of a function that it calls."""
    if isinstance(statement, Variable) and statement.initializer is not None:
        yield from _named(statement.initializer)
    if isinstance(statement, Instruction):
        names = [o.name for o in statement.operands if isinstance(o, Symbol)]
        yield from names[1:] if statement.base == "call" else names
        for group in (o for o in statement.operands if isinstance(o, Group)):
            yield from (o.name for o in group.elements if isinstance(o, Symbol))


def _named(value: Initializer) -> Iterator[str]:
    match value:
        case Symbol(name):
            yield name
        case Indexed(base):
            yield from _named(base) if isinstance(base, Symbol) else ()
        case InitializerCall():
            yield from _named(value.argument)
        case InitializerList(elements):
            for element in elements:
                yield from _named(element)


def _shape(returns: Iterable[Variable], parameters: Iterable[Variable]) -> _Shape:
    return tuple(map(_size, returns)), tuple(map(_size, parameters))


def _size(variable: Variable) -> int:
    parts = variable.type.replace(".", " ").split()
    return isa.width(parts[-1]) // 8 * prod(extent or 0 for extent in variable.dimensions)


def _with_direct_calls(function: Function, targets: Mapping[_Shape, Sequence[str]]) -> Function:
    body = function.body or ()
    calls = [i for i, s in enumerate(body) if isa.is_indirect_call(s)]
    if not calls:
        return function
    names = _names_of(function)
    out: list[Statement] = []
    at = 0
    for call in calls:
        start, stop = scope_around(body, call)
        instruction = body[call]
        assert isinstance(instruction, Instruction)
        pointer = next((o for o in instruction.operands if isinstance(o, Register)), None)
        shape = _shape_of(body, instruction)
        found = targets.get(shape, ()) if shape is not None else ()
        if pointer is None or instruction.guard is not None or start < at or stop == len(body):
            continue
        if not 0 < len(found) <= MOST:
            continue
        out += body[at:start]
        out += _choice(body[start : stop + 1], call - start, pointer, found, names)
        at = stop + 1
    return replace(function, body=(*names.declarations(), *out, *body[at:])) if at else function


def _shape_of(body: Body, call: Instruction) -> _Shape | None:
    """The shape that the prototype of a call gives."""
    label = call.operands[-1]
    for statement in body:
        if (
            isinstance(statement, CallPrototype)
            and isinstance(label, Symbol)
            and statement.label == label.name
        ):
            return _shape(statement.returns, statement.parameters)
    return None


@dataclass(frozen=True, slots=True)
class _Names:
    """What the choices of a function use: registers that all of them share, and labels by their numbers."""

    address: Register
    other: Register
    prefix: str
    numbers: Iterator[int]

    def declarations(self) -> tuple[Statement, ...]:
        return tuple(
            RegisterDeclaration(type, (RegisterNames(register.name),))
            for type, register in ((".b64", self.address), (".pred", self.other))
        )

    def label(self) -> str:
        return f"{self.prefix}{next(self.numbers)}"


def _names_of(function: Function) -> _Names:
    used = {*isa.register_types(function), *(s.name for s in function.body or () if isinstance(s, Label))}
    stem = "callee"
    while any(name.lstrip("%$").startswith(stem) for name in used):
        stem += "_"
    return _Names(Register(f"%{stem}_address"), Register(f"%{stem}_other"), f"${stem}_", count(1))


def _choice(
    sequence: Body, call: int, pointer: Register, targets: Sequence[str], names: _Names
) -> Iterator[Statement]:
    """The call sequence once for each target, of which the pointer chooses one."""
    done = names.label()
    for target in targets:
        following = names.label()
        yield Instruction("mov.u64", (names.address, Symbol(target)))
        yield Instruction("setp.ne.u64", (names.other, pointer, names.address))
        yield Instruction("bra", (Symbol(following),), Guard(names.other))
        for index, statement in enumerate(sequence):
            if not isinstance(statement, CallPrototype):
                yield _direct(statement, pointer, target) if index == call else statement
        yield Instruction("bra", (Symbol(done),))
        yield Label(following)
    yield Instruction("trap", ())
    yield Label(done)


def _direct(call: Statement, pointer: Register, target: str) -> Statement:
    """The call, to a target; without the prototype, which is its last operand."""
    assert isinstance(call, Instruction)
    return replace(call, operands=tuple(Symbol(target) if o == pointer else o for o in call.operands[:-1]))
