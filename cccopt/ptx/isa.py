"""The one instruction table: operand roles, types, effects, throughput class (PTX ISA 9.0, chapter 9).

The rows are in ``isa_table.py``; a new opcode is one row. An opcode that is not there parses and prints,
reads and writes everything it names, and is convergent; a pass that would have to understand it declines. The
carry flag is no operand: an instruction that reads or writes it is not pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache

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
    Symbol,
    TextureAddress,
    Vector,
)
from cccopt.ptx.isa_table import COSTS, ROWS, Row
from cccopt.ptx.special import CHANGING


class Role(Enum):
    """What an instruction does with an operand."""

    DEF = "def"
    USE = "use"
    DEF_USE = "def+use"
    ADDRESS = "address"  # a memory operand: its registers are read
    LABEL = "label"
    NAME = "name"  # a function, prototype, barrier or texture name: not a register


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
    EXIT = "exit"  # exit, trap


@dataclass(frozen=True, slots=True)
class Facts:
    """What the table says of one instruction (its modifiers taken into account).

    ``roles`` and ``types`` run parallel to the operands; a type is spelled without dot (``u32``), None where
    the operand has none; the second of a `Pair` is a predicate, the elements of a `Vector` are of the
    type each. ``space`` is ``global``, ``shared``, ``local``, ``param``, ``const`` or ``generic``.
    ``synchronises``: barriers, fences, ``.sync`` collectives, acquire/release/volatile accesses.
    ``convergent``: the set of lanes that run it together matters. ``aligned``: an ``.aligned`` form, mma
    or elect. ``pure``: the result is a function of the operands alone. ``waits``: it waits for other warps, other
    grids or work in flight, or is what such a wait is for (an arrival, a copy that begins); ``fence``: it only
    orders memory accesses. ``slots``: issue slots a warp needs (1 is full throughput). A call's facts are its
    own; what the callee does is not in them.
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


WIDTHS: dict[str, int] = {
    **{f"{letter}{bits}": bits for letter in "bsu" for bits in (8, 16, 32, 64, 128)},
    "f16": 16,
    "bf16": 16,
    "f32": 32,
    "tf32": 32,
    "f64": 64,
    "f16x2": 32,
    "bf16x2": 32,
    "f32x2": 64,
    "s16x2": 32,
    "u16x2": 32,
    "pred": 1,
    **{f"{eight}x2": 16 for eight in ("e4m3", "e5m2", "ue8m0", "s2f6")},
    **{f"{small}x2": 16 for small in ("e2m3", "e3m2")},
    **{f"{eight}x4": 32 for eight in ("e4m3", "e5m2", "e2m3", "e3m2")},
    "e2m1x2": 8,
    "e2m1x4": 16,
    "e4m3": 8,
    "e5m2": 8,
    "ue8m0": 8,
}
"""Bits of each fundamental type, by its name without dot (PTX ISA 9.0, 5.2)."""

_SPACES = frozenset(("global", "shared", "local", "param", "const"))
_ROLES = {"d": Role.DEF, "m": Role.ADDRESS, "x": Role.DEF_USE, "l": Role.LABEL, "n": Role.NAME}
_WIDER = {"8": "16", "16": "32", "32": "64", "64": "128"}
_ORDERED = frozenset(("acquire", "release", "acq_rel", "sc"))
_CONTROLS = {control.value: control for control in Control}
_MEMORIES = {memory.value: memory for memory in Memory}


def width(type: str) -> int:
    """Bits of a type spelled without its first dot: ``b32`` is 32, ``pred`` 1, ``v4.f32`` 128."""
    vector, _, element = type.rpartition(".")
    return int(vector[1:]) * WIDTHS[element] if vector else WIDTHS[type]


# --- facts ---


def facts(instruction: Instruction) -> Facts:
    """What the table says of ``instruction``; an opcode not in it reads and writes all its operands."""
    known: Facts | None = instruction.__dict__.get("_facts")
    if known is None:
        # Passes ask millions of times, so that the instruction keeps the answer.
        known = instruction.__dict__["_facts"] = _told(instruction)
    return known


def _told(instruction: Instruction) -> Facts:
    kinds = tuple([operand.__class__ for operand in instruction.operands])
    told = _facts(instruction.opcode, kinds)
    if not told.pure or (SpecialRegister not in kinds and Vector not in kinds):
        return told
    registers = (register for operand in instruction.operands for register in _registers(operand))
    changing = any(isinstance(r, SpecialRegister) and r.name in CHANGING for r in registers)
    return replace(told, pure=False, volatile=True) if changing else told


