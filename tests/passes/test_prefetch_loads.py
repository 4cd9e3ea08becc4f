"""Prefetches for the next iteration: what is emitted, that it touches nothing else, and what is left alone.

    for (...; i < n; i += stride) {             for (...; i < n; i += stride) {
      value = a[i];                     ->        value = a[i];
      switch (...) { ... }                        if (i + stride < n) prefetch(&a[i + stride]);
    }                                             switch (...) { ... }
                                                }

An address that the program never loads must not be touched: `fetches_what_comes` counts prefetches address by address.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from cccopt.emulator import Program
from cccopt.passes import prefetch_loads
from cccopt.passes.options import Options
from cccopt.ptx.ir import Module
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from cccopt.ptx.verifier import verify
from tests.kernels.ptx_loops import LAUNCHES, arguments, inner_loop, loop, mark, path, uneven_arguments
from tests.kernels.ptx_switch import switch
from tests.kernels.running import FORMS, Launch, compare, rewritten, run

LOAD = "ld.global.nc.u32 %value, [%a_i];"
"""The load of a[i] at the loop's head."""
STEP = "add.u32 %i, %i, %stride;"
LATCH = STEP + " setp.lt.u32 %more, %i, %n; @%more bra LOOP;"
OTHER = "mul.wide.u32 %rd10, {0}, 4; add.u64 %rd11, %a, %rd10; ld.global.nc.u32 %r20, [%rd11];"
"""A second load, by another index."""
POINTER = "mul.wide.u32 %rd22, %stride, 4; mul.wide.u32 %rd20, %i, 4; add.u64 %rd20, %rd20, %a;"
READ_POINTER = "ld.global.nc.u32 %r20, [%rd20];"


def kernel(*, latch_code: str = LATCH, load: str = LOAD, count: int = 3, **holes: Any) -> str:
    """A loop around a switch; `other` is free for `traced`."""
    text = loop(body=switch(count), after="red.global.add.u32 [%other], 0;", **holes)
    assert LOAD in text
    assert LATCH in text
    return text.replace(LOAD, load).replace(LATCH, latch_code)


def prefetching(text: str, mode: str = "auto") -> Module:
    after, remarks, reports = prefetch_loads.run(parse(text), Options(mode=mode))
    assert not remarks
    assert not reports
    verify(after)
    return after


def lines(module: Module) -> list[str]:
    return [line.strip() for line in print_module(module).splitlines()]


def added(text: str) -> list[str]:
    """The code that the pass adds, in order; all else stays."""
    before, after = lines(parse(text)), lines(prefetching(text))
    new = [line for line in after if "%next_" in line]
    assert [line for line in after if line not in new] == before
    return [line for line in new if not line.startswith(".reg")]


def prefetches(text: str) -> int:
    return sum("prefetch" in line for line in added(text))


def traced(module: Module, what: str) -> Program:
    """The module with an atomic at each access to `a` that ``what`` matches, which counts it by element in `other`."""
    access = rf"(@!?%\w+ )?{what}\[(%\w+)(\+-?\d+)?\];"
    count = r"sub.u64 %rd39, \2, %a; add.u64 %rd39, %rd39, %other; \1red.global.add.u32 [%rd39\3], 1;"
    text, times = re.subn(access, rf"\g<0> {count}", print_module(module))
    assert times
    return Program(parse(text))


def touched(program: Program, launch: Launch, n: int) -> tuple[bytes, np.ndarray[Any, Any]]:
    """What is stored, and how often each element of `a` was touched."""
    values = arguments(launch)
    memory, _ = run(program, "k", launch, [n, *values[1:3], np.zeros_like(values[3]), 0])
    return memory[1], np.frombuffer(memory[2], np.uint32)


