"""Counted code whose groups of lanes may meet: what holds for it on a GPU, where the emulator cannot show the fault.

docs/decisions/0035-amounts-of-leaders.md, docs/decisions/0036-groups-that-fold-at-once.md
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from cccopt.emulator import Program
from cccopt.passes.counting.modules import Counted
from cccopt.passes.instrument import COUNTED, instrumented
from cccopt.profiling.counts import counts_of
from cccopt.ptx.ir import Address, Function, Instruction, Register, SpecialRegister
from cccopt.ptx.isa import register_types
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from tests.emulator.kernels import kernel as ptx_kernel
from tests.passes.instrumenting import HOW, counts_in
from tests.passes.test_instrument import CALL, CALLS, RECURSIVE, SHAPES


@pytest.mark.parametrize("how", HOW)
def test_what_is_computed_of_a_mask_and_added_depends_on_the_lane(how: str) -> None:
    """ptxas takes other numbers of a mask for the same in all lanes, and makes one operation of a multiple of them."""
    seen = 0
    for function in counted_shapes(how):
        made = definitions(function)
        for place, amount in added(function):
            if any(i.base in ("activemask", "redux") for i in origins(made, amount)):
                seen += 1
                code = [*origins(made, amount), *origins(made, place)]
                assert SpecialRegister("%lanemask_lt") in [o for i in code for o in i.operands]
    assert seen > 10


@pytest.mark.parametrize("how", HOW)
def test_lanes_are_added_up_where_just_those_run_together(how: str) -> None:
    """Of what ptxas makes of `redux`, the result is of all lanes that run it, be they of the mask or not."""
    for function in counted_shapes(how):
        made = definitions(function)
        run = [s for s in function.body or () if isinstance(s, Instruction)]
        for index, reduction in ((i, s) for i, s in enumerate(run) if s.base == "redux"):
            assert reduction.guard is not None
            asked = max(i for i in range(index) if run[i].base == "activemask")
            (test,) = made[reduction.guard.register]
            assert test.opcode == "setp.eq.and.u32"
            assert test.operands[1:3] == (run[asked].operands[0], reduction.operands[2])
            assert not {s.base for s in run[asked:index]} & {"bra", "brx", "call", "bar", "vote"}
            assert run[asked - 1].base == "bra", "ptxas would ask ahead of a vote"


JUMPS = ("bra", "brx", "call", "ret", "exit")


@pytest.mark.parametrize("how", HOW)
def test_around_recursion_nothing_is_branched_around(how: str) -> None:
    """On a GPU, a warp came back from such a call in groups, and the kernel's results were wrong.

    docs/decisions/0040-counting-around-recursion-does-not-branch.md
    """
    module = parse(ptx_kernel(f"and.b32 %r4, %r3, 7;{CALL % 'sum'}", module=RECURSIVE))
    plain = next(f for f in module.functions() if f.name == "sum")
    new, _ = instrumented(module, HOW[how])
    counted = next(f for f in new.functions() if f.name == "sum" + COUNTED and f.body)
    code = [s for s in counted.body or () if isinstance(s, Instruction)]
    jumps = [s.base for s in code if s.base in JUMPS]
    assert jumps == [s.base for s in plain.body or () if isinstance(s, Instruction) and s.base in JUMPS]
    added_to = [s.guard for s in code if s.base == "red"]
    assert len(added_to) >= 3
    assert not any(added_to)


@pytest.mark.parametrize("how", HOW)
def test_loops_around_recursion_keep_their_values_in_lanes(how: str) -> None:
    """ptxas has one register of a warp for what is the same in all lanes, which each group of them would advance."""
    function, body = CALLS["recursion in a loop"]
    new, _ = instrumented(parse(ptx_kernel(body, module=function)), HOW[how])
    counted = next(f for f in new.functions() if f.name == "k" + COUNTED)
    made = definitions(counted)
    types = register_types(counted)
    for name in ("%r6", "%f1", "%fd1", "%h1", "%p2"):
        last = made[Register(name)][-1]
        if last.base == "mov":  # of the bits of a number
            (last,) = (i for i in made[last.operands[1]] if i.base == "xor")
        assert last.base == "xor", name
        zero = last.operands[2]
        assert {SpecialRegister("%lanemask_lt"), SpecialRegister("%lanemask_eq")} <= {
            o for i in origins(made, zero) for o in i.operands
        }
        assert isinstance(zero, Register)
        assert types[zero.name] == {"%p2": "pred", "%h1": "b16", "%fd1": "b64"}.get(name, "b32")
    plain = next(f for f in new.functions() if f.name == "k")
    assert not any(isinstance(s, Instruction) and s.base == "xor" for s in plain.body or ())


def test_other_loops_are_left_alone() -> None:
    function, body = CALLS["calls in a loop"]
    new, _ = instrumented(parse(ptx_kernel(body, module=function)))
    assert not any(
        isinstance(s, Instruction) and s.base == "xor" for f in new.functions() for s in f.body or ()
    )


def test_what_is_around_recursion() -> None:
    def function(name: str, called: str) -> str:
        return f".func {name}() {{ {f'call {called};' if called else ''} ret; }}"

    texts = (
        function("leaf", ""),
        ".func walk() { call leaf; call walk; ret; }",
        function("middle", "walk"),
        function("other", ""),
    )
    calls = "call middle; call other;"
    assert Counted(parse(ptx_kernel(calls, module="".join(texts)))).around_recursion == {
        "leaf",
        "walk",
        "middle",
    }


APART = {
    "others run with it": (r"activemask\.b32 (%\w+);(\s*setp\.eq\.and\.u32 %\w+, \1,)", r"mov.u32 \1, 0;\2"),
    "counts are large": (r"(setp\.gt\.or\.u32 %\w+, %\w+), 0x7FFFFFF,", r"\1, 0,"),
}
"""When lanes do not add up together, and how code is told so."""


@pytest.mark.parametrize("when", APART)
@pytest.mark.parametrize("how", HOW)
def test_each_lane_adds_for_itself(how: str, when: str) -> None:
    """On a GPU, groups that add up at the same time may meet, and counts may reach 2^27."""
    seen = 0
    for shape in SHAPES.values():
        new, layout = instrumented(parse(ptx_kernel(shape)), HOW[how])
        text = print_module(new)
        apart, times = re.subn(*APART[when], text)
        seen += times
        found = []
        for ptx in (text, apart):
            program = Program(parse(ptx))
            program.launch("k" + COUNTED, 3, 70, [np.zeros(4096, np.uint32)])
            found.append(counts_of(layout, counts_in(program, layout)))
        assert found[0] == found[1]
    assert seen > 4


def counted_shapes(how: str) -> Iterator[Function]:
    """The functions of all shapes, counted."""
    for shape in SHAPES.values():
        yield from instrumented(parse(ptx_kernel(shape)), HOW[how])[0].functions()


def definitions(function: Function) -> Mapping[Any, list[Instruction]]:
    """The instructions that write each register."""
    made = defaultdict[Any, list[Instruction]](list)
    for statement in function.body or ():
        if isinstance(statement, Instruction) and statement.operands:
            made[statement.operands[0]].append(statement)
    return made


def added(function: Function) -> list[tuple[Any, Register]]:
    """The addresses and registers of our atomic operations that add a register."""
    run = [s for s in function.body or () if isinstance(s, Instruction) and s.base in ("red", "atom")]
    return [
        (place.base if isinstance(place := s.operands[-2], Address) else place, last)
        for s in run
        if isinstance(last := s.operands[-1], Register) and last.name.startswith("%ccc")
    ]


def origins(made: Mapping[Any, list[Instruction]], register: Register) -> list[Instruction]:
    """The instructions that a register's value comes of."""
    found: list[Instruction] = []
    todo: list[Any] = [register]
    while todo:
        for instruction in made.get(todo.pop(), ()):
            if instruction not in found:
                found.append(instruction)
                todo += instruction.operands[1:]
    return found
