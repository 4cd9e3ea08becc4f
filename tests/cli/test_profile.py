"""Profiles from `cccopt emulate` to ``ccc-nvcc``, and what `auto` leaves untouched."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import cccopt
from cccopt.ccc.profitability import decisions
from cccopt.ccc.profitability.decisions import Decision, Decisions
from cccopt.cli.main import main as cccopt_main
from cccopt.cli.nvcc import main
from cccopt.driver.function_texts import definitions
from cccopt.driver.original_functions import with_originals
from cccopt.profiling import run_file

KERNEL = """\
template <int N> __device__ __forceinline__ void work(int n, const float* __restrict__ in, float* out) {
#pragma ccc for
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
#pragma ccc if
    if (in[i] > 0.5f) {
      float x = in[i];
      for (int k = 0; k < N; ++k) x = x * 1.25f + 0.5f;
      out[i] = x;
    }
  }
}
extern "C" __global__ void __launch_bounds__(64) longer(int n, const float* __restrict__ in, float* out) {
  work<400>(n, in, out);
}
extern "C" __global__ void __launch_bounds__(64) shorter(int n, const float* __restrict__ in, float* out) {
  work<2>(n, in, out);
}
"""
TRIPS = 20


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("kernel.cu").write_text(KERNEL)
    draws = np.random.default_rng(1).random(64 * TRIPS, dtype=np.float32)
    # In the one a lane of ten takes the path, in the other all do.
    np.save("rare.npy", np.where(draws < 0.1, np.float32(0.75), np.float32(0.25)))
    np.save("common.npy", draws * np.float32(0.1) + np.float32(0.75))


def build(*options: str) -> dict[str, str]:
    """The kernels that ``ccc-nvcc`` makes, by name."""
    assert main(["-arch=sm_90", "-ptx", "kernel.cu", "-o", "out.ptx", *options]) == 0
    text = Path("out.ptx").read_text()
    return {d.name: text[d.start : d.end] for d in definitions(text) or () if d.body is not None}


def emulate(ptx: str, inputs: str, *options: str) -> int:
    shape = ["--grid", "1", "--block", "64"]
    arguments = ["--arg", f"i32:{64 * TRIPS}", "--arg", f"{inputs}.npy", "--arg", f"zeros:f32:{64 * TRIPS}"]
    return cccopt_main(["emulate", ptx, "longer", *shape, *arguments, *options])


@pytest.mark.nvcc
def test_a_profile_makes_auto_decide_otherwise(capfd: pytest.CaptureFixture[str]) -> None:
    plain = build("--ccc=off")["longer"]
    assert build("--ccc-keep=kept")["longer"] == plain
    marked = "kept/kernel.compute_90.1.ptx"
    for inputs in ("rare", "common"):
        assert emulate(marked, inputs, "--profile", f"{inputs}.json") == 0
    assert build("--ccc-profile=common.json")["longer"] == plain
    assert "vote.sync" in build("--ccc-profile=rare.json", "--ccc-verbose")["longer"]
    assert "vote.sync" in build("--ccc-profile=common.json", "--ccc=always")["longer"]
    capfd.readouterr()
    assert cccopt_main(["explain", "kernel.cu", "--ccc-profile", "common.json"]) == 0
    said = capfd.readouterr().out
    assert "100.0% of lanes (profile)" in said
    assert "CCC068" in said  # of the kernel that did not run
    for words in (["transform", marked, "-o", "t.ptx"], ["explain", marked]):
        assert cccopt_main([*words, "--ccc-profile", "rare.json"]) == 0
    assert "vote.sync" in Path("t.ptx").read_text()


@pytest.mark.nvcc
def test_runs_add_up_in_the_file(capfd: pytest.CaptureFixture[str]) -> None:
    build("--ccc-keep=kept")
    for _ in range(2):
        assert emulate("kept/kernel.compute_90.1.ptx", "common", "--profile", "sum.json") == 0
    regions = json.loads(Path("sum.json").read_text())["kernels"]["longer"]
    assert regions["1"]["lanes"] == regions["2"]["lanes"] == 2 * 64 * TRIPS
    # What is rewritten has no marks, and still lines that were counted; a file of something else is left alone.
    assert emulate("kept/kernel.compute_90.ptx", "common", "--profile", "none.json") == 0
    made = json.loads(Path("none.json").read_text())
    assert made["kernels"] == {}
    assert made["functions"][0]["lines"]
    capfd.readouterr()
    assert emulate("kept/kernel.compute_90.1.ptx", "common", "--profile", "kernel.cu") == 1
    assert "CCC069" in capfd.readouterr().err
    assert Path("kernel.cu").read_text() == KERNEL


@pytest.mark.nvcc
def test_runs_of_different_texts_are_not_added(capfd: pytest.CaptureFixture[str]) -> None:
    build("--ccc-keep=kept", "-lineinfo")
    marked = "kept/kernel.compute_90.1.ptx"
    assert emulate(marked, "common", "--profile", "sum.json") == 0
    Path("kernel.cu").write_text(KERNEL.replace("#pragma ccc if\n", ""))
    assert emulate(marked, "common", "--profile", "sum.json") == 0  # as if it were not annotated yet
    Path("kernel.cu").write_text(f"// a line\n{KERNEL}")
    before = Path("sum.json").read_text()
    assert json.loads(before)["runs"] == 2
    capfd.readouterr()
    assert emulate(marked, "common", "--profile", "sum.json") == 1
    assert "error[CCC068]" in capfd.readouterr().err
    assert Path("sum.json").read_text() == before


def test_a_file_of_the_first_layout_is_added_to(capfd: pytest.CaptureFixture[str]) -> None:
    ptx = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry longer()\n{\nret;\n}\n"
    Path("k.ptx").write_text(ptx)
    region = dict.fromkeys(("entries", "entered", "warps", "lanes", "issued", "packed", "sectors"), 1)
    old = {"schema": 1, "cccopt": "0.1.0", "kernels": {"f": {"1": {"kind": "for", **region}}}}
    Path("old.json").write_text(json.dumps(old))
    shape = ["--grid", "1", "--block", "64"]
    assert cccopt_main(["emulate", "k.ptx", "longer", *shape, "--profile", "old.json"]) == 0
    made = json.loads(Path("old.json").read_text())
    assert made["schema"] == 2
    # It had no times.
    unknown = {"elapsed": 0.0, "resident": 0.0, "launches": 0, "atomics": 0.0, "packed_atomics": 0.0}
    assert made["kernels"] == {"f": {"1": {"kind": "for", **region, **unknown}}}
    assert [(x["file"], x["line"], x["warps"]) for x in made["functions"][0]["lines"]] == [("k.ptx", 6, 2)]


@pytest.mark.nvcc
def test_its_content_is_part_of_the_configuration(capfd: pytest.CaptureFixture[str]) -> None:
    lines = []
    for content in ("one", "other", "one"):
        Path("p.json").write_text(content)
        assert main(["--ccc-profile=p.json", "-V"]) == 0
        lines.append(capfd.readouterr().out.splitlines()[-1])
    assert lines[0] == lines[2] != lines[1]


@pytest.mark.nvcc
def test_a_profile_that_cannot_be_read_ends_the_compilation(capfd: pytest.CaptureFixture[str]) -> None:
    Path("p.json").write_text("{}")
    for file, code in (("p.json", "CCC069"), ("none.json", "CCC086")):
        assert main([f"--ccc-profile={file}", "-arch=sm_90", "-c", "kernel.cu", "-o", "out.o"]) == 1
        assert f"error[{code}]" in capfd.readouterr().err
        assert not Path("out.o").exists()
    assert main(["--ccc-profile=", "-arch=sm_90", "-c", "kernel.cu"]) == 1
    assert "CCC083" in capfd.readouterr().err


@pytest.mark.nvcc
def test_declined_kernels_are_plain_nvccs_beside_rewritten_ones() -> None:
    plain = build("--ccc=off")
    build("--ccc-keep=kept")
    assert emulate("kept/kernel.compute_90.1.ptx", "rare", "--profile", "rare.json") == 0
    ours = build("--ccc-profile=rare.json")
    assert "vote.sync" in ours["longer"]
    assert ours["shorter"] == plain["shorter"]
    # The marks change the code: the one with the other's annotations would not be the same.
    assert build("--ccc=always")["shorter"] != plain["shorter"]
    program = cccopt.compile("kernel.cu", profile="rare.json")
    outcomes = {(r["kernel"], r["outcome"]) for r in program.report["units"][0]["regions"]}
    assert outcomes == {("longer", "rewritten"), ("shorter", "declined")}


@pytest.mark.nvcc
def test_the_page_says_what_became_of_regions(capfd: pytest.CaptureFixture[str]) -> None:
    build("--ccc-keep=kept")
    assert emulate("kept/kernel.compute_90.1.ptx", "rare", "--profile", "rare.json") == 0
    build("--ccc-profile=rare.json", "--ccc-report=report.json")
    shown = ["profile", "--html", "page.html", "--report", "report.json", "rare.json"]
    assert cccopt_main(shown) == 0
    text = Path("page.html").read_text()
    assert "kernel.cu:3: rewritten (split), predicted gain" in text
    for when in ("before", "after"):
        assert re.search(
            rf"{when}: +[\d,]+ issue slots per warp iteration \(code [\d,]+.*; memory traffic", text
        )
    for wrong, code in (("rare.json", "CCC069"), ("kernel.cu", "CCC069"), ("none.json", "CCC086")):
        assert cccopt_main(["profile", "--html", "other.html", "--report", wrong, "rare.json"]) == 1
        assert f"error[{code}]" in capfd.readouterr().err
    assert not Path("other.html").exists()
    assert cccopt_main(["profile", "--report", "report.json", "rare.json"]) == 1
    assert "error[CCC089]: `--report` needs `--html`" in capfd.readouterr().err
    (name,) = (f.name for f in run_file.read("rare.json").functions)
    measured = Decisions("GPU", "13.0", {name: Decision(("6f",), "always", 1.42, 1.38, 1.46)})
    decisions.write("decisions.json", measured)
    assert cccopt_main(["profile", "--html", "page.html", "--decisions", "decisions.json", "rare.json"]) == 0
    assert "1.42x as fast as the plain build" in Path("page.html").read_text()
    assert cccopt_main(["profile", "--decisions", "decisions.json", "rare.json"]) == 1
    assert "error[CCC089]" in capfd.readouterr().err
    assert cccopt_main(["profile", "--html", "other.html", "--decisions", "rare.json", "rare.json"]) == 1
    assert "error[CCC069]" in capfd.readouterr().err


# --- functions from another compilation ---

MODULE = ".version 8.0\n.target sm_75\n.address_size 64\n"
MARK = "// ccc for.begin 1\n"


def entry(name: str, body: str) -> str:
    return f".visible .entry {name}()\n{{\n{body}ret;\n}}\n"


@pytest.mark.parametrize(
    ("outside", "body", "taken"),
    [
        ("", "bar.sync 0;\n", True),
        (".global .u32 v;\n", "bar.sync 0;\n", True),
        (".global .u32 v;\n", "st.global.u32 [v], 0;\n", False),
        ("", "call.uni f;\n", False),
    ],
    ids=["same module", "another variable", "another variable that it names", "a function that is not there"],
)
def test_functions_are_taken_that_name_what_is_there(outside: str, body: str, taken: bool) -> None:
    marked = MODULE + entry("a", MARK) + entry("b", MARK)
    made = MODULE + entry("a", "vote\n") + entry("b", "")
    plain = (
        MODULE
        + outside
        + entry("a", body)
        + entry("b", body)
        + (".func f()\n{\nret;\n}\n" if "f;" in body else "")
    )
    assert with_originals(made, marked, {"a"}, lambda: plain) == (
        MODULE + entry("a", "vote\n") + entry("b", body) if taken else made
    )


def strings(*texts: str) -> str:
    """Line information's strings, as nvcc ends a module with them."""
    lines = "".join(f"$L__info_string{n}:\n.b8 {text}\n\n" for n, text in enumerate(texts))
    return f"\t.section\t.debug_str\n\t{{\n{lines}\n\t}}\n"


