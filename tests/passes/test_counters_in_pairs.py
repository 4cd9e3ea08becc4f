"""The two counters of a place in the thread's local memory, which are loaded and stored at once.

That counts are exact, `test_instrument` shows.
"""

from __future__ import annotations

import pytest

from cccopt.passes.counting.choice import in_pairs
from cccopt.passes.instrument import COUNTED, Counting, instrumented
from cccopt.ptx.ir import Instruction, Vector
from cccopt.ptx.parser import parse
from tests.emulator.kernels import kernel as ptx_kernel
from tests.passes.test_instrument import SHAPES
from tests.passes.test_nests import chosen


@pytest.mark.parametrize(
    ("counters", "pairs", "start", "ordered"),
    [
        ([4, 5, 6], {4: 5}, 0, [4, 5, 6]),
        ([6, 4, 5], {4: 5}, 0, [4, 5, 6]),
        ([4, 5, 6], {4: 5}, 3, [6, 4, 5]),
        ([4, 5, 6, 7], {4: 5, 6: 7}, 1, [6, 4, 5, 7]),  # the last pair is parted for the other's sake
        ([4, 5], {4: 5}, 1, [4, 5]),
        ([4, 5, 6], {4: 7}, 1, [4, 5, 6]),  # the other one is elsewhere
        ([], {}, 1, []),
    ],
)
def test_order(counters: list[int], pairs: dict[int, int], start: int, ordered: list[int]) -> None:
    assert in_pairs(counters, pairs, start) == ordered


@pytest.mark.parametrize("registers", range(4))
@pytest.mark.parametrize("shape", SHAPES)
def test_pairs_are_where_a_vector_may_be(shape: str, registers: int) -> None:
    _, choice = chosen(SHAPES[shape], registers)
    module, _ = instrumented(parse(ptx_kernel(SHAPES[shape])), Counting(registers=registers, local=1 << 16))
    (function,) = (f for f in module.functions() if f.name == "k" + COUNTED)
    vectors = [s for s in function.body or () if isinstance(s, Instruction) and s.opcode == "ld.local.v2.u32"]
    aligned = [
        place
        for place in choice.places.values()
        if 0 <= (first := place.warps - choice.first) < choice.private - 1
        and place.lanes == place.warps + 1
        and first >= choice.registers
        and first % 2 == 0
    ]
    assert len(vectors) == len(aligned)
    for load in vectors:
        assert isinstance(load.operands[0], Vector)
        assert len(set(load.operands[0].elements)) == 2


def test_most_places_have_pairs() -> None:
    """Each range of counters has at most one place that could have one and has none."""
    parted = whole = 0
    for shape in SHAPES.values():
        _, choice = chosen(shape)
        own = range(choice.first, choice.first + choice.private)
        places = [p for p in choice.places.values() if p.warps in own and p.lanes in own]
        here = [p for p in places if p.lanes == p.warps + 1 and (p.warps - choice.first) % 2 == 0]
        assert len(places) - len(here) <= 1 + len(choice.nests)
        parted, whole = parted + len(places) - len(here), whole + len(here)
    assert whole > 5 * parted
