"""Reductions: registers that paths only update by one operator (DESIGN 4.3).

    for (...)                                     for (...)
      if (value % 4 == 0) sum += term(value);       if (value % 4 == 0) push(value, &part[thread]);   // form `owner`
    out[thread] = sum;                      ->      32 tasks wait: pop; atomicAdd(&part[owner], term(value));
                                                  out[thread] = sum + part[thread];

    atomicAdd(other, sum);                  ->    no `part`: who runs the task adds to its own sum    // form `any lane`

A lost or doubled update, or one in the wrong lane, shows in memory. Floating-point values here are small integers or
powers of two, so that any order gives the same bits; but for one test.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from cccopt.ccc.outcome.refusal import Refusal
from cccopt.emulator import Program
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from cccopt.toolchain.ptxas import resources
from tests.kernels.ptx_loops import SECOND, arguments, inner_loop, loop, path, uneven_arguments
from tests.kernels.running import Launch, compare, rewritten, run

LAUNCHES = (Launch(1, 64, 9), Launch(2, 33, 4))
BLOCKS = (Launch(1, (8, 4, 2), 5), Launch(2, 33, 5), Launch(1, (5, 5, 2), 5))
FORMS = ("split", "idle lanes")
DECLARED = ".reg .f64 %d<9>;"
VALUE = "mad.lo.u32 %term, %value, 7, 1; setp.gt.u32 %p5, %term, 99; @%p5 xor.b32 %term, %term, 9;"
"""%term, by more than a lane would compute again."""
TWO_OR_HALF = "setp.gt.u32 %p6, %value, 20; selp.f32 %f1, 0f40000000, 0f3F000000, %p6;"

S32, S64, F32, F64 = "%sum", "%rd20", "%f2", "%d2"
VALUES = {
    "32": ("%result", f"{VALUE} xor.b32 %result, %term, 0x80000011;"),
    "64": ("%rd11", f"{VALUE} cvt.u64.u32 %rd10, %term; xor.b64 %rd11, %rd10, 0x8000000000000011;"),
    "f32": ("%f1", f"{VALUE} add.u32 %term, %term, -99; cvt.rn.f32.s32 %f1, %term;"),
    "f64": ("%d1", f"{VALUE} add.u32 %term, %term, -99; cvt.rn.f64.s32 %d1, %term;"),
    "f32 *": ("%f1", TWO_OR_HALF),
    "f64 *": ("%d1", f"{TWO_OR_HALF} cvt.f64.f32 %d1, %f1;"),
}


def place(type: str) -> str:
    """Where the accumulator of a type is."""
    return {"f32": F32, "f64": F64}.get(type, S64 if type.endswith("64") else S32)


def update(sign: str, opcode: str) -> str:
    """The code of a path that updates the accumulator by its value."""
    type = opcode.split(".")[-1]
    key = f"{type} *" if type.startswith("f") and sign == "*" else type if type.startswith("f") else type[1:]
    value, code = VALUES[key]
    return f"{code} {opcode} {place(type)}, {place(type)}, {value};"


def starts(type: str, bits: int = 5) -> str:
    """The accumulator's first value."""
    if type.startswith("f"):
        literal = "0f40A00000" if type == "f32" else "0d4014000000000000"
        return f"mov.{type} {place(type)}, {literal};"
    return f"mov.b{type[1:]} {place(type)}, {bits};"


def stored(*registers: str) -> str:
    """Stores what each thread has into its place of `out`, 8 bytes each."""
    code = "mul.wide.u32 %rd30, %thread, 16; add.u64 %rd30, %out, %rd30;"
    for number, name in enumerate(registers):
        wide = name.startswith(("%rd", "%d"))
        code += f" st.global.b{64 if wide else 32} [%rd30+{8 * number}], {name};"
    return code


