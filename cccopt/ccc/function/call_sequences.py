"""Call sequences: a call with the accesses to its parameters and results, as nvcc writes it.

    {
    .param .align 8 .b8 param0[16];
    st.param.v2.b64 [param0], {%rd1, %rd2};         pieces (0, 0, 64) and (0, 8, 64)
    .param .b32 retval0;
    call.uni (retval0), f, (param0);
    ld.param.b32 %r7, [retval0+0];                  piece (0, 0, 32)
    }

PTX ISA 9.0, 7.1 (function declarations), 5.1.6.4 (device function parameters).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from cccopt.ptx import isa
from cccopt.ptx.ir import (
    Address,
    Body,
    Close,
    Function,
    Group,
    Indexed,
    Instruction,
    Label,
    Literal,
    Location,
    Marker,
    Open,
    Operand,
    Pragma,
    Register,
    Statement,
    Symbol,
    Variable,
    Vector,
)
from cccopt.ptx.isa import callee_of
from cccopt.ptx.scopes import scope_around


class Unfit(Exception):
    """The reason why a function cannot be put in place of its call."""


@dataclass(frozen=True, slots=True)
class CallPiece:
    """Bytes ``offset`` to ``offset + bits / 8`` of parameter or result number ``variable``."""

    variable: int
    offset: int
    bits: int

    @property
    def end(self) -> int:
        """One past the last byte."""
        return self.offset + self.bits // 8

    def overlaps(self, other: CallPiece) -> bool:
        """Whether the two share a byte."""
        return self.variable == other.variable and self.offset < other.end and other.offset < self.end


@dataclass(frozen=True, slots=True)
class ParameterAccess:
    """One element that a ``ld.param`` or ``st.param`` moves: its piece, its operand, its type without the dot."""

    piece: CallPiece
    operand: Operand
    type: str


@dataclass(frozen=True, slots=True)
class CallSequence:
    """A call with its parameter accesses: the scope from statement ``start`` to ``stop`` (the braces), and names."""

    start: int
    call: int
    stop: int
    arguments: tuple[str, ...]
    results: tuple[str, ...]


def self_calls(function: Function) -> list[int]:
    """The statements in which ``function`` calls itself."""
    return [i for i, s in enumerate(function.body or ()) if calls(s, function.name)]


def calls(statement: Statement, name: str) -> bool:
    """Whether the statement is a direct call of the function ``name``."""
    return isinstance(statement, Instruction) and statement.base == "call" and callee_of(statement) == name


def is_last(function: Function, call: int) -> bool:
    """Whether the function does nothing after a call of itself but return its results unchanged."""
    sequence = sequence_of(function.body or (), call)
    return _handed_on(function, sequence) == _returned(function)


def require_apart(pieces: Iterable[CallPiece]) -> None:
    """Raises Unfit if two pieces share bytes: it is not known here which of them was written last."""
    found = list(pieces)
    if any(a.overlaps(b) for i, a in enumerate(found) for b in found[:i]):
        raise Unfit("its parameters are stored in pieces that overlap")


def sequence_of(body: Body, call: int) -> CallSequence:
    """The scope around a call, with the names that it passes. Raises Unfit."""
    instruction = body[call]
    assert isinstance(instruction, Instruction)
    position = next(i for i, o in enumerate(instruction.operands) if isinstance(o, Symbol))
    results, arguments = (
        _names(group) for group in (instruction.operands[:position], instruction.operands[position + 1 :])
    )
    start, stop = scope_around(body, call)
    scope = body[start + 1 : stop] if start >= 0 and stop < len(body) else ()
    declared = {s.name for s in scope if isinstance(s, Variable)}
    if instruction.guard is not None or not {*results, *arguments} <= declared:
        raise Unfit(
            "it is not called the way the compiler calls functions, with parameters declared at the call"
        )
    if any(isinstance(s, Open | Close | Label) for s in scope):
        raise Unfit("the call sequence contains other code")
    return CallSequence(start, call, stop, arguments, results)


def _names(operands: Sequence[Operand]) -> tuple[str, ...]:
    names: list[str] = []
    for operand in operands:
        for element in operand.elements if isinstance(operand, Group) else (operand,):
            if not isinstance(element, Symbol):
                raise Unfit("it is called with registers as parameters")
            names.append(element.name)
    return tuple(names)


def accesses(instruction: Instruction, variables: Sequence[str]) -> list[ParameterAccess]:
    """The elements that a load from or store to parameters moves (vectors are split); none for other instructions.

    Raises Unfit for an access whose offset is not a number.
    """
    address = next((o for o in instruction.operands if isinstance(o, Address)), None)
    if address is None or not isinstance(address.base, Symbol) or address.base.name not in variables:
        return []
    (moved,) = (o for o in instruction.operands if o is not address)
    elements = moved.elements if isinstance(moved, Vector) else (moved,)
    offset = 0 if address.offset is None else _integer(address.offset)
    type = instruction.parts[-1]
    bits = isa.width(type)
    variable = variables.index(address.base.name)
    return [
        ParameterAccess(CallPiece(variable, offset + i * bits // 8, bits), e, type)
        for i, e in enumerate(elements)
    ]


def _integer(operand: Operand) -> int:
    try:
        return int(operand.spelling.rstrip("U"), 0) if isinstance(operand, Literal) else int("")
    except ValueError:
        raise Unfit("a parameter is accessed at an offset that is not a number") from None


def symbols_of(instruction: Instruction) -> Iterator[str]:
    """The names of variables, functions and labels that an instruction mentions, also in addresses."""
    work = list(instruction.operands)
    while work:
        operand = work.pop()
        match operand:
            case Symbol(name):
                yield name
            case Address(base) | Indexed(base):
                work.append(base)
            case Group(elements) | Vector(elements):
                work += elements


# --- the end of a function ---


@dataclass
class _ResultState:
    """What is known about the results of a call on the way from the call to the function's end."""

    held: dict[str, CallPiece] = field(default_factory=dict)
    stored: set[CallPiece] = field(default_factory=set)


