"""``ccc-nvcc`` on annotated sources, with the real nvcc."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import cccopt
from cccopt.cli.nvcc import main
from cccopt.toolchain.discovery import find_nvcc

KERNEL = """\
extern "C" __global__ void __launch_bounds__(128) work(int n, const float* __restrict__ in, float* out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
#pragma ccc if
    if (in[i] > 0.5f) {
      float x = in[i];
      for (int k = 0; k < 40; ++k) x = x * 1.25f + 0.5f;
      out[i] = x;
    }
  }
}
"""
REFUSED = KERNEL.replace("  }\n}\n", "    __syncthreads();\n  }\n}\n")
MAIN = """
#include <cstdio>
int main() { std::printf("ran\\n"); }
"""
OTHER = KERNEL.replace("work(", "other_work(")

pytestmark = pytest.mark.nvcc


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test works in a folder of its own that holds the sources."""
    monkeypatch.chdir(tmp_path)
    Path("kernel.cu").write_text(KERNEL)
    Path("refused.cu").write_text(REFUSED)
    Path("main.cu").write_text(MAIN + OTHER)


def nvcc(*arguments: str) -> None:
    """Plain nvcc; what it says of our pragmas does not matter here."""
    subprocess.run([find_nvcc().path, *arguments], check=True, capture_output=True)


def is_rewritten(code: bytes) -> bool:
    """The kernels themselves hold no votes. (nvcc takes comments out of the PTX that it embeds.)"""
    return b"vote.sync" in code


def without_stamp(name: str) -> bytes:
    """PTX that was asked for ends with a line of ours."""
    text, _, stamp = Path(name).read_bytes().removesuffix(b"\n").rpartition(b"\n")
    assert stamp.startswith(b"// cccopt ")
    return text + b"\n"


def test_ptx_is_rewritten_silently(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["-O3", "-arch=sm_90", "--ccc=always", "-ptx", "kernel.cu", "-o", "out.ptx"]) == 0
    assert is_rewritten(Path("out.ptx").read_bytes())
    assert capfd.readouterr() == ("", "")


def test_off_is_plain_nvcc() -> None:
    assert main(["-arch=sm_90", "--ccc=off", "-ptx", "kernel.cu", "-o", "ours"]) == 0
    nvcc("-arch=sm_90", "-ptx", "kernel.cu", "-o", "theirs")
    assert without_stamp("ours") == Path("theirs").read_bytes()


def test_flags_that_nvcc_appends_win_here_and_mean_nothing_to_the_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "--ccc=off")
    assert main(["-arch=sm_90", "--ccc=always", "-ptx", "kernel.cu", "-o", "out.ptx"]) == 0
    assert not is_rewritten(Path("out.ptx").read_bytes())
    # Its caller says what is to be done, and plain nvcc knows no option of ours.
    assert is_rewritten(cccopt.compile("kernel.cu", ccc="always").ptx.encode())


def test_the_machine_code_is_that_of_the_rewritten_ptx() -> None:
    assert main(["-arch=sm_90", "--ccc=always", "-cubin", "kernel.cu", "-o", "on.cubin"]) == 0
    assert main(["-arch=sm_90", "--ccc=off", "-cubin", "kernel.cu", "-o", "off.cubin"]) == 0
    assert Path("on.cubin").stat().st_size > Path("off.cubin").stat().st_size


def test_every_embedded_ptx_is_rewritten() -> None:
    old, new = "arch=compute_80,code=compute_80", "arch=compute_90,code=[sm_90,compute_90]"
    # Without compression the text can be found in the file.
    command = [
        "--ccc=always",
        "-fatbin",
        "-no-compress",
        "-gencode",
        old,
        "-gencode",
        new,
        "kernel.cu",
        "-o",
        "out.fatbin",
    ]
    assert main([*command, "--ccc-report=report.json"]) == 0
    code = Path("out.fatbin").read_bytes()
    pieces = code.split(b".version ")[1:]
    assert len(pieces) == 2
    assert all(is_rewritten(piece) for piece in pieces)
    report = json.loads(Path("report.json").read_text())
    assert report["schema"] == 1
    assert [(u["file"], u["arch"]) for u in report["units"]] == [
        ("kernel.cu", "compute_80"),
        ("kernel.cu", "compute_90"),
    ]
    assert all(any(r["outcome"] == "rewritten" for r in u["regions"]) for u in report["units"])


def test_several_inputs_link_to_a_program_that_runs() -> None:
    assert main(["-arch=sm_90", "-lineinfo", "-Xptxas", "-O3", "kernel.cu", "main.cu", "-o", "program"]) == 0
    assert subprocess.run(["./program"], capture_output=True, text=True, check=True).stdout == "ran\n"


