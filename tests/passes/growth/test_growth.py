"""The passes do work in proportion to the code: modules that grow in one dimension (`shapes`), and how calls grow.

What is counted are the calls of functions, Python's and built-in ones: they repeat exactly, on any machine. The
exponent is that of what each size adds to the one before, so that what all sizes share does not hide it.
"""

from __future__ import annotations

import cProfile
from math import log

import pytest

from cccopt.passes.pipeline import Options, run
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from tests.passes.growth.shapes import SHAPES

SIZE = 5
FIRST = {
    "sums of hashes": 2, "memory accesses": 4, "selects before path": 4, "calls": 12, "coalesced loads": 9,
    "paths of a loop": 2, "marked loops": 1, "nested paths": 1, "marked functions": 1, "unmarked functions": 3,
    "scopes in path": 80,
}  # fmt: skip
"""The smallest of three sizes, of which each is twice the one before."""

MOST = 1.25
STEPPED = 1.3
SQUARE = 1.6
LIMITS = {
    # Up to `compression.MOST_STEPS` values of a path are asked each for all that it is made of.
    "chain before path": STEPPED,
    "shared uses before path": STEPPED,
    "hash before path": STEPPED,
    # Each marked loop is rewritten in a function that is looked at anew, and so is each path whose loads may move.
    "marked loops": SQUARE,
    "paths of a loop": SQUARE,
    # What is inside stands in the code of each path around it, and in what runs behind the loop for that path.
    "nested paths": 1.8,
}


def calls(text: str) -> int:
    """The calls that reading, rewriting and printing a module takes."""
    profile = cProfile.Profile()
    profile.enable()
    result = run(parse(text), Options("always"))
    print_module(result.module)
    profile.disable()
    assert any(region.outcome == "rewritten" for region in result.regions)
    return sum(entry.callcount for entry in profile.getstats())


def exponent(sizes: list[int], counts: list[int]) -> float:
    """That of the growth of ``counts``, by what is added from the first size to the second, and from that to the last:
    steps in between even out.
    """
    small, large = counts[1] - counts[0], counts[-1] - counts[1]
    return log(max(large, 1) / max(small, 1)) / log((sizes[-1] - sizes[1]) / (sizes[1] - sizes[0]))


@pytest.fixture(scope="module", autouse=True)
def _tables() -> None:
    """What the first module of a process pays: the grammar, the instruction table."""
    calls(SHAPES["cases"](3))


@pytest.mark.parametrize("name", SHAPES)
def test_work_grows_as_the_code_does(name: str) -> None:
    first = FIRST.get(name, SIZE)
    sizes: list[int] = []
    counts: list[int] = []
    calls(SHAPES[name](first))  # what is kept of instructions of a kind, the first function of the shape pays
    for size in (first, 2 * first, 4 * first, 8 * first):
        text = SHAPES[name](size)
        sizes.append(len(text))
        counts.append(calls(text))
        # What is exponential would not come to an end.
        assert counts[-1] < 8 * counts[0] * size / first, f"{counts} calls for {sizes} characters"
    found = exponent(sizes, counts)
    assert found < LIMITS.get(name, MOST), f"{counts} calls for {sizes} characters: exponent {found:.2f}"


def test_the_exponent_is_that_of_the_growth() -> None:
    sizes = [10, 20, 40, 80]
    assert exponent(sizes, [1000 + 7 * n for n in sizes]) == pytest.approx(1)
    assert exponent(sizes, [1000 + n * n for n in sizes]) > 1.6
    assert exponent(sizes, [5, 5, 5, 5]) < MOST
