"""Trees of tests ahead of exclusive paths: which become straight code, and equal results.

    if (x == 0) goto A;                         n = x == 2 ? 2 : 3;
    if (x == 1) goto B;                 ->      n = x == 1 ? 1 : n;
    if (x == 2) goto C;                         n = x == 0 ? 0 : n;
    goto D;                                     goto path n;        // one site, not four

All lanes then run all tests: what a test writes must be dead where another lane's branch would have led.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest

from cccopt.analysis.cfg import build
from cccopt.ccc.codegen.decision_trees import LARGEST, Flattened, flattened
from cccopt.ccc.function.graph import Graph, Jump, from_body, led, split_at_markers
from cccopt.ccc.function.names import Names
from cccopt.ptx.ir import Instruction
from cccopt.ptx.parser import parse
from tests.ccc.codegen.test_sorting import sorted_groups
from tests.kernels.ptx_loops import LAUNCHES, loop, uneven_arguments
from tests.kernels.ptx_switch import AHEAD, switch
from tests.kernels.running import FORMS, compare, rewritten

LEAVES = {"A": 0, "B": 1, "C": 2, "D": 3, "E": 4}


def graph(code: str) -> tuple[Graph, Names]:
    """The nodes of a body that ends in five leaves."""
    leaves = " ".join(f"{name}: st.global.u32 [%rd1], %r{k}; ret;" for name, k in LEAVES.items())
    text = f""".version 9.0
