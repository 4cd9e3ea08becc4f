"""The check of rewritten functions finds each barrier, drain, initialisation and branch that is not as it must be.

Nothing is run here: a mutant is a rewritten function with one thing changed, and the check must name it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

from cccopt.ccc.outcome.choices import StackMemory
from cccopt.ccc.outcome.rewritten_loop import RewrittenLoop
from cccopt.ccc.output_check import FunctionCode, check_output, violations
from cccopt.ccc.output_check.regions import LoopCode
from cccopt.diagnostic import CccError, render
from cccopt.passes import pipeline
from cccopt.passes.pipeline import Options
from cccopt.ptx import isa
from cccopt.ptx.ir import (
    Address,
    Body,
    Function,
    Guard,
    Instruction,
    Label,
    Literal,
    Module,
    Register,
    Symbol,
)
from cccopt.ptx.parser import parse
from tests.fuzz.trial import only
from tests.kernels.generators.kernels import from_seed
from tests.kernels.ptx_loops import FOR, IF, LAUNCHES, SECOND, VARIABLE, arguments, loop, mark, path
from tests.kernels.ptx_switch import switch
from tests.kernels.running import compare, compiled, marked

SAMPLES = sorted((Path(__file__).resolve().parents[3] / "samples").glob("*/*.cu"))
FORMS = [("split", True), ("idle lanes", False)]
"""Between them: both forms of loops, expanded loops and loops with stacks, and sorted paths."""

SEEDS = (1, 7, 16, 19)
"""Generated kernels: with hoisted loads, sorted paths, nested paths and counted loops."""


@dataclass(frozen=True)
class Rewritten:
    """A rewritten function, what it was, and what the check is told."""

    before: Function
    after: Function
    loops: Sequence[RewrittenLoop]

    def found(self, body: Body) -> list[str]:
        """What the check says of the function with another body."""
        code = FunctionCode(self.before, replace(self.after, body=body))
        return [found.message for _, found in violations(self.before, code, self.loops)]

    def of_added(self, opcode: str) -> Iterator[tuple[int, Instruction]]:
        """The instructions of the rewritten loops whose opcode begins so and that write a register of the rewrite, or
        none, by index.
        """
        code = FunctionCode(self.before, self.after)
        for facts in self.loops:
            for block in LoopCode(code, facts).blocks:
                for index, instruction in code.instructions(block):
                    writes = isa.definitions(instruction)
                    if instruction.opcode.startswith(opcode) and (not writes or code.makes(instruction)):
                        yield index, instruction

    @property
    def body(self) -> Body:
        return self.after.body or ()

    def without(self, index: int) -> Body:
        return (*self.body[:index], *self.body[index + 1 :])

    def with_(self, index: int, *statements: Instruction | Label) -> Body:
        """The body with other statements in the place of one."""
        return (*self.body[:index], *statements, *self.body[index + 1 :])


def rewrites(
    module: Module, forms: Sequence[tuple[str, bool]] = FORMS, stacks: StackMemory = StackMemory.AUTO
) -> list[Rewritten]:
    """The functions of a module that are rewritten, in each form once, as the pipeline gives them to the check."""
    found: dict[Body, Rewritten] = {}

    def keep(before: Function, after: Function, loops: Sequence[RewrittenLoop]) -> None:
        check_output(before, after, loops)
        found.setdefault(after.body or (), Rewritten(before, after, loops))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "check_output", keep)
        for form, expand in forms:
            pipeline.run(module, Options(mode="always", form=form, expand=expand, stacks=stacks))
    return list(found.values())


@cache
def generated(seed: int) -> list[Rewritten]:
    """The rewrites of a generated kernel."""
    return rewrites(parse(from_seed(seed).ptx))


def one(**holes: str) -> Rewritten:
    """The rewrite of a small loop in the split form."""
    (made,) = rewrites(parse(loop(**holes), "loop.ptx"), [("split", True)])
    return made


def missed_barriers(made: Rewritten) -> list[str]:
    """The labels of barriers that the check does not miss."""
    labels = {i: s.name for i, s in enumerate(made.body) if isinstance(s, Label)}
    barriers = [i for i, _ in made.of_added("bar.warp.sync")]
    assert barriers
    return [labels[max(at for at in labels if at < i)] for i in barriers if not made.found(made.without(i))]


# --- barriers ---


@pytest.mark.nvcc
@pytest.mark.parametrize("source", SAMPLES, ids=lambda source: source.stem)
def test_no_barrier_of_a_sample_can_be_left_out(source: Path) -> None:
    # One form of the largest is enough.
    kinds = rewrites(marked(source, "sm_90"), FORMS[: 1 if source.stem == "ff" else 2])
    assert kinds
    assert [found for made in kinds for found in missed_barriers(made)] == []


@pytest.mark.parametrize("seed", SEEDS)
def test_no_barrier_of_a_generated_kernel_can_be_left_out(seed: int) -> None:
    assert [found for made in generated(seed) for found in missed_barriers(made)] == []


NESTED = f"""
    {mark("if.begin", IF)}
    add.u32 %r11, %value, 5;
    {path(region=SECOND, label="2")}
    {mark("if.end", IF)}
