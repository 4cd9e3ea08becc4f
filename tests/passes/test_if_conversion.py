"""Branches ahead of paths that become selects: which do, equal results, and all that is left as it was.

    if (c) x = -v; else x = v + v;      ->      x = c ? -v : v + v;
    if (...) P(x);                              if (...) P(x);        // a task can compute x again

Both arms run in all lanes then: an arm that stores, loads, calls or writes its own condition keeps its branch.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from cccopt.ccc.outcome.refusal import Refusal
from cccopt.emulator import Program
from cccopt.passes import if_conversion
from cccopt.passes.options import Options
from cccopt.ptx import isa
from cccopt.ptx.ir import Function, Instruction, Module
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from cccopt.ptx.verifier import verify
from tests.kernels.ptx_loops import (
    LAUNCHES,
    SECOND,
    arguments,
    inner_loop,
    loop,
    module,
    path,
    uneven_arguments,
)
from tests.kernels.running import Launch, compare, rewritten, run
from tests.slow import drawn

READER = "mad.lo.u32 %r10, %r20, 7, %r21; st.global.u32 [%out_i], %r10;"
AHEAD = "mov.u32 %r20, 9; mov.u32 %r21, %value; setp.gt.u32 %p7, %value, 30; setp.lt.u32 %p8, %value, 45;"
"""What the branches find: %p7 and %p8 differ between lanes."""


def diamond(otherwise: str, taken: str, guard: str = "%p7", label: str = "") -> str:
    """``if (guard) taken else otherwise``."""
    return f"@{guard} bra T{label}; {otherwise} bra.uni J{label}; T{label}: {taken} J{label}:\n"


def triangle(code: str, guard: str = "%p7", label: str = "") -> str:
    """``if (!guard) code``."""
    return f"@{guard} bra J{label}; {code} J{label}:\n"


def kernel(code: str, behind: str = "", **holes: str) -> Module:
    """A loop with ``code`` ahead of a path that reads %r20 and %r21."""
    return module(before=AHEAD + code, body=path(READER), behind=behind, **holes)


def converted(before: Module, options: Options | None = None) -> Module:
    after, remarks, reports = if_conversion.run(before, options or Options())
    assert not remarks
    assert not reports
    verify(after)
    return after


def instructions(made: Module) -> list[Instruction]:
    (function,) = (f for f in made.functions() if f.kind == "entry")
    return [s for s in function.body or () if isinstance(s, Instruction)]


def selects(made: Module) -> list[str]:
    """The registers that `selp` writes, in order."""
    return [isa.definitions(s)[0].name for s in instructions(made) if s.base == "selp"]


def branches(made: Module) -> int:
    """Branches on a condition, those of the loop aside."""
    own = ("%skips", "%none", "%more")
    guards = (s.guard for s in instructions(made) if s.base == "bra")
    return sum(guard is not None and guard.register.name not in own for guard in guards)


def check(before: Module, launches: tuple[Launch, ...] = LAUNCHES) -> None:
    """The same memory, of the converted module alone and at the pipeline's end."""
    after = converted(before)
    for launch in launches:
        for make in (arguments, uneven_arguments):
            wanted, got = (run(Program(made), "k", launch, make(launch))[0] for made in (before, after))
            assert got == wanted
    compare(before, "k", uneven_arguments, launches[:1], seeds=(2,))


@dataclass(frozen=True)
class Fires:
    """Code whose branches all go, and the registers that are then selected."""

    code: str
    selected: str
    behind: str = ""