def into_one(opcode: str, register: str, place: int = 0) -> str:
    """All threads' values go into one place of `other`."""
    return f"red.global.{opcode} [%other+{8 * place}], {register};"


def context(clauses: str = "reduce=+:sum", **holes: Any) -> list[tuple[str, str, str]]:
    """The context entries of all paths: register, decision, and for reductions their form."""
    text = loop(clauses=clauses, declarations=DECLARED, **holes)
    regions = rewritten(parse(text)).regions
    forms = {"whichever lane": "any lane", "the warp": "warp", "": "owner"}
    return [
        (
            e.register,
            e.decision,
            next(f for w, f in forms.items() if w in e.reason) * (e.decision == "reduced"),
        )
        for region in regions
        for e in region.context
    ]


def forms_of(clauses: str = "reduce=+:sum", **holes: Any) -> list[str]:
    """The forms of the reductions, one for each path that updates them."""
    return [form for _, decision, form in context(clauses, **holes) if decision == "reduced"]


def same(
    clauses: str = "reduce=+:sum",
    *,
    launches: tuple[Launch, ...] = LAUNCHES,
    forms: tuple[str, ...] = FORMS,
    seeds: tuple[int, ...] = (3,),
    **holes: Any,
) -> Mapping[str, Mapping[str, int]]:
    """Asserts that the rewrite gives the same bits, and that tasks were pushed, popped and left over."""
    text = loop(clauses=clauses, declarations=DECLARED, **holes)
    ran = compare(parse(text), "k", uneven_arguments, launches, forms=forms, seeds=seeds)
    assert all(counts[phase] for counts in ran.values() for phase in ("push", "take", "drain"))
    return ran


# --- every operator on every type, in both forms ------------------------------------------------------------------

OPERATORS = {
    **{f"add.{t}": "+" for t in ("u32", "s32", "u64", "s64", "f32", "f64", "rn.ftz.f32")},
    **{f"{op}.{t}": op for op in ("min", "max") for t in ("u32", "s32", "u64", "s64", "f32", "f64", "NaN.f32")},
    **{f"mul.lo.{t}": "*" for t in ("u32", "s64")},
    **{f"mul.{t}": "*" for t in ("f32", "rn.f64")},
    **{f"{op}.b{bits}": sign for op, sign in (("and", "&"), ("or", "|"), ("xor", "^")) for bits in (32, 64)},
}  # fmt: skip
NOT_ATOMIC = [o for o, sign in OPERATORS.items() if sign == "*" or (sign in ("min", "max") and "f" in o)]


def holes_of(opcode: str) -> dict[str, str]:
    type = opcode.split(".")[-1]
    return {
        "clauses": f"reduce={OPERATORS[opcode]}:best",
        "ahead": starts(type, 0xF7F7 if opcode.startswith("and") else 5),
        "body": path(update(OPERATORS[opcode], opcode)),
    }


@pytest.mark.parametrize("opcode", OPERATORS)
def test_owners_get_what_their_tasks_contribute(opcode: str) -> None:
    holes = {**holes_of(opcode), "after": stored(place(opcode.split(".")[-1]))}
    assert forms_of(**holes) == ["owner"]
    same(**holes, launches=LAUNCHES[:1], forms=("idle lanes",))
    text = print_module(rewritten(parse(loop(declarations=DECLARED, **holes))).module)
    assert ("atom.shared.cas" in text) == (opcode in NOT_ATOMIC)
    assert ("red.shared" in text) == (opcode not in NOT_ATOMIC)


@pytest.mark.parametrize("opcode", [o for o in OPERATORS if o not in NOT_ATOMIC])
def test_any_lane_keeps_what_ends_in_one_result(opcode: str) -> None:
    type = opcode.split(".")[-1]
    # Integer addition knows no sign, and its atomics only some.
    kind = {"s64": "u64"}.get(type, type) if opcode.startswith("add") else type
    holes = {**holes_of(opcode), "after": into_one(f"{opcode.split('.')[0]}.{kind}", place(type))}
    assert forms_of(**holes) == ["any lane"]
    same(**holes, launches=LAUNCHES[:1], forms=("split",), seeds=())
    text = print_module(rewritten(parse(loop(declarations=DECLARED, **holes))).module)
    assert "red.shared" not in text