"""
"""A path in a block that every lane enters."""


@pytest.mark.parametrize("form", ["split", "idle lanes"])
def test_a_path_in_a_block_that_all_lanes_enter_has_its_barriers(form: str) -> None:
    (made,) = rewrites(parse(loop(body=NESTED), "loop.ptx"), [(form, True)])
    assert missed_barriers(made) == []


def test_barriers_order_slots_of_owners() -> None:
    body = path("add.u32 %r30, %r30, %value;") + "st.global.u32 [%other_i], %value;"
    made = one(
        ahead="mov.u32 %r30, 0;", body=body, clauses="reduce=+:%r30", after="st.global.u32 [%out], %r30;"
    )
    assert any(made.of_added("red.shared"))
    assert missed_barriers(made) == []


@pytest.mark.parametrize("form", ["split", "idle lanes"])
def test_barriers_order_slots_of_owners_of_sorted_tasks(form: str) -> None:
    """Lanes that always agree push no task, so no barrier comes from there."""
    reduced = "add.u32 %r30, %r30, %value; xor.b32 %r10, %value, %i; red.global.add.u32 [%out_i], %r10;"
    text = loop(
        ahead="mov.u32 %r30, 0;",
        body=switch(4, code=reduced),
        clauses="reduce=+:%r30",
        after="mul.wide.u32 %rd20, %thread, 4; add.u64 %rd20, %other, %rd20; st.global.u32 [%rd20], %r30;",
    )
    (made,) = rewrites(parse(text, "loop.ptx"), [(form, True)])
    assert any(made.of_added("shfl.sync"))
    assert any(made.of_added("red.shared"))
    assert missed_barriers(made) == []


CERTAIN = f"""
    {mark("if.begin", IF, "independent")}
    mad.lo.u32 %r10, %value, 7, 1; st.global.u32 [%out_i], %r10; add.u32 %r30, %r30, %value;
    {mark("if.end", IF)}
    st.global.u32 [%other_i], %value;
