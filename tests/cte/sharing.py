"""What the kernels of tests/cte/cuda/sharing.cu must make of tasks, computed without them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tests.cte.support import Tasks

PAIR = np.dtype([("hash", np.uint32), ("power", np.uint32)])
SEQUENCE = np.dtype([("hash", np.uint64), ("power", np.uint64), ("length", np.uint64)])


def sizes_with_long(rng: np.random.Generator, count: int, most: int = 5000) -> NDArray[np.int64]:
    """Mostly short tasks; one in fifty is of up to ``most`` fine tasks."""
    sizes = rng.integers(0, 6, count)
    middle, long = rng.random(count) < 0.3, rng.random(count) < 0.02
    sizes[middle] = rng.integers(0, 60, middle.sum())
    sizes[long] = rng.integers(0, most, long.sum())
    return sizes


def expected_of(tasks: Tasks, block: int, *, odd: int) -> tuple[NDArray[np.void], NDArray[np.int32]]:
    """The texts and sums of ``turns_scanned`` and ``turns_disjoint``, whose blocks have ``block`` threads."""
    texts, sums = np.zeros(tasks.count, PAIR), np.zeros(tasks.count, np.int32)
    for task, (begin, end) in enumerate(zip(tasks.begins.tolist(), tasks.ends.tolist(), strict=True)):
        fine = np.arange(begin, end)
        texts[task] = _text(task, fine * 1000 * 2654435761 + odd, bits=32)
        sums[task] = 5 + ((fine ^ task // block * block) & 15).sum() + (task & 3) * fine.size
    return texts, sums


def expected_sequences(tasks: Tasks) -> NDArray[np.void]:
    """The texts of ``texts_scanned`` and ``texts_disjoint``."""
    texts = np.zeros(tasks.count, SEQUENCE)
    for task, (begin, end) in enumerate(zip(tasks.begins.tolist(), tasks.ends.tolist(), strict=True)):
        texts[task] = *_text(task, np.arange(begin, end) * 2654435761, bits=64), end - begin
    return texts


def _text(start: int, fine: NDArray[np.int64], bits: int) -> tuple[int, int]:
    """The hash and the power of a sequence that begins with ``start`` and has a letter for each of ``fine``."""
    text, power = start, 1
    for letter in (fine % 2**32 >> 28).tolist():
        text, power = (text * 31 + letter) % 2**bits, power * 31 % 2**bits
    return text, power