@pytest.mark.nvcc
def test_ptxas_accepts_both_forms() -> None:
    for opcode in ("add.f64", "max.f32", "mul.lo.s64", "min.NaN.f32", "and.b64", "min.s64", "add.s32"):
        type = opcode.split(".")[-1]
        text = loop(declarations=DECLARED, **holes_of(opcode), after=stored(place(type)))
        assert resources(print_module(rewritten(parse(text)).module), "sm_90")


# --- shapes of updates --------------------------------------------------------------------------------------------

SUM = "add.u32 %sum, %sum, %term;"
ZERO = "mov.u32 %sum, 9;"
SHAPES = {
    "the other operand": "add.u32 %sum, %term, %sum;",
    "a difference": "sub.u32 %sum, %sum, %term;",
    "a product": "mad.lo.u32 %sum, %term, %value, %sum;",
    "twice": f"{SUM} add.u32 %sum, %sum, %value;",
    "by way of another register": "add.u32 %r21, %sum, %term; add.u32 %r22, %r21, 1; mov.u32 %sum, %r22;",
    "guarded": f"setp.gt.u32 %p6, %value, 30; @%p6 {SUM}",
    "chosen": "setp.gt.u32 %p6, %value, 30; add.u32 %r21, %sum, %term; selp.b32 %sum, %r21, %sum, %p6;",
    "behind a branch": f"setp.gt.u32 %p6, %value, 30; @%p6 bra OTHER; {SUM} bra.uni BOTH;"
    " OTHER: add.u32 %sum, %sum, 3; BOTH:",
    "in a loop": inner_loop("add.u32 %sum, %sum, %k;", variable=False),
}  # fmt: skip


@pytest.mark.parametrize("form", ["owner", "any lane"])
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape: str, form: str) -> None:
    after = stored("%sum") if form == "owner" else into_one("add.u32", "%sum")
    holes = {"ahead": ZERO, "body": path(f"{VALUE} {SHAPES[shape]}"), "after": after}
    assert forms_of(**holes) == [form]
    same(**holes, launches=LAUNCHES[:1], forms=("auto",), seeds=())


def test_wide_products() -> None:
    code = f"{VALUE} mad.wide.u32 %rd20, %term, %value, %rd20;"
    same(ahead=starts("u64"), body=path(code), after=stored(S64))


def test_fused_products() -> None:
    code = f"{VALUES['f32'][1]} fma.rn.f32 %f2, %f1, 0f40000000, %f2;"
    same(ahead=starts("f32"), body=path(code), after=stored(F32))


CHOICES = {
    "joined": (
        "setp.gt.u32 %p6, %value, 30; setp.lt.u32 %p7, %sum, %term; and.pred %p8, %p6, %p7;",
        "%term, %sum, %p8",
    ),
    "alone": ("setp.lt.u32 %p7, %sum, %term;", "%term, %sum, %p7"),
    "kept": ("setp.ge.u32 %p7, %sum, %term;", "%sum, %term, %p7"),
}


@pytest.mark.parametrize("name", CHOICES)
def test_an_extreme_may_be_a_comparison_and_a_choice(name: str) -> None:
    condition, choice = CHOICES[name]
    holes = {
        "ahead": ZERO,
        "body": path(f"{VALUE} {condition} selp.b32 %sum, {choice};"),
        "after": stored("%sum"),
    }
    assert forms_of("reduce=max:best", **holes) == ["owner"]
    same("reduce=max:best", **holes)


