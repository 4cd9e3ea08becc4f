"""Which accesses may touch the same bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cccopt.analysis.cfg import build
from cccopt.analysis.memory import MemoryAliasing
from cccopt.analysis.reaching import reaching_definitions
from cccopt.analysis.roots import UNKNOWN, Root
from cccopt.ptx.parser import parse

from .kernels import find, module

DECLARATIONS = """
.shared .align 4 .b8 tile[128];
.shared .align 4 .b8 other[128];
.extern .shared .align 4 .b8 dynamic[];
.extern .shared .align 8 .b8 also_dynamic[];
.global .align 4 .b32 counter;
.const .align 4 .b32 table[4];
.extern .func callee;
"""
BEFORE = """
    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [b];
    cvta.to.global.u64 %rd3, %rd1;
    cvta.to.global.u64 %rd4, %rd2;
    mov.u32 %r1, tile;
    mov.u32 %r2, other;
    mov.u32 %r9, %tid.x;
    shl.b32 %r8, %r9, 2;
    add.s32 %r3, %r1, %r8;
    add.s32 %r4, %r2, %r8;
    ld.global.u64 %rd5, [%rd3];
    mov.u64 %rd6, counter;
    cvta.global.u64 %rd7, %rd6;
    cvt.u64.u32 %rd9, %r3;
    cvta.shared.u64 %rd8, %rd9;
"""


def aliasing(body):
    parsed = module(BEFORE + body, before=DECLARATIONS)
    function = next(f for f in parsed.functions() if f.name == "k")
    return MemoryAliasing(
        parsed, function, reaching_definitions(build(function.body), function.body)
    ), function


def conflict(first, second):
    found, function = aliasing(f"{first}\n{second}\nret;")
    a = find(function, "ret") - 2
    if not (found.accesses_memory(a) and found.accesses_memory(a + 1)):
        return False
    one, other = found.access(a), found.access(a + 1)
    assert found.may_clash(one, other) == found.may_clash(other, one)
    return found.may_clash(one, other)


STORE = "st.global.u32 [%rd3], %r9;"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (STORE, "ld.global.u32 %r5, [%rd3+4];"),
        (STORE, "st.global.u32 [%rd4], %r9;"),  # two parameters may be one array
        (STORE, "ld.global.u32 %r5, [counter];"),  # the host may pass the variable's address
        (STORE, "atom.global.add.u32 %r5, [%rd4], 1;"),
        (STORE, "ld.u32 %r5, [%rd5];"),  # a loaded pointer
        ("st.u32 [%rd5], %r9;", "ld.shared.u32 %r5, [%r3];"),
        ("st.u32 [%rd1], %r9;", "ld.global.u32 %r5, [%rd4];"),
        ("st.shared.u32 [%r3], %r9;", "ld.shared.u32 %r5, [%r1];"),
        ("st.shared.u32 [tile+4], %r9;", "ld.shared.u32 %r5, [%r3];"),
        ("st.shared.u32 [%r9], %r9;", "ld.shared.u32 %r5, [%r3];"),  # an address from nowhere
        ("st.shared.u32 [dynamic], %r9;", "ld.shared.u32 %r5, [also_dynamic];"),
        ("st.u32 [%rd8], %r9;", "ld.shared.u32 %r5, [%r3];"),
        ("st.local.u32 [%rd5], %r9;", "ld.local.u32 %r5, [%rd5+4];"),
        ("red.global.add.u32 [%rd3], 1;", "red.global.add.u32 [%rd4], 1;"),
        ("call.uni callee;", "ld.global.u32 %r5, [%rd3];"),
        ("call.uni callee;", "call.uni callee;"),
        ("mystery.u32 %r6, %r9;", "ld.global.u32 %r5, [%rd3];"),
        ("cp.async.ca.shared.global [%r3], [%rd3], 4;", "ld.shared.u32 %r5, [%r3];"),
    ],
)
def test_accesses_that_may_conflict(first, second):
    assert conflict(first, second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("ld.global.u32 %r6, [%rd3];", "ld.global.u32 %r5, [%rd3];"),
        (STORE, "ld.global.nc.u32 %r5, [%rd3];"),
        (STORE, "ld.param.u32 %r5, [n];"),
        ("st.u32 [%rd5], %r9;", "ld.const.u32 %r5, [table];"),
        ("call.uni callee;", "ld.global.nc.u32 %r5, [%rd3];"),
        (STORE, "ld.shared.u32 %r5, [%r3];"),
        (STORE, "ld.local.u32 %r5, [%rd5];"),
        ("st.shared.u32 [%r3], %r9;", "ld.shared.u32 %r5, [%r4];"),
        ("st.shared.u32 [tile], %r9;", "ld.shared.u32 %r5, [dynamic];"),
        ("st.u32 [%rd1], %r9;", "ld.shared.u32 %r5, [%r3];"),  # a kernel's pointer points to global memory
        ("st.u32 [%rd8], %r9;", "ld.global.u32 %r5, [%rd3];"),
        ("st.u32 [%rd8], %r9;", "ld.shared.u32 %r5, [%r4];"),
        ("st.u32 [%rd7], %r9;", "ld.shared.u32 %r5, [%r3];"),
        (STORE, "add.s32 %r5, %r9, 1;"),
        (STORE, "bar.warp.sync -1;"),
    ],
)
def test_accesses_that_are_provably_distinct(first, second):
    assert not conflict(first, second)


def test_roots_follow_a_pointer_around_a_loop():
    found, function = aliasing(
        """
    LOOP:
        ld.global.u32 %r5, [%rd3];
        add.s64 %rd3, %rd3, 4;
        setp.ne.s32 %p1, %r5, 0;
        @%p1 bra LOOP;
        """
    )
    assert found.roots(find(function, "ld.global.u32 %r5")) == {Root("parameter", "a")}


def test_roots_of_a_choice_are_those_of_both_sides():
    found, function = aliasing("selp.b32 %r5, %r3, %r4, %p1;\nst.shared.u32 [%r5], %r9;")
    assert found.roots(find(function, "st.shared")) == {Root("variable", "tile"), Root("variable", "other")}


def test_a_conditional_overwrite_leaves_both_roots():
    found, function = aliasing("@%p1 mov.u32 %r3, %r4;\nst.shared.u32 [%r3], %r9;")
    assert found.roots(find(function, "st.shared")) == {Root("variable", "tile"), Root("variable", "other")}


def test_a_long_chain_of_steps_is_followed_to_its_root():
    chain = "\n".join("add.s32 %r3, %r3, 4;" for _ in range(600))
    found, function = aliasing(f"{chain}\nst.shared.u32 [%r3], %r9;")
    assert found.roots(find(function, "st.shared")) == {Root("variable", "tile")}


@pytest.mark.parametrize(
    ("source", "known"), [("%rd9", {Root("variable", "tile")}), ("%rd1", {UNKNOWN}), ("%rd5", {UNKNOWN})]
)
def test_a_generic_address_of_a_number_may_lead_into_shared_memory(source, known):
    found, function = aliasing(f"cvta.shared.u64 %rd10, {source};\nst.u32 [%rd10], %r9;")
    assert found.roots(find(function, "st.u32")) == known


def test_a_swizzled_address_is_unknown():
    found, function = aliasing("xor.b32 %r5, %r3, 16;\nst.shared.u32 [%r5], %r9;")
    assert found.roots(find(function, "st.shared")) == {UNKNOWN}


@pytest.mark.parametrize(
    ("distance", "plain"),
    [
        ("sub.s32 %r5, %r3, %r1;", True),  # in one object
        ("sub.s32 %r5, %r3, %r2;", False),
        ("not.b32 %r6, %r1;\nadd.s32 %r5, %r3, %r6;", False),
    ],
)
def test_the_distance_of_two_addresses_is_not_the_address_of_either(distance, plain):
    found, function = aliasing(
        f"{distance}\ncvt.s64.s32 %rd10, %r5;\nadd.s64 %rd11, %rd3, %rd10;\nst.global.u8 [%rd11], %r9;"
    )
    roots = found.roots(find(function, "st.global"))
    assert roots == {Root("parameter", "a")} if plain else UNKNOWN in roots


def test_a_device_functions_pointer_parameter_may_point_anywhere():
    text = """.version 8.5
