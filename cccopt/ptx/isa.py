"""The one instruction table: operand roles, types, effects, throughput class (PTX ISA 9.0, chapter 9).

The rows are in ``isa_table.py``, where a new opcode takes one row; ``isa_rows.py`` reads them. An opcode that is not
there parses and prints, counts as reading and writing everything it names, and counts as convergent; a pass that needs
to understand it declines. The carry flag is not an operand: an instruction that reads or writes it is not pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache, lru_cache

from cccopt.ptx.ir import (
    Address,
    Body,
    BranchTargets,
    Component,
    Function,
    Group,
    Guard,
    Indexed,
    Instruction,
    Literal,
    Negative,
    Not,
    Operand,
    Pair,
    Register,
    RegisterDeclaration,
    RegisterNames,
    SpecialRegister,
    Statement,
    Symbol,
    TextureAddress,
    Vector,
)
from cccopt.ptx.isa_rows import (
    WIDTHS,
    Role,
    call_roles_and_types,
    is_address,
    roles_and_types,
    row_of,
    slots_of,
    space_of,
    width,
)
from cccopt.ptx.special import CHANGING

__all__ = [
    "REDUCTIONS",
    "WIDTHS",
    "Arithmetic",
    "Control",
    "Facts",
    "Memory",
    "Role",
    "callee_of",
    "declared_names",
    "definitions",
    "facts",
    "is_conditional_write",
    "reads",
    "register_types",
    "rename",
    "substitute",
    "targets",
    "width",
]


class Memory(Enum):
    """How an instruction touches memory."""

    NONE = "none"
    LOAD = "load"
    STORE = "store"
    ATOMIC = "atomic"  # reads and writes: atom, red, cas loops


class Control(Enum):
    """How an instruction moves the program counter."""

    NEXT = "next"
    BRANCH = "branch"  # bra
    INDEXED = "indexed"  # brx.idx
    CALL = "call"
    RETURN = "return"  # ret
    EXIT = "exit"
    TRAP = "trap"


class Arithmetic(Enum):
    """What an instruction computes from its sources, for analyses of numbers and addresses."""

    OTHER = "other"
    COPY = "copy"  # of the source, perhaps in another type or state space
    SELECTION = "selection"  # one of the first two sources, by the third
    SUM = "sum"
    DIFFERENCE = "difference"
    NEGATION = "negation"
    PRODUCT = "product"
    PRODUCT_SUM = "product-sum"  # the product of the first two sources, plus the third
    FUSED_PRODUCT_SUM = "fused-product-sum"  # the same, rounded once
    LEFT_SHIFT = "left-shift"
    RIGHT_SHIFT = "right-shift"
    QUOTIENT = "quotient"
    REMAINDER = "remainder"
    CONJUNCTION = "conjunction"
    DISJUNCTION = "disjunction"
    BIT_COUNT = "bit-count"  # a number of bits or the position of one
    BIT_FIELD = "bit-field"


@dataclass(frozen=True, slots=True)
class Facts:
    """What the table says about one instruction, with its modifiers taken into account.

    ``roles`` and ``types`` run parallel to the operands. A type is spelled without its dot (``u32``) and is None if
    the operand has none. The second of a `Pair` is a predicate, and each element of a `Vector` has the
    type. ``space`` is ``global``, ``shared``, ``local``, ``param``, ``const`` or ``generic``.
    ``synchronises``: barriers, fences, ``.sync`` collectives, acquire/release/volatile accesses.
    ``convergent``: it matters which lanes run it together. ``aligned``: an ``.aligned`` form, mma
    or elect. ``pure``: the result is a function of only the operands. ``waits``: it waits for other warps, other
    grids or work in flight, or such a wait waits for it (an arrival, a copy that begins); ``fence``: it only
    orders memory accesses. ``slots``: the issue slots that a warp needs (1 is full throughput). The facts of a call
    are its own; what the callee does is not among them.

    ``arithmetic``: what it computes. ``linear``: its result is a linear function of each source, cut off only by the
    width of its type. ``reduction``: the commutative and associative operator, as a pragma spells it, with which
    it updates a register or memory. ``uniform``: all lanes of its mask get the same result. ``collective``: the
    lanes of its mask meet or exchange values. ``barrier``: the threads of a block or cluster meet. ``cluster``: it
    touches other blocks of the cluster. ``grouped``: warps work as a group on registers that they hand
    over or on tensor memory. ``wider``: an operand may be wider than its type. ``carries``: it reads the carry flag,
    ``sets_carry``: it writes it.
    """

    known: bool
    roles: tuple[Role, ...]
    types: tuple[str | None, ...]
    memory: Memory = Memory.NONE
    space: str | None = None
    control: Control = Control.NEXT
    synchronises: bool = False
    convergent: bool = False
    aligned: bool = False
    pure: bool = False
    volatile: bool = False
    waits: bool = False
    fence: bool = False
    slots: float = 1.0
    arithmetic: Arithmetic = Arithmetic.OTHER
    linear: bool = False
    reduction: str | None = None
    uniform: bool = False
    collective: bool = False
    barrier: bool = False
    cluster: bool = False
    grouped: bool = False
    wider: bool = False
    carries: bool = False
    sets_carry: bool = False


_ORDERED = frozenset(("acquire", "release", "acq_rel", "sc"))
_CONTROLS = {control.value: control for control in Control}
_MEMORIES = {memory.value: memory for memory in Memory}
_ARITHMETIC = {arithmetic.value: arithmetic for arithmetic in Arithmetic}
REDUCTIONS = frozenset(("+", "*", "&", "|", "^", "min", "max"))
"""The operators of `Facts.reduction`."""


# --- facts ---


def facts(instruction: Instruction) -> Facts:
    """What the table says about ``instruction``; an opcode not in it reads and writes all its operands."""
    known: Facts | None = instruction.__dict__.get("_facts")
    if known is None:
        # Passes ask millions of times, so the instruction keeps the answer.
        known = instruction.__dict__["_facts"] = _facts_of(instruction)
    return known


def _facts_of(instruction: Instruction) -> Facts:
    kinds = tuple([operand.__class__ for operand in instruction.operands])
    found = _facts(instruction.opcode, kinds)
    if not found.pure or (SpecialRegister not in kinds and Vector not in kinds):
        return found
    registers = (register for operand in instruction.operands for register in registers_in(operand))
    changing = any(isinstance(r, SpecialRegister) and r.name in CHANGING for r in registers)
    return replace(found, pure=False, volatile=True) if changing else found


@cache
def _facts(opcode: str, kinds: tuple[type, ...]) -> Facts:
    parts = opcode.split(".")
    row = row_of(opcode, len(kinds))
    if row is None:
        roles = tuple(Role.ADDRESS if is_address(kind) else Role.DEF_USE for kind in kinds)
        return Facts(
            False, roles, (None,) * len(kinds), Memory.ATOMIC, "generic",
            synchronises=True, convergent=True, aligned="aligned" in parts, volatile=True, waits=True,
        )  # fmt: skip
    effects = row.effects.split()
    control = next((_CONTROLS[word] for word in effects if word in _CONTROLS), Control.NEXT)
    memory = next((_MEMORIES[word] for word in effects if word in _MEMORIES), Memory.NONE)
    arithmetic = next((_ARITHMETIC[word] for word in effects if word in _ARITHMETIC), Arithmetic.OTHER)
    types = [part for part in parts[1:] if part in WIDTHS]
    volatile = "volatile" in parts or "mmio" in parts
    ordered = memory is not Memory.NONE and (volatile or not _ORDERED.isdisjoint(parts))
    roles, operand_types = (
        call_roles_and_types(kinds) if control is Control.CALL else roles_and_types(row, types, kinds)
    )
    return Facts(
        known=True,
        roles=roles,
        types=operand_types,
        memory=memory,
        space=None if memory is Memory.NONE else row.space or space_of(parts),
        control=control,
        synchronises="sync" in effects or ordered,
        convergent="convergent" in effects,
        aligned="aligned" in effects or "aligned" in parts,
        pure="pure" in effects,
        volatile=volatile,
        waits="waits" in effects,
        fence="fence" in effects,
        slots=slots_of(row, types, parts),
        arithmetic=arithmetic,
        linear="linear" in effects,
        reduction=next((word for word in effects if word in REDUCTIONS), None),
        uniform="uniform" in effects,
        collective="collective" in effects,
        barrier="barrier" in effects,
        cluster="cluster" in effects,
        grouped="grouped" in effects,
        wider="wider" in effects,
        carries="carries" in effects,
        sets_carry="cc" in parts,
    )


# --- registers ---


def registers_in(operand: Operand) -> Iterator[Register | SpecialRegister]:
    """The registers in an operand, in order."""
    match operand:
        case Register() | SpecialRegister():
            yield operand
        case Address(base) | Indexed(base):
            yield from registers_in(base)
        case Vector(elements) | Group(elements) | TextureAddress(elements):
            for element in elements:
                yield from registers_in(element)
        case Pair(first, second):
            yield from registers_in(first)
            yield from registers_in(second)
        case Not(inner) | Negative(inner) | Component(inner):
            yield from registers_in(inner)


def definitions(instruction: Instruction) -> tuple[Register, ...]:
    """The registers that ``instruction`` writes, in order, each once; a guarded one may leave them unchanged."""
    written: list[Register] = []
    for operand, role in zip(instruction.operands, facts(instruction).roles, strict=True):
        if role is Role.DEF or role is Role.DEF_USE:
            written += [register for register in registers_in(operand) if isinstance(register, Register)]
    return tuple(written) if len(written) < 2 else tuple(dict.fromkeys(written))


def reads(instruction: Instruction) -> tuple[Register | SpecialRegister, ...]:
    """The registers that ``instruction`` reads: its guard, sources and address bases, in order, each once.

    A guarded write keeps the old value of its destination if the guard is false: see `is_conditional_write`.
    """
    found: dict[Register | SpecialRegister, None] = {}
    if instruction.guard is not None:
        found[instruction.guard.register] = None
    for operand, role in zip(instruction.operands, facts(instruction).roles, strict=True):
        # Writing one component leaves the others of a vector as they were.
        if role is not Role.DEF or isinstance(operand, Component):
            found.update(dict.fromkeys(registers_in(operand)))
    return tuple(found)


def is_conditional_write(instruction: Instruction) -> bool:
    """Whether a guard decides if ``instruction`` writes its destinations."""
    return instruction.guard is not None and bool(definitions(instruction))


def rename(
    instruction: Instruction,
    uses: Mapping[str, Operand] | Callable[[str], Operand | None],
    definitions: Mapping[str, Register],
) -> Instruction:
    """``instruction`` with what it reads replaced by ``uses`` and what it writes by ``definitions``.

    Both map register names, ``uses`` also those of special registers; a name without an entry (or with None)
    stays. The guard is a use. Raises ValueError if a replacement is not allowed: a literal as a guard, or a
    register that is both read and written whose two replacements differ.
    """
    replacement = uses if callable(uses) else uses.get

    def use(register: Register | SpecialRegister) -> Operand:
        new = replacement(register.name)
        return register if new is None else new

    def define(register: Register | SpecialRegister) -> Operand:
        return definitions.get(register.name, register) if isinstance(register, Register) else register

    def both(register: Register | SpecialRegister) -> Operand:
        new = define(register)
        if new != use(register):
            raise ValueError(f"`{register.name}` is read and written by `{instruction.opcode}`")
        return new

    chosen = {Role.DEF: define, Role.DEF_USE: both}
    operands = tuple(
        substitute(operand, chosen.get(role, use))
        for operand, role in zip(instruction.operands, facts(instruction).roles, strict=True)
    )
    guard = instruction.guard
    if guard is not None:
        guard = Guard(_register(use(guard.register)), guard.negated)
    return replace(instruction, operands=operands, guard=guard)


def _register(operand: Operand) -> Register:
    if not isinstance(operand, Register):
        raise ValueError(f"{operand} is used where only a register can be")
    return operand


def substitute(operand: Operand, new: Callable[[Register | SpecialRegister], Operand]) -> Operand:
    """``operand`` with its registers replaced by what ``new`` gives; ValueError if that is not allowed."""
    match operand:
        case Register() | SpecialRegister():
            return new(operand)
        case Address(Register() as base, offset):
            changed = new(base)
            if not isinstance(changed, (Register, Symbol, Literal)):
                raise ValueError(f"{changed} cannot be the base of an address")
            return Address(changed, offset)
        case Vector(elements):
            return Vector(tuple(substitute(e, new) for e in elements))
        case Group(elements):
            return Group(tuple(substitute(e, new) for e in elements))
        case TextureAddress(elements):
            return TextureAddress(tuple(substitute(e, new) for e in elements))
        case Pair(first, second):
            return Pair(substitute(first, new), substitute(second, new))
        case Not(register):
            return Not(_register(new(register)))
        case Negative(Component(register, name)):
            return Negative(Component(_register(new(register)), name))
        case Negative(Register() as register):
            return Negative(_register(new(register)))
        case Component(register, name):
            return Component(_register(new(register)), name)
        case Indexed(Register() as base, offset, bracketed):
            return Indexed(_register(new(base)), offset, bracketed)
    return operand


def register_types(function: Function) -> dict[str, str]:
    """The type, without dot, of each register that ``function`` declares, by name; ``.v4 .f32`` is ``v4.f32``."""
    types: dict[str, str] = {}
    for parameter in (*function.returns, *function.parameters):
        if parameter.space == "reg":
            types[parameter.name] = parameter.type.lstrip(".")
    for statement in function.body or ():
        if isinstance(statement, RegisterDeclaration):
            type_ = statement.type.replace(" ", "").lstrip(".")
            for declared in statement.names:
                types.update(dict.fromkeys(declared_names(declared), type_))
    return types


@lru_cache(maxsize=1024)
def declared_names(declared: RegisterNames) -> tuple[str, ...]:
    """The names that one declarator declares: ``%r<3>`` is ``%r0``, ``%r1``, ``%r2``."""
    if declared.count is None:
        return (declared.name,)
    return tuple([f"{declared.name}{i}" for i in range(declared.count)])


def callee_of(call: Instruction) -> str | None:
    """The function that a direct call names; None for a call by pointer, which names its prototype or its targets."""
    callee = next((o for o in call.operands if not isinstance(o, Group)), None)
    return callee.name if isinstance(callee, Symbol) else None


def is_indirect_call(statement: Statement) -> bool:
    """Whether a statement calls through a pointer."""
    return isinstance(statement, Instruction) and statement.base == "call" and callee_of(statement) is None


def targets(instruction: Instruction, body: Body) -> tuple[str, ...]:
    """The labels that a ``bra`` or ``brx.idx`` may go to; none for other instructions."""
    control = facts(instruction).control
    label = instruction.operands[-1] if instruction.operands else None
    if control not in (Control.BRANCH, Control.INDEXED) or not isinstance(label, Symbol):
        return ()
    if control is Control.BRANCH:
        return (label.name,)
    lists = (s for s in body if isinstance(s, BranchTargets) and s.label == label.name)
    return next((s.targets for s in lists), ())
