"""Uniform and varying registers: sources, control, loops; and random bodies run lane by lane."""

from __future__ import annotations

import pytest

from cccopt.analysis.cfg import build
from cccopt.analysis.uniformity import uniformity

from .kernels import device_function, find, kernel


def analyse(function):
    return uniformity(function, build(function.body))


def varying_after(text, register="%r1", make=kernel):
    """Whether ``register`` varies behind the last line of ``text``."""
    function = make(f"{text}\nexit;")
    found = analyse(function)
    last = find(function, "exit")
    return not found.is_uniform_use(last, register)


VARYING = "mov.u32 %r9, %tid.x;\n"
UNIFORM_ADDRESS = "ld.param.u64 %rd1, [a];\n"
VARYING_ADDRESS = VARYING + "ld.param.u64 %rd1, [a];\ncvt.u64.u32 %rd2, %r9;\nadd.s64 %rd1, %rd1, %rd2;\n"


@pytest.mark.parametrize(
    "text",
    [
        "mov.u32 %r1, 5;",
        "mov.u32 %r1, %ctaid.x;",
        "mov.u32 %r1, %ntid.y;",
        "mov.u32 %r1, %nctaid.z;",
        "ld.param.u32 %r1, [n];",
        "mov.b64 %rd1, n;\nld.param.u32 %r1, [%rd1+4];",
        UNIFORM_ADDRESS + "ld.const.u32 %r1, [%rd1];",
        UNIFORM_ADDRESS + "ld.global.nc.u32 %r1, [%rd1];",
        "ld.param.u32 %r2, [n];\nmov.u32 %r3, %ctaid.x;\nmad.lo.s32 %r1, %r2, %r3, 7;",
        VARYING + "setp.lt.u32 %p1, %r9, 3;\nvote.sync.ballot.b32 %r1, %p1, 0xffffffff;",
        VARYING + "setp.lt.u32 %p1, %r9, 3;\nvote.sync.ballot.b32 %r1, %p1, -1;",
        VARYING + "redux.sync.add.s32 %r1, %r9, 0xffffffff;",
        VARYING + "mov.u32 %r1, %r9;\nmov.u32 %r1, 0;",
        "ld.param.u32 %r2, [n];\nsetp.eq.s32 %p1, %r2, 0;\nmov.u32 %r1, 1;\n@%p1 mov.u32 %r1, 2;",
        ".local .align 4 .b8 depot[16];\nmov.u64 %rd1, depot;\ncvt.u32.u64 %r1, %rd1;",
    ],
)
def test_uniform_values(text):
    assert not varying_after(text)


@pytest.mark.parametrize(
    "text",
    [
        "mov.u32 %r1, %tid.x;",
        "mov.u32 %r1, %tid.z;",
        "mov.u32 %r1, %laneid;",
        "mov.u32 %r1, %lanemask_lt;",
        "mov.u32 %r1, %clock;",
        "mov.u32 %r1, %smid;",
        "add.s32 %r1, %r2, 1;",  # nothing wrote %r2
        VARYING + "and.b32 %r1, %r9, 0;",
        UNIFORM_ADDRESS + "ld.global.u32 %r1, [%rd1];",
        UNIFORM_ADDRESS + "ld.volatile.global.u32 %r1, [%rd1];",
        UNIFORM_ADDRESS + "ld.u32 %r1, [%rd1];",
        UNIFORM_ADDRESS + "ld.shared.u32 %r1, [%rd1];",
        UNIFORM_ADDRESS + "ld.local.u32 %r1, [%rd1];",
        UNIFORM_ADDRESS + "atom.global.add.u32 %r1, [%rd1], 1;",
        VARYING_ADDRESS + "ld.global.nc.u32 %r1, [%rd1];",
        VARYING_ADDRESS + "ld.const.u32 %r1, [%rd1];",
        VARYING + "setp.lt.u32 %p1, %r9, 3;\nmov.u32 %r1, 1;\n@%p1 mov.u32 %r1, 2;",
        VARYING + "setp.lt.u32 %p1, %r9, 3;\nselp.u32 %r1, 1, 2, %p1;",
        VARYING + "setp.lt.u32 %p1, %r9, 3;\nvote.sync.ballot.b32 %r1, %p1, 0xffff;",
        VARYING + "setp.lt.u32 %p1, %r9, 3;\nvote.sync.ballot.b32 %r1, %p1, %r2;",
        "activemask.b32 %r1;",
        "mov.u32 %r2, 0;\nshfl.sync.idx.b32 %r1, %r2, 0, 31, -1;",
        "mov.u32 %r2, 0;\nmystery.u32 %r1, %r2;",
        ".param .b32 back;\nld.param.u32 %r1, [back];",
    ],
)
def test_varying_values(text):
    assert varying_after(text)


def test_parameters_of_a_device_function_are_each_threads_own():
    assert varying_after("ld.param.u32 %r1, [n];", make=device_function)
    assert not varying_after("mov.u32 %r1, %ctaid.x;", make=device_function)