def _returned(function: Function) -> set[CallPiece]:
    """All pieces of its own results that a function stores."""
    names = [r.name for r in function.returns]
    stores = (s for s in function.body or () if isinstance(s, Instruction) and s.base == "st")
    return {access.piece for store in stores for access in accesses(store, names)}


def _handed_on(function: Function, sequence: CallSequence) -> set[CallPiece] | None:
    """The result pieces that a function passes on from a call, or None if anything else happens before its `ret`."""
    body = function.body or ()
    positions = {s.name: i for i, s in enumerate(body) if isinstance(s, Label)}
    returns = [r.name for r in function.returns]
    walk, seen, index = _ResultState(), set[int](), sequence.call + 1
    while index not in seen:
        seen.add(index)
        if index >= len(body):
            return walk.stored
        statement = body[index]
        index += 1
        if not isinstance(statement, Instruction):
            if isinstance(statement, Label | Location | Close | Pragma) or _is_end(statement):
                continue
            return None
        if statement.guard is not None:
            return None
        if statement.base == "ret":
            return walk.stored
        if statement.base == "bra" and isinstance(statement.operands[0], Symbol):
            index = positions[statement.operands[0].name]
        elif not _passes(statement, walk, sequence, returns):
            return None
    return None


def _is_end(statement: Statement) -> bool:
    return isinstance(statement, Marker) and statement.event.endswith(".end")


def _passes(
    statement: Instruction, walk: _ResultState, sequence: CallSequence, returns: Sequence[str]
) -> bool:
    """Whether a statement only passes on results of the call."""
    if statement.base == "ld":
        loaded = accesses(statement, sequence.results)
        walk.held |= {a.operand.name: a.piece for a in loaded if isinstance(a.operand, Register)}
        return bool(loaded)
    if statement.base == "st":
        stored = accesses(statement, returns)
        walk.stored |= {a.piece for a in stored}
        return bool(stored) and all(
            isinstance(a.operand, Register) and walk.held.get(a.operand.name) == a.piece for a in stored
        )
    if statement.base == "mov" and all(isinstance(o, Register) for o in statement.operands):
        target, source = (o.name for o in statement.operands if isinstance(o, Register))
        if source not in walk.held:
            return False
        walk.held[target] = walk.held[source]
        return True
    return False
