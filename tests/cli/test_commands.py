"""The commands of ``cccopt`` from end to end, in process."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import cccopt
from cccopt.cli import doctor
from cccopt.cli.main import main
from cccopt.diagnostic import CccError, error
from cccopt.passes.pipeline import PIPELINE

# What nvcc makes of an annotated loop over i = tid, tid + 32, ... < n: `if (in[i] > 0) out[i] = 3 * in[i];`
MARKED = """\
.version 8.0
.target sm_80
.address_size 64

.visible .entry _Z5tripliPKiPi(
	.param .u32 n,
	.param .u64 in,
	.param .u64 out
)
.maxntid 32, 1, 1
{
	.reg .pred %p<4>;
	.reg .b32 %r<8>;
	.reg .b64 %rd<8>;

	ld.param.u32 %r1, [n];
	ld.param.u64 %rd1, [in];
	ld.param.u64 %rd2, [out];
	// ccc for.begin 1 line=3:3 file=k.cu
	mov.u32 %r2, %tid.x;
	setp.ge.s32 %p1, %r2, %r1;
	@%p1 bra DONE;
	cvta.to.global.u64 %rd3, %rd1;
	cvta.to.global.u64 %rd4, %rd2;
LOOP:
	// ccc body.begin 1
	mul.wide.s32 %rd5, %r2, 4;
	add.s64 %rd6, %rd3, %rd5;
	ld.global.nc.u32 %r3, [%rd6];
	setp.lt.s32 %p2, %r3, 1;
	@%p2 bra NEXT;
	// ccc if.begin 2 line=5:5 file=k.cu
	mul.lo.s32 %r4, %r3, 3;
	add.s64 %rd7, %rd4, %rd5;
	st.global.u32 [%rd7], %r4;
	// ccc if.end 2
NEXT:
	// ccc body.end 1
	add.s32 %r2, %r2, 32;
	setp.lt.s32 %p3, %r2, %r1;
	@%p3 bra LOOP;
DONE:
	// ccc for.end 1
	ret;
}
"""
WRONG = MARKED.replace("%r3, 3;", "%r3, 4;")
REFUSED = MARKED.replace("// ccc body.end 1", "bar.sync 0;\n\t// ccc body.end 1")

LAUNCH = ["--grid", "1", "--block", "32", "--arg", "i32:100", "--arg", "in.npy", "--arg", "zeros:i32:100"]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("marked.ptx").write_text(MARKED)
    Path("wrong.ptx").write_text(WRONG)
    Path("refused.ptx").write_text(REFUSED)
    np.save("in.npy", np.arange(-50, 50, dtype=np.int32))


def names() -> set[str]:
    return {path.name for path in Path().iterdir()}


def test_transform_writes_rewritten_ptx_and_a_report() -> None:
    assert main(["transform", "marked.ptx", "-o", "out.ptx", "--report", "out.json", "--ccc", "always"]) == 0
    assert "vote.sync" in Path("out.ptx").read_text()
    report = json.loads(Path("out.json").read_text())
    assert (report["schema"], report["cccopt"]) == (1, cccopt.__version__)
    regions = report["units"][0]["regions"]
    assert {(r["region"], r["outcome"]) for r in regions} == {(1, "rewritten"), (2, "rewritten")}
    assert report == cccopt.transform(MARKED, ccc="always", name="marked.ptx").report


def test_transform_writes_what_each_pass_makes() -> None:
    assert (
        main(["transform", "marked.ptx", "-o", "out.ptx", "--ccc", "always", "--explorer", "view.json"]) == 0
    )
    (found,) = json.loads(Path("view.json").read_text())["results"].values()
    assert [step["name"] for step in found] == [*(name for name, _ in PIPELINE), "restore-declined"]
    for step, following in pairwise(found):
        assert step["after"] == following["before"]
    assert all(step["irChanged"] == (step["before"] != step["after"]) for step in found)
    assert {step["name"]: step["irChanged"] for step in found}["collect-contexts"]
    given, made = (
        "\n".join(line["text"] for line in step) for step in (found[0]["before"], found[-1]["after"])
    )
    assert "ccc for.begin" in given
    assert made in Path("out.ptx").read_text()
    assert "vote.sync" in made
    assert "vote.sync" not in given


def test_transform_says_that_there_are_no_marks(capsys: pytest.CaptureFixture[str]) -> None:
    plain = ".version 8.0\n.target sm_90\n.address_size 64\n"
    Path("plain.ptx").write_text(plain)
    assert main(["transform", "plain.ptx", "-o", "out.ptx"]) == 0
    assert Path("out.ptx").read_text() == plain
    assert "plain.ptx has no marks" in capsys.readouterr().err


def test_transform_off_changes_no_byte() -> None:
    assert main(["transform", "marked.ptx", "-o", "out.ptx", "--ccc", "off"]) == 0
    assert Path("out.ptx").read_text() == MARKED


def test_transform_refuses_without_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    before = names()
    command = ["transform", "refused.ptx", "-o", "out.ptx", "--report", "out.json", "--ccc", "always"]
    assert main(command) == 1
    assert "error[CCC038]" in capsys.readouterr().err
    assert names() == before
    assert main([*command, "--keep-going"]) == 0
    assert "warning[CCC038]" in capsys.readouterr().err
    assert Path("out.ptx").read_text() == REFUSED


@pytest.mark.parametrize("command", [["transform", "bad.ptx", "-o", "out.ptx"], ["explain", "bad.ptx"]])
def test_what_is_no_ptx_is_an_error_with_its_line(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("bad.ptx").write_text(MARKED.replace("ret;", "ret"))
    assert main(command) == 1
    said = capsys.readouterr().err
    assert re.search(r"error\[CCC00\d\]", said)
    assert "bad.ptx:4" in said
    assert "Traceback" not in said
    assert "out.ptx" not in names()


def test_explain_shows_regions_contexts_and_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "marked.ptx", "--ccc", "always", "--dot", "graph.dot"]) == 0
    said = capsys.readouterr().out
    assert "region 1, `for` in `_Z5tripliPKiPi` at k.cu:3: rewritten" in said
    assert "region 2, `if` in `_Z5tripliPKiPi` at k.cu:5: rewritten" in said
    assert re.search(r"%r3 +\S+ +collected +\S", said)
    assert re.search(
        r"issue slots per run, .*, (always breaks even|breaks even at .*) \(instructions alone\)", said
    )
    parts = (
        r"  (before|after): +(\d+) issue slots per warp iteration"
        r" \(code (\d+)(.*); memory traffic (\d+)\)"
    )
    (before, _, *_), (after, _, _, added, _) = re.findall(parts, said)
    assert (before, after) == ("before", "after")
    assert re.fullmatch(r", votes and contexts \d+", added)
    graph = Path("graph.dot").read_text()
    assert graph.startswith("digraph ptx {")
    assert "// ccc if.begin 2" in graph


def test_explain_shows_a_refusal_as_its_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "refused.ptx", "--ccc", "always"]) == 0
    assert "warning[CCC038]" in capsys.readouterr().out


def test_explain_says_how_to_begin(capsys: pytest.CaptureFixture[str]) -> None:
    Path("plain.ptx").write_text(re.sub(r"\t// ccc .*\n", "", MARKED))
    assert main(["explain", "plain.ptx"]) == 0
    assert "put `#pragma ccc for` above a loop" in capsys.readouterr().out


@pytest.mark.nvcc
def test_explain_compiles_a_source_with_options_for_nvcc(capsys: pytest.CaptureFixture[str]) -> None:
    Path("k.cu").write_text(
        "__global__ void k(int n, const int* __restrict__ in, int* out) {\n"
        "#pragma ccc for block(64)\n"
        "  for (int i = threadIdx.x; i < n; i += LANES) {\n"
        "#pragma ccc if\n"
        "    if (in[i] > 0) out[i] = in[i] / 7;\n  }\n}\n"
    )
    assert main(["explain", "k.cu"]) == 1
    assert 'identifier "LANES" is undefined' in capsys.readouterr().err
    assert main(["explain", "k.cu", "--dot", "k.dot", "--nvcc=-DLANES=64", "--ccc=always"]) == 0
    assert "region 2, `if` in `_Z1kiPKiPi` at k.cu:5: rewritten" in capsys.readouterr().out
    assert "ccc if.begin 2" in Path("k.dot").read_text()


def test_emulate_runs_saves_and_counts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["emulate", "marked.ptx", "tripl", *LAUNCH, "--save", "2=out.npy"]) == 0
    source = np.load("in.npy")
    assert np.array_equal(np.load("out.npy"), np.where(source > 0, 3 * source, 0))
    assert re.search(r"warp execution efficiency +\d+\.\d%", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("extra", "code"),
    [
        (["--save", "3=x.npy"], "CCC089"),
        (["--save", "0=x.npy"], "CCC089"),
        (["--arg", "i32:1"], "CCC076"),
        (["--arg", "absent.npy"], "CCC086"),
    ],
)
def test_emulate_refuses_what_it_cannot_use(
    extra: list[str], code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = names()
    assert main(["emulate", "marked.ptx", "tripl", *LAUNCH, *extra]) == 1
    assert f"error[{code}]" in capsys.readouterr().err
    assert names() == before


def test_verify_finds_the_same_and_the_first_difference(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["transform", "marked.ptx", "-o", "out.ptx", "--ccc", "always"]) == 0
    assert main(["verify", "marked.ptx", "out.ptx", "tripl", *LAUNCH, "--shuffle", "1"]) == 0
    assert "same" in capsys.readouterr().out
    assert main(["verify", "marked.ptx", "wrong.ptx", "tripl", *LAUNCH]) == 1
    assert "argument 2[51] is 3 before and 4 after" in capsys.readouterr().out


@pytest.mark.nvcc
def test_doctor_finds_what_a_compilation_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    assert "lines of PTX for sm_90" in capsys.readouterr().out


def test_doctor_says_what_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> None:
        raise CccError(error("CCC080", "no nvcc found", help="install one"))

    monkeypatch.setattr(doctor, "find_nvcc", none)
    assert main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert re.search(r"MISSING +nvcc +no nvcc found +install one", said)


def test_workloads_may_stand_behind_options(capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown one is told, so it was read; what is no workload's place is refused as ever."""
    assert main(["bench", "cte", "--policy", "warp", "no_such_workload"]) == 1
    assert "no_such_workload" in capsys.readouterr().err
    for unknown in (["doctor", "more"], ["bench", "--no-such-option"]):
        with pytest.raises(SystemExit, match="2"):
            main(unknown)
        assert f"unrecognized arguments: {unknown[1]}" in capsys.readouterr().err


