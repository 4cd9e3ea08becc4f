"""Some files of random CUDA kernels, always the same ones; `tests.fuzz.hunt` goes on from there."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tests.fuzz import counted
from tests.fuzz import hunt as hunting
from tests.fuzz.cuda_kernels import kernels
from tests.fuzz.cuda_memory import BUFFERS, Mode, arguments
from tests.fuzz.hunt import hunt
from tests.fuzz.trial import CLAUSES, differences
from tests.kernels.running import Launch

IDIOMS = (
    r"next_far\(&rng\)",
    r"next_near\(rng\)",
    r"tree\(a",
    r"grow\(map",
    r"cas_add\(&",
    r"locked_add\(&",
    r"with_carry\(",
    r"wide_sum\(",
    r"half_of\(",
    r"owned_add\(&",
    r"pair_of\(",
    r"lane_far\(",
    r"lut\[",
    r"_stack\[8\]",
    "__ldcg",
    "volatile",
    r"\(unsigned\)pow\(",
    "auto w",
    "goto",
    "__threadfence",
    r"printf\(",
    r"assert\(",
)
PRAGMAS = ("for", "for variable", "while", "if", "else", "switch", "recursive", "grid")


@pytest.mark.nvcc
@pytest.mark.parametrize("seed", [11])
def test_random_kernels_keep_their_results(seed: int) -> None:
    found = hunt(seed, 4)
    assert not found.failure
    assert [outcome.detail for outcome in found.outcomes if outcome.find] == []
    assert Counter(outcome.verdict for outcome in found.outcomes)["accepted"] >= 2


@pytest.mark.nvcc
def test_random_kernels_are_counted_exactly() -> None:
    judged, found = counted.hunt(12, 6)
    assert found == []
    assert judged == 6


@pytest.mark.nvcc
def test_a_kernel_that_nvcc_refuses_is_a_find_and_the_others_are_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    good = kernels(1, 2)
    bad = replace(good[1], text=good[1].text.replace("{", "{ undeclared = 1;", 1))
    monkeypatch.setattr(hunting, "kernels", lambda seed, count: [good[0], bad])
    found = hunt(1, 2, emulate=False)
    assert [outcome.verdict for outcome in found.outcomes][1] == "COMPILE"
    assert "undeclared" in found.outcomes[1].detail
    assert found.outcomes[1].find
    assert not found.outcomes[0].find


def test_the_generator_draws_every_pragma_clause_and_mode() -> None:
    made = [kernel for seed in range(8) for kernel in kernels(seed, 30)]
    text = "\n".join(kernel.text for kernel in made)
    drawn = set(re.findall(r"#pragma ccc (for variable|\w+)", text))
    assert drawn == set(PRAGMAS)
    assert {clause for clause in CLAUSES if re.search(rf"#pragma ccc .*\b{clause}\b", text)} == set(CLAUSES)
    assert {kernel.mode for kernel in made} == set(Mode)
    assert {kernel.dimensions for kernel in made} == {1, 2, 3}


def test_the_generator_draws_every_idiom() -> None:
    text = "\n".join(kernel.text for seed in range(80) for kernel in kernels(seed, 30))
    assert [idiom for idiom in IDIOMS if not re.search(idiom, text)] == []


def test_a_seed_gives_the_same_kernels_again() -> None:
    assert kernels(3, 5) == kernels(3, 5)
    assert "#pragma ccc" not in kernels(3, 5)[0].plain


def test_sums_in_another_order_are_no_difference_and_other_words_are() -> None:
    buffers = [a for a in arguments(Launch(1, 32, 40)) if isinstance(a, np.ndarray)]
    names = [name for _, name in BUFFERS]

    def after(name: str, change: float) -> str:
        changed = [b.copy() for b in buffers]
        changed[names.index(name)][5] += np.asarray(change, changed[names.index(name)].dtype)
        return differences([b.tobytes() for b in buffers], [b.tobytes() for b in changed])

    assert after("fsums", 1e-6) == ""
    assert after("fsums", 1e-2).startswith("fsums[5]")
    assert after("out", 1).startswith("out[5] is 1, not 0")
