"""The order-sensitive reduction of the kernels in tests/cte/cuda: a polynomial hash of a sequence, in Python."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

SEQUENCE = np.dtype([("hash", np.uint32), ("power", np.uint32), ("length", np.uint32)])
_MASK = 0xFFFFFFFF


def letters(values: NDArray[Any]) -> NDArray[np.uint32]:
    """The hashes of sequences of one letter each."""
    return (values.astype(np.uint64) * 2654435761 + 12345).astype(np.uint32)


def hashed(
    hashes: NDArray[np.uint32],
    begins: Iterable[int],
    ends: Iterable[int],
    step: int,
) -> NDArray[Any]:
    """The letters [begin, end) behind ``(7 + step * number, 3, 1)``, for each pair of these and its number."""
    known = hashes.tolist()
    results = []
    for number, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        value, power, length = 7 + step * number, 3, 1
        for letter in known[begin:end]:
            value, power, length = (value * 31 + letter) & _MASK, power * 31 & _MASK, length + 1
        results.append((value, power, length))
    return np.array(results, SEQUENCE)
