"""A run as terminal tables."""

from __future__ import annotations

import io
from dataclasses import replace
from html import escape
from pathlib import Path

import pytest
from rich.console import Console

from cccopt.device.facts import DeviceFacts
from cccopt.driver import marked_ptx
from cccopt.harness.workload import fresh_state, load
from cccopt.profiling.emulated import of_launch
from cccopt.profiling.merging import merged
from cccopt.profiling.run_file import FunctionRun, LineCount, LoopCount, RunFile
from cccopt.profiling.sources import Source, files_of, on_disk
from cccopt.region_profiles import program_of
from cccopt.report import profile_view
from cccopt.report.profile_page import page
from cccopt.report.profile_table import print_run
from cccopt.report.profile_view import (
    binned,
    duration,
    iterations,
    launch_facts,
    ordered,
    percent,
    short_names,
    worst,
)
from cccopt.toolchain.discovery import find_nvcc
from tests.report.example_run import FILE, HEADER, SOURCES, TEXT, TRIPS, counted, timed


def printed(run: RunFile, sources: dict[str, Source] = SOURCES, width: int = 120) -> list[str]:
    stream = io.StringIO()
    print_run(run, sources, Console(file=stream, width=width))
    return stream.getvalue().splitlines()


def row(lines: list[str], begin: str) -> list[str]:
    """The words of the first line that begins so, behind that."""
    line = next(line for line in lines if line.strip().startswith(begin))
    return line.strip().removeprefix(begin).split()


def test_kernels_by_time_and_what_was_not_counted() -> None:
    lines = printed(timed())
    assert "10.0 ms" in lines[0]
    names = [line.split()[:2] for line in lines[3:6]]
    assert names == [["void", "cub::Scan<int>(int"], ["void", "uneven<1>(int*)"], ["g()", "500"]]
    assert row(lines, "void cub::Scan<int>(int const*)") == ["6.50", "ms", "65.0", "%", "7", "not", "counted"]
    time, unit, share, _, launches, *_ = row(lines, "void uneven<1>(int*)")
    assert (time, unit, share, launches) == ("3.00", "ms", "30.0", "1")
    assert row(lines, "g()")[-2:] == ["not", "counted"]


def test_lines_branches_and_loops_with_numbers_that_add_up() -> None:
    run = counted()
    lines = printed(run)
    (function,) = run.functions
    # The loop stands in line 4 of the text, annotations counted.
    assert "for (int i = 0; i < p[threadIdx.x]; ++i) {" in " ".join(row(lines, "uneven <1>.cu:4"))
    assert "work<int>(i && true);" in " ".join(row(lines, "uneven <1>.cu:5"))
    efficiency = 100 * sum(TRIPS) / (32 * (max(TRIPS[:32]) + max(TRIPS[32:])))
    idle = sum(32 * line.warps - line.lanes for line in function.lines) / (32 * function.warps)
    assert row(lines, "void uneven<1>(int*)")[-2:] == [f"{100 * idle:.1f}", "%"]
    at = lines.index(next(line for line in lines if line.startswith("loop")))
    assert lines[at + 1].split()[-4:] == [
        f"{efficiency:.1f}",
        "%",
        "8.0",
        f"{sum(TRIPS) / sum(k > 0 for k in TRIPS):.1f}",
    ]


def test_nothing_in_a_source_reaches_the_terminal_as_a_command() -> None:
    text = "\n".join(printed(replace(counted(), notes=("a\x1b[31mb",))))
    assert not {c for c in text if c != "\n" and not c.isprintable()}


@pytest.mark.parametrize("width", [80, 100, 200])
def test_figures_are_whole_at_any_width(width: int) -> None:
    """Long names and lines give way, as far as 80 columns."""
    run = timed()
    (function, *others) = run.functions
    long = replace(function, shown="a::" * 100)
    lines = printed(replace(run, functions=(long, *others)), width=width)
    tables = [line for line in lines if not line.startswith("note")]
    assert max(map(len, tables)) <= width
    assert "…" not in "".join(tables)
    narrow = [line.split() for line in tables if "3.00 ms" in line]
    assert narrow[0][1:] == [w for line in printed(run) if "3.00 ms" in line for w in line.split()][2:]


def test_sources_that_are_missing_or_have_changed_are_said_so() -> None:
    gone = "\n".join(printed(counted(), {}))
    assert f"note: {FILE} cannot be read" in gone
    assert "(no text)" in gone
    changed = "\n".join(printed(counted(), {FILE: Source(TEXT + "more"), HEADER: Source("")}))
    assert f"note: {FILE} has changed since the run" in changed
    assert "note" not in "\n".join(printed(counted(), {**SOURCES, HEADER: Source("")}))


