"""Recursion: marked functions in the place of their calls, calls of themselves as jumps, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cccopt.ccc.function.call_sequences import CallPiece, Unfit, calls
from cccopt.ccc.function.calls import called
from cccopt.ccc.function.inlining import inline
from cccopt.diagnostic import Severity
from cccopt.emulator import Program
from cccopt.passes.pipeline import Options, Refusal
from cccopt.passes.pipeline import run as rewrite_module
from cccopt.ptx.ir import Function, Marker, Module
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from cccopt.ptx.scopes import with_unique_names
from cccopt.ptx.verifier import verify
from cccopt.region_profiles import of_run, program_of
from tests.kernels.running import Launch, compare, compiled, rewritten, run

LAUNCHES = [Launch(1, 64, 3), Launch(1, (8, 5, 3), 1), Launch(2, 33, 1)]
ARCHS = ("sm_90", "sm_100")


def _reached(module: Module, kernel: str) -> Module:
    """The module with a kernel and what it calls, nothing else."""
    kept = called(module, [kernel])
    return Module(tuple(i for i in module.items if not isinstance(i, Function) or i.name in kept))


def _arguments(launch: Launch) -> list[Any]:
    """Chains of a few steps, some of a dozen: next[], out[], n."""
    n = launch.uneven
    chain = np.random.default_rng(7).integers(-n // 6, n, n).astype(np.int32)
    return [chain, np.zeros(n, np.int32), n]


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("kernel", ["walks", "finds", "lasts", "blends", "shuffles"])
def test_a_function_that_is_called_runs_as_tasks(kernel: str, arch: str) -> None:
    module = _reached(compiled("recursion", arch), kernel)
    assert any(calls(s, f.name) for f in module.functions() for k in module.functions() for s in k.body or ())
    forms = ("auto", "idle lanes") if arch == ARCHS[0] else ("auto",)
    ran = compare(module, kernel, _arguments, LAUNCHES, forms=forms)
    assert all(ran["auto"][phase] for phase in ("push", "take", "trip", "drain", "original"))


def test_a_recursion_in_a_kernel_with_a_loop_over_blocks() -> None:
    module = _reached(compiled("recursion", "sm_90"), "finds_by_block")
    result = rewrite_module(module, Options("always", resident=2))
    launch = Launch(9, 64, 1)
    args = _arguments(launch)
    before, _ = run(Program(module), "finds_by_block", launch, args)
    after, _ = run(Program(result.module), "finds_by_block", launch, args)
    assert after == before
    assert [r.outcome for r in result.regions] == ["rewritten", "rewritten"]


def test_a_call_of_itself_at_the_end_becomes_a_jump() -> None:
    module = compiled("recursion", "sm_90")
    (last,) = (f for f in module.functions() if "last" in f.name and f.kind == "func" and f.body)
    assert any(calls(s, last.name) for s in last.body or ())
    result = rewritten(_reached(module, "lasts"))
    (kernel,) = (f for f in result.module.functions() if f.name == "lasts")
    assert not any(calls(s, last.name) for s in kernel.body or ())
    (loop, path) = result.regions
    # `next`, `visited` and `limit` go through all calls as they came: a task takes along a place and a depth.
    assert (loop.kind, path.kind, path.context_bytes) == ("for", "recursive", 12)


def test_the_function_itself_stays_for_other_callers() -> None:
    module = compiled("recursion", "sm_90")
    result = rewritten(module)
    before = {f.name: f for f in module.functions() if f.kind == "func" and f.body is not None}
    after = {f.name: f for f in result.module.functions() if f.kind == "func" and f.body is not None}
    assert after.keys() == before.keys()
    for name, function in after.items():
        body = tuple(s for s in before[name].body or () if not isinstance(s, Marker))
        assert function.body == body


@pytest.mark.parametrize(
    ("kernel", "code", "reason", "line"),
    [
        ("sums", "CCC065", "continues after calling itself", 4),
        ("fibonaccis", "CCC065", "continues after calling itself", 10),
        ("evens", "CCC065", "through another function", 16),
        ("chains", "CCC066", "local memory of its own", 25),
        ("alones", "CCC030", "the function marked `recursive` is not inside a loop marked `for`", 33),
    ],
)
@pytest.mark.parametrize("arch", ARCHS)
def test_what_cannot_be_a_task_is_refused_with_its_reason(
    kernel: str, code: str, reason: str, line: int, arch: str
) -> None:
    module = _reached(compiled("recursion_refused", arch), kernel)
    with pytest.raises(Refusal) as refused:
        rewritten(module)
    (said,) = refused.value.diagnostics
    assert (said.code, said.place and said.place.position.line) == (code, line)
    assert reason in said.message


OWN_CALL = """.version 9.0
.target sm_90
.address_size 64
.func f(.param .u64 at, .param .u32 n)
{
    .reg .b32 %r<4>; .reg .b64 %rd<3>; .reg .pred %p<3>;
    ld.param.u64 %rd1, [at]; ld.param.u32 %r1, [n];
    // ccc recursive.begin 2 line=3:1 file=k.cu
    st.global.u32 [%rd1], %r1; setp.gt.u32 %p1, %r1, 9; @%p1 bra DONE;
    add.u32 %r1, %r1, 1;
    { .param .b64 x; .param .b32 y; st.param.b64 [x], %rd1; st.param.b32 [y], %r1; GUARD call.uni f, (x, y); }
DONE:
    ret;
}
.entry k(.param .u64 out) .maxntid 64
{
    .reg .b32 %r<4>; .reg .b64 %rd<3>; .reg .pred %p<3>;
    ld.param.u64 %rd1, [out]; mov.u32 %r1, 0;
    // ccc for.begin 1 line=10:1 file=k.cu
LOOP:
    // ccc body.begin 1
    { .param .b64 x; .param .b32 y; st.param.b64 [x], %rd1; st.param.b32 [y], %r1; call.uni f, (x, y); }
    // ccc body.end 1
    add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 9; @%p1 bra LOOP;
    // ccc for.end 1
    ret;
}"""


@pytest.mark.parametrize("guard", ["@%p1", "@!%p1"])
def test_a_call_of_itself_in_a_form_that_no_compiler_writes_is_refused(guard: str) -> None:
    assert {r.outcome for r in rewritten(parse(OWN_CALL.replace("GUARD", ""), "k.ptx")).regions} == {
        "rewritten"
    }
    with pytest.raises(Refusal) as refused:
        rewritten(parse(OWN_CALL.replace("GUARD", guard), "k.ptx"))
    (said,) = refused.value.diagnostics
    assert (said.code, said.place and said.place.position.line) == ("CCC066", 3)
    assert "parameters declared at the call" in said.message


def test_with_keep_going_the_others_are_rewritten() -> None:
    good, bad = compiled("recursion", "sm_90"), compiled("recursion_refused", "sm_90")
    items = [i for i in bad.items if isinstance(i, Function)]
    # Regions of both files go by numbers from 1 on.
    far = [_renumbered(f, 100) for f in items]
    module = Module((*_reached(good, "finds").items, *far))
    result = rewrite_module(module, Options("always", keep_going=True))
    assert {r.kernel for r in result.regions if r.outcome == "rewritten"} == {"finds"}
    warned = sorted(d.code for d in result.remarks if d.severity is Severity.WARNING)
    assert warned == ["CCC030", "CCC065", "CCC065", "CCC065", "CCC066"]
    left = {f.name: f for f in result.module.functions() if f.body is not None}
    for function in items:
        if function.body is not None:
            assert left[function.name].body == tuple(s for s in function.body if not isinstance(s, Marker))


def _renumbered(function: Function, by: int) -> Function:
    body = function.body
    return replace(
        function,
        body=body and tuple(replace(s, region=s.region + by) if isinstance(s, Marker) else s for s in body),
    )


def test_a_recursion_that_the_compiler_wrote_out_is_gone() -> None:
    module = parse(
        """.version 9.0
        .target sm_90
        .address_size 64
        .entry k(.param .u64 out) {
            .reg .b32 %r<4>; .reg .b64 %rd<3>; .reg .pred %p<3>;
            ld.param.u64 %rd1, [out]; mov.u32 %r1, 0;
            // ccc for.begin 1 line=10:1 file=k.cu
        LOOP:
            // ccc body.begin 1
            // ccc recursive.begin 2 line=3:1 file=k.cu
            st.global.u32 [%rd1], %r1;
            // ccc recursive.begin 2 line=3:1 file=k.cu
            st.global.u32 [%rd1+4], %r1;
            // ccc body.end 1
            add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 9; @%p1 bra LOOP;
            // ccc for.end 1
            ret;
        }""",
        "k.ptx",
    )
    with pytest.raises(Refusal) as refused:
        rewritten(module)
    (said,) = refused.value.diagnostics
    assert (said.code, said.place and said.place.position.line) == ("CCC067", 3)


def test_a_profile_counts_a_function_that_is_called() -> None:
    marked = _reached(compiled("recursion", "sm_100"), "finds")
    launch = Launch(2, 64, 2)
    _, profile = run(Program(marked), "finds", launch, _arguments(launch))
    program = program_of(print_module(marked))
    memory, prepared = run(program, "finds", launch, _arguments(launch))
    assert memory == run(Program(marked), "finds", launch, _arguments(launch))[0]
    loop, path = of_run(program, prepared).functions["finds"].values()
    assert (loop.kind, path.kind) == ("for", "recursive")
    assert loop.lanes == path.entered == launch.uneven
    assert path.lanes > path.entered
    # Neither the call nor its return is left.
    assert profile.warp_instructions > prepared.warp_instructions


# --- the inliner by itself ---

_CALLER = """.version 9.0
.target sm_90
.address_size 64
.func (.param .align 8 .b8 result[16]) f(.param .align 8 .b8 a[16], .param .b32 b)
{
    .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<4>; .reg .pred %p<3>;
    CALLEE
}
.entry k(.param .u64 out)
{
    .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<4>; .reg .pred %p<3>;
    ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 16; add.u64 %d1, %d1, %d2;
    mov.b64 %d3, 0x8182838485868788; cvt.u64.u32 %d2, %r1; add.u64 %d3, %d3, %d2; cvt.u16.u64 %h1, %d3;
    {
    .param .align 8 .b8 p[16]; .param .b32 q; .param .align 8 .b8 o[16];
    STORES
    call.uni (o), f, (p, q);
    LOADS
    }
    st.global.u32 [%d1], %r5;
    st.global.u64 [%d1+8], %d5;
    ret;
}
"""


def _inlined(callee: str, stores: str, loads: str) -> tuple[Module, Module]:
    """A module with a call, and the same with the callee in its place."""
    text = _CALLER.replace("CALLEE", callee).replace("STORES", stores).replace("LOADS", loads)
    module = with_unique_names(parse(text, "inline.ptx"))
    functions = {f.name: f for f in module.functions()}
    kernel = functions["k"]
    (call,) = (i for i, s in enumerate(kernel.body or ()) if calls(s, "f"))
    made = inline(kernel, call, functions["f"])
    after = Module(tuple(made if item is kernel else item for item in module.items))
    verify(after)
    return module, parse(print_module(after), "after.ptx")


WHOLE = "st.param.b64 [p], %d3; st.param.b64 [p+8], %d3; st.param.b32 [q], %r1;"
BACK = "ld.param.u32 %r5, [o]; ld.param.u64 %d5, [o+8];"
GIVE = "st.param.b32 [result], %r5; st.param.b64 [result+8], %d5; ret;"


@pytest.mark.parametrize(
    ("callee", "stores", "loads"),
    [
        pytest.param(
            f"ld.param.u64 %d5, [a+8]; ld.param.u32 %r5, [b]; {GIVE}", WHOLE, BACK, id="the same pieces"
        ),
        pytest.param(
            f"ld.param.u8 %h1, [a+1]; ld.param.s8 %h2, [a+2]; cvt.u32.u16 %r5, %h1; cvt.s32.s16 %r1, %h2;"
            f" ld.param.s8 %r2, [a+3]; ld.param.s16 %r3, [a+4]; ld.param.u16 %r4, [a+6]; xor.b32 %r5, %r5, %r1;"
            f" shl.b32 %r2, %r2, 3; xor.b32 %r5, %r5, %r2; xor.b32 %r3, %r3, %r4; cvt.u64.u32 %d5, %r3; {GIVE}",
            WHOLE,
            BACK,
            id="parts of larger pieces",
        ),
        pytest.param(
            f"ld.param.u64 %d5, [a+8]; ld.param.u32 %r5, [a+4]; {GIVE}",
            "st.param.v4.b8 [p+4], {%h1, 7, %h1, -1}; st.param.b32 [p+8], %r1; st.param.b16 [p+12], %h1;"
            " st.param.b8 [p+14], %r1; st.param.b8 [p+15], %h1; st.param.b32 [q], 0;",
            BACK,
            id="pieces put together",
        ),
        pytest.param(
            "ld.param.v2.u32 {%r1, %r2}, [a]; ld.param.f32 %f1, [b]; add.f32 %f1, %f1, %f1; mov.b32 %r3, %f1;"
            " st.param.v2.b32 [result], {%r1, %r2}; st.param.v2.b32 [result+8], {%r2, %r3}; ret;",
            "st.param.v2.b64 [p], {%d3, %d3}; st.param.f32 [q], 0f3F800000;",
            BACK,
            id="vectors and a float",
        ),
        pytest.param(
            f"ld.param.u32 %r5, [b]; mov.b64 %d5, 9; setp.lt.u32 %p1, %r5, 20; @%p1 ld.param.u64 %d5, [a];"
            f" @!%p1 bra REST; {GIVE} REST: st.param.b32 [result], 5; st.param.b64 [result+8], %d5; @%p1 ret; ret;",
            WHOLE,
            BACK,
            id="guards and several returns",
        ),
        pytest.param(
            ".local .b32 own[1]; ld.param.u32 %r5, [b]; st.local.u32 [own], %r5; ld.local.u32 %r5, [own];"
            f" mov.b64 %d5, 1; {GIVE}",
            WHOLE,
            BACK,
            id="local memory of its own",
        ),
        pytest.param(
            "ld.param.u64 %d5, [a+8]; ld.param.u32 %r5, [b]; setp.eq.u32 %p1, %r5, 77; @%p1 bra DONE; {"
            " .param .align 8 .b8 p[16]; .param .b32 q; .param .align 8 .b8 o[16]; add.u64 %d6, %d5, 5;"
            " st.param.b64 [p+8], %d6; mov.u32 %r6, 77; st.param.b32 [q], %r6; call (o), f, (p, q);"
            f" ld.param.b32 %r5, [o]; ld.param.b64 %d5, [o+8]; }} DONE: {GIVE}",
            WHOLE,
            BACK,
            id="a call of itself",
        ),
        pytest.param(
            "ld.param.u64 %d5, [a+8]; ld.param.u32 %r5, [b]; add.u32 %r5, %r5, 9; add.u64 %d5, %d5, 1;"
            " setp.gt.u32 %p1, %r5, 100; @%p1 bra DONE; { .param .align 8 .b8 p[16]; .param .b32 q;"
            " .param .align 8 .b8 o[16]; st.param.b64 [p+8], %d5; st.param.b32 [q], %r5; call (o), f, (p, q);"
            f" ld.param.b32 %r5, [o]; ld.param.b64 %d5, [o+8]; }} DONE: {GIVE}",
            WHOLE,
            BACK,
            id="parameters that the function changes",
        ),
    ],
)
def test_parameters_in_registers_have_the_same_values(callee: str, stores: str, loads: str) -> None:
    # Bytes that nobody stored may be anything: only what was stored is asked for.
    before, after = _inlined(callee, stores, loads)
    assert not any(calls(s, "f") for f in after.functions() if f.name == "k" for s in f.body or ())
    out = [np.zeros(64 * 2, np.uint64)]
    expected, _ = run(Program(before), "k", Launch(1, 64), out)
    got, _ = run(Program(after), "k", Launch(1, 64), out)
    assert got == expected


@pytest.mark.parametrize(
    ("callee", "stores", "reason"),
    [
        (
            f"mov.b64 %d4, a; ld.param.u64 %d5, [a]; ld.param.u32 %r5, [b]; {GIVE}",
            WHOLE,
            "more with its parameters",
        ),
        (f"mov.u32 %r4, 8; ld.param.u64 %d5, [a+6]; ld.param.u32 %r5, [b]; {GIVE}", WHOLE, "overlap"),
        (
            f"ld.param.u64 %d5, [a]; ld.param.u32 %r5, [b]; {GIVE}",
            f"{WHOLE} st.param.b32 [p+4], %r1;",
            "overlap",
        ),
        (
            f"ld.param.u64 %d5, [a]; ld.param.u32 %r5, [b]; st.param.b16 [result], %h1; {GIVE}",
            WHOLE,
            "overlap",
        ),
        (f".shared .b32 s; ld.param.u64 %d5, [a]; ld.param.u32 %r5, [b]; {GIVE}", WHOLE, "shared memory"),
        (f"alloca.u64 %d5, 16; ld.param.u32 %r5, [b]; {GIVE}", WHOLE, "on its stack"),
    ],
)
def test_what_cannot_be_taken_apart_is_left(callee: str, stores: str, reason: str) -> None:
    with pytest.raises(Unfit, match=reason):
        _inlined(callee, stores, BACK)


def test_pieces_that_share_a_byte_overlap() -> None:
    assert CallPiece(0, 4, 32).overlaps(CallPiece(0, 7, 8))
    assert not CallPiece(0, 4, 32).overlaps(CallPiece(0, 8, 8))
    assert not CallPiece(0, 4, 32).overlaps(CallPiece(1, 4, 32))
