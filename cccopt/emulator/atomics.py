"""Atomic operations on arrays of words, in lane order: as if the lanes came one after the other (`atom`, `red`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cccopt.emulator.semantics import TYPES, Array, Type, UnsupportedError

_Update = Callable[[Array, Array, Any], Array]

_UPDATES: dict[str, _Update] = {
    "add": lambda old, b, c: old + b,
    "and": lambda old, b, c: old & b,
    "or": lambda old, b, c: old | b,
    "xor": lambda old, b, c: old ^ b,
    "min": lambda old, b, c: np.minimum(old, b),
    "max": lambda old, b, c: np.maximum(old, b),
    "exch": lambda old, b, c: b,
    "cas": lambda old, b, c: np.where(old == b, c, old),
    "inc": lambda old, b, c: np.where(old >= b, old.dtype.type(0), old + old.dtype.type(1)),
    "dec": lambda old, b, c: np.where((old == 0) | (old > b), b, old - old.dtype.type(1)),
}
_AT: dict[str, Any] = {
    "add": np.add,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "min": np.minimum,
    "max": np.maximum,
}
_ALLOWED = {
    "add": ("u32", "s32", "u64", "s64", "f16", "f32", "f64"),
    "min": ("u32", "s32", "u64", "s64"),
    "max": ("u32", "s32", "u64", "s64"),
    "inc": ("u32",),
    "dec": ("u32",),
    "and": ("b32", "b64"),
    "or": ("b32", "b64"),
    "xor": ("b32", "b64"),
    "exch": ("b32", "b64"),
    "cas": ("b16", "b32", "b64"),
}
# Spellings that nvcc writes for the same bits.
_SAME_BITS = {"u32": "b32", "s32": "b32", "f32": "b32", "u64": "b64", "s64": "b64", "f64": "b64"}


def atomic_type(opcode: str, operation: str, type_name: str) -> Type:
    """The type of an atomic operation's values. Raises UnsupportedError for a combination that does not exist."""
    allowed = _ALLOWED.get(operation, ())
    if type_name not in allowed:
        type_name = (
            _SAME_BITS.get(type_name, type_name) if operation in ("exch", "cas", "and", "or", "xor") else ""
        )
    if type_name not in allowed:
        raise UnsupportedError(f"`{opcode}` is not an atomic operation that the emulator supports")
    return TYPES[type_name]


def apply(
    operation: str, words: Array, index: Array, b: Array, c: Array | None, want_old: bool
) -> Array | None:
    """Performs ``operation`` on ``words[index]`` for each lane in turn; returns the old values if they are wanted."""
    ordered = np.sort(index)
    if index.size == 1 or not (ordered[1:] == ordered[:-1]).any():
        old = words[index]
        words[index] = _UPDATES[operation](old, b, c)
        return old
    if not want_old and operation in _AT:
        _AT[operation].at(words, index, b)
        return None
    order = np.argsort(index, kind="stable")
    head = np.r_[True, index[order][1:] != index[order][:-1]]
    if operation == "add" and words.dtype.kind in "ui":
        return _running_sum(words, index, b, order, head)
    starts = np.flatnonzero(head)
    rank = np.arange(index.size) - np.repeat(starts, np.diff(np.r_[starts, index.size]))
    result = np.empty(index.size, words.dtype)
    for turn in range(int(rank.max()) + 1):
        now = order[rank == turn]
        old = words[index[now]]
        result[now] = old
        words[index[now]] = _UPDATES[operation](old, b[now], None if c is None else c[now])
    return result


def _running_sum(words: Array, index: Array, b: Array, order: Array, head: Array) -> Array:
    """Integer additions at common addresses: old values are prefix sums, since wrapping addition is associative."""
    terms = b[order]
    before = np.cumsum(terms, dtype=words.dtype) - terms
    starts = np.flatnonzero(head)
    lengths = np.diff(np.r_[starts, index.size])
    result = np.empty(index.size, words.dtype)
    result[order] = words[index[order]] + (before - np.repeat(before[starts], lengths))
    np.add.at(words, index, b)
    return result
