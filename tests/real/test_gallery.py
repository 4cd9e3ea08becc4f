"""The gallery's runner on a made-up program: no program of others is here."""

import json
import os
import re
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("tomllib", reason="Python 3.11")

from bench.real.__main__ import build_program, main, parser
from bench.real.build import VARIANTS, Build, build
from bench.real.measure import Run, agree, fault, results, run, shell, short_name, times
from bench.real.outcome import diagnostics, kernel_outcomes
from bench.real.program import (
    Annotation,
    Kernel,
    LineChangedError,
    Program,
    annotated,
    line_after,
    line_hash,
    read_program,
    read_programs,
)
from bench.real.recipe import OURS, Recipe, read_recipe
from bench.real.running import run_program
from bench.real.table import markdown, slowdown, speedups, summary
from tests.workers.driver import make_driver
from tests.workers.items import runs_on

SOURCE = """__global__ void scale(int n, float* out) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    if (out[i] > 1) out[i] = sqrtf(out[i]);
  }
}
"""
LOOP = Annotation("scale.cu", 2, line_hash(SOURCE.split("\n")[1]), "for block(64)")
PATH = Annotation("scale.cu", 3, line_hash(SOURCE.split("\n")[2]), "if")
ORIGIN = ("https://example.org/made-up", "0" * 40, "made-up", "src", "none", "named")
PROGRAM = Program("scale", *ORIGIN, (Kernel("scale", (LOOP, PATH)),))
RECIPE = Recipe(
    build=("cp scale.cu built",), run="cat built", time=(("scale", r"time (\S+)"),), passes="PASS"
)
COMMANDS = {"plain": "true", "ccc": "true"}


def region(line: int, outcome: str = "rewritten") -> dict[str, object]:
    return {"place": {"file": "scale.cu", "line": line}, "outcome": outcome, "form": "split"}


def a_build(*regions: dict[str, object], log: str = "") -> Build:
    remark = {"code": "CCC054", "message": "does nothing", "place": {"file": "scale.cu", "line": 5}}
    return Build("always", True, 2.0, log, ({"units": [{"regions": list(regions), "remarks": [remark]}]},))


def test_pragmas_stand_above_their_lines() -> None:
    assert annotated(SOURCE, (LOOP, PATH)).split("\n")[1:5] == [
        "  #pragma ccc for block(64)",
        "  for (int i = threadIdx.x; i < n; i += blockDim.x) {",
        "    #pragma ccc if",
        "    if (out[i] > 1) out[i] = sqrtf(out[i]);",
    ]
    assert [line_after(each, PROGRAM.annotations) for each in (LOOP, PATH)] == [3, 5]


def test_another_line_is_noticed() -> None:
    with pytest.raises(LineChangedError, match=re.escape("scale.cu:2")):
        annotated(SOURCE.replace("threadIdx.x", "0"), (LOOP,))
    with pytest.raises(LineChangedError):
        annotated("", (PATH,))


def test_white_space_around_a_line_does_not_count() -> None:
    assert line_hash("  a b\r") == line_hash("\ta b") != line_hash("ab")


def test_a_program_is_read(tmp_path: Path) -> None:
    path = tmp_path / "scale.toml"
    head = "".join(
        f'{key} = "x"\n' for key in ("repository", "commit", "checkout", "folder", "licence", "origin")
    )
    kernel = (
        '[[kernel]]\nname = "k"\nannotations = [{ file = "a.cu", line = 7, hash = "0", pragma = "if" }]\n'
    )
    path.write_text(head + kernel)
    program = read_program(path)
    assert program.name == "scale"
    assert program.kernels == (Kernel("k", (Annotation("a.cu", 7, "0", "if"),)),)
    path.write_text(head + 'wrong = "x"\n' + kernel)
    with pytest.raises(TypeError):
        read_program(path)


def test_the_gallery_is_as_large_as_its_page_says() -> None:
    programs = read_programs()
    page = (Path(__file__).parents[2] / "bench/real/README.md").read_text()
    kernels = sum(len(program.kernels) for program in programs)
    assert f"{len(programs)} public programs with {kernels} kernels" in page


