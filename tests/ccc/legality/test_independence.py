"""What is known of the independence of iterations: a table of kernels (`tests/kernels/cuda/independence.cu`), which
have their answers above them, beside what `cccopt check` finds in random loops.
"""

from __future__ import annotations

import re
from functools import cache

import pytest

from cccopt.ccc.function.view import view_of
from cccopt.ccc.legality.independence import Judgement, State, judged
from cccopt.ccc.legality.symbolic_operations import bounds_of
from cccopt.clauses import Kind
from cccopt.passes.pipeline import prepared
from cccopt.ptx.ir import Instruction, Module
from cccopt.ptx.parser import parse
from tests.ccc.legality.random_loops import judgements, outcomes
from tests.kernels.running import CUDA, marked

_KERNEL = re.compile(r"^// (.*)\n(?:#pragma.*\n)?extern .*\) (\w+)\(", re.MULTILINE)
ANSWERS = {name: answer for answer, name in _KERNEL.findall((CUDA / "independence.cu").read_text())}
WORDS = {"index": "the 32-bit index", "threads": "no two threads"}


@cache
def module() -> Module:
    return prepared(marked(CUDA / "independence.cu", "sm_90", "-lineinfo"))


def told(judgement: Judgement) -> str:
    """The judgement as the table has it."""
    if judgement.conditions:
        words = [next((k for k, v in WORDS.items() if c.startswith(v)), c) for c in judgement.conditions]
        return f"{judgement.state} on: {', '.join(words)}"
    named = ", ".join(dict.fromkeys(access.does for access in judgement.accesses))
    return f"{judgement.state}{': ' if named else ''}{named}{', sums' if judgement.sums else ''}"


@pytest.mark.nvcc
@pytest.mark.parametrize("name", ANSWERS)
def test_state_of_each_kernel(name: str) -> None:
    ((_, judgement),) = judgements(module(), name)
    assert told(judgement) == ANSWERS[name], judgement


@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("name", "exception"),
    [
        ("zeros", ""),
        ("same_value", ", except to store the same value"),
        ("counts", ", except by atomics whose order makes no difference"),
    ],
)
def test_what_is_proven_is_said(name: str, exception: str) -> None:
    ((_, judgement),) = judgements(module(), name)
    assert judgement.why == f"no iteration writes to memory that another one accesses{exception}"


@pytest.mark.nvcc
def test_accesses_have_their_lines() -> None:
    ((_, judgement),) = judgements(module(), "slots")
    texts = (CUDA / "independence.cu").read_text().splitlines()
    assert judgement.accesses
    for access in judgement.accesses:
        assert access.place is not None
        assert texts[access.place.position.line - 1].strip() == access.text


@pytest.mark.nvcc
def test_what_is_proven_of_random_loops_is_so_on_the_emulator() -> None:
    found = list(outcomes(seed=1000, count=12))
    assert [outcome.text for outcome in found if outcome.wrong] == []
    assert {outcome.judgement.state for outcome in found} == set(State)


@pytest.mark.parametrize(
    ("code", "bounds"),
    [
        ("rem.u32 %r1, %r2, 7;", (0, 6)),
        ("rem.s32 %r1, %r2, 7;", (-6, 6)),
        ("rem.u32 %r1, 7, %r2;", (None, None)),
        ("shr.u32 %r1, %r2, 30;", (0, 3)),
        ("shr.u32 %r1, 30, %r2;", (None, None)),
    ],
)
def test_bounds_of_results_come_from_divisors_and_distances(
    code: str, bounds: tuple[int | None, int | None]
) -> None:
    head = ".version 9.0 .target sm_90 .address_size 64 .visible .entry k() { .reg .b32 %r<3>;"
    (function,) = parse(f"{head} {code} ret; }}").functions()
    instruction = next(s for s in function.body or () if isinstance(s, Instruction))
    assert bounds_of(instruction)[:2] == bounds


def test_a_loop_with_several_entries_is_open() -> None:
    text = """
    .version 9.0 .target sm_90 .address_size 64
    .visible .entry k(.param .u32 n) {
      .reg .pred %p<2>; .reg .b32 %r<3>;
      ld.param.u32 %r1, [n];
      setp.eq.u32 %p1, %r1, 3;
      mov.u32 %r2, 0;
    LOOP:
      @%p1 bra B;
    A:
      add.u32 %r2, %r2, 1;
    B:
      add.u32 %r2, %r2, 2;
      @%p1 bra A;
      setp.lt.u32 %p1, %r2, %r1;
      @%p1 bra LOOP;
      ret;
    }
    """
    (function,) = parse(text).functions()
    view = view_of(parse(text), function)
    assert view.irreducible
    judgement = judged(view, view.loops[0], Kind.FOR)
    assert (judgement.state, judgement.why) == (State.OPEN, "the kernel has a loop with several entries")
