"""Reaching definitions and def-use edges of small kernels, and of random bodies against the definition."""

from __future__ import annotations

from hypothesis import given, settings

from cccopt.analysis import effects
from cccopt.analysis.cfg import build
from cccopt.analysis.reaching import ENTRY, reaching_definitions

from .graphs import REGISTERS, bodies, next_statements, reached
from .kernels import find, kernel

LOOP = kernel(
    """
    mov.u32 %r1, 0;
LOOP:
    @%p1 mov.u32 %r2, %r1;
    add.s32 %r1, %r1, 1;
    setp.lt.s32 %p2, %r1, %r3;
    @%p2 bra LOOP;
    st.global.v2.u32 [%rd1], {%r1, %r2};
    ret;
    add.s32 %r1, %r1, 2;
    """
)


def test_a_loop_counter_has_two_definitions_at_its_use_and_one_behind_the_loop():
    reaching = reaching_definitions(build(LOOP.body), LOOP.body)
    start, step = find(LOOP, "mov.u32 %r1, 0"), find(LOOP, "add.s32 %r1, %r1, 1")
    assert reaching.reaching(step, "%r1") == {start, step}
    assert reaching.reaching(find(LOOP, "st.global"), "%r1") == {step}
    assert reaching.reaching_after(step, "%r1") == {step}


def test_a_guarded_write_adds_to_what_was_there():
    reaching = reaching_definitions(build(LOOP.body), LOOP.body)
    guarded = find(LOOP, "@%p1 mov")
    assert reaching.reaching(guarded, "%r2") == {ENTRY, guarded}
    assert reaching.reaching_after(guarded, "%r2") == {ENTRY, guarded}
    assert reaching.reaching(find(LOOP, "st.global"), "%r2") == {ENTRY, guarded}


def test_what_nothing_writes_comes_from_the_entry():
    reaching = reaching_definitions(build(LOOP.body), LOOP.body)
    assert reaching.reaching(find(LOOP, "st.global"), "%rd1") == {ENTRY}
    assert reaching.reaching(find(LOOP, "setp"), "%no_such_register") == {ENTRY}


def test_nothing_reaches_dead_code():
    reaching = reaching_definitions(build(LOOP.body), LOOP.body)
    assert reaching.reaching(find(LOOP, "add.s32 %r1, %r1, 2"), "%r1") == set()


def test_definitions_at_the_end_of_a_block():
    cfg = build(LOOP.body)
    reaching = reaching_definitions(cfg, LOOP.body)
    latch = cfg.block_of(find(LOOP, "bra"))
    assert reaching.reaching_end(latch, "%r1") == {find(LOOP, "add.s32 %r1, %r1, 1")}
    assert reaching.reaching_end(cfg.entry, "%r1") == {find(LOOP, "mov.u32 %r1, 0")}


def _reaches(body, following, starts, register):
    """The statements before which a value can still be in ``register`` that was there before ``starts``."""
    seen = set()
    work = list(starts)
    while work:
        statement = work.pop()
        if statement not in seen:
            seen.add(statement)
            work += () if register in effects.kills(body[statement]) else following[statement]
    return seen


@settings(max_examples=100)
@given(bodies())
def test_reaching_definitions_are_what_the_definition_says(body):
    cfg = build(body)
    reaching = reaching_definitions(cfg, body)
    following = next_statements(cfg)
    live = reached(following, 0)
    for register in REGISTERS:
        sites = {site for site in live if register in effects.writes(body[site])}
        ways = {site: _reaches(body, following, following[site], register) for site in sites}
        ways[ENTRY] = _reaches(body, following, {0}, register)
        for statement in live:
            expected = {site for site, statements in ways.items() if statement in statements}
            assert reaching.reaching(statement, register) == expected