def test_objects_of_several_inputs() -> None:
    assert main(["-arch=sm_90", "-c", "kernel.cu", "main.cu"]) == 0
    assert sorted(p.name for p in Path().glob("*.o")) == ["kernel.o", "main.o"]


@pytest.mark.parametrize("kind", ["-ptx", "-c", "-cubin"])
def test_a_refusal_names_the_line_and_leaves_no_file(kind: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["-arch=sm_90", "--ccc=always", kind, "refused.cu", "-o", "out", "--ccc-report=r.json"]) == 1
    said = capfd.readouterr().err
    assert "error[CCC038]" in said
    assert "refused.cu:" in said
    assert sorted(p.name for p in Path().iterdir()) == ["kernel.cu", "main.cu", "refused.cu"]


def test_a_refusal_has_one_status_however_nvcc_is_run() -> None:
    two = ["-gencode", "arch=compute_80,code=sm_80", "-gencode", "arch=compute_90,code=sm_90"]
    assert main(["-t", "2", *two, "-c", "refused.cu", "-o", "out"]) == 1
    assert not Path("out").exists()


DROPPED = """
int host(int n) {
  int sum = 0;
#pragma ccc while
  do { sum += n; n >>= 1; } while (n);
  return sum;
}
template <typename T> __global__ void never(T* out, int n) {
#pragma ccc for block(64)
  for (int i = threadIdx.x; i < n; i += 64)
#pragma ccc if
    if (out[i] > 0) out[i] = out[i] * out[i];
}
"""


def test_what_reaches_no_kernel_is_a_warning_with_its_place(capfd: pytest.CaptureFixture[str]) -> None:
    Path("dropped.cu").write_text(KERNEL + DROPPED)
    assert main(["-arch=sm_90", "--ccc=always", "-ptx", "dropped.cu", "-o", "ours.ptx"]) == 0
    said = capfd.readouterr().err
    assert said.count("warning[CCC019]: ") == 2
    assert said.count("warning") == 2
    assert "`#pragma ccc while` reaches no kernel" in said
    assert all(f"  --> dropped.cu:{line}:" in said for line in (16, 21, 23))
    assert is_rewritten(Path("ours.ptx").read_bytes())


def test_keep_going_leaves_a_mistake_out(capfd: pytest.CaptureFixture[str]) -> None:
    mistaken = OTHER.replace("ccc if", "ccc iff")
    Path("mistaken.cu").write_text(KERNEL + mistaken)
    command = ["-arch=sm_90", "--ccc=always", "-ptx", "mistaken.cu", "-o", "ours.ptx"]
    assert main(command) == 1
    assert "error[CCC010]" in capfd.readouterr().err
    assert main([*command, "--ccc-keep-going"]) == 0
    said = capfd.readouterr().err
    assert said.count("warning") == 1
    assert "warning[CCC010]: unknown clause" in said or "warning[CCC010]: unknown pragma" in said
    assert is_rewritten(Path("ours.ptx").read_bytes())


def test_keep_going_leaves_the_refused_as_nvcc_makes_it(capfd: pytest.CaptureFixture[str]) -> None:
    command = ["-arch=sm_90", "--ccc=always", "--ccc-keep-going", "-ptx", "refused.cu", "-o", "ours.ptx"]
    assert main(command) == 0
    assert "warning[CCC038]" in capfd.readouterr().err
    nvcc("-arch=sm_90", "-ptx", "refused.cu", "-o", "theirs.ptx")
    assert without_stamp("ours.ptx") == Path("theirs.ptx").read_bytes()


def test_errors_and_warnings_have_the_users_words(capfd: pytest.CaptureFixture[str]) -> None:
    Path("wrong.cu").write_text(KERNEL.replace("float x =", "float unused, x ="))
    assert main(["-arch=sm_90", "-c", "wrong.cu"]) == 0
    said = capfd.readouterr().err
    assert 'wrong.cu(6): warning #177-D: variable "unused" was declared but never referenced' in said
    assert "asm" not in said
    # An error that only the device's half of the program can show.
    Path("wrong.cu").write_text(
        KERNEL.replace("float x =", "\n#ifdef __CUDA_ARCH__\nnone;\n#endif\nfloat x =")
    )
    assert main(["-arch=sm_90", "-c", "wrong.cu", "-o", "wrong2.o"]) != 0
    said = capfd.readouterr().err
    assert 'wrong.cu(8): error: identifier "none" is undefined' in said
    assert "asm" not in said
    assert not Path("wrong2.o").exists()