def test_the_public_names() -> None:
    module = cccopt.parse(MARKED)
    assert cccopt.parse(cccopt.print(module)) == module
    buffers = [np.arange(-50, 50, dtype=np.int32), np.zeros(100, np.int32)]
    profile = cccopt.emulate(MARKED, "tripl", grid=(1, 1, 1), block=(32, 1, 1), args=[100, *buffers])
    assert isinstance(profile, cccopt.Profile)
    assert 0 < profile.warp_efficiency <= 1
    assert buffers[1][99] == 147
    assert all(hasattr(cccopt, name) for name in cccopt.__all__)
    with pytest.raises(AttributeError):
        _ = cccopt.nothing  # type: ignore[attr-defined]


def test_help_is_a_map(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    said = capsys.readouterr().out
    for command in ("doctor", "profile", "advise", "explain", "tune", "bench"):
        assert re.search(rf"^  cccopt {command}\b", said, re.MULTILINE), command
    with pytest.raises(SystemExit):
        main(["explain", "--help"])
    assert "\nShow the regions of a file" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "completed"),
    [("pro", "profile"), ("bench --dem", "--demo"), ("verify --sh", "--shuffle"), ("explain gi", "given.cu")],
)
def test_a_shell_completes_commands_options_and_files(
    words: str, completed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["--completion", "bash"])
    (tmp_path / "script").write_text(capsys.readouterr().out)
    (tmp_path / "given.cu").touch()
    command = f"""
source ./script
COMP_WORDS=(cccopt {words}) COMP_CWORD={words.count(" ") + 1} COMP_LINE="cccopt {words}" COMP_POINT={len(words) + 7}
_shtab_cccopt
echo "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert completed in done.stdout.split()


@pytest.mark.parametrize("shell", ["zsh", "tcsh"])
def test_other_shells_have_scripts(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--completion", shell])
    assert "profile" in capsys.readouterr().out


def test_completion_needs_shtab(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["--completion", "bash"]) == 1
    assert "pip install 'cccopt[completion]" in capsys.readouterr().err
