"""Lines of decimal numbers: what records.cu runs, and the answer by Python's own integers."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cccopt.harness.csr.workload import (
    BLOCK,
    arrays,
    carries,
    launch,
    merge_path_blocks,
    partition,
    wrong_numbers,
)
from cccopt.harness.workload import Inputs, Launch, State

INPUTS = ("short", "ragged", "giant")
FORMS = ("tasks", "merge_path")
RESULTS = ("sums",)
SCRATCH = ("carries",)

# name: (lines, the mean of their numbers, the numbers of a giant line). Odd lines, so that the last warp is not full.
_SIZES = {
    "small": {"short": (1_501, 2.5, 0), "ragged": (601, 6.0, 0), "giant": (601, 2.5, 500)},
    "full": {
        "short": (10_000_019, 2.5, 0),
        "ragged": (1_500_007, 20.0, 0),
        "giant": (10_000_019, 2.5, 200_000),
    },
}

GIANTS = 3
"""How many lines of the input `giant` are giant: about 1.2 MB each at size full."""

DIGITS = 9
"""The most digits that a number has."""

UNSET = np.uint64(2**64 - 1)
"""What a sum is before the launch: no line's is as large."""

PIECE = np.dtype("V24")
"""A ``Piece`` of records.cu, which `carries` asks the size of."""

SIGMA = 1.5
"""Of the log-normal distribution of the lengths of ragged lines: the mean is three times the median."""


def inputs(name: str, size: str, seed: int) -> Inputs:
    """The text, and where its lines begin. Lines without a number are empty: they lack even the line end."""
    random = np.random.default_rng(seed)
    counts = number_counts(random, name, *_SIZES[size][name])
    ends = np.cumsum(random.integers(2, DIGITS + 2, counts.sum(), dtype=np.int32), dtype=np.int64)
    text = random.integers(ord("0"), ord("9") + 1, ends[-1], dtype=np.uint8)
    offsets = np.append(0, ends)[np.append(0, np.cumsum(counts))]
    text[ends - 1] = ord(",")
    text[offsets[1:][counts > 0] - 1] = ord("\n")
    offsets = offsets.astype(np.int32)
    sums = np.full(len(counts), UNSET)
    return {
        "offsets": offsets,
        "text": text,
        "sums": sums,
        "carries": carries(offsets, PIECE),
        "partition": partition(offsets),
    }


def number_counts(
    random: np.random.Generator, name: str, lines: int, mean: float, giant: int
) -> NDArray[np.int64]:
    """How many numbers each line has: 0 to twice the mean, or log-normal (`ragged`), or mostly few (`giant`)."""
    if name == "ragged":
        return random.lognormal(np.log(mean) - SIGMA**2 / 2, SIGMA, lines).astype(np.int64)
    counts = random.integers(0, int(2 * mean) + 1, lines)
    if name == "giant":
        counts[random.choice(lines, GIANTS, replace=False)] = giant
    return counts


def launches(state: State, form: str) -> Generator[Launch, None, None]:
    """One launch, or two: the tiles, then the lines that lie in several of them."""
    offsets, text, sums, carried, divided = arrays(state, "offsets", "text", "sums", "carries", "partition")
    lines, blocks = np.int32(len(sums)), merge_path_blocks(offsets)
    if form == "tasks":
        yield launch("records", len(sums), lines, offsets, text, sums)
        return
    yield launch("records_merge_path", blocks * BLOCK, lines, offsets, text, sums, carried, divided)
    yield launch("records_fix_up", blocks, np.int32(blocks), offsets, sums, carried)


def reference(inputs: Mapping[str, Any]) -> Mapping[str, NDArray[Any]]:
    """The sums by Python's own integers."""
    offsets, text = arrays(inputs, "offsets", "text")
    lines = (text[begin:end].tobytes().strip() for begin, end in pairwise(offsets))
    sums = [sum(int(number) for number in line.split(b",") if number) for line in lines]
    return {"sums": np.array(sums, np.uint64)}


def check(result: Mapping[str, Any], expected: Mapping[str, NDArray[Any]]) -> str:
    """Equal."""
    return wrong_numbers("sums", result["sums"], expected["sums"])


def least_bytes(inputs: Mapping[str, Any]) -> int:
    """The text, and each line's offset and result."""
    text, sums = arrays(inputs, "text", "sums")
    return len(text) + len(sums) * (4 + 8)
