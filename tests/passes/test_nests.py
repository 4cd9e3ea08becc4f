"""Counters of loops that a thread may not come to: which they are, and that other threads have nothing to do for them.

That counts are exact, `test_instrument` shows with the same shapes.
"""

from __future__ import annotations

import numpy as np
import pytest

from cccopt.emulator import Program
from cccopt.passes.counting.choice import Choice, choose
from cccopt.passes.counting.flow import Flow
from cccopt.passes.instrument import COUNTED, Counting, instrumented
from cccopt.ptx.parser import parse
from tests.emulator.kernels import kernel as ptx_kernel
from tests.passes.test_instrument import SHAPES

LOCAL = Counting(registers=0, local=1 << 16)


def chosen(shape: str, registers: int = 0) -> tuple[Flow, Choice]:
    (function,) = parse(ptx_kernel(shape)).functions()
    flow = Flow(function.body or (), lambda call: False)
    return flow, choose(flow, True, registers)


@pytest.mark.parametrize(
    ("shape", "lazy", "entries"),
    [
        ("loops one after the other, to which some lanes come", 2, {1, 2}),
        ("a loop to which another leads", 1, {1}),  # the second is entered out of the first
        ("loops to which a table leads", 0, set()),
        ("a loop with two entries", 1, {2}),
        ("a loop at the very beginning", 1, {1}),
        ("a jump table", 1, {1}),
        ("a guarded ret", 0, set()),
    ],
)
def test_loops_of_a_shape(shape: str, lazy: int, entries: set[int]) -> None:
    flow, choice = chosen(SHAPES[shape])
    assert len(choice.nests) == lazy
    assert {len(nest.entries) for nest in choice.nests} == entries
    stop = choice.private - sum(nest.stop - nest.start for nest in choice.nests)
    for nest in choice.nests:
        assert nest.start == stop
        stop = nest.stop
        cycles = {flow.cycle(unit) for unit in choice.units[nest.start : nest.stop]}
        assert len(cycles) == 1
        assert cycles == {flow.cycle(flow.edges[entry].target) for entry in nest.entries}
        assert all(
            flow.edges[entry].source == -1 or not flow.units[flow.edges[entry].source].depth
            for entry in nest.entries
        )
    assert stop == choice.private


def test_what_is_in_registers_is_no_loops() -> None:
    shape = SHAPES["loops one after the other, to which some lanes come"]
    count = chosen(shape)[1].private
    _, some = chosen(shape, count - 1)
    assert [(nest.start, nest.stop) for nest in some.nests] == [(count - 1, count)]
    assert chosen(shape, count)[1].nests == ()


MANY = "".join(
    f"setp.ne.u32 %p1, %r0, {number}; @%p1 bra NEXT{number}; mov.u32 %r4, 0;"
    f" LOOP{number}: add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 5; @%p2 bra LOOP{number}; NEXT{number}:"
    for number in range(64, 104)
)
"""Forty loops, each of which one thread comes to, of the third or fourth warp."""


def test_a_warp_that_comes_to_no_loop_does_nothing_for_them() -> None:
    assert len(chosen(MANY)[1].nests) == 32  # the bits of a register; the others are cleared by all
    module, _ = instrumented(parse(ptx_kernel(MANY + "st.global.u32 [%rd2], %r4;")), LOCAL)
    issues = {}
    for blocks, threads in ((1, 64), (1, 128)):
        profile = Program(module).launch("k" + COUNTED, blocks, threads, [np.zeros(threads, np.uint32)])
        issues[threads] = profile.warp_instructions
    idle, busy = issues[64] / 2, (issues[128] - issues[64]) / 2
    assert busy > 2 * idle
