"""Def-use edges of a small kernel."""

from __future__ import annotations

from cccopt.analysis.cfg import build
from cccopt.analysis.defuse import def_use_graph, definitions, uses
from cccopt.analysis.reaching import ENTRY, reaching_definitions

from .kernels import find, kernel

KERNEL = kernel(
    """
    ld.param.u32 %r1, [n];
    mov.b64 {%r2, %r3}, %rd2;
    @%p1 add.s32 %r2, %r1, %r3;
    add.s32 %r4, %r2, %r3;
    st.global.u32 [%rd1], %r4;
    ret;
    add.s32 %r5, %r4, 1;
    """
)


def test_edges_carry_the_registers_that_a_value_passes_through():
    graph = def_use_graph(reaching_definitions(build(KERNEL.body), KERNEL.body))
    load, split, guarded = find(KERNEL, "ld.param"), find(KERNEL, "mov"), find(KERNEL, "@%p1")
    total, store = find(KERNEL, "add.s32 %r4"), find(KERNEL, "st.global")
    edges = {(a, b): registers for a, b, registers in graph.edges(data="registers")}
    assert edges == {
        (ENTRY, split): {"%rd2"},
        (ENTRY, guarded): {"%p1"},
        (load, guarded): {"%r1"},
        (split, guarded): {"%r2", "%r3"},
        (split, total): {"%r2", "%r3"},
        (guarded, total): {"%r2"},
        (total, store): {"%r4"},
        (ENTRY, store): {"%rd1"},
    }


def test_chains_in_both_directions():
    graph = def_use_graph(reaching_definitions(build(KERNEL.body), KERNEL.body))
    split, guarded, total = find(KERNEL, "mov"), find(KERNEL, "@%p1"), find(KERNEL, "add.s32 %r4")
    assert definitions(graph, total, "%r2") == {split, guarded}
    assert definitions(graph, total, "%r9") == set()
    assert uses(graph, split, "%r3") == {guarded, total}
    assert uses(graph, total, "%r3") == set()
    dead = find(KERNEL, "add.s32 %r5")
    assert definitions(graph, dead, "%r4") == set()
    assert uses(graph, dead, "%r5") == set()