def test_no_warning_even_where_all_are_errors() -> None:
    strict = ["-Werror", "all-warnings", "-Xcompiler", "-Wall,-Werror"]
    assert main(["-arch=sm_90", *strict, "-c", "kernel.cu"]) == 0


def test_a_mistake_in_an_annotation(capfd: pytest.CaptureFixture[str]) -> None:
    Path("wrong.cu").write_text(KERNEL.replace("ccc if", "ccc iff"))
    assert main(["-c", "wrong.cu", "-o", "wrong.o"]) == 1
    assert "wrong.cu:4:13" in capfd.readouterr().err
    assert not Path("wrong.o").exists()


def test_the_thesis_spelling_is_explained(capfd: pytest.CaptureFixture[str]) -> None:
    Path("thesis.cu").write_text(KERNEL.replace("#pragma ccc", "#CCC"))
    assert main(["-c", "thesis.cu"]) != 0
    assert "write `#pragma ccc if`" in capfd.readouterr().err


def test_stages_are_kept_where_asked() -> None:
    assert main(["-arch=sm_90", "--ccc=always", "--ccc-keep=stages", "-c", "kernel.cu"]) == 0
    stages = {p.name for p in Path("stages").iterdir()}
    assert stages == {"kernel.compute_90.1.ii", "kernel.compute_90.1.ptx", "kernel.compute_90.ptx"}
    assert not is_rewritten(Path("stages/kernel.compute_90.1.ptx").read_bytes())
    assert is_rewritten(Path("stages/kernel.compute_90.ptx").read_bytes())


def test_link_time_code_is_refused_unless_off(capfd: pytest.CaptureFixture[str]) -> None:
    command = ["-arch=sm_90", "-dlto", "-dc", "kernel.cu", "-o", "kernel.o"]
    assert main(command) == 1
    assert "error[CCC087]" in capfd.readouterr().err
    assert main([*command, "--ccc=off"]) == 0


@pytest.mark.parametrize(
    ("source", "runs"),
    [
        (KERNEL, 1),  # marked
        (REFUSED, 2),  # marked, as it is
        (KERNEL.replace("float x =", "float unused, x ="), 2),  # marked, as it is for the warning
        (REFUSED.replace("float x =", "float unused, x ="), 2),  # marked, as it is for both
    ],
)
def test_cicc_runs_no_more_than_it_must(source: str, runs: int) -> None:
    Path("kernel.cu").write_text(source)
    command = ["-arch=sm_90", "--ccc=always", "--ccc-keep-going", "--ccc-report=r.json", "-ptx", "kernel.cu"]
    assert main(command) == 0
    (unit,) = json.loads(Path("r.json").read_text())["units"]
    assert len(unit["device_compiler_seconds"]) == runs
    assert all(0.01 < seconds < 60 for seconds in unit["device_compiler_seconds"])


def test_a_source_with_the_suffix_of_preprocessed_text_is_left_alone() -> None:
    Path("source.ii").write_text(KERNEL)
    for kind in ("-c", "-cubin"):
        assert main(["-arch=sm_90", "--ccc=always", "-x", "cu", kind, "source.ii", "-o", f"out{kind}"]) == 0
    assert Path("source.ii").read_text() == KERNEL
    assert main(["-arch=sm_90", "--ccc=always", "-cubin", "kernel.cu", "-o", "kernel.cubin"]) == 0
    assert Path("out-cubin").stat().st_size == Path("kernel.cubin").stat().st_size


@pytest.mark.parametrize("annotated", [False, True])
def test_ptx_goes_where_it_is_asked_for(annotated: bool, capfd: pytest.CaptureFixture[str]) -> None:
    Path("x.cu").write_text(KERNEL if annotated else "__global__ void work() {}\n")
    command = ["-arch=sm_90", "--ccc=always", "-ptx", "x.cu", "-o"]
    Path("there.ptx").touch(0o600)
    Path("link.ptx").symlink_to("linked.ptx")
    for name in ("new.ptx", "there.ptx", "link.ptx", "-"):
        assert main([*command, name]) == 0
    printed, said = capfd.readouterr()
    assert said == ""
    assert is_rewritten(printed.encode()) == annotated
    assert printed == Path("new.ptx").read_text()
    assert {Path(n).read_text() for n in ("there.ptx", "linked.ptx")} == {printed}
    assert Path("there.ptx").stat().st_mode & 0o777 == 0o600
    assert Path("link.ptx").is_symlink()
    made = {"new.ptx", "there.ptx", "link.ptx", "linked.ptx", "x.cu"}
    assert {p.name for p in Path().iterdir()} == made | {"kernel.cu", "main.cu", "refused.cu"}
