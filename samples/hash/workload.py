"""Cuckoo hash insertion: what hash.cu runs, and by numpy what a table must hold that lost nothing."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cccopt.harness.workload import Inputs, Launch, State, Zeros

FUNCTIONS = 4
STASH = 128
VARIANTS = ("while", "recursive")

# name: (pairs, grid). Odd numbers at the small sizes, so that the last trips are partial.
_SIZES = {"small": (100_003, 2), "demo": (1_000_003, 8), "full": (100_000_000, 1056)}
SIZES = tuple(_SIZES)
_BLOCK = (256, 1, 1)


def _found(variant: str) -> str:
    return f"found {variant}"


# The table is what the last variant made; what each of them made is counted by look_up.
RESULTS = ("stash", "stashed", *map(_found, VARIANTS))
SCRATCH = ("table",)


def hash32(x: NDArray[np.uint32]) -> NDArray[Any]:
    """A permutation of the 32-bit numbers that mixes them well; the same as in hash.cuh."""
    x = x.astype(np.uint32)
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x7FEB352D)
    x ^= x >> np.uint32(15)
    x *= np.uint32(0x846CA68B)
    x ^= x >> np.uint32(16)
    return x


def inputs(size: str, seed: int) -> Inputs:
    """An empty table with room for ten pairs where nine come; make_pairs fills ``input``."""
    pairs, grid = _SIZES[size]
    return build(pairs, grid, seed)


def build(pairs: int, grid: int, seed: int) -> Inputs:
    """The inputs for so many pairs."""
    return {
        "pairs": pairs,
        "grid": grid,
        "seed": seed,
        "most_steps": 7 * (1 + (pairs - 1).bit_length()),
        "input": Zeros(pairs, np.uint64),
        "table": Zeros((10 * pairs + 8) // 9, np.uint64),
        "stash": Zeros(STASH, np.uint64),
        "stashed": Zeros(1, np.uint32),
        **{_found(variant): Zeros(2, np.uint32) for variant in VARIANTS},
    }


def setup(state: State) -> Generator[Launch, None, None]:
    """Make the pairs."""
    arguments = (np.uint32(state["pairs"]), np.uint32(state["seed"]), state["input"])
    yield Launch("make_pairs", _grid(state), _BLOCK, arguments)


def launches(state: State) -> Generator[Launch, None, None]:
    """For each variant an insertion into an empty table; then every key is looked up."""
    table, stash, stashed = state["table"], state["stash"], state["stashed"]
    pairs, slots = np.uint32(state["pairs"]), np.uint32(len(_array(state, "table")))
    most_steps = np.uint32(state["most_steps"])
    for variant in VARIANTS:
        grid, found = _grid(state), state[_found(variant)]
        yield Launch("clear", grid, _BLOCK, (slots, table, stashed), timed=False)
        arguments = (pairs, state["input"], slots, table, most_steps, stash, stashed)
        yield Launch(f"insert_{variant}", grid, _BLOCK, arguments, label=variant)
        arguments = (pairs, state["input"], slots, table, stash, stashed, found)
        yield Launch("look_up", grid, _BLOCK, arguments, timed=False)


def _grid(state: Mapping[str, Any]) -> tuple[int, int, int]:
    return int(state["grid"]), 1, 1


def _array(state: Mapping[str, Any], name: str) -> NDArray[Any]:
    array = state[name]
    assert isinstance(array, np.ndarray)
    return array


def pairs_of(count: int, seed: int) -> NDArray[np.uint64]:
    """The pairs that make_pairs makes: distinct keys above, their numbers below."""
    i = np.arange(count, dtype=np.uint32)
    keys = hash32((i + np.uint32(1)) * np.uint32(2 * seed + 1 & 0xFFFFFFFF))
    return keys.astype(np.uint64) << np.uint64(32) | i


def slots_of(keys: NDArray[np.uint32], size: int) -> NDArray[np.uint64]:
    """The slots of each key, a row for each function."""
    salts = np.arange(FUNCTIONS, dtype=np.uint32)[:, None] * np.uint32(0x9E3779B9)
    return hash32(keys + salts).astype(np.uint64) * np.uint64(size) >> np.uint64(32)


def reference(inputs: Mapping[str, Any]) -> Mapping[str, NDArray[Any]]:
    """The pairs that must be stored, in ascending order."""
    return {"pairs": np.sort(pairs_of(int(inputs["pairs"]), int(inputs["seed"])))}


def check(result: Mapping[str, Any], expected: Mapping[str, NDArray[Any]]) -> str:
    """Every key is found exactly once, and nothing else is stored.

    Which of its slots a pair is in depends on the order of the insertions, so tables of different builds differ.
    Against numpy the table itself is looked at too: the right pairs, each in one of its slots.
    """
    pairs = int(result["pairs"])
    for variant in VARIANTS:
        once, stored = (int(count) for count in result[_found(variant)])
        if (once, stored) != (pairs, pairs):
            return f"{variant}: of {pairs} pairs {once} are found exactly once, and {stored} are stored"
    if "pairs" not in expected:
        return ""
    table, aside = result["table"], result["stash"][: int(result["stashed"][0])]
    used = np.flatnonzero(table)
    if not np.array_equal(np.sort(np.concatenate([table[used], aside])), expected["pairs"]):
        return "table and stash do not hold the pairs that were inserted"
    slots = slots_of((table[used] >> np.uint64(32)).astype(np.uint32), len(table))
    strange = used[(slots != used).all(axis=0)]
    return f"slot {strange[0]} holds a pair that belongs elsewhere" if strange.size else ""
