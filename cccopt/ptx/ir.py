"""The PTX program as immutable nodes.

The statement list is the program: a function holds a flat tuple of statements in file order (scopes are
`Open` and `Close` statements), and control flow graphs are views of it. Nothing here keeps source text:
printing a module rebuilds every token from these fields. A literal's spelling is its token. PTX ISA 9.0,
chapters 4 to 7, 10 and 11.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from cccopt.text import Position

# --- operands ---


@dataclass(frozen=True, slots=True)
class Register:
    """A declared register: ``%r1``, ``%p2``, ``tmp``."""

    name: str


@dataclass(frozen=True, slots=True)
class SpecialRegister:
    """A predefined read-only register with its component: ``%tid.x``, ``%laneid`` (PTX ISA chapter 10)."""

    name: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A numeric literal as its token: ``42``, ``-1``, ``0x7F``, ``0f3F800000``, ``0d3FF0000000000000``."""

    spelling: str


@dataclass(frozen=True, slots=True)
class Expression:
    """A constant expression as its tokens: ``("(", "1", "+", "2", ")", "*", "3")``; see `constants`."""

    tokens: tuple[str, ...]

    @property
    def spelling(self) -> str:
        """The tokens, separated by blanks."""
        return " ".join(self.tokens)


@dataclass(frozen=True, slots=True)
class Symbol:
    """The name of a variable, function, parameter or label."""

    name: str


@dataclass(frozen=True, slots=True)
class Wildcard:
    """The sink ``_``."""


@dataclass(frozen=True, slots=True)
class Address:
    """A memory operand ``[base]`` or ``[base+offset]``; ``offset`` carries its own sign (``[%rd1+-4]``)."""

    base: Register | Symbol | Literal | Expression
    offset: Literal | Expression | None = None


@dataclass(frozen=True, slots=True)
class Indexed:
    """A variable used as an operand with an offset, without brackets: ``name+4`` or ``name[4]``."""

    base: Symbol | Register
    offset: Literal | Expression
    bracketed: bool = False


@dataclass(frozen=True, slots=True)
class Component:
    """A part of a register: ``v.x`` of a vector, ``r.b0`` or ``r.h1`` in a video instruction."""

    register: Register
    name: str


@dataclass(frozen=True, slots=True)
class TextureAddress:
    """A memory operand with coordinates: ``[tex, {x, y}]``, ``[tex, sampler, {x}]``."""

    elements: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Vector:
    """``{a, b, ...}``."""

    elements: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """A parenthesized list of a call: ``(param0, param1)``."""

    elements: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """``p|q``: two destinations."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Not:
    """``!p``: a negated predicate operand."""

    operand: Register


@dataclass(frozen=True, slots=True)
class Negative:
    """``-r``: an arithmetically negated register operand."""

    operand: Register | Component


Operand: TypeAlias = (
    "Register | SpecialRegister | Literal | Expression | Symbol | Wildcard | Address | Indexed"
    " | TextureAddress | Vector | Group | Pair | Not | Negative | Component"
)


@dataclass(frozen=True, slots=True)
class Guard:
    """The predicate in front of an instruction: ``@%p1`` or ``@!%p1``."""

    register: Register
    negated: bool = False


# --- statements ---


@dataclass(frozen=True)
class Instruction:
    """One instruction: ``@guard opcode operands;``. ``opcode`` is the whole dotted name."""

    opcode: str
    operands: tuple[Operand, ...] = ()
    guard: Guard | None = None
    position: Position | None = field(default=None, compare=False, repr=False)

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The dotted parts without dots: ``("ld", "global", "nc", "f32")``."""
        return tuple(self.opcode.split("."))

    @property
    def base(self) -> str:
        """The first part of the opcode: ``ld``."""
        return self.parts[0]


@dataclass(frozen=True, slots=True)
class Label:
    """``name:``."""

    name: str
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Marker:
    """A comment that cccopt reads: ``// ccc EVENT ID key=value ... file=PATH``.

    ``event`` is, for example, ``for.begin``, ``if.end`` or ``overhead.begin``; ``region`` is the number of the
    annotation (0 if there is none). A value has no blanks, except that of ``file``, which comes last and runs to
    the end of the line; a flag is a key with an empty value and prints as the key without ``=``.
    """

    event: str
    region: int
    attributes: tuple[tuple[str, str], ...] = ()
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Location:
    """``.loc file line column [, function_name label[+offset], inlined_at file line column]``. Holds until the next."""

    file: int
    line: int
    column: int
    function: str | None = None
    function_offset: int | None = None
    inlined_at: tuple[int, int, int] | None = None
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RegisterNames:
    """One declarator of ``.reg``: ``%r<24>`` (``count`` 24: ``%r0`` to ``%r23``) or a plain ``name``."""

    name: str
    count: int | None = None


