"""``cccopt advise`` and ``ccc-nvcc --ccc-candidates``: what is printed, written and refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from cccopt.cli import nvcc
from cccopt.cli.main import main
from cccopt.driver import compile

pytestmark = pytest.mark.nvcc

SOURCE = """\
__device__ unsigned step(unsigned x) { return x & 1 ? 3 * x + 1 : x / 2; }

extern "C" __global__ void __launch_bounds__(256)
steps(int n, const unsigned* __restrict__ start, unsigned* __restrict__ out) {
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    unsigned x = start[i], count = 0;
    while (x > 1) {
      x = step(x);
      ++count;
    }
    out[i] = count;
  }
}

extern "C" __global__ void even(int n, unsigned* out) {
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) out[i] = i;
}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("steps.cu").write_text(SOURCE)
    return tmp_path


def _emulated(*options: str) -> None:
    """Writes run.json: the kernel `steps` on the emulator, over random numbers."""
    words = ["--ccc-candidates", "-arch=sm_90", *options, "-ptx", "steps.cu", "-o", "marked.ptx"]
    assert nvcc.main(words) == 0
    np.save("start.npy", np.random.default_rng(1).integers(1, 1000, 2048).astype(np.uint32))
    launch = [
        "--grid",
        "1",
        "--block",
        "256",
        "--arg",
        "i32:2048",
        "--arg",
        "start.npy",
        "--arg",
        "zeros:u32:2048",
    ]
    assert main(["emulate", "marked.ptx", "steps", *launch, "--profile", "run.json"]) == 0