def fetches_what_comes(
    text: str,
    loads: int = 1,
    *,
    skips: bool = False,
    launch: Launch = LAUNCHES[1],
    forms: Sequence[str] = FORMS,
) -> None:
    """Each load but those of a lane's first iteration is prefetched, once (or not, if lanes may skip that), and nothing
    else is, whatever its address; results are the same.
    """
    before = parse(text)
    assert prefetches(text) == loads
    modules = [prefetching(text), *(rewritten(before, form).module for form in forms)]
    programs = [traced(module, r"prefetch\.global\.L2 ") for module in modules]
    original = traced(before, r"ld\.global\.\S+ %\w+, ")
    for n in (launch.threads * launch.trips, launch.uneven):
        stored, loaded = touched(original, launch, n)
        later = loaded - loads * (np.arange(loaded.size) < launch.threads)
        assert later.any()
        for program in programs:
            results, fetched = touched(program, launch, n)
            assert results == stored
            assert (fetched <= later).all() if skips else (fetched == later).all()
            assert fetched.any()


def test_textures_are_not_prefetched() -> None:
    assert not prefetches(kernel(load="tex.1d.v4.u32.s32 {%value, %r20, %r21, %r22}, [%rd20, {%i}];"))


def test_the_next_iterations_address_under_the_latchs_condition() -> None:
    assert added(kernel()) == [
        "add.u32 %next_b32_0, %i, %stride;",
        "setp.lt.u32 %next_pred_0, %next_b32_0, %n;",
        "mul.wide.u32 %next_b64_0, %next_b32_0, 4;",
        "add.u64 %next_b64_1, %a, %next_b64_0;",
        "@%next_pred_0 prefetch.global.L2 [%next_b64_1];",
    ]


def test_it_stands_ahead_of_the_branch_into_the_paths() -> None:
    """Behind what chooses among them."""
    after = lines(prefetching(kernel()))
    place = after.index("@%next_pred_0 prefetch.global.L2 [%next_b64_1];")
    assert after[place + 1] == "brx.idx %bits, table;"
    (site,) = [i for i, line in enumerate(after) if line == "and.b32 %bits, %bits, 7;"]
    assert site < place


@pytest.mark.parametrize(("count", "launch"), [(3, LAUNCHES[0]), (6, LAUNCHES[1])])
def test_what_is_prefetched_is_what_comes_next(count: int, launch: Launch) -> None:
    fetches_what_comes(kernel(count=count), launch=launch)


def test_results_are_the_same_in_all_forms() -> None:
    """With reductions and shuffled warps too."""
    text = kernel(behind="red.global.add.u32 [%other], 1;", clauses="independent")
    assert prefetches(text) == 1
    compare(parse(text), "k", uneven_arguments, LAUNCHES, seeds=(3,))


ITERATIONS: dict[str, dict[str, Any]] = {
    "a negated condition": {"latch_code": STEP + "setp.ge.u32 %more, %i, %n; @!%more bra LOOP;"},
    "an offset": {"load": "sub.u64 %a_i, %a_i, 8; ld.global.nc.u32 %value, [%a_i+8];"},
    "a counter that is the same in all lanes": {
        "preheader": "mov.u32 %r24, 0; sub.u32 %r25, %n, %thread; add.u32 %r25, %r25, %stride; sub.u32 %r25, %r25, 1;"
        "div.u32 %r25, %r25, %stride; mul.wide.u32 %rd12, %thread, 4; add.u64 %rd12, %rd12, %a;",
        "load": "mul.lo.u32 %i, %r24, %stride; mul.wide.u32 %rd10, %i, 4; add.u64 %rd10, %rd12, %rd10;"
        "ld.global.nc.u32 %value, [%rd10]; add.u32 %i, %i, %thread;"
        "mul.wide.u32 %offset, %i, 4; add.u64 %out_i, %out, %offset;",
        "latch_code": "add.u32 %r24, %r24, 1; setp.lt.u32 %more, %r24, %r25; @%more bra LOOP;",
    },
    "the step is computed at the head": {
        "before": "add.u32 %r23, %i, %stride; setp.lt.u32 %p8, %r23, %n;",
        "latch_code": "mov.u32 %i, %r23; @%p8 bra LOOP;",
    },
    "a pointer is the induction variable": {
        "preheader": POINTER,
        "load": READ_POINTER.replace("%r20", "%value"),
        "latch": "add.u64 %rd20, %rd20, %rd22;",
    },
    "a pointer that moves on ahead of its load": {
        "preheader": POINTER + "sub.u64 %rd20, %rd20, %rd22;",
        "load": "add.u64 %rd20, %rd20, %rd22;" + READ_POINTER.replace("%r20", "%value"),
    },
    "a pointer in place of a counter": {
        "preheader": POINTER + "mul.wide.u32 %rd23, %n, 4; add.u64 %rd23, %rd23, %a;",
        "load": READ_POINTER.replace("%r20", "%value"),
        "latch_code": STEP + "add.u64 %rd20, %rd20, %rd22; setp.lt.u64 %more, %rd20, %rd23; @%more bra LOOP;",
    },
    "a lane may end in a trap": {"before": "setp.lt.u32 %p8, %value, 64; @%p8 bra FINE; trap; FINE:"},
    "a step ahead of the paths": {
        "before": STEP,
        "latch_code": LATCH.partition(";")[2],
    },
    "a step made of the size of the grid": {
        "latch_code": "mov.u32 %r26, %ntid.x; mov.u32 %r27, %nctaid.x; mul.lo.u32 %r28, %r26, %r27;"
        + LATCH.replace("%stride", "%r28"),
    },
}
"""Holes of `kernel`, all with one load."""


