"""What warp collectives compute on arrays of shape (warps, 32) (PTX ISA, `shfl`,
`vote`, `match`, `redux`).

``members[w, l]`` is the mask of lanes that take part with lane ``l``; lanes that do not take part have 0,
and their results are not used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cccopt.emulator.groups import LANE_BITS
from cccopt.emulator.semantics import PRED, TYPES, Array, Type, UnsupportedError
from cccopt.emulator.semantics.operation import Modifiers

_U4: Type = np.dtype("u4")
_LANE = np.arange(32)


@dataclass(frozen=True)
class Collective:
    """``function(members, *inputs)`` returns a list of results; inputs are all operands except the destination and the
    member mask."""

    function: Callable[..., list[Array]]
    inputs: tuple[Type, ...]


def operation(parts: Sequence[str]) -> Collective:
    """The collective of an opcode. Raises UnsupportedError if it is not supported."""
    m = Modifiers(parts)
    if not m.flag("sync"):
        raise UnsupportedError(f"`{m.opcode}` without .sync does not exist on today's targets")
    if parts[0] == "vote":
        return _vote(m)
    if parts[0] == "shfl":
        return _shuffle(m)
    if parts[0] == "match":
        return _match(m)
    if parts[0] == "elect":
        return Collective(_elect, ())
    return _reduce(m)


def ballot(members: Array, predicate: Array) -> Array:
    """For each lane, the mask of the members whose predicate holds."""
    bits = (predicate * LANE_BITS).sum(axis=1).astype(np.uint32)
    return bits[:, None] & members


def _vote(m: Modifiers) -> Collective:
    mode = m.choice("ballot", "all", "any", "uni")
    m.type_of("b32" if mode == "ballot" else "pred")

    def run(members: Array, predicate: Array) -> list[Array]:
        votes = ballot(members, predicate)
        if mode == "ballot":
            return [votes]
        if mode == "any":
            return [votes != 0]
        everybody = votes == members
        return [everybody if mode == "all" else everybody | (votes == 0)]

    return Collective(run, (PRED,))


def _shuffle(m: Modifiers) -> Collective:
    mode = m.choice("up", "down", "bfly", "idx")
    m.type_of("b32")

    def run(members: Array, a: Array, b: Array, c: Array) -> list[Array]:
        lane = np.broadcast_to(_LANE, a.shape)
        b, clamp, segment = (b & 31).astype(int), (c & 31).astype(int), ((c >> 8) & 31).astype(int)
        top = (lane & segment) | (clamp & ~segment)
        low = lane & segment
        source = {
            "up": lane - b,
            "down": lane + b,
            "bfly": lane ^ b,
            "idx": low | (b & ~segment),
        }[mode]
        inside = source >= top if mode == "up" else source <= top
        source = np.where(inside, source, lane)
        # The value of a lane that does not take part is undefined; here a lane gets its own value instead.
        part = (members >> source.astype(np.uint32)) & np.uint32(1)
        source = np.where(part == 1, source, lane)
        return [np.take_along_axis(a, source, axis=1), inside]

    return Collective(run, (_U4, _U4, _U4))


def _match(m: Modifiers) -> Collective:
    mode = m.choice("any", "all")
    t = TYPES[m.type_of("b32", "b64")]

    def run(members: Array, a: Array) -> list[Array]:
        equal = ((a[:, :, None] == a[:, None, :]) * LANE_BITS).sum(axis=2).astype(np.uint32) & members
        if mode == "any":
            return [equal]
        same = equal == members
        return [np.where(same, members, np.uint32(0)), same]

    return Collective(run, (t,))


def _elect(members: Array) -> list[Array]:
    low = members & (~members + np.uint32(1))
    leader = np.where(members == 0, 0, np.log2(np.maximum(low, 1).astype(float)).astype(np.uint32))
    return [leader.astype(np.uint32), leader == _LANE]


_REDUCTIONS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "add": (np.add, ("u32", "s32")),
    "min": (np.minimum, ("u32", "s32")),
    "max": (np.maximum, ("u32", "s32")),
    "and": (np.bitwise_and, ("b32",)),
    "or": (np.bitwise_or, ("b32",)),
    "xor": (np.bitwise_xor, ("b32",)),
}


def _reduce(m: Modifiers) -> Collective:
    name = m.choice(*_REDUCTIONS)
    function, types = _REDUCTIONS[name]
    t = TYPES[m.type_of(*types)]
    neutral: dict[str, int] = {"add": 0, "or": 0, "xor": 0, "and": -1}
    if name in ("min", "max"):
        limits = np.iinfo(t)
        neutral[name] = int(limits.max if name == "min" else limits.min)
    nothing = np.asarray(neutral[name]).astype(t)

    def run(members: Array, a: Array) -> list[Array]:
        taking = (members[:, :, None] & LANE_BITS) != 0
        return [np.asarray(function.reduce(np.where(taking, a[:, None, :], nothing), axis=2, dtype=t))]

    return Collective(run, (t,))


def barrier_form(parts: Sequence[str]) -> tuple[str, str] | None:
    """The action (sync, arrive, red) and reduction of a block barrier's opcode; None if it is not known."""
    known = {"cta", "aligned", "sync", "arrive", "red", "popc", "and", "or", "u32", "pred"}
    if not set(parts[1:]) <= known:
        return None
    action = next((a for a in ("sync", "arrive", "red") if a in parts), None)
    if action is None:
        return None
    return action, next((r for r in ("popc", "and", "or") if r in parts), "")


def barrier_result(reduction: str, votes: Array) -> Any:
    """The result of ``bar.red`` over the threads' predicates."""
    if reduction == "popc":
        return np.uint32(votes.sum())
    return np.bool_(votes.all() if reduction == "and" else votes.any())
