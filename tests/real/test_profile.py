"""What the profiler is held against: readers and sums, on made-up figures."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tomllib", reason="Python 3.11")

from rich.console import Console

from bench.profile import accuracy, cost, sample
from bench.profile.accuracy import (
    Code,
    Counted,
    kernel,
    place_of,
    profile_of,
    shares,
    without_apart,
    worst_lines,
)
from bench.profile.ncu import Ncu, parse
from bench.profile.programs import Built, chosen, command_of, samples
from bench.real.measure import Run
from bench.real.recipe import Recipe, read_recipe
from cccopt.passes.counting.layout import FunctionLayout, Layout, Spot, Unit
from cccopt.profiling.counts import FunctionCounts, WarpsAndLanes
from cccopt.profiling.machine_code import MachineInstruction
from cccopt.profiling.run_file import FunctionRun, LineCount, LoopCount
from cccopt.profiling.running import KernelTime, ProgramRun
from cccopt.profiling.sample import Sample

PAGE = """"Kernel Name","void scale<(int)4>(int, float *)",
"Address","Source","Warp Stall Sampling (All Samples)","Instructions Executed","# Samples","Instructions Executed",\
"Thread Instructions Executed","Predicated-On Thread Instructions Executed","Avg. Threads Executed"
"0x7f00","      S2R R0, SR_TID.X ","4","1,000","4","1,000","32,000","32,000","32"
"0x7f10","@P0   BRA 0x7f40 ","-","1000","0","1000","32000","16000","32"
"0x7f20","@!P1  ST.E [R2], R0 ","0","1000","0","1000","16000","8000","16"
"0x7f30","      EXIT ","0","0","0","0","0","0","0"
"Kernel Name","void scale<(int)4>(int, float *)",
"Address","Source","Warp Stall Sampling (All Samples)","Instructions Executed","# Samples","Instructions Executed",\
"Thread Instructions Executed","Predicated-On Thread Instructions Executed","Avg. Threads Executed"
"0x7f00","      S2R R0, SR_TID.X ","4","1000","4","1000","32000","32000","32"
"0x7f10","@P0   BRA 0x7f40 ","-","1000","0","1000","32000","16000","32"
"0x7f20","@!P1  ST.E [R2], R0 ","0","1000","0","1000","16000","8000","16"
"0x7f30","      EXIT ","0","0","0","0","0","0","0"
"""
NAME = "_Z5scaleILi4EEviPf"


def test_launches_of_a_kernel_are_added_up() -> None:
    (found,) = parse(PAGE).values()
    assert found.launches == 2
    assert [(i.warps, i.lanes, i.on) for i in found.instructions[:3]] == [
        (2000, 64000, 64000),
        (2000, 64000, 32000),
        (2000, 32000, 16000),
    ]
    # Of a branch active lanes are compared, of what a predicate switches off those that are on.
    assert [i.compared for i in found.instructions] == [64000, 64000, 16000, 0]


def test_columns_may_be_named_as_metrics() -> None:
    page = (
        '==PROF== Connected\n"Kernel Name","k"\n'
        '"#","Source","inst_executed [inst]","thread_inst_executed","thread_inst_executed_true"\n'
        '"0","  NOP","7","200","100"\n'
    )
    assert [(i.warps, i.lanes, i.on) for i in parse(page)["k"].instructions] == [(7, 200, 100)]


@pytest.mark.parametrize("page", ["", "==ERROR== x\n", '"Kernel Name","k"\n"Address","Source"\n"0","NOP"\n'])
def test_a_page_without_counts_gives_none(page: str) -> None:
    assert not any(each.instructions for each in parse(page).values())


def test_ncu_is_run_on_few_launches_and_its_report_read(tmp_path: Path) -> None:
    page = tmp_path / "page.csv"
    page.write_text(PAGE)
    script = tmp_path / "ncu"
    script.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/said\n'
        f'[ "$1" = --import ] && exec cat {page}\n'
        'for each; do [ "$last" = -o ] && : > "$each"; last=$each; done\n'
    )
    script.chmod(0o755)
    found = Ncu(str(script)).profile("./main 1", tmp_path, {"PATH": "/bin:/usr/bin"}, tmp_path, 2, 30)
    assert not found.why
    assert len(found.kernels) == 1
    said = (tmp_path / "said").read_text().splitlines()
    assert "--kernel-id :::1|2 --metrics inst_executed," in said[0]
    assert said[0].endswith("bash -c ./main 1")


def test_ncu_without_permission_is_told(tmp_path: Path) -> None:
    script = tmp_path / "ncu"
    script.write_text("#!/bin/sh\necho '==ERROR== ERR_NVGPUCTRPERM'; exit 1\n")
    script.chmod(0o755)
    found = Ncu(str(script)).profile("./main", tmp_path, {"PATH": "/bin:/usr/bin"}, tmp_path, 0, 30)
    assert "ERR_NVGPUCTRPERM" in found.why


# --- one kernel ---

CODE = Code(
    (
        MachineInstruction("/out/plain/tree/a/./s.cu", 1, 10, False, False),
        MachineInstruction("/out/plain/tree/a/s.cu", 1, 11, True, True),
        MachineInstruction("/out/plain/tree/a/s.cu", 2, 12, True, False, False),
        MachineInstruction("/out/plain/tree/a/s.cu", 3, 13, False, True),
    ),
    {line: (NAME, line - 10) for line in range(10, 14)},
    {NAME: 4},
)
UNITS = tuple(Unit(0, 0, (), -1, (Spot(0, line, 0, count),)) for line, count in ((1, 2), (2, 1), (3, 1)))
COUNTED = Counted(
    Layout(files=("/out/counted/tree/a/s.cu",)),
    FunctionCounts(
        FunctionLayout(NAME, True, units=UNITS),
        (WarpsAndLanes(500, 16000), WarpsAndLanes(400, 4000), WarpsAndLanes(500, 16000)),
        (),
        (),
    ),
    5,
)


def test_a_kernel_is_found_by_any_of_its_names() -> None:
    theirs = parse(PAGE)
    assert profile_of(NAME, [CODE], theirs) is not None
    assert profile_of(NAME, [CODE], parse(PAGE.replace("void scale<(int)4>(int, float *)", NAME))) is not None
    assert (
        profile_of(NAME, [CODE], parse(PAGE.replace("void scale<(int)4>(int, float *)", "scale"))) is not None
    )
    assert profile_of(NAME, [CODE], parse(PAGE.replace("scale", "other"))) is None
    # Other code of the same name.
    assert profile_of(NAME, [replace(CODE, instructions=CODE.instructions * 2)], theirs) is None


def test_both_sides_are_put_on_the_same_lines() -> None:
    found = kernel(NAME, COUNTED, CODE, parse(PAGE)["void scale<(int)4>(int, float *)"])
    assert [line["line"] for line in found["lines"]] == [1, 2, 3]
    first, second, third = found["lines"]
    assert (first["ncu"], first["ptx"], first["machine"]) == (100, 100, 100)
    # 400 warps with 4000 lanes; in the machine code the run's, which ends with the other branch.
    assert (second["ncu"], second["ncu_active"], second["ptx"]) == (25, 50, 31.25)
    assert second["predicated"] == 1
    assert third["ncu"] is None
    assert shares(found["lines"], "ptx") == [2 / 3, 2 / 3]


def test_places_do_not_depend_on_the_build() -> None:
    assert place_of("/x/plain/tree/src/a/../b/./c.cuh", 3) == ("src/b/c.cuh", 3)
    assert place_of("/usr/local/cuda/bin/../targets/include/m.hpp", 3) == (
        "/usr/local/cuda/targets/include/m.hpp",
        3,
    )


def test_at_most_a_tenth_is_listed_apart_and_the_worst_come_first() -> None:
    def line(number: int, warps: int, ours: float | None, predicated: float) -> dict[str, object]:
        values = {"ptx": ours, "machine": ours, "active": ours, "ncu": 50.0, "ncu_active": 50.0}
        return {"file": "s.cu", "line": number, "warps": warps, "predicated": predicated, **values}

    lines = [line(1, 80, 50, 0), line(2, 8, 90, 1), line(3, 10, 56, 0.5), line(4, 2, None, 0)]
    kept, apart = without_apart(lines)
    assert ([each["line"] for each in kept], apart) == ([3, 1, 4], 0.08)
    result = [
        {
            "program": "p",
            "why": "",
            "kernels": [
                {"kernel": "scale(int)", "why": "", "lines": lines, "launches": 1, "launches_ncu": 1}
            ],
        },
        {"program": "q", "why": "no ncu", "kernels": []},
    ]
    assert [each["line"] for each in worst_lines(result)] == [2, 4, 3]
    console = Console(width=200, record=True)
    accuracy.show(result, console)
    text = console.export_text()
    assert "all lines, machine: 80.0 % within 2 points" in text
    assert "q: no ncu" in text


# --- cost ---

RECIPE = Recipe((), "./main", same=("sum .*",), time=(("scale", r"time (\S+)"),))


def seen(nanoseconds: int, *, counted: bool, launches: int = 2) -> ProgramRun:
    time = KernelTime(NAME, counted, launches, nanoseconds * launches, 40 if counted else 32, 0, 2, "GPU")
    return ProgramRun(0, 0, True, True, times=(time,))


def test_ratios_are_of_medians() -> None:
    costs = cost.Costs()
    for kind, of, output in (
        ("plain", (100_000, 110_000, 90_000), "sum 1"),
        ("uncounted", (101_000, 101_000, 101_000), "sum 1"),
        ("counted", (150_000, 900_000, 140_000), "sum 1"),
        ("sampled", (110_000, 109_000, 111_000), "sum 1"),
        ("detailed", (120_000, 120_000, 120_000), "sum 1"),
    ):
        for each in of:
            costs.add(
                kind, RECIPE, Run(0, output, 1.0), seen(each, counted=kind not in ("plain", "uncounted"))
            )
    found = cost.as_json("p", RECIPE, costs)
    (row,) = found["kernels"]
    assert (row["counted"], row["uncounted"]) == (1.5, 1.01)
    assert (row["sampled"], row["detailed"], row["launches"]) == (1.1, 1.2, [2] * 5)
    assert found["results"] == {
        "uncounted": "equal",
        "counted": "equal",
        "sampled": "equal",
        "detailed": "equal",
    }
    assert "all kernels: counted/plain median 1.500, at most 1.50 (1 kernels, 0 above 4)" in cost.summary(
        [found]
    )
    console = Console(width=160, record=True)
    cost.show([json.loads(json.dumps(found))], console)
    assert "32>40" in console.export_text()


def test_other_results_and_missing_times_are_told() -> None:
    costs = cost.Costs()
    for kind, output in (
        ("plain", "sum 1 time 2.0"),
        ("uncounted", "sum 1 time 2.0"),
        ("counted", "sum 2 time 3.0"),
        ("sampled", "sum 1 time 2.0"),
        ("detailed", "sum 1 time 2.0"),
    ):
        costs.add(kind, RECIPE, Run(0, output, 1.0), ProgramRun(0, 0, True, True, untimed="no libcupti"))
    found = cost.as_json("p", RECIPE, costs)
    assert found["kernels"][0]["counted"] == 1.5
    lines = cost.summary([found])
    assert "p: counted: other results than the plain build" in lines
    assert "p: times are the program's: no libcupti" in lines


# --- samples ---


def line(number: int, warps: int, lanes: int, **more: Any) -> LineCount:
    return LineCount("a.cu", number, 0, warps, lanes, **more)


def test_intervals_and_sectors_are_held_against_all_warps() -> None:
    whole = FunctionRun("k", "k()", True, "a.cu", lines=tuple(line(i, 1000, 16_000) for i in range(1, 6)))
    apart = (250, 3000, 250, 5000, 250, 3000, 250, 5000)  # 3.18 * 2309 of 32,000 lanes: 23 points
    lines = (
        line(1, 1000, 16_000 + 3200, groups=apart),  # 10 points off
        line(2, 1000, 16_000 + 9600, groups=apart),  # 30 points
        line(3, 1000, 20_000, groups=(1000, 20_000)),  # nothing is claimed
        line(4, 1000, 16_000, groups=(500, 8000, 500, 8000)),  # line 5 is missing
    )
    loops = LoopCount("x/a.cu", 3, 1, 100, 3000, 1000, 16_000), LoopCount("x/a.cu", 3, 1, 1, 32, 9, 288)
    whole = replace(whole, loops=loops)
    # Of its three ratios, iterations a warp are far off.
    groups = (50, 1500, 500, 8000, 50, 1500, 500, 8000)
    loop = LoopCount("y/a.cu", 3, 1, 50, 3000, 1000, 16_000, groups)
    sampled = replace(whole, lines=lines, loops=(loop,), sample=Sample(1000, 1_000_000))
    detailed = replace(sampled, lines=(line(1, 1000, 16_000, requests=10, sectors=43),))
    found = sample._kernel(whole, sampled, detailed, 40)
    assert (found["held"], found["lines"], found["sectors"]) == (3, 5, [43, 40])
    said = sample.summary([{"program": "p", "kernels": [found], "why": ""}])
    assert said[0] == "intervals hold the figure of all warps on 3 of 5 lines (60.0 %)"
    assert said[1] == "and on 2 of 3 figures of branches and loops (66.7 %)"
    assert said[2] == "sectors within 10 % of Nsight Compute's in 1 of 1 kernels"
    console = Console(width=160, record=True)
    sample.show([{"program": "p", "kernels": [found], "why": "ncu did not end"}], console)
    assert "3 of 5" in console.export_text()


def test_the_raw_page_has_sectors_by_kernel() -> None:
    heads = ["ID", "Kernel Name", "Block Size", *sample.SECTORS]
    units = ["", "", "", *("sector" for _ in sample.SECTORS)]
    rows = [["0", "_Z1kv", "(32, 1, 1)", "1,000", "10", "", "2"], ["1", "_Z1kv", "x", "1", "1", "1", "1"]]
    text = "\n".join(",".join(f'"{cell}"' for cell in row) for row in (heads, units, *rows))
    assert sample.of_raw_page(text) == {"_Z1kv": 1016}


# --- programs ---


def test_samples_are_programs_and_recipes_choose_the_gallery(tmp_path: Path) -> None:
    assert {"sample-bfs", "sample-sssp"} <= {program.name for program, _ in samples()}
    (tmp_path / "md.toml").write_text('build = ["make"]\nrun = "./main 100"\nonce = "./main 1"\n')
    ((program, recipe),) = chosen(tmp_path, ["md", "bfs"])
    assert program.name == "md"
    assert command_of(recipe, once=True) == "./main 1"
    assert command_of(recipe, once=False) == command_of(replace(recipe, once=""), once=True) == "./main 100"
    assert read_recipe(tmp_path / "md.toml").once == "./main 1"
    assert Built("md", recipe, {}, tmp_path, tmp_path).why == ""