BEFORE = "mov.u32 %result, 1;"
BRANCHY = "setp.gt.u32 %p6, %value, 30; mul.lo.u32 %result, %value, 5; @%p6 mul.lo.u32 %result, %result, 3;"


@pytest.mark.parametrize("form", ["owner", "any lane"])
@pytest.mark.parametrize(
    "behind",
    [
        "add.u32 %sum, %sum, %result;",
        "add.u32 %sum, %result, %sum; add.u32 %sum, %sum, %value; mad.lo.u32 %sum, %result, %value, %sum;",
        "add.u32 %r21, %sum, %result; mov.u32 %sum, %r21;",
        "add.u32 %r21, %sum, %value; add.u32 %r22, %r21, %result; add.u32 %r23, %r22, %result; mov.u32 %sum, %r23;",
        "xor.b32 %r24, %result, 3; st.global.u32 [%out_i], %result; add.u32 %sum, %sum, %r24;",
    ],
)
def test_an_update_behind_the_path_moves_into_the_task(behind: str, form: str) -> None:
    """nvcc merges `sum += f()` and `sum += g()` of two branches so."""
    # `out` is what the loop stores to.
    after = into_one("add.u32" if form == "any lane" else "xor.b32", "%sum")
    holes = {"ahead": ZERO, "before": BEFORE, "body": path(BRANCHY), "behind": behind, "after": after}
    assert forms_of(**holes) == [form]
    same(**holes)


def test_updates_outside_of_paths_stay_where_they_are() -> None:
    other = "add.u32 %sum, %sum, %value;"
    holes = {"before": other, "behind": "add.u32 %sum, %sum, 5;", "body": path(f"{VALUE} {SUM}")}
    same(ahead=ZERO, **holes, after=stored("%sum"))
    same(ahead=ZERO, **holes, after=into_one("add.u32", "%sum"))


@pytest.mark.parametrize("form", ["owner", "any lane"])
def test_the_sum_may_leave_the_loop_in_another_register(form: str) -> None:
    """Lanes that go on in the original loop have it in the header's."""
    after = stored("%r21") if form == "owner" else into_one("add.u32", "%r21")
    latch = "add.u32 %r21, %sum, 3; mov.u32 %sum, %r21;"
    holes = {
        "ahead": f"{ZERO} mov.u32 %r21, %sum;",
        "body": path(f"{VALUE} {SUM}"),
        "latch": latch,
        "after": after,
    }
    assert forms_of(**holes) == [form]
    same(**holes)


# --- loops of tasks, nested paths, several reductions -------------------------------------------------------------

TRIP = "mad.lo.u32 %term, %k, %value, 1; add.u32 %sum, %sum, %term;"
AFTER = {"owner": stored("%sum"), "any lane": into_one("add.u32", "%sum")}


@pytest.mark.parametrize("clauses", ["", "chunk=3"])
@pytest.mark.parametrize("form", AFTER)
def test_trips_update_a_reduction(form: str, clauses: str) -> None:
    holes = {"ahead": ZERO, "body": inner_loop(TRIP, clauses=clauses), "after": AFTER[form]}
    assert forms_of(**holes) == [form]
    counts = same(**holes)
    assert all(c["push"] and c["trip"] for c in counts.values())


def test_trips_begin_with_what_changes_nothing() -> None:
    """The least value, which is not what registers happen to begin with."""
    trip = "add.u32 %term, %value, %k; add.u32 %term, %term, 7; min.u32 %sum, %sum, %term;"
    holes = {"ahead": "mov.u32 %sum, 999;", "body": inner_loop(trip), "after": AFTER["owner"]}
    same("reduce=min:least", **holes)


@pytest.mark.parametrize("form", AFTER)
def test_a_loop_s_result_is_added_behind_it(form: str) -> None:
    """The sum of a task's own trips is carried by its context, and what it comes to moves along."""
    trip = "mad.lo.u32 %x, %x, 5, %k;"
    holes = {"ahead": ZERO, "behind": "add.u32 %sum, %sum, %x;", "after": AFTER[form]}
    assert forms_of(body=inner_loop(trip), **holes) == [form]
    same(body=inner_loop(trip), **holes)


