"""Counted copies count what the emulator counts, statement by statement, and compute what the plain kernels do."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note, settings

from cccopt.analysis.cfg import build
from cccopt.analysis.loops import loops
from cccopt.emulator import Profile, Program
from cccopt.passes.counting.modules import Counted
from cccopt.passes.instrument import COUNTED, HEAD, Counting, instrumented, with_all_names
from cccopt.profiling.counts import by_name, notes_of
from cccopt.ptx.ir import (
    Function,
    Instruction,
    Label,
    Module,
    Variable,
)
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from cccopt.toolchain.discovery import find_nvcc
from cccopt.toolchain.instrument import COUNTED as REGISTERED
from cccopt.toolchain.ptxas import assemble
from tests import slow
from tests.emulator.kernels import HEAD as PTX_HEAD
from tests.emulator.kernels import kernel as ptx_kernel
from tests.kernels.generators.judging import LIMIT
from tests.kernels.generators.judging import differing as different_memory
from tests.kernels.generators.kernels import NAME, Case, from_seed, kernels
from tests.passes.instrumenting import HOW, Both, differing, head_of, run_both

LONG = settings().max_examples > settings.get_profile("default").max_examples
PROFILE = settings() if LONG else settings(max_examples=slow.drawn(10), derandomize=True, database=None)
TARGETS = ("sm_75", "sm_80", "sm_90")


def judge(case: Case, how: Counting, shuffle: int | None = None) -> Both:
    """Asserts that the counted copy leaves the memory that the plain kernel does."""
    arguments: list[list[Any]] = []

    def launch(program: Program, name: str) -> Profile:
        arguments.append(case.arguments())
        limits = {"hazards": True, "max_steps": 20 * LIMIT}
        return program.launch(name, case.grid, case.block, arguments[-1], shuffle=shuffle, **limits)

    both = run_both(parse(case.ptx), NAME, launch, how)
    assert not different_memory(*arguments)
    return both


@PROFILE
@given(kernels())
def test_random_kernels_are_counted_exactly(case: Case) -> None:
    note(case.ptx)
    for name, how in HOW.items():
        assert not differing(judge(case, how)), name


@pytest.mark.parametrize("kind", ["exclusive", "reductions", "recursive", "grid"])
def test_other_random_kernels_are_counted_exactly(kind: str) -> None:
    for seed in range(3):
        assert not differing(judge(from_seed(seed, kind), HOW["all in local memory"]))


@pytest.mark.parametrize("seed", [s for s in range(6) if not from_seed(s).sets_flag])
def test_in_any_order_of_lanes_results_and_lanes_are_the_same(seed: int) -> None:
    """But for the lanes that set a flag unless it is set: how many do depends on their order."""
    both = judge(from_seed(seed), HOW["one copy"], shuffle=seed)
    assert not [found for found in differing(both) if found[2][1] != found[3][1]]


def test_branches_are_counted_exactly() -> None:
    """Lanes that jump, and how often lanes part."""
    seen = 0
    for seed in range(8):
        both = judge(from_seed(seed), Counting())
        for function in both.counts:
            for branch in function.layout.branches:
                unit = function.layout.units[branch.unit]
                want = both.plain.by_branch.get((function.layout.name, unit.stop - 1))
                here, ways = function.units[branch.unit], (branch.taken, branch.other)
                split = sum(w or 0 for w in (function.edge_warps[e] for e in ways)) - here.warps
                found = (here.warps, split, here.lanes, function.edge_lanes[branch.taken])
                assert found == (
                    (want.warps, want.divergent, want.lanes, want.taken) if want else (0, 0, 0, 0)
                )
                seen += want is not None
    assert seen > 50


# --- shapes -------------------------------------------------------------------------------------------------------

SHAPES = {
    "a guarded ret": "setp.lt.u32 %p1, %r0, 7; @%p1 ret; st.global.u32 [%rd2], %r0;",
    "a guarded exit in a loop": """
        and.b32 %r4, %r0, 7;
        LOOP: add.u32 %r4, %r4, 1; setp.gt.u32 %p1, %r4, 20; @%p1 exit;
        st.global.u32 [%rd2], %r4; setp.lt.u32 %p2, %r4, 18; @%p2 bra LOOP;""",
    "an early exit before a barrier": """
        setp.lt.u32 %p1, %r3, 40; @%p1 bra OUT; bar.sync 0; st.global.u32 [%rd2], %r3; OUT:""",
    "an early exit before a shuffle": """
        setp.lt.u32 %p1, %r3, 7; @%p1 bra OUT; shfl.sync.down.b32 %r4, %r3, 1, 31, 0xffffffff;
        st.global.u32 [%rd2], %r4; ret; OUT:""",
    "lanes that leave a loop with a barrier": """
        and.b32 %r4, %r3, 3;
        LOOP: bar.sync 0; add.u32 %r4, %r4, 1; st.global.u32 [%rd2], %r4; setp.lt.u32 %p1, %r4, 6; @%p1 bra LOOP;""",
    "an endless loop that lanes return from": """
        and.b32 %r4, %r3, 3;
        LOOP: bar.sync 0; add.u32 %r4, %r4, 1; st.global.u32 [%rd2], %r4; setp.gt.u32 %p1, %r4, 6; @%p1 ret;
        bra LOOP;""",
    "a jump table": """
        and.b32 %r4, %r0, 3; mov.u32 %r5, 0; mov.u32 %r6, 0; T: .branchtargets A, B, C, C;
        LOOP: brx.idx %r4, T;
        A: add.u32 %r5, %r5, 1;
        B: add.u32 %r5, %r5, 2;
        C: st.global.u32 [%rd2], %r5; add.u32 %r6, %r6, 1; add.u32 %r4, %r4, 1; and.b32 %r4, %r4, 3;
        setp.lt.u32 %p1, %r6, 5; @%p1 bra LOOP;""",
    "tables that cross": """
        and.b32 %r4, %r0, 1; setp.lt.u32 %p1, %r0, 9; T: .branchtargets C, D;
        @%p1 bra B; A: brx.idx %r4, T; B: add.u32 %r5, %r5, 1; brx.idx %r4, T;
        C: add.u32 %r5, %r5, 2; D: st.global.u32 [%rd2], %r5;""",
    "a loop with two entries": """
        mov.u32 %r4, 0; setp.lt.u32 %p1, %r0, 9; @%p1 bra B;
        A: add.u32 %r4, %r4, 1; B: add.u32 %r4, %r4, 2; setp.lt.u32 %p2, %r4, 20; @%p2 bra A;
        st.global.u32 [%rd2], %r4;""",
    "a loop at the very beginning": """
        mov.u32 %r4, 0;
        OUTER: mov.u32 %r5, 0; INNER: add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, %r3; @%p1 bra INNER;
        add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 3; @%p2 bra OUTER; st.global.u32 [%rd2], %r5;""",
    "loops one after the other, to which some lanes come": """
        mov.u32 %r4, 0; mov.u32 %r5, 0; setp.lt.u32 %p1, %r0, 35; @%p1 bra SECOND;
        FIRST: add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, %r3; @%p2 bra FIRST; setp.lt.u32 %p1, %r0, 99; @%p1 bra OUT;
        SECOND: add.u32 %r5, %r5, 3; setp.lt.u32 %p2, %r5, %r0; @%p2 bra SECOND;
        OUT: add.u32 %r4, %r4, %r5; st.global.u32 [%rd2], %r4;""",
    "a loop to which another leads": """
        mov.u32 %r4, 0; mov.u32 %r5, 0;
        FIRST: add.u32 %r4, %r4, 1; setp.gt.u32 %p1, %r4, %r3; @%p1 bra SECOND; setp.lt.u32 %p2, %r4, 9; @%p2 bra FIRST;
        bra OUT; SECOND: add.u32 %r5, %r5, 3; setp.lt.u32 %p2, %r5, %r0; @%p2 bra SECOND;
        OUT: add.u32 %r4, %r4, %r5; st.global.u32 [%rd2], %r4;""",
    "loops to which a table leads": """
        and.b32 %r4, %r0, 1; mov.u32 %r5, 0; T: .branchtargets A, B; brx.idx %r4, T;
        A: add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, %r3; @%p1 bra A; bra OUT;
        B: add.u32 %r5, %r5, 2; setp.lt.u32 %p1, %r5, %r0; @%p1 bra B;
        OUT: st.global.u32 [%rd2], %r5;""",
    "a branch to what comes next": "setp.lt.u32 %p1, %r0, 9; @%p1 bra L; L: st.global.u32 [%rd2], %r0;",
    "a predicate of a scope": """
        { .reg .pred %q; setp.lt.u32 %q, %r0, 9; @%q bra L; } st.global.u32 [%rd2], %r0; L: add.u32 %r4, %r4, 1;""",
}  # fmt: skip


def both_of(text: str, how: Counting, grid: int = 3, block: Any = 70) -> Both:
    results: list[np.ndarray[Any, Any]] = []

    def launch(program: Program, name: str) -> Profile:
        results.append(np.zeros(grid * int(np.prod(block)), np.uint32))
        return program.launch(name, grid, block, [results[-1]])

    both = run_both(parse(text), "k", launch, how)
    assert results[0].tolist() == results[1].tolist()
    assert len(notes_of(both.layout, both.counts)) == bool(both.layout.crowded) + len(both.layout.recursive)
    return both


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("how", HOW)
def test_shapes_of_control_flow(shape: str, how: str) -> None:
    assert not differing(both_of(ptx_kernel(SHAPES[shape]), HOW[how]))


DYNAMIC = ".extern .shared .align 4 .b8 room[];"


@pytest.mark.parametrize("shape", SHAPES)
def test_counters_in_global_memory(shape: str) -> None:
    """A kernel with dynamic shared memory has its counters there, and in registers."""
    text = ptx_kernel("mov.u32 %r9, room;" + SHAPES[shape], module=DYNAMIC)
    for registers in (0, 6):
        both = both_of(text, Counting(registers=registers))
        assert not differing(both)
        assert not by_name(both.counts)["k"].layout.shared
    assert by_name(both_of(text, Counting(dynamic=True)).counts)["k"].layout.shared


# --- functions -----------------------------------------------------------------------------------------------------

FUNCTION = """
.func (.param .b32 back) triangle(.param .b32 n)
{
    .reg .b32 %r<6>; .reg .pred %p;
    ld.param.b32 %r1, [n]; mov.b32 %r2, 0;
    LOOP: add.u32 %r2, %r2, %r1; sub.u32 %r1, %r1, 1; setp.ne.u32 %p, %r1, 0; @%p bra LOOP;
    st.param.b32 [back], %r2; ret;
}
"""
RECURSIVE = """
.func (.param .b32 back) sum(.param .b32 n)
{
    .reg .b32 %r<6>; .reg .pred %p;
    ld.param.b32 %r1, [n]; setp.eq.u32 %p, %r1, 0; st.param.b32 [back], %r1; @%p ret;
    sub.u32 %r2, %r1, 1;
    { .param .b32 a; .param .b32 b; st.param.b32 [a], %r2; call (b), sum, (a); ld.param.b32 %r3, [b]; }
    add.u32 %r3, %r3, %r1; st.param.b32 [back], %r3; ret;
}
"""
EXITS = """
.func (.param .b32 back) sum(.param .b32 n)
{
    .reg .b32 %r<6>; .reg .pred %p;
    ld.param.b32 %r1, [n]; setp.eq.u32 %p, %r1, 3; @%p exit; st.param.b32 [back], %r1; ret;
}
"""
CALL = "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %%r4; call (b), %s, (a); ld.param.b32 %%r5, [b]; }"
CALLS = {
    "a loop": (FUNCTION, "add.u32 %r4, %r3, 1;" + CALL % "triangle" + "st.global.u32 [%rd2], %r5;"),
    "calls in a loop": (
        FUNCTION,
        "add.u32 %r4, %r3, 1; LOOP:" + CALL % "triangle" + """st.global.u32 [%rd2], %r5;
        shr.u32 %r4, %r4, 1; setp.ne.u32 %p1, %r4, 0; @%p1 bra LOOP;""",
    ),
    "recursion": (RECURSIVE, "and.b32 %r4, %r3, 7;" + CALL % "sum" + "st.global.u32 [%rd2], %r5;"),
    "recursion in a loop": (
        RECURSIVE,
        """mov.u32 %r6, 0; mov.f32 %f1, 0f3F800000; mov.f64 %fd1, 0d3FF0000000000000; mov.u16 %h1, 1;
        mov.u64 %rd3, %rd2; setp.eq.u32 %p2, %r6, 1;
        LOOP: add.u32 %r4, %r3, %r6; and.b32 %r4, %r4, 7;""" + CALL % "sum" + """
        @%p2 add.u32 %r5, %r5, 3; add.f32 %f1, %f1, 0f3F000000; mul.f64 %fd1, %fd1, 0d3FF8000000000000;
        add.u16 %h1, %h1, 3; not.pred %p2, %p2; add.u64 %rd3, %rd3, 4; cvt.rzi.u32.f32 %r7, %f1;
        cvt.rzi.u32.f64 %r8, %fd1; cvt.u32.u16 %r9, %h1; add.u32 %r5, %r5, %r7;
        add.u32 %r5, %r5, %r8; add.u32 %r5, %r5, %r9;
        atom.global.add.u32 %r10, [%rd2], %r5; add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 6; @%p1 bra LOOP;""",
    ),
    "an exit": (
        EXITS,
        "and.b32 %r4, %r3, 7; LOOP:" + CALL % "sum" + """st.global.u32 [%rd2], %r5;
        add.u32 %r4, %r4, 2; setp.lt.u32 %p1, %r4, 9; @%p1 bra LOOP;""",
    ),
}  # fmt: skip


@pytest.mark.parametrize("calls", CALLS)
@pytest.mark.parametrize("how", HOW)
def test_called_functions_are_counted(calls: str, how: str) -> None:
    function, body = CALLS[calls]
    both = both_of(ptx_kernel(body, module=function), HOW[how])
    assert not differing(both)
    assert len(both.counts) == 2
    assert both.layout.recursive == (("sum",) if function is RECURSIVE else ())


POINTERS = """
.weak .func plain();
.visible .global .align 8 .u64 table[1] = {plain};
.extern .func (.param .b32 back) elsewhere(.param .b32 n);
.weak .func plain()
{
    ret;
}
.visible .func (.param .b32 back) middle(.param .b32 n)
{
    .reg .b32 %r<4>; .reg .b64 %rd<4>;
    ld.param.b32 %r1, [n]; ld.global.u64 %rd1, [table];
    { P: .callprototype _ (); call %rd1, (), P; }
    { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), elsewhere, (a); ld.param.b32 %r2, [b]; }
    st.param.b32 [back], %r2; ret;
}
"""
OTHERS = {
    "pointers and functions of other modules": ptx_kernel(
        "mov.u32 %r4, 1; call.uni plain;" + CALL % "middle" + "st.global.u32 [%rd2], %r5;", module=POINTERS
    ),
    "a texture": ptx_kernel(
        "tex.1d.v4.s32.s32 {%r4, %r5, %r6, %r7}, [image, {%r0}]; st.global.u32 [%rd2], %r4;",
        module=".global .texref image;",
    ),
    "dynamic shared memory": ptx_kernel("mov.u32 %r4, room; st.shared.u32 [%r4], %r0;", module=DYNAMIC),
    "many shapes": "\n".join(
        [ptx_kernel(SHAPES["a jump table"], module=FUNCTION)]
        + [
            ptx_kernel(body).removeprefix(PTX_HEAD).replace("entry k(", f"entry k{i}(")
            for i, body in enumerate(SHAPES.values())
        ]
    ),
}


@pytest.mark.parametrize("text", [*(from_seed(s).ptx for s in range(4)), *map(ptx_kernel, SHAPES.values())])
def test_loops_get_no_atomic_operations(text: str) -> None:
    """Into a loop with one on shared memory ptxas puts a YIELD, by which lanes run apart that did not before."""
    module = parse(text)
    for how in HOW.values():
        made, layout = instrumented(module, how)
        new = {f.name: f for f in made.functions()}
        for name in (n for n in new if n + COUNTED in new):
            bodies = 1 if layout.every == 1 else 2
            assert atomics_in_loops(new[name + COUNTED]) == bodies * atomics_in_loops(new[name])
            assert not [s for s in new[name + COUNTED].body or () if getattr(s, "base", "") == "fence"]


def atomics_in_loops(function: Function) -> list[str]:
    """Those in loops of the program."""
    body = function.body or ()
    cfg = build(body)
    heads = {p: body[cfg.blocks[p.header].start] for p in loops(cfg)}
    program = [p for p, s in heads.items() if not (isinstance(s, Label) and s.name.startswith("$ccc_"))]
    inside = {i for p in program for b in p.blocks for i in cfg.blocks[b].statements()}
    found = [s for i in sorted(inside) if isinstance(s := body[i], Instruction)]
    return [s.opcode for s in found if s.base == "atom" or (s.base == "red" and ".global" not in s.opcode)]


@pytest.mark.nvcc
@pytest.mark.parametrize("name", OTHERS)
def test_ptxas_takes_them(name: str, tmp_path: Path) -> None:
    """Also as code that is linked later."""
    for target in TARGETS:
        module, layout = instrumented(parse(OTHERS[name].replace(".target sm_90", f".target {target}")))
        assert any(f.counted for f in layout.functions)
        (tmp_path / "in.ptx").write_text(print_module(module))
        command = [find_nvcc().tool("ptxas"), "-c", f"-arch={target}", "in.ptx", "-o", "out.cubin"]
        subprocess.run(command, cwd=tmp_path, check=True)
        if "elsewhere" not in OTHERS[name]:
            assemble(print_module(module), target)


@pytest.mark.nvcc
@pytest.mark.parametrize("target", TARGETS)
def test_ptxas_takes_random_kernels(target: str) -> None:
    for seed in range(3):
        module, _ = instrumented(parse(from_seed(seed).ptx.replace(".target sm_90", f".target {target}")))
        assemble(print_module(module), target)


@pytest.mark.nvcc
def test_few_registers_are_added() -> None:
    """What only some lanes write must not be live from there on: it once took a hundred registers."""
    module, _ = instrumented(parse(ptx_kernel("\n".join(
        f"setp.lt.u32 %p1, %r0, {n}; @%p1 bra L{n}; st.global.u32 [%rd2], %r0; L{n}:" for n in range(40)
    ))))  # fmt: skip
    found = assemble(print_module(module), "sm_90").resources
    assert found["k" + COUNTED].registers <= found["k"].registers + 12


def test_kernels_that_call_what_is_unknown_have_no_limit_of_registers() -> None:
    """The linker would hold what they call to it; a kernel whose code is all there has one."""
    text = OTHERS["pointers and functions of other modules"]
    loop = "LOOP: add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, %r3; @%p1 bra LOOP;"
    for body, limited in (
        (text.replace("mov.u32 %r4, 1;", f"mov.u32 %r4, 1; {loop}"), False),
        (ptx_kernel(loop), True),
    ):
        new, _ = instrumented(parse(body))
        (copy,) = (f for f in new.functions() if f.name == "k" + COUNTED)
        assert any(d.name == ".maxnreg" for d in copy.directives) == limited


# --- the module -----------------------------------------------------------------------------------------------------


def test_the_plain_functions_stay_as_they_are() -> None:
    module = parse(OTHERS["pointers and functions of other modules"])
    new, layout = instrumented(module)
    kept = [item for item in new.items if item in module.items]
    assert kept == list(module.items)
    names = {f.name for f in new.functions() if f.body is not None}
    assert {"k" + COUNTED, "middle" + COUNTED, "plain" + COUNTED} <= names
    assert [f.name for f in layout.functions] == ["plain", "middle", "k"]
    calls = [s for f in new.functions() if f.name == "middle" + COUNTED for s in f.body or ()]
    assert "elsewhere" in str([s for s in calls if isinstance(s, Instruction) and s.base == "call"])


def test_a_function_and_its_copy_share_their_variables() -> None:
    """Both may run in a block: one of them called through a pointer."""
    function = """.func (.param .b32 back) own(.param .b32 n)
    {
        .shared .align 4 .b32 kept; .reg .b32 %r<4>;
        ld.param.b32 %r1, [n]; st.shared.u32 [kept], %r1; ld.shared.u32 %r2, [kept];
        st.param.b32 [back], %r2; ret;
    }
    """
    text = ptx_kernel("mov.u32 %r4, 5;" + CALL % "own" + "st.global.u32 [%rd2], %r5;", module=function)
    new, _ = instrumented(parse(text))
    assert [item.name for item in new.items if isinstance(item, Variable)].count("kept") == 1
    assert print_module(new).count(" kept;") == 1
    for how in HOW.values():
        assert not differing(both_of(text, how, block=1))


def test_a_head_that_is_declared_gets_its_value() -> None:
    text = ptx_kernel("st.global.u32 [%rd2], %r0;", module=f".global .align 8 .u64 _ZL16{HEAD}[4];")
    new, layout = instrumented(parse(text))
    (head,) = (item for item in new.items if isinstance(item, Variable) and HEAD in item.name)
    assert head.linkage == ()
    assert head_of(Program(new))[1] == layout.size


def test_names_end_as_the_program_registers_them() -> None:
    assert COUNTED == REGISTERED


def test_instrumenting_twice_is_refused() -> None:
    new, _ = instrumented(parse(ptx_kernel("")))
    with pytest.raises(ValueError, match="instrumented already"):
        instrumented(new)


@pytest.mark.parametrize(
    ("body", "directives", "why"),
    [
        ("setmaxnreg.dec.sync.aligned.u32 40;", "", "instructions of warpgroups"),
        ("", ".reqnctapercluster 2, 1, 1", "clusters"),
        (
            "and.b32 %r4, %r0, 1; T: .branchtargets A, OUT; brx.idx %r4, T; A: bar.sync 0; ret; OUT: ret;",
            "",
            "a jump table",
        ),
    ],
)
def test_what_is_timed_only(body: str, directives: str, why: str) -> None:
    module = parse(ptx_kernel(body, directives=directives))
    new, layout = instrumented(module)
    assert new == module
    assert why in layout.functions[0].why
    assert why in notes_of(layout, ())[0]


def test_old_targets_are_timed_only() -> None:
    module = parse(ptx_kernel("").replace("sm_90", "sm_61"))
    assert "sm_70" in instrumented(module)[1].functions[0].why


def test_other_targets_may_count_what_this_one_does_not() -> None:
    """Then the program registers the counted name, which has to be there."""
    module = parse(ptx_kernel("", directives=".reqnctapercluster 2, 1, 1"))
    new = with_all_names(*instrumented(module))
    plain, copy = new.functions()
    assert copy == replace(plain, name="k" + COUNTED)
    counted, layout = instrumented(parse(ptx_kernel("")))
    assert with_all_names(counted, layout) == counted


@pytest.mark.parametrize(
    "call", ["call elsewhere;", "mov.u64 %rd3, 0; P: .callprototype _ (); call %rd3, (), P;"]
)
def test_what_is_not_seen_may_have_barriers_and_shared_memory(call: str) -> None:
    """So lanes that leave early do so ahead of the bare exit, and counters take no room."""
    text = ptx_kernel(
        f"setp.gt.u32 %p1, %r0, 7; @%p1 bra OUT; {call} OUT:", module=".extern .func elsewhere();"
    )
    _, layout = instrumented(parse(text))
    assert [f.shared for f in layout.functions] == [False]
    assert Counted(parse(text)).has_barriers("k")
    harmless = text.replace("elsewhere", "free").replace(call, "call free;")
    _, layout = instrumented(parse(harmless))
    assert [f.shared for f in layout.functions] == [True]
    assert not Counted(parse(harmless)).has_barriers("k")


def test_a_module_without_kernels_stays() -> None:
    module: Module = parse(PTX_HEAD + FUNCTION)
    assert instrumented(module)[0] == module
    assert isinstance(next(module.functions()), Function)
