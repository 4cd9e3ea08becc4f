"""A trace holds each instruction that one warp issues, with the lanes that were active."""

from __future__ import annotations

import numpy as np

from cccopt.emulator import Program, Trace

PARTING = """
.version 7.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  mov.u32 %r1, %tid.x;
  ld.param.u64 %rd1, [out];
  setp.lt.u32 %p1, %r1, 40;
  @%p1 bra LOW;
  add.u32 %r2, %r1, 5;
LOW:
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r2;
  ret;
}
"""


def test_the_steps_of_a_warp_that_parts_and_meets() -> None:
    program = Program(PARTING)
    out = np.zeros(96, np.uint32)
    traces = [Trace(warp=w) for w in range(3)]
    profiles = [program.launch("k", 1, 96, [out], trace=trace) for trace in traces]
    full = 2**32 - 1
    (function,) = program.module.functions()
    assert function.body is not None

    def opcodes(trace: Trace) -> list[tuple[str, int]]:
        return [(function.body[statement].opcode, mask) for _, statement, mask in trace.steps]  # type: ignore[union-attr,index]

    head = [("mov.u32", full), ("ld.param.u64", full), ("setp.lt.u32", full), ("bra", full)]
    tail = [("mul.wide.u32", full), ("add.s64", full), ("st.global.u32", full), ("ret", full)]
    assert opcodes(traces[0]) == head + tail
    assert opcodes(traces[1]) == [*head, ("add.u32", full & ~0xFF), *tail]
    assert opcodes(traces[2]) == [*head, ("add.u32", full), *tail]
    assert sum(len(trace.steps) for trace in traces) == profiles[0].warp_instructions
    assert {name for trace in traces for name, _, _ in trace.steps} == {"k"}