@pytest.mark.parametrize("name", ITERATIONS)
def test_iterations_of_all_kinds(name: str) -> None:
    fetches_what_comes(kernel(**ITERATIONS[name]), forms=("idle lanes",))


def test_two_loads() -> None:
    """The other one reads the table from its end."""
    before = "sub.u32 %r21, %n, %i; sub.u32 %r21, %r21, 1;" + OTHER.format("%r21")
    text = kernel(before=before, behind="red.global.add.u32 [%out_i], %r20;", clauses="independent")
    assert prefetches(text) == 2
    launch = LAUNCHES[1]
    n = launch.threads * launch.trips
    # Iterations of one lane are n / trips apart, so what two loads touch in later ones mirrors.
    later = (np.arange(n) >= launch.threads).astype(np.uint32)
    for module in (prefetching(text), rewritten(parse(text)).module):
        _, fetched = touched(traced(module, r"prefetch\.global\.L2 "), launch, n)
        assert (fetched == later + later[::-1]).all()


def test_a_lane_that_does_not_come_to_the_paths_prefetches_nothing() -> None:
    text = kernel(before="setp.gt.u32 %p8, %value, 40; @%p8 bra LATCH;", clauses="independent")
    fetches_what_comes(text, skips=True)


def test_the_latch_stands_ahead_of_the_header() -> None:
    """Its branch leads out, and what goes on goes straight."""
    text = kernel(latch_code="bra.uni NEXT;")
    latch = f"bra.uni LOOP; NEXT: {STEP} setp.ge.u32 %more, %i, %n; @%more bra DONE;"
    text = text.replace("LOOP:", latch + "LOOP:", 1)
    assert added(text)[-1] == "@!%next_pred_0 prefetch.global.L2 [%next_b64_1];"
    fetches_what_comes(text, forms=("split",))


def test_a_load_in_an_inner_loop() -> None:
    """Its first trip starts at the head as well."""
    inner = f"mov.u32 %r28, 0; AGAIN: {OTHER.format('%r28')} add.u32 %r28, %r28, 1;"
    text = kernel(before=inner + "setp.lt.u32 %p8, %r28, 2; @%p8 bra AGAIN;")
    assert prefetches(text) == 1


def test_a_table_at_a_fixed_place() -> None:
    """Its address needs nothing."""
    text = kernel(module=".global .u32 table_of_one[1];", load="ld.global.u32 %value, [table_of_one];")
    assert added(text)[-1] == "@%next_pred_0 prefetch.global.L2 [table_of_one];"


CHAIN = "add.u32 %r21, %i, 0; {0} mul.wide.u32 %offset, %r21, 4; add.u64 %a_i, %a, %offset;"