.target sm_90
.address_size 64
.visible .entry k()
{{
    .reg .pred %p<60>; .reg .b32 %r<60>; .reg .b64 %rd<4>; .reg .pred %q;
ROOT:
    {code}
    {leaves}
}}
"""
    (function,) = parse(text).functions()
    names = Names(function.body or (), ())
    body = split_at_markers(function.body or (), names)
    made = from_body(body, build(body), names)
    # Nodes that only lead on are left without any way to them.
    on = {n: x.end.target for n, x in made.nodes.items() if not x.code and isinstance(x.end, Jump)}
    return replace(made, nodes=led(made.nodes, on)), names


def flat(code: str, alive: str = "") -> Flattened:
    """``alive`` are leaves with a register each: ``A %r1``. The stores of the leaves do not count."""
    made, names = graph(code)
    pairs = [pair.split() for pair in alive.split(",") if pair]
    read: dict[str, Collection[str]] = {leaf: {r for name, r in pairs if name == leaf} for leaf in LEAVES}
    return flattened(made.nodes, "ROOT", LEAVES, read, names)


def code_of(made: Flattened, name: str) -> list[str]:
    return [s.opcode for s in made.nodes[name].code if isinstance(s, Instruction)]


CHAIN = "setp.eq.u32 %p1, %r9, 0; @%p1 bra A; T: {t} @%p2 bra B; U: {u} @%p3 bra C; bra.uni D;"
T, U = "setp.eq.u32 %p2, %r9, 1;", "setp.eq.u32 %p3, %r9, 2;"
"""The tests of T, below the root, and of U, below T."""
SIBLINGS = "@%p1 bra RIGHT; T: {t} @%p2 bra A; bra.uni B; RIGHT: {u} @%p3 bra C; bra.uni D;"
"""T and RIGHT, one beside the other, here with the tests of T and U."""


def chain(t: str = "", u: str = "", shape: str = CHAIN) -> str:
    return shape.format(t=t + T, u=u + U)


def test_a_chain_selects_the_number_of_its_leaf() -> None:
    made = flat(chain())
    assert list(made.nodes) == ["ROOT", *"ABCDE"]
    end = made.nodes["ROOT"].end
    assert isinstance(end, Jump)
    assert list(made.chosen) == [end.target]
    assert code_of(made, "ROOT") == ["setp.eq.u32"] * 3 + ["selp.b32"] * 3
    selects = [s for s in made.nodes["ROOT"].code if isinstance(s, Instruction) and s.base == "selp"]
    # From the innermost test outwards, each with the number of its own leaf first.
    assert [str(getattr(s.operands[1], "spelling", "")) for s in selects] == ["2", "1", "0"]
    assert made.chosen[end.target] == selects[-1].operands[0]


FLAT = {
    "a write that a leaf below reads": (chain("add.u32 %r20, %r6, 1;"), "B %r20,C %r20,D %r20"),
    "a write that a test below reads": (
        chain("shr.u32 %r20, %r9, 1;", "and.b32 %r21, %r20, 1;"),
        "C %r21,D %r21",
    ),
    "a write that the test itself reads": (chain("and.b32 %r20, %r6, 3; add.u32 %r21, %r20, 1;"), "B %r21"),
    "each leaf has a value of its own test": (
        chain("mov.u32 %r20, 1;", "mov.u32 %r21, 2;", SIBLINGS),
        "A %r20,B %r20,C %r21,D %r21",
    ),
    "a write that nobody reads": (chain("mov.u32 %r20, 1;", "mov.u32 %r20, 2;", SIBLINGS), ""),
    "a write at the root that all read": (
        "mov.u32 %r20, 1;" + chain(u="add.u32 %r21, %r20, 1;"),
        "A %r20,B %r20,C %r20",
    ),
    "a leaf is not of the tree": (chain("mov.u32 %r20, 1;"), "E %r20"),
    "a node that no way leads to": (chain() + "LOST: bra.uni U;", ""),
    "an unreachable way into a test": (chain() + "LOST: mov.u32 %r2, 1; @%p9 bra T; bra.uni U;", ""),
}


@pytest.mark.parametrize("name", FLAT)
def test_what_becomes_straight_code(name: str) -> None:
    code, alive = FLAT[name]
    made = flat(code, alive)
    assert set(made.nodes) == {"ROOT", *LEAVES}
    assert len(made.chosen) == 1


KEPT = {
    "a write alive at a leaf that is not below it": (chain("mov.u32 %r20, 1;"), "A %r20"),
    "a write of the last test alive at another leaf": (chain(u="mov.u32 %r20, 1;"), "B %r20"),
    "a write that the test beside it reads": (
        chain("mov.u32 %r20, 1;", "add.u32 %r21, %r20, 1;", SIBLINGS),
        "",
    ),
    "a write that the test ahead in the code reads": (
        chain("add.u32 %r21, %r20, 1;", "mov.u32 %r20, 1;", SIBLINGS),
        "",
    ),
    "a write alive at a leaf of the test beside it": (chain("mov.u32 %r20, 1;", shape=SIBLINGS), "D %r20"),
    "both tests write it for their leaves": (
        chain("mov.u32 %r20, 1;", "mov.u32 %r20, 2;", SIBLINGS),
        "A %r20,D %r20",
    ),
    "the root's guard": (chain(u="setp.gt.u32 %p1, %r9, 5;"), ""),
    "the guard of the test above": (chain(u="setp.gt.u32 %p2, %r9, 5;"), ""),
    "the guard of the test beside it": (chain(u="setp.gt.u32 %p2, %r9, 5;", shape=SIBLINGS), ""),
    "one predicate for all": (chain().replace("%p2", "%p1").replace("%p3", "%p1"), ""),
    "a guarded write": (chain(u="@%p9 mov.u32 %r20, 1;"), ""),
    "a load": (chain(u="ld.global.u32 %r20, [%rd1];"), ""),
    "a store": (chain(u="st.global.u32 [%rd1], %r9;"), ""),
    "a second way into a test": ("@%p8 bra U;" + chain(), ""),
    "one branch": ("@%p1 bra A; bra.uni B;", ""),
    "a way that leads elsewhere": (chain().replace("bra.uni D", "ret"), ""),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_stays_in_branches(name: str) -> None:
    code, alive = KEPT[name]
    made = flat(code, alive)
    used, _ = graph(code)
    assert not made.chosen
    assert all(made.nodes[name] == used.nodes[name] for name in made.nodes)
    assert "ROOT" in made.nodes


def test_a_tree_may_begin_behind_any_code() -> None:
    """The root's own code stays with it; what is above the root keeps its branch."""
    made = flat(chain("st.global.u32 [%rd1], %r9;"))
    assert set(made.nodes) == {"ROOT", "T", *LEAVES}
    assert code_of(made, "ROOT") == ["setp.eq.u32"]
    assert code_of(made, "T") == ["st.global.u32", *["setp.eq.u32"] * 2, *["selp.b32"] * 2]