def test_every_program_has_a_recipe() -> None:
    names = {program.name for program in read_programs()}
    assert {path.stem for path in OURS.glob("*.toml")} == names
    for name in names:
        recipe = read_recipe(OURS / f"{name}.toml")
        assert any("$NVCC" in line for line in recipe.build)
        assert recipe.once
        assert recipe.time or recipe.passes or recipe.same


def test_a_recipe_is_read(tmp_path: Path) -> None:
    path = tmp_path / "scale.toml"
    path.write_text(
        'build = ["a", "b"]\nrun = "c"\nsame = ["sum .*"]\nrtol = 1e-5\n[time]\nscale = "t=(.*)"\n'
    )
    assert read_recipe(path) == Recipe(
        ("a", "b"), "c", time=(("scale", "t=(.*)"),), same=("sum .*",), rtol=1e-5
    )
    path.write_text('build = []\nrun = "c"\nspeed = 1\n')
    with pytest.raises(TypeError):
        read_recipe(path)
    path.write_text('build = []\nrun = "c"\nsame = ["("]\n')
    with pytest.raises(re.error):
        read_recipe(path)


@pytest.mark.parametrize(
    ("left", "right", "rtol", "equal"),
    [
        ("sum 1.0 a", "sum 1.0 a", 0.0, True),
        ("sum 1.0 a", "sum 1.00001 a", 0.0, False),
        ("sum 1.0 a", "sum 1.00001 a", 1e-4, True),
        ("sum 1.0 a", "sum 1.1 a", 1e-4, False),
        ("sum 1.0 a", "sum 1.0 b", 1e-4, False),
        ("sum 1.0 2.0", "sum 1.0", 1e-4, False),
        ("-3e-2", "-3.00001e-2", 1e-4, True),
        ("nan", "1.0", 1e-4, False),
    ],
)
def test_results_agree(left: str, right: str, rtol: float, equal: bool) -> None:
    assert agree(left, right, rtol) is equal


def test_wrong_results_are_named() -> None:
    recipe = Recipe((), "", passes="PASS", same=(r"^sum .*",))
    plain = Run(0, "PASS\nsum 1\ntime 7", 1.0)
    assert results(recipe, plain) == ["sum 1"]
    assert fault(recipe, Run(0, "PASS\nsum 1\ntime 9", 1.0), plain) == ""
    assert fault(recipe, Run(0, "PASS\nsum 2", 1.0), plain) == "other results than the plain build"
    assert fault(recipe, Run(0, "PASS", 1.0), plain) == "other results than the plain build"
    assert fault(recipe, Run(0, "FAIL\nsum 1", 1.0), plain) == "its own check fails"
    assert fault(recipe, Run(3, "PASS\nsum 1", 1.0), plain) == "status 3"
    silent = Run(0, "PASS", 1.0)
    assert fault(recipe, silent, silent) == "the plain build prints no results"


def test_times_are_summed_and_the_process_stands_in() -> None:
    recipe = Recipe((), "", time=(("k", r"took (\S+)"),))
    assert times(recipe, Run(0, "took 1.5\ntook 2", 9.0)) == {"k": 3.5}
    assert times(recipe, Run(0, "", 9.0)) == {"process": 9.0}


def test_launches_are_timed_of_kernels_of_which_nothing_is_printed() -> None:
    recipe = Recipe((), "", time=(("k", r"k took (\S+)"), ("both", r"both took (\S+)")))
    one = Run(0, "k took 2\nboth took 3", 9.0, {"k": 2e6, "l": 1e6, "other": 5e6})
    assert times(recipe, one, ["k", "l"]) == {"k": 2.0, "l": 1e6}
    assert times(recipe, one, ["m"]) == {"k": 2.0, "both": 3.0}


@pytest.mark.parametrize("name", ["k", "_Z1kPi", "_ZN2ns1kIiEEvT_", "_ZN12_GLOBAL__N_11kIN2ns1aIiEEEEvT_"])
def test_kernels_are_named_as_in_the_source(name: str) -> None:
    assert short_name(name) == "k"