"""
"""A path that every lane takes in each iteration, without a vote."""


def test_barriers_order_slots_of_owners_that_all_have_a_task() -> None:
    made = one(
        ahead="mov.u32 %r30, 0;", body=CERTAIN, clauses="reduce=+:%r30", after="st.global.u32 [%out], %r30;"
    )
    assert any(made.of_added("red.shared"))
    # Nothing is ever pushed, so the drain needs none.
    assert missed_barriers(made) == ["$ccc_drain_1"]


# --- stacks in global memory ---


def in_pool(form: str, **holes: str) -> Rewritten:
    """The rewrite of a small loop whose warps claim their stacks."""
    (made,) = rewrites(parse(loop(**holes), "loop.ptx"), [(form, True)], StackMemory.GLOBAL)
    return made


@pytest.mark.parametrize("form", ["split", "idle lanes", "carried"])
def test_no_barrier_of_stacks_in_global_memory_can_be_left_out(form: str) -> None:
    # A push waits for a barrier of its own, so that the one after the claim matters to sorted tasks alone.
    assert missed_barriers(in_pool(form)) == ["$ccc_claimed"]


@pytest.mark.parametrize("seed", SEEDS)
def test_no_barrier_of_a_generated_kernel_with_a_pool_can_be_left_out(seed: int) -> None:
    for made in rewrites(parse(from_seed(seed).ptx), FORMS, StackMemory.GLOBAL):
        assert [label for label in missed_barriers(made) if "_claimed" not in label] == []


@pytest.mark.parametrize("form", ["split", "idle lanes", "carried"])
def test_each_way_out_gives_the_entry_back(form: str) -> None:
    made = in_pool(form)
    releases = [*made.of_added("st.release")]
    assert releases
    for index, release in releases:
        assert "control leaves the loop: an entry of the pool may be left claimed" in made.found(
            made.without(index)
        )
        for wrong in (
            replace(release, guard=None),
            replace(release, guard=Guard(release.guard.register, negated=True) if release.guard else None),
            replace(release, opcode="st.global.b32"),
            replace(release, operands=(release.operands[0], Literal("1"))),
        ):
            assert made.found(made.with_(index, wrong))


@pytest.mark.parametrize("form", ["split", "idle lanes", "carried"])
def test_stacks_are_accessed_only_with_an_entry(form: str) -> None:
    made = in_pool(form)
    ((index, claim),) = made.of_added("atom.acquire")
    for wrong in (
        replace(claim, opcode="atom.global.cas.b32"),
        replace(claim, guard=None),
        replace(claim, operands=(*claim.operands[:2], Literal("0"), Literal("0"))),
        replace(claim, operands=(*claim.operands[:2], Literal("1"), Literal("1"))),
    ):
        assert made.found(made.with_(index, wrong))
    ((index, shown),) = made.of_added("shfl.sync")
    other = replace(shown, operands=(*shown.operands[:2], Literal("1"), *shown.operands[3:]))
    assert made.found(made.with_(index, other))
    index, branch = next(
        (i, s)
        for i, s in enumerate(made.body)
        if i > index and isinstance(s, Instruction) and s.opcode == "bra.uni" and s.guard
    )
    assert branch.guard is not None
    turned = replace(branch, guard=replace(branch.guard, negated=not branch.guard.negated))
    assert "the warp may have no entry of the pool" in made.found(made.with_(index, turned))


def test_other_warp_wide_instructions_order_no_memory() -> None:
    made = one()
    vote = Instruction("vote.sync.any.pred", (Register("%p19"), Register("%p19"), Literal("-1")))
    for index, _ in made.of_added("bar.warp.sync"):
        assert any("orders this" in text for text in made.found(made.with_(index, vote)))


@pytest.mark.parametrize("guard", [Guard(Register("%skips")), Guard(Register("%skips"), negated=True)])
def test_a_guarded_barrier_is_none(guard: Guard) -> None:
    made = one()
    for index, barrier in made.of_added("bar.warp.sync"):
        said = made.found(made.with_(index, replace(barrier, guard=guard)))
        assert "some lanes may pass this under a false guard" in said


def test_every_vote_names_all_lanes() -> None:
    made = one()
    for index, vote in made.of_added("vote"):
        few = replace(vote, operands=(*vote.operands[:-1], Literal("65535")))
        assert "this does not name all lanes" in made.found(made.with_(index, few))


# --- drains ---


def test_each_stack_is_drained_before_control_leaves() -> None:
    for seed in SEEDS:
        for made in generated(seed):
            drains = [label for label in _labels(made) if "_drain_" in label]
            assert bool(drains) == any(facts.stacks for facts in made.loops)
            for label in drains:
                for body in _without_drain(made, label):
                    assert any("may be left over" in text for text in made.found(body)), (seed, label)


def test_a_drain_takes_a_task_in_each_lane_below_the_counter() -> None:
    made = one()
    (taken,) = ((i, s) for i, s in made.of_added("setp.lt.s32"))
    index, test = taken
    other = replace(test, operands=(test.operands[0], Literal("16"), test.operands[2]))
    assert any("may be left over" in text for text in made.found(made.with_(index, other)))


def _labels(made: Rewritten) -> list[str]:
    return [s.name for s in made.body if isinstance(s, Label)]


def _without_drain(made: Rewritten, label: str) -> Iterator[Body]:
    """The body with each branch to a drain gone past it; where control falls into it, always past it."""
    start = next(i for i, s in enumerate(made.body) if isinstance(s, Label) and s.name == label)
    branches = [
        (index, statement)
        for index, statement in enumerate(made.body)
        if isinstance(statement, Instruction) and statement.guard is not None and statement.base == "bra"
    ]
    _, past = next((index, branch) for index, branch in branches if index > start)
    to_it = [(i, branch) for i, branch in branches if isa.targets(branch, made.body) == (label,)]
    for index, branch in to_it:
        yield made.with_(index, replace(branch, operands=past.operands))
    if not to_it:
        index, around = max(((i, branch) for i, branch in branches if i < start), key=lambda found: found[0])
        yield made.with_(index, replace(around, guard=None))


# --- lanes that come to votes ---


def test_no_vote_may_be_under_a_branch_that_parts_the_lanes() -> None:
    for seed in SEEDS:
        for made in generated(seed):
            for index, vote in [*made.of_added("vote.sync"), *made.of_added("shfl.sync")][::5]:
                skip = Instruction("bra", (Symbol("$past"),), Guard(Register("%varies")))
                lane = Instruction(
                    "setp.eq.u32", (Register("%varies"), Register("%lane_of_mine"), Literal("3"))
                )
                body = made.with_(index, lane, skip, vote, Label("$past"))
                assert any("some lanes may not reach this" in text for text in made.found(body))


def test_a_partial_warp_may_not_enter() -> None:
    made = one()
    index = next(
        i
        for i, s in enumerate(made.body)
        if isinstance(s, Instruction) and s.base == "bra" and s.operands == (Symbol("$ccc_original_1"),)
    )
    branch = made.body[index]
    assert isinstance(branch, Instruction)
    assert branch.guard is not None
    opposite = replace(branch, guard=Guard(branch.guard.register, not branch.guard.negated))
    assert "a partial warp may enter the rewritten loop" in made.found(made.with_(index, opposite))
    test = next(i for i, s in enumerate(made.body) if isinstance(s, Instruction) and s.base == "setp")
    while not (isinstance(s := made.body[test], Instruction) and branch.guard.register in s.operands):
        test += 1
    assert isinstance(s, Instruction)
    half = replace(s, operands=(*s.operands[:2], Literal("65535")))
    assert "a partial warp may enter the rewritten loop" in made.found(made.with_(test, half))


# --- registers and loops ---


def test_what_a_warp_sets_before_the_loop_is_needed() -> None:
    """The counters of stacks, any values for registers that some lanes may not have written, the parts of sums."""
    reduced = {
        "ahead": "mov.u32 %r30, 0;",
        "clauses": "reduce=+:%r30",
        "after": "st.global.u32 [%out], %r30;",
    }
    summed = one(body=path("add.u32 %r30, %r30, %value;"), **reduced)
    for made in (one(), one(body=NESTED), summed):
        stop = min(index for index, _ in made.of_added("vote"))
        start = next(i for i, s in enumerate(made.body) if s == Label(made.loops[0].entry))
        first = [
            i for i, s in made.of_added("mov") if start < i < stop and isinstance(s.operands[1], Literal)
        ]
        assert first
        for index in first:
            said = made.found(made.without(index))
            assert any("may be read before it is written" in text for text in said), made.body[index]


LEFT_EARLY = f"""
    setp.gt.u32 %p6, %value, 50; @%p6 bra NEXT;
    mov.u32 %r30, 28;
    and.b32 %bits, %value, 3; setp.eq.u32 %p7, %bits, 0; @%p7 bra JOIN;
    add.u32 %r31, %value, %i;
    {mark("if.begin", IF)}
    mad.lo.u32 %r10, %r31, 7, 1; st.global.u32 [%out_i], %r10;
    {mark("if.end", IF)}
    xor.b32 %r30, %value, 5;