@pytest.mark.parametrize(("more", "expected"), [(5, 1), (6, 0)])
def test_an_address_of_few_instructions(more: int, expected: int) -> None:
    """Three, and as many as may be added."""
    assert prefetch_loads.MOST_STATEMENTS == 8
    load = CHAIN.format("xor.b32 %r21, %r21, 0;" * more) + LOAD
    assert prefetches(kernel(load=load)) == expected


@pytest.mark.parametrize(("more", "expected"), [(6, 1), (7, 0)])
def test_a_step_of_few_instructions(more: int, expected: int) -> None:
    """The step, the test, and as many as may be added between."""
    chain = "".join(f"xor.b32 %r{20 + k}, %r{19 + k}, 0;" for k in range(1, more))
    latch = f"add.u32 %r20, %i, %stride; {chain} mov.u32 %i, %r{19 + more}; setp.lt.u32 %more, %i, %n; @%more bra LOOP;"
    assert prefetches(kernel(latch_code=latch)) == expected


ALONE: dict[str, dict[str, Any]] = {
    "two paths": {"count": 2},
    "a break": {"before": "setp.gt.u32 %p8, %value, 90; @%p8 bra DONE;"},
    "a break behind the paths": {"behind": "setp.gt.u32 %p8, %value, 90; @%p8 bra DONE;"},
    "a return": {"before": "setp.gt.u32 %p8, %value, 90; @%p8 ret;"},
    "an exit": {"behind": "setp.gt.u32 %p8, %value, 90; @%p8 exit;"},
    "a load under a guard": {
        "preheader": "setp.gt.u32 %p8, %thread, 7;",
        "load": "mov.u32 %value, 1;" + LOAD.replace("ld", "@%p8 ld"),
    },
    "two latches": {"behind": f"setp.gt.u32 %p8, %value, 40; @%p8 bra LATCH; {LATCH} bra.uni DONE;"},
    "a load behind a branch": {
        "preheader": "setp.gt.u32 %p8, %thread, 7; mov.u32 %value, 1;",
        "load": f"@%p8 bra OVER; {LOAD} OVER:",
    },
    "an address that a path computes": {
        "ahead": "mov.u32 %r10, 0;",
        "load": OTHER.format("%r10") + "mov.u32 %value, %r20;",
    },
    "an address under a guard": {
        "preheader": "setp.gt.u32 %p8, %thread, 7;",
        "load": f"@%p8 add.u64 %a_i, %a_i, 4; {LOAD}",
    },
    "a step twice": {"latch": STEP},
    "a step under a guard": {
        "preheader": "setp.gt.u32 %p8, %thread, 7;",
        "latch_code": f"@%p8 add.u32 %i, %i, %stride; {LATCH}",
    },
    "only a step under a guard": {"latch_code": LATCH.replace("add", "@%skips add", 1)},
    "a step in a branch": {
        "latch": f"setp.gt.u32 %p8, %value, 40; @%p8 bra OVER; {STEP} bra.uni MORE; OVER:",
        "latch_code": f"{STEP} MORE: {LATCH.partition(';')[2]}",
    },
    "a path that always runs stands ahead": {
        "before": f"{mark('if.begin', 5)}\nred.global.max.u32 [%out_i], %value;\n{mark('if.end', 5)}\n",
        "clauses": "independent",
    },
    "a step that a path writes": {
        "ahead": "mov.u32 %r10, 1;",
        "latch_code": LATCH.replace("%stride", "%r10"),
    },
    "a step that is loaded": {
        "latch_code": "ld.global.u32 %r26, [%other];" + LATCH.replace("%stride", "%r26")
    },
    "a condition that is loaded": {
        "latch_code": "ld.global.u32 %r26, [%other];" + LATCH.replace("%n", "%r26")
    },
    "a condition that an inner loop computes": {
        "behind": inner_loop("add.u32 %x, %x, 1;", variable=False),
        "latch_code": LATCH.replace("setp.lt.u32 %more, %i, %n", "setp.lt.u32 %more, %x, %n"),
    },
    "shared memory": {
        "declarations": ".shared .align 4 .b32 buffer[128];",
        "load": "mov.u32 %r21, buffer; ld.shared.u32 %value, [%r21];",
    },
    "local memory": {
        "declarations": ".local .align 4 .b32 scratch[4];",
        "load": "ld.local.u32 %value, [scratch];",
    },
    "a parameter": {"load": "ld.param.u32 %value, [flag];"},
    "a generic address": {"load": LOAD.replace(".global.nc", "")},
    "an atomic": {"load": "atom.global.add.u32 %value, [%a_i], 1;"},
    "a store": {"load": "mov.u32 %value, 1; st.global.u32 [%a_i], %value;"},
}


