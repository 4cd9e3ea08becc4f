"""The cycles that a block takes for a warp which runs alone."""

from __future__ import annotations

import pytest

from cccopt.analysis import latency
from cccopt.analysis.cfg import build
from cccopt.analysis.cost import costs
from cccopt.ptx.ir import Label
from cccopt.ptx.parser import parse
from tests.emulator.kernels import kernel

LOAD = latency.LOADED["global"]
ALU = latency.DEPENDENT


def cycles(code: str) -> float:
    """The cycles of ``code`` as a block of its own."""
    (function,) = parse(kernel(f"bra HERE; HERE: {code} bra NEXT; NEXT:")).functions()
    body = function.body or ()
    (block,) = (b for b in build(body).blocks if body[b.start] == Label("HERE"))
    return latency.of_block(body, block)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("add.u32 %r1, %r1, 1;", ALU),
        ("add.u32 %r1, %r1, 1; add.u32 %r1, %r1, 1;", 2 * ALU),
        ("add.u32 %r1, %r1, 1; add.u32 %r2, %r2, 1;", 1 + ALU),
        ("ld.global.u32 %r1, [%rd1]; ld.global.u32 %r2, [%rd2];", 1 + LOAD),
        ("ld.global.u32 %r1, [%rd1]; ld.global.u32 %r2, [%rd2]; add.u32 %r1, %r1, %r2;", 1 + LOAD + ALU),
        ("ld.global.u64 %rd1, [%rd1]; ld.global.u32 %r1, [%rd1];", 2 * LOAD),
        ("st.global.u32 [%rd1], %r1;", 2.0),
        ("atom.global.add.u32 %r1, [%rd1], 1;", LOAD * latency.RETURNED),
        ("red.global.add.u32 [%rd1], 1;", 2.0),
        ("setp.eq.u32 %p1, %r1, 0; @%p1 add.u32 %r2, %r2, 1;", 2 * ALU),
        ("ld.shared.u32 %r1, [%r2];", latency.LOADED["shared"]),
        ("div.u32 %r1, %r1, %r2;", latency.A_SLOT * 40),
    ],
)
def test_a_block_takes_as_long_as_its_longest_chain(code: str, expected: float) -> None:
    # A branch ends the block.
    assert cycles(code) == pytest.approx(expected, abs=ALU)
    assert cycles(code) >= expected


def test_cycles_are_those_of_blocks_by_their_weights() -> None:
    body = "ld.global.u64 %rd1, [%rd1]; add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 5;"
    text = f"mov.u32 %r1, 0; LOOP: {body} @%p1 bra LOOP;"
    module = parse(kernel(text))
    (function,) = module.functions()
    found = costs(module, function)
    blocks = range(len(found.cfg.blocks))
    assert found.cycles_per_slot(blocks, blocks) * found.of_blocks(blocks, blocks) > 5 * LOAD
    assert found.cycles_per_slot((), blocks) == 0.0
    (header,) = (loop.header for loop in found.loops)
    one = found.cycles_per_slot([header], blocks, header) * found.of_blocks([header], blocks, header)
    assert one == pytest.approx(LOAD)