NESTED = diamond(
    "add.u32 %r20, %value, 3;", diamond("mov.u32 %r20, 5;", "shl.b32 %r20, %value, 2;", "%p8", "2")
)
CONVERTED = {
    "a diamond": Fires(diamond("add.u32 %r20, %value, 1;", "mul.lo.u32 %r20, %value, %value;"), "%r20"),
    "a negated guard": Fires(diamond("add.u32 %r20, %value, 1;", "mul.lo.u32 %r20, %value, %value;", "!%p7"), "%r20"),
    "a triangle": Fires(triangle("xor.b32 %r20, %value, 5;"), "%r20"),
    "a triangle, negated": Fires(triangle("xor.b32 %r20, %value, 5;", "!%p7"), "%r20"),
    "a triangle whose code is branched to": Fires(
        "@%p7 bra T; bra.uni J; T: xor.b32 %r20, %value, 5; J:", "%r20"
    ),
    "empty arms": Fires("@%p7 bra T; bra.uni J; T: bra.uni J; J:", ""),
    "a branch that all lanes take alike": Fires(triangle("mov.u32 %r20, 7;").replace("bra", "bra.uni"), "%r20"),
    "a register that one arm writes": Fires(diamond("mov.u32 %r20, 1;", "mov.u32 %r21, 2;"), "%r20 %r21"),
    "a register that both arms write": Fires(
        diamond("mov.u32 %r20, 1; mov.u32 %r21, 3;", "mov.u32 %r21, 2; mov.u32 %r20, %value;"), "%r20 %r21"
    ),
    "an arm that reads what it wrote": Fires(
        diamond("add.u32 %r20, %value, 1; mul.lo.u32 %r20, %r20, %r20;", "add.u32 %r21, %r20, %r21;"), "%r20 %r21"
    ),
    "an exchange": Fires(
        diamond("mov.u32 %r30, %r20; mov.u32 %r20, %r21; mov.u32 %r21, %r30;", "mov.u32 %r20, %r21;"),
        "%r20 %r21",
    ),
    "an arm that writes the guard, which is dead behind": Fires(
        diamond("setp.eq.u32 %p7, %value, 2; selp.b32 %r20, 4, 8, %p7;", "mov.u32 %r21, 6;"), "%r20 %r21"
    ),
    "arms of several blocks": Fires(
        diamond(
            "add.u32 %r20, %value, 1; bra.uni M; M: shl.b32 %r20, %r20, 1;",
            "mov.u32 %r20, 4; N: not.b32 %r21, %value;",
        ),
        "%r20 %r21",
    ),
    "arms out of order": Fires(
        "@%p7 bra T; bra.uni F; T: mov.u32 %r20, 1; bra.uni J; F: mov.u32 %r20, 2; J:", "%r20"
    ),
    "nested": Fires(NESTED, "%r20"),
    "an else-if chain": Fires(
        diamond(diamond("mov.u32 %r20, 1;", "mov.u32 %r20, %value;", "%p8", "2"), "not.b32 %r20, %value;"), "%r20"
    ),
    "two in a row": Fires(
        triangle("add.u32 %r20, %value, 1;") + triangle("add.u32 %r21, %r20, 1;", "!%p8", "2"), "%r20 %r21"
    ),
    "a value of 16 bits": Fires(
        "mov.u16 %h1, 3;" + triangle("cvt.u16.u32 %h1, %value;") + "cvt.u32.u16 %r20, %h1;", "%h1"
    ),
    "a value of 64 bits": Fires(
        diamond("mul.wide.u32 %rd20, %value, %i;", "mov.u64 %rd20, 3;") + "cvt.u32.u64 %r20, %rd20;", "%rd20"
    ),
    "a float": Fires(
        diamond("cvt.rn.f32.u32 %f1, %value;", "mov.f32 %f1, 0f40490FDB;") + "mov.b32 %r20, %f1;", "%f1"
    ),
    "what the other lanes would not have run": Fires(
        "cvt.rn.f32.u32 %f1, %value; setp.eq.f32 %p9, %f1, 0f00000000;"
        + triangle("rcp.rn.f32 %f1, %f1;", "%p9")
        + "mov.b32 %r20, %f1;",
        "%f1",
    ),
    "a value that nobody reads": Fires(diamond("mov.u32 %r20, 1;", "mov.u32 %r33, %value;"), "%r20"),
    "a value that is read behind the path": Fires(
        triangle("mov.u32 %r33, %value;"), "%r33", behind="add.u32 %r34, %r33, 1; st.global.u32 [%other_i], %r34;"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CONVERTED.values(), ids=CONVERTED.keys())
def test_branches_become_selects(case: Fires) -> None:
    before = kernel("mov.u32 %r33, 0;" + case.code, case.behind, clauses="independent")
    after = converted(before)
    assert branches(before) > 0 == branches(after)
    # What an arm selected before, or an inner branch, is in a register of its own now.
    assert [name for name in selects(after) if not name.startswith("%selected")] == case.selected.split()
    check(before)
    assert converted(after) == after


def test_the_text() -> None:
    """One arm behind the other into registers of their own; the guard of `selp` gives the way that was taken."""
    text = print_module(converted(kernel(diamond("add.u32 %r20, %value, 1;", "not.b32 %r20, %r20;", "!%p7"))))
    code = text.partition("setp.lt.u32 %p8, %value, 45;")[2].partition("setp.ne")[0].split("\n")
    assert [line.strip() for line in code if line.strip()] == [
        "not.b32 %selected_b32_0, %r20;",
        "add.u32 %selected_b32_1, %value, 1;",
        "selp.b32 %r20, %selected_b32_0, %selected_b32_1, !%p7;",
        "bra.uni J;",
        "J:",
        "and.b32 %bits, %value, 3;",
    ]


def test_names_that_are_taken() -> None:
    before = kernel(
        triangle("mov.u32 %r20, %selected_b32_0;"),
        declarations=".reg .b32 %selected_b32_<2>;",
        ahead="mov.u32 %selected_b32_0, 77;",
    )
    assert branches(converted(before)) == 0
    check(before)


FUNCTION = """
.func (.param .b32 result) twice(.param .b32 value) {
    .reg .b32 %r<2>; ld.param.u32 %r1, [value]; shl.b32 %r1, %r1, 1; st.param.b32 [result], %r1; ret;
}
"""
CALL = "{ .param .b32 x; .param .b32 y; st.param.b32 [x], %value; call.uni (y), twice, (x); ld.param.b32 %r20, [y]; }"
DECLINED = {
    "a predicate that is live behind": "setp.ne.u32 %p9, %value, 4;"
    + triangle("setp.eq.u32 %p9, %value, 3;")
    + "selp.b32 %r20, 1, 2, %p9;",
    "the guard live behind": triangle("setp.eq.u32 %p7, %value, 3;") + "selp.b32 %r20, 1, 2, %p7;",
    "a load": triangle("ld.global.nc.u32 %r20, [%a_i];"),
    "a load of a parameter": triangle("ld.param.u32 %r20, [flag];"),
    "a store": triangle("st.global.u32 [%other_i], %value; mov.u32 %r20, 3;"),
    "an atomic": triangle("atom.global.add.u32 %r20, [%other_i], 1;"),
    "an atomic without a result": triangle("red.global.add.u32 [%other_i], 1; mov.u32 %r20, 3;"),
    "a guarded write": triangle("@%p8 mov.u32 %r20, 3;"),
    "a special register": triangle("mov.u32 %r20, %laneid;"),
    "a vote": triangle("activemask.b32 %r20;"),
    "two results": triangle("mov.b32 {%h1, %h2}, %value; cvt.u32.u16 %r20, %h1;"),
    "a carry": triangle("add.cc.u32 %r20, %value, -1; addc.u32 %r20, %r20, 0;"),
    "a call": triangle(CALL),
    "a directive": triangle('.pragma "nounroll"; mov.u32 %r20, 4;'),
    "a label of another's": triangle("mov.u32 %r20, 4; M: N: not.b32 %r20, %r20;"),
    "a loop": diamond("M: add.u32 %r20, %r20, 1; setp.lt.u32 %p9, %r20, 20; @%p9 bra M;", "mov.u32 %r20, 1;"),
    "no common end": "@%p7 bra T; mov.u32 %r20, 1; bra.uni LATCH; T: mov.u32 %r20, 2;",
    "a jump by index": "and.b32 %r30, %value, 1; list: .branchtargets A, B; brx.idx %r30, list; A: mov.u32 %r20, 1; B:",
    "an arm entered from elsewhere": "@!%p8 bra T;" + diamond("mov.u32 %r20, 1;", "mov.u32 %r20, 2;"),
    "both ways alike": "@%p7 bra J; J:",
}


@pytest.mark.parametrize("code", DECLINED.values(), ids=DECLINED.keys())
def test_what_is_left(code: str) -> None:
    before = kernel(code, module=FUNCTION, clauses="independent")
    assert branches(before) or "brx" in code
    assert converted(before) == before


def test_one_arm_that_may_not_go_keeps_both() -> None:
    before = kernel(diamond("add.u32 %r20, %value, 1;", "ld.global.nc.u32 %r20, [%a_i];"))
    assert converted(before) == before


def test_as_many_issue_slots_as_allowed() -> None:
    """One for each float addition, and what the select takes."""
    add, select = "add.f32 %f1, %f1, %f1;", "selp.b32 %f1, %f1, %f1, %p7;"
    slots = {s.opcode: isa.facts(s).slots for s in instructions(module(before=add + select))}
    assert slots["add.f32"] == 1
    fit = int(if_conversion.MOST_SLOTS - slots["selp.b32"])
    most, more = (
        kernel("mov.f32 %f1, 0f3F800000;" + triangle(add * count) + "mov.b32 %r20, %f1;")
        for count in (fit, fit + 1)
    )
    assert branches(converted(most)) == 0
    assert converted(more) == more


@pytest.mark.parametrize(
    "holes",
    [
        {"body": path(NESTED + READER)},
        {"behind": NESTED + "st.global.u32 [%other_i], %r20;"},
        {"latch": NESTED},
        {"ahead": AHEAD + NESTED},
        {"preheader": NESTED},
        {"after": NESTED + "st.global.u32 [%out], %r20;"},
    ],
    ids=["in the path", "behind it", "at the latch", "ahead of the loop", "in front of it", "behind the loop"],
)  # fmt: skip
def test_where_branches_are_left(holes: dict[str, str]) -> None:
    before = module(**{"ahead": AHEAD, "before": AHEAD, "body": path(READER), **holes})
    assert branches(before) == 2
    assert converted(before) == before


def test_between_two_paths() -> None:
    second = path(READER.replace("%out_i", "%other_i"), region=SECOND, label="_2")
    before = module(before=AHEAD, body=path(), behind=NESTED + second, clauses="independent")
    assert branches(converted(before)) == 0
    check(before)


def test_ahead_of_a_loop_of_tasks() -> None:
    before = module(
        before=AHEAD + NESTED,
        body=inner_loop("add.u32 %x, %x, %r20;"),
        behind="st.global.u32 [%out_i], %x;",
    )
    after = converted(before)
    assert branches(after) == branches(before) - 2
    check(before)


def test_in_an_unmarked_loop_ahead_of_the_path() -> None:
    inner = inner_loop(diamond("add.u32 %r20, %r20, 3;", "xor.b32 %r20, %r20, %k;"), variable=False)
    before = kernel(inner)
    after = converted(before)
    assert branches(after) == branches(before) - 1
    check(before)


def test_the_header_ends_with_the_branch() -> None:
    """And is entered from ahead of the loop and from its latch."""
    early = "LOOP: setp.gt.u32 %p7, %i, 70; mov.u32 %r20, 2; mov.u32 %r21, 1;" + triangle(
        "add.u32 %r20, %i, 1;"
    )
    before = parse(loop(body=path(READER)).replace("LOOP:", early, 1))
    assert branches(converted(before)) == 0 < branches(before)
    check(before)


def test_without_marks_it_comes_out_as_it_went_in() -> None:
    text = "\n".join(
        line for line in loop(before=AHEAD + NESTED, body=path(READER)).split("\n") if "// ccc" not in line
    )
    before = parse(text)
    assert branches(before) == 2
    assert converted(before) == before


def test_a_function_beside_a_marked_one_stays() -> None:
    other = """
.func (.param .b32 result) pick(.param .b32 value) {
    .reg .pred %p<9>; .reg .b32 %r<40>; ld.param.u32 %r6, [value]; setp.gt.u32 %p7, %r6, 3; mov.u32 %r20, 1;
    @%p7 bra J; mov.u32 %r20, 2; J: st.param.b32 [result], %r20; ret;
}
"""
    before = kernel(NESTED, module=other)
    (pick, _), (same, _) = (list(made.functions()) for made in (before, converted(before)))
    assert isinstance(pick, Function)
    assert pick.body
    assert same == pick


def test_when_nothing_is_to_be_rewritten() -> None:
    before = kernel(NESTED)
    assert converted(before, Options(mode="off")) == before


def test_a_region_that_is_refused_stays() -> None:
    """Its path is left by the middle."""
    before = module(
        before=AHEAD + NESTED,
        body=path("@%p8 bra LATCH;" + READER),
        behind="red.global.add.u32 [%other_i], 1;",
    )
    with pytest.raises(Refusal):
        rewritten(before, "split")
    assert converted(before) == before


def test_in_a_loop_of_tasks() -> None:
    """Whose trips lead to its beginning again."""
    before = module(
        before=AHEAD,
        body=inner_loop(NESTED + "add.u32 %x, %x, %r20;"),
        behind="st.global.u32 [%out_i], %x;",
    )
    assert converted(before) == before


def test_places_in_the_source() -> None:
    """Each arm's code keeps its `.loc`, the join has the one that it had, and so has what stands where arms stood."""
    arms = diamond(".loc 1 6 3\nadd.u32 %r20, %value, 1;", ".loc 1 7 3\nnot.b32 %r20, %value;")
    before = kernel(
        f".loc 1 4 3\nnot.b32 %r21, %r21; .loc 1 5 3\n{arms} add.u32 %r20, %r20, 5;", module='.file 1 "a.cu"'
    )
    after = converted(before)
    lines: list[dict[str, set[str]]] = []
    for made in (before, after):
        at, found = "", dict[str, set[str]]()
        for line in print_module(made).split("\n"):
            at = line.strip() if line.strip().startswith(".loc") else at
            found.setdefault(line.split()[0] if line.split() else "", set()).add(at)
        lines.append(found)
    assert lines[1]["bra.uni"] == {".loc 1 5 3"}
    for opcode in ("not.b32", "add.u32", "and.b32"):
        assert lines[1][opcode] == lines[0][opcode]


# --- random conditions ---

WORDS = ("%r20", "%r21", "%r22", "%value")
OPERATIONS = ("add.u32", "xor.b32", "sub.u32", "min.u32", "and.b32")
Tree = list["Step"]


@dataclass(frozen=True)
class Step:
    """An operation, or, with ``arms``, a branch on the bits of %value that ``operands`` choose."""

    opcode: str
    operands: tuple[str, ...]
    arms: tuple[tuple[Step, ...], tuple[Step, ...]] | None = None


operations = st.builds(
    Step,
    st.sampled_from(OPERATIONS),
    st.tuples(st.sampled_from(WORDS[:3]), st.sampled_from(WORDS), st.sampled_from((*WORDS, "3", "40"))),
)


def steps(inner: st.SearchStrategy[Step]) -> st.SearchStrategy[tuple[Step, ...]]:
    return st.lists(inner, max_size=3).map(tuple)


def parting(inner: st.SearchStrategy[Step]) -> st.SearchStrategy[Step]:
    test = st.tuples(st.sampled_from(WORDS), st.integers(0, 63).map(str))
    return st.builds(Step, st.sampled_from(("", "!")), test, st.tuples(steps(inner), steps(inner)))


trees = st.recursive(operations, lambda inner: parting(inner) | operations, max_leaves=8)


def written(code: tuple[Step, ...], labels: list[int]) -> str:
    text = ""
    for step in code:
        if step.arms is None:
            text += f"{step.opcode} {', '.join(step.operands)};\n"
            continue
        labels.append(0)
        number = len(labels)
        left, right = (written(arm, labels) for arm in step.arms)
        text += f"setp.gt.u32 %p10, {', '.join(step.operands)};\n"
        text += diamond(left, right, f"{step.opcode}%p10", f"_{number}")
    return text


def count(code: tuple[Step, ...]) -> int:
    """Instructions, and what selects and the test of a branch may add."""
    return sum(1 if step.arms is None else 4 + sum(map(count, step.arms)) for step in code)


@settings(max_examples=drawn(40), deadline=None, derandomize=True, database=None)
@given(st.lists(trees, min_size=1, max_size=3).map(tuple))
def test_random_conditions(code: tuple[Step, ...]) -> None:
    text = "mov.u32 %r22, 5;" + written(code, []) + "xor.b32 %r20, %r20, %r22;"
    note(text)
    before = kernel(text)
    after = converted(before)
    if count(code) * 2 <= if_conversion.MOST_SLOTS:
        assert branches(after) == 0
    launch = Launch(1, 64, 2)
    wanted, got = (run(Program(made), "k", launch, arguments(launch))[0] for made in (before, after))
    assert got == wanted