def test_a_run_tells_what_pays(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _emulated()
    capsys.readouterr()
    assert main(["advise", "run.json", "--json", "advice.json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    first, *rest = out.splitlines()
    assert first.startswith("1. steps: predicted ")
    assert [line.strip() for line in rest[:6]] == [
        "steps.cu:5:3",
        "#pragma ccc for",
        "for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {",
        "steps.cu:7:5",
        "#pragma ccc while",
        "while (x > 1) {",
    ]
    promise = rest[6].strip()
    assert promise.startswith("You vouch that the iterations of this loop may run in any order")
    assert promise.endswith("(steps.cu:5:3).")
    assert "even" in out
    kernels = {kernel["kernel"]: kernel for kernel in json.loads(Path("advice.json").read_text())["kernels"]}
    assert kernels["steps"]["pays"]
    gain, (low, high) = kernels["steps"]["gain"], kernels["steps"]["gain_range"]
    assert gain > 1.25
    assert f"({low:.2f}x to {high:.2f}x)" in first
    assert low < gain < high
    pragmas = [(p["pragma"], p["line"]) for p in kernels["steps"]["pragmas"]]
    assert pragmas == [("#pragma ccc for", 5), ("#pragma ccc while", 7)]


def test_what_gains_too_little_for_auto_is_worth_measuring(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _emulated()
    capsys.readouterr()
    monkeypatch.setattr("cccopt.advising.preferences.SAFE_GAIN", 100.0)
    assert main(["advise", "run.json", "--json", "advice.json", "--html", "run.html", "--apply"]) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith("1. steps: predicted ")
    assert any(line.strip().startswith("Worth measuring: `auto` rewrites it only if") for line in rest)
    assert rest[-1].startswith("Nothing was written")
    assert Path("steps.cu").read_text() == SOURCE
    assert "Worth measuring: " in re.sub("<[^>]*>", "", Path("run.html").read_text())
    kernels = {kernel["kernel"]: kernel for kernel in json.loads(Path("advice.json").read_text())["kernels"]}
    assert (kernels["steps"]["pays"], kernels["steps"]["may_pay"]) == (False, True)
    monkeypatch.setattr("cccopt.advising.suggestions.LEAST_GAIN", 100.0)
    assert main(["advise", "run.json"]) == 0
    assert "Better left alone (--all shows what was tried):\n  steps: " in capsys.readouterr().out


def test_what_pays_is_written_for_editors(folder: Path) -> None:
    _emulated()
    assert main(["advise", "run.json", "--sarif", "found.sarif"]) == 0
    (run,) = json.loads(Path("found.sarif").read_text())["runs"]
    (found,) = run["results"]
    assert (found["ruleId"], found["level"]) == ("CCC120", "note")
    first = found["locations"][0]["physicalLocation"]
    assert (first["artifactLocation"]["uri"], first["region"]["startLine"]) == ("steps.cu", 5)
    assert "write `#pragma ccc for" in found["message"]["text"]
    assert "any order" in found["message"]["text"]
    assert [note["physicalLocation"]["region"]["startLine"] for note in found["relatedLocations"]] == [7]


def test_a_page_shows_runs_with_what_to_write(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _emulated("-lineinfo")
    assert main(["advise", "run.json", "--html", "run.html"]) == 0
    html = Path("run.html").read_text()
    assert "Worth annotating" in html
    assert re.findall(r'suggested">([^<]*)<', html) == [
        "write above: #pragma ccc for",
        "write above: #pragma ccc while",
    ]
    capsys.readouterr()
    assert main(["advise", "steps.cu", "--html", "code.html"]) == 1
    assert "the page can show only runs, and a source was given" in capsys.readouterr().err
    assert not Path("code.html").exists()


def test_a_patch_is_printed_and_applied(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _emulated()
    capsys.readouterr()
    assert main(["advise", "run.json", "--diff"]) == 0
    out, _ = capsys.readouterr()
    added = [line for line in out.splitlines() if line.startswith("+") and not line.startswith("+++")]
    assert added == ["+#pragma ccc for", "+#pragma ccc while"]
    assert Path("steps.cu").read_text() == SOURCE
    assert main(["advise", "run.json", "--apply"]) == 0
    lines = Path("steps.cu").read_text().splitlines()
    assert [line for line in lines if not line.startswith("#pragma ccc")] == SOURCE.splitlines()
    assert lines[4] == "#pragma ccc for"
    assert "Pragmas were written into steps.cu." in capsys.readouterr().out
    # What is annotated is not advised on again.
    assert main(["advise", "steps.cu"]) == 0
    assert "steps:" not in capsys.readouterr().out


def test_the_counts_are_a_profile_of_the_annotated_source(folder: Path) -> None:
    _emulated()
    assert main(["advise", "run.json", "--apply", "--save-profile", "steps.json"]) == 0
    program = compile("steps.cu", profile="steps.json")
    regions = program.report["units"][0]["regions"]
    assert [(region["kind"], region["outcome"]) for region in regions] == [
        ("for", "rewritten"),
        ("while", "rewritten"),
    ]
    assert not any(region["cost"]["assumed"] for region in regions)
    # Without it, nothing tells that they pay.
    assert {r["outcome"] for r in compile("steps.cu").report["units"][0]["regions"]} == {"declined"}


def test_a_profile_needs_counts_and_a_source(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", "steps.cu", "--apply", "--save-profile", "steps.json"]) == 1
    assert "cannot use the argument `--save-profile`" in capsys.readouterr().err
    assert Path("steps.cu").read_text() == SOURCE


def test_without_a_run_the_way_to_one_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", "steps.cu"]) == 0
    out, _ = capsys.readouterr()
    assert "1. steps: only a run can tell" in out
    assert "written" not in out
    assert main(["advise", "steps.cu", "--apply"]) == 0
    assert "Nothing was written: a suggestion is written by default only if" in capsys.readouterr().out
    assert Path("steps.cu").read_text() == SOURCE
    way = "To see what the kernels marked `only a run can tell` would gain, build with `ccc-nvcc --ccc-candidates"
    assert f"{way} --ccc-instrument`" in out


def test_nothing_is_written_where_nothing_is_suggested(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("even.cu").write_text("__global__ void even(unsigned* out) { out[threadIdx.x] = 1; }")
    assert main(["advise", "even.cu", "--apply"]) == 0
    assert "Nothing was written: there are no suggestions." in capsys.readouterr().out


def test_instances_of_a_template_are_told_together(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = SOURCE.replace(
        'extern "C" __global__ void __launch_bounds__(256)\nsteps',
        "template <class T> __global__ void\nsteps",
    )
    instances = (
        f"template __global__ void steps<{t}>(int, const unsigned*, unsigned*);\n" for t in ("int", "float")
    )
    Path("steps.cu").write_text(text + "".join(instances))
    assert main(["advise", "steps.cu"]) == 0
    out = capsys.readouterr().out
    assert "1. void steps<float>(int, unsigned int const*, unsigned int*): only a run can tell" in out
    assert "The same pragmas apply to void steps<int>(int, unsigned int const*, unsigned int*)." in out
    assert "\n2. " not in out


def test_nothing_to_annotate_is_an_answer(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("steps.cu").write_text("__global__ void k(int* a) { a[0] = 1; }\n")
    assert main(["advise", "steps.cu"]) == 0
    assert capsys.readouterr().out == "no kernel here has a loop or branch left to annotate\n"


def test_a_profile_of_annotations_is_none_of_candidates(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("run.json").write_text('{"schema": 1, "kernels": {}}')
    assert main(["advise", "run.json"]) == 1
    assert "error[CCC089]: cannot use the argument `run.json`" in capsys.readouterr().err


TWICE = """\
extern "C" __global__ void __launch_bounds__(256) steps(int n, const unsigned* start, unsigned* out) {
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    unsigned x = start[i];
    if (x % 2 == 0) {
      unsigned count = 0;
      while (x > 1) {
        x = x % 2 == 0 ? x / 2 : 3 * x + 1;
        ++count;
      }
      x = count * count % 17 + count / 3;
    }
    out[i] = x;
  }
}
"""


def _alternatives() -> list[list[str]]:
    """The pragmas of the only suggestion and of its alternatives, after a run of `TWICE`."""
    Path("steps.cu").write_text(TWICE)
    _emulated()
    assert main(["advise", "run.json", "--json", "advice.json"]) == 0
    (kernel,) = json.loads(Path("advice.json").read_text())["kernels"]
    assert all(1.05 <= each["gain"] <= kernel["gain"] for each in kernel["alternatives"])
    return [[p["pragma"] for p in each["pragmas"]] for each in (kernel, *kernel["alternatives"])]


def test_alternatives_are_printed_and_written_by_number(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, *others = _alternatives()
    assert len(others) == 2
    out = capsys.readouterr().out
    for number, pragmas in enumerate(others, 2):
        _, _, rest = out.partition(f"   1.{number}. Alternative, worth measuring: predicted ")
        lines = rest.splitlines()[1 : 1 + len(pragmas)]
        assert [line.partition(": ")[2] for line in lines] == pragmas
    assert main(["advise", "run.json", "--diff", "--only", "1.3"]) == 0
    written = [line[1:].strip() for line in capsys.readouterr().out.splitlines() if "#pragma ccc" in line]
    assert written == others[1] != first


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ("1.4", "suggestion 1 has no such alternative"),
        ("2.1", "there is only number 1"),
        ("1,1.2", "it and another one that is named are alternatives for `steps`"),
    ],
)
def test_a_kernel_gets_one_of_its_alternatives(
    numbers: str, said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _alternatives()
    assert main(["advise", "run.json", "--apply", "--only", numbers]) == 1
    assert said in capsys.readouterr().err
    assert Path("steps.cu").read_text() == TWICE


def test_what_was_written_is_compiled(folder: Path) -> None:
    _alternatives()
    assert main(["advise", "run.json", "--apply", "--check", "--only", "1.3"]) == 0
    assert Path("steps.cu").read_text().count("#pragma ccc") == 3


def test_what_is_refused_is_undone(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _alternatives()
    shared = TWICE.replace("    out[i]", "    __syncthreads(); out[i]")
    Path("steps.cu").write_text(shared)
    assert main(["advise", "run.json", "--apply", "--check"]) == 1
    assert "error[CCC038]" in capsys.readouterr().err
    assert Path("steps.cu").read_text() == shared


def test_only_what_is_written_can_be_compiled(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", "steps.cu", "--check"]) == 1
    assert "it compiles what --apply writes" in capsys.readouterr().err


@pytest.mark.parametrize("number", ["0", "x", "1,,2", "1.", "1.0"])
def test_numbers_of_suggestions_are_positive(
    number: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["advise", "steps.cu", "--only", number])
    assert "is not a number of suggestions" in capsys.readouterr().err


def test_a_number_that_is_no_suggestion_is_an_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", "steps.cu", "--apply", "--only", "7"]) == 1
    assert "cannot use the argument `7`" in capsys.readouterr().err
    assert Path("steps.cu").read_text() == SOURCE


def test_candidates_change_no_result_and_no_annotated_profile(folder: Path) -> None:
    _emulated()
    run = json.loads(Path("run.json").read_text())
    assert run["kernels"] == {}
    (unit,) = run["candidates"]
    (counts,) = unit["functions"]
    assert counts["name"] == "steps"
    assert len(counts["warps"]) == len(counts["lanes"])
    assert max(counts["lanes"]) <= 32 * max(counts["warps"])