def test_code_without_line_information_is_said_so() -> None:
    (function,) = counted().functions
    bare = replace(function, lines=tuple(replace(x, file="<ptx>") for x in function.lines))
    text = "\n".join(printed(RunFile(functions=(bare,)), {}))
    assert "note: <ptx> is code without line information" in text
    assert "<ptx>:4" in text or "<ptx>:3" in text


def test_an_empty_run_and_one_that_loses_nothing() -> None:
    assert "no device, 0 runs, 0 kernels, no times" in printed(RunFile())[0]
    (function,) = counted().functions
    full = replace(function, lines=tuple(replace(x, lanes=32 * x.warps) for x in function.lines), loops=())
    assert not [line for line in printed(RunFile(functions=(full,))) if "source" in line]


@pytest.mark.nvcc
def test_the_figures_of_the_documentation_are_what_is_printed(repository: Path) -> None:
    if find_nvcc().version != "13.0.88":
        pytest.skip("the page has the figures of nvcc 13.0.88")
    sample = load("bfs")
    program = program_of(marked_ptx(sample.source, nvcc_options=["-O3", "-lineinfo"]))
    state = fresh_state(sample.inputs("small", seed=1))
    runs = [
        of_launch(program, program.launch(x.kernel, x.grid, x.block, x.arguments), "bfs.cu")
        for x in sample.workload.launches(state)
    ]
    run = replace(merged(runs), runs=1)
    lines = [line.split() for line in printed(run, on_disk(files_of(run.functions)))]
    page = (repository / "docs/profile.md").read_text()
    (block,) = (b for b in page.split("```") if b.startswith("text\ncounted: emulator"))
    shown = [line.split() for line in block.splitlines()[1:] if line != "..."]
    assert len(shown) > 10
    assert [line for line in shown if line not in lines] == []


# --- what both the tables and the page use ---


def test_a_kernel_is_held_against_what_its_gpu_can_do() -> None:
    gpu = DeviceFacts("a", 2, 500_000, 1, 1, 1, 1024, 1, 1, 1)  # 4 instructions a nanosecond, 64 warps
    one = FunctionRun(
        "f",
        "f",
        True,
        "a.cu",
        launches=2,
        time_ns=100,
        launched=32,
        lines=(LineCount("a.cu", 1, 1, 100, 200),),
    )
    run = RunFile(functions=(one,), hardware=(gpu, replace(gpu, name="b")))
    facts = (
        "issue rate 25.0 % of the GPU's peak, an average launch has 25.0 % of the warps that the GPU can hold"
    )
    assert facts in printed(run)
    assert escape(facts) in page(run, SOURCES, title="f")
    assert launch_facts(run, replace(one, launched=999)) == ["issue rate 25.0 % of the GPU's peak"]
    for unknown in (
        replace(run, hardware=()),
        replace(run, hardware=(gpu, replace(gpu, processors=3))),
        replace(run, hardware=(replace(gpu, clock=0),)),
    ):
        assert launch_facts(unknown, one) == []
    assert launch_facts(run, replace(one, time_ns=None)) == []
    assert merged([run, replace(run, hardware=(gpu,))]).hardware == run.hardware


def test_the_worst_lose_most_time() -> None:
    (f,) = counted().functions
    less = replace(f, name="less", time_ns=100)
    more = replace(f, name="more", time_ns=200)
    nothing = FunctionRun("none", "none", True, "a.cu", time_ns=900)
    run = RunFile(functions=(less, nothing, more))
    assert [x.name for x in ordered(run)] == ["none", "more", "less"]
    assert [x.name for x in worst(run)] == ["more", "less"]


def test_names_are_as_short_as_they_can_be_told_apart() -> None:
    names = ["/a/b/x.cu", "/a/c/x.cu", "/d/y.h", "z.cu"]
    assert list(short_names(names).values()) == ["b/x.cu", "c/x.cu", "y.h", "z.cu"]


def test_figures() -> None:
    assert [percent(x) for x in (None, 0, 1e-5, 0.0004, 0.001, 1)] == [
        "–",
        "0.0 %",
        "< 0.1 %",
        "< 0.1 %",
        "0.1 %",
        "100.0 %",
    ]
    assert [duration(x) for x in (None, 7, 1500, 99_000_000, 2.5e9)] == [
        "–",
        "7 ns",
        "1.50 µs",
        "99.0 ms",
        "2.50 s",
    ]
    assert dict(binned([1] * 33)) == {"0": 1, "1": 1, "2–3": 2, "4–7": 4, "8–15": 8, "16–31": 16, "32": 1}
    assert sum(n for _, n in binned(range(33))) == sum(range(33))
    assert iterations(LoopCount("a", 1, 1, 2, 4, 10, 12)) == (5.0, 3.0)
    assert iterations(LoopCount("a", 1, 1, 0, 0, 0, 0)) is None
    assert profile_view.resources(10, 18) == "10 (18)"
    assert profile_view.resources(10, 10) == profile_view.resources(10, None) == "10"
