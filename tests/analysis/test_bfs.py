"""All analyses on the breadth-first search that nvcc 13.0 makes for sm_90: what CCC asks of them."""

from __future__ import annotations

import pytest

from cccopt.analysis.cfg import build
from cccopt.analysis.invariance import LoopInvariance, rematerialization_slice
from cccopt.analysis.liveness import upward_exposed
from cccopt.analysis.loops import innermost, irreducible_edges, loops
from cccopt.analysis.memory import MemoryAliasing
from cccopt.analysis.reaching import reaching_definitions
from cccopt.analysis.uniformity import uniformity
from cccopt.ptx.ir import Marker
from cccopt.ptx.parser import parse

from .kernels import find

MODULE = parse(
    """.version 9.0
.target sm_90
.address_size 64
.visible .entry bfs(
    .param .u32 bfs_param_0,
    .param .u32 bfs_param_1,
    .param .u64 bfs_param_2,
    .param .u64 bfs_param_3,
    .param .u64 bfs_param_4,
    .param .u64 bfs_param_5
)
.maxntid 256, 1, 1
{
    .reg .pred  %p<7>;
    .reg .b32   %r<24>;
    .reg .b64   %rd<22>;
    ld.param.u32 %r9, [bfs_param_0];
    ld.param.u32 %r10, [bfs_param_1];
    ld.param.u64 %rd7, [bfs_param_2];
    ld.param.u64 %rd8, [bfs_param_3];
    ld.param.u64 %rd9, [bfs_param_4];
    ld.param.u64 %rd10, [bfs_param_5];
    // ccc for.begin 1
    mov.u32 %r11, %ntid.x;
    mov.u32 %r12, %ctaid.x;
    mov.u32 %r13, %tid.x;
    mad.lo.s32 %r22, %r12, %r11, %r13;
    setp.ge.s32 %p1, %r22, %r9;
    @%p1 bra    $L__BB0_10;
    cvta.to.global.u64 %rd1, %rd10;
    cvta.to.global.u64 %rd14, %rd8;
    cvta.to.global.u64 %rd17, %rd9;
$L__BB0_2:
    .pragma "nounroll";
    // ccc body.begin 1
    cvta.to.global.u64 %rd11, %rd7;
    cvt.s64.s32 %rd2, %r22;
    mul.wide.s32 %rd12, %r22, 4;
    add.s64 %rd13, %rd11, %rd12;
    ld.global.u32 %r14, [%rd13];
    setp.ne.s32 %p2, %r14, %r10;
    @%p2 bra    $L__BB0_9;
    // ccc if.begin 2
    shl.b64 %rd15, %rd2, 2;
    add.s64 %rd16, %rd14, %rd15;
    ld.global.nc.u32 %r23, [%rd16];
    ld.global.nc.u32 %r5, [%rd16+4];
    // ccc for.begin 3
    setp.ge.s32 %p3, %r23, %r5;
    @%p3 bra    $L__BB0_8;
    mul.wide.s32 %rd18, %r23, 4;
    add.s64 %rd21, %rd17, %rd18;
$L__BB0_5:
    .pragma "nounroll";
    // ccc body.begin 3
    ld.global.nc.u32 %r15, [%rd21];
    mul.wide.s32 %rd20, %r15, 4;
    add.s64 %rd5, %rd11, %rd20;
    ld.global.u32 %r16, [%rd5];
    setp.gt.s32 %p4, %r16, -1;
    @%p4 bra    $L__BB0_7;
    add.s32 %r21, %r10, 1;
    st.global.u32 [%rd5], %r21;
    mov.u32 %r17, 1;
    st.global.u32 [%rd1], %r17;
$L__BB0_7:
    // ccc body.end 3
    add.s64 %rd21, %rd21, 4;
    add.s32 %r23, %r23, 1;
    setp.lt.s32 %p5, %r23, %r5;
    @%p5 bra    $L__BB0_5;
$L__BB0_8:
    // ccc for.end 3
    // ccc if.end 2
$L__BB0_9:
    cvt.u32.u64 %r18, %rd2;
    // ccc body.end 1
    mov.u32 %r20, %nctaid.x;
    mad.lo.s32 %r22, %r20, %r11, %r18;
    setp.lt.s32 %p6, %r22, %r9;
    @%p6 bra    $L__BB0_2;
$L__BB0_10:
    // ccc for.end 1
    ret;
}
"""
)
KERNEL = next(MODULE.functions())
CFG = build(KERNEL.body)
REACHING = reaching_definitions(CFG, KERNEL.body)
UNIFORMITY = uniformity(KERNEL, CFG)


def marker(event, region):
    return next(
        i
        for i, s in enumerate(KERNEL.body)
        if isinstance(s, Marker) and (s.event, s.region) == (event, region)
    )


def test_the_loops():
    vertices, neighbours = loops(CFG)
    assert irreducible_edges(CFG) == ()
    assert CFG.blocks[vertices.header].label == "$L__BB0_2"
    assert CFG.blocks[neighbours.header].label == "$L__BB0_5"
    assert neighbours.blocks < vertices.blocks
    assert (vertices.depth, neighbours.depth) == (1, 2)
    assert innermost((vertices, neighbours), CFG.block_of(marker("body.begin", 3))) == neighbours


PATHS = {
    ("if", 2): {"%r10", "%rd1", "%rd2", "%rd11", "%rd14", "%rd17"},
    ("body", 3): {"%r10", "%rd1", "%rd11", "%rd21"},
}
CONTEXTS = {("if", 2): {"%rd2"}, ("body", 3): {"%rd21"}}


@pytest.mark.parametrize("path", PATHS)
def test_a_paths_live_ins_and_those_that_must_be_collected(path):
    event, region = path
    begin, end = marker(f"{event}.begin", region), marker(f"{event}.end", region)
    exposed = upward_exposed(CFG, KERNEL.body, begin, {end})
    assert exposed == PATHS[path]
    invariance = LoopInvariance(KERNEL, REACHING, innermost(loops(CFG), CFG.block_of(begin)).blocks)
    left_out = {
        name for name in exposed if UNIFORMITY.is_uniform_use(begin, name) and invariance.holds(begin, name)
    }
    assert exposed - left_out == CONTEXTS[path]


def test_what_lanes_that_fail_the_guard_would_skip_can_be_rebuilt():
    begin = marker("if.begin", 2)
    behind_guard = find(KERNEL, "cvta.to.global.u64 %rd14")
    assert UNIFORMITY.divergent_control(CFG.block_of(behind_guard)) == {CFG.entry}
    assert rematerialization_slice(KERNEL, REACHING, begin, "%rd14") == (
        find(KERNEL, "ld.param.u64 %rd8"),
        behind_guard,
    )
    assert rematerialization_slice(KERNEL, REACHING, begin, "%rd2") is None


def test_all_branches_vary():
    assert UNIFORMITY.varying_branches == {
        CFG.block_of(i) for i, s in enumerate(KERNEL.body) if getattr(s, "opcode", "") == "bra"
    }


def test_memory():
    aliasing = MemoryAliasing(MODULE, KERNEL, REACHING)
    levels, rows = find(KERNEL, "ld.global.u32 %r14"), find(KERNEL, "ld.global.nc.u32 %r23")
    store = find(KERNEL, "st.global.u32 [%rd5]")
    assert aliasing.may_clash(aliasing.access(store), aliasing.access(levels))
    assert not aliasing.may_clash(aliasing.access(store), aliasing.access(rows))