@pytest.mark.parametrize("name", ALONE)
def test_left_alone(name: str) -> None:
    text = kernel(**ALONE[name])
    assert prefetching(text) == parse(text)


@pytest.mark.parametrize("address", ["%value", "%r27"])
def test_only_those_loads_whose_addresses_are_known(address: str) -> None:
    """%value is loaded itself, and a branch behind the paths writes %r27."""
    behind = "setp.gt.u32 %p8, %value, 40; @%p8 bra OVER; mov.u32 %r27, 3; OVER:"
    found = added(kernel(ahead="mov.u32 %r27, 0;", before=OTHER.format(address), behind=behind))
    assert sum("prefetch" in line for line in found) == 1
    assert found[-1] == "@%next_pred_0 prefetch.global.L2 [%next_b64_1];"


WRONG: dict[str, dict[str, Any]] = {
    "a step in an inner loop": {
        "behind": f"mov.u32 %r28, 0; AGAIN: {STEP} add.u32 %r28, %r28, 1; setp.lt.u32 %p8, %r28, 2; @%p8 bra AGAIN;",
        "latch_code": LATCH.partition(";")[2],
    },
    "a pointer that moves on in two places": {
        "preheader": POINTER + "sub.u64 %rd22, %rd22, 4; sub.u64 %rd20, %rd20, 4;",
        "load": "add.u64 %rd20, %rd20, 4;" + READ_POINTER.replace("%r20", "%value"),
        "latch": "add.u64 %rd20, %rd20, %rd22;",
    },
}


@pytest.mark.parametrize("name", WRONG)
def test_values_that_change_in_more_than_one_place(name: str) -> None:
    text = kernel(**WRONG[name], clauses="independent")
    if prefetches(text):
        fetches_what_comes(text)


def test_no_mark() -> None:
    unmarked = "\n".join(line for line in kernel().splitlines() if "// ccc" not in line)
    assert prefetching(unmarked) == parse(unmarked)


def test_the_pass_is_off() -> None:
    assert prefetching(kernel(), "off") == parse(kernel())


def test_three_paths_one_behind_the_other_are_not_sorted() -> None:
    body = "".join(
        path(f"red.global.add.u32 [%out_i], {k};", region=k, label=str(k)).replace("%skips", f"%p{k}")
        for k in (5, 6, 7)
    )
    text = loop(body=body, clauses="independent")
    assert prefetching(text) == parse(text)


def test_the_option_against_expanded_loops_is_heeded() -> None:
    """The clause names no variable by `+` but the one, and where the inner loop's sum is expanded there are two."""
    inner = inner_loop("cvt.rn.f32.u32 %f5, %k; add.f32 %f4, %f4, %f5;")
    own = path("add.f32 %f2, %f2, 0f3F800000;", region=9, label="_9")
    text = kernel(ahead="mov.f32 %f2, 0f00000000;", clauses="reduce=+:sum", before="mov.f32 %f4, 0f00000000;")
    text = text.replace("red.global.add.u32 [%other], 0;", "red.global.add.f32 [%other], %f2;")
    text = text.replace(STEP, f"{inner} st.global.f32 [%other_i], %f4; {own} {STEP}")
    counts = [
        print_module(prefetch_loads.run(parse(text), Options(expand=expand))[0]).count("prefetch.")
        for expand in (False, True)
    ]
    assert counts == [1, 0]