def test_outcomes_come_from_reports_and_messages() -> None:
    (kernel,) = kernel_outcomes(PROGRAM, a_build(region(3), region(5), region(5)))
    assert kernel.accepted
    (kernel,) = kernel_outcomes(PROGRAM, a_build(region(3), region(5), region(5, "declined")))
    assert [outcome.state for _, outcome in kernel.outcomes] == ["rewritten", "declined"]
    assert kernel.outcomes[1][1].detail == "CCC054"
    log = "warning[CCC036]: may touch the same memory\n  --> src/scale.cu:5:5\n   |\n"
    assert diagnostics(log)[0].code == "CCC036"
    (kernel,) = kernel_outcomes(PROGRAM, a_build(log=log))
    assert [(outcome.state, outcome.detail) for _, outcome in kernel.outcomes] == [
        ("dropped", ""),
        ("refused", "CCC036"),
    ]
    assert not kernel.accepted


def test_a_message_inside_of_a_path_goes_to_the_path() -> None:
    log = "error[CCC032]: left by a `break`\n  --> scale.cu:6:1\n"
    (kernel,) = kernel_outcomes(PROGRAM, a_build(log=log))
    assert [outcome.state for _, outcome in kernel.outcomes] == ["dropped", "refused"]


def test_a_kernel_is_named_by_its_head() -> None:
    source = ["template <int N>", "__global__", "void k(", "  int n) {", "  if (n)"]
    grid = Annotation("scale.cu", 1, line_hash(source[0]), "grid")
    path = Annotation("scale.cu", 5, line_hash(source[4]), "if")
    program = Program("scale", *ORIGIN, (Kernel("k", (grid, path)),))
    (kernel,) = kernel_outcomes(program, a_build(region(4), region(7, "declined")))
    assert [outcome.state for _, outcome in kernel.outcomes] == ["rewritten", "declined"]


def test_a_switch_is_reported_by_its_cases() -> None:
    source = ["__global__ void k(int n) {", "  switch (n) {", "    case 1:", "    case 2:"]
    grid = Annotation("scale.cu", 1, line_hash(source[0]), "grid")
    switch = Annotation("scale.cu", 2, line_hash(source[1]), "switch")
    program = Program("scale", *ORIGIN, (Kernel("k", (grid, switch)),))
    (kernel,) = kernel_outcomes(program, a_build(region(2), region(5), region(6)))
    assert kernel.accepted