def test_a_sum_that_is_read_after_each_inner_loop_is_the_lane_s_own() -> None:
    """Where trips are expanded; else it is part of the task."""
    trip = "mad.lo.u32 %x, %k, %value, %x;"
    holes = {"body": inner_loop(trip), "behind": "st.global.u32 [%out_i], %x;"}
    assert forms_of(**holes) == ["warp"]
    same(**holes)


@pytest.mark.parametrize("form", AFTER)
def test_nested_paths_update_one_reduction(form: str) -> None:
    inner = inner_loop(f"{TRIP} {path('add.u32 %sum, %sum, %k;', region=SECOND, label='_2')}")
    holes = {
        "ahead": ZERO,
        "body": path(f"{VALUE} {SUM} {inner} add.u32 %sum, %sum, 1;"),
        "after": AFTER[form],
    }
    assert forms_of(**holes) == [form] * 3
    same(**holes)


def test_an_outer_path_takes_along_what_only_an_inner_one_needs() -> None:
    inner = inner_loop(TRIP)
    holes = {
        "ahead": ZERO,
        "body": path(f"{VALUE} st.global.u32 [%out_i], %term; {inner}"),
        "after": into_one("xor.b32", "%sum"),
    }
    same(**holes)


@pytest.mark.parametrize("launch", BLOCKS, ids=str)
def test_reductions_of_all_widths_share_slots_in_blocks_of_any_shape(launch: Launch) -> None:
    opcodes = {"add.u32": "+", "add.f64": "+", "max.f32": "max", "xor.b64": "^"}
    clauses = "reduce=+:a,+:b,max:c,^:d"
    code = " ".join(update(sign, opcode) for opcode, sign in opcodes.items())
    ahead = " ".join(starts(opcode.split(".")[-1]) for opcode in opcodes)
    after = stored("%sum", "%rd20") + into_one("xor.b32", "%f2") + into_one("xor.b64", "%d2", 1)
    holes = {"clauses": clauses, "ahead": ahead, "body": path(code), "after": after}
    assert forms_of(**holes) == ["owner"] * 4
    text = loop(declarations=DECLARED, **holes)
    compare(parse(text), "k", arguments, [launch], forms=FORMS, seeds=(1,))


def test_two_paths_update_two_reductions() -> None:
    first = path(f"{VALUE} {SUM}", skip="and.b32 %bits, %value, 1; setp.ne.u32 %skips, %bits, 0;")
    second = path("max.u32 %r21, %r21, %value; add.u32 %sum, %sum, 3;", region=SECOND, label="_2")
    ahead = f"{ZERO} mov.u32 %r21, 0;"
    for after in (stored("%sum", "%r21"), into_one("add.u32", "%sum") + into_one("max.u32", "%r21", 1)):
        same("reduce=+:sum,max:best", ahead=ahead, body=first + second, after=after)


def around(code: str, reset: str) -> dict[str, str]:
    """The marked loop inside another one of three trips."""
    return {
        "ahead": f"{ZERO} mov.u32 %r35, 0; OUTER: mov.u32 %i, %thread; {reset}",
        "after": f"{code} add.u32 %r35, %r35, 1; setp.lt.u32 %p9, %r35, 3; @%p9 bra OUTER;",
        "body": path(f"{VALUE} {SUM}"),
    }


def test_slots_begin_anew_each_time() -> None:
    holes = around("mad.lo.u32 %sum, %sum, 3, 1;", "")
    holes["after"] += stored("%sum")
    assert forms_of(**holes) == ["owner"]
    same(**holes)


