"""Whatever is called uniform or invariant is so when lanes really run a random body."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings

from cccopt.analysis.cfg import build
from cccopt.analysis.invariance import LoopInvariance
from cccopt.analysis.loops import loops
from cccopt.analysis.reaching import reaching_definitions
from cccopt.analysis.uniformity import uniformity
from cccopt.ptx.ir import Function
from tests.slow import drawn

from .lanes import LANES, NUMBERS, PREDICATES, programs, run


@settings(max_examples=drawn(300))
@given(programs())
def test_uniform_registers_agree_in_all_lanes_that_run_a_statement(body):
    cfg = build(body)
    found = uniformity(Function("entry", "k", body=body), cfg)
    for step in run(body, range(LANES)):
        for register in (*NUMBERS, *PREDICATES):
            values = {values[register] for values in step.lanes.values()}
            assert len(values) == 1 or not found.is_uniform_use(step.statement, register)


@settings(max_examples=drawn(300))
@given(programs())
def test_branches_that_part_lanes_are_called_varying(body):
    cfg = build(body)
    found = uniformity(Function("entry", "k", body=body), cfg)
    steps = run(body, range(LANES))
    for step, following in pairwise(steps):
        block = cfg.block_of(step.statement)
        at_end = step.statement == cfg.blocks[block].stop - 1
        if at_end and set(following.lanes) < set(step.lanes):
            assert block in found.varying_branches


@settings(max_examples=drawn(300))
@given(programs())
def test_invariant_registers_keep_their_value_while_a_lane_stays_in_the_loop(body):
    cfg = build(body)
    function = Function("entry", "k", body=body)
    reaching = reaching_definitions(cfg, body)
    steps = run(body, range(1, 2))
    for loop in loops(cfg):
        invariance = LoopInvariance(function, reaching, loop.blocks)
        seen: dict[tuple[int, str], int] = {}
        for step in steps:
            if cfg.block_of(step.statement) not in loop.blocks:
                seen.clear()
                continue
            for register in (*NUMBERS, *PREDICATES):
                if invariance.holds(step.statement, register):
                    value = step.lanes[1][register]
                    assert seen.setdefault((step.statement, register), value) == value