JOIN:
    st.global.u32 [%other_i], %r30;
NEXT:
"""
"""Lanes that go on at NEXT come to the path's join, too, and have no %r30, which others read at JOIN."""


def _in_loop_of_tasks(code: str) -> str:
    """Some code as the trip of a marked `while`, whose drain takes all lanes along, those without a task idle."""
    return f"""
    mov.u32 %k, 0;
    {mark("for.begin", VARIABLE, "while independent")}
INNER:
    {mark("body.begin", VARIABLE)}
    {code}
    {mark("body.end", VARIABLE)}
    add.u32 %k, %k, 1; and.b32 %bound, %value, 7; setp.lt.u32 %p9, %k, %bound; @%p9 bra INNER;
    {mark("for.end", VARIABLE)}
"""


@pytest.mark.parametrize("form", ["split", "idle lanes"])
@pytest.mark.parametrize("around", [str, _in_loop_of_tasks])
def test_lanes_that_go_elsewhere_from_a_join_have_what_is_read_there(
    form: str, around: Callable[[str], str]
) -> None:
    text = loop(body=around(LEFT_EARLY.replace("st.global", "red.global.add")))
    (made,) = rewrites(parse(text, "loop.ptx"), [(form, True)])
    cleared = [
        index
        for index, statement in enumerate(made.body)
        if isinstance(statement, Instruction)
        and statement.opcode == "mov.b32"
        and statement.operands[1:] == (Literal("0"),)
    ]
    assert any(
        "may be read before" in found for index in cleared for found in made.found(made.without(index))
    )
    compare(parse(text, "loop.ptx"), "k", arguments, LAUNCHES, forms=(form,))


