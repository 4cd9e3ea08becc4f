"""Reading the instruction table: the row of an opcode, and what it says about operands, age and throughput.

`cccopt.ptx.isa` combines the answers and is the module that other packages import.
"""

from __future__ import annotations

from enum import Enum
from functools import cache

from cccopt.ptx.ir import Address, Group, Instruction, Register, TextureAddress
from cccopt.ptx.isa_table import COSTS, ROWS, Row


class Role(Enum):
    """What an instruction does with an operand."""

    DEF = "def"
    USE = "use"
    DEF_USE = "def+use"
    ADDRESS = "address"  # a memory operand: its registers are read
    LABEL = "label"
    NAME = "name"  # a function, prototype, barrier or texture name: not a register


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
"""The bits of each fundamental type, by its name without the dot (PTX ISA 9.0, 5.2)."""

_SPACES = frozenset(("global", "shared", "local", "param", "const"))
_ROLES = {"d": Role.DEF, "m": Role.ADDRESS, "x": Role.DEF_USE, "l": Role.LABEL, "n": Role.NAME}
_WIDER = {"8": "16", "16": "32", "32": "64", "64": "128"}


def width(type: str) -> int:
    """The bits of a type spelled without its first dot: ``b32`` is 32, ``pred`` 1, ``v4.f32`` 128."""
    vector, _, element = type.rpartition(".")
    return int(vector[1:]) * WIDTHS[element] if vector else WIDTHS[type]


def introduced(instruction: Instruction) -> tuple[str, str] | None:
    """The PTX version and the target that introduced the family of ``instruction``: ``("7.0", "sm_80")``.

    The target is empty if every target has the family. A form of it may be newer. None if the table has no row.
    """
    row = row_of(instruction.opcode, len(instruction.operands))
    if row is None:
        return None
    version, _, target = row.since.partition(" ")
    return version, target


@cache
def row_of(opcode: str, operands: int) -> Row | None:
    """The row of the table for ``opcode`` with this number of ``operands``; None if there is none."""
    row = _row(opcode)
    if row is None:
        return None
    fewest, most = _arity(row)
    return row if fewest <= operands and (most is None or operands <= most) else None


def _row(opcode: str) -> Row | None:
    parts = opcode.split(".")
    rows = ROWS.get(parts[0], ())
    return next((row for row in rows if all(p in parts for p in row.opcode.split(".")[1:])), None)


def _arity(row: Row) -> tuple[int, int | None]:
    words = row.operands.split()
    unlimited = row.opcode == "call" or any(word.endswith("*") for word in words)
    return sum(word[-1] not in "?*" for word in words), None if unlimited else len(words)


def is_address(kind: type) -> bool:
    return kind is Address or kind is TextureAddress


def space_of(parts: list[str]) -> str:
    return next((stem for part in parts[1:] if (stem := part.partition("::")[0]) in _SPACES), "generic")


@cache
def operand_count(opcode: str) -> tuple[int, int | None] | None:
    """The fewest and most operands that ``opcode`` takes (None: no limit); None for an unknown opcode."""
    row = _row(opcode)
    return None if row is None else _arity(row)


def roles_and_types(
    row: Row, types: list[str], kinds: tuple[type, ...]
) -> tuple[tuple[Role, ...], tuple[str | None, ...]]:
    words = _fitted(row.operands.split(), len(kinds))
    roles: list[Role] = []
    operand_types: list[str | None] = []
    for word, kind in zip(words, kinds, strict=True):
        letter, _, type_ = word.rstrip("?*").partition(":")
        roles.append(Role.ADDRESS if is_address(kind) else _ROLES.get(letter, Role.USE))
        operand_types.append(None if is_address(kind) else _type(type_, types))
    return tuple(roles), tuple(operand_types)


def _fitted(words: list[str], count: int) -> list[str]:
    """The specification of each of ``count`` operands: optional ones are dropped from the right."""
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


def call_roles_and_types(kinds: tuple[type, ...]) -> tuple[tuple[Role, ...], tuple[str | None, ...]]:
    """``call (returned), function, (arguments), prototype``; a function in a register is an indirect call."""
    roles: list[Role] = []
    for i, kind in enumerate(kinds):
        if kind is Group:
            roles.append(Role.DEF if i == 0 else Role.USE)
        else:
            roles.append(Role.USE if kind is Register else Role.NAME)
    return tuple(roles), (None,) * len(kinds)


def slots_of(row: Row, types: list[str], parts: list[str]) -> float:
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