def test_a_value_joined_under_a_divergent_branch_varies_though_each_way_is_uniform():
    function = kernel(
        VARYING
        + """
        setp.lt.u32 %p1, %r9, 3;
        mov.u32 %r1, 0;
        @%p1 bra JOIN;
        mov.u32 %r1, 1;
        add.s32 %r2, %r1, 1;
    JOIN:
        add.s32 %r3, %r1, 1;
        mov.u32 %r4, 4;
        """
    )
    found = analyse(function)
    assert found.is_uniform_definition(find(function, "mov.u32 %r1, 1"), "%r1")
    assert found.is_uniform_use(find(function, "add.s32 %r2"), "%r1")
    assert not found.is_uniform_use(find(function, "add.s32 %r3"), "%r1")
    assert not found.is_uniform_definition(find(function, "add.s32 %r3"), "%r3")
    assert found.is_uniform_definition(find(function, "mov.u32 %r4"), "%r4")
    assert found.varying_branches == {0}


def test_a_value_joined_under_a_uniform_branch_is_uniform():
    function = kernel(
        """
        ld.param.u32 %r9, [n];
        setp.lt.u32 %p1, %r9, 3;
        mov.u32 %r1, 0;
        @%p1 bra JOIN;
        mov.u32 %r1, 1;
    JOIN:
        add.s32 %r3, %r1, 1;
        """
    )
    found = analyse(function)
    assert found.is_uniform_use(find(function, "add.s32 %r3"), "%r1")
    assert found.varying_branches == set()


COUNTED = """
    mov.u32 %r1, 0;
LOOP:
    add.s32 %r1, %r1, 1;
    add.s32 %r2, %r1, 1;
    setp.lt.u32 %p1, %r1, {bound};
    @%p1 bra LOOP;
    add.s32 %r3, %r1, 1;
"""


def test_a_counter_is_uniform_in_its_loop_and_varies_behind_it_when_lanes_leave_at_different_trips():
    function = kernel(VARYING + COUNTED.format(bound="%r9"))
    found = analyse(function)
    assert found.is_uniform_use(find(function, "add.s32 %r2"), "%r1")
    assert not found.is_uniform_use(find(function, "add.s32 %r3"), "%r1")


def test_a_counter_is_uniform_behind_a_loop_of_uniform_trip_count():
    function = kernel(COUNTED.format(bound="10"))
    found = analyse(function)
    assert found.is_uniform_use(find(function, "add.s32 %r3"), "%r1")


def test_lanes_that_continue_while_others_wait_in_the_loop_bring_different_counters():
    function = kernel(
        VARYING
        + """
        mov.u32 %r1, 0;
    HEAD:
        add.s32 %r2, %r1, 0;
        setp.lt.u32 %p1, %r2, %r9;
        @%p1 bra NEXT;
        add.s32 %r3, %r1, 1;
        setp.gt.u32 %p2, %r3, 40;
        @%p2 bra DONE;
    NEXT:
        add.s32 %r1, %r1, 1;
        bra HEAD;
    DONE:
        exit;
        """
    )
    found = analyse(function)
    assert not found.is_uniform_use(find(function, "add.s32 %r3"), "%r1")
    assert not found.is_uniform_use(find(function, "add.s32 %r2"), "%r1")


def test_a_counter_of_an_inner_loop_in_a_divergent_path_is_uniform_among_those_who_run_it():
    function = kernel(
        VARYING
        + """
        setp.lt.u32 %p1, %r9, 3;
        @%p1 bra JOIN;
        mov.u32 %r1, 0;
    LOOP:
        add.s32 %r1, %r1, 1;
        setp.lt.u32 %p2, %r1, 10;
        @%p2 bra LOOP;
        add.s32 %r2, %r1, 0;
    JOIN:
        add.s32 %r3, %r1, 0;
        """
    )
    found = analyse(function)
    inner = build(function.body).block_of(find(function, "add.s32 %r1"))
    assert found.is_uniform_use(find(function, "add.s32 %r2"), "%r1")
    assert not found.is_uniform_use(find(function, "add.s32 %r3"), "%r1")
    assert found.divergent_control(inner) == {0}
    assert found.divergent_control(0) == set()


def test_divergent_control_is_transitive_and_counts_guarded_exits():
    function = kernel(
        VARYING
        + """
        ld.param.u32 %r8, [n];
        setp.lt.u32 %p1, %r9, 3;
        setp.lt.u32 %p2, %r8, 3;
        @%p1 exit;
        @%p2 bra JOIN;
        mov.u32 %r1, 0;
    JOIN:
        exit;
        """
    )
    cfg = build(function.body)
    found = uniformity(function, cfg)
    assert found.varying_branches == {cfg.block_of(find(function, "@%p1 exit"))}
    assert found.divergent_control(cfg.block_of(find(function, "mov.u32 %r1"))) == {0}


def test_an_indexed_branch_by_a_varying_index_diverges():
    function = kernel(
        VARYING
        + """
        and.b32 %r8, %r9, 1;
    T: .branchtargets A, B;
        brx.idx %r8, T;
    A:
        mov.u32 %r1, 1;
        bra JOIN;
    B:
        mov.u32 %r1, 2;
    JOIN:
        add.s32 %r2, %r1, 0;
        """
    )
    found = analyse(function)
    assert found.varying_branches == {0}
    assert not found.is_uniform_use(find(function, "add.s32 %r2"), "%r1")


def test_dead_code_and_unknown_names_are_not_called_uniform():
    function = kernel("exit;\nadd.s32 %r1, %r2, 1;")
    found = analyse(function)
    assert not found.is_uniform_use(find(function, "add"), "%r2")
    assert not found.is_uniform_use(find(function, "exit"), "%r39")