def test_a_load_of_a_task_gives_all_of_its_context() -> None:
    made = one()
    # In the loop, lanes with a task of their own keep it; only the loads of the drain have no guard.
    drained = [index for index, load in made.of_added("ld.shared") if load.guard is None]
    assert drained
    for index in drained:
        assert any("before it is written" in text for text in made.found(made.without(index)))


def test_a_loop_has_one_entry() -> None:
    made = one()
    inside = next(label for label in _labels(made) if label.startswith("$ccc_take"))
    index = next(
        i
        for i, s in enumerate(made.body)
        if isinstance(s, Instruction) and s.base == "bra" and s.operands == (Symbol("$ccc_original_1"),)
    )
    branch = made.body[index]
    assert isinstance(branch, Instruction)
    said = made.found(made.with_(index, replace(branch, operands=(Symbol(inside),))))
    assert "a loop may be entered in two places" in said


def test_stores_and_loads_go_to_a_stack() -> None:
    made = one()
    for index, store in made.of_added("st.shared"):
        (where, *rest) = store.operands
        beyond = replace(where, offset=Literal("100000"))  # type: ignore[type-var]
        said = made.found(made.with_(index, replace(store, operands=(beyond, *rest))))
        assert "this belongs to none of the loop's stacks" in said


# --- what is said ---


@pytest.mark.nvcc
@pytest.mark.parametrize("kernel", ["bytes", "task", "generator"])
def test_local_memory_comes_back_to_where_it_was(kernel: str) -> None:
    (made,) = rewrites(only(compiled("local_arrays", "sm_90"), kernel), [("carried", True)])
    copies = [(i, s) for opcode in ("ld.local", "st.local") for i, s in made.of_added(opcode) if _named(s)]
    assert {s.base for _, s in copies} == {"ld", "st"}
    for index, instruction in copies:
        elsewhere = tuple(
            replace(o, offset=Literal("100")) if isinstance(o, Address) else o for o in instruction.operands
        )
        assert made.found(made.without(index))
        assert made.found(made.with_(index, replace(instruction, operands=elsewhere)))
        if instruction.base == "st":
            assert made.found(made.with_(index, replace(instruction, guard=None)))


def _named(access: Instruction) -> bool:
    """Whether an access names the variable, as copies do: the program goes by registers."""
    return any(isinstance(o, Address) and isinstance(o.base, Symbol) for o in access.operands)


def test_what_fails_is_an_internal_error_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    name, step = pipeline.PIPELINE[-1]

    def careless(module: Module, options: Options) -> object:
        module, said, made = step(module, options)
        items = []
        for item in module.items:
            if isinstance(item, Function) and item.body is not None:
                body = tuple(s for s in item.body if not (isinstance(s, Instruction) and s.base == "bar"))
                item = replace(item, body=body)
            items.append(item)
        return Module(tuple(items)), said, made

    monkeypatch.setattr(pipeline, "PIPELINE", (*pipeline.PIPELINE[:-1], (name, careless)))
    with pytest.raises(CccError) as caught:
        pipeline.run(parse(loop(), "loop.ptx"), Options(mode="always"))
    text = render(caught.value.diagnostics[0])
    assert text.startswith(
        "error[CCC099]: internal error: the rewritten code of `k` is not sound: no `bar.warp.sync`"
    )
    assert f"--> loop.cu:{10 * FOR}" in text
    assert "$ccc_" in text


def test_a_kernel_without_annotations_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(pipeline, "check_output", never)
    pipeline.run(parse(loop(marked=False, body=""), "loop.ptx"), Options(mode="always"))
    pipeline.run(parse(loop(), "loop.ptx"), Options(mode="off"))
