"""Counts of the PTX on the lines of machine code, by hand."""

import pytest

from cccopt.passes.counting.layout import FunctionLayout, Spot, Unit
from cccopt.passes.instrument import instrumented
from cccopt.profiling.counts import FunctionCounts, WarpsAndLanes
from cccopt.profiling.machine_code import MachineCode, MachineInstruction
from cccopt.profiling.machine_lines import MachineLine, machine_lines, ptx_origins
from cccopt.ptx.parser import parse

# Three units: 2, 1 and 2 instructions at the lines 10, 11 and 12 of the PTX and so on; the second is branched around.
UNITS = tuple(Unit(0, 0, (), -1, (Spot(0, line, 0, count),)) for line, count in ((1, 2), (2, 1), (3, 2)))
COUNTS = FunctionCounts(
    FunctionLayout("k", True, units=UNITS),
    (WarpsAndLanes(10, 320), WarpsAndLanes(4, 40), WarpsAndLanes(10, 300)),
    (),
    (),
)
ORIGINS = {line: ("k", line - 10) for line in range(10, 15)}
SIZES = {"k": 5}


def at(
    ptx: int, line: int, *, guarded: bool = False, control: bool = False, reached: bool = False
) -> MachineInstruction:
    return MachineInstruction("a.cu", line, ptx, guarded, control, reached)


def test_a_run_has_the_counts_of_its_branch() -> None:
    # The first instruction was hoisted out of the last unit.
    code = [at(13, 3), at(10, 1), at(11, 1, guarded=True, control=True), at(12, 2), at(14, 3, control=True)]
    assert machine_lines({"k": COUNTS}, code, ORIGINS, SIZES) == (
        MachineLine("a.cu", 1, 20, 640, 640, 0, 2),
        MachineLine("a.cu", 2, 4, 40, 40, 0, 1),
        MachineLine("a.cu", 3, 14, 360, 360, 0, 2),
    )


def test_without_a_branch_most_instructions_decide() -> None:
    code = [at(10, 1), at(11, 1), at(12, 2), at(13, 3, reached=True), at(99, 3), at(14, 3)]
    assert machine_lines({"k": COUNTS}, code, ORIGINS, SIZES) == (
        MachineLine("a.cu", 1, 20, 640, 640, 0, 2),
        MachineLine("a.cu", 2, 10, 320, 320, 0, 1),
        MachineLine("a.cu", 3, 30, 900, 900, 0, 3),
    )


def test_what_was_branched_around_is_on_in_its_own_lanes() -> None:
    code = [at(10, 1), at(11, 1), at(12, 2, guarded=True), at(11, 1, guarded=True)]
    assert machine_lines({"k": COUNTS}, code, ORIGINS, SIZES) == (
        MachineLine("a.cu", 1, 30, 960, 960, 1, 3),
        MachineLine("a.cu", 2, 10, 320, 40, 1, 1),
    )


def test_code_of_other_ptx_is_refused() -> None:
    with pytest.raises(ValueError, match="has 7 instructions in the cubin's PTX, not 5"):
        machine_lines({"k": COUNTS}, [at(10, 1)], ORIGINS, {"k": 7})


def test_what_was_inlined_has_the_counts_of_the_function_called() -> None:
    called = FunctionCounts(
        FunctionLayout("f", False, units=(Unit(0, 0, (), -1, (Spot(0, 9, 0, 1),)),)),
        (WarpsAndLanes(6, 60),),
        (),
        (),
    )
    code = [at(10, 1), at(20, 9, reached=True), at(10, 1, control=True, reached=True), at(30, 9)]
    origins = {**ORIGINS, 20: ("f", 0), 30: ("unknown", 0)}
    assert machine_lines({"k": COUNTS, "f": called}, code, origins, {**SIZES, "f": 1, "unknown": 3}) == (
        MachineLine("a.cu", 1, 20, 640, 640, 0, 2),
        MachineLine("a.cu", 9, 6, 60, 60, 0, 2),
    )


def test_instructions_that_control_does_not_reach_have_no_origin() -> None:
    ptx = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k()
{
    bra.uni $END;
    bra.uni $END;
$END:
    ret;
}
"""
    origins, sizes = ptx_origins(MachineCode({}, ptx))
    _, layout = instrumented(parse(ptx))
    assert origins == {6: ("k", 0), 9: ("k", 1)}
    assert sizes == {"k": sum(spot.instructions for unit in layout.functions[0].units for spot in unit.spots)}