@cache
def _facts(opcode: str, kinds: tuple[type, ...]) -> Facts:
    parts = opcode.split(".")
    row = _row(parts)
    if row is None or not _fits(row, len(kinds)):
        roles = tuple(Role.ADDRESS if _is_address(kind) else Role.DEF_USE for kind in kinds)
        return Facts(
            False, roles, (None,) * len(kinds), Memory.ATOMIC, "generic",
            synchronises=True, convergent=True, aligned="aligned" in parts, volatile=True, waits=True,
        )  # fmt: skip
    effects = row.effects.split()
    control = next((_CONTROLS[word] for word in effects if word in _CONTROLS), Control.NEXT)
    memory = next((_MEMORIES[word] for word in effects if word in _MEMORIES), Memory.NONE)
    types = [part for part in parts[1:] if part in WIDTHS]
    volatile = "volatile" in parts or "mmio" in parts
    ordered = memory is not Memory.NONE and (volatile or not _ORDERED.isdisjoint(parts))
    roles, operand_types = _call_operands(kinds) if control is Control.CALL else _operands(row, types, kinds)
    return Facts(
        known=True,
        roles=roles,
        types=operand_types,
        memory=memory,
        space=None if memory is Memory.NONE else row.space or _space(parts),
        control=control,
        synchronises="sync" in effects or ordered,
        convergent="convergent" in effects,
        aligned="aligned" in effects or "aligned" in parts,
        pure="pure" in effects,
        volatile=volatile,
        waits="waits" in effects,
        fence="fence" in effects,
        slots=_slots(row, types, parts),
    )


def row_of(instruction: Instruction) -> Row | None:
    """The row of the table that ``instruction`` falls under; None where facts are not known."""
    row = _row(instruction.opcode.split("."))
    return row if row is not None and _fits(row, len(instruction.operands)) else None


def introduced(instruction: Instruction) -> tuple[str, str] | None:
    """The PTX version and the target that brought the family of ``instruction``: ``("7.0", "sm_80")``.

    The target is empty for what every target has. A form of it may be younger. None where facts are not known.
    """
    return _introduced(instruction.opcode, len(instruction.operands))


@cache
def _introduced(opcode: str, operands: int) -> tuple[str, str] | None:
    row = _row(opcode.split("."))
    if row is None or not _fits(row, operands):
        return None
    version, _, target = row.since.partition(" ")
    return version, target


def _row(parts: list[str]) -> Row | None:
    rows = ROWS.get(parts[0], ())
    return next((row for row in rows if all(p in parts for p in row.opcode.split(".")[1:])), None)


def _fits(row: Row, count: int) -> bool:
    fewest, most = _arity(row)
    return fewest <= count and (most is None or count <= most)


def _arity(row: Row) -> tuple[int, int | None]:
    words = row.operands.split()
    unlimited = row.opcode == "call" or any(word.endswith("*") for word in words)
    return sum(word[-1] not in "?*" for word in words), None if unlimited else len(words)


def _is_address(kind: type) -> bool:
    return kind is Address or kind is TextureAddress


def _space(parts: list[str]) -> str:
    return next((stem for part in parts[1:] if (stem := part.partition("::")[0]) in _SPACES), "generic")


@cache
def operand_count(opcode: str) -> tuple[int, int | None] | None:
    """The fewest and most operands that ``opcode`` takes (None: no limit); None for an unknown opcode."""
    row = _row(opcode.split("."))
    return None if row is None else _arity(row)


def _operands(
    row: Row, types: list[str], kinds: tuple[type, ...]
) -> tuple[tuple[Role, ...], tuple[str | None, ...]]:
    words = _fitted(row.operands.split(), len(kinds))
    roles: list[Role] = []
    operand_types: list[str | None] = []
    for word, kind in zip(words, kinds, strict=True):
        letter, _, type_ = word.rstrip("?*").partition(":")
        roles.append(Role.ADDRESS if _is_address(kind) else _ROLES.get(letter, Role.USE))
        operand_types.append(None if _is_address(kind) else _type(type_, types))
    return tuple(roles), tuple(operand_types)