@pytest.mark.parametrize(("branches", "expected"), [(2, 1), (LARGEST, 1), (LARGEST + 1, 0)])
def test_how_large_a_tree_may_be(branches: int, expected: int) -> None:
    tests = " ".join(f"setp.eq.u32 %p{k}, %r9, {k}; @%p{k} bra {'ABC'[k % 3]};" for k in range(branches))
    assert len(flat(tests + "bra.uni D;").chosen) == expected


@pytest.mark.parametrize("shape", ["from the root", "from a test beside it"])
def test_a_write_alive_at_a_leaf_with_two_ways(shape: str) -> None:
    """Lanes that come past the test must find the old value."""
    if shape == "from the root":
        code = chain("mov.u32 %r20, 1;").replace("bra.uni D", "bra.uni A")
    else:
        code = chain("mov.u32 %r20, 1;", shape=SIBLINGS).replace("bra C", "bra A")
    assert not flat(code, "A %r20").chosen


# --- in loops ---

CHOOSE = AHEAD + "shr.u32 %bits, %value, 1; and.b32 %bits, %bits, 7;"
TESTS = """
    setp.gt.u32 %p12, %bits, 5; @%p12 bra JOIN;
    {first} setp.eq.u32 %p13, %bits, 0; @%p13 bra CASE0;
    {second} setp.ne.u32 %p14, %bits, 1; @!%p14 bra CASE1;
    {third} setp.gt.u32 %p15, %bits, {last}; @%p15 bra {goal}; bra.uni CASE2;
"""
USE = "red.global.add.u32 [%out_i], {0};"
OFF = "setp.gt.u32 %p19, %value, 90; @%p19 bra DONE;"
"""A second way out of the loop: nothing is prefetched, which would stand among the tests."""


def kernel(
    first: str = "",
    second: str = "",
    third: str = "",
    *,
    codes: tuple[str, str, str] = (USE.format("%value"),) * 3,
    goal: str = "JOIN",
    before: str = "",
    behind: str = "",
) -> str:
    """A loop whose lanes come to three paths and past them by a chain of tests."""
    cases = switch(3, codes=codes).partition("brx.idx %bits, table;")[2]
    tests = TESTS.format(first=first, second=second, third=third, last=3, goal=goal)
    return loop(before=CHOOSE + before, body=tests + cases, behind=behind + OFF, clauses="independent")


def branches(text: str, form: str = "auto") -> int:
    """Branches on the tests' predicates in the collected loop; the original one has four."""
    (function,) = (f for f in rewritten(parse(text), form).module.functions() if f.kind == "entry")
    tests = {f"%p{k}" for k in range(12, 16)}
    return (
        sum(
            isinstance(s, Instruction)
            and s.base == "bra"
            and s.guard is not None
            and s.guard.register.name in tests
            for s in function.body or ()
        )
        - 4
    )


VALUE = "mad.lo.u32 %r20, %value, 3, %i;"
LOOPS = {
    "tests alone": (kernel(), 0),
    "a value for the paths below": (kernel(VALUE, codes=(USE.format("%r20"),) * 3), 0),
    "a value for tests and paths below": (
        kernel(
            "",
            VALUE,
            "and.b32 %r21, %r20, 7;",
            codes=(USE.format("%value"), USE.format("%r20"), USE.format("%r21")),
        ),
        0,
    ),
    "a value of ahead for a path past the test": (
        kernel("", VALUE, before="mov.u32 %r20, 5;", codes=(USE.format("%r20"),) * 3),
        4,
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_compute_the_same(name: str) -> None:
    text, expected = LOOPS[name]
    assert sorted_groups(text) == [3]
    assert [branches(text, form) for form in FORMS] == [expected] * len(FORMS)
    compare(parse(text), "k", uneven_arguments, LAUNCHES[1:], forms=FORMS[1:], seeds=(3,))


def test_a_path_with_two_ways_reads_a_value_of_one() -> None:
    text = kernel("", VALUE, before="mov.u32 %r20, 5;", codes=(USE.format("%r20"),) + ("",) * 2, goal="CASE0")
    compare(parse(text), "k", uneven_arguments, LAUNCHES[1:], forms=("auto",))
