"""Instructions on two `.f16` numbers in one register: those on one of them, for each half (PTX ISA 9.7.4).

fma.rn.f16x2 %r4, %r1, %r2, %r3;      as fma.rn.f16 for the lower halves, and for the upper ones
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cccopt.emulator.semantics.operation import TYPES, Array, Operation, Type, UnsupportedError

_PACKED, _HALF = "f16x2", "f16"
_WORD, _HALVES = TYPES["b32"], TYPES[_HALF]

_BY_HALVES = frozenset(("add", "sub", "mul", "fma", "neg", "abs", "min", "max", "ex2", "tanh", "set"))

_MASKS = {"u32": "u16", "s32": "s16"}
"""What a comparison with a result of 32 bits gives for each half: all ones if it is true."""


def is_packed(parts: Sequence[str]) -> bool:
    """Whether the dotted ``parts`` of an opcode name the type of two numbers."""
    return _PACKED in parts


def resolve(parts: Sequence[str], of_one: Callable[[Sequence[str]], Operation]) -> Operation:
    """The operation of a packed opcode; ``of_one`` gives that of an opcode for one number."""
    halves = {_PACKED: _HALF, **_MASKS} if parts[0] == "set" else {_PACKED: _HALF}
    one = of_one([halves.get(part, part) for part in parts])
    if parts[0] == "cvt":
        return _packing(one)
    result: Type = one.outputs[0]
    if parts[0] not in _BY_HALVES or result.itemsize != _HALVES.itemsize:
        raise UnsupportedError(f"`{'.'.join(parts)}` is not an instruction that the emulator supports")

    def run(*words: Array) -> Array:
        shape = np.broadcast_shapes(*(np.shape(word) for word in words))
        return _joined(one.function(*(_split(word, shape) for word in words)), result, shape)

    return Operation(run, (_WORD,) * len(one.inputs), (_WORD,))


def _packing(one: Operation) -> Operation:
    """``cvt.rnd.f16x2.f32 d, a, b``: the upper half is that of a."""

    def run(a: Array, b: Array) -> Array:
        both = np.stack(np.broadcast_arrays(one.function(b), one.function(a)), axis=-1)
        return _joined(both, _HALVES, both.shape[:-1])

    source: Type = one.inputs[0]
    return Operation(run, (source, source), (_WORD,))


def _split(word: Array, shape: tuple[int, ...]) -> Array:
    """The halves of words along a last axis, the lower one first."""
    words = np.ascontiguousarray(np.broadcast_to(word, shape)).reshape(*shape, 1)
    return words.view(_HALVES)


def _joined(halves: Array, type: Type, shape: tuple[int, ...]) -> Array:
    return np.ascontiguousarray(halves).astype(type, copy=False).view(_WORD).reshape(shape)