.target sm_90
.address_size 64
.func f(.param .b64 p)
{
    .reg .b64 %rd<3>;
    .reg .b32 %r<3>;
    ld.param.u64 %rd1, [p];
    st.u32 [%rd1], %r1;
}
"""
    parsed = parse(text)
    function = next(parsed.functions())
    found = MemoryAliasing(parsed, function, reaching_definitions(build(function.body), function.body))
    store = find(function, "st.u32")
    assert found.roots(store) == {UNKNOWN}
    assert found.spaces(store) == {"generic"}
    assert found.may_write(store)
    with pytest.raises(ValueError, match="not an instruction"):
        found.roots(0)


def test_a_restricted_parameter_leads_to_memory_of_its_own() -> None:
    found, function = aliasing(
        f"{STORE} ld.global.u32 %r5, [%rd4]; ld.global.u32 %r5, [counter]; ld.u32 %r5, [%rd5]; ret;"
    )
    first = find(function, "ret") - 4
    restricted = replace(found, restricted=frozenset({function.parameters[1].name}))
    plain, other, variable, loaded = (restricted.access(first + k) for k in range(4))
    parameters = {root.name for root in plain.roots | other.roots}
    assert len(parameters) == 2
    assert function.parameters[1].name in parameters
    assert restricted.may_clash(plain, plain)
    assert not restricted.may_clash(plain, other)
    assert restricted.may_clash(plain, loaded)
    assert found.may_clash(plain, other)
    assert found.may_clash(plain, variable)
