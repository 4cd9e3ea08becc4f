"""``ccc-nvcc``: its own options, and nvcc's own behaviour where nothing is annotated."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cccopt.cli import main as command_line
from cccopt.cli.nvcc import main
from cccopt.toolchain import options
from cccopt.toolchain.discovery import find_nvcc
from cccopt.toolchain.settings import Settings

PLAIN = """\
#include <cstdio>
static __device__ int hidden = 3;
__global__ void scale(int n, float* x) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n) x[i] *= hidden;
}
int main() {
  scale<<<1, 32>>>(0, nullptr);
  std::printf("ran\\n");
}
"""


@pytest.mark.parametrize(
    "argument", ["--ccc=often", "--ccc-form=", "--ccc-stacks=x", "--ccc-instrument=never"]
)
def test_an_unknown_value_of_an_option_is_an_error(argument: str, capsys: pytest.CaptureFixture[str]) -> None:
    name, _, value = argument.partition("=")
    assert main(["-c", "x.cu", argument]) == 1
    said = capsys.readouterr().err
    assert f"error[CCC083]: `{value}` is not a value of `{name}`" in said
    assert f"it takes {', '.join(options.VALUES[name])}" in said


@pytest.mark.parametrize(
    ("argument", "form"),
    [
        ("--ccc-keep", "--ccc-keep=FOLDER"),
        ("--ccc-form", "--ccc-form=FORM"),
        ("--ccc-resident=0", "--ccc-resident=N"),
        ("--ccc-verbose=1", "--ccc-verbose"),
    ],
)
def test_the_form_of_an_option_is_told(argument: str, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-c", "x.cu", argument]) == 1
    said = capsys.readouterr().err
    assert f"error[CCC083]: malformed option `{argument}`" in said
    assert f"write `{form}`" in said


@pytest.mark.parametrize("argument", ["--cccx", "--ccc-what=1"])
def test_an_unknown_option_of_ours_is_an_error(argument: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-c", "x.cu", argument]) == 1
    said = capsys.readouterr().err
    assert f"error[CCC083]: `{argument}` is not an option of ccc-nvcc" in said
    assert "--ccc=auto|always|off" in said


def test_an_options_file_is_nvccs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "options").write_text("-O3 --ccc=off")
    assert main(["-c", "x.cu", "--options-file", str(tmp_path / "options")]) == 1
    assert "error[CCC083]: an options file contains options of ccc-nvcc" in capsys.readouterr().err


def test_without_nvcc_it_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CCC_NVCC", "/nowhere/nvcc")
    assert main(["-c", "x.cu"]) == 1
    assert "error[CCC081]" in capsys.readouterr().err


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    source = tmp_path / "plain.cu"
    source.write_text(PLAIN)
    return source


@pytest.mark.nvcc
@pytest.mark.parametrize(
    "words",
    [
        ["-ptx", "-arch=sm_90"],
        ["-ptx", "-arch=sm_100", "-lineinfo"],
        ["-cubin", "-arch=sm_90"],
        [
            "-fatbin",
            "-gencode",
            "arch=compute_90,code=[sm_90,compute_90]",
            "-gencode",
            "arch=compute_80,code=sm_80",
        ],
    ],
    ids=" ".join,
)
def test_what_is_not_annotated_comes_out_as_nvcc_makes_it(
    plain: Path, words: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    ours, theirs = plain.parent / "ours", plain.parent / "theirs"
    assert main([*words, str(plain), "-o", str(ours)]) == 0
    assert capfd.readouterr() == ("", "")
    subprocess.run([find_nvcc().path, *words, str(plain), "-o", str(theirs)], check=True)
    made = ours.read_bytes()
    if "-ptx" in words:
        made, _, stamp = made.removesuffix(b"\n").rpartition(b"\n")
        made += b"\n"
        assert re.fullmatch(rb"// cccopt [0-9.]+ \(cfg [0-9a-f]{8}\)", stamp)
    assert made == theirs.read_bytes()


@pytest.mark.nvcc
def test_an_executable_links_and_runs(plain: Path) -> None:
    program = plain.parent / "program"
    assert main(["-arch=sm_90", str(plain), "-o", str(program)]) == 0
    assert subprocess.run([program], capture_output=True, text=True, check=True).stdout == "ran\n"


@pytest.mark.nvcc
def test_nvccs_messages_and_status_pass_through(
    plain: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(plain.parent)
    Path("plain.cu").write_text(PLAIN.replace("i < n", "i < m"))
    expected = subprocess.run(
        [find_nvcc().path, "-c", "plain.cu"], capture_output=True, text=True, check=False
    )
    assert main(["-c", "plain.cu"]) == expected.returncode != 0
    assert capfd.readouterr().err == expected.stderr
    assert "plain.cu(5): error" in expected.stderr


@pytest.mark.nvcc
def test_the_version_names_both(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    *theirs, ours = capfd.readouterr().out.splitlines()
    assert any(line.startswith("Cuda compilation tools, release") for line in theirs)
    # Meson reads the text behind the last V.
    assert ours.startswith("cccopt ")
    assert "V" not in ours


@pytest.mark.nvcc
@pytest.mark.parametrize("word", ["--help", "-h"])
def test_the_help_has_our_options_and_then_nvccs(word: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([word]) == 0
    ours, _, theirs = capfd.readouterr().out.partition("The options of nvcc")
    for name, value, _, otherwise in options.TABLE:
        (line,) = re.findall(rf"^{re.escape(options.spelled(name, value))} .*$", ours, re.MULTILINE)
        assert ("(default: " in line) == bool(otherwise)
    assert "--options-file" not in ours
    assert "--options-file" in theirs


@pytest.mark.parametrize("variable", ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"])
def test_of_two_options_the_last_is_used(
    variable: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As nvcc does with its own: the words of one variable come first, those of the other last."""
    told = tmp_path / "told"
    fake = tmp_path / "nvcc"
    fake.write_text(f'#!/bin/sh\necho "$CCC_OPTIONS" >{told}\n')
    fake.chmod(0o755)
    monkeypatch.setattr("cccopt.cli.around_nvcc.find_program", lambda named: (str(fake), ""))
    monkeypatch.setenv("CCCOPT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(variable, "-O3 --ccc=off")
    assert main(["--ccc=always", "-c", "x.cu"]) == 0
    expected = "off" if variable == "NVCC_APPEND_FLAGS" else "always"
    assert Settings.of_words(told.read_text().splitlines()).mode == expected


@pytest.mark.nvcc
def test_its_configuration_changes_with_what_changes_the_output(capfd: pytest.CaptureFixture[str]) -> None:
    lines = set()
    for given in ([], ["--ccc=always"], ["--ccc=off"], ["--ccc-keep-going"]):
        assert main([*given, "-V"]) == 0
        lines.add(capfd.readouterr().out.splitlines()[-1])
    assert len(lines) == 4
    assert main(["--ccc=auto", "--ccc-verbose", "-V"]) == 0
    assert capfd.readouterr().out.splitlines()[-1] in lines


@pytest.mark.nvcc
def test_a_compiler_launcher_passes_the_compiler_first(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    real = find_nvcc().driver
    for compiler in (str(real), "nvcc") if shutil.which("nvcc") else (str(real),):
        assert main([compiler, "--version"]) == 0
        assert capfd.readouterr().out.splitlines()[-1].startswith("cccopt ")
        assert main(["--ccc=off", compiler, "--version"]) == 0
        assert capfd.readouterr().out.splitlines()[-1].startswith("cccopt ")
    assert main(["sh", compiler, "-c", "x.cu"]) != 0
    assert "error[CCC081]: `sh` is not an nvcc" in capfd.readouterr().err
    # What is no compiler is nvcc's to judge.
    (tmp_path / "nvcc.cu").write_text(PLAIN)
    assert main([str(tmp_path / "nvcc.cu"), "--dryrun"]) == 0
    assert "nvcc.cu" in capfd.readouterr().err


@pytest.mark.nvcc
def test_a_broken_nvcc_that_comes_first_is_named_every_time(
    plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    real = find_nvcc()
    broken = tmp_path / "bin/nvcc"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{broken.parent}:{real.path.parent}:/usr/bin:/bin")
    monkeypatch.setenv("CCCOPT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("cccopt.toolchain.discovery._site_folders", list)
    for variable in ("CCC_NVCC", "CONDA_PREFIX", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(variable, raising=False)
    warning = f"warning[CCC081]: `{broken}` (PATH) is passed over: it does not show where its tools are"
    for _ in range(2):  # searched, and remembered
        assert main(["-arch=sm_90", "-cubin", str(plain), "-o", str(tmp_path / "out")]) == 0
        assert capfd.readouterr().err.startswith(warning)
    assert command_line.main(["explain", str(plain)]) == 0
    assert capfd.readouterr().err.startswith(warning)
    assert command_line.main(["doctor"]) == 0
    assert "nvcc, passed over" in capfd.readouterr().out
    monkeypatch.setenv("CCC_NVCC", str(broken))
    assert main(["-arch=sm_90", "-cubin", str(plain), "-o", str(tmp_path / "out")]) == 1
    assert "error[CCC081]" in capfd.readouterr().err
