"""``ccc-nvcc``: its own options, and nvcc's own behaviour where nothing is annotated."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cccopt.cli.nvcc import main, parse
from cccopt.diagnostic import CccError
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


def test_our_options_are_taken_out() -> None:
    request = parse(
        [
            "-O3",
            "--ccc=always",
            "-arch=sm_90",
            "--ccc-keep-going",
            "--ccc-report=r.json",
            "x.cu",
            "--ccc-verbose",
        ]
    )
    assert request.arguments == ("-O3", "-arch=sm_90", "x.cu")
    assert request.settings == Settings("always", keep_going=True, verbose=True)
    assert request.report == Path("r.json")


def test_settings_travel_through_the_environment() -> None:
    settings = Settings("off", keep_going=True, verbose=True, reports="/r", keep="/k")
    assert Settings.from_environment(settings.environment()) == settings
    assert Settings.from_environment({}) == Settings()


@pytest.mark.parametrize(
    "argument",
    ["--ccc", "--ccc=often", "--ccc-keep", "--ccc-report=", "--ccc-profile=x", "--cccx", "--ccc-verbose=1"],
)
def test_an_unknown_option_of_ours_is_an_error(argument: str) -> None:
    with pytest.raises(CccError) as caught:
        parse(["-c", "x.cu", argument])
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "CCC083"
    assert argument in diagnostic.message


def test_a_compiler_launcher_passes_the_compiler_first(tmp_path: Path) -> None:
    compiler = tmp_path / "nvcc"
    compiler.touch(0o755)
    request = parse([str(compiler), "-c", "x.cu"])
    assert (request.nvcc, request.arguments) == (str(compiler), ("-c", "x.cu"))


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
    "options",
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
    plain: Path, options: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    ours, theirs = plain.parent / "ours", plain.parent / "theirs"
    assert main([*options, str(plain), "-o", str(ours)]) == 0
    assert capfd.readouterr() == ("", "")
    subprocess.run([find_nvcc().path, *options, str(plain), "-o", str(theirs)], check=True)
    assert ours.read_bytes() == theirs.read_bytes()


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
