"""Lists of coarse tasks, and what the kernels of tests/cte/cuda must make of them, computed without them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cccopt.emulator import Profile, Program
from tests.cte.sequences import SEQUENCE, letters

LONG_SEQUENCE = np.dtype([("hash", np.uint64), ("power", np.uint64), ("length", np.uint64)])
Ints = NDArray[np.int64]

_rng = np.random.default_rng(11)
_NONE = np.zeros(32, np.int64)


def warp_with(tasks: Mapping[int, int]) -> Ints:
    """The sizes of a warp's tasks: those given by lane, the others 0."""
    sizes = _NONE.copy()
    sizes[list(tasks)] = list(tasks.values())
    return sizes


WARPS: dict[str, Ints] = {
    "all 1": _NONE + 1,
    "all 5": _NONE + 5,
    "all 6": _NONE + 6,
    "all empty": _NONE,
    "giant in lane 0": warp_with({0: 700}),
    "giant in lane 31": warp_with({31: 701}),
    "giant behind small ones": np.r_[_rng.integers(0, 4, 20), 770, np.zeros(11, int)],
    "giants among others": np.r_[3, 450, 0, 0, 390, 2, _rng.integers(0, 9, 24), 1, 300],
    "around 32": np.r_[31, 32, 33, 0, 64, 63, 65, 0, 96, 0, 0, 1, 95, 97, _NONE[:14], 1, 32, 0, 33],
    "around 128": np.r_[127, _NONE[:9], 128, 0, 129, 0, 1, 255, _NONE[:15], 257],
    "small": _rng.integers(0, 9, 32),
    "skewed": np.minimum(200, 1.5 / _rng.random(32) ** 0.8).astype(np.int64),
    "first of few": np.r_[_rng.integers(0, 3, 11)],
}
"""One warp each, so that a launch runs all of them. The last one has lanes without a task."""
ALL = np.concatenate(list(WARPS.values()))
LARGE = np.concatenate([warp_with({7: 5000}), np.r_[_NONE[:5], 1023, 1024, 1025, _NONE[:24]]])
LITTLE = np.r_[3, 0, 0, 40, 1, 150, 7, _NONE[:20], 0, 2, 33, 1, 5, 2]


@dataclass(frozen=True)
class Tasks:
    """Coarse tasks [begins, ends), counted from 0, and the index ``base`` that 0 stands for in a kernel."""

    begins: Ints
    ends: Ints
    base: int = 0

    @cached_property
    def count(self) -> int:
        return self.begins.size

    @cached_property
    def sizes(self) -> Ints:
        return self.ends - self.begins

    @cached_property
    def fine(self) -> int:
        """One more than there are: nobody runs the last."""
        return int(self.ends.max(initial=0)) + 1

    @cached_property
    def visits(self) -> NDArray[np.uint32]:
        """How often each fine task runs: once for each coarse task that it is in."""
        steps = np.zeros(self.fine + 1, np.int64)
        np.add.at(steps, self.begins, 1)
        np.add.at(steps, self.ends, -1)
        return np.cumsum(steps)[: self.fine].astype(np.uint32)

    @cached_property
    def members(self) -> tuple[Ints, Ints]:
        """The fine tasks of the first coarse task, those of the second one ..., and the coarse task of each."""
        owners = np.repeat(np.arange(self.count), self.sizes)
        within = np.arange(owners.size) - np.repeat(np.cumsum(self.sizes) - self.sizes, self.sizes)
        return self.begins[owners] + within, owners

    def bounds(self, index: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """What the kernels take: begins and ends, behind the last task an empty one."""
        last = self.ends[-1:]
        return tuple(  # type: ignore[return-value]
            np.array([int(bound) + self.base for bound in np.r_[bounds, last]], index)
            for bounds in (self.begins, self.ends)
        )

    def hashes(self, *, described: bool) -> NDArray[np.uint32]:
        """The hash of each fine task, in the order of ``members``."""
        fine, owners = self.members
        return letters(fine * 1000 + owners * 3 * described)

    def prefixes(self, dtype: np.dtype[Any], *, described: bool) -> tuple[NDArray[Any], NDArray[Any]]:
        """What stands ahead of each fine task, in the order of ``members``, and each coarse task's result."""
        hashes = self.hashes(described=described).tolist()
        ahead, results, at = [], [], 0
        named = dtype.names is not None
        mask = (1 << 8 * dtype["hash"].itemsize) - 1 if named else 0
        for task, size in enumerate(self.sizes.tolist()):
            value: Any = (task, 3, 1) if named else task % 5 + 3
            for letter in hashes[at : at + size]:
                ahead.append(value)
                if named:
                    text, power, length = value
                    value = (text * 31 + letter & mask, power * 31 & mask, length + 1)
                else:
                    value += letter >> 28
            results.append(value)
            at += size
        return np.array(ahead, dtype), np.array(results, dtype)


def scanned(sizes: Sequence[int] | Ints, base: int = 0) -> Tasks:
    """One behind the other."""
    ends = np.cumsum(np.asarray(sizes, np.int64))
    return Tasks(ends - sizes, ends, base)


def apart(sizes: Sequence[int] | Ints, base: int = 0) -> Tasks:
    """From back to front in each warp, with gaps."""
    sizes = np.asarray(sizes, np.int64)
    places = np.arange(sizes.size)
    order = np.argsort(places // 32 * 32 - places % 32, kind="stable")
    begins = np.empty_like(sizes)
    begins[order] = np.cumsum(sizes[order] + places % 3) - sizes[order]
    return Tasks(begins, begins + sizes, base)


def disjoint(sizes: Sequence[int] | Ints, base: int = 0) -> Tasks:
    """The same, some of the tasks lying over others."""
    tasks = apart(sizes, base)
    places, begins = np.arange(tasks.count), tasks.begins
    moved = np.minimum(begins, tasks.sizes // 2 + 3) * ((places % 7 == 0) & (begins > 20))
    return Tasks(begins - moved, tasks.ends - moved, base)


HIGH = 2**33 + 5
"""An index that takes more than 32 bits."""


def placed(tasks: Tasks, base: int | None) -> Tasks:
    """The same from index ``base`` on; without it so high that the last end is the highest number of 32 bits."""
    return Tasks(tasks.begins, tasks.ends, 2**32 - 1 - int(tasks.ends.max()) if base is None else base)


def grid_of(tasks: Tasks, block: Any) -> int:
    """Fewer blocks than there are tasks for, so that a block takes several turns."""
    return max(1, -(-tasks.count // int(np.prod(block))) // 2)


TYPES: dict[str, np.dtype[Any]] = {
    "int32": np.dtype(np.int32),
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
    "int64": np.dtype(np.int64),
    "sequence": SEQUENCE,
    "long_sequence": LONG_SEQUENCE,
}


def assert_equal(found: NDArray[Any], expected: NDArray[Any], sizes: Ints | None = None) -> None:
    """Raises AssertionError with the first places that differ, and with their tasks' sizes."""
    wrong = np.flatnonzero(found != expected)
    if wrong.size:
        first = wrong[:5]
        said = f"{wrong.size} wrong, at {first}: {found[first]}, not {expected[first]}"
        raise AssertionError(said if sizes is None else f"{said}; sizes {sizes[first]}")


def atomics(program: Program, profile: Profile) -> int:
    """How often warps asked global memory for an atomic operation."""
    function = next(f for f in program.module.items if getattr(f, "name", "") == profile.kernel)
    found = 0
    for (_, statement), count in profile.by_access.items():
        found += count.requests * str(function.body[statement].opcode).startswith("atom")
    return found
