"""Some files of random CUDA kernels, always the same ones; `tests.fuzz.hunt` goes on from there."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.fuzz.hunt import hunt

pytestmark = pytest.mark.nvcc

LIMITS = frozenset({"CCC034", "CCC035", "CCC036", "CCC042", "CCC043", "CCC053"})
"""Refusals that a legal kernel may meet: what the compiler merged, memory it cannot tell apart, too large contexts."""


@pytest.mark.parametrize("seed", [11, 23, 42])
def test_random_kernels_keep_their_results(seed: int) -> None:
    found = hunt(seed, 5)
    outcomes = Counter(outcome for _, outcome, _, _ in found)
    wrong = [
        (name, outcome, detail) for name, outcome, detail, _ in found if not outcome.startswith(("ok", "CCC"))
    ]
    assert not wrong
    assert outcomes.keys() <= LIMITS | {"ok", "ok, take and drain ran"}
    assert outcomes["ok"] + outcomes["ok, take and drain ran"] >= 3
