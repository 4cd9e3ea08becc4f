"""Short random kernels as people write them: always the same few; `python -m tests.fuzz.hunt --natural` goes on."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from tests.fuzz.cuda_kernels import Kernel
from tests.fuzz.cuda_memory import BUFFERS, Mode, arguments
from tests.fuzz.hunt import hunt
from tests.fuzz.natural_kernels import IDEAS, kernels
from tests.fuzz.trial import differences
from tests.kernels.running import Launch

DRAWN = {
    "indices": (
        r"\(short\)",
        r"\(signed char\)",
        r"__umulhi\(",
        ">> 58",
        "% 5u",
        r"% \(items & 7u \| 1u\)",
        "unsigned char c",
        ">> 16 & 31u",
        "uint4",
        r"ring\[\(*me \* 64u",
        r"tile\[",
    ),
    "queues": (
        r"atomicAdd\(&count\[112u\], 1u\)",
        "__activemask",
        r"atomicCAS\(&queue",
        "~0u",
        r"atomicAdd\(&count\[113u",
    ),
    "sums": (r"y\d+\[at\]", "n < 0 \\? a", "reals", r"_both\d+\(y(\d+), y\1", r"both\d+\(const", "reduce"),
    "updates": (
        r"\? \(unsigned\)k|= \(\w+\)k;",
        r"\* 31",
        "<< 1",
        "swap",
        "fmaf",
        "unsigned char s",
        "else s",
        r"\+= s\d",
    ),
    "exits": ("goto", "break;", "continue;", "switch", "= true;", "return;"),
    "records": (
        "float3",
        "int2",
        "double2",
        "Bits",
        "Any",
        "State",
        "bump_far",
        r"\[&\]",
        "Item",
        "bool list",
        "\\*--",
        "half_sum",
    ),
    "tiles": (
        r"b = blockIdx\.x",
        r"= b / w\d+, c\d+ = b % w",
        r"at - \((int|unsigned|long long)\)at / 7 \* 7",
        r"\) r\d+ = 0;",
        r"tile\[\(\(unsigned\)c\d+\) \* size \+ linear\]",
        r"\* size\) \+ linear \* ",
        "gridDim.x, c",
    ),
}
LOOPS = (
    "unsigned char",
    "short",
    "long long",
    r"do \{",
    "while",
    "const unsigned\\* q",
    r"<<= 1",
    "--",
    r"\+= \(unsigned\)trips",
    "0u - ",
)
UNROLLED = ("#pragma unroll 2", "#pragma unroll 4", "#pragma unroll\n", "#pragma unroll 1")
PRAGMAS = {"for", "for variable", "while", "if", "else", "switch", "grid"}


def drawn(idea: str) -> list[Kernel]:
    return [kernel for seed in range(12) for kernel in kernels(seed, 30, [idea])]


@pytest.mark.nvcc
@pytest.mark.parametrize("seed", [3])
def test_natural_kernels_keep_their_results(seed: int) -> None:
    found = hunt(seed, 4, ideas=tuple(IDEAS))
    assert not found.failure
    assert [outcome.detail for outcome in found.outcomes if outcome.find] == []
    assert Counter(outcome.verdict for outcome in found.outcomes)["accepted"] >= 2


@pytest.mark.parametrize("idea", IDEAS)
def test_the_generator_draws_all_that_an_idea_is_about(idea: str) -> None:
    text = "\n".join(kernel.text for kernel in drawn(idea))
    assert [what for what in (*DRAWN[idea], *LOOPS, *UNROLLED) if not re.search(what, text)] == []
    assert {*re.findall(r"#pragma ccc (for variable|\w+)", text)} == PRAGMAS


def test_kernels_are_of_each_mode_and_of_one_or_two_dimensions() -> None:
    made = drawn("indices")
    assert {kernel.mode for kernel in made} == set(Mode)
    assert {kernel.dimensions for kernel in made} == {1, 2}


def test_a_seed_gives_the_same_kernels_again() -> None:
    assert kernels(3, 5) == kernels(3, 5)
    assert "#pragma ccc" not in kernels(3, 5)[0].plain


def test_items_of_a_queue_in_another_order_are_no_difference_and_other_items_are() -> None:
    before = [a for a in arguments(Launch(1, 32, 40)) if isinstance(a, np.ndarray)]
    place = [name for _, name in BUFFERS].index("queue")
    before[place][:3] = (7, 8, 9)

    def after(items: tuple[int, ...]) -> str:
        changed = [buffer.copy() for buffer in before]
        changed[place][: len(items)] = items
        return differences([b.tobytes() for b in before], [b.tobytes() for b in changed])

    assert after((9, 7, 8)) == ""
    assert after((9, 7, 0, 8)) == ""
    assert after((9, 7, 7)).startswith("queue[0] is 9, not 7")
