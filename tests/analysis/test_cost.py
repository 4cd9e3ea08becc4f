"""Static cost: trips of counted loops as the emulator runs them, weights of nested loops, callees."""

from __future__ import annotations

import pytest

from cccopt.analysis.cost import DEFAULT_TRIP_COUNT, Costs, costs
from cccopt.emulator import Program
from cccopt.ptx import isa
from cccopt.ptx.ir import Instruction
from cccopt.ptx.parser import parse

HEAD = ".version 8.0\n.target sm_75\n.address_size 64\n"
KERNEL = (
    HEAD
    + """.visible .entry k(.param .u32 n)
{{
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<4>;
  ld.param.u32 %r5, [n];
{body}
  ret;
}}
"""
)

# What stands ahead of the loop, in it, and how often the block at LOOP runs.
COUNTED = {
    "up to a bound, tested behind the step": (
        "mov.u32 %r1, 0;",
        "add.s32 %r1, %r1, 4; setp.ne.s32 %p1, %r1, 20; @%p1 bra LOOP;",
        5,
    ),
    "down to nothing": ("mov.u32 %r1, 7;", "add.s32 %r1, %r1, -1; setp.gt.s32 %p1, %r1, 0; @%p1 bra LOOP;", 7),
    "sub": ("mov.u32 %r1, 9;", "sub.s32 %r1, %r1, 3; setp.eq.s32 %p1, %r1, 0; @!%p1 bra LOOP;", 3),
    "tested ahead of the step": (
        "mov.u32 %r1, 2;",
        "setp.lt.s32 %p1, %r1, 6; add.s32 %r1, %r1, 1; @%p1 bra LOOP;",
        5,
    ),
    "unsigned": ("mov.u32 %r1, 0xfffffff0;", "add.u32 %r1, %r1, 8; setp.hi.u32 %p1, %r1, 100; @%p1 bra LOOP;", 2),
    "unsigned, bound below nothing": (
        "mov.u32 %r1, 0;",
        "sub.u32 %r1, %r1, 1; setp.ne.u32 %p1, %r1, -4; @%p1 bra LOOP;",
        4,
    ),
    "signed": ("mov.u32 %r1, -16;", "add.s32 %r1, %r1, 8; setp.lt.s32 %p1, %r1, 100; @%p1 bra LOOP;", 15),
    "through another register": (
        "mov.u32 %r1, 0;",
        "add.s32 %r2, %r1, 1; mov.u32 %r1, %r2; setp.ne.s32 %p1, %r2, 6; @%p1 bra LOOP;",
        6,
    ),
}  # fmt: skip

UNKNOWN = {
    "bound of the caller": ("mov.u32 %r1, 0;", "add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, %r5; @%p1 bra LOOP;"),
    "the opposite predicate": (
        "mov.u32 %r1, 0;",
        "add.s32 %r1, %r1, 1; setp.lt.s32 %p2|%p1, %r1, 5; @%p1 bra OUT; bra LOOP; OUT:",
    ),
    "start of the caller": ("mov.u32 %r1, %r5;", "add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 5; @%p1 bra LOOP;"),
    "two steps": (
        "mov.u32 %r1, 0;",
        "add.s32 %r1, %r1, 1; @%p2 add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 5; @%p1 bra LOOP;",
    ),
    "multiplied": ("mov.u32 %r1, 1;", "shl.b32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 64; @%p1 bra LOOP;"),
    "a step that some iterations skip": (
        "mov.u32 %r1, 0;",
        "@%p2 bra PAST; add.s32 %r1, %r1, 1; PAST: setp.lt.s32 %p1, %r1, 5; @%p1 bra LOOP;",
    ),
    "a test that some iterations skip": (
        "mov.u32 %r1, 0;",
        "add.s32 %r1, %r1, 1; @%p2 bra PAST; setp.ge.s32 %p1, %r1, 5; @%p1 bra OUT; PAST: bra LOOP; OUT:",
    ),
    "never over": ("mov.u32 %r1, 0;", "add.s32 %r1, %r1, 2; setp.ne.s32 %p1, %r1, 7; @%p1 bra LOOP;"),
}  # fmt: skip


def of(body: str) -> Costs:
    module = parse(KERNEL.format(body=body))
    return costs(module, next(iter(module.functions())))


@pytest.mark.parametrize("name", COUNTED)
def test_counted_loops_trip_as_often_as_on_the_emulator(name: str) -> None:
    ahead, inside, trips = COUNTED[name]
    text = KERNEL.format(body=f"{ahead}\nLOOP:\n{inside}")
    found = of(f"{ahead}\nLOOP:\n{inside}")
    assert found.trip_count(found.loops[0]) == trips
    profile = Program(text).launch("k", 1, 32, [1])
    assert profile.by_label["k", "LOOP"].warps == trips


@pytest.mark.parametrize("name", UNKNOWN)
def test_other_loops_count_as_unknown(name: str) -> None:
    ahead, inside = UNKNOWN[name]
    found = of(f"{ahead}\nLOOP:\n{inside}")
    assert found.trip_count(found.loops[0]) is None
    header = found.loops[0].header
    everything = range(len(found.cfg.blocks))
    assert found.of_blocks([header], everything) == DEFAULT_TRIP_COUNT * found.of_block(header)
    assert found.of_blocks([header], everything, one_iteration_of=header) == found.of_block(header)


def test_a_test_ahead_of_the_body_is_passed_once_more() -> None:
    found = of(
        "mov.u32 %r1, 0;\nLOOP:\nsetp.ge.s32 %p1, %r1, 10;\n@%p1 bra DONE;\nadd.s32 %r1, %r1, 1;\nbra LOOP;\nDONE:"
    )
    assert found.trip_count(found.loops[0]) == 10


def test_loops_in_loops_multiply_and_only_those_inside_count() -> None:
    inner = "mov.u32 %r2, 0;\nIN:\nadd.s32 %r2, %r2, 1; setp.ne.s32 %p2, %r2, 3; @%p2 bra IN;"
    found = of(f"mov.u32 %r1, 0;\nOUT:\n{inner}\nadd.s32 %r1, %r1, 1; setp.ne.s32 %p1, %r1, 5; @%p1 bra OUT;")
    outer, within = found.loops
    everything = range(len(found.cfg.blocks))
    once = found.of_block(within.header)
    assert once == sum(isa.facts(s).slots for s in found.body if isinstance(s, Instruction)) - sum(
        found.of_block(b.index) for b in found.cfg.blocks if b.index != within.header
    )
    assert found.of_blocks([within.header], everything) == 15 * once
    assert found.of_blocks([within.header], outer.blocks, one_iteration_of=outer.header) == 3 * once


def test_a_call_costs_what_it_calls_also_where_that_calls_itself() -> None:
    function = """.func f()
{
  .reg .f32 %f<4>;
  fma.rn.f32 %f1, %f1, %f1, %f1;
  fma.rn.f32 %f1, %f1, %f1, %f1;
  call.uni f;
  ret;
}
"""
    module = parse(HEAD + function + ".visible .entry k()\n{\n  call.uni f;\n  ret;\n}\n")
    kernel = next(f for f in module.functions() if f.name == "k")
    found = costs(module, kernel)
    call = next(i for i, s in enumerate(found.body) if isinstance(s, Instruction) and s.base == "call")
    own = isa.facts(found.body[call]).slots  # type: ignore[arg-type]
    ret = next(s for s in found.body if isinstance(s, Instruction) and s.base == "ret")
    assert found.of_statement(call) == own + (2 + own + isa.facts(ret).slots)