def _fitted(words: list[str], count: int) -> list[str]:
    """The specification of each of ``count`` operands: optional ones drop out from the right."""
    fitted = list(words)
    while len(fitted) > count:
        del fitted[max(i for i, word in enumerate(fitted) if word[-1] in "?*")]
    return fitted + ["u"] * (count - len(fitted))


def _type(spelled: str, types: list[str]) -> str | None:
    if spelled == "w0":
        return types[0][0] + _WIDER[types[0][1:]] if types else None
    if spelled.lstrip("-").isdigit():
        index = int(spelled)
        return types[index] if -len(types) <= index < len(types) else None
    return spelled or None


def _call_operands(kinds: tuple[type, ...]) -> tuple[tuple[Role, ...], tuple[str | None, ...]]:
    """``call (returned), function, (arguments), prototype``; a function in a register is an indirect call."""
    roles: list[Role] = []
    for i, kind in enumerate(kinds):
        if kind is Group:
            roles.append(Role.DEF if i == 0 else Role.USE)
        else:
            roles.append(Role.USE if kind is Register else Role.NAME)
    return tuple(roles), (None,) * len(kinds)


def _slots(row: Row, types: list[str], parts: list[str]) -> float:
    costs = COSTS[row.cost]
    name = types[0] if types else ""
    if row.cost == "convert" and any(t.startswith("f") for t in types) and any(width(t) == 64 for t in types):
        name = "f64"
    bits = str(width(name)) if name else ""
    if row.cost == "memory":
        lanes = next((int(part[1]) for part in parts if part in ("v2", "v4", "v8")), 1)
        bits = str(min(int(bits or 32) * lanes, 128))
    elif name.startswith(("f", "bf")):
        bits = "f16" if bits == "16" else f"f{bits}"
    return costs.get(name, costs.get(bits, costs[""]))


# --- registers ---


def _registers(operand: Operand) -> Iterator[Register | SpecialRegister]:
    match operand:
        case Register() | SpecialRegister():
            yield operand
        case Address(base) | Indexed(base):
            yield from _registers(base)
        case Vector(elements) | Group(elements) | TextureAddress(elements):
            for element in elements:
                yield from _registers(element)
        case Pair(first, second):
            yield from _registers(first)
            yield from _registers(second)
        case Not(inner) | Negative(inner) | Component(inner):
            yield from _registers(inner)


def definitions(instruction: Instruction) -> tuple[Register, ...]:
    """The registers that ``instruction`` writes, in order, each once; if guarded, it may leave them be."""
    written: list[Register] = []
    for operand, role in zip(instruction.operands, facts(instruction).roles, strict=True):
        if role is Role.DEF or role is Role.DEF_USE:
            written += [register for register in _registers(operand) if isinstance(register, Register)]
    return tuple(written) if len(written) < 2 else tuple(dict.fromkeys(written))


def reads(instruction: Instruction) -> tuple[Register | SpecialRegister, ...]:
    """The registers that ``instruction`` reads: its guard, sources and address bases, in order, each once.

    A guarded write keeps its old destination where the guard is false: see `is_conditional_write`.
    """
    found: dict[Register | SpecialRegister, None] = {}
    if instruction.guard is not None:
        found[instruction.guard.register] = None
    for operand, role in zip(instruction.operands, facts(instruction).roles, strict=True):
        # Writing one component leaves the others of a vector as they were.
        if role is not Role.DEF or isinstance(operand, Component):
            found.update(dict.fromkeys(_registers(operand)))
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

    Both go by register name (special registers too); a name without an entry (or with None) stays. The
    guard is a use. Raises ValueError where a replacement cannot stand: a literal as a guard, or a
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
        raise ValueError(f"{operand} stands where only a register can")
    return operand


def substitute(operand: Operand, new: Callable[[Register | SpecialRegister], Operand]) -> Operand:
    """``operand`` with its registers replaced by what ``new`` gives; ValueError where that cannot stand."""
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
    """Type without dot of each register that ``function`` declares, by name; ``.v4 .f32`` is ``v4.f32``."""
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


def declared_names(declared: RegisterNames) -> tuple[str, ...]:
    """The names that one declarator stands for: ``%r<3>`` is ``%r0``, ``%r1``, ``%r2``."""
    if declared.count is None:
        return (declared.name,)
    return tuple([f"{declared.name}{i}" for i in range(declared.count)])


def function_registers(function: Function) -> tuple[Register, ...]:
    """The registers that ``function`` declares, in order."""
    return tuple(Register(name) for name in register_types(function))


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