def test_any_lane_needs_one_result_for_each_run_of_the_loop() -> None:
    """What the loop begins with must not be what an earlier run of it left, which is in the result already."""
    red = into_one("add.u32", "%sum")
    assert forms_of(**around(red, ZERO)) == ["any lane"]
    same(**around(red, ZERO))
    assert forms_of(**around(red, "")) == ["owner"]
    same(**around(red, ""))


OTHERS = {
    "stored as well": stored("%sum") + AFTER["any lane"],
    "another operator": into_one("max.u32", "%sum"),
    "an address of each lane": "add.u64 %rd31, %other, 0; mul.wide.u32 %rd30, %tid_x, 8; add.u64 %rd31, %rd31, %rd30;"
    " red.global.add.u32 [%rd31], %sum;",
    "only some lanes": f"setp.gt.u32 %p9, %tid_x, 5; @%p9 {AFTER['any lane']}",
    "only some lanes, behind a branch": f"setp.gt.u32 %p9, %tid_x, 5; @%p9 bra OFF; {AFTER['any lane']} OFF:",
    "several times": f"mov.u32 %r35, %tid_x; MORE: {AFTER['any lane']} shr.u32 %r35, %r35, 1; setp.ne.u32 %p9, %r35, 0;"
    " @%p9 bra MORE;",
    "a changed value": "add.u32 %r21, %sum, 1; shl.b32 %r21, %r21, 1; " + into_one("add.u32", "%r21"),
    "another value in some lanes": "setp.gt.u32 %p9, %tid_x, 5; mov.u32 %r21, 8; @%p9 bra OFF;"
    " mov.u32 %r21, %sum; OFF: " + into_one("add.u32", "%r21"),
}


@pytest.mark.parametrize("other", OTHERS)
def test_otherwise_owners_get_their_parts(other: str) -> None:
    holes = {"ahead": ZERO, "body": path(f"{VALUE} {SUM}"), "after": OTHERS[other]}
    assert forms_of(**holes) == ["owner"]
    same(**holes, launches=LAUNCHES[:1], forms=("auto",), seeds=())


def test_any_lane_may_copy_and_use_atom() -> None:
    after = "mov.u32 %r21, %sum; atom.global.add.u32 %r22, [%other], %r21;"
    holes = {"ahead": ZERO, "body": path(f"{VALUE} {SUM}")}
    assert forms_of(**holes, after=after) == ["any lane"]
    same(**holes, after=after)
    assert forms_of(**holes, after=f"{after} st.global.u32 [%other+8], %r22;") == ["owner"]


# --- floating point -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("type", "tolerance"), [("f32", 1e-5), ("f64", 1e-13)])
def test_sums_in_another_order_are_near_and_say_so(type: str, tolerance: float) -> None:
    value, one = ("%f1", "0f3F800000") if type == "f32" else ("%d1", "0d3FF0000000000000")
    code = f"cvt.rn.{type}.u32 {value}, %value; add.{type} {value}, {value}, {one}; rcp.rn.{type} {value}, {value};"
    code += f" add.{type} {place(type)}, {place(type)}, {value};"
    text = loop(
        clauses="reduce=+:sum",
        declarations=DECLARED,
        ahead=starts(type),
        body=path(code),
        after=stored(place(type)),
    )
    result = rewritten(parse(text))
    assert [d.code for d in result.remarks] == ["CCC029"]
    launch = LAUNCHES[0]
    args = uneven_arguments(launch)
    kind = np.dtype(np.float32 if type == "f32" else np.float64)
    sums = [
        np.frombuffer(run(Program(module), "k", launch, args)[0][1], kind)[
            : 16 // kind.itemsize * launch.threads
        ]
        for module in (parse(text), result.module)
    ]
    np.testing.assert_allclose(sums[1], sums[0], rtol=tolerance)
    assert (sums[0] != 0).sum() == launch.threads
    assert (sums[0] != sums[1]).any()