@dataclass(frozen=True, slots=True)
class RegisterDeclaration:
    """``.reg .b32 %r<24>, tmp;``. ``type`` is spelled with its dots (``.b32``, ``.v4 .f32``)."""

    type: str
    names: tuple[RegisterNames, ...]
    alignment: int | None = None
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class InitializerList:
    """``{a, b, {c}}`` after ``=``."""

    elements: tuple[Initializer, ...]


@dataclass(frozen=True, slots=True)
class InitializerCall:
    """``generic(name)``, ``generic(name)+4`` or ``0xFF(name)`` (a mask) inside an initializer."""

    function: str
    argument: Symbol | Indexed | InitializerCall
    offset: Literal | Expression | None = None


@dataclass(frozen=True, slots=True)
class InitializerField:
    """``name = value`` inside the braces of a sampler's initializer: ``addr_mode_0 = clamp_to_border``."""

    name: str
    value: Literal | Symbol


Initializer: TypeAlias = (
    "Literal | Expression | Symbol | Indexed | InitializerList | InitializerCall | InitializerField"
)


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable or parameter: ``.visible .global .align 4 .b32 name[4] = {...};``.

    ``space`` is ``global``, ``const``, ``shared``, ``local`` or ``param`` (``reg``: a parameter in a
    register; ``tex``: a legacy texture). ``dimensions`` holds one size per pair of brackets, None for ``[]``;
    ``pointer`` is the ``.ptr`` clause as (space or None, alignment or None). ``type`` is spelled with its
    dots (``.b8``, ``.v4 .f32``), linkage and attributes without (``visible``, ``managed``; a parameter may be
    ``hidden``).
    """

    space: str
    type: str
    name: str
    dimensions: tuple[int | None, ...] = ()
    alignment: int | None = None
    linkage: tuple[str, ...] = ()
    initializer: Initializer | None = None
    pointer: tuple[str | None, int | None] | None = None
    attributes: tuple[str, ...] = ()
    count: int | None = None
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Pragma:
    """``.pragma "nounroll";``; the strings are without their quotes."""

    texts: tuple[str, ...]
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class BranchTargets:
    """``name: .branchtargets a, b;`` or ``.calltargets``; ``directive`` is the name used, with its dot.

    A range of labels, ``L<3>``, is written out: ``L0, L1, L2``.
    """

    label: str
    directive: str
    targets: tuple[str, ...]
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CallPrototype:
    """``name: .callprototype (returns) _ (parameters) [.noreturn];``.

    ``lists`` says whether the returns and the parameters have parentheses, even empty ones.
    """

    label: str
    returns: tuple[Variable, ...]
    parameters: tuple[Variable, ...]
    name: str = "_"
    directives: tuple[Directive, ...] = ()
    lists: tuple[bool, bool] = (True, True)
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Open:
    """``{``: begins a nested scope of names."""

    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Close:
    """``}``: ends a nested scope."""

    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Directive:
    """A directive with plain arguments: ``.version 9.0``, ``.target sm_90, debug``, ``.maxntid 256, 1, 1``.

    ``name`` includes its dot (``.maxntid``); arguments are tokens as spelled (``256``, a string with its quotes).
    """

    name: str
    arguments: tuple[str, ...] = ()
    position: Position | None = field(default=None, compare=False, repr=False)


Statement: TypeAlias = (
    "Instruction | Label | Marker | Location | RegisterDeclaration | Variable | Pragma | BranchTargets"
    " | CallPrototype | Open | Close | Directive"
)
Body: TypeAlias = "tuple[Statement, ...]"


# --- module ---


@dataclass(frozen=True, slots=True)
class Function:
    """A kernel (``kind`` "entry") or a device function ("func"); ``body`` is None for a prototype.

    ``directives`` are the performance directives between the parameter list and the body. ``parenthesised``
    says whether a parameter list exists, even an empty one, ``terminated`` whether a prototype ends with its ``;``,
    ``no_returns`` whether an empty list of results precedes the name.
    """

    kind: str
    name: str
    parameters: tuple[Variable, ...] = ()
    returns: tuple[Variable, ...] = ()
    linkage: tuple[str, ...] = ()
    directives: tuple[Directive, ...] = ()
    body: Body | None = None
    parenthesised: bool = True
    attributes: tuple[str, ...] = ()
    terminated: bool = True
    no_returns: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Section:
    """``.section .debug_info { ... }``: DWARF data, one `Directive` per line; a label is one named ``x:``."""

    name: str
    lines: tuple[Directive, ...]
    position: Position | None = field(default=None, compare=False, repr=False)


Item: TypeAlias = "Directive | Variable | RegisterDeclaration | Function | Section | Marker | Pragma"


@dataclass(frozen=True, slots=True)
class Module:
    """A whole PTX file, items in file order; ``.version``, ``.target``, ``.file`` are `Directive` items.

    A line of debug data in PTX before 2.0 is one too: `Directive` ``@@DWARF .byte``.
    """

    items: tuple[Item, ...]

    def functions(self) -> Iterator[Function]:
        """Functions and prototypes in file order."""
        return (item for item in self.items if isinstance(item, Function))
