"""``ccc-nvcc --ccc-find``: what is rewritten where nobody annotated, by a run with candidates on the emulator."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cccopt.advising.suggestions import advise_on_run
from cccopt.cli import nvcc
from cccopt.cli.main import main
from cccopt.driver.function_texts import definitions
from cccopt.emulator import Program
from cccopt.profiling.run_file import read
from cccopt.ptx.parser import parse

pytestmark = pytest.mark.nvcc

SOURCE = """\
__device__ __forceinline__ unsigned mixed(unsigned x) {
#pragma unroll
  for (int k = 0; k < 40; ++k) x = (x ^ (x >> 15)) * 0x9E3779B1u + k * 7919u;
  return x;
}

extern "C" __global__ void walk(int n, const unsigned* start, unsigned* out) {
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    unsigned x = start[i], count = 0;
    while (x % 37 != 0) {
      x = mixed(x);
      ++count;
    }
    out[i] = count;
  }
}

extern "C" __global__ void even(int n, const unsigned* start, unsigned* out) {
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    unsigned x = start[i];
    for (int k = 0; k < n / 128; ++k) x = mixed(x);
    out[i] = x;
  }
}

extern "C" __global__ void annotated(int n, const unsigned* __restrict__ start, unsigned* __restrict__ out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    unsigned x = start[i], count = 0;
#pragma ccc while
    while (x % 37 != 0) {
      x = mixed(x);
      ++count;
    }
    out[i] = count;
  }
}
"""
COUNT = 2048
LAUNCH = ["--grid", "1", "--block", "128", "--arg", f"i32:{COUNT}", "--arg", "start.npy"]
LAUNCH += ["--arg", f"zeros:u32:{COUNT}"]


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with walk.cu and run.json, its kernels `walk` and `even` over random numbers."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("find")
        patch.chdir(folder)
        Path("walk.cu").write_text(SOURCE)
        np.save("start.npy", np.random.default_rng(1).integers(1, 1 << 30, COUNT).astype(np.uint32))
        words = ["--ccc-candidates", "-lineinfo", "-arch=sm_90", "-ptx", "walk.cu", "-o", "marked.ptx"]
        assert nvcc.main(words) == 0
        for kernel in ("walk", "even"):
            assert main(["emulate", "marked.ptx", kernel, *LAUNCH, "--profile", "run.json"]) == 0
        yield folder


@pytest.fixture
def folder(counted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it to work in."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(counted, tmp_path, dirs_exist_ok=True))


def compiled(*options: str) -> str:
    words = [*options, "-arch=sm_90", "-ptx", "walk.cu", "-o", "made.ptx", "--ccc-report=report.json"]
    assert nvcc.main(words) == 0
    return Path("made.ptx").read_text()


def rewritten() -> dict[str, set[str]]:
    """The forms of rewritten regions by kernel."""
    found: dict[str, set[str]] = {}
    for unit in json.loads(Path("report.json").read_text())["units"]:
        for region in unit["regions"]:
            if region["outcome"] == "rewritten":
                found.setdefault(region["kernel"], set()).add(region["form"])
    return found


def result(ptx: str, kernel: str, count: int = COUNT, **order: int) -> tuple[bytes, float]:
    """The first ``count`` numbers that a kernel writes, and its warp efficiency."""
    out = np.zeros(count, np.uint32)
    profile = Program(parse(ptx)).launch(kernel, 1, 128, [count, np.load("start.npy"), out], **order)
    return out.tobytes(), profile.warp_efficiency


def function(ptx: str, name: str) -> str:
    (found,) = (d for d in definitions(ptx) or () if d.name == name and d.body is not None)
    return ptx[found.start : found.end]


def test_what_gains_without_a_promise_is_rewritten(folder: Path) -> None:
    plain = compiled("--ccc=off")
    made = compiled("--ccc-find", "--ccc-profile=run.json")
    assert rewritten() == {"walk": {"in lane"}}
    wanted, before = result(plain, "walk")
    found, after = result(made, "walk")
    assert found == wanted
    assert after > 1.5 * before
    # Of the first warp alone the lanes have two tasks.
    assert wanted.startswith(result(made, "walk", 160, shuffle=3)[0])
    for name in ("even", "annotated"):  # one that loses, and one that is annotated and has no profile
        assert function(made, name).split() == function(plain, name).split()


def test_what_is_annotated_is_rewritten_as_before(folder: Path) -> None:
    alone = compiled("--ccc=always")
    assert rewritten().keys() == {"annotated"}
    together = compiled("--ccc=always", "--ccc-find", "--ccc-profile=run.json")
    assert rewritten().keys() == {"walk", "annotated"}
    wanted = result(alone, "walk")[0]  # both kernels do the same
    assert all(result(together, kernel)[0] == wanted for kernel in ("walk", "annotated"))


def test_counts_of_other_code_are_not_gone_by(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Path("walk.cu").write_text(SOURCE.replace("% 37", "% 41", 1))
    compiled("--ccc-find", "--ccc-profile=run.json")
    assert rewritten() == {}
    assert (
        "warning[CCC068]: `walk.cu` has changed since its candidates were counted" in capfd.readouterr().err
    )


@pytest.mark.parametrize(("kernel", "moved"), [("even", False), ("walk", True)])
def test_a_new_pragma_may_move_what_was_counted(
    folder: Path, capfd: pytest.CaptureFixture[str], kernel: str, moved: bool
) -> None:
    before, head, after = SOURCE.partition(f"void {kernel}(int n, const unsigned* start, unsigned* out) {{\n")
    Path("walk.cu").write_text(f"{before}{head}#pragma ccc for\n{after}")
    compiled("--ccc-find", "--ccc-profile=run.json")
    assert ("walk" in rewritten()) != moved
    assert ("warning[CCC068]" in capfd.readouterr().err) == moved


def test_a_file_that_was_not_counted_is_said_so(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    shutil.copy("walk.cu", "other.cu")
    words = ["--ccc-find", "--ccc-profile=run.json", "--ccc-verbose", "-arch=sm_90"]
    assert nvcc.main([*words, "-ptx", "other.cu", "-o", "other.ptx"]) == 0
    err = capfd.readouterr().err
    assert "remark[CCC068]: the profile has no counts of candidates in `other.cu`" in err


def test_it_needs_counts_of_candidates(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert nvcc.main(["--ccc-find", "-arch=sm_90", "-ptx", "walk.cu", "-o", "other.ptx"]) == 1
    assert "error[CCC083]: `--ccc-find` needs `--ccc-profile=FILE.json`" in capfd.readouterr().err
    run = json.loads(Path("run.json").read_text())
    Path("none.json").write_text(json.dumps({**run, "candidates": []}))
    words = ["--ccc-find", "--ccc-profile=none.json", "-arch=sm_90", "-ptx", "walk.cu", "-o", "other.ptx"]
    assert nvcc.main(words) == 1
    assert "error[CCC069]: `" in capfd.readouterr().err
    assert not Path("other.ptx").exists()
    # Nothing in this file could have been counted.
    Path("flat.cu").write_text("__device__ int flat = 1;\n")
    assert nvcc.main([*words[:3], "-ptx", "flat.cu", "-o", "other.ptx"]) == 0
    assert Path("other.ptx").exists()


def test_advice_says_that_nothing_is_promised(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    capfd.readouterr()
    assert main(["advise", "run.json"]) == 0
    out = capfd.readouterr().out
    assert "walk" in out
    assert ("Nothing to vouch for" in out) == ("You vouch that" not in out)


def test_nothing_is_said_of_finding_what_is_too_little_for_it(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (advice,) = (each for each in advise_on_run(read("run.json"), only_in_lane=True) if each.pays)
    for pays, end in ((True, ": `ccc-nvcc --ccc-find` rewrites it without pragmas."), (False, ".")):
        monkeypatch.setattr(
            "cccopt.cli.advise.advise_on_run", lambda _, p=pays, **how: (replace(advice, pays=p),)
        )
        capfd.readouterr()
        assert main(["advise", "run.json"]) == 0
        assert f"Nothing to vouch for{end}\n" in capfd.readouterr().out
