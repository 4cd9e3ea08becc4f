"""``ccc-nvcc`` where builds are rough: many at once, killed at any moment, odd folders, a crash of ours."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import cccopt
from cccopt.cli.nvcc import main
from cccopt.driver import marked_ptx
from cccopt.toolchain import shadow
from tests.cli.test_annotated import KERNEL, REFUSED, is_rewritten, without_stamp

CCC_NVCC = Path(sys.executable).parent / "ccc-nvcc"
ALWAYS = ["--ccc=always", "-arch=sm_90"]

pytestmark = pytest.mark.nvcc


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test works in a folder of its own that holds the sources, with an empty cache."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("CCCOPT_CACHE", str(tmp_path / "cache"))
    Path("kernel.cu").write_text(KERNEL)
    Path("refused.cu").write_text(REFUSED)


def started(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [CCC_NVCC, *arguments], start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def test_many_compilations_share_one_shadow(tmp_path: Path) -> None:
    def compile_one(number: int) -> int:
        return started(*ALWAYS, "-cubin", "kernel.cu", "-o", f"{number}.cubin").wait()

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(compile_one, range(8))) == [0] * 8
    assert len({Path(f"{number}.cubin").read_bytes() for number in range(8)}) == 1
    (only,) = (tmp_path / "cache/toolkits").iterdir()
    assert (only / "bin/cicc").is_file()


# What ends a build: a user (the whole group), a job system (one process, then all of them).
ENDS = {
    "interrupt": (signal.SIGINT, True),
    "end": (signal.SIGTERM, False),
    "end all": (signal.SIGTERM, True),
    "kill all": (signal.SIGKILL, True),
}


@pytest.mark.parametrize("way", ENDS)
@pytest.mark.parametrize("kind", ["-ptx", "-cubin"])
def test_a_killed_compilation_leaves_nothing_half_done(kind: str, way: str, tmp_path: Path) -> None:
    command = [*ALWAYS, kind, "kernel.cu"]
    begun = time.monotonic()
    assert started(*command, "-o", "expected").wait() == 0
    takes = time.monotonic() - begun
    number, everyone = ENDS[way]
    moments = random.Random(f"{kind} {way}")
    for _ in range(2):
        # The first half of a compilation without a shadow is the search and the building of the shadow.
        shutil.rmtree(tmp_path / "cache")
        process = started(*command, "-o", "out")
        time.sleep(moments.random() * takes)
        (os.killpg if everyone else os.kill)(process.pid, number)
        process.wait()
        if number == signal.SIGKILL:
            time.sleep(0.1)
        if Path("out").exists():
            assert Path("out").read_bytes() == Path("expected").read_bytes()
        assert started(*command, "-o", "out").wait() == 0
        assert Path("out").read_bytes() == Path("expected").read_bytes()
        Path("out").unlink()
    left = {path.name for path in Path().iterdir()} - {"kernel.cu", "refused.cu", "expected"}
    # A killed process cannot clean up, but what it leaves does not bear the name of an output.
    assert left == set() if number != signal.SIGKILL else all(name.startswith((".", "out.")) for name in left)


@pytest.mark.parametrize("odd", ["with blanks", "żółć"])
def test_odd_temporary_folders(odd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / odd
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    assert main([*ALWAYS, "-cubin", "kernel.cu", "-o", "out"]) == 0
    assert list(folder.iterdir()) == []


def test_a_cache_with_an_odd_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CCCOPT_CACHE", str(tmp_path / "a 'cache' of $HOME, \"żółć\""))
    assert main([*ALWAYS, "-ptx", "kernel.cu", "-o", "out"]) == 0
    assert is_rewritten(Path("out").read_bytes())


def test_a_home_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").touch()
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.delenv("CCCOPT_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TMPDIR", str(temporary))
    for _ in range(2):
        assert main([*ALWAYS, "-ptx", "kernel.cu", "-o", "out"]) == 0
        assert is_rewritten(Path("out").read_bytes())
    (only,) = temporary.iterdir()
    assert {path.name for path in only.iterdir()} == {"toolkits", "searches"}


@pytest.mark.parametrize("keep", [False, True], ids=["", "kept"])
def test_a_crash_of_ours_is_one_diagnostic(
    keep: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    package = Path(cccopt.__file__).parent
    copy = tmp_path / "copy"
    shutil.copytree(package, copy / "cccopt", ignore=shutil.ignore_patterns("__pycache__"))
    for data in ("ptx_grammar", "cte_templates"):
        if (package.parent / data).is_dir():
            (copy / data).symlink_to(package.parent / data)
    with open(copy / "cccopt/passes/collect_contexts.py", "a") as stream:
        stream.write("\n\ndef run(*_):\n    raise ZeroDivisionError('injected')\n")
    others = shadow._import_path()
    monkeypatch.setattr(shadow, "_import_path", lambda: [str(copy), *others])
    Path("warned.cu").write_text(KERNEL.replace("float x =", "float unused, x ="))
    options = ["--ccc-keep=kept"] if keep else []
    assert main([*ALWAYS, *options, "-c", "warned.cu", "-o", "out"]) == 1
    said = capfd.readouterr().err
    assert 'warned.cu(6): warning #177-D: variable "unused" was declared but never referenced' in said
    assert said.count("error[CCC099]: internal error in cccopt") == 1
    assert "ZeroDivisionError at collect_contexts.py:" in said
    assert "injected" in said
    assert "Traceback" not in said
    assert not Path("out").exists()
    if keep:
        assert "ZeroDivisionError: injected" in Path("kept/cccopt-crash.txt").read_text()
        assert Path("kept/warned.compute_90.1.ptx").is_file()
    # The unannotated are none the worse for it.
    Path("plain.cu").write_text("__global__ void k() {}\n")
    assert main(["-arch=sm_90", "-c", "plain.cu", "-o", "plain.o"]) == 0


@pytest.fixture
def marked() -> str:
    """PTX with marks, and what it is to become."""
    text = marked_ptx("kernel.cu")
    Path("kernel.ptx").write_text(text)
    return text


def cubin_of(ptx: str) -> bytes:
    Path("reference.ptx").write_text(ptx)
    assert main(["--ccc=off", "-arch=sm_90", "-cubin", "reference.ptx", "-o", "reference.cubin"]) == 0
    return Path("reference.cubin").read_bytes()


def test_marked_ptx_is_rewritten_once(marked: str, capfd: pytest.CaptureFixture[str]) -> None:
    once = cccopt.transform(marked, ccc="always").ptx
    assert main([*ALWAYS, "-cubin", "kernel.ptx", "--ccc-report=r.json"]) == 0
    assert Path("kernel.cubin").read_bytes() == cubin_of(once) != cubin_of(marked)
    (unit,) = json.loads(Path("r.json").read_text())["units"]
    assert unit["file"] == "kernel.ptx"
    assert {region["outcome"] for region in unit["regions"]} == {"rewritten"}
    # What comes from a source is rewritten already.
    assert main([*ALWAYS, "-ptx", "kernel.cu", "-o", "made.ptx"]) == 0
    assert without_stamp("made.ptx").decode() == once
    assert main([*ALWAYS, "-cubin", "made.ptx", "-o", "made.cubin", "--ccc-report=r.json"]) == 0
    assert Path("made.cubin").read_bytes() == Path("kernel.cubin").read_bytes()
    assert json.loads(Path("r.json").read_text())["units"] == []
    assert capfd.readouterr() == ("", "")


def test_marked_ptx_where_the_output_goes_is_written_over(marked: str) -> None:
    assert main([*ALWAYS, "-ptx", "kernel.cu", "-o", "kernel.ptx"]) == 0
    assert is_rewritten(Path("kernel.ptx").read_bytes())


def test_the_embedded_text_of_marked_ptx_is_rewritten(marked: str) -> None:
    Path("other").mkdir()
    Path("other/kernel.ptx").write_text(marked.replace("work", "other_work"))
    code = "arch=compute_90,code=[sm_90,compute_90]"
    for place in ("kernel.ptx", "other/kernel.ptx"):
        assert main(["--ccc=always", "-no-compress", "-gencode", code, "-fatbin", place, "-o", "out"]) == 0
        assert is_rewritten(Path("out").read_bytes())
    assert main(["--ccc=always", "-gencode", code, "-dc", "kernel.ptx", "other/kernel.ptx"]) == 0


def test_marked_ptx_can_be_refused(capfd: pytest.CaptureFixture[str]) -> None:
    Path("refused.ptx").write_text(marked_ptx("refused.cu"))
    assert main([*ALWAYS, "-cubin", "refused.ptx", "-o", "out"]) == 1
    assert "error[CCC038]" in capfd.readouterr().err
    assert not Path("out").exists()
    assert main([*ALWAYS, "-cubin", "refused.ptx", "-o", "out", "--ccc-keep-going"]) == 0
    assert "warning[CCC038]" in capfd.readouterr().err
    assert Path("out").read_bytes() == cubin_of(Path("refused.ptx").read_text())


def test_marked_ptx_in_an_options_file_is_refused(marked: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path("options").write_text("kernel.ptx -arch=sm_90")
    assert main(["-cubin", "-optf", "options", "-o", "out"]) == 1
    assert "error[CCC098]: `kernel.ptx` contains annotations" in capfd.readouterr().err
    assert main(["--ccc=off", "-cubin", "-optf", "options", "-o", "out"]) == 0


def test_what_is_refused_beside_what_is_rewritten_loses_its_marks(capfd: pytest.CaptureFixture[str]) -> None:
    # One region, two kernels: in the second, a barrier stands in the path.
    text = KERNEL.replace('extern "C" __global__', "template <bool WITH> __global__").replace(
        "      out[i] = x;\n", "      out[i] = x;\n      if (WITH) __syncthreads();\n"
    )
    users = "".join(
        f"template __global__ void work<{w}>(int, const float*, float*);\n" for w in ("false", "true")
    )
    Path("both.cu").write_text(text + users)
    assert main([*ALWAYS, "--ccc-keep-going", "-ptx", "both.cu", "-o", "both.ptx"]) == 0
    assert "warning[CCC038]" in capfd.readouterr().err
    made = Path("both.ptx").read_text()
    assert is_rewritten(made.encode())
    assert all(line.startswith("// ccc overhead.") for line in re.findall("// ccc .*", made))
    assert main([*ALWAYS, "-cubin", "both.ptx", "-o", "out"]) == 0
    assert capfd.readouterr() == ("", "")