def test_extremes_keep_their_bits_and_say_nothing() -> None:
    """NaN gives way to numbers, and is the result where there is nothing else."""
    nan = "setp.gt.u32 %p6, %value, 8; selp.f32 %f1, 0f7FC00000, %f1, %p6;"
    code = f"cvt.rn.f32.u32 %f1, %value; {nan} min.f32 %f2, %f2, %f1;"
    for ahead in ("mov.f32 %f2, 0f7FFFFFFF;", starts("f32")):
        holes = {"clauses": "reduce=min:least", "ahead": ahead, "body": path(code), "after": stored(F32)}
        same(**holes)
        assert not rewritten(parse(loop(declarations=DECLARED, **holes))).remarks


NUMBERS = ("80000000", "00000000", "00000123", "80000456", "3F800000", "C0A00000")
NANS = ("7FC12345", "FFFFFFFF")
LONG_NUMBERS = (f"8{0:015}", f"{0:016}", f"{123:016}", f"8{456:015}", f"3FF{0:013}", f"C01{0:013}")


def one_of(values: Sequence[str], target: str, by: str) -> str:
    """Code that gives a register one of some numbers, as many hexadecimal digits as it has, by the bits of another."""
    prefix, type = ("0f", "f32") if len(values[0]) == 8 else ("0d", "f64")
    chain = (
        f"setp.eq.u32 %p6, %r38, {place}; selp.{type} {target}, {prefix}{value}, {target}, %p6;"
        for place, value in enumerate(values)
    )
    return f"rem.u32 %r38, {by}, {len(values)}; mov.{type} {target}, {prefix}{values[0]};" + "".join(chain)


@pytest.mark.parametrize(
    "opcode", ["min.f32", "max.f32", "min.ftz.f32", "max.ftz.f32", "min.NaN.f32", "max.f64"]
)
def test_extremes_keep_nan_zeros_and_subnormal_numbers(opcode: str) -> None:
    """Of lanes without tasks, or whose tasks have nothing but NaN, too."""
    wide = opcode.endswith("f64")
    values, start = ("%d1", "%d2") if wide else ("%f1", "%f2")
    # PTX leaves open which of two NaNs of 64 bits comes out.
    code = one_of(LONG_NUMBERS if wide else (*NUMBERS, *NANS), values, "%term")
    only_nans = (
        ""
        if wide
        else f"and.b32 %result, %thread, 3; setp.eq.u32 %p7, %result, 0; @%p7 mov.f32 %f1, 0f{NANS[0]};"
    )
    holes = {
        "clauses": f"reduce={opcode[:3]}:best",
        "ahead": one_of((*LONG_NUMBERS, "7FF8000000012345") if wide else (*NUMBERS, *NANS), start, "%thread"),
        "body": path(f"{VALUE} {code} {only_nans} {opcode} {start}, {start}, {values};"),
        "after": stored(start),
    }
    assert forms_of(**holes) == ["owner"]
    same(**holes, launches=(Launch(1, 64, 4), Launch(1, 64, 9)))


def test_an_extreme_that_flushes_and_one_that_does_not_are_no_reduction() -> None:
    """In another order the last of them would not be the last."""
    code = f"{VALUES['f32'][1]} min.f32 %f2, %f2, %f1; min.ftz.f32 %f2, %f2, %f1;"
    text = loop(clauses="reduce=min:least", ahead=starts("f32"), body=path(code), after=stored(F32))
    with pytest.raises(Refusal) as caught:
        rewritten(parse(text), "split")
    assert caught.value.diagnostics[0].code == "CCC035"


def test_a_maximum_of_two_values_of_its_own() -> None:
    twice = f"{VALUE} max.u32 %r21, %sum, %result; shr.u32 %r22, %result, 3; max.u32 %r22, %sum, %r22;"
    twice += " max.u32 %sum, %r21, %r22;"
    same("reduce=max:sum", ahead=ZERO, body=path(twice), after=stored("%sum"))
