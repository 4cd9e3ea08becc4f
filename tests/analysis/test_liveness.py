"""Live and upward-exposed registers of small kernels, and of random bodies against the definition."""

from __future__ import annotations

from hypothesis import given, settings

from cccopt.analysis import effects
from cccopt.analysis.cfg import build
from cccopt.analysis.liveness import liveness, region, upward_exposed

from .graphs import REGISTERS, bodies, next_statements
from .kernels import find, kernel


def test_a_guarded_write_keeps_the_old_value_alive():
    function = kernel(
        """
        mov.u32 %r1, 0;
        @%p1 add.s32 %r1, %r3, 1;
        st.global.u32 [%rd1], %r1;
        """
    )
    live = liveness(build(function.body), function.body)
    assert live.live_before(find(function, "mov")) == {"%p1", "%r3", "%rd1"}
    assert live.live_before(find(function, "add")) == {"%p1", "%r1", "%r3", "%rd1"}
    assert live.live_after(find(function, "add")) == {"%r1", "%rd1"}
    assert live.live_after(find(function, "st")) == set()


LOOP = kernel(
    """
    mov.u32 %r1, 0;
LOOP:
    setp.ge.s32 %p1, %r1, %r2;
    @%p1 bra DONE;
    setp.eq.s32 %p2, %r3, 0;
    @%p2 bra NEXT;
    mul.lo.s32 %r5, %r1, 3;
    @%p3 mov.u32 %r6, 1;
    add.s32 %r7, %r5, %r6;
    st.global.u32 [%rd1], %r7;
NEXT:
    add.s32 %r1, %r1, 1;
    bra LOOP;
DONE:
    st.global.u32 [%rd2], %r1;
    ret;
    """
)


def test_liveness_around_a_loop():
    cfg = build(LOOP.body)
    live = liveness(cfg, LOOP.body)
    invariant = {"%r2", "%r3", "%r6", "%p3", "%rd1", "%rd2"}
    header = cfg.block_of(find(LOOP, "setp.ge"))
    assert live.live_in[cfg.entry] == invariant
    assert live.live_in[header] == invariant | {"%r1"}
    assert live.live_out[header] == invariant | {"%r1"}
    assert live.live_in[cfg.block_of(find(LOOP, "[%rd2]"))] == {"%rd2", "%r1"}
    assert live.live_after(find(LOOP, "bra NEXT")) == invariant | {"%r1"}


def test_upward_exposed_registers_are_those_of_the_region_alone():
    cfg = build(LOOP.body)
    path = find(LOOP, "mul")
    join = cfg.blocks[cfg.block_of(find(LOOP, "add.s32 %r1"))].start
    assert region(cfg, path, {join}) == set(range(path, join))
    assert upward_exposed(cfg, LOOP.body, path, {join}) == {"%r1", "%p3", "%r6", "%rd1"}


def test_upward_exposed_in_a_region_with_a_cycle_and_two_ends():
    cfg = build(LOOP.body)
    header = cfg.blocks[cfg.block_of(find(LOOP, "setp.ge"))].start
    done = cfg.blocks[cfg.block_of(find(LOOP, "[%rd2]"))].start
    found = upward_exposed(cfg, LOOP.body, header, {done, find(LOOP, "mul")})
    assert found == {"%r1", "%r2", "%r3"}


def test_an_empty_region_exposes_nothing():
    cfg = build(LOOP.body)
    path = find(LOOP, "mul")
    assert region(cfg, path, {path}) == set()
    assert upward_exposed(cfg, LOOP.body, path, {path}) == set()


def _is_live(body, following, start, register, inside=None):
    """Whether some way from just before ``start`` reads ``register`` before writing it."""
    seen = set()
    work = [start]
    while work:
        statement = work.pop()
        if statement in seen or (inside is not None and statement not in inside):
            continue
        seen.add(statement)
        if register in effects.needs(body[statement]):
            return True
        if register not in effects.kills(body[statement]):
            work += following[statement]
    return False


@settings(max_examples=100)
@given(bodies())
def test_live_registers_are_what_the_definition_says(body):
    cfg = build(body)
    live = liveness(cfg, body)
    following = next_statements(cfg)
    names = [*REGISTERS, "%p"]
    for statement in range(len(body)):
        expected = {name for name in names if _is_live(body, following, statement, name)}
        assert live.live_before(statement) == expected
        after = {n for n in names if any(_is_live(body, following, s, n) for s in following[statement])}
        assert live.live_after(statement) == after
    for block in cfg.blocks:
        assert live.live_in[block.index] == live.live_before(block.start)
        assert live.live_out[block.index] == live.live_after(block.stop - 1)


@settings(max_examples=100)
@given(bodies())
def test_upward_exposed_registers_are_what_the_definition_says(body):
    cfg = build(body)
    following = next_statements(cfg)
    start, stops = len(body) // 3, {2 * len(body) // 3}
    inside = region(cfg, start, stops)
    expected = {name for name in [*REGISTERS, "%p"] if _is_live(body, following, start, name, inside)}
    assert upward_exposed(cfg, body, start, stops) == expected