@pytest.mark.parametrize(
    ("mine", "label", "all_of_them"),
    [
        (("97,0", "98,0"), 0, ("97,0", "98,0")),  # a function of the markers' own was inlined
        (("98,0", "97,0"), 1, ("98,0", "97,0")),  # and came first
        (("98,0",), 1, ("98,0", "97,0")),
        ((), 0, ("97,0",)),
    ],
)
def test_strings_of_line_information_come_with_the_functions_that_name_them(
    mine: tuple[str, ...], label: int, all_of_them: tuple[str, ...]
) -> None:
    line = ".loc 1 2 3, function_name $L__info_string{}, inlined_at 1 4 5;\n"
    marked = MODULE + entry("a", MARK) + (strings(*mine) if mine else "")
    other = MODULE + entry("a", line.format(0)) + strings("97,0")
    made = marked.replace(MARK, "")
    found = with_originals(made, marked, frozenset(), lambda: other)
    assert found.split() == (MODULE + entry("a", line.format(label)) + strings(*all_of_them)).split()
    # We print bytes apart.
    spaced = with_originals(made.replace(",0", ", 0"), marked, frozenset(), lambda: other)
    assert "".join(spaced.split()) == "".join(found.split())


def test_nothing_is_compiled_again_where_everything_is_rewritten() -> None:
    marked = MODULE + entry("a", MARK) + entry("b", "")
    made = MODULE + entry("a", "vote\n") + entry("b", "")
    assert with_originals(made, marked, {"a"}, lambda: pytest.fail("compiled again")) == made