def stand_in(path: Path, output: str) -> str:
    path.write_text(f"#!/bin/sh\necho '{output}' > built\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "made-up" / "src"
    folder.mkdir(parents=True)
    (folder / "scale.cu").write_text(SOURCE)
    return tmp_path


def test_builds_hold_the_pragmas_or_not(checkout: Path) -> None:
    out = checkout / "out"
    for variant in ("plain", "always"):
        made = build(PROGRAM, RECIPE, [checkout], out / variant, VARIANTS[variant], COMMANDS)
        assert made.succeeded
        text = (out / variant / "tree/src/built").read_text()
        assert ("#pragma ccc" in text) is (variant == "always")


def test_links_to_data_that_a_repository_does_not_hold_are_left_out(checkout: Path) -> None:
    (checkout / "made-up" / "src" / "data.txt").symlink_to("nowhere")
    made = build(PROGRAM, RECIPE, [checkout], checkout / "plain", None, COMMANDS)
    assert made.succeeded


def test_without_a_checkout_there_is_a_sentence(tmp_path: Path) -> None:
    made = build(PROGRAM, RECIPE, [tmp_path], tmp_path / "plain", None, COMMANDS)
    assert not made.succeeded
    assert "example.org/made-up" in made.log


def test_a_checkout_may_have_a_folder_of_its_own_name(checkout: Path) -> None:
    (checkout / "made-up" / "made-up").mkdir()
    for given in (checkout, checkout / "made-up"):
        assert build(PROGRAM, RECIPE, [given], checkout / "out", None, COMMANDS).succeeded


def test_what_was_not_built_is_named(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["bench.real", "--run", str(checkout), "--only", "scale"])
    with pytest.raises(SystemExit):
        main()
    assert "has no build of scale" in capsys.readouterr().err


def test_from_recipe_to_speedup(checkout: Path) -> None:
    recipes = checkout / "recipes"
    recipes.mkdir()
    (recipes / "scale.toml").write_text(
        'build = ["$NVCC scale.cu"]\nrun = "cat built"\npasses = "PASS"\n[time]\nscale = "time (.*)"\n'
    )
    plain = stand_in(checkout / "plain", "PASS time 3")
    ours = stand_in(checkout / "ours", "PASS time 2")
    words = [
        str(checkout),
        "--recipes",
        str(recipes),
        "--out",
        str(checkout / "out"),
        "--nvcc",
        plain,
        "--ccc-nvcc",
        ours,
    ]
    given = parser().parse_args(words)
    built = build_program(PROGRAM, given)
    assert built is not None
    found = run_program(built, given.out, rounds=2, limit=60.0)
    assert speedups(found, "always") == {"scale": 1.5}
    assert slowdown(found, "auto") is not None
    assert "0 of 1 kernels accepted" in summary([found])
    assert "| scale | scale | " in markdown([found])
    assert "| 1.50 | 1.50 |" in markdown([found])
    assert json.loads((given.out / "scale/result.json").read_text()) == found
    assert "sqrtf" not in json.dumps(found)


def test_a_run_ends_at_its_limit_with_all_that_it_started(tmp_path: Path) -> None:
    found = run(Recipe((), "sleep 60 & sleep 60; echo late"), tmp_path, tmp_path, limit=0.2)
    assert (found.status, found.output) == (124, "")
    assert found.seconds < 30


def test_builds_run_elsewhere_without_checkout(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = checkout / "scale.toml"
    recipe.write_text(
        'build = ["echo PASS > built"]\nrun = "cat built $INPUTS/size"\nprepare = ["echo 3 > size"]\n'
    )
    out = checkout / "out"
    places = [str(checkout), "--recipes", str(checkout), "--out", str(out)]
    assert build_program(PROGRAM, parser().parse_args([*places, "--nvcc", "true", "--ccc-nvcc", "true"]))
    shutil.rmtree(checkout / "made-up")
    table = checkout / "table.json"
    monkeypatch.setattr("sys.argv", ["bench.real", "--run", str(out), "--rounds", "1", "--json", str(table)])
    assert main() == 0
    assert "scale" in capsys.readouterr().out
    (result,) = json.loads(table.read_text())
    assert set(result["runs"]) == {"plain", "always", "auto", "collected"}


def test_workers_run_programs_on_a_gpu_each(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(make_driver(checkout)))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,GPU-10")
    lines = {
        "a": f"sleep 0.2; echo $CUDA_VISIBLE_DEVICES >>{checkout}/gpus",
        "b": "kill -9 $PPID",
        "c": f"sleep 0.1; echo $CUDA_VISIBLE_DEVICES >>{checkout}/gpus",
    }
    for name, line in lines.items():
        (checkout / f"{name}.toml").write_text(
            f'build = ["true"]\nrun = "{line}; echo PASS"\npasses = "PASS"\n'
        )
        places = [str(checkout), "--recipes", str(checkout), "--out", str(checkout / "out")]
        given = parser().parse_args([*places, "--variant", "always", "--nvcc", "true", "--ccc-nvcc", "true"])
        assert build_program(replace(PROGRAM, name=name), given)
    table = checkout / "table.json"
    words = ["bench.real", "--run", str(checkout / "out"), "--rounds", "2", "--json", str(table)]
    monkeypatch.setattr("sys.argv", [*words, "--workers", "3"])
    assert main() == 1
    a, b, c = json.loads(table.read_text())
    assert [{run["wrong"] for run in each["runs"].values()} for each in (a, c)] == [{""}, {""}]
    assert b["runs"]["plain"]["wrong"] == "the worker running `b` ended before finishing it"
    # All builds of a program run on one GPU.
    assert sorted((checkout / "gpus").read_text().split()) == ["2"] * 4 + ["GPU-10"] * 4
    said = capsys.readouterr().err
    assert said.startswith("note: workers: 2, not 3: 2 GPUs are visible, and")
    assert "error[CCC121]" in said
    assert [line for line in said.splitlines() if line.startswith(("a:", "c:"))] == ["a: right", "c: right"]


def test_an_interrupted_run_ends_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        while not (tmp_path / "pid").exists():
            time.sleep(0.05)
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "communicate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        shell("echo $$ >it; mv it pid; exec sleep 60", tmp_path, dict(os.environ), limit=60.0)
    assert not runs_on(int((tmp_path / "pid").read_text()))
